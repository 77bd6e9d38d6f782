/* What the application benchmarks of this directory share: the command line, the solves that are
 * timed, and the line of JSON that scripts/compare reads (the one of mpi_calls).
 *
 * A solve is a fixed amount of work for its size, so that times of installations compare. Its
 * result is verified after the clock has stopped, by what mathematics says of it. */
#ifndef APPS_H_INCLUDED
#define APPS_H_INCLUDED

#include "../bench_mpi.h"
#include "../bench_program.h"

enum { LEAST_SOLVES = 3, MOST_SOLVES = 11 };

static int my_rank, ranks;
static bool overlap; /* --overlap yes: compute while messages travel */

/* Every rank calls each of these, so all of them may communicate. */
struct app {
    const char *name;
    const char *size_means;
    const char *(*refusal)(size_t size); /* NULL: the size is good for so many ranks */
    void (*prepare)(int size);           /* allocates */
    void (*reset)(void);                 /* the input anew; no result of an earlier solve remains */
    void (*solve)(void);                 /* the part that is timed */
    bool (*verify)(void);                /* what this rank says; one that objects is enough */
    double (*payload)(void); /* of one solve, after it: bytes from rank to rank, at least */
    void (*release)(void);
};

/* --- memory and shares */
static inline void *allocate(size_t count, size_t size)
{
    void *const memory = calloc(count > 0 ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}
/* Where the share of `part` starts when `total` things are shared by `parts`; no two shares differ
 * by more than one thing. */
static inline int share_start(int total, int parts, int part)
{
    return (int) ((long long) total * part / parts);
}
/* Every bit of the result depends on every bit of `value` (the finalizer of SplitMix64). */
static inline uint64_t scramble(uint64_t value)
{
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/* --- the heat equation, for the stencils */

/* A sine that is 0 at the walls -1 and `edge`: an eigenvector of the discrete Laplacian. */
static inline double sine_mode(int waves, int place, int edge)
{
    return sin(M_PI * waves * (place + 1) / (edge + 1));
}
/* 1 - cos(pi waves / (edge + 1)), without cancellation. The mean of a point's two neighbours is the
 * cosine times the point, for such a sine. */
static inline double sine_loss(int waves, int edge)
{
    const double half = sin(0.5 * M_PI * waves / (edge + 1));
    return 2.0 * half * half;
}

/* --- messages */
#if defined(__GNUC__) && !defined(__clang__)
/* MPICH's MPI_STATUSES_IGNORE is the address 1: gcc 12 sees an array without room. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
static inline void wait_for_all(int count, MPI_Request *requests)
{
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/* --- a program */
static inline bool parse_overlap(const char *name, const char *value)
{
    overlap = strcmp(value, "yes") == 0;
    return strcmp(name, "--overlap") == 0 && (overlap || strcmp(value, "no") == 0);
}

/* Microseconds of the slowest rank. Adds to `verified` what the ranks say of the result. */
static inline double time_solve(const struct app *app, bool *verified)
{
    int right, all_right;
    double mine, slowest;
    app->reset();
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_us();
    app->solve();
    mine = now_us() - start;
    right = app->verify();
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    *verified = *verified && all_right;
    return slowest;
}

static inline void one_size(const struct app *app, int size, double seconds)
{
    double times[MOST_SOLVES];
    int solves = 0, more = 1;
    bool verified = true;
    app->prepare(size);
    time_solve(app, &verified); /* connections and caches get warm */
    const double payload = app->payload(), begun = now_us();
    while (more) {
        times[solves++] = time_solve(app, &verified);
        const double spent = now_us() - begun, with_another = spent + spent / solves;
        more = solves < LEAST_SOLVES || (solves < MOST_SOLVES && with_another < 1e6 * seconds);
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    app->release();
    if (my_rank == 0) {
        printf(
            "{\"pattern\":\"%s\",\"bytes\":%d,\"ranks\":%d,\"iterations\":%d,\"us\":%.4f,"
            "\"us_min\":%.4f,\"us_max\":%.4f,\"unfair\":null,\"payload\":%.0f,\"verified\":%s}\n",
            app->name, size, ranks, solves, median(times, solves), percentile(times, solves, 0.0),
            percentile(times, solves, 100.0), (solves + 1) * payload, verified ? "true" : "false");
        fflush(stdout);
    }
}

/* Why the command line cannot be followed; NULL: it can. */
static inline const char *reason_against(const struct app *app, const struct words *words)
{
    const char *reason = strcmp(words->pattern, app->name) == 0 ? NULL : "another --pattern";
    char *const sizes = strdup(words->sizes);
    if (!sizes)
        abort();
    for (char *text = strtok(sizes, ","); text && !reason; text = strtok(NULL, ",")) {
        const size_t size = parse_size(text);
        reason = size < 1 || size > 1 << 27 ? "not a size" : app->refusal(size);
    }
    free(sizes);
    return reason;
}

static inline int run_app(const struct app *app, int argc, char **argv)
{
    struct words words;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *const reason = parse_words(&words, argc, argv, parse_overlap)
                                   ? reason_against(app, &words)
                                   : "not understood";
    if (reason) {
        if (my_rank == 0)
            fprintf(stderr,
                    "%s: %s. Usage: %s --pattern %s --sizes N[,N] [--seconds S] [--limit SECONDS] "
                    "[--overlap yes|no], where N is %s\n",
                    app->name, reason, app->name, app->name, app->size_means);
        MPI_Finalize();
        return 2;
    }
    end_after(words.limit);
    if (my_rank == 0)
        print_library();
    for (char *size = strtok(words.sizes, ","); size; size = strtok(NULL, ","))
        one_size(app, (int) parse_size(size), words.seconds);
    MPI_Finalize();
    return 0;
}

#endif
