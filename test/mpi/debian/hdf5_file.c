/* A file of HDF5 that all ranks write and read collectively, for test/lab/debian_programs.sh: each
 * writes every size-th row of a table, and reads the rows of its neighbour. Rank 0 prints the sum
 * over what it finds in the whole table, which is the same for any number of ranks. Usage:
 * hdf5_file FILE */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 960, COLUMNS = 1000 }; /* ROWS: a multiple of the number of ranks */

static void must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "hdf5_file: %s failed\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static double value(int row, int column)
{
    return row * 1000.0 + column;
}

/* The rows FIRST, FIRST + STEP, ... of the file, as they are in memory one behind the other. */
static void move(hid_t table, int write, int first, int step, double *data)
{
    hsize_t start[2] = {(hsize_t) first, 0}, stride[2] = {(hsize_t) step, 1},
            count[2] = {(hsize_t) (ROWS / step), COLUMNS};
    hid_t rows = H5Screate_simple(2, count, NULL), all = H5Dget_space(table);
    hid_t together = H5Pcreate(H5P_DATASET_XFER);
    must(H5Sselect_hyperslab(all, H5S_SELECT_SET, start, stride, count, NULL) >= 0, "selection");
    must(H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE) >= 0, "collective transfer");
    if (write)
        must(H5Dwrite(table, H5T_NATIVE_DOUBLE, rows, all, together, data) >= 0, "H5Dwrite");
    else
        must(H5Dread(table, H5T_NATIVE_DOUBLE, rows, all, together, data) >= 0, "H5Dread");
    H5Pclose(together);
    H5Sclose(all);
    H5Sclose(rows);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    must(argc == 2 && ROWS % size == 0, "usage");
    double *data = malloc(sizeof *data * ROWS * COLUMNS);
    must(data != NULL, "malloc");

    hid_t by_mpi = H5Pcreate(H5P_FILE_ACCESS);
    must(H5Pset_fapl_mpio(by_mpi, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "access by MPI-IO");
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, by_mpi);
    must(file >= 0, "H5Fcreate");
    hsize_t shape[2] = {ROWS, COLUMNS};
    hid_t space = H5Screate_simple(2, shape, NULL);
    hid_t table =
        H5Dcreate2(file, "table", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    must(table >= 0, "H5Dcreate2");
    for (int i = 0; i < ROWS / size; i++)
        for (int j = 0; j < COLUMNS; j++)
            data[i * COLUMNS + j] = value(rank + i * size, j);
    move(table, 1, rank, size, data);
    H5Dclose(table);
    must(H5Fclose(file) >= 0, "H5Fclose");

    file = H5Fopen(argv[1], H5F_ACC_RDONLY, by_mpi);
    must(file >= 0, "H5Fopen");
    table = H5Dopen2(file, "table", H5P_DEFAULT);
    must(table >= 0, "H5Dopen2");
    const int neighbour = (rank + 1) % size;
    move(table, 0, neighbour, size, data);
    long wrong = 0, wrong_in_all = 0;
    for (int i = 0; i < ROWS / size; i++)
        for (int j = 0; j < COLUMNS; j++)
            wrong += data[i * COLUMNS + j] != value(neighbour + i * size, j);
    MPI_Reduce(&wrong, &wrong_in_all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    move(table, 0, 0, 1, data);
    double sum = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        sum += data[i] * (i % 7);
    if (rank == 0)
        printf("hdf5_file: %ld wrong, sum %.17g\n", wrong_in_all, sum);
    H5Dclose(table);
    H5Fclose(file);
    H5Sclose(space);
    H5Pclose(by_mpi);
    free(data);
    MPI_Finalize();
    return 0;
}
