/* Every persistent collective: five starts, with data that changes between the call that made the
 * request and its first start, and from start to start; few and many elements, every root, and a
 * receive type with gaps. And those whose request was one of a message to or from nobody before. */
#include "mpi_test.h"

#include <stdbool.h>

enum { STARTS = 5, RANKS_MAX = 8, GAP = -1, PAIR = 2, WIDE = 3, MANY = 3000 };
typedef enum {
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    BARRIER,
    NEIGHBOR_ALLGATHER,
    NEIGHBOR_ALLGATHERV,
    KINDS
} Kind;
static const char *const names[] = {"MPI_Bcast_init",
                                    "MPI_Gather_init",
                                    "MPI_Gatherv_init",
                                    "MPI_Scatter_init",
                                    "MPI_Scatterv_init",
                                    "MPI_Allgather_init",
                                    "MPI_Allgatherv_init",
                                    "MPI_Alltoall_init",
                                    "MPI_Alltoallv_init",
                                    "MPI_Alltoallw_init",
                                    "MPI_Reduce_init",
                                    "MPI_Allreduce_init",
                                    "MPI_Reduce_scatter_init",
                                    "MPI_Reduce_scatter_block_init",
                                    "MPI_Scan_init",
                                    "MPI_Exscan_init",
                                    "MPI_Barrier_init",
                                    "MPI_Neighbor_allgather_init",
                                    "MPI_Neighbor_allgatherv_init"};

/* A call's arguments. Blocks are received as `units` of `type`, whose extent is `extent` ints, of
 * which `ints` are data; block b begins at unit b * step. */
typedef struct {
    Kind kind;
    int count, root, units, ints, extent, step;
    MPI_Datatype type;
    MPI_Comm comm;
    int *out, *in;
    int out_counts[RANKS_MAX], out_places[RANKS_MAX], in_counts[RANKS_MAX], in_places[RANKS_MAX];
    int out_bytes[RANKS_MAX], in_bytes[RANKS_MAX];
    MPI_Datatype out_types[RANKS_MAX], in_types[RANKS_MAX];
} Job;

static MPI_Comm ring; /* Cartesian */

static bool is_reduction(Kind kind)
{
    return kind >= REDUCE && kind <= EXSCAN;
}

/* What a rank sends in a place of its buffer. */
static int value(int rank, int place, int round)
{
    return rank * 100003 + place * 17 + round * 1009;
}

/* The rank whose data comes in block b, or -1 where there is no such block. */
static int source_of(const Job *j, int b)
{
    switch (j->kind) {
    case BCAST:
    case SCATTER:
    case SCATTERV: return b == 0 ? j->root : -1;
    case GATHER:
    case GATHERV: return my_rank == j->root ? b : -1;
    case REDUCE: return b == 0 && my_rank == j->root ? 0 : -1;
    case EXSCAN: return b == 0 && my_rank > 0 ? 0 : -1;
    case ALLREDUCE:
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK:
    case SCAN: return b == 0 ? 0 : -1;
    case NEIGHBOR_ALLGATHER:
    case NEIGHBOR_ALLGATHERV:
        return b == 0 ? (my_rank + ranks - 1) % ranks : b == 1 ? (my_rank + 1) % ranks : -1;
    case BARRIER: return -1;
    default: return b;
    }
}

static int expected(const Job *j, int b, int k, int round)
{
    const int mine = my_rank * j->count + k;
    int sum = 0;
    switch (j->kind) {
    case SCATTER:
    case SCATTERV:
    case ALLTOALL:
    case ALLTOALLV:
    case ALLTOALLW: return value(source_of(j, b), mine, round);
    case REDUCE:
    case ALLREDUCE:
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK:
    case SCAN:
    case EXSCAN:
        for (int r = 0; r < ranks; r++) {
            const bool scattered = j->kind == REDUCE_SCATTER || j->kind == REDUCE_SCATTER_BLOCK;
            if ((j->kind != SCAN || r <= my_rank) && (j->kind != EXSCAN || r < my_rank))
                sum += value(r, scattered ? mine : k, round);
        }
        return sum;
    default: return value(source_of(j, b), k, round);
    }
}

static int ask(Job *j, MPI_Request *r)
{
    const MPI_Comm comm = j->comm;
    const int n = j->count, u = j->units;
    int *const out = j->out, *const in = j->in;
    switch (j->kind) {
    case BCAST: return MPI_Bcast_init(in, u, j->type, j->root, comm, MPI_INFO_NULL, r);
    case GATHER:
        return MPI_Gather_init(out, n, MPI_INT, in, u, j->type, j->root, comm, MPI_INFO_NULL, r);
    case GATHERV:
        return MPI_Gatherv_init(out, n, MPI_INT, in, j->in_counts, j->in_places, j->type, j->root,
                                comm, MPI_INFO_NULL, r);
    case SCATTER:
        return MPI_Scatter_init(out, n, MPI_INT, in, u, j->type, j->root, comm, MPI_INFO_NULL, r);
    case SCATTERV:
        return MPI_Scatterv_init(out, j->out_counts, j->out_places, MPI_INT, in, u, j->type,
                                 j->root, comm, MPI_INFO_NULL, r);
    case ALLGATHER:
        return MPI_Allgather_init(out, n, MPI_INT, in, u, j->type, comm, MPI_INFO_NULL, r);
    case ALLGATHERV:
        return MPI_Allgatherv_init(out, n, MPI_INT, in, j->in_counts, j->in_places, j->type, comm,
                                   MPI_INFO_NULL, r);
    case ALLTOALL:
        return MPI_Alltoall_init(out, n, MPI_INT, in, u, j->type, comm, MPI_INFO_NULL, r);
    case ALLTOALLV:
        return MPI_Alltoallv_init(out, j->out_counts, j->out_places, MPI_INT, in, j->in_counts,
                                  j->in_places, j->type, comm, MPI_INFO_NULL, r);
    case ALLTOALLW:
        return MPI_Alltoallw_init(out, j->out_counts, j->out_bytes, j->out_types, in, j->in_counts,
                                  j->in_bytes, j->in_types, comm, MPI_INFO_NULL, r);
    case REDUCE:
        return MPI_Reduce_init(out, in, n, MPI_INT, MPI_SUM, j->root, comm, MPI_INFO_NULL, r);
    case ALLREDUCE: return MPI_Allreduce_init(out, in, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, r);
    case REDUCE_SCATTER:
        return MPI_Reduce_scatter_init(out, in, j->out_counts, MPI_INT, MPI_SUM, comm,
                                       MPI_INFO_NULL, r);
    case REDUCE_SCATTER_BLOCK:
        return MPI_Reduce_scatter_block_init(out, in, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, r);
    case SCAN: return MPI_Scan_init(out, in, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, r);
    case EXSCAN: return MPI_Exscan_init(out, in, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, r);
    case NEIGHBOR_ALLGATHER:
        return MPI_Neighbor_allgather_init(out, n, MPI_INT, in, u, j->type, comm, MPI_INFO_NULL, r);
    case NEIGHBOR_ALLGATHERV:
        return MPI_Neighbor_allgatherv_init(out, n, MPI_INT, in, j->in_counts, j->in_places,
                                            j->type, comm, MPI_INFO_NULL, r);
    default: return MPI_Barrier_init(comm, MPI_INFO_NULL, r);
    }
}

/* The place of element k of block b in the receive buffer. */
static int place_of(const Job *j, int b, int k)
{
    return (b * j->step + k / j->ints) * j->extent + k % j->ints;
}

static size_t room(const Job *j)
{
    return (size_t) (RANKS_MAX * (j->step + 1) * j->extent);
}

static void fill(Job *j, int round)
{
    for (int i = 0; i < j->count * ranks; i++)
        j->out[i] = value(my_rank, i, round);
    for (size_t i = 0; i < room(j); i++)
        j->in[i] = GAP;
    for (int k = 0; k < j->count && j->kind == BCAST && my_rank == j->root; k++)
        j->in[place_of(j, 0, k)] = value(my_rank, k, round);
}

static void look(const Job *j, int round)
{
    int *const wanted = malloc(room(j) * sizeof *wanted), wrong = 0;
    for (size_t i = 0; i < room(j); i++)
        wanted[i] = GAP;
    for (int b = 0; b < RANKS_MAX; b++)
        for (int k = 0; k < j->count && source_of(j, b) >= 0 && source_of(j, b) < ranks; k++)
            wanted[place_of(j, b, k)] = expected(j, b, k, round);
    for (size_t i = 0; i < room(j); i++)
        wrong += j->in[i] != wanted[i];
    CHECK(wrong == 0, "%s, %d elements, root %d%s, start %d: %d wrong", names[j->kind], j->count,
          j->root, j->ints == PAIR ? ", with gaps" : "", round, wrong);
    free(wanted);
}

static void with(Kind kind, int count, int root, MPI_Datatype pair)
{
    const bool gaps = pair != MPI_DATATYPE_NULL;
    const bool is_v = kind == GATHERV || kind == ALLGATHERV || kind == ALLTOALLV ||
                      kind == ALLTOALLW || kind == NEIGHBOR_ALLGATHERV;
    Job j = {.kind = kind,
             .count = count,
             .root = root,
             .units = gaps ? count / PAIR : count,
             .ints = gaps ? PAIR : 1,
             .extent = gaps ? WIDE : 1,
             .type = gaps ? pair : MPI_INT,
             .comm = kind >= NEIGHBOR_ALLGATHER ? ring : MPI_COMM_WORLD};
    MPI_Request request = MPI_REQUEST_NULL;

    j.step = j.units + is_v;
    for (int i = 0; i < RANKS_MAX; i++) {
        j.out_counts[i] = count;
        j.out_places[i] = i * count;
        j.in_counts[i] = j.units;
        j.in_places[i] = i * j.step;
        j.out_bytes[i] = j.out_places[i] * (int) sizeof(int);
        j.in_bytes[i] = j.in_places[i] * j.extent * (int) sizeof(int);
        j.out_types[i] = MPI_INT;
        j.in_types[i] = j.type;
    }
    j.out = malloc((size_t) (count * ranks) * sizeof *j.out);
    j.in = malloc(room(&j) * sizeof *j.in);
    fill(&j, STARTS);
    ask(&j, &request);
    for (int round = 0; round < STARTS; round++) {
        fill(&j, round);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        look(&j, round);
    }
    MPI_Request_free(&request);
    free(j.out);
    free(j.in);
}

/* Their requests are those that messages from nobody had. */
static void after_nobody(void)
{
    enum { COUNT = 16 };
    MPI_Request requests[COUNT];
    int sums[COUNT], none;

    for (int i = 0; i < COUNT; i++)
        MPI_Recv_init(&none, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < COUNT; i++)
        MPI_Request_free(&requests[i]);
    for (int i = 0; i < COUNT; i++) {
        sums[i] = GAP;
        MPI_Allreduce_init(&my_rank, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &requests[i]);
    }
    MPI_Startall(COUNT, requests);
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COUNT; i++) {
        CHECK(sums[i] == ranks * (ranks - 1) / 2, "sum %d is %d", i, sums[i]);
        MPI_Request_free(&requests[i]);
    }
}

int main(int argc, char **argv)
{
    static const int counts[] = {2, 10, MANY};
    MPI_Datatype two, pair;

    start(&argc, &argv);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, (const int[]){1}, 0, &ring);
    MPI_Type_contiguous(PAIR, MPI_INT, &two);
    MPI_Type_create_resized(two, 0, WIDE * (MPI_Aint) sizeof(int), &pair);
    MPI_Type_commit(&pair);
    MPI_Type_free(&two);
    for (Kind kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (int root = 0; root < (kind <= SCATTERV || kind == REDUCE ? ranks : 1); root++) {
                with(kind, counts[i], root, MPI_DATATYPE_NULL);
                if (!is_reduction(kind) && kind != BARRIER)
                    with(kind, counts[i], root, pair);
            }
    after_nobody();
    MPI_Type_free(&pair);
    MPI_Comm_free(&ring);
    return finish("persistent");
}
