/* Dynamic processes under MPICH 5.
 *
 * The host (ch4_spawn.c, ch4_comm.c) keeps a table of addresses per job ("world") as long as it
 * runs, and puts names into it by MPIDI_NM_insert_upid. For MPI_Comm_connect and MPI_Comm_accept
 * the two roots stand in a small table of their own: the caller puts in the port's name and sends
 * its own name by MPIDI_NM_dynamic_send, which the port's owner takes by MPIDI_NM_dynamic_recv and
 * puts in. Then both exchange what they know of their jobs by MPIDI_NM_dynamic_sendrecv, and so do
 * the two leaders in every MPI_Intercomm_create, connected or of one job. All of these functions
 * are called with the VCI lock held. */
#include "lite_calls.h"

#if LITE_HOST_SINCE(5, 0, 0)

#include <pthread.h>

static MPL_TLS MPIDI_LITE_conversation_t conversation;

/* ---- processes whose names are in the host's tables, and which are in no communicator yet ----
 * Nothing tells when the host gives up to connect with them; so who is lost before is parted from
 * at the end of the job. */

static struct {
    pthread_mutex_t lock; /* inside of it nobody waits for anything */
    int *peers;
    int count, room;
} expected = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Lock of `expected` held. */
static int find_expected(int peer)
{
    int i = 0;

    while (i < expected.count && expected.peers[i] != peer)
        i++;
    return i;
}

static bool expect(int peer)
{
    bool done = true;

    if (peer < MPIR_Process.size)
        return true;
    pthread_mutex_lock(&expected.lock);
    if (find_expected(peer) == expected.count) {
        if (expected.count == expected.room) {
            const int room = 2 * expected.room + 16;
            int *peers = MPL_realloc(expected.peers, (size_t) room * sizeof(int), MPL_MEM_ADDRESS);
            done = peers != NULL;
            if (done) {
                expected.peers = peers;
                expected.room = room;
            }
        }
        if (done)
            expected.peers[expected.count++] = peer;
    }
    pthread_mutex_unlock(&expected.lock);
    return done;
}

static void expect_no_more(int peer)
{
    pthread_mutex_lock(&expected.lock);
    const int i = find_expected(peer);
    if (i < expected.count)
        expected.peers[i] = expected.peers[--expected.count];
    pthread_mutex_unlock(&expected.lock);
}

static bool is_expected(int peer)
{
    pthread_mutex_lock(&expected.lock);
    const bool found = find_expected(peer) < expected.count;
    pthread_mutex_unlock(&expected.lock);
    return found;
}

/* A communicator begins. */
void MPIDI_LITE_meet_members(MPIR_Comm *comm)
{
    if (lite_peers() <= MPIR_Process.size)
        return;
    for (int i = 0; i < comm->remote_size; i++)
        expect_no_more(MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, i)));
}

bool MPIDI_LITE_exchanges_with(int peer)
{
    return is_expected(peer) || MPIDI_LITE_shares_a_communicator(peer);
}

void MPIDI_LITE_forget_expected(void)
{
    pthread_mutex_lock(&expected.lock);
    MPL_free(expected.peers);
    expected.peers = NULL;
    expected.count = expected.room = 0;
    pthread_mutex_unlock(&expected.lock);
}

static void part_from(int peer)
{
    if (peer < MPIR_Process.size)
        return;
    MPIDI_LITE_forget_words_of(peer);
    lite_part(peer);
}

/* As in lite_spawn.c, but that the host's tables say nothing of who is in use. */
void MPIDI_LITE_part_from_strangers(void)
{
    const int peers = lite_peers();
    char *in_use;

    if (peers <= MPIR_Process.size)
        return; /* the usual case, and before and after the device */
    in_use = MPL_calloc((size_t) peers, 1, MPL_MEM_OTHER);
    if (in_use == NULL)
        return; /* their end will be a loss, no worse */
    const bool locked = MPIDI_LITE_lock_if_not_held();
    MPIDI_LITE_mark_callers(in_use, peers);
    for (int peer = MPIR_Process.size; peer < peers; peer++)
        if (!in_use[peer] && !MPIDI_LITE_exchanges_with(peer))
            part_from(peer);
    if (locked)
        MPIDI_LITE_UNLOCK();
    MPL_free(in_use);
}

/* The conversation has come to nothing. */
static void give_up_conversation(void)
{
    const int peer = conversation.peer;

    conversation.state = MPIDI_LITE_IDLE;
    if (peer < 0)
        return;
    expect_no_more(peer);
    if (!MPIDI_LITE_exchanges_with(peer))
        part_from(peer);
}

/* ---- addresses ---- */

/* The peer of a name that the host puts into its small table, or LITE_ERR_*. */
static int meet_in_conversation(const char *upid, int bytes)
{
    if (bytes == LITE_PORT_BYTES) {
        const int peer = lite_meet_at_port(upid, conversation.proof);
        conversation.state = peer < 0 ? MPIDI_LITE_IDLE : MPIDI_LITE_CALLING;
        conversation.peer = peer;
        return peer;
    }
    const int peer = bytes == LITE_NAME_BYTES ? lite_meet(upid) : LITE_ERR_ARG;
    /* who has called must not send another one's name */
    return conversation.state == MPIDI_LITE_ANSWERING && peer == conversation.peer ? peer
                                                                                   : LITE_ERR_ARG;
}

/* The host does not look at the result for its small table (MPIDIU_insert_dynamic_upid): what fails
 * is said again by the call that uses it, which finds no peer there. */
int MPIDI_LITE_insert_upid(MPIR_Lpid lpid, const char *upid, int upid_len)
{
    int mpi_errno = MPI_SUCCESS;
    int peer;

    MPIR_FUNC_ENTER;
    if (lpid & MPIR_LPID_DYNAMIC_MASK)
        peer = meet_in_conversation(upid, upid_len);
    else
        peer = upid_len == LITE_NAME_BYTES ? lite_meet(upid) : LITE_ERR_ARG;
    if (peer >= 0 && !expect(peer))
        peer = LITE_ERR_NOMEM;
    MPIDI_LITE_AV(MPIDIU_lpid_to_av_slow(lpid)).peer = peer;
    if (peer < 0)
        mpi_errno = MPIDI_LITE_port_error(lite_last_error(), __func__, __LINE__);
    MPIR_FUNC_EXIT;
    return mpi_errno;
}

/* ---- requests and data ---- */

/* A pass of the host's progress, with the VCI lock held before and after and open between. */
static int poll_and_yield(void)
{
    int mpi_errno = MPIDI_progress_test_vci(MPIDI_LITE_VCI);

    MPID_THREAD_CS_YIELD(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
    MPID_THREAD_CS_YIELD(VCI, MPIDI_LITE_VCI_LOCK);
    return mpi_errno;
}

static double seconds_since(MPL_time_t *start)
{
    MPL_time_t now;
    double seconds;

    MPL_wtime(&now);
    MPL_wtime_diff(start, &now, &seconds);
    return seconds;
}

int MPIDI_LITE_dynamic_send(MPIR_Lpid remote_lpid, int tag, const void *buf, int size, int timeout)
{
    int mpi_errno = MPI_SUCCESS;
    const int peer = MPIDI_LITE_AV(MPIDIU_lpid_to_av_slow(remote_lpid)).peer;
    int code = peer;

    MPIR_FUNC_ENTER;
    if (peer >= 0) {
        MPIR_Assert(conversation.state == MPIDI_LITE_CALLING);
        conversation.call = MPIDI_LITE_new_call();
        const MPIDI_LITE_first_words words =
            MPIDI_LITE_make_words(MPIDI_LITE_CALL, tag, &conversation, buf, size);
        code = MPIDI_LITE_say(peer, &words, NULL, 0);
        conversation.state = MPIDI_LITE_CALLED;
        if (code < 0)
            lite_check_peer(peer); /* for its sentence */
    }
    if (code < 0) {
        mpi_errno = MPIDI_LITE_port_error(lite_last_error(), __func__, __LINE__);
        give_up_conversation();
        /* the host forgets it here, and nowhere else */
        MPIDIU_free_dynamic_lpid(remote_lpid);
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
}

int MPIDI_LITE_dynamic_recv(int tag, void *buf, int size, int timeout)
{
    int mpi_errno = MPI_SUCCESS;
    const char *failure = NULL;
    MPIDI_LITE_first_words words = {0};
    int from = -1;
    MPL_time_t start;

    MPIR_FUNC_ENTER;
    conversation.state = MPIDI_LITE_IDLE;
    MPL_wtime(&start);
    while (!MPIDI_LITE_take_call(tag, &from, &words)) {
        failure = MPIDI_LITE_why_not_wait(tag, -1, seconds_since(&start), timeout);
        if (failure != NULL)
            break;
        mpi_errno = poll_and_yield();
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (failure == NULL)
        failure = MPIDI_LITE_why_not_connect(&words, size);
    if (failure != NULL) {
        mpi_errno = MPIDI_LITE_port_error(failure, __func__, __LINE__);
        goto fn_fail;
    }
    memcpy(buf, words.data, words.bytes);
    conversation.state = MPIDI_LITE_ANSWERING;
    conversation.call = words.call;
    conversation.peer = from;

fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

/* Why the other one's data will not come, or NULL. `call`: of a conversation, or 0. */
static const char *why_no_data(int peer, uint64_t call, double waited_s, int timeout_s)
{
    MPIDI_LITE_first_words words;

    if (call != 0 && conversation.state == MPIDI_LITE_CALLED &&
        MPIDI_LITE_take_answer(peer, call, &words))
        return MPIDI_LITE_why_not_connect(&words, MPIDI_LITE_FIRST_WORDS_MAX);
    if (call != 0 && conversation.state == MPIDI_LITE_ANSWERING &&
        MPIDI_LITE_is_taken_back(peer, call))
        return "the caller did not wait any longer";
    return MPIDI_LITE_why_not_wait(0, peer, waited_s, timeout_s);
}

/* The exchange with the peer has failed. */
static void give_up_exchange(int peer, int tag)
{
    const MPIDI_LITE_first_words taken_back = {
        .kind = MPIDI_LITE_TAKEN_BACK, .tag = tag, .call = conversation.call};

    if (conversation.state == MPIDI_LITE_CALLED && lite_check_peer(peer) == LITE_OK)
        MPIDI_LITE_say(peer, &taken_back, NULL, 0);
    give_up_conversation();
}

/* Both sides know how long the other one's data is. Which exchange it is say the host's tag, the
 * context of the communicator over which the leaders know one another (either direction is named by
 * its receiver's) and, between jobs, the caller's number for the call. */
int MPIDI_LITE_dynamic_sendrecv(MPIR_Lpid remote_lpid, MPIR_Comm *peer_comm, int tag,
                                const void *send_buf, int send_size, void *recv_buf, int recv_size,
                                int timeout)
{
    int mpi_errno = MPI_SUCCESS;
    const bool in_conversation = (remote_lpid & MPIR_LPID_DYNAMIC_MASK) != 0;
    const int peer = MPIDI_LITE_AV(MPIDIU_lpid_to_av_slow(remote_lpid)).peer;
    MPIDI_LITE_first_words words = {.kind = MPIDI_LITE_EXCHANGE,
                                    .tag = tag,
                                    .call = in_conversation ? conversation.call : 0,
                                    .bytes = sizeof(uint32_t)};
    const char *failure = peer < 0 ? "the other job's name is not valid" : NULL;
    void *data = NULL;
    size_t bytes = 0;
    MPL_time_t start;

    MPIR_FUNC_ENTER;
    memcpy(words.data, &(uint32_t){peer_comm->context_id}, sizeof(uint32_t));
    if (failure == NULL && MPIDI_LITE_say(peer, &words, send_buf, (size_t) send_size) < 0)
        failure = lite_last_error();
    memcpy(words.data, &(uint32_t){peer_comm->recvcontext_id}, sizeof(uint32_t));
    MPL_wtime(&start);
    while (failure == NULL && !MPIDI_LITE_take_exchange(peer, &words, &data, &bytes)) {
        failure = why_no_data(peer, words.call, seconds_since(&start), timeout);
        if (failure == NULL) {
            mpi_errno = poll_and_yield();
            MPIR_ERR_CHECK(mpi_errno);
        }
    }
    if (failure == NULL && bytes != (size_t) recv_size)
        failure = "the other job's MPI library is another one";
    if (failure != NULL) {
        mpi_errno = MPIDI_LITE_port_error(failure, __func__, __LINE__);
        goto fn_fail;
    }
    memcpy(recv_buf, data, bytes);

fn_exit:
    MPL_free(data);
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    if (in_conversation)
        give_up_exchange(peer, tag);
    goto fn_exit;
}

#endif
