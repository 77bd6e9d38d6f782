// C++: the sum of the ranks, and a message round the ring, by the C interface and the standard
// library.
#include <mpi.h>

#include <iostream>
#include <numeric>
#include <vector>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<int> ranks(static_cast<std::size_t>(size), -1);
    MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, MPI_COMM_WORLD);
    const int sum = std::accumulate(ranks.begin(), ranks.end(), 0);
    std::vector<double> out(100'000, rank), in(out.size(), -1);
    MPI_Sendrecv(out.data(), 100'000, MPI_DOUBLE, (rank + 1) % size, 0, in.data(), 100'000,
                 MPI_DOUBLE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const double before = (rank + size - 1) % size;
    bool right = sum == size * (size - 1) / 2;
    for (const double x : in)
        right = right && x == before;
    if (!right)
        std::cerr << "rank " << rank << " of " << size << ": wrong data\n";
    MPI_Finalize();
    return right ? 0 : 1;
}
