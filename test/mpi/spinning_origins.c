/* Ranks that read a word of a window without end, until rank 0 changes it, leave rank 0 the time to
 * get there: spinning_origins [MOST]. Rank 0 computes alone, and beside them; the second time takes
 * at most MOST times as long. */
#define _GNU_SOURCE
#include <sched.h>
#include "mpi_test.h"

enum { FIRST_CORE, OTHER_CORES };

/* So that origins cost rank 0 what its handler does for them, and not their own time. */
static void pin(int where)
{
    cpu_set_t may, mine;
    int first = 0;

    if (sched_getaffinity(0, sizeof may, &may) != 0 || CPU_COUNT(&may) < 2)
        return;
    while (!CPU_ISSET(first, &may))
        first++;
    mine = may;
    if (where == FIRST_CORE)
        CPU_ZERO(&mine);
    else
        CPU_CLR(first, &mine);
    if (where == FIRST_CORE)
        CPU_SET(first, &mine);
    sched_setaffinity(0, sizeof mine, &mine);
}

static double work(void)
{
    const double begin = now_s();
    volatile double x = 1.5;
    for (long i = 0; i < 100000000; i++)
        x = x * 0.999999 + 1e-6;
    return now_s() - begin;
}

static long read_until_set(MPI_Win window)
{
    long rounds = 0, value = 0;
    for (; value == 0; rounds++) {
        MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
        MPI_Win_flush(0, window);
    }
    return rounds;
}

int main(int argc, char **argv)
{
    long *word, rounds = 0, sum = 0;
    double alone = 0.0, beside = 0.0;
    MPI_Win window;

    start(&argc, &argv);
    const double most = argc == 2 ? atof(argv[1]) : 1e9;
    pin(my_rank == 0 ? FIRST_CORE : OTHER_CORES);
    MPI_Win_allocate(sizeof(long), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &window);
    *word = 0;
    MPI_Win_lock_all(0, window);
    MPI_Win_sync(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0)
        alone = work();
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        const long one = 1;
        beside = work();
        MPI_Put(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
        MPI_Win_flush(0, window);
    } else {
        rounds = read_until_set(window);
    }
    MPI_Reduce(&rounds, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (my_rank == 0) {
        printf("%d origins: %.3f s alone, %.3f beside them, slowdown %.2f, %.0f reads a second\n",
               ranks - 1, alone, beside, beside / alone, (double) sum / beside);
        CHECK(beside < most * alone, "%.3f s instead of %.3f", beside, alone);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    return finish("spinning_origins");
}
