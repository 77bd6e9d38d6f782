# hosts: 2
# MPI_Scan, MPI_Exscan, MPI_Reduce and MPI_Allreduce from rank to rank (lite_chain.c) give what the definition says. The last of two ranks sends nothing for scans.
. "$(dirname "$0")/lab.sh"

export LITE_STATS=1
for local in 0 1; do
  job 120 4 env MPIR_CVAR_NOLOCAL=$local "$programs/chain"
  passed chain
  result $? "scans and reductions of two to four ranks, NOLOCAL=$local" "$out"
done

eager_of_rank_1() { # VARIABLES…
  job 60 2 env "$@" "$programs/chain" scans
  passed chain && stat_of "$out" 1 eager_msgs
}
chain=$(eager_of_rank_1 LITE_EAGER_MAX=16M)
exchange=$(eager_of_rank_1 LITE_EAGER_MAX=16M MPIR_CVAR_SCAN_INTRA_ALGORITHM=recursive_doubling MPIR_CVAR_EXSCAN_INTRA_ALGORITHM=recursive_doubling)
[ "${chain:-none}" = 0 ] && [ "${exchange:-0}" -gt 10 ]
result $? "rank 1 of 2 sent ${chain:-?} eager messages, ${exchange:-?} with MPICH's exchange" "$out"

job 60 3 env MPIR_CVAR_NOLOCAL=1 "$programs/chain" no-memory
passed chain
result $? "a rank without memory for its pieces: an error, nobody waits, and the next calls are right" "$out"

for case in lost:4 lost-all:3; do
  ranks=${case#*:}
  errors_without_rank_0 "$ranks" chain "${case%:*}"
  result $? "when rank 0 of $ranks dies before a collective call (${case%:*}), all others get an error" "$out"
done
plan
