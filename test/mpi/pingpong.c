/* Blocking MPI ping-pong beside a spinning raw-TCP ping-pong between the same two processes, in
 * turns: pingpong ADDRESS [BYTES [ROUNDS]]. ADDRESS is rank 1's, as rank 0 reaches it over the same
 * wire. Prints medians of half round trips in microseconds: pingpong bytes=8 raw_us=… mpi_us=…
 * ratio=… Turns, not one after the other, because the machine's speed drifts; medians of rounds,
 * because a neighbour may take a core for a while. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include "mpi_test.h"

enum { HOPS = 500, WARM_UP = 50 };

static void die(const char *what)
{
    fprintf(stderr, "pingpong: rank %d: %s: %s\n", my_rank, what, strerror(errno));
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* One socket between ranks 0 and 1; the port goes through MPI. */
static int connect_raw(const char *address)
{
    struct sockaddr_in where = {.sin_family = AF_INET};
    const int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port;
    if (fd < 0 || inet_pton(AF_INET, address, &where.sin_addr) != 1)
        die(address);
    if (my_rank == 1) {
        socklen_t length = sizeof where;
        if (bind(fd, (struct sockaddr *) &where, sizeof where) || listen(fd, 1) ||
            getsockname(fd, (struct sockaddr *) &where, &length))
            die("cannot listen");
        port = where.sin_port;
        MPI_Send(&port, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        /* nothing of MPI's is under way while we wait outside of it: with LITE_CONTROLLER=sync
         * nobody would move it */
        MPI_Barrier(MPI_COMM_WORLD);
        const int accepted = accept(fd, NULL, NULL);
        if (accepted < 0)
            die("accept");
        close(fd);
        fd = accepted;
    } else {
        MPI_Recv(&port, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        where.sin_port = (in_port_t) port;
        if (connect(fd, (struct sockaddr *) &where, sizeof where))
            die("cannot connect");
    }
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ||
        fcntl(fd, F_SETFL, O_NONBLOCK))
        die("socket option");
    return fd;
}

static void raw_send(int fd, const char *buffer, size_t bytes)
{
    while (bytes) {
        const ssize_t n = send(fd, buffer, bytes, MSG_NOSIGNAL);
        if (n > 0) {
            buffer += n;
            bytes -= (size_t) n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            die("send");
    }
}

static void raw_recv(int fd, char *buffer, size_t bytes)
{
    while (bytes) {
        const ssize_t n = recv(fd, buffer, bytes, 0);
        if (n > 0) {
            buffer += n;
            bytes -= (size_t) n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            die("recv");
    }
}

static double round_raw(int fd, char *buffer, size_t bytes, int hops)
{
    const double begin = now_s();
    for (int i = 0; i < hops; i++) {
        if (my_rank == 0) {
            raw_send(fd, buffer, bytes);
            raw_recv(fd, buffer, bytes);
        } else {
            raw_recv(fd, buffer, bytes);
            raw_send(fd, buffer, bytes);
        }
    }
    return (now_s() - begin) / hops / 2 * 1e6;
}

static double round_mpi(char *buffer, size_t bytes, int hops)
{
    const double begin = now_s();
    for (int i = 0; i < hops; i++) {
        if (my_rank == 0) {
            MPI_Send(buffer, (int) bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(buffer, (int) bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, (int) bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, (int) bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
    }
    return (now_s() - begin) / hops / 2 * 1e6;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    if (ranks != 2 || argc < 2) {
        fprintf(stderr, "pingpong: want 2 ranks and the address of rank 1\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 0) : 8;
    const int rounds = argc > 3 ? atoi(argv[3]) : 60;
    char *buffer = calloc(1, bytes ? bytes : 1);
    double *raw = calloc((size_t) rounds, sizeof *raw), *mpi = calloc((size_t) rounds, sizeof *mpi);
    if (rounds < 1 || !buffer || !raw || !mpi)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const int fd = connect_raw(argv[1]);
    for (int i = 0; i < rounds; i++) {
        round_raw(fd, buffer, bytes, WARM_UP);
        raw[i] = round_raw(fd, buffer, bytes, HOPS);
        round_mpi(buffer, bytes, WARM_UP);
        mpi[i] = round_mpi(buffer, bytes, HOPS);
    }
    close(fd);
    qsort(raw, (size_t) rounds, sizeof *raw, ascending);
    qsort(mpi, (size_t) rounds, sizeof *mpi, ascending);
    if (my_rank == 0)
        printf("pingpong bytes=%zu raw_us=%.2f mpi_us=%.2f ratio=%.3f\n", bytes, raw[rounds / 2],
               mpi[rounds / 2], mpi[rounds / 2] / raw[rounds / 2]);
    free(buffer);
    free(raw);
    free(mpi);
    return finish("pingpong");
}
