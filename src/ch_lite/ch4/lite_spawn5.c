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
/* Why the host has put in a name that leads to no process, when the device has no sentence. */
static MPL_TLS const char *no_sense;

/* ---- processes that are in no communicator yet ----
 * Those whose names the host has put into its tables, and those of conversations, once for each.
 * Nothing tells when the host gives up to connect with the former; so who is lost before is parted
 * from at the end of the job. */

typedef struct {
    int peer;
    enum { EXPECTED, CALLED_BY_US, CALLED_US } why;
    uint64_t call; /* of a conversation */
} newcomer;

static struct {
    pthread_mutex_t lock; /* inside of it nobody waits for anything */
    newcomer *all;
    int count, room;
} newcomers = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Lock of `newcomers` held. */
static int find(newcomer wanted)
{
    int i = 0;

    while (i < newcomers.count &&
           !(newcomers.all[i].peer == wanted.peer && newcomers.all[i].why == wanted.why &&
             newcomers.all[i].call == wanted.call))
        i++;
    return i;
}

static bool make_room(void)
{
    if (newcomers.count < newcomers.room)
        return true;
    const int room = 2 * newcomers.room + 16;
    newcomer *all = MPL_realloc(newcomers.all, (size_t) room * sizeof(newcomer), MPL_MEM_ADDRESS);
    if (all == NULL)
        return false;
    newcomers.all = all;
    newcomers.room = room;
    return true;
}

/* False: no memory. */
static bool add(newcomer made)
{
    pthread_mutex_lock(&newcomers.lock);
    const bool known = find(made) < newcomers.count;
    const bool done = known || make_room();
    if (done && !known)
        newcomers.all[newcomers.count++] = made;
    pthread_mutex_unlock(&newcomers.lock);
    return done;
}

static void take_out(newcomer gone)
{
    pthread_mutex_lock(&newcomers.lock);
    const int i = find(gone);
    if (i < newcomers.count)
        newcomers.all[i] = newcomers.all[--newcomers.count];
    pthread_mutex_unlock(&newcomers.lock);
}

bool MPIDI_LITE_talks_with(int peer, uint64_t call, bool it_called)
{
    const newcomer wanted = {
        .peer = peer, .why = it_called ? CALLED_US : CALLED_BY_US, .call = call};

    pthread_mutex_lock(&newcomers.lock);
    const bool found = find(wanted) < newcomers.count;
    pthread_mutex_unlock(&newcomers.lock);
    return found;
}

bool MPIDI_LITE_exchanges_with(int peer)
{
    bool found = false;

    pthread_mutex_lock(&newcomers.lock);
    for (int i = 0; i < newcomers.count && !found; i++)
        found = newcomers.all[i].peer == peer;
    pthread_mutex_unlock(&newcomers.lock);
    return found || MPIDI_LITE_shares_a_communicator(peer);
}

void MPIDI_LITE_forget_expected(void)
{
    pthread_mutex_lock(&newcomers.lock);
    MPL_free(newcomers.all);
    newcomers.all = NULL;
    newcomers.count = newcomers.room = 0;
    pthread_mutex_unlock(&newcomers.lock);
}

static void part_from(int peer)
{
    if (peer < MPIR_Process.size)
        return;
    MPIDI_LITE_forget_words_of(peer);
    lite_part(peer);
}

/* It keeps them. */
void MPIDI_LITE_free_unused_tables(void)
{
}

/* As in lite_spawn.c, but that the host's tables say nothing of who is in use. */
void MPIDI_LITE_part_from_strangers(void)
{
    if (lite_peers() <= MPIR_Process.size)
        return; /* there may be no lock: before and after the device */
    const bool locked = MPIDI_LITE_lock_if_not_held();
    int peers;
    char *in_use = MPIDI_LITE_find_callers(&peers);

    for (int peer = MPIR_Process.size; in_use != NULL && peer < peers; peer++)
        if (!in_use[peer] && !MPIDI_LITE_exchanges_with(peer))
            part_from(peer);
    if (locked)
        MPIDI_LITE_UNLOCK();
    MPL_free(in_use);
}

/* ---- conversations ---- */

static newcomer of_conversation(void)
{
    return (newcomer){.peer = conversation.peer,
                      .why = conversation.state == MPIDI_LITE_ANSWERING ? CALLED_US : CALLED_BY_US,
                      .call = conversation.call};
}

/* However it has ended. */
static void end_conversation(void)
{
    if (conversation.state == MPIDI_LITE_IDLE)
        return;
    take_out(of_conversation());
    MPIDI_LITE_forget_call(conversation.peer, conversation.call);
    conversation.state = MPIDI_LITE_IDLE;
}

/* False: no memory. One that the host has left is over. */
static bool begin_conversation(int peer, int state, uint64_t call)
{
    end_conversation();
    conversation.state = state;
    conversation.peer = peer;
    conversation.call = call;
    if (add(of_conversation()))
        return true;
    conversation.state = MPIDI_LITE_IDLE;
    return false;
}

/* It has come to nothing. */
static void give_up_conversation(void)
{
    const int peer = conversation.peer;

    if (conversation.state == MPIDI_LITE_IDLE)
        return;
    end_conversation();
    if (!MPIDI_LITE_exchanges_with(peer) && !MPIDI_LITE_has_called(peer))
        part_from(peer);
}

/* A communicator begins. */
void MPIDI_LITE_meet_members(MPIR_Comm *comm)
{
    if (conversation.state == MPIDI_LITE_IDLE && lite_peers() <= MPIR_Process.size)
        return;
    for (int i = 0; i < comm->remote_size; i++) {
        const int peer = MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, i));
        take_out((newcomer){.peer = peer, .why = EXPECTED});
        if (conversation.state != MPIDI_LITE_IDLE && conversation.peer == peer)
            end_conversation();
    }
}

/* ---- addresses ---- */

/* The peer of a name that the host puts into its small table, or LITE_ERR_*. */
static int meet_in_conversation(const char *upid, int bytes)
{
    no_sense = NULL;
    if (bytes == LITE_NAME_BYTES && conversation.state == MPIDI_LITE_ANSWERING) {
        const int peer = lite_meet(upid);
        if (peer < 0 || peer == conversation.peer)
            return peer;
        no_sense = "the caller has sent the name of another process";
        return LITE_ERR_ARG;
    }
    end_conversation();
    if (bytes != LITE_PORT_BYTES) {
        no_sense = "not the name of a port of this version of ch_lite";
        return LITE_ERR_ARG;
    }
    const int peer = lite_meet_at_port(upid, conversation.proof);
    if (peer < 0 || begin_conversation(peer, MPIDI_LITE_CALLING, MPIDI_LITE_new_call()))
        return peer;
    if (!MPIDI_LITE_exchanges_with(peer) && !MPIDI_LITE_has_called(peer))
        part_from(peer);
    no_sense = "out of memory for a call";
    return LITE_ERR_NOMEM;
}

static int met_error(const char *function, int line)
{
    return MPIDI_LITE_port_error(no_sense != NULL ? no_sense : lite_last_error(), function, line);
}

/* The host does not look at the result for its small table (MPIDIU_insert_dynamic_upid): what fails
 * is said again by the call that uses it, which finds no peer there. */
int MPIDI_LITE_insert_upid(MPIR_Lpid lpid, const char *upid, int upid_len)
{
    int mpi_errno = MPI_SUCCESS;
    int peer;

    MPIR_FUNC_ENTER;
    if (lpid & MPIR_LPID_DYNAMIC_MASK) {
        peer = meet_in_conversation(upid, upid_len);
    } else {
        no_sense = NULL;
        peer = upid_len == LITE_NAME_BYTES ? lite_meet(upid) : LITE_ERR_ARG;
        if (upid_len != LITE_NAME_BYTES)
            no_sense = "not the name of a process of this version of ch_lite";
        if (peer >= MPIR_Process.size && !add((newcomer){.peer = peer, .why = EXPECTED})) {
            peer = LITE_ERR_NOMEM;
            no_sense = "out of memory for processes of other jobs";
        }
    }
    MPIDI_LITE_AV(MPIDIU_lpid_to_av_slow(lpid)).peer = peer;
    if (peer < 0)
        mpi_errno = met_error(__func__, __LINE__);
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
        const MPIDI_LITE_first_words words =
            MPIDI_LITE_make_words(MPIDI_LITE_CALL, tag, &conversation, buf, size);
        code = MPIDI_LITE_say(peer, &words, NULL, 0);
        conversation.state = MPIDI_LITE_CALLED;
        if (code < 0)
            lite_check_peer(peer); /* for its sentence */
    }
    if (code < 0) {
        mpi_errno = met_error(__func__, __LINE__);
        give_up_conversation();
        /* the host forgets it here, and nowhere else */
        MPIDIU_free_dynamic_lpid(remote_lpid);
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
}

/* The host's header: the length of the caller's name, and the name. The host takes its word for
 * it. */
static bool is_header(const MPIDI_LITE_first_words *words)
{
    int length;

    if (words->bytes != sizeof(length) + LITE_NAME_BYTES)
        return false;
    memcpy(&length, words->data, sizeof(length));
    return length == LITE_NAME_BYTES;
}

int MPIDI_LITE_dynamic_recv(int tag, void *buf, int size, int timeout)
{
    int mpi_errno = MPI_SUCCESS;
    const char *failure = NULL;
    MPIDI_LITE_first_words words = {0};
    int from = -1;
    MPL_time_t start;

    MPIR_FUNC_ENTER;
    end_conversation();
    MPL_wtime(&start);
    while (!MPIDI_LITE_take_call(tag, &from, &words)) {
        failure = MPIDI_LITE_why_not_wait(tag, -1, seconds_since(&start), timeout);
        if (failure != NULL)
            break;
        mpi_errno = poll_and_yield();
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (failure == NULL && !begin_conversation(from, MPIDI_LITE_ANSWERING, words.call))
        failure = "out of memory for a call";
    else if (failure == NULL)
        failure = is_header(&words) ? MPIDI_LITE_why_not_connect(&words, size)
                                    : "the other job's MPI library is another one";
    if (failure != NULL) {
        mpi_errno = MPIDI_LITE_port_error(failure, __func__, __LINE__);
        give_up_conversation();
        goto fn_fail;
    }
    memcpy(buf, words.data, words.bytes);

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
        return words.kind == MPIDI_LITE_REFUSAL
                   ? MPIDI_LITE_why_not_connect(&words, MPIDI_LITE_FIRST_WORDS_MAX)
                   : "the other job's MPI library is another one";
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
    const char *failure = peer >= 0          ? NULL
                          : no_sense != NULL ? no_sense
                                             : "the other job's name is not valid";
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
