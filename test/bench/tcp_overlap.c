/* The yardstick of the overlap benchmark: the same exchange over plain TCP, with no
 * MPI. Both sides know the size, so there is no rendezvous, no matching and no header. While a side
 * computes, its SIGIO handler reads and writes the user's buffers. overlap_method.h has the method.
 *   tcp_overlap --rank 1 --address ADDRESS-OF-RANK-1 --port PORT …      started first, listens
 *   tcp_overlap --rank 0 --address ADDRESS-OF-RANK-1 --port PORT …      connects, prints the
 * results
 * --sockets N: over so many connections, an equal part of the data on each; ADDRESS is
 * ADDRESS+ADDRESS+… then, which the connections use by turns.
 * --lowat BYTES: SO_RCVLOWAT during a receive, never above what is still to come (0: off).
 * --handler no: nobody moves anything during the computation. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "overlap_method.h"

enum { SOCKETS_MAX = 16 };
enum op { ISEND, IRECV, BOTH, OPS };
static const char *const op_names[] = {"isend", "irecv", "both"};

static enum op op = BOTH;
static int my_rank = -1, computing_rank = -1, control_fd = -1, sockets = 1;
static size_t bytes;
static unsigned char *out, *in;
static int lowat;
static bool use_handler = true;

/* What is under way; touched by the handler, and outside of it only while the signal is blocked. */
static struct connection {
    int fd;
    size_t sent, received, to_send, to_receive; /* places in `out` and `in` */
    int lowat_set;
} connections[SOCKETS_MAX];
static volatile sig_atomic_t handled;
static double handler_spent_us;
static sigset_t io_signal;

static void die(const char *what)
{
    fprintf(stderr, "tcp_overlap: rank %d: %s: %s\n", my_rank, what, strerror(errno));
    exit(2);
}
/* In the handler. */
static void die_now(const char *what)
{
    (void) !write(2, what, strlen(what));
    _exit(2);
}

/* A level above what is still to come would wait for ever. Linux counts it per socket, so it is set
 * only when it changes. */
static void set_lowat(struct connection *c)
{
    const size_t left = c->to_receive - c->received;
    const int want = lowat == 0 || left == 0 ? 1 : left < (size_t) lowat ? (int) left : lowat;
    if (want != c->lowat_set && setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &want, sizeof want) == 0)
        c->lowat_set = want;
}
static void set_lowats(void)
{
    for (int i = 0; i < sockets; i++)
        set_lowat(&connections[i]);
}

/* Moves what can be moved. Signal-safe: system calls and plain words. */
static void advance(void)
{
    for (struct connection *c = connections; c < connections + sockets; c++) {
        while (c->received < c->to_receive) {
            const ssize_t n =
                recv(c->fd, in + c->received, c->to_receive - c->received, MSG_DONTWAIT);
            if (n > 0)
                c->received += (size_t) n;
            else if (n < 0 && errno == EAGAIN)
                break;
            else if (n == 0 || errno != EINTR)
                die_now("tcp_overlap: the other side is gone\n");
        }
        while (c->sent < c->to_send) {
            const ssize_t n =
                send(c->fd, out + c->sent, c->to_send - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n >= 0)
                c->sent += (size_t) n;
            else if (errno == EAGAIN)
                break;
            else if (errno != EINTR)
                die_now("tcp_overlap: the other side is gone\n");
        }
    }
}

static void on_signal(int number)
{
    (void) number;
    const int saved = errno;
    const double begin = now_us();
    handled++;
    advance();
    if (lowat)
        set_lowats();
    handler_spent_us += now_us() - begin;
    errno = saved;
}

static void mask(int how)
{
    sigprocmask(how, &io_signal, NULL);
}

static bool done(void)
{
    for (int i = 0; i < sockets; i++)
        if (connections[i].sent < connections[i].to_send ||
            connections[i].received < connections[i].to_receive)
            return false;
    return true;
}

/* As an MPI library waits: by polling, the signal blocked. */
static void finish_polling(void)
{
    while (!done())
        advance();
}

/* An equal part on each connection. */
static void divide(size_t to_send, size_t to_receive)
{
    const size_t n = (size_t) sockets;
    for (size_t i = 0; i < n; i++) {
        connections[i].sent = to_send * i / n;
        connections[i].to_send = to_send * (i + 1) / n;
        connections[i].received = to_receive * i / n;
        connections[i].to_receive = to_receive * (i + 1) / n;
    }
}

static bool receives(void)
{
    return op == BOTH || my_rank == (op == ISEND ? 1 : 0);
}
static void post(void)
{
    divide(op == BOTH || !receives() ? bytes : 0, receives() ? bytes : 0);
    if (computing_rank >= 0 && computing_rank != my_rank) {
        finish_polling();
        return;
    }
    /* What came while we polled left a signal pending, which tells nothing new. Taken back before
     * the look at the socket: what comes after it signals again. */
    static const struct timespec at_once;
    if (use_handler)
        while (sigtimedwait(&io_signal, NULL, &at_once) > 0)
            continue;
    advance();
    if (!done() && use_handler) {
        if (lowat)
            set_lowats();
        mask(SIG_UNBLOCK);
    }
}

static unsigned char *drain_out, *drain_in;
static size_t drain_bytes;
static void drain(void)
{
    unsigned char *const user_out = out, *const user_in = in;
    out = drain_out;
    in = drain_in;
    divide(drain_bytes, drain_bytes);
    finish_polling();
    out = user_out;
    in = user_in;
}

static void wait_for_it(void)
{
    mask(SIG_BLOCK);
    finish_polling();
    if (lowat)
        set_lowats();
}

/* --- what both sides have to agree on goes over a connection of its own */
static void put_all(const void *from, size_t count)
{
    for (size_t done_bytes = 0; done_bytes < count;) {
        const ssize_t n =
            send(control_fd, (const char *) from + done_bytes, count - done_bytes, MSG_NOSIGNAL);
        if (n > 0)
            done_bytes += (size_t) n;
        else if (errno != EINTR && errno != EAGAIN)
            die("control connection");
    }
}
static void get_all(void *to, size_t count)
{
    for (size_t done_bytes = 0; done_bytes < count;) {
        const ssize_t n = recv(control_fd, (char *) to + done_bytes, count - done_bytes,
                               MSG_DONTWAIT); /* polls, as MPI_Barrier would */
        if (n > 0)
            done_bytes += (size_t) n;
        else if (n == 0 || (errno != EINTR && errno != EAGAIN))
            die("control connection");
    }
}
static double max_of_both(double mine)
{
    double other;
    put_all(&mine, sizeof mine);
    get_all(&other, sizeof other);
    return mine > other ? mine : other;
}
static void barrier(void)
{
    max_of_both(0.0);
}

static void set_up_async(int fd)
{
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t) syscall(SYS_gettid)};
    if (fcntl(fd, F_SETOWN_EX, &owner) || fcntl(fd, F_SETSIG, SIGIO) ||
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC | O_NONBLOCK))
        die("O_ASYNC");
}

/* The control connection on the first of the addresses, the others by turns. */
static void connect_all(char *addresses, int port)
{
    struct sockaddr_in where[SOCKETS_MAX];
    const int one = 1;
    int listeners[SOCKETS_MAX], networks = 0;

    for (char *word = strtok(addresses, "+"); word; word = strtok(NULL, "+"), networks++) {
        if (networks == SOCKETS_MAX) {
            errno = E2BIG;
            die("--address");
        }
        where[networks] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
        if (inet_pton(AF_INET, word, &where[networks].sin_addr) != 1) {
            errno = EINVAL;
            die(word);
        }
    }
    if (networks == 0) {
        errno = EINVAL;
        die("--address");
    }
    for (int i = 0; my_rank == 1 && i < networks; i++) {
        listeners[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (listeners[i] < 0 ||
            setsockopt(listeners[i], SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
            bind(listeners[i], (struct sockaddr *) &where[i], sizeof where[i]) ||
            listen(listeners[i], SOCKETS_MAX))
            die("cannot listen");
    }
    for (int i = -1; i < sockets; i++) {
        int *const fd = i < 0 ? &control_fd : &connections[i].fd;
        const int network = i < 0 ? 0 : i % networks;
        const double deadline = now_us() + 10e6;
        if (my_rank == 1 && (*fd = accept(listeners[network], NULL, NULL)) < 0)
            die("accept");
        while (my_rank == 0) {
            *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (*fd >= 0 &&
                connect(*fd, (struct sockaddr *) &where[network], sizeof where[network]) == 0)
                break;
            if (errno != ECONNREFUSED || now_us() > deadline)
                die("cannot connect");
            close(*fd);
            usleep(20000);
        }
        if (setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
            die("TCP_NODELAY");
    }
    for (int i = 0; my_rank == 1 && i < networks; i++)
        close(listeners[i]);
}

/* --- data */
static void fill(unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = pattern_byte(i, seed * 2 + (unsigned) my_rank);
    memset(in, 0, bytes);
}
static long wrong(unsigned seed)
{
    for (size_t i = 0; receives() && i < bytes; i++)
        if (in[i] != pattern_byte(i, seed * 2 + (unsigned) (1 - my_rank)))
            return (long) i;
    return -1;
}

static double signals(void)
{
    return handled;
}
static double handler_us(void)
{
    return handler_spent_us;
}

static bool one_size(const struct plan *plan)
{
    if (posix_memalign((void **) &out, 4096, bytes) || posix_memalign((void **) &in, 4096, bytes))
        die("memory");
    memset(out, 0, bytes);
    memset(in, 0, bytes);
    const struct side side = {.rank = my_rank,
                              .computes = computing_rank < 0 || computing_rank == my_rank,
                              .moved_bytes = (op == BOTH ? 2.0 : 1.0) * (double) bytes,
                              .drain = drain_bytes > 0 ? drain : NULL,
                              .barrier = barrier,
                              .max = max_of_both,
                              .post = post,
                              .wait = wait_for_it,
                              .fill = fill,
                              .wrong = wrong,
                              .signals = signals,
                              .handler_us = handler_us};
    struct result results[2];
    char hosts[2][64] = {"", ""};
    results[my_rank] = measure(&side, plan);
    gethostname(hosts[my_rank], sizeof hosts[my_rank] - 1);
    put_all(&results[my_rank], sizeof results[0]);
    put_all(hosts[my_rank], sizeof hosts[0]);
    get_all(&results[1 - my_rank], sizeof results[0]);
    get_all(hosts[1 - my_rank], sizeof hosts[0]);
    const bool good = results[0].wrong_iterations == 0.0 && results[1].wrong_iterations == 0.0;
    if (my_rank == 0) {
        printf("{\"program\":\"tcp_overlap\",\"library\":\"plain TCP, %s",
               use_handler ? "SIGIO handler" : "no handler");
        if (sockets > 1)
            printf(", %d connections", sockets);
        if (lowat)
            printf(", SO_RCVLOWAT %d", lowat);
        printf("\",\"op\":\"%s\",\"datatype\":\"contiguous\",\"block\":0,\"compute\":",
               op_names[op]);
        if (computing_rank < 0)
            printf("\"all\"");
        else
            printf("\"%d\"", computing_rank);
        printf(
            ",\"bytes\":%zu,\"ranks\":2,\"factor\":%g,\"drain\":%zu,\"verified\":%s,\"per_rank\":",
            bytes, plan->factor, drain_bytes, good ? "true" : "false");
        print_ranks(stdout, results, (const char(*)[64]) hosts, 2);
        puts("}");
        fflush(stdout);
    }
    free(out);
    free(in);
    return good;
}

int main(int argc, char **argv)
{
    enum {
        RANK = 1,
        ADDRESS,
        PORT,
        SOCKETS,
        LOWAT,
        HANDLER,
        OP,
        SIZES,
        COMPUTE,
        FACTOR,
        ITERATIONS,
        SECONDS,
        SETTLE,
        DRAIN
    };
    static const struct option options[] = {{"rank", 1, NULL, RANK},
                                            {"address", 1, NULL, ADDRESS},
                                            {"port", 1, NULL, PORT},
                                            {"sockets", 1, NULL, SOCKETS},
                                            {"lowat", 1, NULL, LOWAT},
                                            {"handler", 1, NULL, HANDLER},
                                            {"op", 1, NULL, OP},
                                            {"sizes", 1, NULL, SIZES},
                                            {"compute", 1, NULL, COMPUTE},
                                            {"factor", 1, NULL, FACTOR},
                                            {"iterations", 1, NULL, ITERATIONS},
                                            {"seconds", 1, NULL, SECONDS},
                                            {"settle", 1, NULL, SETTLE},
                                            {"drain", 1, NULL, DRAIN},
                                            {NULL, 0, NULL, 0}};
    struct plan plan = {
        .factor = 1.2, .iterations = 0, .seconds = 1.0, .settle_us = 0.0, .drain_bytes = 0};
    char default_sizes[] = "1K,4K,16K,64K,256K,1M,4M,16M", *sizes = default_sizes;
    char *address = NULL;
    int port = 0;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (c) {
        case RANK: my_rank = atoi(optarg); break;
        case ADDRESS: address = optarg; break;
        case PORT: port = atoi(optarg); break;
        case SOCKETS: sockets = atoi(optarg); break;
        case LOWAT: lowat = (int) parse_size(optarg); break;
        case HANDLER: use_handler = strcmp(optarg, "no") != 0; break;
        case OP:
            for (op = 0; op < OPS && strcmp(optarg, op_names[op]) != 0; op++)
                continue;
            break;
        case SIZES: sizes = optarg; break;
        case COMPUTE: computing_rank = strcmp(optarg, "all") == 0 ? -1 : atoi(optarg); break;
        case FACTOR: plan.factor = atof(optarg); break;
        case ITERATIONS: plan.iterations = atoi(optarg); break;
        case SECONDS: plan.seconds = atof(optarg); break;
        case SETTLE: plan.settle_us = atof(optarg); break;
        case DRAIN: plan.drain_bytes = parse_size(optarg); break;
        default: return 2;
        }
    if ((my_rank != 0 && my_rank != 1) || !address || port < 1 || op == OPS || computing_rank > 1 ||
        sockets < 1 || sockets > SOCKETS_MAX || plan.settle_us >= 1e6) {
        fputs(
            "usage: tcp_overlap --rank 0|1 --address ADDRESS --port PORT [--sockets N]\n"
            "  [--lowat BYTES] [--handler no] [--op isend|irecv|both] [--sizes 64K,4M]\n"
            "  [--compute all|0|1] [--factor 1.2] [--iterations N | --seconds S] [--settle "
            "MICROSECONDS] [--drain BYTES]\n",
            stderr);
        return 2;
    }
    connect_all(address, port);
    for (int i = 0; i < sockets; i++)
        connections[i].lowat_set = 1;
    sigemptyset(&io_signal);
    sigaddset(&io_signal, SIGIO);
    mask(SIG_BLOCK);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGIO, &action, NULL))
        die("sigaction");
    for (int i = 0; i < sockets; i++)
        set_up_async(connections[i].fd);
    drain_bytes = plan.drain_bytes;
    if (drain_bytes > 0 &&
        (!(drain_out = calloc(1, drain_bytes)) || !(drain_in = calloc(1, drain_bytes))))
        die("memory");
    bool good = true;
    for (char *size = strtok(sizes, ","); size; size = strtok(NULL, ",")) {
        bytes = parse_size(size);
        if (bytes < 1) {
            errno = EINVAL;
            die(size);
        }
        good &= one_size(&plan);
    }
    free(drain_out);
    free(drain_in);
    return good ? 0 : 1;
}
