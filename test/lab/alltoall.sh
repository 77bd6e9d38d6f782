# hosts: 2
# MPI_Alltoallv and MPI_Alltoallw (lite_alltoall.c) give what the definition says.
. "$(dirname "$0")/lab.sh"

for variables in MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_ALLTOALL_THROTTLE=1 MPIR_CVAR_ALLTOALL_THROTTLE=0; do
  job 120 4 env $variables "$programs/alltoall"
  passed alltoall
  result $? "blocks of all kinds among four ranks, $variables" "$out"
done

errors_without_rank_0 3 alltoall lost
result $? "when rank 0 of 3 dies before the call, both others get an error" "$out"
plan
