/* Two ranks on one node: what a message through shared memory costs, the device polled beside it.
 * mpi_shared_memory [SECONDS per point]. Prints a line of JSON per point: medians of batches, in
 * microseconds per hop (ping-pong) or message (stream).
 *
 *   known    blocking ping-pong, sources named
 *   any      the same, received from MPI_ANY_SOURCE: a receive is outstanding in the device as well
 *   beside   as known, while a receive from anybody with a tag that nobody uses stays posted
 *   stream   windows of 64 messages one way */
#include "bench_common.h"

#include <mpi.h>

enum { BATCHES_MAX = 4096, WINDOW = 64 };

static int my_rank;
static char buffer[WINDOW][65536];

static void hops(int count, int bytes, int source)
{
    for (int i = 0; i < count; i++) {
        if (my_rank == 0) {
            MPI_Send(buffer[0], bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(buffer[0], bytes, MPI_BYTE, source, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer[0], bytes, MPI_BYTE, source, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer[0], bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
    }
}

static void stream(int count, int bytes)
{
    MPI_Request requests[WINDOW];
    for (int i = 0; i < count; i += WINDOW) {
        for (int j = 0; j < WINDOW; j++) {
            if (my_rank == 0)
                MPI_Isend(buffer[j], bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[j]);
            else
                MPI_Irecv(buffer[j], bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[j]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        hops(1, 0, 1 - my_rank);
    }
}

static void measure(const char *pattern, int bytes, double seconds)
{
    static double batches[BATCHES_MAX];
    const int streaming = strcmp(pattern, "stream") == 0, count = streaming       ? 4 * WINDOW
                                                                  : bytes > 10000 ? 50
                                                                                  : 500;
    const int source = strcmp(pattern, "any") == 0 ? MPI_ANY_SOURCE : 1 - my_rank;
    MPI_Request beside = MPI_REQUEST_NULL;
    int number = 0, more = 1;
    if (strcmp(pattern, "beside") == 0)
        MPI_Irecv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &beside);
    MPI_Barrier(MPI_COMM_WORLD);
    hops(100, bytes, source);
    const double begin = now_us();
    while (more) {
        const double start = now_us();
        if (streaming)
            stream(count, bytes);
        else
            hops(count, bytes, source);
        const double end = now_us();
        batches[number++] = (end - start) / (streaming ? count : 2 * count);
        more = end - begin < 1e6 * seconds && number < BATCHES_MAX;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (beside != MPI_REQUEST_NULL) {
        MPI_Cancel(&beside);
        MPI_Wait(&beside, MPI_STATUS_IGNORE);
    }
    if (my_rank == 0)
        printf("{\"pattern\": \"%s\", \"bytes\": %d, \"us\": %.4f}\n", pattern, bytes,
               median(batches, number));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    const double seconds = argc > 1 ? atof(argv[1]) : 0.3;
    measure("known", 8, seconds);
    measure("known", 4096, seconds);
    measure("known", 65536, seconds);
    measure("any", 8, seconds);
    measure("beside", 8, seconds);
    measure("stream", 8, seconds);
    MPI_Finalize();
    return 0;
}
