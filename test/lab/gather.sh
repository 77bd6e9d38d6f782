# hosts: 2
# MPI_Gather and MPI_Gatherv (lite_gather.c) give what the definition says.
. "$(dirname "$0")/lab.sh"

for variables in MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_GATHERV_INTRA_ALGORITHM=linear; do
  job 120 4 env $variables "$programs/gather"
  passed gather
  result $? "blocks of all kinds, at each root of four ranks, $variables" "$out"
done

errors_without_rank_0 2 gather lost
result $? "when rank 0 of 2 dies before the call, the root gets an error" "$out"
plan
