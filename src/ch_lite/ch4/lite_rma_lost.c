/* One-sided communication with a rank that is lost: calls that wait for what another rank has to
 * say (that a lock is had, that an accumulate is done, a post), and requests that its answer would
 * complete, fail, where they would wait for ever. The device fails its own requests; these answers
 * are active messages of the host's, which it knows nothing of. */
#include "lite_rma.h"

/* What this thread waits for: answers of one rank of a window, or of any. */
static __thread struct {
    const MPIR_Win *win;
    int target;
} awaited;

enum { ANY = -1 };

static void await(const MPIR_Win *win, int target)
{
    awaited.win = win;
    awaited.target = target;
}

void MPIDI_LITE_await_ranks(const MPIR_Win *win)
{
    await(win, ANY);
}

void MPIDI_LITE_await_nobody(void)
{
    awaited.win = NULL;
}

/* ---- requests that only an answer of the target completes ---- */

/* Each has a reference from here until it is complete. VCI lock held, for all of it. */
static struct unanswered {
    MPIR_Request *request;
    int peer;
} * unanswered;
static size_t unanswered_count, unanswered_room;

/* Those that are complete go; before that, of a lost target, they become so, with an error. Returns
 * whether any did. */
static bool settle(bool with_lost)
{
    size_t kept = 0;
    bool any = false;

    for (size_t i = 0; i < unanswered_count; i++) {
        MPIR_Request *const request = unanswered[i].request;
        const int peer = unanswered[i].peer;
        const int code =
            with_lost && !MPIR_Request_is_complete(request) ? lite_check_lost(peer) : LITE_OK;
        if (code != LITE_OK) {
            request->status.MPI_ERROR = MPIDI_LITE_error(code, peer, __func__, __LINE__);
            /* once for each part that was to come; what was to be sent has failed before */
            while (!MPIR_Request_is_complete(request))
                MPID_Request_complete(request);
            any = true;
        }
        if (MPIR_Request_is_complete(request))
            MPIDI_CH4_REQUEST_FREE(request);
        else
            unanswered[kept++] = unanswered[i];
    }
    unanswered_count = kept;
    return any;
}

/* By a poll that found nothing to do, when a peer is lost. */
bool MPIDI_LITE_fail_unanswered(void)
{
    return settle(true);
}

void MPIDI_LITE_forget_answered(void)
{
    settle(false);
}

static bool have_room(void)
{
    if (unanswered_count < unanswered_room)
        return true;
    settle(false);
    if (2 * unanswered_count < unanswered_room)
        return true;
    const size_t room = unanswered_room == 0 ? 16 : 2 * unanswered_room;
    struct unanswered *const more = realloc(unanswered, room * sizeof(*more));
    if (more == NULL)
        return unanswered_count < unanswered_room;
    unanswered = more;
    unanswered_room = room;
    return true;
}

/* A request that ch4 has just begun. Without memory it is not noted: it is right all the same, as
 * long as its target lives. */
void MPIDI_LITE_expect_answer(MPIR_Request *request, MPIDI_av_entry_t *av)
{
    MPIDI_LITE_LOCK();
    const int peer = MPIDI_LITE_peer(av);
    if (peer >= 0 && !MPIR_Request_is_complete(request) && have_room()) {
        MPIR_Request_add_ref(request);
        unanswered[unanswered_count++] = (struct unanswered){request, peer};
    }
    MPIDI_LITE_UNLOCK();
}

/* By a poll that found nothing to do, when a peer is lost. VCI lock held. */
int MPIDI_LITE_awaited_is_lost(void)
{
    MPIR_Comm *comm;
    int first, last;

    if (awaited.win == NULL)
        return MPI_SUCCESS;
    comm = awaited.win->comm_ptr;
    first = awaited.target == ANY ? 0 : awaited.target;
    last = awaited.target == ANY ? comm->local_size - 1 : awaited.target;
    for (int rank = first; rank <= last; rank++) {
        const int peer = MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, rank));
        const int code = peer >= 0 ? lite_check_lost(peer) : LITE_OK;
        if (code != LITE_OK)
            return MPIDI_LITE_error(code, peer, __func__, __LINE__);
    }
    return MPI_SUCCESS;
}

/* ---- the host's calls ---- */

#define WHILE_AWAITING(target_, call_) \
    int mpi_errno;                     \
    await(win, (target_));             \
    mpi_errno = (call_);               \
    MPIDI_LITE_await_nobody();         \
    return mpi_errno

/* The lock may be held by another rank than the target, which is lost. */
int MPIDI_LITE_mpi_win_lock(int lock_type, int rank, int assert, MPIR_Win *win,
                            MPIDI_av_entry_t *av)
{
    MPIDIG_win_target_t *target;
    MPIDI_LITE_win_t *lite = &MPIDI_LITE_WIN(win);

    if (MPIDIG_WIN(win, sync).lock.count == 0) {
        lite->flushes = lite->flushed;
        lite->flushed = false;
    }
    /* The host keeps MPI_MODE_NOCHECK of an earlier lock, and would never give this one back. */
    MPIDI_LITE_LOCK();
    target = MPIDIG_win_target_find(win, rank);
    if (target != NULL)
        target->sync.assert_mode = 0;
    MPIDI_LITE_UNLOCK();
    WHILE_AWAITING(ANY, MPIDIG_mpi_win_lock(lock_type, rank, assert, win));
}

int MPIDI_LITE_mpi_win_lock_all(int assert, MPIR_Win *win)
{
    WHILE_AWAITING(ANY, MPIDIG_mpi_win_lock_all(assert, win));
}

static int flush(int rank, MPIR_Win *win)
{
    const int mpi_errno = MPIDI_LITE_confirm_accumulates(rank, win);
    return mpi_errno ? mpi_errno : MPIDIG_mpi_win_flush(rank, win);
}

int MPIDI_LITE_mpi_win_flush(int rank, MPIR_Win *win, MPIDI_av_entry_t *av)
{
    MPIDI_LITE_WIN(win).flushed = true;
    WHILE_AWAITING(rank, flush(rank, win));
}

int MPIDI_LITE_mpi_win_flush_local(int rank, MPIR_Win *win, MPIDI_av_entry_t *av)
{
    MPIDI_LITE_WIN(win).flushed = true;
    WHILE_AWAITING(rank, MPIDIG_mpi_win_flush_local(rank, win));
}

static int flush_all(MPIR_Win *win)
{
    const int mpi_errno = MPIDIG_WIN(win, sync).access_epoch_type == MPIDIG_EPOTYPE_LOCK
                              ? MPIDI_LITE_confirm_all_accumulates(win)
                              : MPI_SUCCESS;
    return mpi_errno ? mpi_errno : MPIDIG_mpi_win_flush_all(win);
}

int MPIDI_LITE_mpi_win_flush_all(MPIR_Win *win)
{
    MPIDI_LITE_WIN(win).flushed = true;
    WHILE_AWAITING(ANY, flush_all(win));
}

int MPIDI_LITE_mpi_win_flush_local_all(MPIR_Win *win)
{
    MPIDI_LITE_WIN(win).flushed = true;
    WHILE_AWAITING(ANY, MPIDIG_mpi_win_flush_local_all(win));
}

int MPIDI_LITE_mpi_win_wait(MPIR_Win *win)
{
    WHILE_AWAITING(ANY, MPIDIG_mpi_win_wait(win));
}

static int fence(int assert, MPIR_Win *win)
{
    if (MPIDI_LITE_WIN(win).unconfirmed) {
        const int mpi_errno = MPIDI_LITE_confirm_all_accumulates(win);
        if (mpi_errno)
            return mpi_errno;
        MPIDI_LITE_WIN(win).unconfirmed = false;
    }
    return MPIDIG_mpi_win_fence(assert, win);
}

int MPIDI_LITE_mpi_win_fence(int assert, MPIR_Win *win)
{
    WHILE_AWAITING(ANY, fence(assert, win));
}

int MPIDI_LITE_mpi_raccumulate(const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                               MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                               MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                               MPI_Op op, MPIR_Win *win, MPIDI_av_entry_t *av,
                               MPIDI_winattr_t winattr, MPIR_Request **request)
{
    const int mpi_errno =
        MPIDIG_mpi_raccumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                               target_count, target_datatype, op, win, request);

    if (mpi_errno == MPI_SUCCESS)
        MPIDI_LITE_expect_answer(*request, av);
    return mpi_errno;
}

int MPIDI_LITE_mpi_rget_accumulate(const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                                   MPI_Datatype origin_datatype, void *result_addr,
                                   MPIDI_LITE_rma_count result_count, MPI_Datatype result_datatype,
                                   int target_rank, MPI_Aint target_disp,
                                   MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                                   MPI_Op op, MPIR_Win *win, MPIDI_av_entry_t *av,
                                   MPIDI_winattr_t winattr, MPIR_Request **request)
{
    const int mpi_errno = MPIDIG_mpi_rget_accumulate(
        origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype,
        target_rank, target_disp, target_count, target_datatype, op, win, request);

    if (mpi_errno == MPI_SUCCESS)
        MPIDI_LITE_expect_answer(*request, av);
    return mpi_errno;
}
