/* What the files of one-sided communication share: lite_rma.c, lite_rma_sync.c, lite_rma_lost.c and
 * lite_accumulate.c, and who completes and delivers for them. */
#ifndef LITE_RMA_H_INCLUDED
#define LITE_RMA_H_INCLUDED

#include "lite_impl.h"

/* ---- accesses of the device (lite_rma.c) ---- */

static inline void *MPIDI_LITE_target_cookie(MPIDI_LITE_target_t *target)
{
    return (char *) target + 2;
}

static inline void *MPIDI_LITE_rma_request_cookie(MPIR_Request *req)
{
    return (char *) req + 3;
}

static inline bool MPIDI_LITE_cookie_is_rma(const void *cookie)
{
    return ((uintptr_t) cookie & 2) != 0;
}

static inline MPIDI_LITE_target_t *MPIDI_LITE_cookie_target(void *cookie)
{
    return ((uintptr_t) cookie & 3) == 2 ? (MPIDI_LITE_target_t *) ((char *) cookie - 2) : NULL;
}

static inline MPIR_Request *MPIDI_LITE_cookie_rma_request(void *cookie)
{
    return ((uintptr_t) cookie & 3) == 3 ? (MPIR_Request *) ((char *) cookie - 3) : NULL;
}

/* An MPI error where no epoch allows an access. VCI lock held: other threads add to the host's
 * table of targets, which is looked into. */
int MPIDI_LITE_check_epoch(int target_rank, MPIR_Win *win);

/* Where an access begins in the target's memory, in bytes, or an MPI error: it is outside of it.
 * `first`: the displacement of the datatype's first byte. */
static inline int MPIDI_LITE_place(const MPIDI_LITE_target_t *target, MPI_Aint displacement,
                                   MPI_Aint first, size_t bytes, uint64_t *offset)
{
    int mpi_errno = MPI_SUCCESS;
    const MPI_Aint place = displacement * target->disp_unit + first;

    /* Here and not at the target, which would have to break with us. */
    MPIR_ERR_CHKANDJUMP(
        place < 0 || place > target->bytes || (MPI_Aint) bytes > target->bytes - place, mpi_errno,
        MPI_ERR_RMA_RANGE, "**rmarange");
    *offset = (uint64_t) place;

fn_fail:
    return mpi_errno;
}

/* One more or less of the accesses that are not complete; the last two as the device says. */
static inline void MPIDI_LITE_count_pending(MPIDI_LITE_target_t *target, int more, int holds_buffer,
                                            int in_order)
{
    target->pending += more;
    target->win->pending += more;
    if (holds_buffer) {
        target->pending_local += more;
        target->win->pending_local += more;
    }
    if (!in_order) {
        target->unordered += more;
        target->win->unordered += more;
    }
}

/* The device has begun an access that is not complete. */
static inline void MPIDI_LITE_begin_pending(MPIDI_LITE_target_t *target,
                                            const lite_request *request)
{
    MPIDI_LITE_count_pending(target, 1, lite_request_holds_buffer(request),
                             lite_request_is_in_order(request));
}

/* Where the targets are slower than the origin: waits until no more than `enough` accesses are
 * pending, or none has ended for some milliseconds. VCI lock held, but let go meanwhile. */
int MPIDI_LITE_hold_back(const MPIR_Win *win, int enough);

/* An access has a request of the device's until somebody drains its completion. In an epoch of
 * millions of them nobody would before its end. Behind MPIDI_LITE_begin_pending, under the lock. */
static inline int MPIDI_LITE_drain_some(const MPIR_Win *win)
{
    enum { MANY = 4096, TURN = 64, TOO_MANY = 16 * MANY };
    int mpi_errno = MPI_SUCCESS;
    const int pending = MPIDI_LITE_WIN(win).pending;

    if (likely(pending < MANY || pending % TURN != 0))
        goto fn_exit;
    const int waiting = lite_progress();
    MPIDI_LITE_CHECK(waiting, -1);
    mpi_errno = MPIDI_LITE_drain_completions();
    MPIR_ERR_CHECK(mpi_errno);
    if (pending >= TOO_MANY && pending % MANY == 0)
        mpi_errno = MPIDI_LITE_hold_back(win, TOO_MANY / 2);

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

/* Whether a flush, and not the end of the epoch, will ask for what is accessed under a lock: it has
 * so far, or did under the locks before. */
static inline bool MPIDI_LITE_expects_flush(const MPIDI_LITE_win_t *win)
{
    return win->flushed || win->flushes;
}

/* A put or get has completed: counts it, and completes its request. Returns the MPI error of one
 * without a request. */
int MPIDI_LITE_rma_done(const lite_completion *done);

/* ---- accumulates that are not answered (lite_accumulate.c) ---- */

/* The number of the active message, as MPIDI_LITE_AM_FIRST_WORDS. */
#define MPIDI_LITE_AM_ACCUMULATE 0xffff0002u
/* Whether a process of another job may send it. */
bool MPIDI_LITE_may_accumulate(int peer, const void *header, size_t header_bytes,
                               uint64_t data_bytes);
/* At its target. VCI lock held. */
void MPIDI_LITE_do_accumulate(const void *header, size_t header_bytes, const void *data,
                              size_t data_bytes);
/* Before a flush of that target: those that were sent under a lock are not answered. */
int MPIDI_LITE_confirm_accumulates(int rank, MPIR_Win *win);
/* Of all targets; before a fence, too. */
int MPIDI_LITE_confirm_all_accumulates(MPIR_Win *win);
/* The lock was given back, behind them. */
void MPIDI_LITE_forget_unanswered(int rank, MPIR_Win *win);

#endif /* LITE_RMA_H_INCLUDED */
