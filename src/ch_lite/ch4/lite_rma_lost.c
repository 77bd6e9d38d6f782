/* One-sided communication with a rank that is lost: calls that wait for what another rank has to
 * say (that a lock is had, that an accumulate is done, a post) fail, where they would wait for
 * ever. The device fails its own requests; these answers are active messages of the host's, which
 * nobody but the call knows of. */
#include "lite_impl.h"

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

/* By a poll that found nothing to do. VCI lock held. */
int MPIDI_LITE_awaited_is_lost(void)
{
    MPIR_Comm *comm;
    int first, last;

    if (likely(awaited.win == NULL || lite_lost_peers() == 0))
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
    WHILE_AWAITING(ANY, MPIDIG_mpi_win_lock(lock_type, rank, assert, win));
}

int MPIDI_LITE_mpi_win_lock_all(int assert, MPIR_Win *win)
{
    WHILE_AWAITING(ANY, MPIDIG_mpi_win_lock_all(assert, win));
}

int MPIDI_LITE_mpi_win_flush(int rank, MPIR_Win *win, MPIDI_av_entry_t *av)
{
    WHILE_AWAITING(rank, MPIDIG_mpi_win_flush(rank, win));
}

int MPIDI_LITE_mpi_win_flush_local(int rank, MPIR_Win *win, MPIDI_av_entry_t *av)
{
    WHILE_AWAITING(rank, MPIDIG_mpi_win_flush_local(rank, win));
}

int MPIDI_LITE_mpi_win_flush_all(MPIR_Win *win)
{
    WHILE_AWAITING(ANY, MPIDIG_mpi_win_flush_all(win));
}

int MPIDI_LITE_mpi_win_flush_local_all(MPIR_Win *win)
{
    WHILE_AWAITING(ANY, MPIDIG_mpi_win_flush_local_all(win));
}

int MPIDI_LITE_mpi_win_wait(MPIR_Win *win)
{
    WHILE_AWAITING(ANY, MPIDIG_mpi_win_wait(win));
}

int MPIDI_LITE_mpi_win_fence(int assert, MPIR_Win *win)
{
    WHILE_AWAITING(ANY, MPIDIG_mpi_win_fence(assert, win));
}
