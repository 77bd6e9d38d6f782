/* Dynamic processes under MPICH 4.
 *
 * The host (ch4_spawn.c) does accept and connect between the two roots: the caller learns the
 * owner's name from the port, sends a request by MPIDI_NM_dynamic_send and waits for the answer in
 * MPIDI_NM_dynamic_recv; the owner receives the request by MPIDI_NM_dynamic_recv and answers by
 * MPIDI_NM_dynamic_send. Both see one "tag", the number of the port at its owner. Over the
 * intercommunicator of the two roots it then exchanges the names of all other processes. */
#include "lite_calls.h"

#if LITE_HOST_BELOW(5, 0, 0)

/* Where a peer stands in the host's tables; false: in none. */
static bool find_gpid(int peer, uint64_t *gpid)
{
    for (int avtid = 0; avtid < MPIDIU_get_n_avts(); avtid++) {
        const MPIDI_av_table_t *table = MPIDIU_get_av_table(avtid);
        for (int i = 0; table != NULL && i < table->size; i++) {
            if (MPIDI_LITE_AV(&table->table[i]).peer == peer) {
                *gpid = MPIDIU_GPID_CREATE(avtid, i);
                return true;
            }
        }
    }
    return false;
}

static MPL_TLS MPIDI_LITE_conversation_t conversation;

/* The host holds its mutex for dynamic processes, and must not wait for the VCI lock inside: none
 * is needed. */
int MPIDI_LITE_upids_to_gpids(int size, int *remote_upid_size, char *remote_upids,
                              uint64_t *remote_gpids)
{
    int mpi_errno = MPI_SUCCESS;
    int *peers = MPL_malloc((size_t) size * sizeof(int), MPL_MEM_ADDRESS);
    int unknown = 0, avtid = 0;
    const char *name = remote_upids;

    MPIR_FUNC_ENTER;
    /* The host does not look at our result everywhere (ch4_comm.c): what it finds then must be
     * harmless, and is refused as a process that occurs twice. */
    for (int i = 0; i < size; i++)
        remote_gpids[i] = MPIDIU_GPID_CREATE(0, MPIR_Process.rank);
    MPIR_ERR_CHKANDJUMP(peers == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");

    for (int i = 0; i < size; i++) {
        if (remote_upid_size[i] == LITE_PORT_BYTES && size == 1) {
            peers[i] = lite_meet_at_port(name, conversation.proof);
            conversation.state = MPIDI_LITE_CALLING;
            conversation.peer = peers[i];
        } else {
            peers[i] = remote_upid_size[i] == LITE_NAME_BYTES ? lite_meet(name) : LITE_ERR_ARG;
        }
        if (peers[i] < 0) {
            conversation.state = MPIDI_LITE_IDLE;
            mpi_errno = MPIDI_LITE_port_error(lite_last_error(), __func__, __LINE__);
            goto fn_fail;
        }
        name += remote_upid_size[i];
    }
    for (int i = 0; i < size; i++) {
        if (find_gpid(peers[i], &remote_gpids[i]))
            peers[i] = -1;
        else
            unknown++;
    }
    if (unknown > 0) {
        mpi_errno = MPIDIU_new_avt(unknown, &avtid);
        MPIR_ERR_CHECK(mpi_errno);
        for (int i = 0, place = 0; i < size; i++) {
            if (peers[i] < 0)
                continue;
            MPIDI_LITE_AV(&MPIDIU_get_av(avtid, place)).peer = peers[i];
            remote_gpids[i] = MPIDIU_GPID_CREATE(avtid, place++);
        }
    }

fn_exit:
    MPL_free(peers);
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

/* Called when a communicator has let go of its processes: those that are in no communicator any
 * more, and do not wait at a port of ours, are parted from. */
void MPIDI_LITE_part_from_strangers(void)
{
    int peers;
    char *in_use = MPIDI_LITE_find_callers(&peers);

    if (in_use == NULL)
        return;
    MPID_THREAD_CS_ENTER(VCI, MPIDIU_THREAD_DYNPROC_MUTEX);
    for (int avtid = 1; avtid < MPIDIU_get_n_avts(); avtid++) {
        const MPIDI_av_table_t *table = MPIDIU_get_av_table(avtid);
        for (int i = 0; table != NULL && i < table->size; i++) {
            const int peer = MPIDI_LITE_AV(&table->table[i]).peer;
            if (peer < peers) /* another thread may have met more since we asked */
                in_use[peer] = 1;
        }
    }
    for (int peer = MPIR_Process.size; peer < peers; peer++)
        if (!in_use[peer])
            lite_part(peer);
    MPID_THREAD_CS_EXIT(VCI, MPIDIU_THREAD_DYNPROC_MUTEX);
    MPL_free(in_use);
}

/* A table that upids_to_gpids made for processes that are in no communicator after all: the host
 * keeps no account of it, and at the end takes its counter for wrong. */
static bool free_unused(int avtid)
{
    MPIDI_av_table_t *table = avtid > 0 ? MPIDIU_get_av_table(avtid) : NULL;

    if (table == NULL || MPIR_Object_get_ref(table) != 0)
        return false;
    MPIDIU_free_avt(avtid);
    return true;
}

static void forget_call(uint64_t gpid)
{
    if (free_unused(MPIDIU_GPID_GET_AVTID(gpid)))
        MPIDI_LITE_part_from_strangers();
}

/* Called by the host's MPIR_Intercomm_create_impl when it fails (see scripts/install-device). */
void MPIDI_LITE_forget_strangers(int size, const uint64_t *gpids)
{
    bool any = false;

    for (int i = 0; gpids != NULL && i < size; i++)
        any = free_unused(MPIDIU_GPID_GET_AVTID(gpids[i])) || any;
    if (any)
        MPIDI_LITE_part_from_strangers();
}

void MPIDI_LITE_free_unused_tables(void)
{
    for (int avtid = 1; avtid < MPIDIU_get_n_avts(); avtid++)
        free_unused(avtid);
}

/* ---- requests and answers ---- */

int MPIDI_LITE_dynamic_send(uint64_t remote_gpid, int tag, const void *buf, int size, int timeout)
{
    int mpi_errno = MPI_SUCCESS;
    const bool calling = conversation.state == MPIDI_LITE_CALLING;
    const int peer = MPIDI_LITE_AV(&MPIDIU_get_av(MPIDIU_GPID_GET_AVTID(remote_gpid),
                                                  MPIDIU_GPID_GET_LPID(remote_gpid)))
                         .peer;

    MPIR_FUNC_ENTER;
    MPIR_Assert(calling || conversation.state == MPIDI_LITE_ANSWERING);

    MPIDI_LITE_LOCK();
    if (calling)
        conversation.call = MPIDI_LITE_new_call();
    const MPIDI_LITE_first_words words = MPIDI_LITE_make_words(
        calling ? MPIDI_LITE_CALL : MPIDI_LITE_ANSWER, tag, &conversation, buf, size);
    const int code = MPIDI_LITE_say(peer, &words, NULL, 0);
    MPIDI_LITE_UNLOCK();

    conversation.state = calling && code >= 0 ? MPIDI_LITE_CALLED : MPIDI_LITE_IDLE;
    if (code < 0) {
        lite_check_peer(peer); /* for its sentence */
        mpi_errno = MPIDI_LITE_port_error(lite_last_error(), __func__, __LINE__);
        forget_call(remote_gpid);
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
}

/* A caller that waits at a port may have given up since somebody last looked, and its word of that
 * be here already. */
static int hear_who_has_given_up(void)
{
    enum { POLLS = 16 };
    int mpi_errno = MPI_SUCCESS;

    for (int i = 0; i < POLLS && mpi_errno == MPI_SUCCESS; i++)
        mpi_errno = MPIDI_LITE_PROGRESS_TEST();
    return mpi_errno;
}

/* Our call, which has come to nothing. */
static void take_back(int tag, int peer, bool refused)
{
    const MPIDI_LITE_first_words taken_back = {
        .kind = MPIDI_LITE_TAKEN_BACK, .tag = tag, .call = conversation.call};
    uint64_t gpid;

    MPIDI_LITE_LOCK();
    if (!refused && lite_check_peer(peer) == LITE_OK)
        MPIDI_LITE_say(peer, &taken_back, NULL, 0);
    MPIDI_LITE_UNLOCK();
    if (find_gpid(peer, &gpid))
        forget_call(gpid);
}

int MPIDI_LITE_dynamic_recv(int tag, void *buf, int size, int timeout)
{
    int mpi_errno = MPI_SUCCESS;
    const bool calling = conversation.state == MPIDI_LITE_CALLED;
    const int peer = calling ? conversation.peer : -1;
    const char *failure = NULL;
    MPIDI_LITE_first_words words = {0};
    int from = -1;
    double waited = 0;
    MPL_time_t start, now;

    MPIR_FUNC_ENTER;
    conversation.state = MPIDI_LITE_IDLE;
    MPL_wtime(&start);
    mpi_errno = calling ? MPI_SUCCESS : hear_who_has_given_up();
    MPIR_ERR_CHECK(mpi_errno);
    for (;;) {
        MPIDI_LITE_LOCK();
        const bool found = calling ? MPIDI_LITE_take_answer(peer, conversation.call, &words)
                                   : MPIDI_LITE_take_call(tag, &from, &words);
        MPIDI_LITE_UNLOCK();
        if (found)
            break;
        failure = MPIDI_LITE_why_not_wait(tag, peer, waited, timeout);
        if (failure != NULL)
            break;
        mpi_errno = MPIDI_LITE_PROGRESS_TEST();
        MPIR_ERR_CHECK(mpi_errno);
        MPID_THREAD_CS_YIELD(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
        MPL_wtime(&now);
        MPL_wtime_diff(&start, &now, &waited);
    }
    if (failure == NULL)
        failure = MPIDI_LITE_why_not_connect(&words, size);
    if (failure != NULL) {
        mpi_errno = MPIDI_LITE_port_error(failure, __func__, __LINE__);
        goto fn_fail;
    }
    memcpy(buf, words.data, words.bytes);
    if (!calling) {
        conversation.state = MPIDI_LITE_ANSWERING;
        conversation.call = words.call;
        conversation.peer = from;
    }

fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    if (calling)
        take_back(tag, peer, words.kind == MPIDI_LITE_REFUSAL);
    goto fn_exit;
}

/* The host counts who uses its tables, and exchanges data over a communicator, and not by us. */
void MPIDI_LITE_meet_members(MPIR_Comm *comm)
{
}

bool MPIDI_LITE_exchanges_with(int peer)
{
    return false;
}

bool MPIDI_LITE_talks_with(int peer, uint64_t call, bool it_called)
{
    return false;
}

void MPIDI_LITE_forget_expected(void)
{
}

#endif
