/* What one call costs under any MPI from version 3 on: collectives, from a barrier until the
 * slowest rank is back, and one-sided accesses, at rank 0, with what completes each. Run by
 * scripts/compare; alone: mpiexec -n 4 mpi_calls --pattern allreduce --sizes 8,64K. Bytes are those
 * of a rank's block, of reduce_scatter's whole input.
 *
 * Of a collective also what it adds to a loop of barriers (added_us): ranks do not leave a barrier
 * at the same time, and who leaves late waits less for the call that follows.
 *
 * One-sided patterns are ACCESS_SYNCHRONIZATION: put, get, accumulate (a sum of doubles), fetch_add
 * and swap (compare-and-swap; both of 8 bytes), completed by flush, lock, fence or post. */
#define _GNU_SOURCE
#include "bench_mpi.h"
#include "bench_program.h"

enum { BATCHES = 11, PATIENCE = 5 };

static int my_rank, ranks;
static double *out, *in; /* room for a block of every rank each */
static int *counts, *places;
static MPI_Win window;
static double *exposed;

/* --- collectives. What every rank sends is its number plus 1, in doubles: sums are exact, and a
 * receiver knows what to expect. */
static void barrier(int count)
{
    (void) count;
    MPI_Barrier(MPI_COMM_WORLD);
}
static void bcast(int count)
{
    MPI_Bcast(my_rank == 0 ? out : in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
static void reduce(int count)
{
    MPI_Reduce(out, in, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}
static void allreduce(int count)
{
    MPI_Allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void reduce_scatter(int count)
{
    MPI_Reduce_scatter_block(out, in, count / ranks, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void scan(int count)
{
    MPI_Scan(out, in, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void allgather(int count)
{
    MPI_Allgather(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD);
}
static void allgatherv(int count)
{
    MPI_Allgatherv(out, count, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
}
static void gather(int count)
{
    MPI_Gather(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
static void gatherv(int count)
{
    MPI_Gatherv(out, count, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
static void scatter(int count)
{
    MPI_Scatter(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
static void scatterv(int count)
{
    MPI_Scatterv(out, counts, places, MPI_DOUBLE, in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
static void alltoall(int count)
{
    MPI_Alltoall(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD);
}
static void alltoallv(int count)
{
    (void) count;
    MPI_Alltoallv(out, counts, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
}

/* What `in` holds afterwards: blocks of one value each. */
enum result { NOTHING, FROM_ROOT, SUM, SUM_OF_LOWER, ONE_OF_EACH };
struct collective {
    const char *name;
    void (*call)(int count);
    enum result result;
    bool at_root; /* only there */
    bool pairs;   /* every rank sends to every rank */
};
static const struct collective collectives[] = {
    {"barrier", barrier, NOTHING, false, false},
    {"bcast", bcast, FROM_ROOT, false, false},
    {"reduce", reduce, SUM, true, false},
    {"allreduce", allreduce, SUM, false, false},
    {"reduce_scatter", reduce_scatter, SUM, false, false},
    {"scan", scan, SUM_OF_LOWER, false, false},
    {"gather", gather, ONE_OF_EACH, true, false},
    {"gatherv", gatherv, ONE_OF_EACH, true, false},
    {"scatter", scatter, FROM_ROOT, false, false},
    {"scatterv", scatterv, FROM_ROOT, false, false},
    {"allgather", allgather, ONE_OF_EACH, false, true},
    {"allgatherv", allgatherv, ONE_OF_EACH, false, true},
    {"alltoall", alltoall, ONE_OF_EACH, false, true},
    {"alltoallv", alltoallv, ONE_OF_EACH, false, true},
};
enum { COLLECTIVES = sizeof collectives / sizeof collectives[0] };

static double expected(const struct collective *c, int block)
{
    switch (c->result) {
    case FROM_ROOT: return 1.0;
    case SUM: return ranks * (ranks + 1) / 2.0;
    case SUM_OF_LOWER: return (my_rank + 1) * (my_rank + 2) / 2.0;
    default: return block + 1.0;
    }
}
static bool right_result(const struct collective *c, int count)
{
    const bool blocks = c->result == ONE_OF_EACH;
    const int length = c->call == reduce_scatter ? count / ranks : blocks ? count * ranks : count;
    if (c->result == NOTHING || (c->at_root && my_rank != 0) || (c->call == bcast && my_rank == 0))
        return true;
    for (int i = 0; i < length; i++)
        if (in[i] != expected(c, blocks ? i / count : 0))
            return false;
    return true;
}

/* Microseconds, the slowest rank's: in the calls themselves, and of the loop with its barriers. */
struct spent {
    double in_calls, in_loop;
};
static struct spent time_collective(const struct collective *c, int count, int calls)
{
    struct spent mine = {0.0, 0.0}, slowest;
    const double begun = now_us();
    for (int i = 0; i < calls; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now_us();
        c->call(count);
        mine.in_calls += now_us() - start;
    }
    mine.in_loop = now_us() - begun;
    MPI_Allreduce(&mine, &slowest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}
static void nothing(int count)
{
    (void) count;
}
/* What the call adds to a loop of barriers. */
static double added_by(const struct collective *c, int count, int calls)
{
    static const struct collective no_call = {"", nothing, NOTHING, false, false};
    const double with = time_collective(c, count, calls).in_loop;
    return with - time_collective(&no_call, count, calls).in_loop;
}

/* --- one-sided accesses, by rank 0 to rank 1 */
enum access { PUT, GET, ACCUMULATE, FETCH_ADD, SWAP, ACCESSES };
static const char *const access_names[] = {"put", "get", "accumulate", "fetch_add", "swap"};
enum synchronization { FLUSH, LOCK, FENCE, POST, SYNCHRONIZATIONS };
static const char *const synchronization_names[] = {"flush", "lock", "fence", "post"};

static void access_target(enum access access, int count)
{
    static double compare = -1.0;
    switch (access) {
    case PUT: MPI_Put(out, count, MPI_DOUBLE, 1, 0, count, MPI_DOUBLE, window); break;
    case GET: MPI_Get(in, count, MPI_DOUBLE, 1, 0, count, MPI_DOUBLE, window); break;
    case ACCUMULATE:
        MPI_Accumulate(out, count, MPI_DOUBLE, 1, 0, count, MPI_DOUBLE, MPI_SUM, window);
        break;
    case FETCH_ADD: MPI_Fetch_and_op(out, in, MPI_LONG, 1, 0, MPI_SUM, window); break;
    default: MPI_Compare_and_swap(out, &compare, in, MPI_LONG, 1, 0, window); break;
    }
}

static double time_access(enum access access, enum synchronization how, int count, int calls)
{
    MPI_Group world, other;
    const int partner = 1 - my_rank;
    const bool passive = how == FLUSH || how == LOCK;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &partner, &other);
    MPI_Barrier(MPI_COMM_WORLD);
    if (how == FLUSH && my_rank == 0)
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    if (how == FENCE)
        MPI_Win_fence(0, window);
    const double start = now_us();
    for (int i = 0; i < (passive && my_rank != 0 ? 0 : calls); i++) {
        if (how == LOCK)
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
        if (how == POST && my_rank == 0)
            MPI_Win_start(other, 0, window);
        if (how == POST && my_rank != 0)
            MPI_Win_post(other, 0, window);
        if (my_rank == 0)
            access_target(access, count);
        switch (how) {
        case FLUSH: MPI_Win_flush(1, window); break;
        case LOCK: MPI_Win_unlock(1, window); break;
        case FENCE: MPI_Win_fence(0, window); break;
        default:
            if (my_rank == 0)
                MPI_Win_complete(window);
            else
                MPI_Win_wait(window);
        }
    }
    double took = now_us() - start;
    if (how == FLUSH && my_rank == 0)
        MPI_Win_unlock(1, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Group_free(&other);
    MPI_Group_free(&world);
    MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return took;
}
/* A window of zeros, accessed once. */
static bool right_access(enum access access, enum synchronization how, int count)
{
    bool right = true;
    if (access == FETCH_ADD || access == SWAP)
        count = 1;
    MPI_Win_fence(0, window);
    for (int i = 0; i < count; i++)
        exposed[i] = access == GET ? 7.0 : 0.0;
    MPI_Win_fence(0, window);
    time_access(access, how, count, 1);
    MPI_Win_fence(0, window);
    for (int i = 0; i < count && my_rank < 2; i++) {
        if (my_rank == 0 && access == GET)
            right = right && in[i] == 7.0;
        if (my_rank == 1 && access < SWAP && access != GET)
            right = right && exposed[i] == 1.0;
        if (my_rank == 1 && access == SWAP)
            right = right && exposed[i] == 0.0; /* it was not what was compared with */
    }
    MPI_Win_fence(0, window);
    return right;
}

/* --- a point */
struct call {
    const struct collective *collective; /* or NULL */
    enum access access;
    enum synchronization how;
};

/* false: there is none of that name */
static bool find_call(struct call *call, const char *name)
{
    char access[20] = "";
    const char *const line = strrchr(name, '_');
    *call = (struct call){0};
    for (int i = 0; i < COLLECTIVES; i++)
        if (strcmp(collectives[i].name, name) == 0)
            call->collective = &collectives[i];
    if (call->collective)
        return true;
    if (!line || line - name >= (long) sizeof access)
        return false;
    memcpy(access, name, (size_t) (line - name));
    const int known = place_of(access, access_names, ACCESSES),
              how = place_of(line + 1, synchronization_names, SYNCHRONIZATIONS);
    call->access = (enum access) known;
    call->how = (enum synchronization) how;
    return known >= 0 && how >= 0;
}

static double time_calls(const struct call *call, int count, int calls)
{
    return call->collective ? time_collective(call->collective, count, calls).in_calls
                            : time_access(call->access, call->how, count, calls);
}

/* The least that has to go from rank to rank, in bytes. */
static double payload_of(const struct call *call, int count)
{
    const struct collective *const c = call->collective;
    const double bytes = 8.0 * count;
    if (!c)
        return bytes;
    if (c->result == NOTHING)
        return 0.0;
    return c->pairs ? bytes * ranks * (ranks - 1) : bytes * (ranks - 1);
}

/* Connections, clocks and caches have to get warm, too. */
static void warm_up(const struct call *call, int count, double seconds)
{
    int more = 1;
    for (const double begin = now_us(); more;) {
        time_calls(call, count, 10);
        more = now_us() - begin < 1e6 * seconds;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

static void one_point(const struct call *call, const char *name, size_t bytes, double seconds)
{
    const int count = (int) (bytes / sizeof(double));
    const double batch_us = 1e6 * seconds / BATCHES;
    double times[BATCHES], added[BATCHES], units = 1.0;
    int calls = 1, batches = 0, more = 1, right, all_right;
    for (int i = 0; i < count * ranks; i++) {
        out[i] = my_rank + 1.0;
        in[i] = 0.0;
    }
    /* who receives a block of mine */
    for (int i = 0; i < ranks; i++) {
        counts[i] = count;
        places[i] = i * count;
    }
    if (call->collective) {
        call->collective->call(count);
        right = right_result(call->collective, count);
    } else {
        right = right_access(call->access, call->how, count);
    }
    MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    warm_up(call, count, seconds / 4);
    /* by the clock outside of the calls too: a barrier before each takes its time */
    for (double took = 0.0; took < batch_us / 2 && calls < 1000000; calls *= 2) {
        const double start = now_us();
        time_calls(call, count, calls);
        took = now_us() - start;
        MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        units += calls;
    }
    const double begun = now_us();
    while (more) {
        times[batches] = time_calls(call, count, calls) / calls;
        units += calls;
        if (call->collective) {
            added[batches] = added_by(call->collective, count, calls) / calls;
            units += calls;
        }
        batches++;
        more =
            batches < BATCHES && (batches < 3 || now_us() - begun < PATIENCE * batch_us * BATCHES);
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (my_rank == 0) {
        printf(
            "{\"pattern\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"iterations\":%d,\"us\":%.4f,"
            "\"us_min\":%.4f,\"us_max\":%.4f,\"unfair\":null,",
            name, bytes, ranks, calls * batches, median(times, batches),
            percentile(times, batches, 0.0), percentile(times, batches, 100.0));
        if (call->collective)
            printf("\"added_us\":%.4f,", median(added, batches));
        printf("\"payload\":%.0f,\"verified\":%s}\n", units * payload_of(call, count),
               all_right ? "true" : "false");
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct words words;
    struct call call = {0};
    size_t most = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bool good =
        parse_words(&words, argc, argv, NULL) && find_call(&call, words.pattern) && ranks > 1;
    char *const sizes = good ? strdup(words.sizes) : NULL;
    for (char *size = good ? strtok(words.sizes, ",") : NULL; size; size = strtok(NULL, ",")) {
        const size_t bytes = parse_size(size);
        const size_t least =
            call.collective && call.collective->call == reduce_scatter ? 8 * (size_t) ranks : 8;
        good = good && bytes >= 8 && bytes % least == 0 && bytes <= 1 << 30;
        most = bytes > most ? bytes : most;
    }
    if (!good) {
        if (my_rank == 0)
            fprintf(stderr,
                    "mpi_calls: usage: mpi_calls --pattern NAME --sizes 8,64K "
                    "[--seconds S] [--limit SECONDS], two ranks at least, multiples of 8 "
                    "(reduce_scatter: of 8 for each rank)\n");
        MPI_Finalize();
        return 2;
    }
    end_after(words.limit);
    if (my_rank == 0)
        print_library();
    out = malloc(most * (size_t) ranks);
    in = malloc(most * (size_t) ranks);
    counts = malloc((size_t) ranks * sizeof *counts);
    places = malloc((size_t) ranks * sizeof *places);
    if (!sizes || !out || !in || !counts || !places)
        abort();
    if (!call.collective)
        MPI_Win_allocate((MPI_Aint) most, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &exposed,
                         &window);
    for (char *size = strtok(sizes, ","); size; size = strtok(NULL, ","))
        one_point(&call, words.pattern, parse_size(size), words.seconds);
    if (!call.collective)
        MPI_Win_free(&window);
    free(sizes);
    free(out);
    free(in);
    free(counts);
    free(places);
    MPI_Finalize();
    return 0;
}
