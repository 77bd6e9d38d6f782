/* One thread in MPI at a time, where the application has not asked for MPI_THREAD_MULTIPLE: each of
 * its calls holds a lock from its entry to its exit, and a thread of the device's holds it while it
 * runs the host's progress. The host's own locks are not in force then, and what it calls of the
 * application's (error handlers, callbacks) may call MPI, as with one thread. With
 * MPI_THREAD_MULTIPLE calls are counted only. */
#include "lite_impl.h"
/* behind the host's headers, which choose what libc declares */
#include <pthread.h>

int MPIDI_LITE_calls_counted;

/* Calls that this thread is in: an error handler's are in another. Of those that wait for nobody:
 * by themselves. */
#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))
OF_THREAD int depth, brief_depth;
OF_THREAD bool holds_call_lock, holds_brief_lock, in_turn;
static bool shared; /* the locks are in use */
static bool are_shared(void)
{
    return __atomic_load_n(&shared, __ATOMIC_RELAXED);
}
static void set_shared(bool on)
{
    __atomic_store_n(&shared, on, __ATOMIC_RELAXED);
}
static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t brief_lock = PTHREAD_MUTEX_INITIALIZER; /* of those, and of our turns */
static int waiting;     /* threads of the application's, for a turn of ours to end */
static int turned_away; /* ours, since it last had a turn */

static void wait_for(pthread_mutex_t *lock)
{
    if (pthread_mutex_trylock(lock) == 0)
        return;
    __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(lock);
    __atomic_fetch_sub(&waiting, 1, __ATOMIC_SEQ_CST);
}

/* Sequentially consistent with try_turn(): what that could not do then is done here, or it sets the
 * word again. */
static void make_up_for_turn(void)
{
    __atomic_store_n(&turned_away, 0, __ATOMIC_SEQ_CST);
    MPIDI_LITE_pass_in_call();
}

/* The application's own thread does what ours was turned away from, or has not come to. Ours alone
 * would lose each race for the lock against calls that follow one another closely and make no
 * progress by themselves, as in a loop of MPI_Win_sync. */
static void begin_shared_call(void)
{
    wait_for(&call_lock);
    holds_call_lock = true;
    if (unlikely(__atomic_load_n(&turned_away, __ATOMIC_SEQ_CST) || lite_host_message_due()))
        make_up_for_turn();
}

void MPIDI_LITE_call_begins(int waits_for_nobody)
{
    if (waits_for_nobody) {
        if (brief_depth++ == 0 && depth == 0 && are_shared()) {
            wait_for(&brief_lock);
            if (are_shared())
                holds_brief_lock = true;
            else /* MPI has ended meanwhile */
                pthread_mutex_unlock(&brief_lock);
        }
    } else if (depth++ == 0) {
        if (are_shared())
            begin_shared_call();
        else
            MPIDI_LITE_pass_for_kept_thread();
    }
}

/* Sequentially consistent with try_turn(): either that finds the lock open, or it is seen to have
 * been turned away here. */
void MPIDI_LITE_call_ends(int waits_for_nobody)
{
    int *const my_depth = waits_for_nobody ? &brief_depth : &depth;
    bool *const holds = waits_for_nobody ? &holds_brief_lock : &holds_call_lock;

    if (*my_depth == 0 || --*my_depth > 0 || !*holds)
        return;
    *holds = false;
    pthread_mutex_unlock(waits_for_nobody ? &brief_lock : &call_lock);
    if (__atomic_load_n(&turned_away, __ATOMIC_SEQ_CST))
        lite_host_may_go_on();
}

/* A handler of the application's is about to be called, which may leave by an exception or longjmp:
 * then the calls that this thread is in are over. If it returns they go on. */
MPIDI_LITE_left_calls MPIDI_LITE_error_handler_begins(void)
{
    const MPIDI_LITE_left_calls left = {
        .depth = depth,
        .brief_depth = brief_depth,
        .kinds = lite_call.kinds,
        .held = holds_call_lock,
        .held_brief = holds_brief_lock,
    };

    if (in_turn)
        return left;
    lite_call.kinds = 0;
    if (depth > 0) {
        depth = 1;
        MPIDI_LITE_call_ends(0);
    }
    if (brief_depth > 0) {
        brief_depth = 1;
        MPIDI_LITE_call_ends(1);
    }
    return left;
}

void MPIDI_LITE_error_handler_returned(MPIDI_LITE_left_calls left)
{
    if (in_turn)
        return;
    depth = left.depth;
    brief_depth = left.brief_depth;
    lite_call.kinds = left.kinds;
    if (left.held_brief && are_shared()) {
        wait_for(&brief_lock);
        holds_brief_lock = true;
    }
    if (left.held && are_shared()) {
        wait_for(&call_lock);
        holds_call_lock = true;
    }
}

/* The thread that may hold the locks is not in the child of a fork. */
static void in_child(void)
{
    MPIDI_LITE_calls_counted = 0;
    set_shared(false);
    holds_call_lock = holds_brief_lock = in_turn = false;
    pthread_mutex_init(&call_lock, NULL);
    pthread_mutex_init(&brief_lock, NULL);
}

void MPIDI_LITE_count_calls(void)
{
    static bool prepared;

    if (!prepared)
        prepared = pthread_atfork(NULL, NULL, in_child) == 0;
    depth = 1;
    set_shared(false);
    MPIDI_LITE_calls_counted = 1;
}

void MPIDI_LITE_share_calls(void)
{
    if (!holds_call_lock)
        wait_for(&call_lock);
    holds_call_lock = true;
    set_shared(true);
}

/* Calls are counted to the end of the process: another thread may be in a brief one, which ends
 * later and has to find what it holds. */
void MPIDI_LITE_end_shared_calls(void)
{
    if (!holds_brief_lock)
        pthread_mutex_lock(&brief_lock);
    set_shared(false);
    if (!holds_brief_lock)
        pthread_mutex_unlock(&brief_lock);
    if (holds_call_lock)
        pthread_mutex_unlock(&call_lock);
    holds_call_lock = false;
}

/* Calls of MPI that it makes, by a callback, are in the turn. */
bool MPIDI_LITE_try_turn(void)
{
    __atomic_store_n(&turned_away, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) != 0 || pthread_mutex_trylock(&call_lock) != 0)
        return false;
    if (pthread_mutex_trylock(&brief_lock) != 0) {
        pthread_mutex_unlock(&call_lock);
        return false;
    }
    __atomic_store_n(&turned_away, 0, __ATOMIC_SEQ_CST);
    depth = 1;
    in_turn = true;
    return true;
}

void MPIDI_LITE_end_turn(void)
{
    depth = 0;
    in_turn = false;
    pthread_mutex_unlock(&brief_lock);
    pthread_mutex_unlock(&call_lock);
}
