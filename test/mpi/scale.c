/* What grows with the job, or must not: one number per line, as NAME key=value.
 *   scale matching      two ranks; time per message by how many receives are posted, or messages
 *                       unexpected
 *   scale connections   any number of ranks, each a node of its own; memory of an idle connection
 *   scale idle SECONDS  any number of ranks; processor time of ranks that wait for a message that
 *                       long, and how late they notice it
 *   scale pieces        two or more ranks on a node; a long message in shared memory after a long
 *                       wait, beside one without
 *   scale flags COUNT   three or more ranks on a node; so many reductions of 800 KB */
#define _GNU_SOURCE
#include <malloc.h>
#include <sys/resource.h>
#include "mpi_test.h"
#include "mpi_tools.h"

enum { GO_TAG = 0, FIRST_TAG = 10, DEEPEST = 10000 };

static long long buffers[DEEPEST];
static MPI_Request requests[DEEPEST];

/* Each place once, in an order that is neither forwards nor backwards. */
static int scattered(int i, int depth)
{
    return (int) (((long long) i * 7919 + 3) % depth);
}

static void go(int from)
{
    if (my_rank == from)
        MPI_Send(NULL, 0, MPI_BYTE, 1 - my_rank, GO_TAG, MPI_COMM_WORLD);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, 1 - my_rank, GO_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_all(int depth)
{
    for (int i = 0; i < depth; i++) {
        const long long tag = FIRST_TAG + scattered(i, depth);
        MPI_Send(&tag, 1, MPI_LONG_LONG, 1, (int) tag, MPI_COMM_WORLD);
    }
}

static void post_all(int depth)
{
    for (int i = 0; i < depth; i++)
        MPI_Irecv(&buffers[i], 1, MPI_LONG_LONG, 0, FIRST_TAG + i, MPI_COMM_WORLD, &requests[i]);
}

static void take_all(int depth)
{
    MPI_Waitall(depth, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < depth; i++)
        CHECK(buffers[i] == FIRST_TAG + i, "message %lld in the receive of %d", buffers[i],
              FIRST_TAG + i);
}

/* Seconds at the receiver: posting and receiving `depth` messages that are sent when all receives
 * are posted. */
static double posted_round(int depth)
{
    const double begin = now_s();
    if (my_rank == 1)
        post_all(depth);
    go(1);
    if (my_rank == 0)
        send_all(depth);
    else
        take_all(depth);
    return now_s() - begin;
}

/* The same for messages that are all there before the first receive is posted. */
static double unexpected_round(int depth)
{
    if (my_rank == 0)
        send_all(depth);
    go(0); /* the connection keeps order: all of them have arrived */
    const double begin = now_s();
    if (my_rank == 1) {
        post_all(depth);
        take_all(depth);
    }
    const double end = now_s();
    go(1);
    return end - begin;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/* Microseconds per message, the lower quartile of several tries: a neighbour on this core disturbs
 * upwards only. */
static double cost_us(double (*round_of)(int), int depth)
{
    enum { TRIES = 25, PER_TRY = 20000 };
    const int rounds = PER_TRY / depth > 200 ? 200 : PER_TRY / depth;
    double tries[TRIES];

    for (int t = 0; t < TRIES; t++) {
        double sum = 0, empty = 0;
        for (int i = 0; i < rounds; i++) {
            sum += round_of(depth);
            empty += round_of(0); /* the trip of the go-ahead is not matching */
        }
        tries[t] = (sum - empty) / rounds / depth * 1e6;
    }
    qsort(tries, TRIES, sizeof tries[0], by_value);
    return tries[TRIES / 4];
}

static void matching(void)
{
    const int depths[] = {10, 100, 1000, DEEPEST};
    for (int kind = 0; kind < 2; kind++) {
        for (int d = 0; d < 4; d++) {
            const double cost = cost_us(kind == 0 ? posted_round : unexpected_round, depths[d]);
            if (my_rank == 1)
                printf("matching kind=%s depth=%d us_per_message=%.3f\n",
                       kind == 0 ? "posted" : "unexpected", depths[d], cost);
        }
    }
}

/* Without the device's blocks for unexpected messages: they are bounded for the whole process, and
 * how many there are is a matter of who ran ahead of whom. */
static size_t heap_bytes(void)
{
#if __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 m = mallinfo2();
#else
    const struct mallinfo m = mallinfo(); /* counts to 2 GB, which is enough here */
#endif
    return m.uordblks + m.hblkhd - pvar_of("lite_unexpected_bytes_held", MPI_T_PVAR_CLASS_LEVEL) -
           pvar_of("lite_unexpected_bytes_ready", MPI_T_PVAR_CLASS_LEVEL);
}

enum { LENGTHS = 4 };
static const int lengths[LENGTHS] = {
    8, 4000, 60000, 600 * 1024}; /* the last one is longer than the others together */

/* Messages of all lengths to the ranks at distances `first` to `last` on one side, and from those
 * on the other, all at once. */
static void talk(int first, int last, char *out, char *in)
{
    int n = 0;

    for (int distance = first; distance <= last; distance++) {
        for (int l = 0; l < LENGTHS; l++) {
            MPI_Irecv(in, lengths[l], MPI_BYTE, (my_rank + ranks - distance) % ranks, 1,
                      MPI_COMM_WORLD, &requests[n++]);
            in += lengths[l];
            MPI_Isend(out, lengths[l], MPI_BYTE, (my_rank + distance) % ranks, 1, MPI_COMM_WORLD,
                      &requests[n++]);
        }
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void connections(void)
{
    /* Distances d and ranks - d share connections. With the first two thirds, all at once, stocks
     * and pools grow to more than the others need, which come one by one and add connections only.
     */
    const int farthest = (ranks - 1) / 2, warm = farthest * 2 / 3;
    char *out = malloc((size_t) lengths[LENGTHS - 1]),
         *in = malloc((size_t) lengths[LENGTHS - 1] * 2 * (size_t) (warm + 1));
    int provided;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int round = 0; round < 3; round++)
        talk(1, warm, out, in);
    MPI_Barrier(MPI_COMM_WORLD);
    const size_t before = heap_bytes();
    for (int distance = warm + 1; distance <= farthest; distance++)
        talk(distance, distance, out, in);
    const int added = 2 * (farthest - warm);
    CHECK(added > 0, "%d ranks make no connection of which the memory could be counted", ranks);
    const double each = added > 0 ? ((double) heap_bytes() - (double) before) / added : 0;
    /* The median of the ranks: in some the stock of read-ahead buffers may have grown even so. */
    double *all = malloc((size_t) ranks * sizeof *all);
    MPI_Gather(&each, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (my_rank == 0) {
        qsort(all, (size_t) ranks, sizeof *all, by_value);
        printf("connections ranks=%d heap_bytes_per_connection=%.0f least=%.0f most=%.0f\n", ranks,
               all[ranks / 2], all[0], all[ranks - 1]);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    free(all);
    free(out);
    free(in);
}

static double processor_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double) (u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double) (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void idle(double seconds)
{
    double mine[2] = {0, 0}, worst[2], sent;

    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        rest(seconds); /* the others call meanwhile, for the first time */
        for (int i = 1; i < ranks; i++) {
            sent = now_s();
            MPI_Send(&sent, 1, MPI_DOUBLE, i, 1, MPI_COMM_WORLD);
        }
    } else {
        const double processor = processor_s(), begin = now_s();
        MPI_Recv(&sent, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double end = now_s();
        mine[0] = 100 * (processor_s() - processor) / (end - begin);
        mine[1] = (end - sent) * 1e3;
        if (getenv("SCALE_EACH"))
            printf("idle rank=%d cpu_percent=%.2f late_ms=%.3f\n", my_rank, mine[0], mine[1]);
    }
    MPI_Reduce(mine, worst, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (my_rank == 0)
        printf("idle ranks=%d seconds=%.1f cpu_percent=%.2f late_ms=%.3f\n", ranks, seconds,
               worst[0], worst[1]);
}

static void pieces(void)
{
    enum { BYTES = 32 << 20, TRIES = 5 };
    char *buffer = malloc(BYTES);
    double best[2] = {1e9, 1e9};
    MPI_Comm node;
    int node_rank, node_ranks;

    memset(buffer, 1, BYTES);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    MPI_Comm_size(node, &node_ranks);
    CHECK(node_ranks >= 2, "%d rank on this node", node_ranks);
    for (int i = 0; i < 2 * TRIES && node_ranks >= 2; i++) {
        MPI_Barrier(node);
        if (node_rank == 0) {
            if (i % 2 == 1)
                usleep(200000);
            const double begin = now_s();
            MPI_Send(buffer, BYTES, MPI_BYTE, 1, 1, node);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, node, MPI_STATUS_IGNORE);
            const double took = now_s() - begin;
            if (took < best[i % 2])
                best[i % 2] = took;
        } else if (node_rank == 1) {
            MPI_Recv(buffer, BYTES, MPI_BYTE, 0, 1, node, MPI_STATUS_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, node);
        }
    }
    if (my_rank == 0)
        printf("pieces at_once_ms=%.2f after_a_wait_ms=%.2f\n", best[0] * 1e3, best[1] * 1e3);
    MPI_Comm_free(&node);
    free(buffer);
}

/* Every rank is the root in turn, so that none runs ahead of the others. */
static void flags(int count)
{
    enum { LENGTH = 100000 };
    double *mine = malloc(LENGTH * sizeof *mine), *sum = malloc(LENGTH * sizeof *sum);

    for (int i = 0; i < LENGTH; i++)
        mine[i] = my_rank + i;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now_s();
    for (int i = 0; i < count; i++) {
        MPI_Reduce(mine, sum, LENGTH, MPI_DOUBLE, MPI_SUM, i % ranks, MPI_COMM_WORLD);
        if (i % ranks == my_rank)
            for (int k = 0; k < LENGTH; k += 997)
                CHECK(sum[k] == ranks * (ranks - 1) / 2 + (double) ranks * k, "%g at %d", sum[k],
                      k);
    }
    if (my_rank == 0)
        printf("flags reduce_ms=%.2f\n", (now_s() - begin) / count * 1e3);
    free(mine);
    free(sum);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "matching") == 0 && ranks == 2)
        matching();
    else if (strcmp(what, "connections") == 0)
        connections();
    else if (strcmp(what, "idle") == 0 && argc > 2)
        idle(atof(argv[2]));
    else if (strcmp(what, "pieces") == 0)
        pieces();
    else if (strcmp(what, "flags") == 0 && argc > 2)
        flags(atoi(argv[2]));
    else
        CHECK(0, "unknown: %s with %d ranks", what, ranks);
    return finish("scale");
}
