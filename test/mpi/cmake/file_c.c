// MPI-IO: every rank writes its blocks of a shared file, all at once, and reads those of the next.
//   file_c PATH
#include <mpi.h>
#include <stdio.h>

enum { kBlocks = 64, kInts = 1000 };

static int value(int rank, int block, int i)
{
    return 1000000 * rank + 1000 * block + i;
}

int main(int argc, char **argv)
{
    static int data[kBlocks][kInts];
    int rank, size, wrong = 0;
    MPI_File file;
    MPI_Datatype strided;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Type_vector(kBlocks, kInts, kInts * size, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS) {
        fprintf(stderr, "rank %d: %s cannot be opened\n", rank, argv[1]);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int block = 0; block < kBlocks; ++block)
        for (int i = 0; i < kInts; ++i)
            data[block][i] = value(rank, block, i);
    const MPI_Offset at = (MPI_Offset) sizeof(int) * kInts;
    MPI_File_set_view(file, at * rank, MPI_INT, strided, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, data, kBlocks * kInts, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    const int next = (rank + 1) % size;
    MPI_File_set_view(file, at * next, MPI_INT, strided, "native", MPI_INFO_NULL);
    MPI_File_read_all(file, data, kBlocks * kInts, MPI_INT, MPI_STATUS_IGNORE);
    for (int block = 0; block < kBlocks; ++block)
        for (int i = 0; i < kInts; ++i)
            wrong += data[block][i] != value(next, block, i);
    if (wrong)
        fprintf(stderr, "rank %d: %d wrong numbers\n", rank, wrong);
    MPI_File_close(&file);
    MPI_Type_free(&strided);
    MPI_Finalize();
    return wrong ? 1 : 0;
}
