/* MPI_Neighbor_alltoall, _alltoallv and _alltoallw, blocking, nonblocking and persistent: each
 * block is in its own place where a rank is its neighbour's neighbour more than once. In a
 * Cartesian topology with a dimension of one or two ranks (what goes one way comes in from the
 * other), and in a graph that has every edge twice (the first edge's block comes first). */
#include "mpi_test.h"

#include <stdbool.h>

enum { SLOTS_MAX = 6, DIMS_MAX = 3, BLOCK = 64, GAP = 0x5a, ROUNDS = 3 };
typedef enum { ALLTOALL, ALLTOALLV, ALLTOALLW, CALLS } Call;
typedef enum { BLOCKING, NONBLOCKING, PERSISTENT, WAYS } Way;

/* What is beside a rank: the block in slot `own` of its receive buffer is the one that `rank[own]`
 * has in its slot `theirs[own]`. */
typedef struct {
    const char *name;
    MPI_Comm comm;
    int slots;
    int to[SLOTS_MAX];
    int from[SLOTS_MAX], theirs[SLOTS_MAX];
} Neighbours;

/* Another length for every block. MPI_Neighbor_alltoall has but one. */
static int length_of(Call call, int rank, int slot)
{
    return call == ALLTOALL ? BLOCK / 2 : 3 + 7 * slot + rank;
}

static unsigned seed_of(int rank, int slot, int round)
{
    return (unsigned) ((round * ranks + rank) * SLOTS_MAX + slot);
}

/* The arguments of a call: blocks are BLOCK bytes apart, and those of MPI_Neighbor_alltoall have
 * the same length. */
typedef struct {
    unsigned char out[SLOTS_MAX * BLOCK], in[SLOTS_MAX * BLOCK];
    int out_counts[SLOTS_MAX], in_counts[SLOTS_MAX], places[SLOTS_MAX];
    MPI_Aint wide_places[SLOTS_MAX];
    MPI_Datatype types[SLOTS_MAX], block;
} Arguments;

static void fill(Arguments *a, const Neighbours *n, Call call, int rank, int round)
{
    memset(a->in, GAP, sizeof a->in);
    for (int i = 0; i < n->slots; i++) {
        pattern_fill(a->out + i * BLOCK, BLOCK, seed_of(rank, i, round));
        a->out_counts[i] = length_of(call, rank, i);
        a->in_counts[i] = n->from[i] < 0 ? 1 : length_of(call, n->from[i], n->theirs[i]);
        a->places[i] = i * BLOCK;
        a->wide_places[i] = i * BLOCK;
        a->types[i] = MPI_BYTE;
    }
}

static int run(Arguments *a, MPI_Comm comm, Call call)
{
    switch (call) {
    case ALLTOALL: return MPI_Neighbor_alltoall(a->out, 1, a->block, a->in, 1, a->block, comm);
    case ALLTOALLV:
        return MPI_Neighbor_alltoallv(a->out, a->out_counts, a->places, MPI_BYTE, a->in,
                                      a->in_counts, a->places, MPI_BYTE, comm);
    default:
        return MPI_Neighbor_alltoallw(a->out, a->out_counts, a->wide_places, a->types, a->in,
                                      a->in_counts, a->wide_places, a->types, comm);
    }
}

static int begin(Arguments *a, MPI_Comm comm, Call call, MPI_Request *request)
{
    switch (call) {
    case ALLTOALL:
        return MPI_Ineighbor_alltoall(a->out, 1, a->block, a->in, 1, a->block, comm, request);
    case ALLTOALLV:
        return MPI_Ineighbor_alltoallv(a->out, a->out_counts, a->places, MPI_BYTE, a->in,
                                       a->in_counts, a->places, MPI_BYTE, comm, request);
    default:
        return MPI_Ineighbor_alltoallw(a->out, a->out_counts, a->wide_places, a->types, a->in,
                                       a->in_counts, a->wide_places, a->types, comm, request);
    }
}

static int prepare(Arguments *a, MPI_Comm comm, Call call, MPI_Request *request)
{
    switch (call) {
    case ALLTOALL:
        return MPI_Neighbor_alltoall_init(a->out, 1, a->block, a->in, 1, a->block, comm,
                                          MPI_INFO_NULL, request);
    case ALLTOALLV:
        return MPI_Neighbor_alltoallv_init(a->out, a->out_counts, a->places, MPI_BYTE, a->in,
                                           a->in_counts, a->places, MPI_BYTE, comm, MPI_INFO_NULL,
                                           request);
    default:
        return MPI_Neighbor_alltoallw_init(a->out, a->out_counts, a->wide_places, a->types, a->in,
                                           a->in_counts, a->wide_places, a->types, comm,
                                           MPI_INFO_NULL, request);
    }
}

static void look(const Arguments *a, const Neighbours *n, Call call, Way way, int round)
{
    static const char *const calls[] = {"alltoall", "alltoallv", "alltoallw"};
    static const char *const ways[] = {"blocking", "nonblocking", "persistent"};
    for (int i = 0; i < n->slots; i++) {
        const unsigned char *const block = a->in + i * BLOCK;
        const int length = n->from[i] < 0 ? 0 : length_of(call, n->from[i], n->theirs[i]);
        int wrong = 0;
        for (int k = 0; k < BLOCK; k++)
            wrong +=
                block[k] !=
                (k < length ? pattern_byte((size_t) k, seed_of(n->from[i], n->theirs[i], round))
                            : GAP);
        CHECK(wrong == 0, "%s, %s %s, round %d: %d bytes wrong in slot %d of %d", n->name,
              ways[way], calls[call], round, wrong, i, n->slots);
    }
}

static void exchange(const Neighbours *n, Call call, Way way)
{
    static Arguments a;
    MPI_Request request = MPI_REQUEST_NULL;
    int rank, code = MPI_SUCCESS;

    MPI_Comm_rank(n->comm, &rank);
    MPI_Type_contiguous(BLOCK / 2, MPI_BYTE, &a.types[0]);
    MPI_Type_create_resized(a.types[0], 0, BLOCK, &a.block);
    MPI_Type_commit(&a.block);
    MPI_Type_free(&a.types[0]);
    fill(&a, n, call, rank, 0);
    if (way == PERSISTENT)
        code = prepare(&a, n->comm, call, &request);
    for (int round = 0; round < ROUNDS && code == MPI_SUCCESS; round++) {
        fill(&a, n, call, rank, round);
        if (way == BLOCKING)
            code = run(&a, n->comm, call);
        else if (way == NONBLOCKING)
            code = begin(&a, n->comm, call, &request);
        else
            code = MPI_Start(&request);
        if (way != BLOCKING && code == MPI_SUCCESS)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        look(&a, n, call, way, round);
    }
    CHECK(code == MPI_SUCCESS, "%s: error %d", n->name, code);
    if (request != MPI_REQUEST_NULL)
        MPI_Request_free(&request);
    MPI_Type_free(&a.block);
}

static void all_calls(const Neighbours *n)
{
    MPI_Comm_set_errhandler(n->comm, MPI_ERRORS_RETURN);
    for (Call call = 0; call < CALLS; call++)
        for (Way way = 0; way < WAYS; way++)
            exchange(n, call, way);
}

static void cartesian(const char *name, int dims, const int *sizes, bool periodic)
{
    int periods[DIMS_MAX], product = 1;
    Neighbours n = {.name = name, .slots = 2 * dims};

    for (int i = 0; i < dims; i++) {
        periods[i] = periodic;
        product *= sizes[i];
    }
    if (product > ranks)
        return;
    MPI_Cart_create(MPI_COMM_WORLD, dims, sizes, periods, 0, &n.comm);
    if (n.comm == MPI_COMM_NULL)
        return;
    for (int i = 0; i < dims; i++) {
        MPI_Cart_shift(n.comm, i, 1, &n.to[2 * i], &n.to[2 * i + 1]);
        for (int side = 0; side < 2; side++) {
            n.from[2 * i + side] = n.to[2 * i + side];
            n.theirs[2 * i + side] = 2 * i + !side;
        }
    }
    all_calls(&n);
    MPI_Comm_free(&n.comm);
}

/* To the next rank twice, to oneself twice, and once more to the next one. */
static void graph(void)
{
    enum { EDGES = 5 };
    const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
    Neighbours n = {.name = "graph",
                    .slots = EDGES,
                    .to = {next, next, my_rank, my_rank, next},
                    .from = {before, before, my_rank, my_rank, before},
                    .theirs = {0, 1, 2, 3, 4}};

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, EDGES, n.from, MPI_UNWEIGHTED, EDGES, n.to,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &n.comm);
    all_calls(&n);
    MPI_Comm_free(&n.comm);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int periodic = 0; periodic < 2; periodic++) {
        cartesian("1", 1, (const int[]){1}, periodic);
        cartesian("2", 1, (const int[]){2}, periodic);
        cartesian("4", 1, (const int[]){4}, periodic);
        cartesian("1 x 1", 2, (const int[]){1, 1}, periodic);
        cartesian("4 x 1", 2, (const int[]){4, 1}, periodic);
        cartesian("2 x 2", 2, (const int[]){2, 2}, periodic);
        cartesian("2 x 1 x 1", 3, (const int[]){2, 1, 1}, periodic);
    }
    graph();
    return finish("neighbours");
}
