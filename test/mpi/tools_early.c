/* A tool that ends before MPI_Init takes the host's tables of variables along (MPICH 4.0): the program runs on without ours. */
#include "mpi_test.h"

int main(int argc, char **argv)
{
    int provided, sum = 0;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_finalize();
    start(&argc, &argv);
    MPI_Allreduce(&my_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == ranks * (ranks - 1) / 2, "%d", sum);
    return finish("tools_early");
}
