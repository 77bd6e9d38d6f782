/* The patterns and the method of tcp_bench.c and mpi_bench.c, shared so that they cannot differ in
 * them. A point is a pattern at a size: after a warm-up that also calibrates, at most BATCHES
 * batches of equal length, a barrier before each; `us` is the median batch, per unit (see
 * patterns[]). Rank 0 prints one JSON object per line. Run by scripts/compare; docs/compare.md
 * tells the rest. */
#ifndef BENCH_METHOD_H_INCLUDED
#define BENCH_METHOD_H_INCLUDED

#include "bench_program.h"

enum pattern {
    PINGPONG,
    STREAM,
    BIDIRECTIONAL,
    RATE,
    MANY_TO_ONE,
    HALO,
    RING,
    PAIRS,
    LATE,
    THREAD_RATE,
    PATTERNS
};
static const char *const pattern_names[] = {"pingpong",    "stream",     "bidirectional", "rate",
                                            "many_to_one", "halo",       "ring",          "pairs",
                                            "late",        "thread_rate"};

enum {
    BATCHES = 11,
    BATCHES_LEAST = 3,
    PATIENCE = 5,
    WINDOW = 64,
    WINDOW_BYTES = 16 << 20,
    SINK_BATCHES = 3,
    SINK_BYTES = 512 << 20,
    SINK_MESSAGES = 200000,
    SINK_LEAST = 100,
    FACES = 4,
    FACE_STRIDE = 16,
    LATE_US = 200,
    THREADS = 2
};

/* What a way of sending provides. All calls block; a failed one ends the program. */
struct transport {
    int rank, ranks;
    void (*send)(int to, const void *buffer, size_t bytes);
    void (*receive)(int from, void *buffer, size_t bytes);
    /* `count` messages under way at a time, one behind the other in memory */
    void (*burst_out)(int to, const char *buffer, size_t bytes, int count);
    void (*burst_in)(int from, char *buffer, size_t bytes, int count);
    void (*burst_both)(int other, const char *out, char *in, size_t bytes, int count);
    /* rank 0 takes `each` messages from every other rank as they come; counts[rank]: how many had
     * come when the first rank's were all there */
    void (*sink)(char *buffer, size_t bytes, long each, long *counts);
    /* faces of a torus of all ranks with its four neighbours: north and south `bytes` in one piece,
     * west and east doubles FACE_STRIDE apart; NULL: not offered */
    void (*halo)(const char *out, char *in, size_t bytes);
    /* starts a send to `other`, computes for LATE_US, and only then receives from it; NULL: not
     * offered */
    void (*late)(int other, const char *out, char *in, size_t bytes);
    /* THREADS threads, each with a communicator of its own: `times` times burst_out() of rank 0, or
     * burst_in() of rank 1; thread i has the messages at buffer + i * bytes * count; NULL: not
     * offered */
    void (*threads)(int other, char *buffer, size_t bytes, int count, int times);
    void (*barrier)(void);
    void (*from_root)(void *value, size_t bytes);
    double (*max)(double);
};

/* --- one point */
static char *out_memory, *in_memory;
static size_t memory_bytes;

static int window_of(enum pattern pattern, size_t bytes)
{
    if (pattern != STREAM && pattern != BIDIRECTIONAL && pattern != RATE && pattern != THREAD_RATE)
        return 1;
    const size_t fit = WINDOW_BYTES / bytes;
    return fit < 2 ? 2 : fit > WINDOW ? WINDOW : (int) fit;
}

static size_t room_of(enum pattern pattern, size_t bytes)
{
    if (pattern == HALO)
        return 2 * bytes + 2 * bytes * FACE_STRIDE;
    return bytes * (size_t) window_of(pattern, bytes) * (pattern == THREAD_RATE ? THREADS : 1);
}

/* `count` units of work, all ranks at a time; complete at rank 0 when it returns there. */
static void work(const struct transport *t, enum pattern pattern, size_t bytes, int count,
                 double *unfair)
{
    char *const out = out_memory, *const in = in_memory;
    const int partner = t->rank ^ 1, left = (t->rank + t->ranks - 1) % t->ranks,
              right = (t->rank + 1) % t->ranks;
    const int window = window_of(pattern, bytes);
    char done = 0;
    switch (pattern) {
    case PINGPONG:
    case PAIRS:
        for (int i = 0; i < count; i++)
            if (t->rank % 2 == 0) {
                t->send(partner, out, bytes);
                t->receive(partner, in, bytes);
            } else {
                t->receive(partner, in, bytes);
                t->send(partner, out, bytes);
            }
        if (pattern == PAIRS)
            t->barrier();
        break;
    case STREAM:
    case RATE:
        if (t->rank == 0) {
            for (int i = 0; i < count; i++)
                t->burst_out(1, out, bytes, window);
            t->receive(1, &done, 1);
        } else {
            for (int i = 0; i < count; i++)
                t->burst_in(0, in, bytes, window);
            t->send(0, &done, 1);
        }
        break;
    case BIDIRECTIONAL:
        for (int i = 0; i < count; i++)
            t->burst_both(partner, out, in, bytes, window);
        break;
    case MANY_TO_ONE: {
        long *const counts = calloc((size_t) t->ranks, sizeof *counts), most = 0, least = 0;
        if (!counts)
            abort();
        if (t->rank == 0)
            t->sink(in, bytes, count, counts);
        else
            for (int left_over = count; left_over > 0; left_over -= WINDOW)
                t->burst_out(0, out, bytes, left_over < WINDOW ? left_over : WINDOW);
        for (int i = 1; i < t->ranks; i++) {
            most = i == 1 || counts[i] > most ? counts[i] : most;
            least = i == 1 || counts[i] < least ? counts[i] : least;
        }
        *unfair = (double) most / (double) (least > 0 ? least : 1);
        free(counts);
        break;
    }
    case HALO:
        for (int i = 0; i < count; i++)
            t->halo(out, in, bytes);
        t->barrier();
        break;
    case RING:
        for (int i = 0; i < count; i++)
            if (t->rank == 0) {
                t->send(right, out, bytes);
                t->receive(left, in, bytes);
            } else {
                t->receive(left, in, bytes);
                t->send(right, out, bytes);
            }
        break;
    case LATE:
        for (int i = 0; i < count; i++)
            t->late(partner, out, in, bytes);
        t->barrier();
        break;
    case THREAD_RATE:
        t->threads(partner, t->rank == 0 ? out : in, bytes, window, count);
        if (t->rank == 0)
            t->receive(1, &done, 1);
        else
            t->send(0, &done, 1);
        break;
    case PATTERNS: break;
    }
}

/* Messages of all ranks in a unit of work, and how many of them `us` is divided by: it is half a
 * round trip, a message, a pair of messages, an exchange. */
static double messages_of(const struct transport *t, enum pattern pattern, size_t bytes)
{
    switch (pattern) {
    case PINGPONG: return 2;
    case BIDIRECTIONAL: return 2 * window_of(pattern, bytes);
    case MANY_TO_ONE: return t->ranks - 1;
    case HALO: return (double) FACES * t->ranks;
    case RING:
    case PAIRS: return t->ranks;
    case LATE: return 2;
    case THREAD_RATE: return (double) THREADS * window_of(pattern, bytes);
    default: return window_of(pattern, bytes);
    }
}
static double divisor_of(const struct transport *t, enum pattern pattern, size_t bytes)
{
    return pattern == HALO || pattern == LATE ? 1.0
           : pattern == BIDIRECTIONAL         ? window_of(pattern, bytes)
                                              : messages_of(t, pattern, bytes);
}

/* All that is sent has the same content, so a receiver knows it. */
static bool right_data(const struct transport *t, enum pattern pattern, size_t bytes, unsigned seed)
{
    if ((pattern == STREAM || pattern == RATE || pattern == THREAD_RATE) && t->rank == 0)
        return true;
    if (pattern == MANY_TO_ONE && t->rank != 0)
        return true;
    for (size_t i = 0; i < room_of(pattern, bytes); i++) {
        const bool hole = pattern == HALO && i >= 2 * bytes &&
                          (i - 2 * bytes) / sizeof(double) % FACE_STRIDE != 0;
        if ((unsigned char) in_memory[i] != (hole ? 0 : pattern_byte(i, seed)))
            return false;
    }
    return true;
}

static void one_point(const struct transport *t, enum pattern pattern, size_t bytes, double seconds,
                      bool shown)
{
    const size_t room = room_of(pattern, bytes);
    const long most =
        pattern == MANY_TO_ONE ? (long) (SINK_BYTES / bytes / (size_t) t->ranks) : 100000000;
    const long limit = pattern == MANY_TO_ONE && most > SINK_MESSAGES ? SINK_MESSAGES
                       : most < 1                                     ? 1
                                                                      : most;
    /* fairness shows only over many time slices of ranks that share cores, and of more than fits
     * into socket buffers: few batches, but long ones */
    const int want_batches = pattern == MANY_TO_ONE ? SINK_BATCHES : BATCHES;
    const double batch_us =
        1e6 * (pattern == MANY_TO_ONE && seconds < 0.5 ? 0.5 : seconds) / want_batches;
    double times[BATCHES], unfairness[BATCHES], units = 0.0, unfair = 0.0, took;
    static unsigned seed;
    static double payload; /* since the last line that was printed */
    int count = 1, next = 1;
    if (room > memory_bytes) {
        free(out_memory);
        free(in_memory);
        if (posix_memalign((void **) &out_memory, 4096, room) ||
            posix_memalign((void **) &in_memory, 4096, room))
            abort();
        memory_bytes = room;
    }
    seed++;
    for (size_t i = 0; i < room; i++)
        out_memory[i] = (char) pattern_byte(i, seed);
    memset(in_memory, 0, room);
    t->barrier();
    work(t, pattern, bytes, 1, &unfair);
    units++;
    const bool right = t->max(right_data(t, pattern, bytes, seed) ? 0.0 : 1.0) == 0.0;
    /* connections, windows and buffers grow to their size while the count grows to that of a batch
     */
    for (;;) {
        t->barrier();
        const double start = now_us();
        work(t, pattern, bytes, count, &unfair);
        took = now_us() - start;
        units += count;
        const double want = batch_us * count / (took > 0.01 ? took : 0.01);
        next = want >= (double) limit ? (int) limit : want < 1.0 ? 1 : (int) want;
        if (next > 20 * count && count < 1000000)
            next = 20 * count;
        if (pattern == MANY_TO_ONE &&
            next < SINK_LEAST) /* a handful would tell nothing of fairness */
            next = limit < SINK_LEAST ? (int) limit : SINK_LEAST;
        bool last = next <= 2 * count;
        t->from_root(&next, sizeof next);
        t->from_root(&last, sizeof last);
        count = next;
        if (last)
            break;
    }
    /* ranks that poll on shared cores may take a hundred times as long as the others: fewer batches
     * of them */
    const double begun = now_us();
    int batches = 0;
    for (bool enough = false; !enough;) {
        t->barrier();
        const double start = now_us();
        work(t, pattern, bytes, count, &unfair);
        times[batches] = (now_us() - start) / count / divisor_of(t, pattern, bytes);
        if (pattern == LATE)
            times[batches] -= LATE_US;
        unfairness[batches] = unfair;
        units += count;
        batches++;
        enough = batches == want_batches || (batches >= BATCHES_LEAST &&
                                             now_us() - begun > PATIENCE * batch_us * want_batches);
        t->from_root(&enough, sizeof enough);
    }
    payload += units * messages_of(t, pattern, bytes) * (double) bytes;
    if (t->rank == 0 && shown) {
        printf("{\"pattern\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"iterations\":%d,\"us\":",
               pattern_names[pattern], bytes, t->ranks, count * batches);
        printf("%.4f,\"us_min\":%.4f,\"us_max\":%.4f,\"unfair\":", median(times, batches),
               percentile(times, batches, 0.0), percentile(times, batches, 100.0));
        print_number(stdout, pattern == MANY_TO_ONE ? median(unfairness, batches) : NAN);
        printf(",\"payload\":%.0f,\"verified\":%s}\n", payload, right ? "true" : "false");
        fflush(stdout);
        payload = 0.0;
    }
}

/* --- the program around it */
struct plan {
    enum pattern pattern;
    struct words words;
};

static bool parse_plan(struct plan *plan, int argc, char **argv,
                       bool (*more)(const char *name, const char *value))
{
    const bool good = parse_words(&plan->words, argc, argv, more);
    const int known = place_of(plan->words.pattern, pattern_names, PATTERNS);
    plan->pattern = known < 0 ? PATTERNS : (enum pattern) known;
    return good && known >= 0;
}

/* What keeps a plan from being run by so many ranks, or NULL. */
static const char *obstacle(const struct transport *t, const struct plan *plan)
{
    switch (plan->pattern) {
    case HALO: return t->halo ? NULL : "halo is for MPI";
    case LATE: return !t->late ? "late is for MPI" : t->ranks == 2 ? NULL : "late wants two ranks";
    case THREAD_RATE:
        return !t->threads     ? "thread_rate is for MPI with MPI_THREAD_MULTIPLE"
               : t->ranks == 2 ? NULL
                               : "thread_rate wants two ranks";
    case PAIRS: return t->ranks % 2 == 0 ? NULL : "pairs wants an even number of ranks";
    case RING:
    case MANY_TO_ONE: return t->ranks >= 2 ? NULL : "two ranks at least are needed";
    default: return t->ranks == 2 ? NULL : "this pattern wants two ranks";
    }
}

static bool run_plan(const struct transport *t, struct plan *plan)
{
    bool first = true;
    for (char *size = strtok(plan->words.sizes, ","); size; size = strtok(NULL, ",")) {
        const size_t bytes = parse_size(size);
        if (bytes < 1 || (plan->pattern == HALO && bytes % sizeof(double) != 0)) {
            fprintf(stderr, "no size for this pattern: %s\n", size);
            return false;
        }
        /* the first size of all also pays for clocks and caches that have to warm up */
        if (first)
            one_point(t, plan->pattern, bytes, 0.5 * plan->words.seconds, false);
        first = false;
        one_point(t, plan->pattern, bytes, plan->words.seconds, true);
    }
    free(out_memory);
    free(in_memory);
    return true;
}

#endif
