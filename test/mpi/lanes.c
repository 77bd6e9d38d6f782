/* Long messages from rank 0 to rank 1 and back, of all kinds that move by transfer, with every byte
 * checked; then MB/s one way. Two ranks. Arguments: bytes of a message, seconds of the timed part.
 */
#include "mpi_test.h"

static size_t bytes;
static unsigned char *out, *in;

static void check(const void *buffer, unsigned seed, const char *what)
{
    const long wrong = pattern_wrong(buffer, bytes, seed);
    CHECK(wrong < 0, "%s: byte %ld of %zu is wrong", what, wrong, bytes);
}

/* Several in each direction at once, posted late, with a flood of short ones between them. */
static void both_ways(unsigned round)
{
    enum { SEVERAL = 3, SHORT = 50 };
    MPI_Request requests[2 * SEVERAL + 2 * SHORT];
    int short_out[SHORT], short_in[SHORT], n = 0;
    for (int i = 0; i < SEVERAL; i++)
        pattern_fill(out + (size_t) i * bytes, bytes, round + (unsigned) (10 * my_rank + i));
    for (int i = 0; i < SHORT; i++) {
        short_out[i] = i;
        if (i % 20 == 0)
            MPI_Isend(out + (size_t) (i / 20) * bytes, (int) bytes, MPI_BYTE, 1 - my_rank, 1,
                      MPI_COMM_WORLD, &requests[n++]);
        MPI_Isend(&short_out[i], 1, MPI_INT, 1 - my_rank, 2, MPI_COMM_WORLD, &requests[n++]);
    }
    for (int i = 0; i < SHORT; i++) {
        if (i % 20 == 10)
            MPI_Irecv(in + (size_t) (i / 20) * bytes, (int) bytes, MPI_BYTE, 1 - my_rank, 1,
                      MPI_COMM_WORLD, &requests[n++]);
        MPI_Irecv(&short_in[i], 1, MPI_INT, 1 - my_rank, 2, MPI_COMM_WORLD, &requests[n++]);
    }
    MPI_Irecv(in + 2 * bytes, (int) bytes, MPI_BYTE, 1 - my_rank, 1, MPI_COMM_WORLD,
              &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < SEVERAL; i++)
        check(in + (size_t) i * bytes, round + (unsigned) (10 * (1 - my_rank) + i), "both ways");
    for (int i = 0; i < SHORT; i++)
        CHECK(short_in[i] == i, "short message %d is %d", i, short_in[i]);
}

/* A column of blocks with holes, into contiguous memory and the other way round. */
static void in_pieces(unsigned round)
{
    enum { BLOCK = 3000 };
    const int blocks = (int) (bytes / BLOCK);
    MPI_Datatype column;
    MPI_Type_vector(blocks, BLOCK, 2 * BLOCK, MPI_BYTE, &column);
    MPI_Type_commit(&column);
    const size_t spread = (size_t) blocks * 2 * BLOCK;
    if (my_rank == 0) {
        pattern_fill(out, spread, round);
        MPI_Send(out, 1, column, 1, 3, MPI_COMM_WORLD);
        MPI_Send(out, blocks * BLOCK, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
    } else {
        memset(in, 0, spread);
        MPI_Recv(in, blocks * BLOCK, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        long wrong = -1;
        for (size_t i = 0; i < (size_t) blocks * BLOCK && wrong < 0; i++)
            if (in[i] != pattern_byte(i / BLOCK * 2 * BLOCK + i % BLOCK, round))
                wrong = (long) i;
        CHECK(wrong < 0, "from pieces: byte %ld is wrong", wrong);
        memset(in, 0, spread);
        MPI_Recv(in, 1, column, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < (size_t) blocks * BLOCK && wrong < 0; i++)
            if (in[i / BLOCK * 2 * BLOCK + i % BLOCK] != pattern_byte(i, round))
                wrong = (long) i;
        CHECK(wrong < 0, "into pieces: byte %ld is wrong", wrong);
    }
    MPI_Type_free(&column);
}

static void one_sided(unsigned round)
{
    MPI_Win window;
    pattern_fill(out, bytes, round + (unsigned) my_rank);
    memset(in, 0, bytes);
    MPI_Win_create(in, (MPI_Aint) bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(out, (int) bytes, MPI_BYTE, 1 - my_rank, 0, (int) bytes, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    check(in, round + (unsigned) (1 - my_rank), "put");
    memset(out, 0, bytes);
    MPI_Get(out, (int) bytes, MPI_BYTE, 1 - my_rank, 0, (int) bytes, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    check(out, round + (unsigned) my_rank, "get");
    MPI_Win_free(&window);
}

/* A window of messages one way, then a word back. */
static void timed(double seconds)
{
    enum { WINDOW = 4 };
    MPI_Request requests[WINDOW];
    long messages = 0;
    int more = 1;
    double first = 0;
    for (const double begun = now_s(); more;) {
        for (int i = 0; i < WINDOW; i++)
            if (my_rank == 0)
                MPI_Isend(out, (int) bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Irecv(in, (int) bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        more = now_s() < begun + seconds;
        MPI_Bcast(&more, 1, MPI_INT, 1, MPI_COMM_WORLD);
        /* the first half is for finding out how many lanes pay */
        if (first == 0 && now_s() > begun + seconds / 2)
            first = now_s();
        else if (first != 0)
            messages += WINDOW;
    }
    if (my_rank == 0)
        printf("rate %.2f MB/s\n", (double) messages * (double) bytes / (now_s() - first) * 1e-6);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 4u << 20;
    out = malloc(3 * bytes);
    in = malloc(3 * bytes);
    for (unsigned round = 0; round < 3; round++) {
        both_ways(round);
        in_pieces(round + 50);
        one_sided(round + 100);
    }
    timed(argc > 2 ? strtod(argv[2], NULL) : 1);
    MPI_Finalize();
    printf("rank %d: %d checks, %d failed\n", my_rank, checks_done, checks_failed);
    return checks_failed != 0;
}
