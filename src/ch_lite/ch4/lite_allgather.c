/* MPI_Allgatherv of long blocks of about one length: each goes round whole. MPICH cuts what goes
 * round into pieces of one length, so that a block that is much longer than the others does not
 * hold up all of them, and waits for every piece.
 *
 * MPIR_CVAR_ALLGATHERV_INTRA_ALGORITHM and MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE, when the user
 * sets them, go back to the host's. */
#include "lite_coll.h"

struct ring {
    struct MPIDI_LITE_coll coll;
    char *buffer;
    const MPI_Aint *counts, *places; /* elements */
    MPI_Datatype type;
    MPI_Aint extent, size; /* bytes from an element to the next, of data in one */
    MPIR_Request *receive, *next_receive, *send;
};

/* Whether there is a block that MPICH would cut, and none is longer than two of the average. */
static bool goes_whole(const MPI_Aint counts[], MPI_Aint size, int ranks)
{
    MPI_Aint longest = 0, all = 0;

    for (int i = 0; i < ranks; i++) {
        longest = MPL_MAX(longest, counts[i]);
        all += counts[i];
    }
    return longest * size > MPIDI_LITE_ALLGATHERV_PIECE && longest * ranks <= 2 * all;
}

static void *place_of(const struct ring *ring, int block)
{
    return ring->buffer + ring->places[block] * ring->extent;
}

static void start_receive(struct ring *ring, int step, MPIR_Request **request)
{
    const int block = MPIDI_LITE_coll_block(&ring->coll, step + 1);

    if (step < ring->coll.comm->local_size - 1)
        MPIDI_LITE_coll_note(&ring->coll,
                             MPIC_Irecv(place_of(ring, block), ring->counts[block], ring->type,
                                        MPIDI_LITE_coll_block(&ring->coll, 1), ring->coll.tag,
                                        ring->coll.comm, request));
}

/* After an error without data, so that the ranks behind this one hear of it. */
static void start_send(struct ring *ring, const void *from, MPI_Aint count, MPI_Datatype type)
{
    const bool failed = ring->coll.mpi_errno != MPI_SUCCESS;

    MPIDI_LITE_coll_note(
        &ring->coll,
        MPIC_Isend(from, failed ? 0 : count, type, MPIDI_LITE_coll_block(&ring->coll, -1),
                   ring->coll.tag, ring->coll.comm, &ring->send, ring->coll.attr));
}

int MPIDI_LITE_mpi_allgatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                              void *recvbuf, const MPI_Aint *recvcounts, const MPI_Aint *displs,
                              MPI_Datatype recvtype, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr)
{
    struct ring ring = {
        .coll = {.comm = comm, .attr = attr, .tag = MPIR_ALLGATHERV_TAG},
        .buffer = recvbuf,
        .counts = recvcounts,
        .places = displs,
        .type = recvtype,
    };
    const int ranks = comm->local_size, own = comm->rank;

    MPIR_Datatype_get_size_macro(recvtype, ring.size);
    MPIR_Datatype_get_extent_macro(recvtype, ring.extent);
    if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM || ranks == 1 ||
        MPIR_CVAR_ALLGATHERV_INTRA_ALGORITHM != MPIR_CVAR_ALLGATHERV_INTRA_ALGORITHM_auto ||
        !MPIDI_LITE_cuts_allgatherv || !goes_whole(recvcounts, ring.size, ranks))
        return MPIR_Allgatherv_impl(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                                    recvtype, comm, attr);
    start_receive(&ring, 0, &ring.receive);
    if (sendbuf == MPI_IN_PLACE)
        start_send(&ring, place_of(&ring, own), recvcounts[own], recvtype);
    else
        start_send(&ring, sendbuf, sendcount, sendtype);
    start_receive(&ring, 1, &ring.next_receive);
    if (sendbuf != MPI_IN_PLACE)
        MPIDI_LITE_coll_note(&ring.coll,
                             MPIR_Localcopy(sendbuf, sendcount, sendtype, place_of(&ring, own),
                                            recvcounts[own], recvtype));
    for (int step = 0; step < ranks - 1; step++) {
        const int block = MPIDI_LITE_coll_block(&ring.coll, step + 1);

        MPIDI_LITE_coll_await(&ring.coll, &ring.receive, recvcounts[block] * ring.size);
        ring.receive = ring.next_receive;
        ring.next_receive = NULL;
        MPIDI_LITE_coll_await(&ring.coll, &ring.send, -1);
        if (step + 1 == ranks - 1)
            break;
        start_send(&ring, place_of(&ring, block), recvcounts[block], recvtype);
        start_receive(&ring, step + 2, &ring.next_receive);
    }
    return ring.coll.mpi_errno;
}
