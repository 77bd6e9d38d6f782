/* Messages of all lengths and kinds between all pairs for a while, every byte checked: for networks
 * whose connections break. Two ranks or more. Arguments: seconds, bytes of the longest message.
 */
#include "mpi_test.h"

enum { SHORT = 20, KINDS = 5 };

static size_t longest;
static unsigned char *out, *in;

static unsigned seed_of(unsigned round, int from, int to, int kind)
{
    return round * 1000 + (unsigned) ((from * ranks + to) * KINDS + kind);
}

static size_t bytes_of(unsigned round, int kind)
{
    const size_t some[KINDS] = {1, 900, 20000, 70000, longest};
    return some[kind] - (kind > 0 ? round % 97 : 0);
}

static unsigned char *slot(unsigned char *base, int peer, int kind)
{
    return base + ((size_t) (peer * KINDS + kind)) * longest;
}

/* Everybody sends one of each kind to everybody, and short ones between. */
static void to_all(unsigned round)
{
    MPI_Request *requests = malloc(sizeof(MPI_Request) * (size_t) (ranks * 2 * (KINDS + SHORT)));
    int *shorts = calloc((size_t) (ranks * 2 * SHORT), sizeof(int)), n = 0;
    for (int peer = 0; peer < ranks; peer++) {
        if (peer == my_rank)
            continue;
        for (int k = 0; k < KINDS; k++) {
            const int bytes = (int) bytes_of(round, k);
            pattern_fill(slot(out, peer, k), (size_t) bytes, seed_of(round, my_rank, peer, k));
            MPI_Irecv(slot(in, peer, k), bytes, MPI_BYTE, peer, k, MPI_COMM_WORLD, &requests[n++]);
            MPI_Isend(slot(out, peer, k), bytes, MPI_BYTE, peer, k, MPI_COMM_WORLD, &requests[n++]);
        }
        for (int i = 0; i < SHORT; i++) {
            int *mine = &shorts[(2 * peer) * SHORT + i],
                *theirs = &shorts[(2 * peer + 1) * SHORT + i];
            *mine = (int) round + i;
            MPI_Isend(mine, 1, MPI_INT, peer, 100, MPI_COMM_WORLD, &requests[n++]);
            MPI_Irecv(theirs, 1, MPI_INT, peer, 100, MPI_COMM_WORLD, &requests[n++]);
        }
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < ranks; peer++) {
        if (peer == my_rank)
            continue;
        for (int k = 0; k < KINDS; k++) {
            const long wrong = pattern_wrong(slot(in, peer, k), bytes_of(round, k),
                                             seed_of(round, peer, my_rank, k));
            CHECK(wrong < 0, "round %u: byte %ld of kind %d from %d is wrong", round, wrong, k,
                  peer);
        }
        for (int i = 0; i < SHORT; i++)
            CHECK(shorts[(2 * peer + 1) * SHORT + i] == (int) round + i,
                  "round %u: short message %d from %d is wrong", round, i, peer);
    }
    free(requests);
    free(shorts);
}

/* Put, get and accumulate with the next rank. */
static void one_sided(unsigned round, MPI_Win win, int *memory, int count)
{
    const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
    int *mine = (int *) out, *got = (int *) in;
    for (int i = 0; i < count; i++) {
        mine[i] = (int) round + i;
        memory[i] = memory[count + i] = my_rank;
    }
    MPI_Win_fence(0, win);
    MPI_Put(mine, count, MPI_INT, next, 0, count, MPI_INT, win);
    MPI_Accumulate(mine, count, MPI_INT, next, count, count, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Get(got, count, MPI_INT, next, 0, count, MPI_INT, win);
    MPI_Win_fence(0, win);
    int wrong = 0;
    for (int i = 0; i < count; i++)
        wrong += memory[i] != (int) round + i || got[i] != (int) round + i ||
                 memory[count + i] != my_rank + (int) round + i;
    CHECK(wrong == 0, "round %u: %d words of the window are wrong (of rank %d)", round, wrong,
          before);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 2;
    longest = argc > 2 ? strtoull(argv[2], NULL, 10) : 300000;
    const size_t all = (size_t) (ranks * KINDS) * longest;
    out = malloc(all);
    in = malloc(all);
    const int count = 10000;
    int *memory;
    MPI_Win win;
    MPI_Win_allocate((MPI_Aint) sizeof(int) * 2 * count, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &memory, &win);
    const double begin = MPI_Wtime();
    unsigned round = 0;
    int go_on = 1;
    double longest_round = 0;
    while (go_on) {
        const double from = MPI_Wtime();
        to_all(round);
        one_sided(round, win, memory, count);
        long sum = my_rank, want = (long) ranks * (ranks - 1) / 2;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == want, "round %u: the sum is %ld and not %ld", round, sum, want);
        round++;
        if (MPI_Wtime() - from > longest_round)
            longest_round = MPI_Wtime() - from;
        go_on = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (my_rank == 0)
        printf("rounds %u, the longest %.3f s\n", round, longest_round);
    MPI_Win_free(&win);
    free(out);
    free(in);
    return finish("resume");
}
