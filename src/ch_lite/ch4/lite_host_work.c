/* The host's own progress in a thread of the device's, so that schedules of nonblocking collectives
 * and active messages (accumulates, locks of windows) move while the application computes. With
 * LITE_CONTROLLER=thread that is the helper thread, from the start. With sigio it is a thread that
 * the handler wakes when something of that kind has come, and that is not there before the first
 * window or nonblocking collective, nor with LITE_HOST_THREAD=off.
 *
 * An application with MPI_THREAD_MULTIPLE has the host's locks in force, and the thread is one more
 * thread in MPI. Any other one shares the lock of its calls (lite_call_lock.c), and none of its
 * functions is called in the thread: while a schedule may call one, it moves in the application's
 * calls only. */
#include "lite_impl.h"
/* behind the host's headers, which choose what libc declares */
#include <pthread.h>

/* The second one is declared in a header of src/mpi/coll that the device does not see. */
int MPII_TSP_scheds_are_pending(void);
static int schedules_pending(void)
{
    return MPIDU_Sched_are_pending() || MPII_TSP_scheds_are_pending();
}

#define PASSES_MAX 16 /* in one call */

static bool wanted;    /* from start to end */
static bool may_begin; /* not while MPI ends */
static bool multiple;  /* MPI_THREAD_MULTIPLE */
static bool on_demand; /* the handler's thread, not the helper */
static bool guarded;   /* the application's functions are not for the thread */
static bool begun;     /* the device has our functions */
static bool refused;   /* it has no thread for them */

/* ---- the application's functions ---- */

/* Operations of the application's. A schedule that uses one holds a reference to it. */
typedef struct user_op {
    struct user_op *next;
    MPIR_Op *op;
} user_op;
static user_op *user_ops;
static pthread_mutex_t user_ops_mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t references_before;

/* What may call the application's functions, so that a pass of the thread must not run it. */
static bool schedule_calls_application;   /* one that is under way */
static bool completion_calls_application; /* of what is under way */
static bool progress_calls_application;   /* all of the host's */
static bool has_destructors;              /* of error handlers, beside those of attributes */

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

/* ---- the thread ---- */

/* With MPI_THREAD_MULTIPLE between a pass of the thread and calls that may start a schedule with an
 * operation of the application's. With a lock for all of MPI that lock does it. */
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

static int kept_error;
static __thread bool passing;

int MPIDI_LITE_take_kept_error(void)
{
    return passing || __atomic_load_n(&kept_error, __ATOMIC_RELAXED) == MPI_SUCCESS
               ? MPI_SUCCESS
               : __atomic_exchange_n(&kept_error, MPI_SUCCESS, __ATOMIC_RELAXED);
}

/* An error that no request has is the next poll's of the application. False: there was one. */
static bool pass(bool of_device_only)
{
    const lite_host_marks marks = lite_host_pass_begins();
    int mpi_errno;

    passing = true;
    if (of_device_only) {
        MPIDI_LITE_LOCK();
        mpi_errno = MPIDI_LITE_progress_of_device();
        MPIDI_LITE_UNLOCK();
    } else {
        mpi_errno = MPID_Progress_test(NULL);
    }
    passing = false;
    lite_host_pass_ends(&marks);
    if (mpi_errno != MPI_SUCCESS)
        __atomic_store_n(&kept_error, mpi_errno, __ATOMIC_RELAXED);
    return mpi_errno == MPI_SUCCESS;
}

static bool is_anything_pending(void)
{
    return schedules_pending() || lite_requests_used() != 0;
}

static bool pass_of_thread(void)
{
    if (completion_calls_application) {
        if (is_anything_pending())
            return false;
        completion_calls_application = false;
    }
    return pass(schedule_calls_application || progress_calls_application);
}

/* With a lock for all of MPI that one is taken, as by the host's own progress thread
 * (init_async.c); with a lock per VCI this macro is empty, and the progress takes its locks itself.
 */
static int pass_beside_calls(void)
{
    MPID_THREAD_CS_ENTER(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
    LOCK_PASS();
    const bool done = pass_of_thread();
    UNLOCK_PASS();
    MPID_THREAD_CS_EXIT(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
    return done;
}

static int pass_between_calls(void)
{
    if (!MPIDI_LITE_try_turn())
        return 0;
    const bool done = pass_of_thread();
    MPIDI_LITE_end_turn();
    return done;
}

static int pending(void)
{
    return !schedule_calls_application && !progress_calls_application && schedules_pending();
}

static pthread_mutex_t begin_mutex = PTHREAD_MUTEX_INITIALIZER;

void MPIDI_LITE_want_host_thread(void)
{
    if (!may_begin || begun || refused)
        return;
    pthread_mutex_lock(&begin_mutex);
    if (!begun && !refused) {
        if (!multiple)
            MPIDI_LITE_share_calls();
        begun = lite_set_host_work(multiple ? pass_beside_calls : pass_between_calls, pending) ==
                LITE_OK;
        refused = !begun;
    }
    pthread_mutex_unlock(&begin_mutex);
}

/* ---- what calls start and end ---- */

/* From the next pass on, and with several threads not in one that is under way either. */
static void keep_from_thread(bool *what)
{
    if (*what)
        return;
    *what = true;
    if (multiple) {
        LOCK_PASS();
        UNLOCK_PASS();
    }
}

/* A persistent collective has had its reference since it was made. Most of what is started is point
 * to point, and must not pay for this. Several threads may be here: then any operation counts.
 * MPI_Comm_idup broadcasts within its schedule: a thread that waited there would keep the
 * application out of MPI. */
void MPIDI_LITE_schedule_begins(lite_starter starter)
{
    if (!guarded || (starter == LITE_STARTS_PERSISTENT && user_ops == NULL))
        return;
    if (schedule_calls_application && !schedules_pending())
        schedule_calls_application = false;
    if (starter != LITE_STARTS_ONE || (multiple && user_ops != NULL))
        keep_from_thread(&schedule_calls_application);
    else if (!multiple)
        references_before = references();
}

/* In a call, of which nobody knows whether it looks at anything; ordinary context, with the lock of
 * calls. Schedules that call the application are left to its own waits here, too; what the end of a
 * request may call is called in this call of the application's, as it would be in any other. */
void MPIDI_LITE_pass_in_call(void)
{
    const bool without_schedules = schedule_calls_application || progress_calls_application;

    lite_host_moved();
    for (int passes = 0; passes < PASSES_MAX && pass(without_schedules) && lite_host_moved();
         passes++)
        continue;
}

/* Locked calls do that themselves (lite_call_lock.c). */
void MPIDI_LITE_pass_for_kept_thread(void)
{
    if (unlikely(multiple && may_begin && completion_calls_application) &&
        lite_host_message_due() && !passing && MPIDI_LITE_may_progress_at_entry())
        MPIDI_LITE_pass_in_call();
}

/* What the call has started may be complete already, and let the schedule go on: here that is
 * cheaper than in the thread. False: nobody knows how far. */
static bool moves_on_here(void)
{
    lite_host_moved();
    for (int passes = 0; passes < PASSES_MAX; passes++) {
        pass(false);
        if (!lite_host_moved())
            return true;
    }
    return false;
}

void MPIDI_LITE_schedule_begun(lite_starter starter)
{
    if (!may_begin)
        return;
    if (guarded && !multiple && starter == LITE_STARTS_ONE && references() > references_before)
        schedule_calls_application = true;
    if (!schedules_pending())
        return;
    MPIDI_LITE_want_host_thread();
    if (begun && !schedule_calls_application)
        lite_host_has_work(on_demand && !moves_on_here());
}

/* What is under way may hold the last reference to what is going to be freed, whose attributes are
 * deleted then, and whose error handler: by functions of the application's. */
void MPIDI_LITE_object_is_freed(void)
{
    if (guarded && (MPIR_Process.attr_free != NULL || has_destructors) && is_anything_pending())
        keep_from_thread(&completion_calls_application);
}

/* MPIX_Comm_create_errhandler_x and its like. */
void MPIDI_LITE_destructor_is_made(void)
{
    has_destructors = true;
}

/* MPIX_Async_start: from now on every progress of the host's calls a function of the application's.
 */
void MPIDI_LITE_progress_is_used(void)
{
    keep_from_thread(&progress_calls_application);
}

/* ---- start and end ---- */

/* In a call that makes the world communicator. */
void MPIDI_LITE_start_host_work(void)
{
    const int kind = lite_host_work_kind();

    multiple = MPIR_ThreadInfo.thread_provided == MPI_THREAD_MULTIPLE;
    wanted = may_begin = kind != LITE_HOST_WORK_NEVER;
    on_demand = kind == LITE_HOST_WORK_ON_DEMAND;
    guarded = may_begin && !(multiple && kind == LITE_HOST_WORK_ALWAYS);
    begun = refused = schedule_calls_application = completion_calls_application = false;
    kept_error = MPI_SUCCESS;
    if (guarded)
        MPIDI_LITE_count_calls();
    if (kind == LITE_HOST_WORK_ALWAYS)
        MPIDI_LITE_want_host_thread();
}

/* In MPI_Finalize and MPI_Session_finalize, whose callbacks may start what begins it. */
void MPIDI_LITE_end_host_work(void)
{
    lite_host_ending();
    if (may_begin && !multiple)
        MPIDI_LITE_end_shared_calls();
    may_begin = false;
}

/* That was not the end: sessions are left. */
void MPIDI_LITE_resume_host_work(void)
{
    if (!wanted)
        return;
    may_begin = true;
    if (!multiple)
        MPIDI_LITE_count_calls();
    if (begun) {
        if (!multiple)
            MPIDI_LITE_share_calls();
        lite_host_resumes();
    }
}

/* MPIX_Threadcomm_init: threads of the application's will be in MPI at a time, whatever thread
 * level it has asked for. */
void MPIDI_LITE_give_up_host_work(void)
{
    if (multiple)
        return;
    MPIDI_LITE_end_host_work();
    wanted = false;
}

void MPIDI_LITE_forget_host_work(void)
{
    wanted = may_begin = guarded = begun = has_destructors = progress_calls_application = false;
    while (user_ops != NULL)
        MPIDI_LITE_op_free_hook(user_ops->op);
}
