/* Dynamic processes: the names that the host passes around for processes and ports, and the first
 * words between two jobs.
 *
 * The host (ch4_spawn.c) does accept and connect between the two roots: the caller learns the
 * owner's name from the port, sends a request by MPIDI_NM_dynamic_send and waits for the answer in
 * MPIDI_NM_dynamic_recv; the owner receives the request by MPIDI_NM_dynamic_recv and answers by
 * MPIDI_NM_dynamic_send. Both see one "tag", the number of the port at its owner. Over the
 * intercommunicator of the two roots it then exchanges the names of all other processes. Requests
 * and answers are active messages of ours, as they have to be kept until somebody accepts. */
#include "lite_impl.h"

/* ---- names of processes ---- */

int MPIDI_LITE_get_local_upids(MPIR_Comm *comm, int **local_upid_size, char **local_upids)
{
    int mpi_errno = MPI_SUCCESS;
    const int size = comm->local_size;
    int *lengths = MPL_malloc((size_t) size * sizeof(int), MPL_MEM_ADDRESS);
    char *names = MPL_malloc((size_t) size * LITE_NAME_BYTES, MPL_MEM_BUFFER);

    MPIR_FUNC_ENTER;
    MPIR_ERR_CHKANDJUMP(lengths == NULL || names == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    for (int i = 0; i < size; i++) {
        const int peer = MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, i));
        lengths[i] = LITE_NAME_BYTES;
        const int code = lite_name(peer, names + (size_t) i * LITE_NAME_BYTES);
        MPIDI_LITE_CHECK(code, -1);
    }
    *local_upid_size = lengths;
    *local_upids = names;

fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    MPL_free(lengths);
    MPL_free(names);
    goto fn_exit;
}

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

/* What a thread is in the middle of: the host makes these calls one after the other in one thread,
 * and does not tell in the second what it was that it began with the first. */
static MPL_TLS struct {
    enum { IDLE, CALLING, CALLED, ANSWERING } state;
    int peer;
    uint64_t call; /* names the request at its sender */
    char proof[LITE_PROOF_BYTES];
} conversation;

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
            conversation.state = CALLING;
            conversation.peer = peers[i];
        } else {
            peers[i] = remote_upid_size[i] == LITE_NAME_BYTES ? lite_meet(name) : LITE_ERR_ARG;
        }
        if (peers[i] < 0) {
            conversation.state = IDLE;
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

static void mark_callers(char *in_use, int peers);

/* Called when a communicator has let go of its processes: those that are in no communicator any
 * more, and do not wait at a port of ours, are parted from. */
void MPIDI_LITE_part_from_strangers(void)
{
    const int peers = lite_peers();
    char *in_use;

    if (peers <= MPIR_Process.size)
        return; /* the usual case, and before and after the device */
    in_use = MPL_calloc((size_t) peers, 1, MPL_MEM_OTHER);
    if (in_use == NULL)
        return; /* their end will be a loss, no worse */
    MPID_THREAD_CS_ENTER_REC_VCI(MPIDI_VCI(MPIDI_LITE_VCI).lock);
    mark_callers(in_use, peers);
    MPIDI_LITE_UNLOCK();
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

/* The table that upids_to_gpids made for a call that came to nothing is in no communicator, and the
 * host keeps no account of it. */
static void forget_call(uint64_t gpid)
{
    const int avtid = MPIDIU_GPID_GET_AVTID(gpid);

    if (avtid > 0 && MPIR_Object_get_ref(MPIDIU_get_av_table(avtid)) == 0) {
        MPIDIU_free_avt(avtid);
        MPIDI_LITE_part_from_strangers();
    }
}

/* ---- ports ---- */

/* Called by the host's MPID_Open_port and MPID_Close_port (see scripts/install-device), as only
 * they know when a port begins and ends. */
int MPIDI_LITE_open_port(int tag, int **upid_size, char **upid)
{
    int mpi_errno = MPI_SUCCESS;

    *upid_size = MPL_malloc(sizeof(int), MPL_MEM_ADDRESS);
    *upid = MPL_malloc(LITE_PORT_BYTES, MPL_MEM_BUFFER);
    MPIR_ERR_CHKANDJUMP(*upid_size == NULL || *upid == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    **upid_size = LITE_PORT_BYTES;
    const int code = lite_open_port((uint32_t) tag, *upid);
    MPIDI_LITE_CHECK(code, -1);

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

/* ---- requests and answers ---- */

enum { CALL, ANSWER, REFUSAL, TAKEN_BACK };

typedef struct {
    uint32_t kind;
    int32_t tag;                  /* the port's */
    uint64_t call;                /* the sender's of the CALL */
    char proof[LITE_PROOF_BYTES]; /* CALL only */
    uint32_t bytes;
    char data[LITE_NAME_BYTES + 64]; /* the host's */
} first_words;

/* The host's header begins with two words and ends in a name. */
#define FIRST_WORDS_MAX ((int) sizeof(((first_words *) 0)->data))

/* Callers that nobody has accepted yet, and answers that nobody has taken yet. VCI lock held. */
typedef struct kept {
    struct kept *next;
    int peer;
    first_words words;
} kept;
static kept *kept_head = NULL;
static int kept_calls = 0;
#define KEPT_CALLS_MAX 1024 /* more are refused */

static uint64_t last_call = 0; /* VCI lock held */

static int say(int peer, const first_words *words)
{
    lite_request *lite = NULL;

    return lite_am_isend(peer, MPIDI_LITE_AM_FIRST_WORDS, words,
                         offsetof(first_words, data) + words->bytes, NULL, 0, NULL, &lite);
}

/* Not to one that lets a word of ours wait: it could have any number of them kept here by calling
 * and taking none of the answers. */
static void refuse(int peer, const first_words *words)
{
    if (lite_am_waits(peer))
        return;
    const first_words refusal = {
        .kind = REFUSAL, .tag = words->tag, .call = words->call, .bytes = 0};
    say(peer, &refusal);
}

/* Callers that have died since: nobody shall accept them. A call that was delivered this moment may
 * be followed by its caller's end. VCI lock held. */
static void forget_dead_callers(void)
{
    for (kept **at = &kept_head; *at != NULL;) {
        kept *found = *at;
        if (found->words.kind != CALL || !lite_has_left(found->peer)) {
            at = &found->next;
            continue;
        }
        *at = found->next;
        MPL_free(found);
        kept_calls--;
    }
}

/* The number of a dead one may be given on once it is parted from: its call goes first. VCI lock
 * held. */
static void mark_callers(char *in_use, int peers)
{
    forget_dead_callers();
    for (const kept *at = kept_head; at != NULL; at = at->next)
        if (at->words.kind == CALL && at->peer < peers)
            in_use[at->peer] = 1;
}

/* VCI lock held, inside progress. */
void MPIDI_LITE_hear_first_words(int peer, const void *header, size_t bytes)
{
    first_words words;
    kept *made;
    const size_t fixed = offsetof(first_words, data);

    memset(&words, 0, sizeof(words));
    if (bytes < fixed || bytes > sizeof(words))
        return;
    memcpy(&words, header, bytes);
    if (words.bytes != bytes - fixed)
        return;
    if (words.kind == TAKEN_BACK) {
        for (kept **at = &kept_head; *at != NULL; at = &(*at)->next) {
            kept *found = *at;
            if (found->words.kind == CALL && found->peer == peer &&
                found->words.call == words.call) {
                *at = found->next;
                MPL_free(found);
                kept_calls--;
                break;
            }
        }
        return;
    }
    if (words.kind == CALL && kept_calls >= KEPT_CALLS_MAX)
        forget_dead_callers();
    if (words.kind == CALL && (kept_calls >= KEPT_CALLS_MAX ||
                               !lite_check_caller((uint32_t) words.tag, peer, words.proof))) {
        refuse(peer, &words);
        return;
    }
    /* Answers are for calls of ours, one for each. */
    if (words.kind != CALL) {
        if ((words.kind != ANSWER && words.kind != REFUSAL) || words.call == 0 ||
            words.call > last_call)
            return;
        for (const kept *at = kept_head; at != NULL; at = at->next)
            if (at->words.kind != CALL && at->peer == peer && at->words.call == words.call)
                return;
    }
    made = MPL_malloc(sizeof(*made), MPL_MEM_OTHER);
    if (made == NULL)
        return;
    made->next = NULL;
    made->peer = peer;
    made->words = words;
    kept_calls += words.kind == CALL;
    kept **end = &kept_head;
    while (*end != NULL)
        end = &(*end)->next;
    *end = made;
}

/* The oldest call at the port (peer -1), or what `peer` has said to call number `call` of ours. */
static bool take(int tag, int peer, uint64_t call, int *from, first_words *words)
{
    if (peer < 0)
        forget_dead_callers();
    for (kept **at = &kept_head; *at != NULL; at = &(*at)->next) {
        kept *found = *at;
        const bool wanted = peer < 0 ? found->words.kind == CALL && found->words.tag == tag
                                     : found->words.kind != CALL && found->peer == peer &&
                                           found->words.call == call;
        if (!wanted)
            continue;
        *at = found->next;
        *from = found->peer;
        *words = found->words;
        kept_calls -= words->kind == CALL;
        MPL_free(found);
        return true;
    }
    return false;
}

/* The port's number may be another port's next: who still waits at this one is sent away. */
void MPIDI_LITE_close_port(int tag)
{
    first_words words;
    int peer;

    MPIDI_LITE_LOCK();
    lite_close_port((uint32_t) tag);
    while (take(tag, -1, 0, &peer, &words))
        refuse(peer, &words);
    MPIDI_LITE_UNLOCK();
}

void MPIDI_LITE_forget_first_words(void)
{
    while (kept_head != NULL) {
        kept *next = kept_head->next;
        MPL_free(kept_head);
        kept_head = next;
    }
    kept_calls = 0;
}

int MPIDI_LITE_dynamic_send(uint64_t remote_gpid, int tag, const void *buf, int size, int timeout)
{
    int mpi_errno = MPI_SUCCESS;
    first_words words = {.kind = ANSWER, .tag = tag, .call = conversation.call};
    const int peer = MPIDI_LITE_AV(&MPIDIU_get_av(MPIDIU_GPID_GET_AVTID(remote_gpid),
                                                  MPIDIU_GPID_GET_LPID(remote_gpid)))
                         .peer;

    MPIR_FUNC_ENTER;
    MPIR_Assert(size <= FIRST_WORDS_MAX);
    MPIR_Assert(conversation.state == CALLING || conversation.state == ANSWERING);
    memcpy(words.data, buf, (size_t) size);
    words.bytes = (uint32_t) size;

    MPIDI_LITE_LOCK();
    if (conversation.state == CALLING) {
        words.kind = CALL;
        words.call = conversation.call = ++last_call;
        memcpy(words.proof, conversation.proof, sizeof(words.proof));
    }
    const int code = say(peer, &words);
    MPIDI_LITE_UNLOCK();

    const bool calling = conversation.state == CALLING;
    conversation.state = calling && code >= 0 ? CALLED : IDLE;
    if (code < 0) {
        lite_check_peer(peer); /* for its sentence */
        mpi_errno = MPIDI_LITE_port_error(lite_last_error(), __func__, __LINE__);
        if (calling)
            forget_call(remote_gpid);
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
}

int MPIDI_LITE_dynamic_recv(int tag, void *buf, int size, int timeout)
{
    int mpi_errno = MPI_SUCCESS;
    const bool calling = conversation.state == CALLED;
    const int peer = calling ? conversation.peer : -1;
    const char *failure = NULL;
    first_words words;
    int from = -1;
    double waited = 0;
    MPL_time_t start, now;
    static const first_words nothing = {0};

    MPIR_FUNC_ENTER;
    conversation.state = IDLE;
    words = nothing;
    MPL_wtime(&start);
    for (;;) {
        MPIDI_LITE_LOCK();
        const bool found = take(tag, peer, conversation.call, &from, &words);
        MPIDI_LITE_UNLOCK();
        if (found)
            break;
        if (calling && lite_check_peer(peer) < 0)
            failure = lite_last_error();
        else if (!calling && !lite_port_is_open((uint32_t) tag))
            failure = "MPI_Comm_accept at a port that is not open";
        else if (timeout != 0 && waited >= (double) timeout)
            failure = calling ? "nobody has accepted the connection in time"
                              : "nobody has connected in time";
        if (failure != NULL)
            break;
        mpi_errno = MPID_Progress_test(NULL);
        MPIR_ERR_CHECK(mpi_errno);
        MPL_wtime(&now);
        MPL_wtime_diff(&start, &now, &waited);
    }
    if (failure == NULL && words.kind == REFUSAL)
        failure = "the port does not exist any more, or its name is an old one";
    if (failure == NULL && words.bytes > (uint32_t) size)
        failure = "the other job's MPI library is another one";
    if (failure != NULL) {
        mpi_errno = MPIDI_LITE_port_error(failure, __func__, __LINE__);
        goto fn_fail;
    }
    memcpy(buf, words.data, words.bytes);
    if (!calling) {
        conversation.state = ANSWERING;
        conversation.call = words.call;
        conversation.peer = from;
    }

fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    if (calling) {
        const first_words taken_back = {.kind = TAKEN_BACK, .tag = tag, .call = conversation.call};
        uint64_t gpid;
        MPIDI_LITE_LOCK();
        if (words.kind != REFUSAL && lite_check_peer(peer) == LITE_OK)
            say(peer, &taken_back);
        MPIDI_LITE_UNLOCK();
        if (find_gpid(peer, &gpid))
            forget_call(gpid);
    }
    goto fn_exit;
}
