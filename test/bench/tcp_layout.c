/* What the place of the data in the stream, writing in two halves and SO_RCVLOWAT do to ping-pong
 * over plain TCP with a header before each message: the variants by turns on one connection, both
 * ends spinning. Run by test/bench/layout; alone:  tcp_layout RANK ADDRESS PORT ROUNDS SIZE… rank 0
 * listens on ADDRESS. Prints microseconds for half a round trip. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE = 64,
    HEAD_MAX = 256,
    AHEAD = 8 << 10,
    BYTES_MAX = 16 << 20,
    ROUNDS_MAX = 64,
    TRIES = 500
};

/* `phase`: of the user's buffer in a line of the cache. `head`: bytes of the header; 0 is plain
 * TCP. `ahead`: what is read before a message is known, at most, and copied. */
struct variant {
    const char *name;
    int phase, head, ahead, low_water;
    bool halves, watched;
};
static const struct variant variants[] = {
    {.name = "plain"},
    {.name = "plain+16", .phase = 16},
    {.name = "aligned", .head = 128, .ahead = AHEAD},
    {.name = "apart", .head = 104, .ahead = AHEAD},
    {.name = "aligned+16", .phase = 16, .head = 144, .ahead = AHEAD},
    {.name = "apart+16", .phase = 16, .head = 128, .ahead = AHEAD},
    {.name = "halves", .head = 128, .ahead = AHEAD, .halves = true},
    {.name = "watched", .head = 128, .ahead = AHEAD, .watched = true},
    {.name = "lowat32K", .head = 128, .ahead = AHEAD, .low_water = 32 << 10},
    {.name = "lowat64K", .head = 128, .ahead = AHEAD, .low_water = 64 << 10},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static int fd = -1, epoll = -1;
static char *memory, *staging, header[HEAD_MAX];

static void die(const char *what)
{
    fprintf(stderr, "tcp_layout: %s: %s\n", what, strerror(errno));
    exit(2);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static void send_message(const struct variant *v, char *user, size_t bytes)
{
    const size_t head = (size_t) v->head, all = head + bytes;
    for (size_t done = 0, stop = v->halves && all / 2 > head ? all / 2 : all; done < all;) {
        const struct iovec parts[2] = {
            {header + done, head - done},
            {user + (done > head ? done - head : 0), stop - (done > head ? done : head)}};
        const bool body = done >= head;
        const struct msghdr message = {.msg_iov = (struct iovec *) parts + body,
                                       .msg_iovlen = body ? 1 : 2};
        const ssize_t n =
            body ? send(fd, parts[1].iov_base, parts[1].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
                 : sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
            done += (size_t) n;
        else if (errno != EAGAIN)
            die("send");
        if (done == stop)
            stop = all;
    }
}

static size_t receive_some(char *to, size_t bytes)
{
    for (;;) {
        const ssize_t n = recv(fd, to, bytes, MSG_DONTWAIT);
        if (n > 0)
            return (size_t) n;
        if (n == 0)
            errno = ECONNRESET;
        if (n == 0 || errno != EAGAIN)
            die("recv");
    }
}

static void receive_message(const struct variant *v, char *user, size_t bytes)
{
    const size_t head = (size_t) v->head, all = head + bytes;
    size_t done = 0;
    if (head > 0) {
        while (done < head)
            done += receive_some(staging + done,
                                 (all < (size_t) v->ahead ? all : (size_t) v->ahead) - done);
        memcpy(user, staging + head, done - head);
    }
    while (done < all)
        done += receive_some(user + done - head, all - done);
}

static void prepare(const struct variant *v)
{
    const int low_water = v->low_water > 0 ? v->low_water : 1;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
    (void) epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
    if (v->watched && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof low_water) != 0)
        die("SO_RCVLOWAT");
}

static void join(int rank, const char *address, const char *port)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *at;
    const int one = 1;
    if (getaddrinfo(address, port, &hints, &at) != 0)
        die(address);
    for (int tries = 0; fd < 0; tries++) {
        const int s = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void) setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (rank == 0) {
            if (bind(s, at->ai_addr, at->ai_addrlen) != 0 || listen(s, 1) != 0 ||
                (fd = accept(s, NULL, NULL)) < 0)
                die(address);
            close(s);
        } else if (connect(s, at->ai_addr, at->ai_addrlen) == 0) {
            fd = s;
        } else {
            if (tries == TRIES)
                die(address);
            close(s);
            usleep(20000);
        }
    }
    freeaddrinfo(at);
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc < 6)
        return fprintf(stderr, "Usage: tcp_layout RANK ADDRESS PORT ROUNDS SIZE…\n"), 2;
    const int rank = atoi(argv[1]), rounds = atoi(argv[4]);
    memory = aligned_alloc(4096, BYTES_MAX + 4096);
    staging = aligned_alloc(4096, AHEAD);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (memory == NULL || staging == NULL || epoll < 0 || rounds < 1 || rounds > ROUNDS_MAX)
        die("start");
    memset(memory, 1, BYTES_MAX + 4096);
    join(rank, argv[2], argv[3]);
    if (rank == 0) {
        printf("%8s", "bytes");
        for (int k = 0; k < VARIANTS; k++)
            printf(" %10s", variants[k].name);
        printf("\n");
    }
    for (int s = 5; s < argc; s++) {
        const size_t bytes = strtoul(argv[s], NULL, 10);
        const int count =
            bytes <= 4096 ? 2048
            : bytes <= 65536
                ? 640
                : 256; /* times LINE: what the variants leave behind in the stream is whole lines */
        static double times[VARIANTS][ROUNDS_MAX];
        if (bytes < 1 || bytes > BYTES_MAX)
            return fprintf(stderr, "tcp_layout: sizes are 1 to %d bytes\n", BYTES_MAX), 2;
        for (int r = 0; r < rounds; r++) {
            for (int k = 0; k < VARIANTS; k++) {
                const struct variant *v = &variants[k];
                char *user = memory + v->phase;
                prepare(v);
                const double begin = now_us();
                for (int i = 0; i < count; i++) {
                    if (rank == 0)
                        send_message(v, user, bytes);
                    receive_message(v, user, bytes);
                    if (rank != 0)
                        send_message(v, user, bytes);
                }
                times[k][r] = (now_us() - begin) / count / 2;
            }
        }
        if (rank != 0)
            continue;
        printf("%8zu", bytes);
        for (int k = 0; k < VARIANTS; k++) {
            qsort(times[k], (size_t) rounds, sizeof times[k][0], by_value);
            printf(" %10.2f", times[k][rounds / 2]);
        }
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
