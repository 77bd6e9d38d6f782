/* MPI_Accumulate of a predefined type between MPI_Win_start and MPI_Win_complete, or under a lock
 * that no flush follows: by an active message of ours, which its target does not answer. The host's
 * own is answered, and the host waits for that before it says that the epoch ends. A long one goes
 * so between fences, too, as the host's target copies it once more: the next fence asks for an
 * answer behind it.
 *
 * Active messages are delivered in order. So what ends the epoch is delivered behind the
 * accumulate, which is done when it has been delivered. The host's accumulates are not always: the
 * host puts one off until earlier ones, of anybody, are done. Accumulates of one origin are
 * ordered, so while any of the host's is under way to that target, the host does this one, too. And
 * what ends the epoch at a rank of this node goes by shared memory. */
#include "lite_rma.h"

struct accumulate {
    uint64_t win_id;
    uint64_t offset; /* bytes, from the beginning of the window */
    uint64_t count;
    int32_t src_rank;
    MPI_Datatype type;
    MPI_Op op;
};

static bool is_elementwise(MPI_Datatype type, MPI_Op op)
{
    return HANDLE_IS_BUILTIN(type) && HANDLE_IS_BUILTIN(op) && op != MPI_NO_OP;
}

/* Whether nobody asks for an accumulate of so many bytes before the epoch ends by an active
 * message, or asks for an answer: of a lock unless it is one without a check. */
static bool may_go_unanswered(MPIR_Win *win, size_t bytes)
{
    const size_t long_in_fence = 256 * 1024;

    switch (MPIDIG_WIN(win, sync).access_epoch_type) {
    case MPIDIG_EPOTYPE_START: return true;
    case MPIDIG_EPOTYPE_LOCK: return !MPIDI_LITE_expects_flush(&MPIDI_LITE_WIN(win));
    case MPIDIG_EPOTYPE_FENCE:
    case MPIDIG_EPOTYPE_REFENCE: return bytes >= long_in_fence;
    default: return false;
    }
}

static bool is_locked_without_check(MPIR_Win *win, const MPIDIG_win_target_t *host)
{
    return MPIDIG_WIN(win, sync).access_epoch_type == MPIDIG_EPOTYPE_LOCK &&
           (host == NULL || (host->sync.assert_mode & MPI_MODE_NOCHECK) != 0);
}

static bool host_has_none_under_way(MPIR_Win *win, const MPIDIG_win_target_t *host)
{
    return (host == NULL || MPIR_cc_get(host->remote_acc_cmpl_cnts) == 0) &&
           MPIR_cc_get(MPIDIG_WIN(win, remote_acc_cmpl_cnts)) == 0;
}

/* The host keeps a request of each until its answer is taken, which nobody would do in an epoch of
 * millions before its end. */
static int take_answers(MPIR_Win *win)
{
    enum { TURN = 64 };
    int mpi_errno = MPI_SUCCESS;

    MPIDI_LITE_LOCK();
    if (++MPIDI_LITE_WIN(win).by_host % TURN == 0)
        mpi_errno = MPIDI_LITE_progress_of_device();
    MPIDI_LITE_UNLOCK();
    return mpi_errno;
}

/* Sends it by our message if it may go so now; `*sent` tells. The lock is held throughout: other
 * threads may accumulate, and add targets to the host's table. */
static int try_message(const struct accumulate *header, const void *data, size_t bytes,
                       MPIDI_LITE_target_t *target, int target_rank, int peer, MPIR_Win *win,
                       bool *sent)
{
    int mpi_errno = MPI_SUCCESS;
    lite_request *request = NULL;

    MPIDI_LITE_LOCK();
    const MPIDIG_win_target_t *const host = MPIDIG_win_target_find(win, target_rank);
    *sent = !is_locked_without_check(win, host) && host_has_none_under_way(win, host);
    if (!*sent)
        goto fn_exit;
    mpi_errno = MPIDI_LITE_check_epoch(target_rank, win);
    MPIR_ERR_CHECK(mpi_errno);
    const int code = lite_am_isend_more(peer, MPIDI_LITE_AM_ACCUMULATE, header, sizeof(*header),
                                        data, bytes, MPIDI_LITE_target_cookie(target), &request);
    MPIDI_LITE_CHECK(code, peer);
    if (MPIDIG_WIN(win, sync).access_epoch_type != MPIDIG_EPOTYPE_START) {
        target->unanswered++;
        target->win->unconfirmed = true;
    }
    if (code == LITE_PENDING) {
        MPIDI_LITE_begin_pending(target, request);
        mpi_errno = MPIDI_LITE_drain_some(win);
    }

fn_exit:
    MPIDI_LITE_UNLOCK();
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

int MPIDI_LITE_mpi_accumulate(const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                              MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                              MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                              MPI_Op op, MPIR_Win *win, MPIDI_av_entry_t *av,
                              MPIDI_winattr_t winattr)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_LITE_target_t *target = NULL;
    struct accumulate header;
    size_t element;
    bool sent = false;

    MPIR_FUNC_ENTER;
    if (MPIDI_LITE_WIN(win).targets != NULL)
        target = &MPIDI_LITE_WIN(win).targets[target_rank];
    if (target == NULL || target->key == 0 || origin_count <= 0 || origin_count != target_count ||
        origin_datatype != target_datatype || !is_elementwise(origin_datatype, op) ||
        MPIDI_LITE_is_gpu_memory(origin_addr) || MPIDI_av_is_local(av))
        goto by_host;
    MPIR_Datatype_get_size_macro(origin_datatype, element);
    const size_t bytes = element * (size_t) origin_count;
    if (!may_go_unanswered(win, bytes))
        goto by_host;
    mpi_errno = MPIDI_LITE_place(target, target_disp, 0, bytes, &header.offset);
    MPIR_ERR_CHECK(mpi_errno);
    header.win_id = MPIDIG_WIN(win, win_id);
    header.count = (uint64_t) origin_count;
    header.src_rank = win->comm_ptr->rank;
    header.type = origin_datatype;
    header.op = op;
    mpi_errno = try_message(&header, origin_addr, bytes, target, target_rank, MPIDI_LITE_peer(av),
                            win, &sent);
    MPIR_ERR_CHECK(mpi_errno);
    if (!sent)
        goto by_host;

fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    goto fn_exit;
by_host:
    mpi_errno = MPIDIG_mpi_accumulate(origin_addr, origin_count, origin_datatype, target_rank,
                                      target_disp, target_count, target_datatype, op, win);
    if (mpi_errno == MPI_SUCCESS)
        mpi_errno = take_answers(win);
    goto fn_exit;
}

/* At its target: what the message asks for, or NULL if it is none that this function sends.
 * Everything may be wrong in what a process of another job sends. */
static const struct accumulate *read_accumulate(const void *bytes, size_t header_bytes,
                                                uint64_t data_bytes, MPIR_Win **win)
{
    const struct accumulate *a = bytes;
    size_t element;

    if (header_bytes != sizeof(*a) || !is_elementwise(a->type, a->op))
        return NULL;
    *win = MPIDIU_map_lookup(MPIDI_global.win_map, a->win_id);
    if (*win == NULL || *win == MPIDIU_MAP_NOT_FOUND)
        return NULL;
    MPIR_Datatype_get_size_macro(a->type, element);
    if (element == 0 || data_bytes % element != 0 || data_bytes / element != a->count ||
        a->offset > (uint64_t) (*win)->size || data_bytes > (uint64_t) (*win)->size - a->offset)
        return NULL;
    return a;
}

bool MPIDI_LITE_may_accumulate(int peer, const void *header, size_t header_bytes,
                               uint64_t data_bytes)
{
    MPIR_Win *win;
    const struct accumulate *a = read_accumulate(header, header_bytes, data_bytes, &win);

    return a != NULL && MPIDI_LITE_is_in(win->comm_ptr, a->src_rank, peer);
}

void MPIDI_LITE_do_accumulate(const void *header, size_t header_bytes, const void *data,
                              size_t data_bytes)
{
    MPIR_Win *win = NULL;
    const struct accumulate *a = read_accumulate(header, header_bytes, data_bytes, &win);

    MPIR_Assertp(a != NULL);
#ifndef MPIDI_CH4_DIRECT_NETMOD
    const bool shared = (MPIDI_WIN(win, winattr) & MPIDI_WINATTR_SHM_ALLOCATED) != 0;
    if (shared)
        MPIDI_SHM_rma_op_cs_enter_hook(win);
#endif
    /* the host's parameter is not const, and is only read */
    MPIDIG_compute_acc_op((void *) data, (MPI_Aint) a->count, a->type,
                          (char *) win->base + a->offset, (MPI_Aint) a->count, a->type, a->op,
                          MPIDIG_ACC_SRCBUF_PACKED);
#ifndef MPIDI_CH4_DIRECT_NETMOD
    if (shared)
        MPIDI_SHM_rma_op_cs_exit_hook(win);
#endif
    MPIDIG_rma_set_am_flag();
}

/* The target is asked for something that it answers; the host's flush waits for that. Only when
 * this is under way they count as confirmed: another thread's flush asks for itself until then. */
int MPIDI_LITE_confirm_accumulates(int rank, MPIR_Win *win)
{
    static char unused; /* outlives a flush that fails */
    MPIDI_LITE_target_t *targets = MPIDI_LITE_WIN(win).targets;
    unsigned sent;
    bool due;
    int mpi_errno;

    if (targets == NULL)
        return MPI_SUCCESS;
    MPIDI_LITE_LOCK();
    sent = targets[rank].unanswered;
    due = sent != targets[rank].confirmed;
    MPIDI_LITE_UNLOCK();
    if (!due)
        return MPI_SUCCESS;
    mpi_errno = MPIDIG_mpi_fetch_and_op(&unused, &unused, MPIDI_LITE_BYTE, rank, 0, MPI_NO_OP, win);
    if (mpi_errno != MPI_SUCCESS)
        return mpi_errno;
    MPIDI_LITE_LOCK();
    if ((int) (sent - targets[rank].confirmed) > 0)
        targets[rank].confirmed = sent;
    MPIDI_LITE_UNLOCK();
    return MPI_SUCCESS;
}

int MPIDI_LITE_confirm_all_accumulates(MPIR_Win *win)
{
    for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
        const int mpi_errno = MPIDI_LITE_confirm_accumulates(rank, win);
        if (mpi_errno != MPI_SUCCESS)
            return mpi_errno;
    }
    return MPI_SUCCESS;
}

void MPIDI_LITE_forget_unanswered(int rank, MPIR_Win *win)
{
    MPIDI_LITE_target_t *targets = MPIDI_LITE_WIN(win).targets;

    if (targets == NULL)
        return;
    MPIDI_LITE_LOCK();
    targets[rank].confirmed = targets[rank].unanswered;
    MPIDI_LITE_UNLOCK();
}
