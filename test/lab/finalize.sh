# hosts: 2
# at once: yes
# MPI_Finalize moves what is still open until all ranks are there: sends whose requests were freed, between hosts and in shared memory.
. "$(dirname "$0")/lab.sh"

for late in 0 1; do
  for count in 2 4; do
    job 60 "$count" "$programs/freed_send" "$late"
    [ "$code" = 0 ] && grep -qE '^freed_send: [0-9]+ checks, 0 failed' "$out"
    result $? "freed sends of $count ranks arrive, the receiver $late s late" "$out"
  done
done
plan
