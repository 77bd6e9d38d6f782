/* A thousand derived types at a time: each packs, sends and receives all of its data. */
#include "mpi_test.h"

enum { TYPES = 1000, INTS = 7 };

int main(int argc, char **argv)
{
    static MPI_Datatype types[TYPES];
    int out[INTS], in[INTS];
    char packed[256];

    start(&argc, &argv);
    const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
    for (int i = 0; i < TYPES; i++) {
        MPI_Type_contiguous(INTS, MPI_INT, &types[i]);
        MPI_Type_commit(&types[i]);
    }
    for (int i = 0; i < TYPES; i++) {
        int position = 0;
        pattern_fill(out, sizeof out, (unsigned) (my_rank + i));
        memset(packed, 0, sizeof packed);
        MPI_Pack(out, 1, types[i], packed, sizeof packed, &position, MPI_COMM_WORLD);
        CHECK(position == (int) sizeof out, "type %d: %d bytes are packed", i, position);
        CHECK(pattern_wrong(packed, sizeof out, (unsigned) (my_rank + i)) < 0, "type %d", i);
        memset(in, 0, sizeof in);
        MPI_Sendrecv(out, 1, types[i], next, 1, in, 1, types[i], before, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK(pattern_wrong(in, sizeof in, (unsigned) (before + i)) < 0, "type %d", i);
    }
    for (int i = 0; i < TYPES; i++)
        MPI_Type_free(&types[i]);
    return finish("many_types");
}
