/* The collective calls that are not left to the host, and what lite_allgather.c, lite_alltoall.c,
 * lite_chain.c and lite_gather.c share: a call goes on after an error, so that nobody waits for it,
 * returns the first one, and its messages tell of it. */
#ifndef LITE_COLL_H_INCLUDED
#define LITE_COLL_H_INCLUDED

#include "lite_impl.h"

int MPIDI_LITE_mpi_allgatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                              void *recvbuf, const MPI_Aint *recvcounts, const MPI_Aint *displs,
                              MPI_Datatype recvtype, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr);
int MPIDI_LITE_mpi_gather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                          void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype, int root,
                          MPIR_Comm *comm, MPIDI_LITE_coll_attr attr);
int MPIDI_LITE_mpi_gatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                           void *recvbuf, const MPI_Aint *recvcounts, const MPI_Aint *displs,
                           MPI_Datatype recvtype, int root, MPIR_Comm *comm,
                           MPIDI_LITE_coll_attr attr);
int MPIDI_LITE_mpi_alltoallv(const void *sendbuf, const MPI_Aint *sendcounts,
                             const MPI_Aint *sdispls, MPI_Datatype sendtype, void *recvbuf,
                             const MPI_Aint *recvcounts, const MPI_Aint *rdispls,
                             MPI_Datatype recvtype, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr);
int MPIDI_LITE_mpi_alltoallw(const void *sendbuf, const MPI_Aint *sendcounts,
                             const MPI_Aint *sdispls, const MPI_Datatype *sendtypes, void *recvbuf,
                             const MPI_Aint *recvcounts, const MPI_Aint *rdispls,
                             const MPI_Datatype *recvtypes, MPIR_Comm *comm,
                             MPIDI_LITE_coll_attr attr);
int MPIDI_LITE_mpi_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
                             MPI_Op op, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr);
int MPIDI_LITE_mpi_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
                          MPI_Op op, int root, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr);
int MPIDI_LITE_mpi_scan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
                        MPI_Op op, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr);
int MPIDI_LITE_mpi_exscan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
                          MPI_Op op, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr);

struct MPIDI_LITE_coll {
    MPIR_Comm *comm;
    MPIDI_LITE_coll_attr attr;
    int tag, mpi_errno;
};

/* A ring: in each step a rank sends the block that came in the step before, at first its own. The
 * number of the one that it sends in `step`. Of step 1 that is the rank before it, of step -1 the
 * next one. */
static inline int MPIDI_LITE_coll_block(const struct MPIDI_LITE_coll *coll, int step)
{
    const int ranks = coll->comm->local_size;

    return (coll->comm->rank - step + 2 * ranks) % ranks;
}

static inline void MPIDI_LITE_coll_note(struct MPIDI_LITE_coll *coll, int mpi_errno)
{
    if (likely(mpi_errno == MPI_SUCCESS))
        return;
    if (coll->mpi_errno == MPI_SUCCESS)
        MPIDI_LITE_COLL_ERRORS(coll->attr) |= MPIR_ERR_GET_CLASS(mpi_errno) == MPIX_ERR_PROC_FAILED
                                                  ? MPIR_ERR_PROC_FAILED
                                                  : MPIR_ERR_OTHER;
    MPIR_ERR_ADD(coll->mpi_errno, mpi_errno);
}

/* Waits for the request, if there is one, and frees it. A receive has to bring `expected` bytes, if
 * that is not negative. */
static inline void MPIDI_LITE_coll_await(struct MPIDI_LITE_coll *coll, MPIR_Request **request,
                                         MPI_Aint expected)
{
    int mpi_errno;

    if (*request == NULL)
        return;
    mpi_errno = MPIDI_LITE_COLL_WAIT(*request, coll->attr);
    if (mpi_errno == MPI_SUCCESS)
        mpi_errno = (*request)->status.MPI_ERROR;
    if (mpi_errno == MPI_SUCCESS &&
        (MPIDI_LITE_COLL_WAS_TOLD(coll->attr) ||
         ((*request)->kind == MPIR_REQUEST_KIND__RECV && expected >= 0 &&
          MPIR_STATUS_GET_COUNT((*request)->status) != expected)))
        MPIR_ERR_SET(mpi_errno, MPI_ERR_OTHER, "**coll_fail");
    MPIR_Request_free(*request);
    *request = NULL;
    MPIDI_LITE_coll_note(coll, mpi_errno);
}

struct MPIDI_LITE_block {
    void *place;
    MPI_Aint count; /* elements; 0: no data */
    MPI_Datatype type;
};

static inline void MPIDI_LITE_coll_receive(struct MPIDI_LITE_coll *coll,
                                           struct MPIDI_LITE_block block, int rank,
                                           MPIR_Request **request)
{
    if (block.count > 0)
        MPIDI_LITE_coll_note(coll, MPIC_Irecv(block.place, block.count, block.type, rank, coll->tag,
                                              coll->comm, request));
}

static inline void MPIDI_LITE_coll_send(struct MPIDI_LITE_coll *coll, struct MPIDI_LITE_block block,
                                        int rank, MPIR_Request **request)
{
    if (block.count > 0)
        MPIDI_LITE_coll_note(coll, MPIC_Isend(block.place, block.count, block.type, rank, coll->tag,
                                              coll->comm, request, coll->attr));
}

#endif
