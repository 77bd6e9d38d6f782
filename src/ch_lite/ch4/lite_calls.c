/* The first words between two jobs, whichever host: names of processes, ports, and the requests and
 * answers of MPI_Comm_connect and MPI_Comm_accept. They are active messages of ours, as they have
 * to be kept until somebody accepts. */
#include "lite_calls.h"
/* behind the host's headers, which choose what libc declares */
#include <sys/random.h>

/* ---- names of processes ---- */

static const char no_device[] =
    "processes have no names before the world communicator exists "
    "(MPI_Init, or the session's first communicator)";

/* `comm` NULL: our own alone. The host names MPI_COMM_SELF where it may not exist (sessions). */
int MPIDI_LITE_get_local_upids(MPIR_Comm *comm, int **local_upid_size, char **local_upids)
{
    int mpi_errno = MPI_SUCCESS;
    const int size = comm != NULL ? comm->local_size : 1;
    int *lengths = MPL_malloc((size_t) size * sizeof(int), MPL_MEM_ADDRESS);
    char *names = MPL_malloc((size_t) size * LITE_NAME_BYTES, MPL_MEM_BUFFER);

    MPIR_FUNC_ENTER;
    if (lite_peers() == 0) {
        mpi_errno = MPIDI_LITE_port_error(no_device, __func__, __LINE__);
        goto fn_fail;
    }
    MPIR_ERR_CHKANDJUMP(lengths == NULL || names == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    for (int i = 0; i < size; i++) {
        const int peer =
            comm != NULL ? MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, i)) : MPIR_Process.rank;
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

/* ---- ports ---- */

/* Called by the host's MPID_Open_port and MPID_Close_port (see scripts/install-device), as only
 * they know when a port begins and ends. */
int MPIDI_LITE_open_port(int tag, int **upid_size, char **upid)
{
    int mpi_errno = MPI_SUCCESS;

    if (lite_peers() == 0)
        return MPIDI_LITE_port_error(no_device, __func__, __LINE__);
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

/* Callers that nobody has accepted yet, answers and data that nobody has taken yet. VCI lock held.
 */
typedef struct kept {
    struct kept *next;
    int peer;
    MPIDI_LITE_first_words words;
    void *data; /* of an exchange */
    size_t bytes;
} kept;
static kept *kept_head = NULL;
static int kept_calls = 0;
#define KEPT_CALLS_MAX 1024 /* more are refused */

/* Calls of ours have the numbers behind a random one. VCI lock held. */
static uint64_t call_base, calls_made;

uint64_t MPIDI_LITE_new_call(void)
{
    if (calls_made == 0 && getrandom(&call_base, sizeof(call_base), GRND_NONBLOCK) < 0)
        call_base = (uint64_t) (uintptr_t) &call_base ^ (uint64_t) getpid() << 32;
    calls_made++;
    if (call_base + calls_made == 0) /* of no call */
        calls_made++;
    return call_base + calls_made;
}

static bool is_call_of_ours(uint64_t call)
{
    return call != 0 && call - call_base - 1 < calls_made;
}

MPIDI_LITE_first_words MPIDI_LITE_make_words(uint32_t kind, int tag,
                                             const MPIDI_LITE_conversation_t *conversation,
                                             const void *header, int bytes)
{
    MPIDI_LITE_first_words words = {
        .kind = kind, .tag = tag, .call = conversation->call, .bytes = (uint32_t) bytes};

    MPIR_Assert(bytes <= MPIDI_LITE_FIRST_WORDS_MAX);
    memcpy(words.data, header, (size_t) bytes);
    if (kind == MPIDI_LITE_CALL)
        memcpy(words.proof, conversation->proof, sizeof(words.proof));
    return words;
}

int MPIDI_LITE_say(int peer, const MPIDI_LITE_first_words *words, const void *data, size_t bytes)
{
    const size_t header_bytes = offsetof(MPIDI_LITE_first_words, data) + words->bytes;
    lite_request *lite = NULL;
    MPIDI_LITE_am_send_t *send = NULL;

    if (bytes > 0) {
        send = MPIDI_LITE_am_copy_to_send(data, bytes);
        if (send == NULL)
            return LITE_ERR_NOMEM;
    }
    const int code = lite_am_isend(peer, MPIDI_LITE_AM_FIRST_WORDS, words, header_bytes,
                                   send != NULL ? send->packed : NULL, bytes,
                                   send != NULL ? MPIDI_LITE_am_cookie(send) : NULL, &lite);
    if (send != NULL && code != LITE_PENDING)
        MPIDI_LITE_am_send_done(send);
    return code < 0 ? code : LITE_OK;
}

/* Not to one that lets a word of ours wait: it could have any number of them kept here by calling
 * and taking none of the answers. */
static void refuse(int peer, const MPIDI_LITE_first_words *words)
{
    if (lite_am_waits(peer))
        return;
    const MPIDI_LITE_first_words refusal = {
        .kind = MPIDI_LITE_REFUSAL, .tag = words->tag, .call = words->call, .bytes = 0};
    MPIDI_LITE_say(peer, &refusal, NULL, 0);
}

/* Takes the element at `at` out of the list. */
static kept *unlink_kept(kept **at)
{
    kept *found = *at;

    *at = found->next;
    kept_calls -= found->words.kind == MPIDI_LITE_CALL;
    return found;
}

static void drop_kept(kept **at)
{
    kept *found = unlink_kept(at);

    MPL_free(found->data);
    MPL_free(found);
}

/* Callers that have died since: nobody shall accept them. A call that was delivered this moment may
 * be followed by its caller's end. */
static void forget_dead_callers(void)
{
    for (kept **at = &kept_head; *at != NULL;) {
        if ((*at)->words.kind == MPIDI_LITE_CALL && lite_has_left((*at)->peer))
            drop_kept(at);
        else
            at = &(*at)->next;
    }
}

/* The number of a dead one may be given on once it is parted from: its call goes first. */
char *MPIDI_LITE_find_callers(int *peers)
{
    char *in_use;

    *peers = lite_peers();
    if (*peers <= MPIR_Process.size)
        return NULL; /* the usual case, and before and after the device */
    in_use = MPL_calloc((size_t) *peers, 1, MPL_MEM_OTHER);
    if (in_use == NULL)
        return NULL;
    const bool locked = MPIDI_LITE_lock_if_not_held();
    forget_dead_callers();
    for (const kept *at = kept_head; at != NULL; at = at->next)
        if (at->words.kind == MPIDI_LITE_CALL && at->peer < *peers)
            in_use[at->peer] = 1;
    if (locked)
        MPIDI_LITE_UNLOCK();
    return in_use;
}

void MPIDI_LITE_forget_words_of(int peer)
{
    for (kept **at = &kept_head; *at != NULL;) {
        if ((*at)->peer == peer)
            drop_kept(at);
        else
            at = &(*at)->next;
    }
}

void MPIDI_LITE_forget_call(int peer, uint64_t call)
{
    for (kept **at = &kept_head; *at != NULL;) {
        if ((*at)->peer == peer && (*at)->words.call == call && call != 0)
            drop_kept(at);
        else
            at = &(*at)->next;
    }
}

bool MPIDI_LITE_may_carry(const void *header, size_t header_bytes, uint64_t data_bytes)
{
    uint32_t kind;

    if (data_bytes == 0)
        return true;
    if (header_bytes < sizeof(kind) || data_bytes > MPIDI_LITE_EXCHANGE_BYTES_MAX)
        return false;
    memcpy(&kind, header, sizeof(kind));
    return kind == MPIDI_LITE_EXCHANGE;
}

/* The first one that is of the kind, from the peer (-1: anybody), and about the call. */
static kept **find_kept(uint32_t kind, int peer, uint64_t call)
{
    kept **at = &kept_head;

    while (*at != NULL && !((*at)->words.kind == kind && (peer < 0 || (*at)->peer == peer) &&
                            (*at)->words.call == call))
        at = &(*at)->next;
    return at;
}

bool MPIDI_LITE_has_called(int peer)
{
    for (const kept *at = kept_head; at != NULL; at = at->next)
        if (at->peer == peer && at->words.kind == MPIDI_LITE_CALL)
            return true;
    return false;
}

/* Whether the words belong to a call that waits here, or is being connected. */
static bool is_of_a_call(int peer, uint64_t call)
{
    return *find_kept(MPIDI_LITE_CALL, peer, call) != NULL ||
           MPIDI_LITE_talks_with(peer, call, true) || MPIDI_LITE_talks_with(peer, call, false);
}

/* Answers are for calls of ours, one for each. */
static bool is_wanted_answer(int peer, const MPIDI_LITE_first_words *words)
{
    return is_call_of_ours(words->call) &&
           *find_kept(MPIDI_LITE_ANSWER, peer, words->call) == NULL &&
           *find_kept(MPIDI_LITE_REFUSAL, peer, words->call) == NULL;
}

/* Data belongs to a call, or comes from a rank of the job or from a process in a communicator with
 * us. Of a process of another job not more than MPIDI_LITE_EXCHANGE_BYTES_MAX waits at a time. */
static bool is_wanted_exchange(int peer, const MPIDI_LITE_first_words *words, size_t bytes)
{
    const bool own_job = peer < MPIR_Process.size;
    size_t waiting = bytes;

    if (words->bytes != sizeof(uint32_t) || bytes == 0)
        return false;
    if (words->call != 0 ? !is_of_a_call(peer, words->call)
                         : !own_job && !MPIDI_LITE_exchanges_with(peer))
        return false;
    for (const kept *at = kept_head; at != NULL && !own_job; at = at->next)
        if (at->peer == peer && at->words.kind == MPIDI_LITE_EXCHANGE)
            waiting += at->bytes + sizeof(*at);
    return own_job || waiting <= MPIDI_LITE_EXCHANGE_BYTES_MAX;
}

/* An accepted call that is taken back is an answer to who waits for it; others never were. */
static bool is_wanted(int peer, const MPIDI_LITE_first_words *words, size_t bytes)
{
    switch (words->kind) {
    case MPIDI_LITE_CALL:
        if (kept_calls >= KEPT_CALLS_MAX)
            forget_dead_callers();
        return kept_calls < KEPT_CALLS_MAX &&
               lite_check_caller((uint32_t) words->tag, peer, words->proof) != 0;
    case MPIDI_LITE_ANSWER:
    case MPIDI_LITE_REFUSAL: return is_wanted_answer(peer, words);
    case MPIDI_LITE_TAKEN_BACK:
        return MPIDI_LITE_talks_with(peer, words->call, true) &&
               *find_kept(MPIDI_LITE_TAKEN_BACK, peer, words->call) == NULL;
    case MPIDI_LITE_EXCHANGE: return is_wanted_exchange(peer, words, bytes);
    default: return false;
    }
}

/* VCI lock held, inside progress. */
void MPIDI_LITE_hear_first_words(int peer, const void *header, size_t header_bytes,
                                 const void *data, size_t bytes)
{
    MPIDI_LITE_first_words words;
    const size_t fixed = offsetof(MPIDI_LITE_first_words, data);

    memset(&words, 0, sizeof(words));
    if (header_bytes < fixed || header_bytes > sizeof(words))
        return;
    memcpy(&words, header, header_bytes);
    if (words.bytes != header_bytes - fixed)
        return;
    if (words.kind == MPIDI_LITE_TAKEN_BACK &&
        *find_kept(MPIDI_LITE_CALL, peer, words.call) != NULL) {
        MPIDI_LITE_forget_call(peer, words.call);
        return;
    }
    if (bytes > 0 && words.kind != MPIDI_LITE_EXCHANGE)
        return;
    if (!is_wanted(peer, &words, bytes)) {
        if (words.kind == MPIDI_LITE_CALL)
            refuse(peer, &words);
        return;
    }
    kept *made = MPL_calloc(1, sizeof(*made), MPL_MEM_OTHER);
    if (made == NULL)
        return;
    if (bytes > 0) {
        made->data = MPL_malloc(bytes, MPL_MEM_OTHER);
        if (made->data == NULL) {
            MPL_free(made);
            return;
        }
        memcpy(made->data, data, bytes);
        made->bytes = bytes;
    }
    made->peer = peer;
    made->words = words;
    kept_calls += words.kind == MPIDI_LITE_CALL;
    kept **end = &kept_head;
    while (*end != NULL)
        end = &(*end)->next;
    *end = made;
}

bool MPIDI_LITE_take_call(int tag, int *from, MPIDI_LITE_first_words *words)
{
    kept **at = &kept_head;

    forget_dead_callers();
    while (*at != NULL && !((*at)->words.kind == MPIDI_LITE_CALL && (*at)->words.tag == tag))
        at = &(*at)->next;
    if (*at == NULL)
        return false;
    kept *found = unlink_kept(at);
    *from = found->peer;
    *words = found->words;
    MPL_free(found);
    return true;
}

bool MPIDI_LITE_take_answer(int peer, uint64_t call, MPIDI_LITE_first_words *words)
{
    kept **at = find_kept(MPIDI_LITE_ANSWER, peer, call);

    if (*at == NULL)
        at = find_kept(MPIDI_LITE_REFUSAL, peer, call);
    if (*at == NULL)
        return false;
    *words = (*at)->words;
    drop_kept(at);
    return true;
}

bool MPIDI_LITE_take_exchange(int peer, const MPIDI_LITE_first_words *which, void **data,
                              size_t *bytes)
{
    for (kept **at = &kept_head; *at != NULL; at = &(*at)->next) {
        const MPIDI_LITE_first_words *words = &(*at)->words;
        if (words->kind != MPIDI_LITE_EXCHANGE || (*at)->peer != peer ||
            words->call != which->call || words->tag != which->tag ||
            memcmp(words->data, which->data, sizeof(uint32_t)) != 0)
            continue;
        kept *found = unlink_kept(at);
        *data = found->data;
        *bytes = found->bytes;
        MPL_free(found);
        return true;
    }
    return false;
}

bool MPIDI_LITE_is_taken_back(int peer, uint64_t call)
{
    return *find_kept(MPIDI_LITE_TAKEN_BACK, peer, call) != NULL;
}

/* The port's number may be another port's next: who still waits at this one is sent away. */
void MPIDI_LITE_close_port(int tag)
{
    MPIDI_LITE_first_words words;
    int peer;

    if (lite_peers() == 0)
        return; /* its ports have ended with the device */
    MPIDI_LITE_LOCK();
    lite_close_port((uint32_t) tag);
    while (MPIDI_LITE_take_call(tag, &peer, &words)) {
        MPIDI_LITE_forget_call(peer, words.call);
        refuse(peer, &words);
    }
    MPIDI_LITE_UNLOCK();
}

void MPIDI_LITE_forget_first_words(void)
{
    while (kept_head != NULL)
        drop_kept(&kept_head);
    MPIDI_LITE_forget_expected();
}

const char *MPIDI_LITE_why_not_wait(int tag, int peer, double waited_s, int timeout_s)
{
    if (peer >= 0 && lite_check_peer(peer) < 0)
        return lite_last_error();
    if (peer < 0 && !lite_port_is_open((uint32_t) tag))
        return "MPI_Comm_accept at a port that is not open";
    if (timeout_s == 0 || waited_s < (double) timeout_s)
        return NULL;
    return peer >= 0 ? "nobody has accepted the connection in time"
                     : "nobody has connected in time";
}

const char *MPIDI_LITE_why_not_connect(const MPIDI_LITE_first_words *words, int room)
{
    if (words->kind == MPIDI_LITE_REFUSAL)
        return "the port does not exist any more, or its name is an old one";
    if (words->bytes > (uint32_t) room)
        return "the other job's MPI library is another one";
    return NULL;
}
