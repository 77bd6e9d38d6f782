/* MPI_Scan and MPI_Exscan from rank to rank: each receives what the ranks before it have combined,
 * combines its own data with that, and sends it on, piece by piece, so that all are busy at the
 * same time. MPICH exchanges with everybody at a distance of a power of two: that takes fewer steps
 * with many ranks and short data, and carries the data log2(ranks) times in both directions.
 * Between two ranks the chain is one message, where MPICH needs one each way.
 *
 * MPIR_CVAR_SCAN_INTRA_ALGORITHM and MPIR_CVAR_EXSCAN_INTRA_ALGORITHM, when the user sets them, go
 * back to the host's. */
#include "lite_impl.h"

#define PIECE_BYTES (256 * 1024)

struct chain {
    MPIR_Comm *comm;
    MPIDI_LITE_coll_attr attr;
    MPI_Datatype type;
    MPI_Op op;
    int previous, next;    /* -1: none */
    MPI_Aint count, piece; /* elements: all, in a piece */
    MPI_Aint extent;       /* bytes from an element to the next */
    void *spare[2];        /* room for a piece each, where it is needed */
    void *allocated;
    MPIR_Request *receive, *send;
    int tag, mpi_errno;
};

/* With more than two ranks: when there are pieces for all. */
static bool is_chain(const MPIR_Comm *comm, MPI_Aint count, MPI_Datatype type)
{
    MPI_Aint size;

    MPIR_Datatype_get_size_macro(type, size);
    return comm->local_size == 2 ||
           (comm->local_size > 2 && count * size >= comm->local_size * PIECE_BYTES);
}

static void chain_init(struct chain *chain, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                       MPIR_Comm *comm, int tag, MPIDI_LITE_coll_attr attr)
{
    MPI_Aint size;

    memset(chain, 0, sizeof *chain);
    chain->comm = comm;
    chain->attr = attr;
    chain->type = type;
    chain->op = op;
    chain->tag = tag;
    chain->previous = comm->rank - 1;
    chain->next = comm->rank + 1 < comm->local_size ? comm->rank + 1 : -1;
    chain->count = count;
    MPIR_Datatype_get_extent_macro(type, chain->extent);
    MPIR_Datatype_get_size_macro(type, size); /* other than the extent the same on all ranks */
    chain->piece = size > 0 ? MPL_MAX(PIECE_BYTES / size, 1) : count;
}

static int allocate_spares(struct chain *chain)
{
    int mpi_errno = MPI_SUCCESS;
    MPI_Aint true_lb, true_extent, bytes;

    MPIR_Type_get_true_extent_impl(chain->type, &true_lb, &true_extent);
    bytes = MPL_MIN(chain->piece, chain->count) * MPL_MAX(chain->extent, true_extent);
    chain->allocated = MPL_malloc((size_t) (2 * bytes), MPL_MEM_BUFFER);
    MPIR_ERR_CHKANDJUMP(chain->allocated == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    for (int i = 0; i < 2; i++)
        chain->spare[i] = (char *) chain->allocated + i * bytes - true_lb;

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

static void *at(const struct chain *chain, const void *buffer, MPI_Aint element)
{
    return (char *) buffer + element * chain->extent;
}

static MPI_Aint elements_from(const struct chain *chain, MPI_Aint first)
{
    return MPL_MIN(chain->piece, chain->count - first);
}

/* After an error the chain goes on, and the messages tell the ranks behind this one. */
static void note(struct chain *chain, int mpi_errno)
{
    if (likely(mpi_errno == MPI_SUCCESS))
        return;
    if (chain->mpi_errno == MPI_SUCCESS)
        MPIDI_LITE_COLL_ERRORS(chain->attr) |= MPIR_ERR_GET_CLASS(mpi_errno) == MPIX_ERR_PROC_FAILED
                                                   ? MPIR_ERR_PROC_FAILED
                                                   : MPIR_ERR_OTHER;
    MPIR_ERR_ADD(chain->mpi_errno, mpi_errno);
}

static void await(struct chain *chain, MPIR_Request **request)
{
    int mpi_errno;

    if (*request == NULL)
        return;
    mpi_errno = MPIDI_LITE_COLL_WAIT(*request, chain->attr);
    if (mpi_errno == MPI_SUCCESS)
        mpi_errno = (*request)->status.MPI_ERROR;
    if (mpi_errno == MPI_SUCCESS && MPIDI_LITE_COLL_WAS_TOLD(chain->attr))
        MPIR_ERR_SET(mpi_errno, MPI_ERR_OTHER, "**coll_fail");
    MPIR_Request_free(*request);
    *request = NULL;
    note(chain, mpi_errno);
}

static void start_receive(struct chain *chain, void *into, MPI_Aint elements)
{
    note(chain, MPIC_Irecv(into, elements, chain->type, chain->previous, chain->tag, chain->comm,
                           &chain->receive));
}

/* One at a time is under way. */
static void pass_on(struct chain *chain, const void *from, MPI_Aint elements)
{
    if (chain->next < 0)
        return;
    await(chain, &chain->send);
    note(chain, MPIC_Isend(from, elements, chain->type, chain->next, chain->tag, chain->comm,
                           &chain->send, chain->attr));
}

static void copy(struct chain *chain, const void *from, void *into, MPI_Aint elements)
{
    note(chain, MPIR_Localcopy(from, elements, chain->type, into, elements, chain->type));
}

/* into := before (op) into */
static void combine(struct chain *chain, const void *before, void *into, MPI_Aint elements)
{
    note(chain, MPIR_Reduce_local(before, into, elements, chain->type, chain->op));
}

static int chain_end(struct chain *chain)
{
    await(chain, &chain->send);
    MPL_free(chain->allocated);
    return chain->mpi_errno;
}

int MPIDI_LITE_mpi_scan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
                        MPI_Op op, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr)
{
    const void *const own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    /* What comes may go to its place at once, and the own data be combined with it there. */
    const bool in_result = own != recvbuf && MPIR_Op_is_commutative(op);
    int mpi_errno = MPI_SUCCESS, turn = 0;
    struct chain chain;

    if (MPIR_CVAR_SCAN_INTRA_ALGORITHM != MPIR_CVAR_SCAN_INTRA_ALGORITHM_auto ||
        !is_chain(comm, count, type))
        return MPIR_Scan_impl(sendbuf, recvbuf, count, type, op, comm, attr);
    chain_init(&chain, count, type, op, comm, MPIR_SCAN_TAG, attr);
    if (chain.previous >= 0 && !in_result) {
        mpi_errno = allocate_spares(&chain);
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (chain.previous >= 0)
        start_receive(&chain, in_result ? recvbuf : chain.spare[0], elements_from(&chain, 0));
    for (MPI_Aint first = 0; first < count; first += chain.piece, turn = 1 - turn) {
        const MPI_Aint elements = elements_from(&chain, first), behind = first + elements;
        void *const result = at(&chain, recvbuf, first);
        const void *const mine = at(&chain, own, first);

        if (chain.previous < 0) {
            pass_on(&chain, mine, elements);
            if (own != recvbuf)
                copy(&chain, mine, result, elements);
            continue;
        }
        await(&chain, &chain.receive);
        if (behind < count)
            start_receive(&chain, in_result ? at(&chain, recvbuf, behind) : chain.spare[1 - turn],
                          elements_from(&chain, behind));
        if (in_result) {
            combine(&chain, mine, result, elements);
        } else {
            if (own != recvbuf)
                copy(&chain, mine, result, elements);
            combine(&chain, chain.spare[turn], result, elements);
        }
        pass_on(&chain, result, elements);
    }
    mpi_errno = chain_end(&chain);

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

int MPIDI_LITE_mpi_exscan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
                          MPI_Op op, MPIR_Comm *comm, MPIDI_LITE_coll_attr attr)
{
    const void *const own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    int mpi_errno = MPI_SUCCESS, turn = 0;
    struct chain chain;

    if (MPIR_CVAR_EXSCAN_INTRA_ALGORITHM != MPIR_CVAR_EXSCAN_INTRA_ALGORITHM_auto ||
        !is_chain(comm, count, type))
        return MPIR_Exscan_impl(sendbuf, recvbuf, count, type, op, comm, attr);
    chain_init(&chain, count, type, op, comm, MPIR_EXSCAN_TAG, attr);
    /* The own data of a piece moves to a spare, and there it is combined for the next rank. */
    const bool in_middle = chain.previous >= 0 && chain.next >= 0;
    if (in_middle) {
        mpi_errno = allocate_spares(&chain);
        MPIR_ERR_CHECK(mpi_errno);
        copy(&chain, own, chain.spare[0], elements_from(&chain, 0));
    }
    if (chain.previous >= 0)
        start_receive(&chain, recvbuf, elements_from(&chain, 0));
    for (MPI_Aint first = 0; first < count; first += chain.piece, turn = 1 - turn) {
        const MPI_Aint elements = elements_from(&chain, first), behind = first + elements;

        if (chain.previous < 0) {
            pass_on(&chain, at(&chain, own, first), elements);
            continue;
        }
        await(&chain, &chain.receive);
        if (behind < count) {
            if (in_middle) {
                await(&chain, &chain.send); /* of the other spare */
                copy(&chain, at(&chain, own, behind), chain.spare[1 - turn],
                     elements_from(&chain, behind));
            }
            start_receive(&chain, at(&chain, recvbuf, behind), elements_from(&chain, behind));
        }
        if (in_middle) {
            combine(&chain, at(&chain, recvbuf, first), chain.spare[turn], elements);
            pass_on(&chain, chain.spare[turn], elements);
        }
    }
    mpi_errno = chain_end(&chain);

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}
