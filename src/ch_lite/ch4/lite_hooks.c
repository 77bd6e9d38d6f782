/* The rest of the table: hooks where the module has nothing to add, requests that go on to ch4's active-message code under another
 * name, and process names. */
#include "lite_impl.h"

/* ---- nothing to add ---- */

int MPIDI_LITE_comm_hook(MPIR_Comm * comm)
{
    return MPI_SUCCESS;
}

int MPIDI_LITE_comm_free_hook(MPIR_Comm * comm)
{
    MPIDI_LITE_part_from_strangers();
    return MPI_SUCCESS;
}

int MPIDI_LITE_comm_set_hints(MPIR_Comm * comm, MPIR_Info * info)
{
    return MPI_SUCCESS;
}

int MPIDI_LITE_type_hook(MPIR_Datatype * type)
{
    return MPI_SUCCESS;
}

int MPIDI_LITE_op_hook(MPIR_Op * op)
{
    return MPI_SUCCESS;
}

int MPIDI_LITE_win_attach_hook(MPIR_Win * win, void *base, MPI_Aint size)
{
    return MPI_SUCCESS;
}

int MPIDI_LITE_win_detach_hook(MPIR_Win * win, const void *base)
{
    return MPI_SUCCESS;
}

/* ---- partitioned communication: ch4's own, without the address argument ---- */

int MPIDI_LITE_mpi_psend_init(const void *buf, int partitions, MPI_Aint count,
                              MPI_Datatype datatype, int dest, int tag, MPIR_Comm * comm,
                              MPIR_Info * info, MPIDI_av_entry_t * av, MPIR_Request ** request)
{
    return MPIDIG_mpi_psend_init(buf, partitions, count, datatype, dest, tag, comm, info, request);
}

int MPIDI_LITE_mpi_precv_init(void *buf, int partitions, MPI_Aint count, MPI_Datatype datatype,
                              int source, int tag, MPIR_Comm * comm, MPIR_Info * info,
                              MPIDI_av_entry_t * av, MPIR_Request ** request)
{
    return MPIDIG_mpi_precv_init(buf, partitions, count, datatype, source, tag, comm, info,
                                 request);
}

/* ---- processes ---- */

int MPIDI_LITE_rank_is_local(int rank, MPIR_Comm * comm)
{
    return MPIDIU_rank_is_local(rank, comm);
}

int MPIDI_LITE_comm_get_gpid(MPIR_Comm * comm, int idx, uint64_t * gpid, bool is_remote)
{
    int avtid = 0, lpid = 0;

    if (comm->comm_kind == MPIR_COMM_KIND__INTRACOMM || is_remote)
        MPIDIU_comm_rank_to_pid(comm, idx, &lpid, &avtid);
    else
        MPIDIU_comm_rank_to_pid_local(comm, idx, &lpid, &avtid);

    *gpid = MPIDIU_GPID_CREATE(avtid, lpid);
    return MPI_SUCCESS;
}
