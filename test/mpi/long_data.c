/* Collectives of more than 2 GB in all, whose lengths in bytes no int has. What is sent is one part
 * of memory again and again, so that a machine needs 4 GB: long_data, 4 ranks. */
#define _GNU_SOURCE
#include "mpi_test.h"

#include <sys/mman.h>

static const size_t part = (size_t) 64 << 20;

/* `bytes` of memory, of which each `part` is the first one. */
static char *repeated(size_t bytes)
{
    const int fd = memfd_create("long_data", MFD_CLOEXEC);
    char *const all = mmap(NULL, bytes + part, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int failed = fd < 0 || ftruncate(fd, (off_t) part) != 0 || all == MAP_FAILED;
    for (size_t at = 0; at < bytes && !failed; at += part)
        failed = mmap(all + at, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
                 MAP_FAILED;
    close(fd);
    if (failed) {
        perror("long_data");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return all;
}

/* Of data that begins at `from` in what is sent. */
static void check(const char *data, size_t bytes, size_t from, const char *what)
{
    enum { STEP = 4093 };
    size_t wrong = 0;
    for (size_t at = 0; at < bytes; at += STEP)
        wrong += (unsigned char) data[at] != pattern_byte((from + at) % part, 1);
    wrong += (unsigned char) data[bytes - 1] != pattern_byte((from + bytes - 1) % part, 1);
    CHECK(wrong == 0, "%s: %zu bytes are wrong", what, wrong);
}

static void scattered(const char *all, int each, int nonblocking)
{
    char *const own = calloc(1, (size_t) each);
    MPI_Request request = MPI_REQUEST_NULL;
    if (nonblocking)
        MPI_Iscatter(all, each, MPI_CHAR, own, each, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
    else
        MPI_Scatter(all, each, MPI_CHAR, own, each, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(own, (size_t) each, (size_t) my_rank * (size_t) each,
          nonblocking ? "MPI_Iscatter" : "MPI_Scatter");
    free(own);
}

static void broadcast(char *all, int count, int nonblocking)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (my_rank != 0)
        memset(all, 0, part);
    if (nonblocking)
        MPI_Ibcast(all, count, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request);
    else
        MPI_Bcast(all, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(all, part, 0, nonblocking ? "MPI_Ibcast" : "MPI_Bcast");
}

int main(int argc, char **argv)
{
    enum { EACH = 550000003, DOUBLES = 320000000 };
    const size_t most = (size_t) DOUBLES * sizeof(double);
    start(&argc, &argv);
    if ((size_t) EACH * (size_t) ranks > most)
        MPI_Abort(MPI_COMM_WORLD, 2);
    char *const all = repeated(most);
    if (my_rank == 0)
        pattern_fill(all, part, 1);
    scattered(all, EACH, 0);
    scattered(all, EACH, 1);
    broadcast(all, DOUBLES, 1);
    broadcast(all, DOUBLES, 0);
    return finish("long_data");
}
