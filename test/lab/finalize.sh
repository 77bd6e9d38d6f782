# hosts: 2
# at once: yes
# MPI_Finalize moves what is still open until all ranks are there: sends whose requests were freed, between hosts and in shared memory.
. "$(dirname "$0")/lab.sh"

for late in 0 1; do
  for count in 2 4; do
    job 60 "$count" "$programs/freed_send" "$late"
    passed freed_send
    result $? "freed sends of $count ranks arrive, the receiver $late s late" "$out"
  done
done
# longer than a goodbye to another job is waited for
job 60 1 "$programs/freed_send" 4 spawn
passed freed_send
result $? "freed sends to a job that was spawned arrive, the receiver 4 s late" "$out"

waits() { # WHAT SENTENCE
  job 60 3 "$programs/last_barrier" "$1"
  ! hung && [ "$code" = 0 ] && grep -q '^last_barrier: .* 0 failed' "$out"
  result $? "$2" "$out"
}
waits news "MPI_Finalize ends, also if SIGUSR1 reports a dead process meanwhile"
if grep -q MPIR_CVAR_NO_COLLECTIVE_FINALIZE "$LAB_PREFIX"/lib/libmpi.so; then
  # the others notice in their own that it is gone, or not: by which socket they look at
  for turn in 1 2 3 4; do
    MPIR_CVAR_NO_COLLECTIVE_FINALIZE=1 waits alone "MPI_Finalize waits for nobody with MPIR_CVAR_NO_COLLECTIVE_FINALIZE, $turn"
  done
else
  result 0 "MPI_Finalize waits for nobody # SKIP MPICH 4.0 has no MPIR_CVAR_NO_COLLECTIVE_FINALIZE"
fi
plan
