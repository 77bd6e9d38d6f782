/* MPI_Reduce and MPI_Allreduce with an operation of the program's on derived types, again and again
 * (the host goes over to shared memory after some calls): elements longer than its cells, and data
 * that does not begin at its address (MPI_BOTTOM). */
#include "mpi_test.h"

#include <stdbool.h>

enum { LONGEST = 100000, TIMES = 12 };

static int mine[LONGEST], result[LONGEST];
static MPI_Aint begin; /* bytes from the address of an element to its numbers */
static int numbers;    /* in an element */

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    MPI_Aint lower, extent;

    MPI_Type_get_extent(*type, &lower, &extent);
    for (int i = 0; i < *count; i++) {
        const int *const a = (int *) ((char *) in + i * extent + begin);
        int *const b = (int *) ((char *) inout + i * extent + begin);
        for (int k = 0; k < numbers; k++)
            b[k] += a[k];
    }
}

static void fill(int *data, int count)
{
    for (int i = 0; i < count; i++)
        data[i] = i + my_rank;
}

static int wrong_in(const int *data, int count)
{
    int wrong = 0;

    for (int i = 0; i < count; i++)
        wrong += data[i] != ranks * i + ranks * (ranks - 1) / 2;
    return wrong;
}

static void of_elements(MPI_Op op, int length, int count)
{
    MPI_Datatype type;
    int wrong = 0;

    begin = 0;
    numbers = length;
    MPI_Type_contiguous(length, MPI_INT, &type);
    MPI_Type_commit(&type);
    fill(mine, length * count);
    for (int i = 0; i < TIMES; i++) {
        memset(result, 0, sizeof result);
        MPI_Allreduce(mine, result, count, type, op, MPI_COMM_WORLD);
        wrong += wrong_in(result, length * count);
        memset(result, 0, sizeof result);
        MPI_Reduce(mine, result, count, type, op, i % ranks, MPI_COMM_WORLD);
        wrong += my_rank == i % ranks ? wrong_in(result, length * count) : 0;
    }
    CHECK(wrong == 0, "%d numbers wrong, %d elements of %d", wrong, count, length);
    MPI_Type_free(&type);
}

static void from_bottom(MPI_Op op, int length)
{
    MPI_Datatype type;
    int wrong = 0;

    MPI_Get_address(result, &begin);
    numbers = length;
    MPI_Type_create_hindexed(1, &length, &begin, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < TIMES; i++) {
        const bool root = my_rank == i % ranks;
        fill(result, length);
        MPI_Allreduce(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD);
        wrong += wrong_in(result, length);
        fill(result, length);
        MPI_Reduce(root ? MPI_IN_PLACE : MPI_BOTTOM, MPI_BOTTOM, 1, type, op, i % ranks,
                   MPI_COMM_WORLD);
        wrong += root ? wrong_in(result, length) : 0;
    }
    CHECK(wrong == 0, "%d numbers wrong, an element of %d from MPI_BOTTOM", wrong, length);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 500, 2047, 2048, 2049, 33333};
    MPI_Op op;

    start(&argc, &argv);
    MPI_Op_create(add, 1, &op);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int count = 1; count <= 3; count++)
            of_elements(op, lengths[i], count);
        from_bottom(op, lengths[i]);
    }
    MPI_Op_free(&op);
    return finish("own_operations");
}
