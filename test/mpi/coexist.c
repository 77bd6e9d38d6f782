/* An MPI program with a life of its own: coexist CASE, 2 ranks, both do the same while messages fly
 * between them.
 *   handler_before   a handler for SIGIO was installed before MPI_Init, which has to say so
 *   handler_after    one is installed after MPI_Init: both it and the messages work
 *   children         fork and exit, fork and exec, system(), posix_spawn, a child that closes
 *                    everything
 *   finalize_in_child  an atexit handler calls MPI_Finalize, in children of fork, too
 *   mask             prints whether a program started by system() finds SIGIO blocked, with nothing
 *                    outstanding and while something is
 *   serialized       MPI_THREAD_SERIALIZED: a second thread makes MPI calls, in turns with the
 *                    first
 *   beside_owner     MPI_THREAD_SERIALIZED: a second thread waits in MPI_Recv while the first, with
 *                    a receive outstanding, computes: how late its message comes (by one clock for
 *                    both ranks)
 *   init_thread      MPI_Init_thread in a thread that ends (all later calls, MPI_Finalize too, in
 *                    another)
 *   alternate_stack  a crash handler's alternate stack of 8 KB
 *   error_handler    MPI_THREAD_SERIALIZED: an error handler leaves by longjmp, then a second
 *                    thread makes MPI calls (with a window, so that they are counted)
 *   timer            a handler, every 0.2 ms, calls MPI_Wtime
 *   steady           nothing special: for a debugger */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "mpi_test.h"

extern char **environ;

enum { BYTES = 1 << 20 };
static unsigned char out[BYTES], in[BYTES];
static volatile sig_atomic_t own_signals;
static volatile double last_time;

static void on_own(int signal)
{
    (void) signal;
    own_signals++;
}

/* Both ways at once, `meanwhile` outside of MPI with the messages on their way. */
static void exchange(unsigned turn, void (*meanwhile)(unsigned turn))
{
    MPI_Request requests[2];
    const size_t bytes = turn % 3 == 0 ? BYTES : turn % 3 == 1 ? 40000 : 10;
    pattern_fill(out, bytes, turn + (unsigned) my_rank);
    memset(in, 0, bytes);
    MPI_Irecv(in, (int) bytes, MPI_BYTE, 1 - my_rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, (int) bytes, MPI_BYTE, 1 - my_rank, 1, MPI_COMM_WORLD, &requests[1]);
    if (meanwhile)
        meanwhile(turn);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(pattern_wrong(in, bytes, turn + (unsigned) (1 - my_rank)) < 0, "turn %u", turn);
}

static void compute_a_little(unsigned turn)
{
    (void) turn;
    CHECK(compute(0.002) > 0, "no work");
}

static void make_child(unsigned turn)
{
    char *truth[] = {"true", NULL};
    int status = -1;
    pid_t child;
    switch (turn % 6) {
    case 0: CHECK(system("true") == 0, "system"); return;
    case 1:
        CHECK(posix_spawnp(&child, "true", NULL, NULL, truth, environ) == 0, "posix_spawnp");
        break;
    default:
        child = fork();
        if (child == 0) {
            if (turn % 6 == 2)
                exit(0); /* by way of everybody's atexit handlers */
            if (turn % 6 == 3)
                execvp("true", truth);
            if (turn % 6 == 4)
                for (int fd = 3; fd < 1000; fd++)
                    close(fd);
            _exit(turn % 6 != 5 || compute(0.005) > 0 ? 0 : 1);
        }
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child of kind %u: status %d",
          turn % 6, status);
}

static void finalize_at_exit(void)
{
    int finalized;
    MPI_Finalized(&finalized);
    if (!finalized)
        MPI_Finalize();
}
static void make_finalizing_child(unsigned turn)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        exit(0);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1,
          "turn %u: status %d", turn, status);
}

/* MPI does not promise that it may be called in a handler; profilers do it. */
static void read_clock(int signal)
{
    (void) signal;
    last_time = MPI_Wtime();
}

static void tell_mask(const char *when)
{
    char command[300];
    snprintf(command, sizeof command,
             "sed -n 's/^SigBlk:[^0-9a-f]*//p' /proc/self/status | awk '{ print \"mask rank=%d %s "
             "blocked=\" (substr($0, 9, 1) ~ /[13579bdf]/ ? \"yes\" : \"no\") }'",
             my_rank, when);
    fflush(stdout);
    CHECK(system(command) == 0, "system");
}
static void tell_mask_outstanding(unsigned turn)
{
    (void) turn;
    tell_mask("outstanding");
}

static void *exchange_in_thread(void *turn)
{
    exchange(*(unsigned *) turn, compute_a_little);
    return NULL;
}
/* A sleep in MPI is an eighth of the wait so far, 0.1 s at most. What comes wakes the thread and
 * raises the signal in the other one, whose handler is the first to take it if the thread has low
 * priority. How late such a thread gets a core here is seen by a short sleep. */
enum { WAITS = 7 };
static volatile double late_s, nap_late_s;
static volatile sig_atomic_t has_come;
static void *wait_in_thread(void *arg)
{
    double sent_s, began_s;
    (void) arg;
    setpriority(PRIO_PROCESS, (id_t) syscall(SYS_gettid), 19);
    began_s = now_s();
    rest(0.02);
    nap_late_s = now_s() - began_s - 0.02;
    MPI_Recv(&sent_s, 1, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    late_s = now_s() - sent_s;
    has_come = 1;
    return NULL;
}
static int by_size(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}
static void wait_beside_owner(void)
{
    double late[WAITS], nap_late[WAITS], most;
    for (int i = 0; i < WAITS; i++) {
        char last = 0, answer = 0;
        if (my_rank == 0) {
            MPI_Request request;
            pthread_t thread;
            MPI_Irecv(&last, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request);
            has_come = 0;
            CHECK(pthread_create(&thread, NULL, wait_in_thread, NULL) == 0, "pthread_create");
            while (!has_come)
                compute(0.001);
            pthread_join(thread, NULL);
            late[i] = late_s;
            nap_late[i] = nap_late_s;
            MPI_Send(&answer, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            double sent_s;
            rest(0.8 + 0.03 * i);
            sent_s = now_s();
            MPI_Send(&sent_s, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
            MPI_Recv(&answer, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&last, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
    if (my_rank != 0)
        return;
    qsort(late, WAITS, sizeof *late, by_size);
    qsort(nap_late, WAITS, sizeof *nap_late, by_size);
    most = 0.01 + 3 * nap_late[WAITS / 2];
    printf("coexist: late by %.1f to %.1f ms, median %.1f, at most %.1f\n", 1e3 * late[0],
           1e3 * late[WAITS - 1], 1e3 * late[WAITS / 2], 1e3 * most);
    CHECK(late[WAITS / 2] < most, "late by %.1f ms", 1e3 * late[WAITS / 2]);
}

static jmp_buf before_error;
static void leave_by_jump(MPI_Comm *comm, int *code, ...)
{
    (void) comm;
    (void) code;
    longjmp(before_error, 1);
}
static void fail_and_leave(void)
{
    char small[4], large[8] = "";
    MPI_Request request;
    MPI_Isend(large, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request);
    if (setjmp(before_error) == 0) {
        MPI_Recv(small, 4, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        CHECK(0, "a message that is too long is no error");
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void *init_in_thread(void *arguments)
{
    (void) arguments;
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    exchange(0, compute_a_little);
    return NULL;
}
static void in_thread(void *(*what)(void *), void *arg)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, what, arg) == 0, "pthread_create");
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "steady";
    const int timer = strcmp(what, "timer") == 0;
    const unsigned turns = timer ? 600 : strcmp(what, "beside_owner") == 0 ? 0 : 60;
    const int in_turns = strcmp(what, "serialized") == 0 || strcmp(what, "error_handler") == 0;
    struct sigaction own = {.sa_handler = on_own, .sa_flags = SA_RESTART};
    MPI_Win window = MPI_WIN_NULL;
    MPI_Errhandler leaves;
    void *memory;
    int provided;

    if (strcmp(what, "handler_before") == 0)
        sigaction(SIGIO, &own, NULL);
    if (strcmp(what, "init_thread") == 0) {
        in_thread(init_in_thread, NULL);
    } else {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
        MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    }
    if (ranks != 2)
        MPI_Abort(MPI_COMM_WORLD, 2);

    if (strcmp(what, "finalize_in_child") == 0)
        atexit(finalize_at_exit);
    if (strcmp(what, "handler_after") == 0) {
        exchange(0, NULL);
        sigaction(SIGIO, &own, NULL);
        /* Signals that come before the program leaves MPI again are its own, however many. */
        exchange(0, compute_a_little);
        own_signals = 0;
    } else if (strcmp(what, "alternate_stack") == 0) {
        static char stack[8192];
        const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
        CHECK(sigaltstack(&alternate, NULL) == 0, "sigaltstack");
    } else if (strcmp(what, "error_handler") == 0) {
        MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
        MPI_Comm_create_errhandler(leave_by_jump, &leaves);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, leaves);
        MPI_Errhandler_free(&leaves);
    } else if (timer) {
        const struct sigaction clock = {.sa_handler = read_clock, .sa_flags = SA_RESTART};
        const struct itimerval often = {{0, 200}, {0, 200}};
        sigaction(SIGALRM, &clock, NULL);
        setitimer(ITIMER_REAL, &often, NULL);
    } else if (strcmp(what, "mask") == 0) {
        exchange(0, NULL);
        MPI_Barrier(MPI_COMM_WORLD);
        tell_mask("idle");
        exchange(0, tell_mask_outstanding);
    }
    if (strcmp(what, "beside_owner") == 0)
        wait_beside_owner();
    for (unsigned turn = 0; turn < turns; turn++) {
        if (window != MPI_WIN_NULL)
            fail_and_leave();
        if (in_turns && turn % 3 != 0)
            in_thread(exchange_in_thread, &turn);
        else
            exchange(turn, strcmp(what, "children") == 0            ? make_child
                           : strcmp(what, "finalize_in_child") == 0 ? make_finalizing_child
                                                                    : compute_a_little);
    }
    if (timer) {
        const struct itimerval never = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &never, NULL);
        CHECK(last_time > 0, "the timer has never come");
    }
    if (window != MPI_WIN_NULL)
        MPI_Win_free(&window);
    if (strcmp(what, "handler_after") == 0) {
        /* one: what was pending when the change was noticed */
        CHECK(own_signals <= 1, "%d signals that were not its own", (int) own_signals);
        own_signals = 0;
        raise(SIGIO);
        CHECK(own_signals == 1, "its own signal came %d times", (int) own_signals);
    }
    return finish("coexist");
}
