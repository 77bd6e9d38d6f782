/* MPI_Scan, MPI_Exscan, MPI_Reduce and MPI_Allreduce of long data from rank to rank: each receives
 * what the ranks before it have combined, combines its own data with that, and sends it on, piece
 * by piece, so that all are busy at the same time, and a piece is in the cache when it is combined.
 * MPICH's scan exchanges with everybody at a distance of a power of two: that takes fewer steps
 * with many ranks and short data, and carries the data log2(ranks) times in both directions.
 * Between two ranks a scan is one message here, where MPICH needs one each way. MPICH's reductions
 * combine when all data has come, or carry most of it twice.
 *
 * MPIR_CVAR_SCAN_INTRA_ALGORITHM, MPIR_CVAR_EXSCAN_INTRA_ALGORITHM,
 * MPIR_CVAR_REDUCE_INTRA_ALGORITHM and MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM, when the user sets
 * them, go back to the host's. */
#include "lite_coll.h"

#define PIECE_BYTES (256 * 1024)
#define ALIGNMENT 64
#define RING_RANKS_MAX 3

struct chain {
    struct MPIDI_LITE_coll coll;
    MPI_Datatype type;
    MPI_Op op;
    int previous, next;    /* -1: none */
    MPI_Aint count, piece; /* elements: all, in a piece */
    MPI_Aint extent, size; /* bytes from an element to the next, of data in one */
    MPI_Aint expected;     /* bytes of the receive under way */
    bool placed;           /* what comes goes to place, which may be MPI_BOTTOM; otherwise */
    void *place;           /* to the spares by turns */
    void *spare[2];        /* room for a piece each, where it is needed */
    void *allocated;
    bool roomless; /* no memory for the spares */
    MPIR_Request *receive, *send;
};

/* There are pieces for all ranks. */
static bool is_long(const MPIR_Comm *comm, MPI_Aint count, MPI_Datatype type)
{
    MPI_Aint size;

    MPIR_Datatype_get_size_macro(type, size);
    return comm->local_size > 1 && count * size >= (MPI_Aint) comm->local_size * PIECE_BYTES;
}

static bool is_scan_chain(const MPIR_Comm *comm, MPI_Aint count, MPI_Datatype type)
{
    return (comm->local_size == 2 && count > 0) || is_long(comm, count, type);
}

/* From rank to rank, `first` to the one before it. */
static void chain_init(struct chain *chain, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                       MPIR_Comm *comm, int first, int tag, MPIDI_LITE_coll_attr attr)
{
    const int size_of_comm = comm->local_size, last = (first + size_of_comm - 1) % size_of_comm;

    memset(chain, 0, sizeof *chain);
    chain->coll.comm = comm;
    chain->coll.attr = attr;
    chain->type = type;
    chain->op = op;
    chain->coll.tag = tag;
    chain->previous = comm->rank == first ? -1 : (comm->rank + size_of_comm - 1) % size_of_comm;
    chain->next = comm->rank == last ? -1 : (comm->rank + 1) % size_of_comm;
    chain->count = count;
    MPIR_Datatype_get_extent_macro(type, chain->extent);
    MPIR_Datatype_get_size_macro(type, chain->size); /* the same on all ranks, other than that */
    chain->piece = chain->size > 0 ? MPL_MAX(PIECE_BYTES / chain->size, 1) : count;
}

static void *at(const struct chain *chain, const void *buffer, MPI_Aint element)
{
    return (char *) buffer + element * chain->extent;
}

static MPI_Aint elements_from(const struct chain *chain, MPI_Aint first)
{
    return MPL_MIN(chain->piece, chain->count - first);
}

/* After an error messages without data follow: that is how the ranks behind this one hear of it: of
 * the hosts that were looked at, 4.0 marks the tag for that, 4.3 and 5.0 do not. */
static void note(struct chain *chain, int mpi_errno)
{
    MPIDI_LITE_coll_note(&chain->coll, mpi_errno);
}

/* Without room for them this rank takes part without data, as after any other error. */
static void allocate_spares(struct chain *chain)
{
    MPI_Aint true_lb, true_extent, bytes;
    int mpi_errno = MPI_SUCCESS;

    MPIR_Type_get_true_extent_impl(chain->type, &true_lb, &true_extent);
    bytes = MPL_MIN(chain->piece, chain->count) * MPL_MAX(chain->extent, true_extent);
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; /* both as malloc aligns */
    chain->allocated = MPL_malloc((size_t) (2 * bytes), MPL_MEM_BUFFER);
    chain->roomless = chain->allocated == NULL;
    if (chain->roomless)
        MPIR_ERR_SET(mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    note(chain, mpi_errno);
    for (int i = 0; i < 2 && !chain->roomless; i++)
        chain->spare[i] = (char *) chain->allocated + i * bytes - true_lb;
}

static void await(struct chain *chain, MPIR_Request **request)
{
    MPIDI_LITE_coll_await(&chain->coll, request, chain->expected);
}

/* By turns. */
static void *spare_of(const struct chain *chain, MPI_Aint first)
{
    return chain->spare[first / chain->piece % 2];
}

static void receive_into(struct chain *chain, void *into, MPI_Aint elements)
{
    chain->expected = elements * chain->size;
    note(chain, MPIC_Irecv(into, chain->roomless ? 0 : elements, chain->type, chain->previous,
                           chain->coll.tag, chain->coll.comm, &chain->receive));
}

/* The piece that begins there. Behind the last one there is none, and nothing comes to the first
 * rank. */
static void start_receive(struct chain *chain, MPI_Aint first)
{
    if (chain->previous >= 0 && first < chain->count)
        receive_into(chain, chain->placed ? at(chain, chain->place, first) : spare_of(chain, first),
                     elements_from(chain, first));
}

/* One at a time is under way. */
static void pass_on(struct chain *chain, const void *from, MPI_Aint elements)
{
    if (chain->next < 0)
        return;
    await(chain, &chain->send);
    if (chain->coll.mpi_errno != MPI_SUCCESS)
        elements = 0;
    note(chain, MPIC_Isend(from, elements, chain->type, chain->next, chain->coll.tag,
                           chain->coll.comm, &chain->send, chain->coll.attr));
}

static void copy(struct chain *chain, const void *from, void *into, MPI_Aint elements)
{
    if (chain->coll.mpi_errno == MPI_SUCCESS)
        note(chain, MPIR_Localcopy(from, elements, chain->type, into, elements, chain->type));
}

/* into := before (op) into */
static void combine(struct chain *chain, const void *before, void *into, MPI_Aint elements)
{
    if (chain->coll.mpi_errno == MPI_SUCCESS)
        note(chain, MPIR_Reduce_local(before, into, elements, chain->type, chain->op));
}

static int chain_end(struct chain *chain)
{
    await(chain, &chain->send);
    MPL_free(chain->allocated);
    return chain->coll.mpi_errno;
}

/* The first rank's result of MPI_Scan is its own data. The next one waits for what is sent: it is
 * copied while a send is under way, the rest at the end. Returns where it has come to. */
static MPI_Aint copy_meanwhile(struct chain *chain, const void *own, void *result, MPI_Aint first,
                               MPI_Aint sent)
{
    const bool at_end = sent >= chain->count;

    if (own == result)
        return sent;
    while (first < sent && (at_end || (chain->send && !MPIR_Request_is_complete(chain->send)))) {
        const MPI_Aint elements = elements_from(chain, first);

        copy(chain, at(chain, own, first), at(chain, result, first), elements);
        note(chain, MPIDI_LITE_PROGRESS_TEST());
        first += elements;
    }
    return first;
}

int MPIDI_LITE_mpi_scan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
                        MPI_Op op, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr)
{
    const void *const own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    struct chain chain;

    if (MPIR_CVAR_SCAN_INTRA_ALGORITHM != MPIR_CVAR_SCAN_INTRA_ALGORITHM_auto ||
        !is_scan_chain(comm, count, type))
        return MPIR_Scan_impl(sendbuf, recvbuf, count, type, op, comm, attr);
    chain_init(&chain, count, type, op, comm, 0, MPIR_SCAN_TAG, attr);
    /* What comes may go to the result at once, and the own data be combined with it there. */
    if (own != recvbuf && MPIR_Op_is_commutative(op))
        chain.placed = true, chain.place = recvbuf;
    else if (chain.previous >= 0)
        allocate_spares(&chain);
    start_receive(&chain, 0);
    for (MPI_Aint first = 0, copied = 0; first < count; first += chain.piece) {
        const MPI_Aint elements = elements_from(&chain, first);
        void *const result = at(&chain, recvbuf, first);
        const void *const mine = at(&chain, own, first);

        if (chain.previous < 0) {
            pass_on(&chain, mine, elements);
            copied = copy_meanwhile(&chain, own, recvbuf, copied, first + elements);
            continue;
        }
        await(&chain, &chain.receive);
        start_receive(&chain, first + elements);
        if (chain.placed) {
            combine(&chain, mine, result, elements);
        } else {
            if (own != recvbuf)
                copy(&chain, mine, result, elements);
            combine(&chain, spare_of(&chain, first), result, elements);
        }
        pass_on(&chain, result, elements);
    }
    return chain_end(&chain);
}

int MPIDI_LITE_mpi_exscan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
                          MPI_Op op, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr)
{
    const void *const own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    struct chain chain;

    if (MPIR_CVAR_EXSCAN_INTRA_ALGORITHM != MPIR_CVAR_EXSCAN_INTRA_ALGORITHM_auto ||
        !is_scan_chain(comm, count, type))
        return MPIR_Exscan_impl(sendbuf, recvbuf, count, type, op, comm, attr);
    chain_init(&chain, count, type, op, comm, 0, MPIR_EXSCAN_TAG, attr);
    chain.placed = true, chain.place = recvbuf;
    /* The own data of a piece moves to a spare, and there it is combined for the next rank. */
    const bool in_middle = chain.previous >= 0 && chain.next >= 0;
    if (in_middle) {
        allocate_spares(&chain);
        copy(&chain, own, chain.spare[0], elements_from(&chain, 0));
    }
    start_receive(&chain, 0);
    for (MPI_Aint first = 0; first < count; first += chain.piece) {
        const MPI_Aint elements = elements_from(&chain, first), behind = first + elements;

        if (chain.previous < 0) {
            pass_on(&chain, at(&chain, own, first), elements);
            continue;
        }
        await(&chain, &chain.receive);
        if (in_middle && behind < count) {
            await(&chain, &chain.send); /* of the other spare */
            copy(&chain, at(&chain, own, behind), spare_of(&chain, behind),
                 elements_from(&chain, behind));
        }
        start_receive(&chain, behind);
        if (in_middle) {
            combine(&chain, at(&chain, recvbuf, first), spare_of(&chain, first), elements);
            pass_on(&chain, spare_of(&chain, first), elements);
        }
    }
    return chain_end(&chain);
}

/* The chain ends at the root. The order of the ranks is another one than the operation's: it has to
 * commute. */
int MPIDI_LITE_mpi_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
                          MPI_Op op, int root, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr)
{
    const void *const own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    struct chain chain;

    if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM ||
        MPIR_CVAR_REDUCE_INTRA_ALGORITHM != MPIR_CVAR_REDUCE_INTRA_ALGORITHM_auto ||
        !is_long(comm, count, type) || !MPIR_Op_is_commutative(op))
        return MPIR_Reduce_impl(sendbuf, recvbuf, count, type, op, root, comm, attr);
    chain_init(&chain, count, type, op, comm, (root + 1) % comm->local_size, MPIR_REDUCE_TAG, attr);
    if (chain.next < 0 && own != recvbuf)
        chain.placed = true, chain.place = recvbuf;
    else if (chain.previous >= 0)
        allocate_spares(&chain);
    start_receive(&chain, 0);
    for (MPI_Aint first = 0; first < count; first += chain.piece) {
        const MPI_Aint elements = elements_from(&chain, first);
        void *const mine = at(&chain, own, first);

        if (chain.previous < 0) {
            pass_on(&chain, mine, elements);
            continue;
        }
        await(&chain, &chain.receive);
        await(&chain, &chain.send); /* of the other spare */
        start_receive(&chain, first + elements);
        if (chain.placed) {
            combine(&chain, mine, at(&chain, recvbuf, first), elements);
        } else if (chain.next < 0) {
            combine(&chain, spare_of(&chain, first), mine, elements);
        } else {
            combine(&chain, mine, spare_of(&chain, first), elements);
            pass_on(&chain, spare_of(&chain, first), elements);
        }
    }
    return chain_end(&chain);
}

/* ---- MPI_Allreduce: the chain closed to a ring ----
 *
 * The data is cut into a block for each rank. Each block goes round: once, from the rank of its
 * number on, to be combined, and once more, to tell the result. In step s a rank sends block
 * rank - s, and what comes is block rank - s - 1, which it sends in the next step. Each byte of the
 * result is made by one rank, so all have the same. Between two and three ranks, where that was
 * faster than MPICH's halves. */

static MPI_Aint block_begin(const struct chain *chain, int block)
{
    const MPI_Aint ranks = chain->coll.comm->local_size;

    return chain->count / ranks * block + MPL_MIN(block, chain->count % ranks);
}

/* Pieces of a block, one after the other. */
struct pieces {
    MPI_Aint first, end;
};

static struct pieces pieces_of(const struct chain *chain, int step)
{
    const int block = MPIDI_LITE_coll_block(&chain->coll, step);

    return (struct pieces){block_begin(chain, block), block_begin(chain, block + 1)};
}

static MPI_Aint elements_of(const struct chain *chain, const struct pieces *pieces)
{
    return MPL_MIN(chain->piece, pieces->end - pieces->first);
}

/* The first of them. To a spare what has yet to be combined with data that is in the result's
 * place, by turns; all else to the result. Two ranks may still have a send of that part under way:
 * the peer has combined all of it before it sends the result. */
static void receive_piece(struct chain *chain, void *recvbuf, const struct pieces *in,
                          bool combines, int turn)
{
    receive_into(chain,
                 combines && chain->allocated ? chain->spare[turn] : at(chain, recvbuf, in->first),
                 elements_of(chain, in));
}

int MPIDI_LITE_mpi_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
                             MPI_Op op, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr)
{
    const void *const own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    const int ranks = comm->local_size, combined = ranks - 1, told = 2 * combined; /* steps until */
    struct chain chain;
    struct pieces in;
    int turn = 0; /* of the spares */

    if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM ||
        MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM != MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM_auto ||
        ranks > RING_RANKS_MAX || !is_long(comm, count, type) || count < ranks ||
        !MPIR_Op_is_commutative(op))
        return MPIR_Allreduce_impl(sendbuf, recvbuf, count, type, op, comm, attr);
    chain_init(&chain, count, type, op, comm, 0, MPIR_ALLREDUCE_TAG, attr);
    chain.previous = MPIDI_LITE_coll_block(&chain.coll, 1);
    chain.next = MPIDI_LITE_coll_block(&chain.coll, -1);
    if (own == recvbuf)
        allocate_spares(&chain);
    in = pieces_of(&chain, 1);
    receive_piece(&chain, recvbuf, &in, true, turn);
    for (int step = 0; step < told; step++) {
        struct pieces out = pieces_of(&chain, step);

        in = pieces_of(&chain, step + 1);
        while (out.first < out.end || in.first < in.end) {
            if (out.first < out.end)
                pass_on(&chain, at(&chain, step == 0 ? own : recvbuf, out.first),
                        elements_of(&chain, &out));
            out.first += chain.piece;
            if (in.first >= in.end)
                continue;
            const struct pieces now = in;
            const void *const other =
                chain.allocated ? chain.spare[turn] : at(&chain, own, now.first);

            await(&chain, &chain.receive);
            in.first += chain.piece;
            turn = !turn;
            if (in.first < in.end) {
                receive_piece(&chain, recvbuf, &in, step < combined, turn);
            } else if (step + 1 < told) {
                const struct pieces next = pieces_of(&chain, step + 2);
                receive_piece(&chain, recvbuf, &next, step + 1 < combined, turn);
            }
            if (step < combined)
                combine(&chain, other, at(&chain, recvbuf, now.first), elements_of(&chain, &now));
        }
    }
    return chain_end(&chain);
}
