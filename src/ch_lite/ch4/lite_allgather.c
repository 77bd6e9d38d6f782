/* MPI_Allgatherv of long blocks. Of about one length: each goes round whole. MPICH cuts what goes
 * round into pieces of one length, so that a block that is much longer than the others does not
 * hold up all of them, and waits for every piece. It cuts by elements and the extent of the receive
 * type, which may be another one on each rank: what it might cut is given to it as bytes.
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

static void *place_of(const struct ring *ring, int block)
{
    return ring->buffer + ring->places[block] * ring->extent;
}

/* Whether none is longer than two of the average. Or all together are more than the host can count
 * in bytes. */
static bool goes_whole(MPI_Aint longest, MPI_Aint all, MPI_Aint size, int ranks)
{
#if LITE_HOST_SINCE(4, 2, 1)
    const bool can_count = true;
#else
    const bool can_count = all <= INT_MAX / size;
#endif
    return longest * ranks <= 2 * all || !can_count;
}

/* By the host, whose blocks are `all` bytes; those of a type that is not just that lie packed for
 * it. */
static int gather_bytes(const struct ring *ring, const void *sendbuf, MPI_Aint sendcount,
                        MPI_Datatype sendtype, MPI_Aint all)
{
    const int ranks = ring->coll.comm->local_size, own = ring->coll.comm->rank;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    MPI_Aint *bytes = MPL_malloc(2 * (size_t) ranks * sizeof(MPI_Aint), MPL_MEM_COLL);
    MPI_Aint *const places = bytes + ranks;
    char *packed = NULL, *blocks = ring->buffer;
    MPIR_Datatype *type;
    MPI_Aint lb, size;
    int contiguous, mpi_errno;

    MPIDI_Datatype_get_info(1, ring->type, contiguous, size, type, lb);
    (void) type;
    if (!contiguous || lb != 0 || size != ring->extent)
        blocks = packed = MPL_malloc((size_t) all, MPL_MEM_BUFFER);
    if (bytes == NULL || blocks == NULL) { /* right where an element has as many bytes everywhere */
        mpi_errno =
            MPIR_Allgatherv_impl(sendbuf, sendcount, sendtype, ring->buffer, ring->counts,
                                 ring->places, ring->type, ring->coll.comm, ring->coll.attr);
        goto fn_exit;
    }
    for (MPI_Aint i = 0, next = 0; i < ranks; next += bytes[i++]) {
        bytes[i] = ring->counts[i] * size;
        places[i] = packed != NULL ? next : ring->places[i] * size;
    }
    mpi_errno = MPI_SUCCESS;
    if (!in_place)
        mpi_errno = MPIR_Localcopy(sendbuf, sendcount, sendtype, blocks + places[own], bytes[own],
                                   MPIDI_LITE_BYTE);
    else if (packed != NULL)
        mpi_errno = MPIR_Localcopy(place_of(ring, own), ring->counts[own], ring->type,
                                   blocks + places[own], bytes[own], MPIDI_LITE_BYTE);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIR_Allgatherv_impl(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, blocks, bytes, places,
                                     MPIDI_LITE_BYTE, ring->coll.comm, ring->coll.attr);
    MPIR_ERR_CHECK(mpi_errno);
    for (int i = 0; i < ranks && packed != NULL; i++) {
        mpi_errno = MPIR_Localcopy(blocks + places[i], bytes[i], MPIDI_LITE_BYTE, place_of(ring, i),
                                   ring->counts[i], ring->type);
        MPIR_ERR_CHECK(mpi_errno);
    }

fn_exit:
    MPL_free(packed);
    MPL_free(bytes);
    return mpi_errno;
fn_fail:
    goto fn_exit;
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
    MPI_Aint longest = 0, all = 0;

    MPIR_Datatype_get_size_macro(recvtype, ring.size);
    MPIR_Datatype_get_extent_macro(recvtype, ring.extent);
    for (int i = 0; i < ranks && comm->comm_kind == MPIR_COMM_KIND__INTRACOMM; i++) {
        longest = MPL_MAX(longest, recvcounts[i]);
        all += recvcounts[i];
    }
    if (ring.size == 0 ||
        longest * MPL_MAX(ring.size, ring.extent) <= MPIDI_LITE_ALLGATHERV_PIECE || ranks == 1 ||
        MPIR_CVAR_ALLGATHERV_INTRA_ALGORITHM != MPIR_CVAR_ALLGATHERV_INTRA_ALGORITHM_auto ||
        !MPIDI_LITE_cuts_allgatherv)
        return MPIR_Allgatherv_impl(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                                    recvtype, comm, attr);
    if (longest * ring.size <= MPIDI_LITE_ALLGATHERV_PIECE ||
        !goes_whole(longest, all, ring.size, ranks))
        return gather_bytes(&ring, sendbuf, sendcount, sendtype, all * ring.size);
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
