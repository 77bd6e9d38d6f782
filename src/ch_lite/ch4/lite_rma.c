/* One-sided communication: contiguous put and get go straight to the target's memory by lite_put
 * and lite_get, executed there by its handler or helper thread, whatever the target computes. All
 * else (derived datatypes with holes, memory of a GPU on either side, accumulates, atomics, dynamic
 * and shared windows, all of the synchronization) is ch4's own code over active messages, but for
 * the accumulates of lite_accumulate.c.
 *
 * Why the two may be mixed. A native operation is executed as soon as it is issued, so it must not
 * be issued before its epoch is open at the target; and it must be over at the target before the
 * target can learn of the epoch's end.
 *  - Open: ch4 never defers. MPI_Win_lock and MPI_Win_lock_all return when the locks are granted,
 *    MPI_Win_start when all posts are here, MPI_Win_fence after a barrier. (With MPI_MODE_NOCHECK
 *    the application vouches for that.) Operations outside of epochs are refused
 *    by MPIDIG_RMA_OP_CHECK_SYNC, as in ch4's own.
 *  - Over: each call that ends an epoch, or flushes, calls one of the completion hooks
 *    (lite_rma_sync.c) before it sends anything (unlock, complete) or enters the barrier (fence).
 *    The hooks wait for remote completion: a put is complete when the data is in the target's
 *    memory. Complete and unlock tell the target so by an active message, which a put or the
 *    request of a short get that left whole precedes (lite_request_is_in_order): they wait for the
 *    others only, and for the data of gets when the message has left, which saves a round trip.
 *  - Between: MPI orders operations of one epoch only where accumulates are concerned, and those
 *    are all active messages, in order per target. Put and get to a location that another operation
 *    of the epoch accesses are the application's error.
 * Local completion is that of lite_request_holds_buffer: a put that left whole with the call needs
 * no wait; for all others it is the remote one.
 *
 * Every window's memory is exposed as long as the window lives, not epoch by epoch: with passive
 * target anybody may come at any time. */
#include "lite_rma.h"

struct share {
    uint64_t key;
    MPI_Aint bytes;
    int disp_unit;
};

/* Whether an operation may come to us at all: the host serves ranks of this node by shared memory.
 * The same on all ranks. */
static bool has_remote_rank(MPIR_Comm *comm)
{
#ifdef MPIDI_CH4_DIRECT_NETMOD
    return comm->local_size > 1;
#else
    for (int i = 0; i < comm->local_size; i++)
        if (!MPIDI_rank_is_local(i, comm))
            return true;
    return false;
#endif
}

static int allgather_in_place(void *buffer, MPI_Aint bytes, MPIR_Comm *comm)
{
#if LITE_HOST_SINCE(4, 2, 0)
    return MPIR_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, bytes, MPIDI_LITE_BYTE, comm,
                          MPIDI_LITE_COLL_NO_ERROR);
#else
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    return MPIR_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, bytes, MPI_BYTE, comm,
                          &errflag);
#endif
}

/* From now on others may come with accumulates and locks at any time. */
static void expect_messages(MPIDI_LITE_win_t *lite)
{
    /* nobody would handle them before the application's next call */
    if (lite_host_work_kind() == LITE_HOST_WORK_NEVER)
        return;
    MPIDI_LITE_want_host_thread();
    lite->expects = true;
    lite_am_expect(1);
}

/* The memory is the user's again. */
static void conceal(MPIDI_LITE_win_t *lite)
{
    if (lite->expects)
        lite_am_expect(-1);
    if (lite->key != 0) {
        MPIDI_LITE_LOCK();
        lite_withdraw(lite->key);
        MPIDI_LITE_UNLOCK();
    }
    MPL_free(lite->targets);
    MPL_free(lite->posts);
    memset(lite, 0, sizeof(*lite));
}

/* Of each window, wherever its ranks are. The host calls the hooks before the barrier at the end of
 * making a window, so no post has come yet. */
static void begin_window(MPIR_Win *win)
{
    MPIDI_LITE_win_t *lite = &MPIDI_LITE_WIN(win);

    memset(lite, 0, sizeof(*lite));
    lite->posts = MPL_calloc((size_t) win->comm_ptr->local_size, sizeof(*lite->posts), MPL_MEM_RMA);
    MPIR_Assertp(lite->posts != NULL);
}

/* Collective. A rank whose memory cannot be exposed is reached by active messages. */
static int expose(MPIR_Win *win)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_LITE_win_t *lite = &MPIDI_LITE_WIN(win);
    MPIR_Comm *comm = win->comm_ptr;
    const int size = comm->local_size;
    struct share *shares = NULL;
    int *peers = NULL;

    begin_window(win);
    if (!has_remote_rank(comm))
        goto fn_exit;
    expect_messages(lite);

    shares = MPL_malloc((size_t) size * sizeof(*shares), MPL_MEM_OTHER);
    lite->targets = MPL_calloc((size_t) size, sizeof(*lite->targets), MPL_MEM_RMA);
    /* the others are in the allgather already */
    peers = MPL_malloc((size_t) size * sizeof(*peers), MPL_MEM_OTHER);
    MPIR_Assertp(shares != NULL && lite->targets != NULL && peers != NULL);
    for (int i = 0; i < size; i++)
        peers[i] = MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, i));

    if (win->size > 0 && !MPIDI_LITE_is_gpu_memory(win->base)) {
        MPIDI_LITE_LOCK();
        if (lite_expose_to(win->base, (size_t) win->size, peers, (size_t) size, &lite->key) < 0)
            lite->key = 0;
        MPIDI_LITE_UNLOCK();
    }
    memset(&shares[comm->rank], 0, sizeof(*shares));
    shares[comm->rank].key = lite->key;
    shares[comm->rank].bytes = win->size;
    shares[comm->rank].disp_unit = win->disp_unit;
    mpi_errno = allgather_in_place(shares, (MPI_Aint) sizeof(*shares), comm);
    MPIR_ERR_CHECK(mpi_errno);

    for (int i = 0; i < size; i++) {
        lite->targets[i].win = lite;
        lite->targets[i].key = i == comm->rank ? 0 : shares[i].key;
        lite->targets[i].bytes = shares[i].bytes;
        lite->targets[i].disp_unit = shares[i].disp_unit;
    }

fn_exit:
    MPL_free(peers);
    MPL_free(shares);
    return mpi_errno;
fn_fail:
    /* the host does not free a window that it has not made */
    conceal(lite);
    goto fn_exit;
}

int MPIDI_LITE_win_expose_hook(MPIR_Win *win)
{
    return expose(win);
}

/* Dynamic and shared windows: all by active messages. */
int MPIDI_LITE_win_hook(MPIR_Win *win)
{
    begin_window(win);
    if (has_remote_rank(win->comm_ptr))
        expect_messages(&MPIDI_LITE_WIN(win));
    return MPI_SUCCESS;
}

/* After the barrier of MPIDI_LITE_mpi_win_free, before which everybody's operations are complete:
 * nobody accesses the memory any more. This rank may not have heard of that yet: the barrier takes
 * other ways than what acknowledges a get's data. */
int MPIDI_LITE_win_free_hook(MPIR_Win *win)
{
    const int mpi_errno = MPIDI_LITE_WIN(win).key != 0
                              ? MPIDI_LITE_await_accesses(MPIDI_LITE_WIN(win).key)
                              : MPI_SUCCESS;

    conceal(&MPIDI_LITE_WIN(win));
    return mpi_errno;
}

void MPIDI_LITE_lock_window_map(void)
{
    MPIDI_LITE_LOCK();
}

void MPIDI_LITE_unlock_window_map(void)
{
    MPIDI_LITE_UNLOCK();
}

/* ---- put and get ---- */

/* How puts and gets of the epoch are sent. MPI_Win_complete follows those between start and
 * complete, and nothing asks for them singly: the target hears of the epoch's end behind those that
 * left whole. MPI_Win_unlock follows soon where one target is locked, unless the application
 * completes by flushes. (Between lock_all and unlock_all many programs live.) */
static unsigned flags_of_epoch(const MPIR_Win *win)
{
    switch (MPIDIG_WIN(win, sync).access_epoch_type) {
    case MPIDIG_EPOTYPE_START: return LITE_PUT_UNANSWERED | LITE_MORE_FOLLOWS;
    case MPIDIG_EPOTYPE_LOCK:
        return MPIDI_LITE_expects_flush(&MPIDI_LITE_WIN(win)) ? 0 : LITE_MORE_FOLLOWS;
    default: return 0;
    }
}

int MPIDI_LITE_check_epoch(int target_rank, MPIR_Win *win)
{
    int mpi_errno = MPI_SUCCESS;

    MPIDIG_RMA_OP_CHECK_SYNC(target_rank, win);

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

struct access {
    bool native; /* else by active messages */
    bool put;
    char *origin;
    uint64_t offset;
    size_t bytes;
    unsigned flags;
    MPIDI_LITE_target_t *target;
    int target_rank;
    int peer;
};

/* Whether this one goes straight to the memory, and how. */
static int prepare(const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                   MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                   MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype, MPIR_Win *win,
                   const MPIDI_av_entry_t *av, struct access *access)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_LITE_target_t *targets = MPIDI_LITE_WIN(win).targets;
    int origin_contig, target_contig;
    size_t origin_bytes, target_bytes;
    MPI_Aint origin_true_lb, target_true_lb;

    access->native = false;
    if (targets == NULL || targets[target_rank].key == 0)
        goto fn_exit;

    MPIDI_Datatype_check_origin_target_contig_size_lb(
        origin_datatype, target_datatype, origin_count, target_count, origin_contig, target_contig,
        origin_bytes, target_bytes, origin_true_lb, target_true_lb);
    if (!origin_contig || !target_contig || origin_bytes == 0 || origin_bytes != target_bytes)
        goto fn_exit;
    access->origin = MPIR_get_contig_ptr(origin_addr, origin_true_lb);
    if (MPIDI_LITE_is_gpu_memory(access->origin))
        goto fn_exit;

    mpi_errno = MPIDI_LITE_place(&targets[target_rank], target_disp, target_true_lb, target_bytes,
                                 &access->offset);
    MPIR_ERR_CHECK(mpi_errno);

    access->native = true;
    access->bytes = origin_bytes;
    access->flags = flags_of_epoch(win);
    access->target = &targets[target_rank];
    access->target_rank = target_rank;
    access->peer = MPIDI_LITE_peer(av);

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

/* With `request`: of a request-based operation, pending or complete on success. */
static int issue(const struct access *a, MPIR_Win *win, MPIR_Request **request)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *req = NULL;
    lite_request *lite = NULL;
    int code;

    MPIDI_LITE_LOCK();

    mpi_errno = MPIDI_LITE_check_epoch(a->target_rank, win);
    MPIR_ERR_CHECK(mpi_errno);
    void *cookie = MPIDI_LITE_target_cookie(a->target);
    if (request != NULL) {
        /* two references: the user's, and ours until it completes */
        req = MPIR_Request_create_from_pool(MPIR_REQUEST_KIND__RMA, MPIDI_LITE_VCI, 2);
        MPIR_ERR_CHKANDSTMT(req == NULL, mpi_errno, MPIX_ERR_NOREQ, goto fn_fail, "**nomemreq");
        req->u.rma.win = win;
        MPIDI_LITE_REQUEST(req).target = a->target;
        cookie = MPIDI_LITE_rma_request_cookie(req);
    }
    if (a->put)
        code = lite_put(a->peer, a->target->key, a->offset, a->origin, a->bytes, a->flags, cookie,
                        &lite);
    else
        code = lite_get(a->peer, a->target->key, a->offset, a->origin, a->bytes,
                        a->flags & LITE_MORE_FOLLOWS, cookie, &lite);
    if (unlikely(code < 0)) {
        mpi_errno = MPIDI_LITE_error(code, a->peer, __func__, __LINE__);
        if (req != NULL) {
            MPIDI_CH4_REQUEST_FREE(req);
            MPIDI_CH4_REQUEST_FREE(req);
        }
        goto fn_fail;
    }
    MPIR_Assert(code == LITE_PENDING); /* to oneself goes another way */

    MPIDI_LITE_begin_pending(a->target, lite);
    if (request != NULL)
        *request = req;
    else
        mpi_errno = MPIDI_LITE_drain_some(win);

fn_exit:
    MPIDI_LITE_UNLOCK();
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

/* Puts or gets natively if this one can be; `*native` tells. `request` as with issue(). */
static int try_native(bool put, const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                      MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                      MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                      MPIR_Win *win, const MPIDI_av_entry_t *av, MPIR_Request **request,
                      bool *native)
{
    int mpi_errno = MPI_SUCCESS;
    struct access access = {.put = put};

    mpi_errno = prepare(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                        target_count, target_datatype, win, av, &access);
    if (mpi_errno == MPI_SUCCESS && access.native)
        mpi_errno = issue(&access, win, request);
    *native = access.native;
    return mpi_errno;
}

int MPIDI_LITE_mpi_put(const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                       MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                       MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                       MPIR_Win *win, MPIDI_av_entry_t *addr, MPIDI_winattr_t winattr)
{
    bool native;
    int mpi_errno;

    MPIR_FUNC_ENTER;
    mpi_errno = try_native(true, origin_addr, origin_count, origin_datatype, target_rank,
                           target_disp, target_count, target_datatype, win, addr, NULL, &native);
    if (mpi_errno == MPI_SUCCESS && !native)
        mpi_errno = MPIDIG_mpi_put(origin_addr, origin_count, origin_datatype, target_rank,
                                   target_disp, target_count, target_datatype, win);
    MPIR_FUNC_EXIT;
    return mpi_errno;
}

int MPIDI_LITE_mpi_get(void *origin_addr, MPIDI_LITE_rma_count origin_count,
                       MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                       MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                       MPIR_Win *win, MPIDI_av_entry_t *addr, MPIDI_winattr_t winattr)
{
    bool native;
    int mpi_errno;

    MPIR_FUNC_ENTER;
    mpi_errno = try_native(false, origin_addr, origin_count, origin_datatype, target_rank,
                           target_disp, target_count, target_datatype, win, addr, NULL, &native);
    if (mpi_errno == MPI_SUCCESS && !native)
        mpi_errno = MPIDIG_mpi_get(origin_addr, origin_count, origin_datatype, target_rank,
                                   target_disp, target_count, target_datatype, win);
    MPIR_FUNC_EXIT;
    return mpi_errno;
}

/* A request of ours completes when the put is complete at the target, later than MPI demands (local
 * completion). */
int MPIDI_LITE_mpi_rput(const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                        MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                        MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                        MPIR_Win *win, MPIDI_av_entry_t *addr, MPIDI_winattr_t winattr,
                        MPIR_Request **request)
{
    bool native;
    int mpi_errno;

    MPIR_FUNC_ENTER;
    mpi_errno = try_native(true, origin_addr, origin_count, origin_datatype, target_rank,
                           target_disp, target_count, target_datatype, win, addr, request, &native);
    if (mpi_errno == MPI_SUCCESS && !native) {
        mpi_errno = MPIDIG_mpi_rput(origin_addr, origin_count, origin_datatype, target_rank,
                                    target_disp, target_count, target_datatype, win, request);
        if (mpi_errno == MPI_SUCCESS)
            MPIDI_LITE_expect_answer(*request, addr);
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
}

int MPIDI_LITE_mpi_rget(void *origin_addr, MPIDI_LITE_rma_count origin_count,
                        MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                        MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                        MPIR_Win *win, MPIDI_av_entry_t *addr, MPIDI_winattr_t winattr,
                        MPIR_Request **request)
{
    bool native;
    int mpi_errno;

    MPIR_FUNC_ENTER;
    mpi_errno = try_native(false, origin_addr, origin_count, origin_datatype, target_rank,
                           target_disp, target_count, target_datatype, win, addr, request, &native);
    if (mpi_errno == MPI_SUCCESS && !native) {
        mpi_errno = MPIDIG_mpi_rget(origin_addr, origin_count, origin_datatype, target_rank,
                                    target_disp, target_count, target_datatype, win, request);
        if (mpi_errno == MPI_SUCCESS)
            MPIDI_LITE_expect_answer(*request, addr);
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
}
