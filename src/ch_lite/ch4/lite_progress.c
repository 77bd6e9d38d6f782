/* Progress and completion: lets the device work, then turns what it finished into completed MPI
 * requests. Here, in ordinary context and under the host's lock, is the only place where that is
 * done: a signal handler or helper thread never touches an MPIR_Request. */
#include "lite_impl.h"
#include "lite_rma.h"

int MPIDI_LITE_drain_completions(void)
{
    int mpi_errno = MPI_SUCCESS;
    lite_completion done;
    int waiting;

    /* what follows may start the next operation: the device's request is free by then */
    while ((waiting = lite_take_completion(&done)) != 0) {
        MPIDI_LITE_am_send_t *am = MPIDI_LITE_cookie_am(done.cookie);

        if (unlikely(am != NULL)) {
            /* The host's callback cannot take an error, and the answer to this message will never
             * come: so the call that polls now, which may be waiting for that answer, has to fail.
             */
            if (unlikely(done.status.error < 0))
                mpi_errno =
                    MPIDI_LITE_error(done.status.error, done.status.peer, __func__, __LINE__);
            MPIDI_LITE_am_send_done(am);
        } else if (unlikely(MPIDI_LITE_cookie_is_rma(done.cookie))) {
            const int rma_errno = MPIDI_LITE_rma_done(&done);
            if (unlikely(rma_errno != MPI_SUCCESS))
                mpi_errno = rma_errno;
        } else {
            MPIR_Request *req = done.cookie;
            if (done.is_send) {
                MPIDI_LITE_send_done(req, &done.status);
            } else {
                MPIDI_LITE_recv_done(req, &done.status);
                MPIDI_LITE_settle_partner(req);
            }
            MPIDI_LITE_COMPLETE(req);
            /* nothing of this makes another, unless the host has let go of a communicator, and
             * polls for what is left in it: then that poll has taken it */
            if (waiting == 1)
                break;
        }
    }
    return mpi_errno;
}

#ifndef MPIDI_CH4_DIRECT_NETMOD
/* Whether the host waits for shared memory between our polls: with other ranks on the node it may
 * any time; alone there, it talks to itself that way, in pieces that each take a turn of its
 * progress. */
static bool told_shared_memory = false;

static void note_shared_memory(void)
{
    const bool now =
        MPIR_Process.local_size > 1 || MPIDI_LITE_POSIX.postponed_queue != NULL ||
        (MPIDI_LITE_POSIX.active_rreq != NULL && MPIDI_LITE_POSIX.active_rreq[0] != NULL);

    if (unlikely(now != told_shared_memory))
        lite_set_shared_memory(told_shared_memory = now);
}

unsigned MPIDI_LITE_shared_memory_moves, MPIDI_LITE_flags_come;

/* Whether something moved there since the last time (up to 4.1: a request of the host's completed),
 * a flag came that a collective waited for, or a message is in shared memory in part. */
static int shared_memory_news(void)
{
    static unsigned seen, flags_seen;
    const unsigned count = MPIDI_LITE_SHARED_MEMORY_MOVES();
    const unsigned flags = __atomic_load_n(&MPIDI_LITE_flags_come, __ATOMIC_RELAXED);
    const bool moved = count != seen || flags != flags_seen;

    seen = count;
    flags_seen = flags;
    if (moved || MPIDI_LITE_POSIX.postponed_queue != NULL)
        return 1;
    if (MPIDI_LITE_POSIX.active_rreq != NULL)
        for (int i = 0; i < MPIR_Process.local_size; i++)
            if (MPIDI_LITE_POSIX.active_rreq[i] != NULL)
                return 1;
    return 0;
}

void MPIDI_LITE_forget_shared_memory(void)
{
    told_shared_memory = false;
    lite_set_host_news(shared_memory_news);
}
#else
#define note_shared_memory() \
    do {                     \
    } while (0)
#endif

/* Called with the VCI lock held. `blocking` is never set by this host; how to wait is the device's
 * matter, which counts the polls between two exits from MPI. */
int MPIDI_LITE_progress(MPIDI_LITE_PROGRESS_PARAMETERS)
{
    int mpi_errno = MPI_SUCCESS;

    MPIR_FUNC_ENTER;

#ifdef MPIDI_LITE_NO_POLLING
    /* the reference of test/bench/shared_memory */
    if (MPIR_Process.local_size == MPIR_Process.size)
        return MPI_SUCCESS;
#endif
    /* The first poll of a call that may not block is never skipped: the others of this process wait
     * for what it does when it finds nothing. */
    const bool asks = (lite_call.kinds & 3) == LITE_MAY_NOT_BLOCK && lite_call.idle_polls == 0;
    if (vci == MPIDI_LITE_VCI && (asks || !lite_may_skip()) && !MPIDI_LITE_complete_now()) {
        note_shared_memory();
        mpi_errno = MPIDI_LITE_take_kept_error();
        MPIR_ERR_CHECK(mpi_errno);
        const int waiting = lite_progress();
        if (waiting != 0) {
            MPIDI_LITE_CHECK(waiting, -1);
            mpi_errno = MPIDI_LITE_drain_completions();
            MPIR_ERR_CHECK(mpi_errno);
            MPIDI_LITE_MADE_PROGRESS();
        } else if (unlikely(lite_lost_peers() != 0)) {
            if (MPIDI_LITE_fail_unanswered())
                MPIDI_LITE_MADE_PROGRESS();
            mpi_errno = MPIDI_LITE_awaited_is_lost();
            MPIR_ERR_CHECK(mpi_errno);
        }
    }

fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    goto fn_exit;
}
