/* Two ranks flood each other with messages that no receive is posted for yet, of sizes for every
 * protocol, and with accumulates (active messages): unequal ROUNDS. The ranks may differ in
 * LITE_CREDITS, LITE_UNEXPECTED_MAX or their profile. */
#include "mpi_test.h"

enum { MESSAGES = 200, CELLS = 3000 };
static const size_t sizes[] = {0, 100, 3000, 20000, 60000, 300000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const int rounds = argc > 1 ? atoi(argv[1]) : 3;
    const int other = 1 - my_rank;
    unsigned char *out[SIZES], *in = malloc(sizes[SIZES - 1]);
    MPI_Request requests[MESSAGES];
    int *cells;
    MPI_Win win;

    for (int s = 0; s < SIZES; s++) {
        out[s] = malloc(sizes[s] + 1);
        pattern_fill(out[s], sizes[s], (unsigned) (my_rank * 10 + s));
    }
    MPI_Win_allocate(CELLS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &win);
    memset(cells, 0, CELLS * sizeof(int));
    int ones[CELLS];
    for (int i = 0; i < CELLS; i++)
        ones[i] = i;
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Isend(out[i % SIZES], (int) sizes[i % SIZES], MPI_BYTE, other, i, MPI_COMM_WORLD,
                      &requests[i]);
            MPI_Accumulate(ones, CELLS, MPI_INT, other, 0, CELLS, MPI_INT, MPI_SUM, win);
        }
        compute(0.05);
        for (int i = 0; i < MESSAGES; i++) {
            const size_t bytes = sizes[i % SIZES];
            MPI_Recv(in, (int) bytes, MPI_BYTE, other, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            const long wrong = pattern_wrong(in, bytes, (unsigned) (other * 10 + i % SIZES));
            CHECK(wrong < 0, "message %d of %zu bytes: byte %ld is wrong", i, bytes, wrong);
        }
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    int wrong = 0;
    for (int i = 0; i < CELLS; i++)
        wrong += cells[i] != rounds * MESSAGES * i;
    CHECK(wrong == 0, "%d of %d sums are wrong", wrong, CELLS);
    MPI_Win_free(&win);
    return finish("unequal");
}
