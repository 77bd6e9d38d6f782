# hosts: 2
# controllers: sigio
# A rank that aborts the job, by a fatal error or by MPI_Abort, does not return from the call before the process manager kills it, and the job ends.
. "$(dirname "$0")/lab.sh"

mark=$LAB_DIR/returned
for how in error intercomm abort; do
  returned=0 went_wrong=0
  for _ in 1 2 3 4 5; do
    rm -f "$mark"
    job 60 4 "$programs/fatal" "$how" "$mark"
    [ ! -e "$mark" ] || returned=$((returned + 1))
    ! hung && [ "$code" != 0 ] || went_wrong=$((went_wrong + 1))
  done
  [ "$returned" = 0 ]
  result $? "$how: the call does not return (it did in $returned of 5 jobs)" "$out"
  [ "$went_wrong" = 0 ]
  result $? "$how: the job ends, with an error" "$out"
done
plan
