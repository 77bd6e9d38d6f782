# hosts: 2
# controllers: sigio
# Calls that MPICH gets wrong, and install-device mends: docs/hosts.md.
. "$(dirname "$0")/lab.sh"

# ranks of one host by shared memory, then by the device, too; each of the host's two algorithms
for count in 1 2 4; do
  for variables in MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NOLOCAL=1; do
    for algorithm in sched_linear tsp_linear; do
      job 60 $count env $variables MPIR_CVAR_INEIGHBOR_ALLTOALL_INTRA_ALGORITHM=$algorithm \
        MPIR_CVAR_INEIGHBOR_ALLTOALLV_INTRA_ALGORITHM=$algorithm \
        MPIR_CVAR_INEIGHBOR_ALLTOALLW_INTRA_ALGORITHM=$algorithm "$programs/neighbours"
      passed neighbours
      result $? "blocks of neighbours are in their places, ranks: $count, $variables, $algorithm" "$out"
    done
  done
done
for count in 1 2 3; do
  for variables in MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NOLOCAL=1; do
    job 60 $count env $variables "$programs/isendrecv"
    passed isendrecv
    result $? "MPI_Isendrecv and MPI_Isendrecv_replace, ranks: $count, $variables" "$out"
  done
done
for count in 2 3 4; do
  for variables in MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NOLOCAL=1; do
    job 60 $count env $variables "$programs/persistent"
    passed persistent
    result $? "persistent collectives start with the data of each start, ranks: $count, $variables" "$out"
  done
done
job 60 2 "$programs/null_ranks"
passed null_ranks
result $? "persistent messages to and from MPI_PROC_NULL are active from their start on" "$out"
for variables in MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NOLOCAL=1; do
  job 60 2 env $variables "$programs/buffered"
  passed buffered
  result $? "MPI_Bsend: too long a message is refused, a flush waits for all, memory is given back, $variables" "$out"
done
job 60 2 "$programs/many_types"
passed many_types
result $? "a thousand derived types at a time pack, send and receive all of their data" "$out"
plan
