/* Start and end: knobs and listener at init_local, address exchange through PMI at init_world, an orderly end in the finalize hook. */
#include "lite_impl.h"
#include "mpidu_bc.h"

/* What has been started and must be ended. */
static enum {
    STARTED_NOTHING,
    STARTED_LOCAL,              /* the listener is open; nobody knows us */
    STARTED_WORLD               /* connections may exist */
} started = STARTED_NOTHING;

/* What a process publishes. */
typedef struct {
    char address[LITE_ADDRESS_BYTES];
    char machine[40];           /* equal on all processes that share a kernel */
} business_card;

/* Who shares our processors decides how to wait. The host's node map cannot be asked: it is by host name, which network namespaces
 * and containers have one each of, and MPIR_CVAR_NOLOCAL makes every rank a node of its own. The kernel's boot id is one per machine. */
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

/* What fails here ends the process. */
static int start_error(const char *text, const char *function, int line)
{
    lite_say_last_words(text);
    return MPIDI_LITE_error_text(MPIR_ERR_FATAL, text, function, line);
}

int MPIDI_LITE_init_local(int *tag_bits)
{
    int mpi_errno = MPI_SUCCESS;

    MPIR_FUNC_ENTER;

    if (MPIDI_global.n_vcis != 1) {
        mpi_errno = start_error("MPIR_CVAR_CH4_NUM_VCIS must be 1 or unset, as this device has one VCI",
                                __func__, __LINE__);
        goto fn_fail;
    }

    memset(&card, 0, sizeof(card));
    if (lite_init_local(card.address) < 0) {
        mpi_errno = start_error(lite_last_error(), __func__, __LINE__);
        goto fn_fail;
    }
    started = STARTED_LOCAL;
    MPIDI_LITE_register_tools();
    read_machine_name(card.machine, sizeof(card.machine));

    /* The envelope's tag is an int32: 31 bits keep it non-negative, error bits included, as LITE_ANY_TAG must stay apart. */
    *tag_bits = MPIR_TAG_BITS_DEFAULT;

    lite_am_set_callback(MPIDI_LITE_am_deliver, NULL);

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

int MPIDI_LITE_init_world(void)
{
    int mpi_errno = MPI_SUCCESS;
    const int rank = MPIR_Process.rank;
    const int size = MPIR_Process.size;
    business_card *cards = NULL;
    char *table = NULL;
    bool have_cards = false;
    int unused_length;          /* is not set when all cards have the same length */
    int on_this_machine = 0;

    MPIR_FUNC_ENTER;

    mpi_errno = MPIDU_bc_table_create(rank, size, MPIR_Process.node_map, &card, sizeof(card), TRUE,
                                      FALSE, (void **) &cards, &unused_length);
    MPIR_ERR_CHECK(mpi_errno);
    have_cards = true;

    table = MPL_malloc((size_t) size * LITE_ADDRESS_BYTES, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(table == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    for (int i = 0; i < size; i++) {
        memcpy(table + (size_t) i * LITE_ADDRESS_BYTES, cards[i].address, LITE_ADDRESS_BYTES);
        if (memcmp(cards[i].machine, card.machine, sizeof(card.machine)) == 0)
            on_this_machine++;
        MPIDI_LITE_AV(&MPIDIU_get_av(0, i)).peer = i;
    }

    /* Known only now: the host has set MPIR_Process.tag_bits after init_local. */
#ifdef HAVE_TAG_ERROR_BITS
    lite_set_tag_ignore_bits(MPIR_TAG_ERROR_BIT | MPIR_TAG_PROC_FAILURE_BIT);
#endif

    if (lite_init_world(rank, size, table, on_this_machine,
                        MPIR_ThreadInfo.thread_provided == MPI_THREAD_MULTIPLE) < 0) {
        mpi_errno = start_error(lite_last_error(), __func__, __LINE__);
        goto fn_fail;
    }
    started = STARTED_WORLD;
    MPIDI_LITE_forget_shared_memory();

  fn_exit:
    MPL_free(table);
    if (have_cards) {
        const int destroy_errno = MPIDU_bc_table_destroy();
        if (mpi_errno == MPI_SUCCESS)
            mpi_errno = destroy_errno;
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

#if defined(MPICH_IS_THREADED) && MPICH_THREAD_LEVEL == MPI_THREAD_MULTIPLE
/* One pass of the host's progress in the helper thread. With a lock for all of MPI that one is taken, as by the host's own progress thread (init_async.c); with
 * a lock per VCI this macro is empty, and the progress takes its locks itself. An error is kept by the request or comes again in the application's own call. */
static void host_progress(void)
{
    MPID_THREAD_CS_ENTER(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
    MPID_Progress_test(NULL);
    MPID_THREAD_CS_EXIT(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
}

/* Schedules of nonblocking collectives, of either kind. The second one is declared in a header of src/mpi/coll that the device does not see. */
int MPII_TSP_scheds_are_pending(void);
static int host_pending(void)
{
    return MPIDU_Sched_are_pending() || MPII_TSP_scheds_are_pending();
}

/* The helper thread makes a second thread in MPI, whatever the application asked for, so the host's locks must be in force. Same as with MPIR_CVAR_ASYNC_PROGRESS:
 * the application is told that it has MPI_THREAD_MULTIPLE. */
static void start_event_driven_mode(void)
{
    if (!lite_has_helper())
        return;
    MPIR_ThreadInfo.thread_provided = MPI_THREAD_MULTIPLE;
    lite_set_host_work(host_progress, host_pending);
}
#else
static void start_event_driven_mode(void)
{
}
#endif

/* The host puts its locks into force after this. */
int MPIDI_LITE_post_init(void)
{
    lite_set_thread_multiple(MPIR_ThreadInfo.thread_provided == MPI_THREAD_MULTIPLE);
    start_event_driven_mode();
    return MPI_SUCCESS;
}

/* The user's requests are complete by now, or were freed by him (MPI_Request_free) and may still be on their way. */
int MPIDI_LITE_mpi_finalize_hook(void)
{
    int mpi_errno = MPI_SUCCESS;
    int flush_code;

    MPIR_FUNC_ENTER;

    if (started == STARTED_WORLD) {
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(MPIDI_LITE_VCI).lock);
        flush_code = lite_finalize_flush();
        lite_finalize_goodbye();
        mpi_errno = MPIDI_LITE_drain_completions();
        /* before the barrier: after it a peer may be gone any time */
        lite_finalize_quiesce();
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(MPIDI_LITE_VCI).lock);
        MPIR_ERR_CHECK(mpi_errno);
        MPIDI_LITE_CHECK(flush_code, -1);

        /* Nobody closes a connection that another still reads from. */
        mpi_errno = MPIR_pmi_barrier();
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    if (started != STARTED_NOTHING) {
        lite_finalize_close();
        MPIDI_LITE_forget_first_words();
        started = STARTED_NOTHING;
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
