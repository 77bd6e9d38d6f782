/* Which system calls does a message interrupt? 2 ranks. For each call in turn, rank 0 posts a
 * receive, leaves MPI and sleeps in the call, again and again, while rank 1 sends a little at a
 * time; the call's own end comes only when nothing else ends it. Prints per call, by rank 0:
 *   interrupted call=NAME result=EINTR|restarted times=N
 * EINTR: it returned early with that error (sleep, which has none: just early), or with a part of
 * what was asked for. The lists are those of docs/coexistence.md and signal(7). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "mpi_test.h"

enum { LIMIT_MS = 150, PARTS = 40, PART_BYTES = 50000 };

static int pipe_ends[2], link_ends[2], timed_ends[2], epoll, queue, semaphores;
static sem_t semaphore, *shared_semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static const struct timespec limit = {0, LIMIT_MS * 1000000L};

/* What would wait for ever gets its end from a child of ours, which sleeps; each of these returns 1
 * when it was interrupted, else 0. */
static pid_t later(int fd)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct timespec t = limit;
        nanosleep(&t, NULL);
        if (fd >= 0 && write(fd, "x", 1) < 0)
            _exit(1);
        _exit(0);
    }
    return child;
}
static int over(pid_t child, int code, int error)
{
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return code < 0 && error == EINTR;
}
static void drain(int fd)
{
    char c[8];
    const int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    while (read(fd, c, sizeof c) > 0)
        ;
    fcntl(fd, F_SETFL, flags);
}
static struct timespec until(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += LIMIT_MS * 1000000L;
    t.tv_sec += t.tv_nsec / 1000000000L;
    t.tv_nsec %= 1000000000L;
    return t;
}

static int do_nanosleep(void)
{
    return nanosleep(&limit, NULL) < 0 && errno == EINTR;
}
static int do_clock_nanosleep(void)
{
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &limit, NULL) == EINTR;
}
static int do_usleep(void)
{
    return usleep(LIMIT_MS * 1000) < 0 && errno == EINTR;
}
/* by the clock: what it returns is rounded down to 0 */
static int do_sleep(void)
{
    const double before = now_s();
    sleep(1);
    return now_s() - before < 0.9;
}
static int do_poll(void)
{
    struct pollfd p = {pipe_ends[0], POLLIN, 0};
    return poll(&p, 1, LIMIT_MS) < 0 && errno == EINTR;
}
static int do_ppoll(void)
{
    struct pollfd p = {pipe_ends[0], POLLIN, 0};
    return ppoll(&p, 1, &limit, NULL) < 0 && errno == EINTR;
}
static int do_select(void)
{
    fd_set set;
    struct timeval t = {0, LIMIT_MS * 1000};
    FD_ZERO(&set);
    FD_SET(pipe_ends[0], &set);
    return select(pipe_ends[0] + 1, &set, NULL, NULL, &t) < 0 && errno == EINTR;
}
static int do_pselect(void)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipe_ends[0], &set);
    return pselect(pipe_ends[0] + 1, &set, NULL, NULL, &limit, NULL) < 0 && errno == EINTR;
}
static int do_epoll_wait(void)
{
    struct epoll_event e;
    return epoll_wait(epoll, &e, 1, LIMIT_MS) < 0 && errno == EINTR;
}
static int do_sigtimedwait(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    return sigtimedwait(&set, NULL, &limit) < 0 && errno == EINTR;
}
static int do_semop(void)
{
    struct sembuf op = {0, -1, 0};
    return semtimedop(semaphores, &op, 1, &limit) < 0 && errno == EINTR;
}
static int do_msgrcv(void)
{
    struct {
        long type;
        char text[8];
    } m = {1, ""};
    const pid_t child = fork();
    if (child == 0) {
        const struct timespec t = limit;
        nanosleep(&t, NULL);
        _exit(msgsnd(queue, &m, 1, 0) != 0);
    }
    const int code = (int) msgrcv(queue, &m, sizeof m.text, 0, 0), error = errno;
    const int result = over(child, code, error);
    while (msgrcv(queue, &m, sizeof m.text, 0, IPC_NOWAIT) >= 0)
        ;
    return result;
}
static int do_recv_timeout(void)
{
    char c;
    return recv(timed_ends[0], &c, 1, 0) < 0 && errno == EINTR;
}

static int do_read_pipe(void)
{
    char c;
    const pid_t child = later(pipe_ends[1]);
    const int code = (int) read(pipe_ends[0], &c, 1), error = errno;
    const int result = over(child, code, error);
    drain(pipe_ends[0]);
    return result;
}
static int do_recv(void)
{
    char c;
    const pid_t child = later(link_ends[1]);
    const int code = (int) recv(link_ends[0], &c, 1, 0), error = errno;
    const int result = over(child, code, error);
    drain(link_ends[0]);
    return result;
}
static int do_recv_waitall(void)
{
    char c[2];
    if (write(link_ends[1], "x", 1) < 0)
        return 0;
    const pid_t child = later(link_ends[1]);
    const int part = recv(link_ends[0], c, 2, MSG_WAITALL) == 1;
    over(child, 0, 0);
    drain(link_ends[0]);
    return part;
}
static int do_write_much(void)
{
    static char much[1 << 20];
    int ends[2];
    if (pipe(ends))
        return 0;
    const pid_t child = fork();
    if (child == 0) {
        const struct timespec t = limit;
        close(ends[1]);
        nanosleep(&t, NULL);
        while (read(ends[0], much, sizeof much) > 0)
            ;
        _exit(0);
    }
    close(ends[0]);
    const int part = write(ends[1], much, sizeof much) < (ssize_t) sizeof much;
    close(ends[1]);
    over(child, 0, 0);
    return part;
}
static int do_waitpid(void)
{
    const pid_t child = later(-1);
    const int code = (int) waitpid(child, NULL, 0), error = errno;
    return code < 0 ? over(child, code, error) : 0;
}
static int do_sem_wait(void)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct timespec t = limit;
        nanosleep(&t, NULL);
        _exit(sem_post(shared_semaphore));
    }
    const int code = sem_wait(shared_semaphore), error = errno;
    const int result = over(child, code, error);
    while (sem_trywait(shared_semaphore) == 0)
        ;
    return result;
}
/* with a time-out it is not restarted, which signal(7) does not say */
static int do_sem_timedwait(void)
{
    const struct timespec t = until();
    return sem_timedwait(&semaphore, &t) < 0 && errno == EINTR;
}
static int do_cond_wait(void)
{
    const struct timespec t = until();
    pthread_mutex_lock(&mutex);
    const int code = pthread_cond_timedwait(&condition, &mutex, &t);
    pthread_mutex_unlock(&mutex);
    return code == EINTR;
}

static const struct {
    const char *name;
    int (*call)(void);
} calls[] = {
    {"nanosleep", do_nanosleep},
    {"clock_nanosleep", do_clock_nanosleep},
    {"usleep", do_usleep},
    {"sleep", do_sleep},
    {"poll", do_poll},
    {"ppoll", do_ppoll},
    {"select", do_select},
    {"pselect", do_pselect},
    {"epoll_wait", do_epoll_wait},
    {"sigtimedwait", do_sigtimedwait},
    {"semtimedop", do_semop},
    {"msgrcv", do_msgrcv},
    {"recv_timeout", do_recv_timeout},
    {"read_pipe", do_read_pipe},
    {"recv", do_recv},
    {"recv_waitall", do_recv_waitall},
    {"write_much", do_write_much},
    {"waitpid", do_waitpid},
    {"sem_timedwait", do_sem_timedwait},
    {"sem_wait", do_sem_wait},
    {"cond_timedwait", do_cond_wait},
};

int main(int argc, char **argv)
{
    static unsigned char in[PARTS * PART_BYTES], part[PART_BYTES];
    sigset_t usr1;
    const struct timeval timed = {0, LIMIT_MS * 1000};

    start(&argc, &argv);
    if (ranks != 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    queue = msgget(IPC_PRIVATE, 0600);
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (pipe(pipe_ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, link_ends) ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, timed_ends) || queue < 0 || semaphores < 0 ||
        epoll < 0 || sem_init(&semaphore, 0, 0) ||
        setsockopt(timed_ends[0], SOL_SOCKET, SO_RCVTIMEO, &timed, sizeof timed)) {
        perror("interrupted");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    shared_semaphore = mmap(NULL, sizeof *shared_semaphore, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared_semaphore == MAP_FAILED || sem_init(shared_semaphore, 1, 0))
        MPI_Abort(MPI_COMM_WORLD, 2);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_ends[0], &event);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        /* Each part is an event of its own, so that a call that is restarted is hit several times.
         */
        MPI_Request requests[PARTS];
        int times = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        if (my_rank == 0) {
            memset(in, 0, sizeof in);
            for (int k = 0; k < PARTS; k++)
                MPI_Irecv(in + k * PART_BYTES, PART_BYTES, MPI_BYTE, 1, k, MPI_COMM_WORLD,
                          &requests[k]);
            int token = 1;
            MPI_Send(&token, 1, MPI_INT, 1, PARTS, MPI_COMM_WORLD);
            const double end = now_s() + 0.4;
            while (now_s() < end)
                times += calls[i].call();
            MPI_Waitall(PARTS, requests, MPI_STATUSES_IGNORE);
            for (int k = 0; k < PARTS; k++)
                CHECK(pattern_wrong(in + k * PART_BYTES, PART_BYTES, (unsigned) k) < 0,
                      "part %d (%s)", k, calls[i].name);
            printf("interrupted call=%s result=%s times=%d\n", calls[i].name,
                   times > 0 ? "EINTR" : "restarted", times);
            fflush(stdout);
        } else {
            int token;
            MPI_Recv(&token, 1, MPI_INT, 0, PARTS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int k = 0; k < PARTS; k++) {
                pattern_fill(part, PART_BYTES, (unsigned) k);
                compute(0.007);
                MPI_Send(part, PART_BYTES, MPI_BYTE, 0, k, MPI_COMM_WORLD);
            }
        }
    }
    msgctl(queue, IPC_RMID, NULL);
    semctl(semaphores, 0, IPC_RMID);
    return finish("interrupted");
}
