# hosts: 2
# controllers: sigio
# Who ends a job does not go on, between the request and the process manager's kill: a rank with a fatal error, and one in MPI_Abort.
. "$(dirname "$0")/lab.sh"

for how in error abort; do
  went_on=0
  for _ in 1 2 3 4 5; do
    job 60 4 "$programs/fatal" "$how"
    ! hung && [ "$code" != 0 ] && ! grep -q 'goes on' "$out" || went_on=$((went_on + 1))
  done
  [ "$went_on" = 0 ]
  result $? "$how: the job ends, and no rank goes on ($went_on of 5 did)" "$out"
done
plan
