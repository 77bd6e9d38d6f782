/* The patterns of bench_method.h on plain TCP, one connection per pair of ranks, with the socket
 * options of the engine (src/mplite/net/net_posix.cpp, set_options): what no MPI over TCP can beat.
 * Run by scripts/compare; alone, on each host: tcp_bench --rank R --hosts A,B --port P --wait
 * spin|yield|block --pattern pingpong --sizes 8,64K
 *
 * Rank R listens on A's, B's … port P + R
 * --wait spin: recv() until something is there; yield: the same with sched_yield(), for ranks that
 * share a core; block: asleep in the kernel.
 * --sockbuf BYTES: SO_SNDBUF and SO_RCVBUF, as LITE_SOCKBUF does; 0: the kernel's autotuning.
 * --sockets N: two ranks, with so many connections that one thread writes and reads: pieces of a
 * burst of messages go over whichever takes them next. HOST is ADDRESS+ADDRESS+… then, which the
 * connections use by turns. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "bench_method.h"

enum {
    RANKS_MAX = 64,
    SOCKETS_MAX = 16,
    PIECE = 128 << 10,
    READ_AHEAD = 64 << 10,
    CONNECT_TRIES = 1000,
    TCP_RTO_MAX_MS_ = 44
};
static const uint32_t magic = 0x6c746362;

static struct transport transport = {.rank = -1};
static int fds[RANKS_MAX], port = -1, sockbuf;
static int sockets = 1;
static const char *addresses[RANKS_MAX];
static enum { SPIN, YIELD, BLOCK } waiting = SPIN;

static void die(const char *what)
{
    fprintf(stderr, "tcp_bench: rank %d: %s: %s\n", transport.rank, what, strerror(errno));
    exit(2);
}

static void set_int(int fd, int level, int option, int value)
{
    (void) setsockopt(fd, level, option, &value, sizeof value);
}
/* Before connect() and listen(): what is accepted inherits the buffers, and the window scale is
 * settled by then. */
static void set_options(int fd)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (sockbuf > 0) {
        set_int(fd, SOL_SOCKET, SO_SNDBUF, sockbuf);
        set_int(fd, SOL_SOCKET, SO_RCVBUF, sockbuf);
    }
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, 2);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, 5);
    set_int(fd, IPPROTO_TCP, TCP_RTO_MAX_MS_, 2000);
}

/* A piece of a burst on one of several connections: where it belongs goes before it. Beside them is
 * one for what is no burst. */
static struct flow {
    int fd;
    struct place {
        uint64_t offset, bytes;
    } place;
    size_t done; /* of place and piece together */
    bool busy;
} outgoing[SOCKETS_MAX], incoming[SOCKETS_MAX];
static uint64_t spread_before, gathered_before; /* bytes of the bursts before this one */

/* Nothing to do: gives the core away, or sleeps until the socket is ready. */
static void wait_for(int fd, short events)
{
    if (waiting == YIELD) {
        sched_yield();
    } else if (waiting == BLOCK) {
        struct pollfd one = {.fd = fd, .events = events};
        (void) poll(&one, 1, -1);
    }
}

static const int no_wait = MSG_DONTWAIT | MSG_NOSIGNAL;

static void send_to(int to, const void *buffer, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = send(fds[to], (const char *) buffer + done, bytes - done,
                               waiting == BLOCK ? MSG_NOSIGNAL : no_wait);
        if (n > 0)
            done += (size_t) n;
        else if (errno == EAGAIN)
            wait_for(fds[to], POLLOUT);
        else if (errno != EINTR)
            die("send");
    }
}
static void receive_from(int from, void *buffer, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = recv(fds[from], (char *) buffer + done, bytes - done,
                               waiting == BLOCK ? 0 : MSG_DONTWAIT);
        if (n > 0)
            done += (size_t) n;
        else if (n == 0)
            errno = ECONNRESET, die("recv");
        else if (errno == EAGAIN)
            wait_for(fds[from], POLLIN);
        else if (errno != EINTR)
            die("recv");
    }
}

/* Over all connections; `step`: from one message to the next, 0: all are the same memory. */
static void spread(const char *buffer, size_t bytes, int count, size_t step)
{
    const size_t all = bytes * (size_t) count;
    size_t given = 0;
    for (bool busy = true; busy;) {
        busy = false;
        for (int k = 0; k < sockets; k++) {
            struct flow *const f = &outgoing[k];
            if (!f->busy && given < all) {
                const size_t left = bytes - given % bytes;
                f->place = (struct place){spread_before + given, left < PIECE ? left : PIECE};
                f->done = 0;
                f->busy = true;
                given += f->place.bytes;
            }
            if (!f->busy)
                continue;
            const size_t head = f->done < sizeof f->place ? sizeof f->place - f->done : 0;
            const size_t at = f->done - (sizeof f->place - head);
            const size_t offset = f->place.offset - spread_before,
                         from = offset / bytes * step + offset % bytes;
            struct iovec parts[2] = {
                {(char *) &f->place + f->done, head},
                {(char *) buffer + from + at, f->place.bytes - at},
            };
            struct msghdr message = {.msg_iov = head ? parts : parts + 1,
                                     .msg_iovlen = head ? 2 : 1};
            const ssize_t n = sendmsg(f->fd, &message, no_wait);
            if (n < 0 && errno != EAGAIN && errno != EINTR)
                die("sendmsg");
            f->done += n > 0 ? (size_t) n : 0;
            f->busy = f->done < sizeof f->place + f->place.bytes;
            busy = true;
        }
    }
    spread_before += all;
}
/* A connection that has a piece of the next burst already waits. */
static void gather(char *buffer, size_t all)
{
    for (size_t here = 0; here < all;)
        for (int k = 0; k < sockets; k++) {
            struct flow *const f = &incoming[k];
            const bool head = f->done < sizeof f->place;
            const size_t at = f->done - sizeof f->place;
            if (!head && f->place.offset >= gathered_before + all)
                continue;
            char *const to = buffer + (head ? 0 : f->place.offset - gathered_before + at);
            const ssize_t n =
                head ? recv(f->fd, (char *) &f->place + f->done, sizeof f->place - f->done, no_wait)
                     : recv(f->fd, to, f->place.bytes - at, no_wait);
            if (n == 0)
                errno = ECONNRESET;
            if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                die("recv");
            if (n < 0)
                continue;
            f->done += (size_t) n;
            if (head || f->done < sizeof f->place + f->place.bytes)
                continue;
            here += f->place.bytes;
            f->done = 0;
        }
    gathered_before += all;
}
static void spread_to(int to, const void *buffer, size_t bytes)
{
    (void) to;
    spread(buffer, bytes, 1, bytes);
}
static void gather_from(int from, void *buffer, size_t bytes)
{
    (void) from;
    gather(buffer, bytes);
}
static void spread_burst(int to, const char *buffer, size_t bytes, int count)
{
    (void) to;
    spread(buffer, bytes, count, (size_t) count * bytes <= memory_bytes ? bytes : 0);
}
static void gather_burst(int from, char *buffer, size_t bytes, int count)
{
    (void) from;
    gather(buffer, bytes * (size_t) count);
}

static void burst_out(int to, const char *buffer, size_t bytes, int count)
{
    const size_t step = (size_t) count * bytes <= memory_bytes ? bytes : 0;
    for (int i = 0; i < count; i++)
        send_to(to, buffer + (size_t) i * step, bytes);
}
static void burst_in(int from, char *buffer, size_t bytes, int count)
{
    receive_from(from, buffer, bytes * (size_t) count);
}
static void burst_both(int other, const char *out, char *in, size_t bytes, int count)
{
    const size_t all = bytes * (size_t) count;
    for (size_t sent = 0, received = 0; sent < all || received < all;) {
        bool moved = false;
        if (received < all) {
            const ssize_t n = recv(fds[other], in + received, all - received, MSG_DONTWAIT);
            if (n > 0)
                received += (size_t) n, moved = true;
            else if (n == 0 || (errno != EAGAIN && errno != EINTR))
                die("recv");
        }
        if (sent < all) {
            /* message by message, as the others do */
            const size_t rest = bytes - sent % bytes;
            const ssize_t n = send(fds[other], out + sent, rest, no_wait);
            if (n > 0)
                sent += (size_t) n, moved = true;
            else if (errno != EAGAIN && errno != EINTR)
                die("send");
        }
        if (!moved)
            wait_for(fds[other],
                     (short) ((received < all ? POLLIN : 0) | (sent < all ? POLLOUT : 0)));
    }
}

static void sink(char *buffer, size_t bytes, long each, long *counts)
{
    const double want = (double) bytes * (double) each;
    double so_far[RANKS_MAX] = {0};
    bool first = true;
    static char ahead[READ_AHEAD];
    for (int missing = transport.ranks - 1; missing > 0;) {
        bool moved = false;
        for (int from = 1; from < transport.ranks; from++) {
            const double left = want - so_far[from];
            const ssize_t n =
                left > 0 ? recv(fds[from], ahead, left < READ_AHEAD ? (size_t) left : READ_AHEAD,
                                MSG_DONTWAIT)
                         : -1;
            if (left <= 0)
                continue;
            if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                die("recv");
            if (n < 0)
                continue;
            moved = true;
            /* the first message of each is looked at afterwards */
            if (so_far[from] < (double) bytes)
                memcpy(buffer + (size_t) so_far[from], ahead,
                       so_far[from] + (double) n < (double) bytes ? (size_t) n
                                                                  : bytes - (size_t) so_far[from]);
            so_far[from] += (double) n;
            if (so_far[from] >= want) {
                missing--;
                for (int i = 1; first && i < transport.ranks; i++)
                    counts[i] = (long) (so_far[i] / (double) bytes);
                first = false;
            }
        }
        if (!moved && waiting == YIELD)
            sched_yield();
        if (!moved && waiting == BLOCK) {
            struct pollfd all[RANKS_MAX];
            nfds_t open = 0;
            for (int from = 1; from < transport.ranks; from++)
                if (so_far[from] < want)
                    all[open++] = (struct pollfd){.fd = fds[from], .events = POLLIN};
            (void) poll(all, open, -1);
        }
    }
}

/* By way of rank 0. */
static void barrier(void)
{
    char byte = 0;
    for (int i = 1; i < transport.ranks; i++)
        if (transport.rank == 0)
            receive_from(i, &byte, 1);
        else if (transport.rank == i)
            send_to(0, &byte, 1);
    for (int i = 1; i < transport.ranks; i++)
        if (transport.rank == 0)
            send_to(i, &byte, 1);
        else if (transport.rank == i)
            receive_from(0, &byte, 1);
}
static void from_root(void *value, size_t bytes)
{
    for (int i = 1; i < transport.ranks; i++)
        if (transport.rank == 0)
            send_to(i, value, bytes);
        else if (transport.rank == i)
            receive_from(0, value, bytes);
}
static double max_of_all(double mine)
{
    for (int i = 1; i < transport.ranks; i++)
        if (transport.rank == 0) {
            double other;
            receive_from(i, &other, sizeof other);
            mine = other > mine ? other : mine;
        } else if (transport.rank == i) {
            send_to(0, &mine, sizeof mine);
        }
    from_root(&mine, sizeof mine);
    return mine;
}

/* --- connections: each rank connects to those below it and takes those above it */
static int connections(void)
{
    return sockets > 1 ? sockets + 1 : 1;
}
static void keep(int rank, int number, int fd)
{
    if (number == 0)
        fds[rank] = fd;
    else
        outgoing[number - 1].fd = incoming[number - 1].fd = fd;
}
static struct addrinfo *look_up(int rank, int number)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char *const list = strdup(addresses[rank]), *address = NULL;
    int count = 1;
    for (const char *c = addresses[rank]; *c; c++)
        count += *c == '+';
    for (int i = 0; list && i <= (number + count - 1) % count; i++)
        address = strtok(i ? NULL : list, "+");
    if (!address)
        die("no memory for an address");
    struct addrinfo *found = NULL;
    char text[16];
    snprintf(text, sizeof text, "%d", port + rank);
    const int code = getaddrinfo(address, text, &hints, &found);
    if (code != 0) {
        fprintf(stderr, "tcp_bench: host '%s': %s\n", addresses[rank], gai_strerror(code));
        exit(2);
    }
    free(list);
    return found;
}
static void connect_to(int rank, int number)
{
    struct addrinfo *const where = look_up(rank, number);
    const uint32_t hello[3] = {htonl(magic), htonl((uint32_t) transport.rank),
                               htonl((uint32_t) number)};
    for (int attempt = 0;; attempt++) {
        const int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            die("socket");
        set_options(fd);
        keep(rank, number, fd);
        if (connect(fd, where->ai_addr, where->ai_addrlen) == 0)
            break;
        if (attempt >= CONNECT_TRIES || (errno != ECONNREFUSED && errno != EINTR))
            die(addresses[rank]);
        close(fd);
        usleep(10000);
    }
    freeaddrinfo(where);
    if (send(number ? outgoing[number - 1].fd : fds[rank], hello, sizeof hello, MSG_NOSIGNAL) !=
        sizeof hello)
        die("hello");
}
static void accept_those_above(int listener)
{
    for (int missing = (transport.ranks - 1 - transport.rank) * connections(); missing > 0;) {
        uint32_t hello[3];
        const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            die("accept");
        set_options(fd);
        const bool known = recv(fd, hello, sizeof hello, MSG_WAITALL) == sizeof hello &&
                           ntohl(hello[0]) == magic &&
                           ntohl(hello[1]) < (uint32_t) transport.ranks &&
                           ntohl(hello[2]) < (uint32_t) connections();
        if (!known) {
            close(fd);
            continue;
        }
        keep((int) ntohl(hello[1]), (int) ntohl(hello[2]), fd);
        missing--;
    }
}
static void connect_all(void)
{
    struct addrinfo *const mine = look_up(transport.rank, 0);
    const int listener = socket(mine->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0)
        die("socket");
    set_int(listener, SOL_SOCKET, SO_REUSEADDR, 1);
    set_options(listener);
    if (sockets > 1) /* at every address */
        ((struct sockaddr_in *) mine->ai_addr)->sin_addr.s_addr = htonl(INADDR_ANY);
    if (bind(listener, mine->ai_addr, mine->ai_addrlen) || listen(listener, RANKS_MAX))
        die("cannot listen");
    freeaddrinfo(mine);
    for (int below = 0; below < transport.rank; below++)
        for (int i = 0; i < connections(); i++)
            connect_to(below, i);
    accept_those_above(listener);
    close(listener);
}

static bool option(const char *name, const char *value)
{
    static const char *const waits[] = {"spin", "yield", "block"};
    if (strcmp(name, "--rank") == 0) {
        transport.rank = atoi(value);
    } else if (strcmp(name, "--hosts") == 0) {
        char *const list = strdup(value);
        for (char *host = list ? strtok(list, ",") : NULL; host && transport.ranks < RANKS_MAX;
             host = strtok(NULL, ","))
            addresses[transport.ranks++] = host;
    } else if (strcmp(name, "--port") == 0) {
        port = atoi(value);
    } else if (strcmp(name, "--sockbuf") == 0) {
        sockbuf = (int) parse_size(value);
    } else if (strcmp(name, "--sockets") == 0) {
        sockets = atoi(value);
    } else if (strcmp(name, "--wait") == 0) {
        for (waiting = SPIN; waiting <= BLOCK && strcmp(value, waits[waiting]) != 0; waiting++)
            continue;
        return waiting <= BLOCK;
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct plan plan;
    if (!parse_plan(&plan, argc, argv, option) || transport.rank < 0 ||
        transport.rank >= transport.ranks || port < 1 || port > 65535 - RANKS_MAX || sockets < 1 ||
        sockets > SOCKETS_MAX || (sockets > 1 && transport.ranks != 2)) {
        fputs(
            "usage: tcp_bench --rank R --hosts A,B --port P [--wait spin|yield|block] [--sockbuf "
            "BYTES] [--sockets N] --pattern NAME --sizes 8,64K [--seconds S] [--limit SECONDS]\n",
            stderr);
        return 2;
    }
    const char *const why = obstacle(&transport, &plan);
    if (why) {
        fprintf(stderr, "tcp_bench: %s\n", why);
        return 2;
    }
    end_after(plan.words.limit);
    connect_all();
    transport.send = send_to;
    transport.receive = receive_from;
    transport.burst_out = burst_out;
    transport.burst_in = burst_in;
    transport.burst_both = burst_both;
    if (sockets > 1) {
        transport.send = spread_to;
        transport.receive = gather_from;
        transport.burst_out = spread_burst;
        transport.burst_in = gather_burst;
    }
    transport.sink = sink;
    transport.barrier = barrier;
    transport.from_root = from_root;
    transport.max = max_of_all;
    if (transport.rank == 0)
        printf("{\"library\":\"plain TCP, %s\"}\n", waiting == BLOCK   ? "blocking"
                                                    : waiting == YIELD ? "spinning, yielding"
                                                                       : "spinning");
    const bool ran = run_plan(&transport, &plan);
    return ran ? 0 : 1;
}
