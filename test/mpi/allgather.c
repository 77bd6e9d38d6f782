/* MPI_Allgatherv: blocks of about one length and of very different ones, around the pieces that the
 * host cuts them into, of types with gaps, in place, on communicators of one rank to all of them,
 * in reverse order too, and without waiting. What lite_allgather.c does itself, and what it leaves
 * to the host. */
#include "mpi_test.h"

#include <signal.h>
#include <stdbool.h>

enum { GAP = 0x5a, SLACK = 24, WIDE = 3, RANKS_MAX = 16 }; /* WIDE: bytes, of which one is data */

/* Of `unequal` blocks one has nearly all. */
static int bytes_of(int rank, int length, bool unequal)
{
    return unequal && rank != 1 ? length / 1000 : length + rank * 7;
}

static void gathered(MPI_Comm comm, int length, bool unequal, bool in_place, bool wide,
                     bool nonblocking)
{
    const int step = wide ? WIDE : 1;
    int rank, size, counts[RANKS_MAX], places[RANKS_MAX], next = SLACK * step, wrong = 0;
    MPI_Datatype type;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_create_resized(MPI_CHAR, 0, step, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < size; i++) {
        counts[i] = bytes_of(i, length, unequal);
        places[i] = next / step;
        next += (counts[i] + SLACK) * step;
    }
    unsigned char *const all = malloc((size_t) next);
    unsigned char *const own = malloc((size_t) counts[rank] + 1);
    memset(all, GAP, (size_t) next);
    pattern_fill(own, (size_t) counts[rank], (unsigned) rank);
    for (int k = 0; k < counts[rank] && in_place; k++)
        all[(places[rank] + k) * step] = own[k];
    const void *const from = in_place ? MPI_IN_PLACE : own;
    if (nonblocking) {
        MPI_Request request;
        MPI_Iallgatherv(from, counts[rank], MPI_CHAR, all, counts, places, type, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Allgatherv(from, counts[rank], MPI_CHAR, all, counts, places, type, comm);
    }
    for (int i = 0, at = 0; i <= size; i++) {
        const int begin = i < size ? places[i] * step : next;
        for (; at < begin; at++)
            wrong += all[at] != GAP;
        for (int k = 0; i < size && k < counts[i] * step; k++, at++)
            wrong += all[at] != (k % step ? GAP : pattern_byte((size_t) (k / step), (unsigned) i));
    }
    wrong += pattern_wrong(own, (size_t) counts[rank], (unsigned) rank) >= 0;
    CHECK(wrong == 0, "rank %d of %d, %d bytes wrong, blocks of %d bytes%s%s%s%s", rank, size,
          wrong, length, unequal ? ", but for one nearly none" : "", in_place ? ", in place" : "",
          wide ? ", with gaps" : "", nonblocking ? ", nonblocking" : "");
    free(all);
    free(own);
    MPI_Type_free(&type);
}

static void all_of(MPI_Comm comm)
{
    enum { NONBLOCKING_MAX = 5000, WIDE_MAX = 2 << 20 };
    static const int lengths[] = {0, 1, NONBLOCKING_MAX, 1 << 20, (1 << 20) + 1, 3000000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int way = 0; way < 16; way++)
            if ((!(way & 4) || lengths[i] <= WIDE_MAX) &&
                (!(way & 8) || lengths[i] <= NONBLOCKING_MAX))
                gathered(comm, lengths[i], way & 1, way & 2, way & 4, way & 8);
}

/* Rank 0 dies: its neighbour gets an error, and those behind that one, which wait for what it has
 * not got. */
static int lost(void)
{
    enum { COUNT = 2000000 };
    int counts[RANKS_MAX], places[RANKS_MAX];
    char *const all = calloc((size_t) ranks, COUNT);

    for (int i = 0; i < ranks; i++) {
        counts[i] = COUNT;
        places[i] = i * COUNT;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0)
        raise(SIGKILL);
    const int code =
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_CHAR, all, counts, places, MPI_CHAR, MPI_COMM_WORLD);
    return tell_and_leave("allgather", code);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    if (argc > 1)
        return lost();
    on_communicators(all_of);
    return finish("allgather");
}
