/* MPI_Gather and MPI_Gatherv: at each root, blocks of unlike lengths, none among them, with gaps
 * between them, of types with gaps, in place, on communicators of one rank to all of them, in
 * reverse order too. What lite_gather.c does itself, and what it leaves to the host. */
#include "mpi_test.h"

#include <signal.h>
#include <stdbool.h>

enum { GAP = 0x5a, SLACK = 24, WIDE = 3 }; /* SLACK: bytes between blocks; WIDE: of a column */
enum { LONG = 700001 }; /* a third of a block that MPI_Gather sends to the root at once */

typedef struct {
    MPI_Comm comm;
    int rank, size, root, scale;
    bool vector, in_place;
    int root_step, own_step; /* bytes from one of data to the next: 1, or WIDE */
} Call;

static int count_of(const Call *call, int rank)
{
    return call->vector ? (rank * 5 + call->root * 3 + 1) % 7 * call->scale : 3 * call->scale;
}

static unsigned seed_of(const Call *call, int rank)
{
    return (unsigned) (call->root * 16 + rank);
}

/* Writes data of a block, or gaps (`data` false), or counts what is wrong in it, gaps included. */
static int visit(unsigned char *bytes, int count, int step, unsigned seed, bool data, bool writes)
{
    int wrong = 0;
    for (int k = 0; k < count * step; k++) {
        const bool is_gap = k % step != 0 || !data;
        const unsigned char byte = is_gap ? GAP : pattern_byte((size_t) (k / step), seed);
        if (writes)
            bytes[k] = byte;
        wrong += bytes[k] != byte;
    }
    return wrong;
}

/* The root's blocks: where each begins; of MPI_Gather one behind the other. */
typedef struct {
    unsigned char *bytes;
    size_t length;
    int counts[16], places[16]; /* elements */
} Blocks;

static Blocks blocks_of(const Call *call)
{
    Blocks all = {.length = 0};
    int next = 0;
    for (int i = 0; i < call->size; i++) {
        all.counts[i] = count_of(call, i);
        all.places[i] = next;
        next += all.counts[i] + (call->vector ? SLACK : 0);
    }
    all.length = (size_t) (next * call->root_step);
    all.bytes = malloc(all.length + 1);
    memset(all.bytes, GAP, all.length);
    return all;
}

static int visit_all(const Call *call, const Blocks *all, bool writes)
{
    int wrong = 0;
    for (int i = 0; i < call->size; i++) {
        unsigned char *const block = all->bytes + all->places[i] * call->root_step;
        const int behind = call->vector ? SLACK : 0;
        wrong += visit(block, all->counts[i], call->root_step, seed_of(call, i), true, writes);
        wrong += visit(block + all->counts[i] * call->root_step, behind, call->root_step, 0, false,
                       writes);
    }
    return wrong;
}

static void run(const Call *call, const Blocks *all, unsigned char *own, int count,
                MPI_Datatype root_type, MPI_Datatype own_type)
{
    void *const mine = call->in_place && call->rank == call->root ? MPI_IN_PLACE : own;
    if (call->vector)
        MPI_Gatherv(mine, count, own_type, all->bytes, all->counts, all->places, root_type,
                    call->root, call->comm);
    else
        MPI_Gather(mine, count, own_type, all->bytes, count, root_type, call->root, call->comm);
}

static void called(const Call *call)
{
    const int count = count_of(call, call->rank);
    const bool is_root = call->rank == call->root;
    const unsigned seed = seed_of(call, call->rank);
    Blocks all = {.bytes = NULL};
    unsigned char *const own = malloc((size_t) (count * call->own_step) + 1);
    MPI_Datatype column, root_type = MPI_CHAR, own_type = MPI_CHAR;
    int wrong = 0;
    MPI_Type_create_resized(MPI_CHAR, 0, WIDE, &column);
    MPI_Type_commit(&column);
    if (call->root_step == WIDE)
        root_type = column;
    if (call->own_step == WIDE)
        own_type = column;
    visit(own, count, call->own_step, seed, true, true);
    if (is_root) {
        all = blocks_of(call);
        if (call->in_place)
            visit(all.bytes + all.places[call->rank] * call->root_step, count, call->root_step,
                  seed, true, true);
    }
    run(call, &all, own, count, root_type, own_type);
    if (is_root)
        wrong += visit_all(call, &all, false);
    wrong += visit(own, count, call->own_step, seed, true, false);
    CHECK(wrong == 0, "MPI_Gather%s, root %d, %d times %d, %d of %d bytes: %d bytes wrong",
          call->vector ? "v" : "", call->root, call->scale, call->in_place, call->root_step,
          call->own_step, wrong);
    free(all.bytes);
    free(own);
    MPI_Type_free(&column);
}

static void all_of(MPI_Comm comm)
{
    static const int scales[] = {0, 1, 400, 6000, 60000, LONG};
    Call call = {.comm = comm};
    MPI_Comm_rank(comm, &call.rank);
    MPI_Comm_size(comm, &call.size);
    for (call.root = 0; call.root < call.size; call.root++)
        for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
            for (int way = 0; way < 16; way++) {
                call.scale = scales[i];
                call.vector = way & 1;
                call.in_place = way & 2;
                call.root_step = way & 4 ? WIDE : 1;
                call.own_step = way & 8 ? WIDE : 1;
                if (call.scale < LONG || (comm == MPI_COMM_WORLD && call.root == 1))
                    called(&call);
            }
}

/* Rank 0 dies, whose block rank 1 waits for. */
static int lost(void)
{
    enum { BYTES = 3 * LONG };
    static unsigned char own[BYTES];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    unsigned char *const all = calloc((size_t) ranks, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0)
        raise(SIGKILL);
    return tell_and_leave(
        "gather", MPI_Gather(own, BYTES, MPI_CHAR, all, BYTES, MPI_CHAR, 1, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    if (argc > 1)
        return lost();
    on_communicators(all_of);
    return finish("gather");
}
