/* One-sided communication: when epochs begin, and when native puts and gets are over. Waiting for
 * posts, for puts and gets at flushes and the ends of epochs (lite_rma.c says why when), and what
 * is done as they complete. */
#include "lite_rma.h"

#include <limits.h>
#include <time.h>

/* ---- waiting ---- */

/* Until *count, which completions bring down, is 0. VCI lock held, but let go meanwhile. */
static int wait_until_zero(const int *count)
{
    int mpi_errno = MPI_SUCCESS;

    MPIDIU_PROGRESS_WHILE(*(const volatile int *) count > 0, MPIDI_LITE_VCI);

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

struct decline {
    int least;
    double since; /* seconds */
};

/* Whether it goes on: there is more than enough, and it has become less in the last time. A target
 * that makes no progress for longer (LITE_CONTROLLER=sync, and it computes) is not waited for. */
static bool declines(const int *count, int enough, struct decline *decline)
{
    const double patience_s = 0.02;
    const int now_count = *(const volatile int *) count;
    struct timespec now;

    if (now_count <= enough)
        return false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double now_s = (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
    if (now_count < decline->least)
        *decline = (struct decline){now_count, now_s};
    return now_s - decline->since < patience_s;
}

int MPIDI_LITE_hold_back(const MPIR_Win *win, int enough)
{
    int mpi_errno = MPI_SUCCESS;
    const int *pending = &MPIDI_LITE_WIN(win).pending;
    struct decline decline = {INT_MAX, 0.0};

    MPIDIU_PROGRESS_WHILE(declines(pending, enough, &decline), MPIDI_LITE_VCI);

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

/* wait_until_zero() for the hooks. */
static int wait_for(const int *count)
{
    int mpi_errno;

    MPIR_FUNC_ENTER;
    MPIDI_LITE_LOCK_RMA_HOOK();
    mpi_errno = wait_until_zero(count);
    MPIDI_LITE_UNLOCK_RMA_HOOK();
    MPIR_FUNC_EXIT;
    return mpi_errno;
}

static const int no_target; /* counts nothing */

/* This thread ends an epoch by an active message to each target. */
static __thread bool ends_by_message;

int MPIDI_LITE_rma_win_cmpl_hook(MPIR_Win *win)
{
    MPIDI_LITE_win_t *lite = &MPIDI_LITE_WIN(win);
    return wait_for(ends_by_message ? &lite->unordered : &lite->pending);
}

int MPIDI_LITE_rma_win_local_cmpl_hook(MPIR_Win *win)
{
    return wait_for(&MPIDI_LITE_WIN(win).pending_local);
}

int MPIDI_LITE_rma_target_cmpl_hook(int rank, MPIR_Win *win)
{
    MPIDI_LITE_target_t *targets = MPIDI_LITE_WIN(win).targets;
    if (targets == NULL)
        return MPI_SUCCESS;
    return wait_for(ends_by_message ? &targets[rank].unordered : &targets[rank].pending);
}

int MPIDI_LITE_rma_target_local_cmpl_hook(int rank, MPIR_Win *win)
{
    MPIDI_LITE_win_t *lite = &MPIDI_LITE_WIN(win);
    return lite->targets ? wait_for(&lite->targets[rank].pending_local) : MPI_SUCCESS;
}

/* ---- the beginning of an access epoch ---- */

/* By the host, when the message of an MPI_Win_post has come (install-device). VCI lock held. */
void MPIDI_LITE_win_posted(MPIR_Win *win, int origin)
{
    int *posts = MPIDI_LITE_WIN(win).posts;

    /* a process of another job need not wait until the window is there */
    if (posts != NULL)
        posts[origin]++;
}

static bool have_posted(const int *posts, const int *ranks, int count)
{
    for (int i = 0; i < count; i++)
        if (((const volatile int *) posts)[ranks[i]] == 0)
            return false;
    return true;
}

/* The host counts posts, whoever made them, until there are as many as the group has ranks. So a
 * post for a later epoch, which comes early where this rank has computed between MPI_Win_post and
 * MPI_Win_start, made it wait for ever, or go on without a target's post. Waits for one of each
 * rank of the group here, and leaves the rest to the host. */
int MPIDI_LITE_mpi_win_start(MPIR_Group *group, int assert, MPIR_Win *win)
{
    int mpi_errno = MPI_SUCCESS;
    int *posts = MPIDI_LITE_WIN(win).posts;
    int *ranks = NULL;
    const int count = group->size;

    MPIR_FUNC_ENTER;
    MPIDI_LITE_LOCK();
    MPIDIG_ACCESS_EPOCH_CHECK_NONE(win, mpi_errno, goto fn_fail);
    if (assert & MPI_MODE_NOCHECK)
        goto fn_exit;
    ranks = MPL_malloc((size_t) count * sizeof(*ranks), MPL_MEM_RMA);
    MPIR_ERR_CHKANDJUMP(ranks == NULL && count > 0, mpi_errno, MPI_ERR_OTHER, "**nomem");
    mpi_errno = MPIDIG_fill_ranks_in_win_grp(win, group, ranks);
    MPIR_ERR_CHECK(mpi_errno);
    for (int i = 0; i < count; i++)
        MPIR_ERR_CHKANDJUMP(ranks[i] < 0, mpi_errno, MPI_ERR_GROUP, "**group");
    MPIDI_LITE_await_ranks(win);
    MPIDIU_PROGRESS_WHILE(!have_posted(posts, ranks, count), MPIDI_LITE_VCI);
    for (int i = 0; i < count; i++)
        posts[ranks[i]]--;

fn_exit:
    MPIDI_LITE_await_nobody();
    MPL_free(ranks);
    MPIDI_LITE_UNLOCK();
    MPIR_FUNC_EXIT;
    return mpi_errno ? mpi_errno : MPIDIG_mpi_win_start(group, assert | MPI_MODE_NOCHECK, win);
fn_fail:
    goto fn_exit;
}

/* ---- the end of epochs ---- */

static void end_begins(const MPIR_Win *win, bool by_message)
{
    ends_by_message = by_message;
    /* The host polls once although everything has completed locally, and what waits to leave with
     * the message of the epoch's end would leave without it: this poll is skipped. */
    if (by_message && LITE_HOT_GET(gathered) != LITE_GATHERED_NONE) {
        LITE_HOT_SET(skip, 1);
        LITE_HOT_SET(polls_since_exit, 1);
    }
    MPIDI_LITE_await_ranks(win);
}

/* When the message has left: until *count, of what needs the origin's buffers, is 0. They were
 * those of gets, and of accumulates. */
static int end_is_over(int mpi_errno, const int *count)
{
    ends_by_message = false;
    if (mpi_errno == MPI_SUCCESS && *count > 0) {
        MPIDI_LITE_LOCK();
        mpi_errno = wait_until_zero(count);
        MPIDI_LITE_UNLOCK();
    }
    MPIDI_LITE_await_nobody();
    return mpi_errno;
}

int MPIDI_LITE_mpi_win_complete(MPIR_Win *win)
{
    end_begins(win, true);
    return end_is_over(MPIDIG_mpi_win_complete(win), &MPIDI_LITE_WIN(win).pending_local);
}

/* With MPI_MODE_NOCHECK there was no lock, and no message gives it back. */
static bool gives_lock_back(MPIR_Win *win, int rank)
{
    const MPIDIG_win_target_t *target;

    MPIDI_LITE_LOCK();
    target = MPIDIG_win_target_find(win, rank);
    MPIDI_LITE_UNLOCK();
    return target != NULL && (target->sync.assert_mode & MPI_MODE_NOCHECK) == 0;
}

int MPIDI_LITE_mpi_win_unlock(int rank, MPIR_Win *win, MPIDI_av_entry_t *av)
{
    MPIDI_LITE_target_t *targets = MPIDI_LITE_WIN(win).targets;
    int mpi_errno;

    end_begins(win, gives_lock_back(win, rank));
    mpi_errno = end_is_over(MPIDIG_mpi_win_unlock(rank, win),
                            targets ? &targets[rank].pending_local : &no_target);
    if (mpi_errno == MPI_SUCCESS)
        MPIDI_LITE_forget_unanswered(rank, win);
    return mpi_errno;
}

int MPIDI_LITE_mpi_win_unlock_all(MPIR_Win *win)
{
    end_begins(win, (MPIDIG_WIN(win, sync).assert_mode & MPI_MODE_NOCHECK) == 0);
    return end_is_over(MPIDIG_mpi_win_unlock_all(win), &MPIDI_LITE_WIN(win).pending_local);
}

int MPIDI_LITE_await_accesses(uint64_t key)
{
    int mpi_errno = MPI_SUCCESS;

    MPIDI_LITE_LOCK();
    MPIDIU_PROGRESS_WHILE(lite_is_accessed(key), MPIDI_LITE_VCI);

fn_exit:
    MPIDI_LITE_UNLOCK();
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

int MPIDI_LITE_mpi_win_free(MPIR_Win **win_ptr)
{
    int mpi_errno;

    MPIDI_LITE_LOCK();
    mpi_errno = wait_until_zero(&MPIDI_LITE_WIN(*win_ptr).pending);
    MPIDI_LITE_forget_answered();
    MPIDI_LITE_UNLOCK();
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_LITE_await_ranks(*win_ptr);
    mpi_errno = MPIDIG_mpi_win_free(win_ptr);
    MPIDI_LITE_await_nobody();

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

int MPIDI_LITE_rma_done(const lite_completion *done)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *req = MPIDI_LITE_cookie_rma_request(done->cookie);
    MPIDI_LITE_target_t *target =
        req ? MPIDI_LITE_REQUEST(req).target : MPIDI_LITE_cookie_target(done->cookie);

    MPIDI_LITE_count_pending(target, -1, done->holds_buffer, done->in_order);
    if (unlikely(done->status.error < 0))
        mpi_errno = MPIDI_LITE_error(done->status.error, done->status.peer, __func__, __LINE__);
    if (req) {
        req->status.MPI_ERROR = mpi_errno;
        MPIDI_LITE_COMPLETE(req);
        return MPI_SUCCESS;
    }
    /* There is no request to carry it: the call that polls, which may be the one that waits for
     * this, has to fail. */
    return mpi_errno;
}
