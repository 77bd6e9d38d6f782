/* MPI_Gatherv, and MPI_Gather of long blocks: the root copies its own block while those of the
 * others are on their way. MPICH copies it first, while nothing is received, and hands the blocks
 * of MPI_Gather on from rank to rank, as suits short ones.
 *
 * MPIR_CVAR_GATHERV_INTRA_ALGORITHM and MPIR_CVAR_GATHER_INTRA_ALGORITHM, when the user sets them,
 * go back to the host's. */
#include "lite_coll.h"

#define AT_A_TIME 64
#define PIECE_BYTES (1024 * 1024)
#define LONG_BYTES (2048 * 1024) /* a block of MPI_Gather, */
#define FEW_RANKS 64             /* each of which may have a connection to the root */

struct gathering {
    struct MPIDI_LITE_coll coll;
    struct MPIDI_LITE_block own;
    /* at the root */
    char *buffer;
    const MPI_Aint *counts, *places; /* elements; NULL: all are `count`, one behind the other */
    MPI_Aint count, extent;
    MPI_Datatype type;
    MPIR_Request *requests[AT_A_TIME];
};

static struct MPIDI_LITE_block block_of(const struct gathering *all, int rank)
{
    const MPI_Aint count = all->counts != NULL ? all->counts[rank] : all->count;
    const MPI_Aint place = all->places != NULL ? all->places[rank] : rank * count;

    return (struct MPIDI_LITE_block){all->buffer + place * all->extent, count, all->type};
}

/* Where its data lie one behind the other, and how many bytes. NULL: they do not. */
static char *data_of(const struct MPIDI_LITE_block *block, MPI_Aint *bytes)
{
    MPIR_Datatype *type;
    MPI_Aint lb;
    int contiguous;

    MPIDI_Datatype_get_info(block->count, block->type, contiguous, *bytes, type, lb);
    (void) type;
    return contiguous ? (char *) block->place + lb : NULL;
}

/* A long one in pieces, between which what is under way moves on. */
static void copy_own(struct gathering *all)
{
    const struct MPIDI_LITE_block own = all->own, into = block_of(all, all->coll.comm->rank);
    MPI_Aint bytes = 0, room = 0;
    char *source, *target;

    if (own.place == MPI_IN_PLACE || into.count == 0)
        return;
    source = data_of(&own, &bytes);
    target = data_of(&into, &room);
    if (source == NULL || target == NULL || bytes != room || bytes <= PIECE_BYTES) {
        MPIDI_LITE_coll_note(&all->coll, MPIR_Localcopy(own.place, own.count, own.type, into.place,
                                                        into.count, into.type));
        return;
    }
    for (MPI_Aint done = 0, piece; done < bytes; done += piece) {
        piece = MPL_MIN(PIECE_BYTES, bytes - done);
        MPIDI_LITE_coll_note(&all->coll, MPIR_Localcopy(source + done, piece, MPIDI_LITE_BYTE,
                                                        target + done, piece, MPIDI_LITE_BYTE));
        MPIDI_LITE_coll_note(&all->coll, MPIDI_LITE_PROGRESS_TEST());
    }
}

static void receive_all(struct gathering *all)
{
    const int rank = all->coll.comm->rank, ranks = all->coll.comm->local_size;
    bool copied = false;

    for (int next = 0; next < ranks;) {
        int under_way = 0;

        memset(all->requests, 0, sizeof all->requests);
        for (; next < ranks && under_way < AT_A_TIME; next++)
            if (next != rank)
                MPIDI_LITE_coll_receive(&all->coll, block_of(all, next), next,
                                        &all->requests[under_way++]);
        if (!copied)
            copy_own(all);
        copied = true;
        for (int i = 0; i < under_way; i++)
            MPIDI_LITE_coll_await(&all->coll, &all->requests[i], -1);
    }
}

static int gather(struct gathering *all, int root)
{
    MPIR_Request *request = NULL;

    if (all->coll.comm->rank == root) {
        MPIR_Datatype_get_extent_macro(all->type, all->extent);
        receive_all(all);
    } else {
        MPIDI_LITE_coll_send(&all->coll, all->own, root, &request);
        MPIDI_LITE_coll_await(&all->coll, &request, -1);
    }
    return all->coll.mpi_errno;
}

int MPIDI_LITE_mpi_gatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                           void *recvbuf, const MPI_Aint *recvcounts, const MPI_Aint *displs,
                           MPI_Datatype recvtype, int root, MPIR_Comm *comm,
                           MPIDI_LITE_coll_attr attr)
{
    struct gathering all = {.coll = {.comm = comm, .attr = attr, .tag = MPIR_GATHERV_TAG},
                            .own = {(void *) sendbuf, sendcount, sendtype},
                            .buffer = recvbuf,
                            .counts = recvcounts,
                            .places = displs,
                            .type = recvtype};

    if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM ||
        MPIR_CVAR_GATHERV_INTRA_ALGORITHM != MPIR_CVAR_GATHERV_INTRA_ALGORITHM_auto)
        return MPIR_Gatherv_impl(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                                 recvtype, root, comm, attr);
    return gather(&all, root);
}

/* All ranks find the same: their blocks have one length. */
static bool is_long(const MPIR_Comm *comm, MPI_Aint count, MPI_Datatype type)
{
    MPI_Aint size;

    MPIR_Datatype_get_size_macro(type, size);
    return comm->local_size <= FEW_RANKS && count * size >= LONG_BYTES;
}

int MPIDI_LITE_mpi_gather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                          void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype, int root,
                          MPIR_Comm *comm, MPIDI_LITE_coll_attr attr)
{
    struct gathering all = {.coll = {.comm = comm, .attr = attr, .tag = MPIR_GATHER_TAG},
                            .own = {(void *) sendbuf, sendcount, sendtype},
                            .buffer = recvbuf,
                            .count = recvcount,
                            .type = recvtype};

    if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM ||
        MPIR_CVAR_GATHER_INTRA_ALGORITHM != MPIR_CVAR_GATHER_INTRA_ALGORITHM_auto ||
        !(comm->rank == root ? is_long(comm, recvcount, recvtype)
                             : is_long(comm, sendcount, sendtype)))
        return MPIR_Gather_impl(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                                comm, attr);
    return gather(&all, root);
}
