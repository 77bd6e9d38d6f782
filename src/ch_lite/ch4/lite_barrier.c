/* The last barrier of a job. Nobody closes a connection that another still reads from. A send whose
 * request was freed may still wait for its receive, and one in shared memory for its turn: they
 * move on meanwhile. The process manager's barrier can only be waited for, so a thread does that.
 * Used by lite_init.c. */
#include "lite_impl.h"
/* behind the host's headers, which choose what libc declares */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended;
    int mpi_errno;
} barrier = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *wait_in_barrier(void *arg)
{
    const int mpi_errno = MPIR_pmi_barrier();

    pthread_mutex_lock(&barrier.lock);
    barrier.mpi_errno = mpi_errno;
    barrier.has_ended = true;
    pthread_cond_signal(&barrier.ended);
    pthread_mutex_unlock(&barrier.lock);
    return arg;
}

/* False: there is no thread to be had. */
static bool start_barrier(pthread_t *thread)
{
    pthread_condattr_t attributes;
    sigset_t all, before;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&barrier.ended, &attributes);
    pthread_condattr_destroy(&attributes);
    barrier.has_ended = false;
    /* the application's handlers stay in the application's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(thread, NULL, wait_in_barrier, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        pthread_cond_destroy(&barrier.ended);
    return rc == 0;
}

/* For at most 0.2 ms. True: the barrier has ended. */
static bool barrier_has_ended(void)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 200000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&barrier.lock);
    if (!barrier.has_ended)
        pthread_cond_timedwait(&barrier.ended, &barrier.lock, &until);
    const bool ended = barrier.has_ended;
    pthread_mutex_unlock(&barrier.lock);
    return ended;
}

/* After SIGUSR1 the host's progress asks the process manager which process has died. During the
 * barrier another thread reads the same socket, and each could read the other's answer. So the host
 * must not ask any more. */
static void ignore_news_of_dead_processes(void)
{
    MPIDI_global.my_sigusr1_count = INT_MAX;
}

/* An error that names a rank of this job which is lost. */
static int check_ranks(void)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        const int code = lite_check_lost(rank);
        if (code != LITE_OK)
            return MPIDI_LITE_error(code, rank, __func__, __LINE__);
    }
    return MPI_SUCCESS;
}

/* A rank that is lost may be alive, and come to the barrier: its connection alone has gone. So it
 * is waited for, but not for ever, as it does not come if it is dead. */
static bool waits_too_long(time_t *since)
{
    enum { SECONDS = 10 };
    struct timespec now;

    if (lite_lost_peers() == 0)
        return false;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (*since == 0)
        *since = now.tv_sec;
    return now.tv_sec - *since > SECONDS;
}

int MPIDI_LITE_last_barrier(void)
{
    pthread_t thread;
    time_t lost_since = 0;
    bool moves = true; /* after an error nothing is left that it could save */

    ignore_news_of_dead_processes();
    if (MPIR_Process.size == 1 || !start_barrier(&thread))
        return MPIR_pmi_barrier();
    while (!barrier_has_ended()) {
        if (waits_too_long(&lost_since)) {
            const int mpi_errno = check_ranks();
            if (mpi_errno != MPI_SUCCESS) {
                /* it stays in the barrier until the process ends */
                pthread_detach(thread);
                return mpi_errno;
            }
        }
        if (!moves)
            continue;
        lite_host_call_begins(LITE_MAY_NOT_BLOCK); /* never asleep when the barrier ends */
        moves = MPIDI_LITE_PROGRESS_TEST() == MPI_SUCCESS;
        lite_host_call_ends();
    }
    pthread_join(thread, NULL);
    pthread_cond_destroy(&barrier.ended);
    return barrier.mpi_errno;
}
