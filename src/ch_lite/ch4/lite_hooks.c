/* The rest of the table: which communicators there are, hooks where the module has nothing to add,
 * requests that go on to ch4's active-message code under another name, and process names. */
#include "lite_impl.h"
/* behind the host's headers, which choose what libc declares */
#include <pthread.h>

/* ---- communicators by context, for the device's questions ----
 *
 * The device asks in ordinary context with its gate held, but not always under the host's lock
 * (lite_finalize_*, lite_meet). So the table has a mutex of its own, inside of which nobody waits
 * for anything. */

#define BUCKETS 256 /* a power of two */

typedef struct known_comm {
    struct known_comm *next;
    MPIR_Comm *comm;
    uint32_t context; /* comm->recvcontext_id */
} known_comm;
static known_comm *known_comms[BUCKETS];
static pthread_mutex_t known_comms_mutex = PTHREAD_MUTEX_INITIALIZER;

static known_comm **bucket_of(uint32_t context)
{
    return &known_comms[(context >> MPIR_CONTEXT_SUBCOMM_SHIFT) & (BUCKETS - 1)];
}

/* The ranks whose messages come under the communicator's recvcontext_id. */
static bool is_rank(MPIR_Comm *comm, int peer, int32_t source)
{
    if (source != LITE_ANY_SOURCE)
        return source >= 0 && source < comm->remote_size &&
               MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, source)) == peer;
    for (int i = 0; i < comm->remote_size; i++)
        if (MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, i)) == peer)
            return true;
    return false;
}

int MPIDI_LITE_is_member(int peer, uint32_t context, int32_t source)
{
    /* point to point and collectives */
    const uint32_t of_comm = context & ~(uint32_t) MPIR_CONTEXT_SUFFIX_MASK;
    /* MPI_Intercomm_merge uses one while it looks for a context that another merge may use as well:
     * who is not in this communicator may be in that, which is not made yet. */
    const bool temporary = MPIR_CONTEXT_READ_FIELD(SUBCOMM, of_comm) == 3;
    int answer = LITE_NO_COMMUNICATOR;

    pthread_mutex_lock(&known_comms_mutex);
    for (known_comm *known = *bucket_of(of_comm); known != NULL; known = known->next) {
        if (known->context != of_comm)
            continue;
        answer = temporary ? LITE_NO_COMMUNICATOR : LITE_NOT_A_MEMBER;
        if (is_rank(known->comm, peer, source)) {
            answer = LITE_MEMBER;
            break;
        }
    }
    pthread_mutex_unlock(&known_comms_mutex);
    return answer;
}

/* Of an internal communicator, its parent's. What is sent in an intercommunicator has the context
 * of the other side, which is not known here. */
void MPIDI_LITE_name_context(uint32_t context, char *text, size_t size)
{
    const uint32_t of_comm =
        context & ~(uint32_t) (MPIR_CONTEXT_SUFFIX_MASK | MPIR_CONTEXT_SUBCOMM_MASK);
    const char *const collective =
        (context & MPIR_CONTEXT_SUFFIX_MASK) != 0 ? "a collective of " : "";

    pthread_mutex_lock(&known_comms_mutex);
    for (known_comm *known = *bucket_of(of_comm); known != NULL; known = known->next) {
        if (known->context != of_comm)
            continue;
        if (known->comm->name[0] != '\0')
            snprintf(text, size, "%s%.*s", collective, MPI_MAX_OBJECT_NAME, known->comm->name);
        else
            snprintf(text, size, "%scommunicator 0x%x", collective, (unsigned) known->comm->handle);
        break;
    }
    pthread_mutex_unlock(&known_comms_mutex);
}

bool MPIDI_LITE_shares_a_communicator(int peer)
{
    bool found = false;

    pthread_mutex_lock(&known_comms_mutex);
    for (int i = 0; i < BUCKETS && !found; i++)
        for (known_comm *known = known_comms[i]; known != NULL && !found; known = known->next)
            found = is_rank(known->comm, peer, LITE_ANY_SOURCE);
    pthread_mutex_unlock(&known_comms_mutex);
    return found;
}

/* Before anything is sent in it. */
int MPIDI_LITE_comm_pre_hook(MPIR_Comm *comm)
{
    int mpi_errno = MPI_SUCCESS;
    known_comm *known = NULL;

#if LITE_HOST_SINCE(5, 0, 0)
    /* the first one of a job: nobody knows an address yet */
    if (comm->attr & MPIR_COMM_ATTR__BOOTSTRAP) {
        mpi_errno = MPIDI_LITE_init_world();
        MPIR_ERR_CHECK(mpi_errno);
    }
#endif
    known = MPL_malloc(sizeof(*known), MPL_MEM_COMM);
    MPIR_ERR_CHKANDJUMP(known == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    known->comm = comm;
    known->context = comm->recvcontext_id;
    pthread_mutex_lock(&known_comms_mutex);
    known_comm **bucket = bucket_of(known->context);
    known->next = *bucket;
    *bucket = known;
    pthread_mutex_unlock(&known_comms_mutex);
    MPIDI_LITE_meet_members(comm);

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

/* The device has ended. Communicators that the application has never freed must not be found by the
 * next one. */
void MPIDI_LITE_forget_comms(void)
{
    pthread_mutex_lock(&known_comms_mutex);
    for (int i = 0; i < BUCKETS; i++) {
        while (known_comms[i] != NULL) {
            known_comm *next = known_comms[i]->next;
            MPL_free(known_comms[i]);
            known_comms[i] = next;
        }
    }
    pthread_mutex_unlock(&known_comms_mutex);
}

static void forget_comm(MPIR_Comm *comm)
{
    known_comm *found = NULL;

    pthread_mutex_lock(&known_comms_mutex);
    for (known_comm **at = bucket_of(comm->recvcontext_id); *at != NULL; at = &(*at)->next) {
        if ((*at)->comm == comm) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&known_comms_mutex);
    MPL_free(found);
    if (lite_peers() > MPIR_Process.size)
        lite_members_changed();
}

/* ---- nothing to add ---- */

int MPIDI_LITE_comm_post_hook(MPIR_Comm *comm)
{
    return MPI_SUCCESS;
}

int MPIDI_LITE_comm_free_hook(MPIR_Comm *comm)
{
    forget_comm(comm);
    MPIDI_LITE_part_from_strangers();
    return MPI_SUCCESS;
}

int MPIDI_LITE_comm_set_hints(MPIR_Comm *comm, MPIR_Info *info)
{
    return MPI_SUCCESS;
}

int MPIDI_LITE_type_hook(MPIR_Datatype *type)
{
    return MPI_SUCCESS;
}

int MPIDI_LITE_win_attach_hook(MPIR_Win *win, void *base, MPI_Aint size)
{
    return MPI_SUCCESS;
}

int MPIDI_LITE_win_detach_hook(MPIR_Win *win, const void *base)
{
    return MPI_SUCCESS;
}

/* ---- partitioned communication: ch4's own, without the address argument ---- */

int MPIDI_LITE_mpi_psend_init(MPIDI_LITE_psend_buffer buf, int partitions, MPI_Aint count,
                              MPI_Datatype datatype, int dest, int tag, MPIR_Comm *comm,
                              MPIR_Info *info, MPIDI_av_entry_t *av, MPIR_Request **request)
{
    return MPIDIG_mpi_psend_init(buf, partitions, count, datatype, dest, tag, comm, info, request);
}

int MPIDI_LITE_mpi_precv_init(void *buf, int partitions, MPI_Aint count, MPI_Datatype datatype,
                              int source, int tag, MPIR_Comm *comm, MPIR_Info *info,
                              MPIDI_av_entry_t *av, MPIR_Request **request)
{
    return MPIDI_LITE_PRECV_INIT(buf, partitions, count, datatype, source, tag, comm, info,
                                 request);
}

/* ---- processes ---- */

int MPIDI_LITE_rank_is_local(int rank, MPIR_Comm *comm)
{
    return MPIDI_LITE_RANK_IS_LOCAL(rank, comm);
}

#if LITE_HOST_BELOW(5, 0, 0)
int MPIDI_LITE_comm_get_gpid(MPIR_Comm *comm, int idx, uint64_t *gpid, bool is_remote)
{
    int avtid = 0, lpid = 0;

    if (comm->comm_kind == MPIR_COMM_KIND__INTRACOMM || is_remote)
        MPIDIU_comm_rank_to_pid(comm, idx, &lpid, &avtid);
    else
        MPIDIU_comm_rank_to_pid_local(comm, idx, &lpid, &avtid);

    *gpid = MPIDIU_GPID_CREATE(avtid, lpid);
    return MPI_SUCCESS;
}
#endif
