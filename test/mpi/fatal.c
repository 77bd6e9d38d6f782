/* Who ends a job does not go on: fatal error (an error of rank 1, with MPI_ERRORS_ARE_FATAL), fatal
 * abort (MPI_Abort of rank 1). The others wait for rank 1. */
#include "mpi_test.h"

int main(int argc, char **argv)
{
    int number = 0;
    start(&argc, &argv);
    if (my_rank != 1)
        MPI_Recv(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (argc > 1 && strcmp(argv[1], "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 7);
    else
        MPI_Send(&number, 1, MPI_INT, ranks, 0, MPI_COMM_WORLD);
    printf("fatal: rank %d goes on\n", my_rank);
    fflush(stdout);
    return 0;
}
