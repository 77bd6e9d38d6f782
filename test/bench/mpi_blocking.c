/* What asynchronous progress costs a program that has no use for it: blocking ping-pong, and Irecv,
 * Isend, Waitall right after each other, between two ranks. Any MPI. Prints a JSON line per pattern
 * and size: the median over batches of the time of one iteration (ping-pong: half a round trip) in
 * microseconds. Usage: mpi_blocking [seconds per point] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PINGPONG, EXCHANGE, PATTERNS };
static const char *const names[] = {"pingpong", "isend_irecv_waitall"};
static const int sizes[] = {8, 1024, 65536, 1048576};

static int rank;

static void once(int pattern, char *out, char *in, int bytes)
{
    const int other = 1 - rank;
    if (pattern == EXCHANGE) {
        MPI_Request requests[2];
        MPI_Irecv(in, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 0) {
        MPI_Send(out, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    enum { BATCHES = 21 };
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const double seconds = argc > 1 ? atof(argv[1]) : 0.2;
    char *out = malloc(1 << 20), *in = malloc(1 << 20);
    if (ranks != 2 || !out || !in || seconds <= 0) {
        fprintf(stderr, "mpi_blocking: want 2 ranks and a positive time\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(out, 1, 1 << 20);
    memset(in, 2, 1 << 20);
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            double times[BATCHES];
            int count = 20;
            double before = MPI_Wtime();
            for (int i = 0; i < count; i++)
                once(pattern, out, in, sizes[s]);
            count = (int) (seconds / BATCHES / ((MPI_Wtime() - before) / count)) + 1;
            MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
            for (int b = 0; b < BATCHES; b++) {
                MPI_Barrier(MPI_COMM_WORLD);
                before = MPI_Wtime();
                for (int i = 0; i < count; i++)
                    once(pattern, out, in, sizes[s]);
                times[b] = (MPI_Wtime() - before) / count / (pattern == PINGPONG ? 2 : 1);
            }
            qsort(times, BATCHES, sizeof *times, ascending);
            if (rank == 0)
                printf("{\"pattern\": \"%s\", \"bytes\": %d, \"iterations\": %d, \"us\": %.3f}\n",
                       names[pattern], sizes[s], count * BATCHES, 1e6 * times[BATCHES / 2]);
        }
    }
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
