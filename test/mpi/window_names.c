/* Windows that outlive the communicators that they were made from, whose contexts are given out
 * again: what is accumulated onto one is not found in the other, and each can be locked. */
#include "mpi_test.h"

enum { WINDOWS = 3, ROUNDS = 20 };

static int memory[WINDOWS];
static MPI_Win windows[WINDOWS];

/* By fences, then in turns by locks. */
static void accumulate(int which, int round)
{
    const int one = 1, next = (my_rank + 1) % ranks;

    if (round % 2 == 0)
        MPI_Win_fence(0, windows[which]);
    else
        MPI_Win_lock(MPI_LOCK_SHARED, next, 0, windows[which]);
    for (int i = 0; i <= which; i++)
        MPI_Accumulate(&one, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, windows[which]);
    if (round % 2 == 0)
        MPI_Win_fence(0, windows[which]);
    else
        MPI_Win_unlock(next, windows[which]);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int i = 0; i < WINDOWS; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Win_create(&memory[i], sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &windows[i]);
        MPI_Comm_free(&comm);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < WINDOWS; i++)
            accumulate(i, round);
    for (int i = 0; i < WINDOWS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, my_rank, 0, windows[i]);
        CHECK(memory[i] == ROUNDS * (i + 1), "window %d: %d", i, memory[i]);
        MPI_Win_unlock(my_rank, windows[i]);
    }
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_free(&windows[i]);
    return finish("window_names");
}
