/* MPI_Alltoallv and MPI_Alltoallw: the own block is copied once, while those of the other ranks are
 * on their way. MPICH sends it to itself through shared memory, where it is copied twice, in small
 * pieces.
 *
 * MPIR_CVAR_ALLTOALLV_INTRA_ALGORITHM and MPIR_CVAR_ALLTOALLW_INTRA_ALGORITHM, when the user sets
 * them, go back to the host's. As there, MPIR_CVAR_ALLTOALL_THROTTLE bounds the ranks that are sent
 * to and received from at a time. */
#include "lite_coll.h"

#define PEERS_MAX 64 /* at a time */

/* A block for each rank. */
struct blocks {
    char *buffer;
    const MPI_Aint *counts, *places; /* elements, units */
    MPI_Aint unit;                   /* bytes */
    const MPI_Datatype *types;       /* NULL: all are of `type` */
    MPI_Datatype type;
};

struct exchange {
    struct MPIDI_LITE_coll coll;
    struct blocks out, in;
    MPIR_Request *requests[2 * PEERS_MAX];
    int under_way;
};

static struct MPIDI_LITE_block block_of(const struct blocks *blocks, int rank)
{
    const MPI_Datatype type = blocks->types != NULL ? blocks->types[rank] : blocks->type;
    MPI_Aint size = 0;

    if (blocks->counts[rank] > 0)
        MPIR_Datatype_get_size_macro(type, size);
    return (struct MPIDI_LITE_block){blocks->buffer + blocks->places[rank] * blocks->unit,
                                     size > 0 ? blocks->counts[rank] : 0, type};
}

static void copy_own(struct exchange *exchange)
{
    const struct MPIDI_LITE_block from = block_of(&exchange->out, exchange->coll.comm->rank);
    const struct MPIDI_LITE_block into = block_of(&exchange->in, exchange->coll.comm->rank);

    if (from.count > 0 || into.count > 0)
        MPIDI_LITE_coll_note(&exchange->coll, MPIR_Localcopy(from.place, from.count, from.type,
                                                             into.place, into.count, into.type));
}

/* Those at a distance of `first` to `last`: receives from below, sends above, so that not all ranks
 * send to the same one. */
static void exchange_with(struct exchange *exchange, int first, int last)
{
    const int rank = exchange->coll.comm->rank, ranks = exchange->coll.comm->local_size;

    memset(exchange->requests, 0, sizeof exchange->requests);
    exchange->under_way = 0;
    for (int distance = first; distance <= last; distance++)
        MPIDI_LITE_coll_receive(
            &exchange->coll, block_of(&exchange->in, (rank - distance + ranks) % ranks),
            (rank - distance + ranks) % ranks, &exchange->requests[exchange->under_way++]);
    for (int distance = first; distance <= last; distance++)
        MPIDI_LITE_coll_send(&exchange->coll, block_of(&exchange->out, (rank + distance) % ranks),
                             (rank + distance) % ranks, &exchange->requests[exchange->under_way++]);
    if (first == 1)
        copy_own(exchange);
    for (int i = 0; i < exchange->under_way; i++)
        MPIDI_LITE_coll_await(&exchange->coll, &exchange->requests[i], -1);
}

static int exchange_all(struct exchange *exchange)
{
    const int others = exchange->coll.comm->local_size - 1, throttle = MPIR_CVAR_ALLTOALL_THROTTLE;
    const int at_a_time = throttle > 0 ? MPL_MIN(throttle, PEERS_MAX) : PEERS_MAX;

    for (int first = 1; first == 1 || first <= others; first += at_a_time)
        exchange_with(exchange, first, MPL_MIN(first + at_a_time - 1, others));
    return exchange->coll.mpi_errno;
}

int MPIDI_LITE_mpi_alltoallv(const void *sendbuf, const MPI_Aint *sendcounts,
                             const MPI_Aint *sdispls, MPI_Datatype sendtype, void *recvbuf,
                             const MPI_Aint *recvcounts, const MPI_Aint *rdispls,
                             MPI_Datatype recvtype, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr)
{
    struct exchange exchange = {
        .coll = {.comm = comm, .attr = attr, .tag = MPIR_ALLTOALLV_TAG},
        .out = {.buffer = (char *) sendbuf,
                .counts = sendcounts,
                .places = sdispls,
                .type = sendtype},
        .in = {.buffer = recvbuf, .counts = recvcounts, .places = rdispls, .type = recvtype},
    };

    if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM || sendbuf == MPI_IN_PLACE ||
        MPIR_CVAR_ALLTOALLV_INTRA_ALGORITHM != MPIR_CVAR_ALLTOALLV_INTRA_ALGORITHM_auto)
        return MPIR_Alltoallv_impl(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                   rdispls, recvtype, comm, attr);
    MPIR_Datatype_get_extent_macro(sendtype, exchange.out.unit);
    MPIR_Datatype_get_extent_macro(recvtype, exchange.in.unit);
    return exchange_all(&exchange);
}

int MPIDI_LITE_mpi_alltoallw(const void *sendbuf, const MPI_Aint *sendcounts,
                             const MPI_Aint *sdispls, const MPI_Datatype *sendtypes, void *recvbuf,
                             const MPI_Aint *recvcounts, const MPI_Aint *rdispls,
                             const MPI_Datatype *recvtypes, MPIR_Comm *comm,
                             MPIDI_LITE_coll_attr attr)
{
    struct exchange exchange = {
        .coll = {.comm = comm, .attr = attr, .tag = MPIR_ALLTOALLW_TAG},
        .out = {(char *) sendbuf, sendcounts, sdispls, 1, sendtypes, MPI_DATATYPE_NULL},
        .in = {recvbuf, recvcounts, rdispls, 1, recvtypes, MPI_DATATYPE_NULL},
    };

    if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM || sendbuf == MPI_IN_PLACE ||
        MPIR_CVAR_ALLTOALLW_INTRA_ALGORITHM != MPIR_CVAR_ALLTOALLW_INTRA_ALGORITHM_auto)
        return MPIR_Alltoallw_impl(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
                                   rdispls, recvtypes, comm, attr);
    return exchange_all(&exchange);
}
