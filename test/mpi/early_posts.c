// Post-start-complete-wait where posts come early: a rank that computes between MPI_Win_post and
// MPI_Win_start finds, besides the posts that it waits for, one of a later epoch. Four ranks;
// ROUNDS times.
//   early_posts [ROUNDS] [SECONDS-OF-COMPUTING]
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void compute(double seconds)
{
    const double end = MPI_Wtime() + seconds;
    while (MPI_Wtime() < end)
        ;
}

static MPI_Group group_of(MPI_Group all, int first)
{
    MPI_Group group;
    int range[1][3] = {{first, first + 2, 2}};
    MPI_Group_range_incl(all, 1, range, &group);
    return group;
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 3;
    const double seconds = argc > 2 ? atof(argv[2]) : 0.3;
    int rank, size, wrong = 0, *memory;
    MPI_Comm reversed;
    MPI_Win window;
    MPI_Group all, even, odd;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    // no rank of the window is that of the world
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_rank(reversed, &rank);
    MPI_Comm_group(reversed, &all);
    even = group_of(all, 0);
    odd = group_of(all, 1);
    MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, reversed, &memory, &window);
    for (int round = 0; round < rounds; ++round) {
        // between even and odd ranks, then among themselves
        for (int phase = 0; phase < 2; ++phase) {
            const MPI_Group others = (rank % 2 == 0) == (phase == 0) ? odd : even;
            const int first = others == odd, value = 100 * round + 10 * phase + rank;
            if (phase == 0 && rank % 2 == 0) {
                MPI_Win_start(others, 0, window);
                MPI_Win_post(others, 0, window);
            } else {
                MPI_Win_post(others, 0, window);
                // meanwhile rank 1 is through this phase and posts for the next one
                if (phase == 0 && rank == 3)
                    compute(seconds);
                MPI_Win_start(others, 0, window);
            }
            for (int target = first; target < 4; target += 2)
                MPI_Put(&value, 1, MPI_INT, target, rank, 1, MPI_INT, window);
            MPI_Win_complete(window);
            MPI_Win_wait(window);
            for (int origin = first; origin < 4; origin += 2)
                wrong += memory[origin] != 100 * round + 10 * phase + origin;
        }
    }
    if (wrong)
        printf("rank %d: %d wrong numbers\n", rank, wrong);
    MPI_Win_free(&window);
    MPI_Group_free(&odd);
    MPI_Group_free(&even);
    MPI_Group_free(&all);
    MPI_Comm_free(&reversed);
    MPI_Finalize();
    return wrong != 0;
}
