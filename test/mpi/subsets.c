/* Collectives in every communicator of two ranks or more of the world, with each of them as its
 * rank 0 and each as the root: hosts with one rank of it beside hosts with several. */
#include "mpi_test.h"

#include <stdbool.h>

enum { LONGEST = 5000 };
static const int counts[] = {1, 600, LONGEST};
static int out[LONGEST], in[LONGEST];

static void add(void *from, void *into, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; i++)
        ((int *) into)[i] += ((int *) from)[i];
}

/* What rank `rank` has at `i`. */
static int number(int rank, int i)
{
    return (rank + 1) * 1000 + i % 997;
}

/* The same of the sum over ranks 0 to `ranks_summed` - 1. */
static int sum(int ranks_summed, int i)
{
    return ranks_summed * (ranks_summed + 1) / 2 * 1000 + ranks_summed * (i % 997);
}

typedef struct {
    MPI_Comm comm;
    int rank, size, root, count;
    bool in_place;
    MPI_Op op;
} Case;

static void fill(const Case *c)
{
    for (int i = 0; i < c->count; i++)
        out[i] = number(c->rank, i);
    memset(in, 0x55, sizeof in);
    if (c->in_place)
        memcpy(in, out, sizeof in);
}

static void are_sums(const Case *c, int ranks_summed, const char *call)
{
    int wrong = 0;
    for (int i = 0; i < c->count; i++)
        wrong += in[i] != sum(ranks_summed, i);
    CHECK(wrong == 0, "%s: %d of %d numbers wrong; rank %d of %d, root %d, in place %d", call,
          wrong, c->count, c->rank, c->size, c->root, c->in_place);
}

static void reduce(Case c, bool in_place)
{
    c.in_place = in_place && c.rank == c.root;
    fill(&c);
    MPI_Reduce(c.in_place ? MPI_IN_PLACE : out, c.rank == c.root ? in : NULL, c.count, MPI_INT,
               c.op, c.root, c.comm);
    if (c.rank == c.root)
        are_sums(&c, c.size, "MPI_Reduce");
}

static void broadcast(Case c)
{
    int wrong = 0;
    fill(&c);
    MPI_Bcast(out, c.count, MPI_INT, c.root, c.comm);
    for (int i = 0; i < c.count; i++)
        wrong += out[i] != number(c.root, i);
    CHECK(wrong == 0, "MPI_Bcast: %d of %d numbers wrong; rank %d of %d, root %d", wrong, c.count,
          c.rank, c.size, c.root);
}

static void without_root(Case c, bool in_place)
{
    c.in_place = in_place;
    fill(&c);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : out, in, c.count, MPI_INT, c.op, c.comm);
    are_sums(&c, c.size, "MPI_Allreduce");
    fill(&c);
    MPI_Scan(in_place ? MPI_IN_PLACE : out, in, c.count, MPI_INT, c.op, c.comm);
    are_sums(&c, c.rank + 1, "MPI_Scan");
    fill(&c);
    MPI_Exscan(in_place ? MPI_IN_PLACE : out, in, c.count, MPI_INT, c.op, c.comm);
    if (c.rank > 0)
        are_sums(&c, c.rank, "MPI_Exscan");
}

static void all_of(MPI_Comm comm, MPI_Op own)
{
    Case c = {comm, 0, 0, 0, 0, false, MPI_SUM};
    MPI_Comm_rank(comm, &c.rank);
    MPI_Comm_size(comm, &c.size);
    for (int k = 0; k < 12; k++) {
        const bool in_place = k / 3 % 2;
        c.count = counts[k % 3];
        c.op = k < 6 ? MPI_SUM : own;
        for (c.root = 0; c.root < c.size; c.root++) {
            reduce(c, in_place);
            broadcast(c);
        }
        without_root(c, in_place);
    }
}

int main(int argc, char **argv)
{
    MPI_Op own;
    start(&argc, &argv);
    MPI_Op_create(add, 1, &own);
    for (int set = 1; set < 1 << ranks; set++)
        for (int first = 0; first < ranks; first++) {
            const bool member = set >> my_rank & 1;
            MPI_Comm comm;
            if ((set & (set - 1)) == 0 || !(set >> first & 1))
                continue;
            MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED,
                           (my_rank - first + ranks) % ranks, &comm);
            if (!member)
                continue;
            all_of(comm, own);
            MPI_Comm_free(&comm);
        }
    MPI_Op_free(&own);
    return finish("subsets");
}
