/* Start and end: knobs and listener at init_local, address exchange through PMI at init_world, an
 * orderly end in the finalize hook. */
#include "lite_impl.h"
/* behind the host's headers, which choose what libc declares */
#include <pthread.h>
#include <time.h>
#if LITE_HOST_BELOW(5, 0, 0)
#include "mpidu_bc.h"
#endif

/* What has been started and must be ended. */
static enum {
    STARTED_NOTHING,
    STARTED_LOCAL, /* the listener is open; nobody knows us */
    STARTED_WORLD  /* connections may exist */
} started = STARTED_NOTHING;

/* What a process publishes. */
typedef struct {
    char address[LITE_ADDRESS_BYTES];
    char machine[40]; /* equal on all processes that share a kernel */
} business_card;

/* Who shares our processors decides how to wait. The host's node map cannot be asked: it is by host
 * name, which network namespaces and containers have one each of, and MPIR_CVAR_NOLOCAL makes every
 * rank a node of its own. The kernel's boot id is one per machine. */
static void read_machine_name(char *name, size_t size)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    memset(name, 0, size);
    if (file == NULL || fgets(name, (int) size, file) == NULL) {
        memset(name, 0, size);
        gethostname(name, size - 1);
    }
    if (file != NULL)
        fclose(file);
}

/* Ours: made in init_local, published in init_world. */
static business_card card;

/* Why this process cannot start; the others learn it from its card. Empty: it can. */
static char own_fault[1024];

/* How long one that cannot start waits for the others to come into MPI_Init, and how long one that
 * another speaks for waits to be ended. */
#define PATIENCE_S 1
#define END_S 3

/* Fails the start: of the whole job, as the others wait for us in MPI_Init, and the host would end
 * this process alone (it has no communicator yet). The text is on the terminal by then: Hydra
 * prints nothing of what PMI is told. */
static void end_job(const char *text)
{
    lite_say_last_words(text);
    if (MPIR_Process.size > 1 || MPIR_Process.has_parent)
        MPIR_pmi_abort(1, text);
}

static int start_error(const char *text, const char *function, int line)
{
    end_job(text);
    return MPIDI_LITE_error_text(MPIR_ERR_FATAL, text, function, line);
}

/* The same when another process says it as well and ends the job: once is enough, so it has a while
 * for that. */
static int start_error_elsewhere(const char *text, const char *function, int line)
{
    struct timespec rest = {.tv_sec = END_S};

    while (nanosleep(&rest, &rest) != 0) {}
    return start_error(text, function, line);
}

/* A process that cannot start publishes that, so that one of them can speak for all. But somebody
 * may be late in MPI_Init, and the host has a barrier in PMI before the exchange: this thread does
 * not wait longer. Its word to PMI comes in the middle of the other thread's call, which does not
 * go on any more. */
static pthread_mutex_t patience_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t patience_news = PTHREAD_COND_INITIALIZER;
static pthread_t patience;
static bool impatient; /* the thread runs */
static bool patience_over;

static void *lose_patience(void *unused)
{
    struct timespec end;
    int rc = 0;

    /* one after the other: the first ends the rest, so that it is said once */
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += MPL_MIN(MPIR_Process.rank, 100) * 20000000L;
    end.tv_sec += PATIENCE_S + end.tv_nsec / 1000000000L;
    end.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&patience_lock);
    while (!patience_over && rc == 0)
        rc = pthread_cond_timedwait(&patience_news, &patience_lock, &end);
    if (!patience_over)
        end_job(own_fault);
    pthread_mutex_unlock(&patience_lock);
    return unused;
}

/* Without a thread it waits for the others. */
static void begin_patience(void)
{
    patience_over = false;
    impatient = pthread_create(&patience, NULL, lose_patience, NULL) == 0;
}

static void end_patience(void)
{
    if (!impatient)
        return;
    pthread_mutex_lock(&patience_lock);
    patience_over = true;
    pthread_cond_signal(&patience_news);
    pthread_mutex_unlock(&patience_lock);
    pthread_join(patience, NULL);
    impatient = false;
}

/* Keeps the fault for init_world, with who we are. */
static void keep_fault(const char *text)
{
    char host[64] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(own_fault, sizeof(own_fault), "rank %d on host %s cannot start: %s", MPIR_Process.rank,
             host, text);
}

int MPIDI_LITE_init_local(int *tag_bits)
{
    int mpi_errno = MPI_SUCCESS;

    MPIR_FUNC_ENTER;

#if LITE_HOST_BELOW(4, 2, 0)
    if (MPIDI_LITE_VCIS() != 1) {
        mpi_errno = start_error(
            "MPIR_CVAR_CH4_NUM_VCIS must be 1 and MPIR_CVAR_CH4_RESERVE_VCIS 0, "
            "or unset, as this device has one VCI",
            __func__, __LINE__);
        goto fn_fail;
    }
#endif
    const int empty = MPIDI_LITE_find_empty_entry();
    if (empty >= 0) {
        char text[128];
        snprintf(text, sizeof(text),
                 "this MPICH (%s) calls function %d of the device, which has none", MPICH_VERSION,
                 empty);
        mpi_errno = start_error(text, __func__, __LINE__);
        goto fn_fail;
    }

    memset(&card, 0, sizeof(card));
    own_fault[0] = '\0';
    if (lite_init_local(card.address) < 0) {
        keep_fault(lite_last_error());
        begin_patience();
    } else {
        started = STARTED_LOCAL;
    }
    MPIDI_LITE_register_tools();
    read_machine_name(card.machine, sizeof(card.machine));

    /* The envelope's tag is an int32: 31 bits keep it non-negative, error bits included, as
     * LITE_ANY_TAG must stay apart. */
    *tag_bits = MPIR_TAG_BITS_DEFAULT;

    lite_am_set_callback(MPIDI_LITE_am_deliver, NULL);
    lite_am_set_check(MPIDI_LITE_am_check);
    lite_set_member_callback(MPIDI_LITE_is_member);
    lite_set_context_name(MPIDI_LITE_name_context);

    if (MPIR_CVAR_DEBUG_SUMMARY && MPIR_Process.rank == 0) {
        printf("==== lite netmod ====\n");
        printf("tag_bits: %d\n", *tag_bits);
        printf("=====================\n");
    }

fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

/* Every process's card, in rank order, to be given back by free_cards(). */
#if LITE_HOST_SINCE(5, 0, 0)
static int exchange_cards(business_card **cards)
{
    const size_t bytes = (size_t) MPIR_Process.size * sizeof(card);
    int mpi_errno = MPI_SUCCESS;

    *cards = MPL_malloc(bytes, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(*cards == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    if (MPIR_Process.size == 1) {
        **cards = card;
    } else {
        mpi_errno =
            MPIR_pmi_allgather(&card, sizeof(card), *cards, sizeof(card), MPIR_PMI_DOMAIN_ALL);
        MPIR_ERR_CHECK(mpi_errno);
    }

fn_exit:
    return mpi_errno;
fn_fail:
    MPL_free(*cards);
    *cards = NULL;
    goto fn_exit;
}

static int free_cards(business_card *cards)
{
    MPL_free(cards);
    return MPI_SUCCESS;
}
#else
static int exchange_cards(business_card **cards)
{
    int unused_length; /* is not set when all cards have the same length */

    return MPIDU_bc_table_create(MPIR_Process.rank, MPIR_Process.size, MPIR_Process.node_map, &card,
                                 sizeof(card), TRUE, FALSE, (void **) cards, &unused_length);
}

static int free_cards(business_card *cards)
{
    return MPIDU_bc_table_destroy();
}
#endif

int MPIDI_LITE_init_world(void)
{
    int mpi_errno = MPI_SUCCESS;
    const int rank = MPIR_Process.rank;
    const int size = MPIR_Process.size;
    business_card *cards = NULL;
    char *table = NULL;
    bool have_cards = false;
    int on_this_machine = 0;
    int failed, code;

    MPIR_FUNC_ENTER;

    mpi_errno = exchange_cards(&cards);
    end_patience();
    if (mpi_errno != MPI_SUCCESS && own_fault[0] != '\0')
        mpi_errno = start_error(own_fault, __func__, __LINE__);
    MPIR_ERR_CHECK(mpi_errno);
    have_cards = true;

    table = MPL_malloc((size_t) size * LITE_ADDRESS_BYTES, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(table == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    for (int i = 0; i < size; i++) {
        memcpy(table + (size_t) i * LITE_ADDRESS_BYTES, cards[i].address, LITE_ADDRESS_BYTES);
        if (memcmp(cards[i].machine, card.machine, sizeof(card.machine)) == 0)
            on_this_machine++;
        MPIDI_LITE_AV(MPIDI_LITE_WORLD_AV(i)).peer = i;
    }

    failed = lite_find_failed(table, size);
    if (failed >= 0) {
        /* A card has room for a short reason, its owner knows the whole one. */
        mpi_errno = failed == rank ? start_error(own_fault, __func__, __LINE__)
                                   : start_error_elsewhere(lite_last_error(), __func__, __LINE__);
        goto fn_fail;
    }

    /* Known only now: the host has set MPIR_Process.tag_bits after init_local. */
#ifdef HAVE_TAG_ERROR_BITS
    lite_set_tag_ignore_bits(MPIR_TAG_ERROR_BIT | MPIR_TAG_PROC_FAILURE_BIT);
#endif

    code = lite_init_world(rank, size, table, on_this_machine,
                           MPIR_ThreadInfo.thread_provided == MPI_THREAD_MULTIPLE);
    if (code == LITE_ERR_JOB) {
        mpi_errno = rank == 0 ? start_error(lite_last_error(), __func__, __LINE__)
                              : start_error_elsewhere(lite_last_error(), __func__, __LINE__);
        goto fn_fail;
    } else if (code < 0) {
        keep_fault(lite_last_error());
        mpi_errno = start_error(own_fault, __func__, __LINE__);
        goto fn_fail;
    }
    started = STARTED_WORLD;
    MPIDI_LITE_forget_shared_memory();

fn_exit:
    MPL_free(table);
    if (have_cards) {
        const int free_errno = free_cards(cards);
        if (mpi_errno == MPI_SUCCESS)
            mpi_errno = free_errno;
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

/* MPI_Allgatherv goes round in pieces, of 32 KB by default: over TCP each is one more wait. What
 * the user has set stays. */
bool MPIDI_LITE_cuts_allgatherv;
static void tune_collectives(void)
{
    MPIDI_LITE_cuts_allgatherv = getenv("MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE") == NULL &&
                                 getenv("MPICH_ALLGATHERV_PIPELINE_MSG_SIZE") == NULL &&
                                 MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE <=
                                     MPIDI_LITE_ALLGATHERV_PIECE; /* ours, the second time */
    if (MPIDI_LITE_cuts_allgatherv)
        MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE = MPIDI_LITE_ALLGATHERV_PIECE;
}

/* The host puts its locks into force after this, where the world communicator comes first. */
int MPIDI_LITE_post_init(void)
{
#if LITE_HOST_SINCE(4, 2, 0) && LITE_HOST_BELOW(5, 0, 0)
    MPIDI_NM_native_func->mpi_isend = MPIDI_LITE_mpi_isend;
#endif
    lite_set_thread_multiple(MPIR_ThreadInfo.thread_provided == MPI_THREAD_MULTIPLE);
    tune_collectives();
    MPIDI_LITE_start_host_work();
    return MPI_SUCCESS;
}

/* The host asks for MPIR_CVAR_CH4_NUM_VCIS of them and takes what it gets. */
#if LITE_HOST_SINCE(5, 0, 0)
/* In MPI_COMM_WORLD only, where 5.0 has no other place for what belongs after the wire-up. */
int MPIDI_LITE_comm_set_vcis(MPIR_Comm *comm, int num_implicit, int num_reserved,
                             MPIDI_num_vci_t *all_num_vcis)
{
    for (int i = 0; i < comm->local_size; i++)
        all_num_vcis[i].n_vcis = all_num_vcis[i].n_total_vcis = 1;
    return MPIDI_LITE_post_init();
}
#elif LITE_HOST_SINCE(4, 2, 0)
/* Next come an allgather of all ranks, a barrier in shared memory, and post_init. That barrier
 * polls nothing: a message of the allgather that is here until its connection is up would not leave
 * any more, and a rank on another node that waits for it, and that our neighbour waits for, would
 * never get it. So these sends leave before they return. Every rank gets there, as it polls until
 * it has received all that is for it. */
int MPIDI_LITE_init_vcis(int wanted, int *actual)
{
    *actual = 1;
    MPIDI_NM_native_func->mpi_isend = MPIDI_LITE_isend_in_init;
    return MPI_SUCCESS;
}

int MPIDI_LITE_isend_in_init(const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank,
                             int tag, MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av,
                             MPIR_Request **request)
{
    int mpi_errno = MPIDI_LITE_mpi_isend(buf, count, datatype, rank, tag, comm, attr, av, request);
    int flush_code;

    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_LITE_LOCK();
    flush_code = lite_flush();
    MPIDI_LITE_UNLOCK();
    MPIDI_LITE_CHECK(flush_code, -1);

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}
#endif

/* Where nobody waits for the others, who is in MPI_Finalize already may be gone any time. */
void MPIDI_LITE_finalize_begins(void)
{
    if (started == STARTED_WORLD && !MPIDI_LITE_FINALIZE_IS_COLLECTIVE)
        lite_finalize_quiesce();
}

/* The user's requests are complete by now, or were freed by him (MPI_Request_free) and may still be
 * on their way. */
int MPIDI_LITE_mpi_finalize_hook(void)
{
    int mpi_errno = MPI_SUCCESS;
    int flush_code;

    MPIR_FUNC_ENTER;

    if (started == STARTED_WORLD) {
        MPIDI_LITE_LOCK();
        flush_code = lite_flush();
        lite_finalize_goodbye();
        mpi_errno = MPIDI_LITE_drain_completions();
        /* before the barrier: after it a peer may be gone any time */
        lite_finalize_quiesce();
        MPIDI_LITE_UNLOCK();
        MPIR_ERR_CHECK(mpi_errno);
        MPIDI_LITE_CHECK(flush_code, -1);

        if (MPIDI_LITE_FINALIZE_IS_COLLECTIVE)
            mpi_errno = MPIDI_LITE_last_barrier();
        MPIR_ERR_CHECK(mpi_errno);
        MPIDI_LITE_free_unused_tables();
    }

fn_exit:
    if (started != STARTED_NOTHING) {
        lite_finalize_close();
        MPIDI_LITE_forget_first_words();
        MPIDI_LITE_forget_comms();
        MPIDI_LITE_forget_host_work();
        started = STARTED_NOTHING;
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    goto fn_exit;
}
