/* MPI_Alltoallv and MPI_Alltoallw: blocks of unlike lengths, none among them, with gaps between
 * them, of types with gaps, in place, on communicators of one rank to all of them, in reverse order
 * too. What lite_alltoall.c does itself, and what it leaves to the host. */
#include "mpi_test.h"

#include <signal.h>
#include <stdbool.h>

enum { GAP = 0x5a, SLACK = 24, WIDE = 3 }; /* SLACK: bytes between blocks; WIDE: of a column */

static int bytes_of(int from, int to, int scale)
{
    return (from * 5 + to * 3) % 7 * scale;
}

static unsigned seed_of(int from, int to)
{
    return (unsigned) (from * 16 + to);
}

/* One block for each rank, one behind the other. */
typedef struct {
    unsigned char *bytes;
    size_t length;
    int counts[16], places[16];
    MPI_Datatype types[16];
} Blocks;

/* Of MPI_CHAR, or, where `wide`, of one byte in WIDE. */
static Blocks blocks_of(int rank, int size, int scale, bool out, bool wide, MPI_Datatype type)
{
    Blocks blocks = {.length = SLACK};
    for (int i = 0; i < size; i++) {
        blocks.counts[i] = out ? bytes_of(rank, i, scale) : bytes_of(i, rank, scale);
        blocks.places[i] = (int) blocks.length;
        blocks.types[i] = type;
        blocks.length += (size_t) (blocks.counts[i] * (wide ? WIDE : 1)) + SLACK;
    }
    blocks.bytes = malloc(blocks.length);
    memset(blocks.bytes, GAP, blocks.length);
    return blocks;
}

/* Writes the blocks that rank sends, or counts what is wrong in those it has received: every byte,
 * the gaps included. */
static int visit(const Blocks *blocks, int rank, int size, bool out, bool wide)
{
    const int step = wide ? WIDE : 1;
    int wrong = 0;
    size_t next = 0;
    for (int i = 0; i < size; i++) {
        const unsigned seed = out ? seed_of(rank, i) : seed_of(i, rank);
        for (; next < (size_t) blocks->places[i]; next++)
            wrong += blocks->bytes[next] != GAP;
        for (int k = 0; k < blocks->counts[i] * step; k++, next++) {
            const unsigned char byte = k % step ? GAP : pattern_byte((size_t) (k / step), seed);
            if (out)
                blocks->bytes[next] = byte;
            wrong += blocks->bytes[next] != byte;
        }
    }
    for (; next < blocks->length; next++)
        wrong += blocks->bytes[next] != GAP;
    return wrong;
}

static void exchanged(MPI_Comm comm, int scale, bool typed, bool wide_out, bool wide_in)
{
    int rank, size;
    MPI_Datatype column, chars = MPI_CHAR;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_create_resized(MPI_CHAR, 0, WIDE, &column);
    MPI_Type_commit(&column);
    Blocks out = blocks_of(rank, size, scale, true, wide_out, wide_out ? column : chars);
    Blocks in = blocks_of(rank, size, scale, false, wide_in, wide_in ? column : chars);
    int wrong = visit(&out, rank, size, true, wide_out);
    if (typed) {
        MPI_Alltoallw(out.bytes, out.counts, out.places, out.types, in.bytes, in.counts, in.places,
                      in.types, comm);
    } else { /* places in elements: the block begins behind, the buffer before */
        for (int i = 0; i < size; i++) {
            out.places[i] = (out.places[i] - SLACK) / (wide_out ? WIDE : 1);
            in.places[i] = (in.places[i] - SLACK) / (wide_in ? WIDE : 1);
        }
        MPI_Alltoallv(out.bytes + SLACK, out.counts, out.places, out.types[0], in.bytes + SLACK,
                      in.counts, in.places, in.types[0], comm);
        for (int i = 0; i < size; i++) {
            out.places[i] = out.places[i] * (wide_out ? WIDE : 1) + SLACK;
            in.places[i] = in.places[i] * (wide_in ? WIDE : 1) + SLACK;
        }
    }
    wrong += visit(&in, rank, size, false, wide_in);
    CHECK(wrong == 0, "MPI_Alltoall%c: %d bytes wrong, blocks of 0 to %d bytes, %d to %d",
          typed ? 'w' : 'v', wrong, 6 * scale, wide_out, wide_in);
    free(out.bytes);
    free(in.bytes);
    MPI_Type_free(&column);
}

/* Each pair of ranks exchanges blocks of one length. */
static void in_place(MPI_Comm comm, int scale)
{
    int rank, size, counts[16], places[16], wrong = 0, length = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) {
        counts[i] = (rank + i) % 5 * scale;
        places[i] = length;
        length += counts[i];
    }
    unsigned char *const bytes = malloc((size_t) length + 1);
    for (int i = 0; i < size; i++)
        pattern_fill(bytes + places[i], (size_t) counts[i], seed_of(rank, i));
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, bytes, counts, places, MPI_CHAR,
                  comm);
    for (int i = 0; i < size; i++)
        wrong += pattern_wrong(bytes + places[i], (size_t) counts[i], seed_of(i, rank)) >= 0;
    CHECK(wrong == 0, "in place, %d blocks of up to %d bytes", wrong, 4 * scale);
    free(bytes);
}

static void all_of(MPI_Comm comm)
{
    static const int scales[] = {0, 1, 3, 400, 6000, 300000};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        for (int way = 0; way < 8; way++)
            exchanged(comm, scales[i], way & 1, way & 2, way & 4);
        in_place(comm, scales[i]);
    }
}

/* Rank 0 dies. */
static int lost(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    Blocks out = blocks_of(my_rank, ranks, 100000, true, false, MPI_CHAR);
    Blocks in = blocks_of(my_rank, ranks, 100000, false, false, MPI_CHAR);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0)
        raise(SIGKILL);
    const int code = MPI_Alltoallv(out.bytes, out.counts, out.places, MPI_CHAR, in.bytes, in.counts,
                                   in.places, MPI_CHAR, MPI_COMM_WORLD);
    return tell_and_leave("alltoall", code);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    if (argc > 1)
        return lost();
    on_communicators(all_of);
    return finish("alltoall");
}
