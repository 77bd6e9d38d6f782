# hosts: 2
# MPI_Allgatherv (lite_allgather.c) gives what the definition says. Of long blocks of one length each goes round whole.
. "$(dirname "$0")/lab.sh"

for variables in MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NOLOCAL=1; do
  job 120 4 env $variables "$programs/allgather"
  passed allgather
  result $? "blocks of all kinds among four ranks, $variables" "$out"
done

errors_without_rank_0 4 allgather lost
result $? "when rank 0 of 4 dies before the call, all others get an error" "$out"
plan
