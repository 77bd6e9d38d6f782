/* A rank whose neighbour on the same host sends without end hears a rank on another host all the
 * same, in any wait: hot_neighbour SECONDS, four ranks on two hosts. */
#include <stdbool.h>
#include "mpi_test.h"

enum { FLOOD, LAST, FAR, DONE };

/* The first other rank on rank 0's host, and the first one elsewhere. */
static void find_ranks(int *near, int *far)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", first[MPI_MAX_PROCESSOR_NAME];
    int length;
    int *const is_near = malloc((size_t) ranks * sizeof(int));

    MPI_Get_processor_name(name, &length);
    memcpy(first, name, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    const int mine = strcmp(name, first) == 0;
    MPI_Allgather(&mine, 1, MPI_INT, is_near, 1, MPI_INT, MPI_COMM_WORLD);
    *near = *far = -1;
    for (int i = ranks - 1; i > 0; i--)
        *(is_near[i] ? near : far) = i;
    free(is_near);
}

static void flood(double seconds)
{
    int x = 0;
    const double end = now_s() + seconds;
    while (now_s() < end)
        for (int i = 0; i < 100; i++)
            MPI_Send(&x, 1, MPI_INT, 0, FLOOD, MPI_COMM_WORLD);
    MPI_Send(&x, 1, MPI_INT, 0, LAST, MPI_COMM_WORLD);
}

/* Returns when the message from afar came. */
static double receive_all(void)
{
    const double begin = now_s();
    double came = -1.0;
    for (bool last = false; !last || came < 0;) {
        int x;
        MPI_Status status;
        MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        last = last || status.MPI_TAG == LAST;
        if (status.MPI_TAG == FAR)
            came = now_s() - begin;
    }
    return came;
}

int main(int argc, char **argv)
{
    int near, far, x = 0;
    start(&argc, &argv);
    const double seconds = argc == 2 ? atof(argv[1]) : 2.0;
    find_ranks(&near, &far);
    CHECK(near > 0 && far > 0, "two ranks on rank 0's host and one elsewhere are needed");
    if (near > 0 && far > 0) {
        if (my_rank == far) /* so that they are connected */
            MPI_Send(&x, 1, MPI_INT, 0, FAR, MPI_COMM_WORLD);
        else if (my_rank == 0)
            MPI_Recv(&x, 1, MPI_INT, far, FAR, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        if (my_rank == near) {
            flood(seconds);
        } else if (my_rank == far) {
            usleep(100000);
            MPI_Send(&x, 1, MPI_INT, 0, FAR, MPI_COMM_WORLD);
        } else if (my_rank == 0) {
            const double came = receive_all();
            printf("from afar after %.3f s\n", came);
            CHECK(came < seconds / 2, "it came after %.3f s", came);
        }
        if (my_rank == 0) /* who waits for this sleeps */
            for (int i = 1; i < ranks; i++)
                MPI_Send(&x, 1, MPI_INT, i, DONE, MPI_COMM_WORLD);
        else
            MPI_Recv(&x, 1, MPI_INT, 0, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return finish("hot_neighbour");
}
