/* Many small puts or accumulates in one epoch without another call between them, two ranks:
 * put_flood put|sum EPOCH COUNT. What the origin keeps of them has a bound. EPOCH: fence, pscw,
 * lock or lock_all. */
#include <stdbool.h>
#include "mpi_test.h"

enum { WORDS = 65536, GROWTH_MB = 100 };

static long resident_mb(void)
{
    char line[256];
    long kb = 0;
    FILE *const status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kb) == 1)
            break;
    if (status != NULL)
        fclose(status);
    return kb / 1024;
}

static void begin(const char *epoch, MPI_Group other, MPI_Win win)
{
    if (strcmp(epoch, "fence") == 0)
        MPI_Win_fence(0, win);
    else if (strcmp(epoch, "lock_all") == 0)
        MPI_Win_lock_all(0, win);
    else if (strcmp(epoch, "lock") == 0)
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    else if (my_rank == 0)
        MPI_Win_start(other, 0, win);
    else
        MPI_Win_post(other, 0, win);
}

static void end(const char *epoch, MPI_Win win)
{
    if (strcmp(epoch, "fence") == 0)
        MPI_Win_fence(0, win);
    else if (strcmp(epoch, "lock_all") == 0)
        MPI_Win_unlock_all(win);
    else if (strcmp(epoch, "lock") == 0)
        MPI_Win_unlock(1, win);
    else if (my_rank == 0)
        MPI_Win_complete(win);
    else
        MPI_Win_wait(win);
}

int main(int argc, char **argv)
{
    static long memory[WORDS], out[WORDS];
    MPI_Win win;
    MPI_Group world, other;
    start(&argc, &argv);
    const bool sum = argc == 4 && strcmp(argv[1], "sum") == 0;
    const char *const epoch = argc == 4 ? argv[2] : "fence";
    const long count = argc == 4 ? atol(argv[3]) : 0;
    const int partner = 1 - my_rank;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &partner, &other);
    for (long i = 0; i < WORDS; i++)
        out[i] = i + 1;
    MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    begin(epoch, other, win);
    const long before = resident_mb();
    for (long i = 0; my_rank == 0 && i < count; i++) {
        const long word = i % WORDS;
        if (sum)
            MPI_Accumulate(&out[word], 1, MPI_LONG, 1, word, 1, MPI_LONG, MPI_SUM, win);
        else
            MPI_Put(&out[word], 1, MPI_LONG, 1, word, 1, MPI_LONG, win);
    }
    const long growth = resident_mb() - before;
    CHECK(growth < GROWTH_MB, "%ld accesses, the origin grew by %ld MB", count, growth);
    end(epoch, win);
    MPI_Barrier(MPI_COMM_WORLD);
    long wrong = 0;
    for (long i = 0; my_rank == 1 && i < WORDS && i < count; i++) {
        const long times = sum ? count / WORDS + (i < count % WORDS ? 1 : 0) : 1;
        wrong += memory[i] != times * (i + 1);
    }
    CHECK(wrong == 0, "%ld words are wrong", wrong);
    MPI_Win_free(&win);
    MPI_Group_free(&other);
    MPI_Group_free(&world);
    return finish("put_flood");
}
