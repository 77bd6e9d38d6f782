/* Does a large message arrive while both sides compute and make no MPI call?
 * Ranks 0 and 1 exchange BYTES (default 64 MiB) while they compute for SECONDS (default 1); each
 * looks at the last bytes of its receive buffer just before MPI_Wait. Before that, as the first
 * communication of all: rank 1 sends a little message, which needs a connection, and computes
 * (pattern first_send: rank 0 looks whether it has it before rank 1 is done). Prints per pattern
 * and rank: overlap pattern=… rank=… complete_before_wait=yes|no wait_ms=… */
#include "mpi_test.h"

enum pattern { NAMED, ANY_SOURCE, LATE_RECEIVER };
static const char *const pattern_names[] = {"named", "any_source", "late_receiver"};

static void exchange(enum pattern pattern, unsigned char *out, unsigned char *in, size_t bytes,
                     double seconds)
{
    const int other = 1 - my_rank;
    const int source = pattern == ANY_SOURCE ? MPI_ANY_SOURCE : other;
    MPI_Request requests[2];
    double work = 0.0;

    pattern_fill(out, bytes, (unsigned) (my_rank + 2 * (int) pattern));
    memset(in, 0, bytes);
    in[bytes - 1] =
        (unsigned char) ~pattern_byte(bytes - 1, (unsigned) (other + 2 * (int) pattern));
    MPI_Barrier(MPI_COMM_WORLD);

    if (pattern == LATE_RECEIVER) {
        /* the announcement is there before its receive */
        MPI_Isend(out, (int) bytes, MPI_BYTE, other, 7, MPI_COMM_WORLD, &requests[1]);
        work += compute(0.2);
        MPI_Irecv(in, (int) bytes, MPI_BYTE, source, 7, MPI_COMM_WORLD, &requests[0]);
    } else {
        MPI_Irecv(in, (int) bytes, MPI_BYTE, source, 7, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, (int) bytes, MPI_BYTE, other, 7, MPI_COMM_WORLD, &requests[1]);
    }
    work += compute(seconds);

    /* read as the hardware has it: the compiler knows of nobody else who writes here */
    const volatile unsigned char *seen = in;
    int complete = 1;
    for (size_t i = bytes - 64; i < bytes; i++)
        complete &= seen[i] == pattern_byte(i, (unsigned) (other + 2 * (int) pattern));

    const double before = now_s();
    MPI_Status statuses[2];
    MPI_Waitall(2, requests, statuses);
    const double wait_s = now_s() - before;
    const long wrong = pattern_wrong(in, bytes, (unsigned) (other + 2 * (int) pattern));
    CHECK(wrong < 0, "byte %ld is wrong (pattern %s)", wrong, pattern_names[pattern]);
    CHECK(work > 0.0, "no work was done");
    printf("overlap pattern=%s rank=%d complete_before_wait=%s wait_ms=%.2f\n",
           pattern_names[pattern], my_rank, complete ? "yes" : "no", 1e3 * wait_s);
    fflush(stdout);
}

/* A send that has returned is not over: its connection may still be in the making, and nobody but
 * the controller will see to it. */
static void first_send(double seconds)
{
    int token = 17;
    if (my_rank == 1) {
        MPI_Send(&token, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
        CHECK(compute(seconds) > 0.0, "no work was done");
    } else {
        const double before = now_s();
        token = 0;
        MPI_Recv(&token, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double wait_s = now_s() - before;
        CHECK(token == 17, "brought %d", token);
        printf("overlap pattern=first_send rank=0 complete_before_wait=%s wait_ms=%.2f\n",
               wait_s < seconds * 0.7 ? "yes" : "no", 1e3 * wait_s);
    }
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 0) : (size_t) 64 << 20;
    const double seconds = argc > 2 ? atof(argv[2]) : 1.0;
    if (ranks != 2 || bytes < 64) {
        fprintf(stderr, "overlap: want 2 ranks and at least 64 bytes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    unsigned char *out = malloc(bytes), *in = malloc(bytes);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 2);
    first_send(seconds);
    for (int pattern = NAMED; pattern <= LATE_RECEIVER; pattern++)
        exchange((enum pattern) pattern, out, in, bytes, seconds);
    free(out);
    free(in);
    return finish("overlap");
}
