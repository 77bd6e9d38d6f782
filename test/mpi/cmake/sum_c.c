// C: the sum of the ranks, and a message round the ring.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, sum = -1, before = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &before, 1, MPI_INT,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const int right = sum == size * (size - 1) / 2 && before == (rank + size - 1) % size;
    if (!right)
        fprintf(stderr, "rank %d of %d: sum %d, received %d\n", rank, size, sum, before);
    MPI_Finalize();
    return right ? 0 : 1;
}
