/* The host's own progress in a thread of the device's, so that schedules of nonblocking collectives
 * and active messages (accumulates, locks of windows) move while the application computes. With
 * LITE_CONTROLLER=thread that is the helper thread, from the start. With sigio and
 * LITE_HOST_THREAD=on it is a thread that the handler wakes when something of that kind has come,
 * and that is not there, nor are the host's locks in force, before the first window or nonblocking
 * collective. There the application has not asked for MPI_THREAD_MULTIPLE, so its operations are
 * not called in the thread: a schedule that uses one (MPI_Op_create) moves in its calls only. */
#include "lite_impl.h"
/* behind the host's headers, which choose what libc declares */
#include <pthread.h>

#if defined(MPICH_IS_THREADED) && MPICH_THREAD_LEVEL == MPI_THREAD_MULTIPLE

/* The second one is declared in a header of src/mpi/coll that the device does not see. */
int MPII_TSP_scheds_are_pending(void);
static int schedules_pending(void)
{
    return MPIDU_Sched_are_pending() || MPII_TSP_scheds_are_pending();
}

/* With a lock for all of MPI that one is taken, as by the host's own progress thread
 * (init_async.c); with a lock per VCI this macro is empty, and the progress takes its locks itself.
 * An error is kept by the request or comes again in the application's own call. */
static void progress(void)
{
    MPID_THREAD_CS_ENTER(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
    MPID_Progress_test(NULL);
    MPID_THREAD_CS_EXIT(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
}

/* ---- sigio: from the first use on ---- */

static bool may_begin; /* on demand; the same from start to end, as it pairs locks */
static bool on_demand; /* the device's thread is there */
static bool refused;   /* it cannot be had */

/* Operations of the application's. A schedule that uses one holds a reference to it. */
typedef struct user_op {
    struct user_op *next;
    MPIR_Op *op;
} user_op;
static user_op *user_ops;
static pthread_mutex_t user_ops_mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t references_before;
static bool uses_user_op; /* a schedule that is under way does, or may */

/* Between a pass of the thread and calls that may start such a schedule. With a lock for all of MPI
 * that lock does it. */
#if MPICH_THREAD_GRANULARITY == MPICH_THREAD_GRANULARITY__VCI
static pthread_mutex_t pass_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
#define LOCK_PASS() pthread_mutex_lock(&pass_mutex)
#define UNLOCK_PASS() pthread_mutex_unlock(&pass_mutex)
#else
#define LOCK_PASS() \
    do {            \
    } while (0)
#define UNLOCK_PASS() \
    do {              \
    } while (0)
#endif

static void progress_of_device(void)
{
    MPIDI_LITE_LOCK();
    MPIDI_LITE_PROGRESS_OF_DEVICE();
    MPIDI_LITE_UNLOCK();
}

static void progress_on_demand(void)
{
    MPID_THREAD_CS_ENTER(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
    LOCK_PASS();
    if (uses_user_op)
        progress_of_device();
    else
        MPID_Progress_test(NULL);
    UNLOCK_PASS();
    MPID_THREAD_CS_EXIT(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
}

static int pending_on_demand(void)
{
    return !uses_user_op && schedules_pending();
}

/* In the middle of a call, in which the host has no lock in force so far, as it knows of one thread
 * only. With a lock for all of MPI the call's way out opens that. */
static void put_locks_into_force(void)
{
    MPIR_ThreadInfo.isThreaded = 1;
    MPID_THREAD_CS_ENTER(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
}

static void take_locks_out_of_force(void)
{
    MPID_THREAD_CS_EXIT(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
    MPIR_ThreadInfo.isThreaded = 0;
}

void MPIDI_LITE_want_host_thread(void)
{
    if (!may_begin || on_demand || refused)
        return;
    LOCK_PASS();
    if (!on_demand && !refused) {
        const bool alone = !MPIR_ThreadInfo.isThreaded;
        if (alone)
            put_locks_into_force();
        on_demand = lite_set_host_work(progress_on_demand, pending_on_demand) == LITE_OK;
        refused = !on_demand;
        if (alone && refused)
            take_locks_out_of_force();
    }
    UNLOCK_PASS();
}

int MPIDI_LITE_op_commit_hook(MPIR_Op *op)
{
    user_op *known = MPL_malloc(sizeof(*known), MPL_MEM_OTHER);

    if (known == NULL)
        return MPI_ERR_NO_MEM;
    known->op = op;
    pthread_mutex_lock(&user_ops_mutex);
    known->next = user_ops;
    user_ops = known;
    pthread_mutex_unlock(&user_ops_mutex);
    return MPI_SUCCESS;
}

int MPIDI_LITE_op_free_hook(MPIR_Op *op)
{
    user_op *found = NULL;

    pthread_mutex_lock(&user_ops_mutex);
    for (user_op **at = &user_ops; *at != NULL; at = &(*at)->next) {
        if ((*at)->op == op) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&user_ops_mutex);
    MPL_free(found);
    return MPI_SUCCESS;
}

static int64_t references(void)
{
    int64_t sum = 0;

    pthread_mutex_lock(&user_ops_mutex);
    for (const user_op *known = user_ops; known != NULL; known = known->next)
        sum += MPIR_Object_get_ref(known->op);
    pthread_mutex_unlock(&user_ops_mutex);
    return sum;
}

/* A persistent collective has had its reference since it was made. Most of what is started is point
 * to point, and must not pay for this. */
void MPIDI_LITE_schedule_begins(int persistent)
{
    if (!may_begin || (persistent && user_ops == NULL))
        return;
    LOCK_PASS();
    if (uses_user_op && !schedules_pending())
        uses_user_op = false;
    if (persistent) {
        uses_user_op = true;
        UNLOCK_PASS();
    } else {
        references_before = references();
    }
}

void MPIDI_LITE_schedule_begun(int persistent)
{
    if (!may_begin)
        return;
    if (!persistent) {
        if (references() > references_before)
            uses_user_op = true;
        UNLOCK_PASS();
    }
    if (!schedules_pending())
        return;
    MPIDI_LITE_want_host_thread();
    if (on_demand && !uses_user_op)
        lite_host_has_work();
}

/* ---- thread: from the start ---- */

/* A second thread in MPI, whatever the application asked for, so the host's locks must be in force.
 * Same as with MPIR_CVAR_ASYNC_PROGRESS: the application is told that it has MPI_THREAD_MULTIPLE.
 * Where a session came before the world communicator, the host has decided on its locks already,
 * and the helper thread keeps to the device. */
void MPIDI_LITE_start_host_work(void)
{
    const bool decided =
        MPL_atomic_load_int(&MPIR_Process.mpich_state) == MPICH_MPI_STATE__INITIALIZED;

    may_begin = lite_host_work_kind() == LITE_HOST_WORK_ON_DEMAND;
    on_demand = refused = uses_user_op = false;
    if (lite_host_work_kind() != LITE_HOST_WORK_ALWAYS ||
        (decided && MPIR_ThreadInfo.thread_provided != MPI_THREAD_MULTIPLE))
        return;
    MPIR_ThreadInfo.thread_provided = MPI_THREAD_MULTIPLE;
    lite_set_host_work(progress, schedules_pending);
}

void MPIDI_LITE_forget_ops(void)
{
    while (user_ops != NULL)
        MPIDI_LITE_op_free_hook(user_ops->op);
}

#else

void MPIDI_LITE_start_host_work(void)
{
}

void MPIDI_LITE_want_host_thread(void)
{
}

void MPIDI_LITE_schedule_begins(int persistent)
{
}

void MPIDI_LITE_schedule_begun(int persistent)
{
}

int MPIDI_LITE_op_commit_hook(MPIR_Op *op)
{
    return MPI_SUCCESS;
}

int MPIDI_LITE_op_free_hook(MPIR_Op *op)
{
    return MPI_SUCCESS;
}

void MPIDI_LITE_forget_ops(void)
{
}

#endif
