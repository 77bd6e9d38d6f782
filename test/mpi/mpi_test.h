/* Shared by the MPI test programs: patterns in buffers, checks that name their line, a clock, work
 * without MPI calls. A program prints what it found on stdout, and ends with a non-zero code when a
 * check failed. */
#ifndef MPI_TEST_H_INCLUDED
#define MPI_TEST_H_INCLUDED

#include <errno.h>
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int checks_failed, checks_done;
static int my_rank, ranks;

#define CHECK(condition, ...)                                                                     \
    do {                                                                                          \
        checks_done++;                                                                            \
        if (!(condition)) {                                                                       \
            if (++checks_failed <= 20) {                                                          \
                fprintf(stderr, "%s:%d: rank %d: %s: ", __FILE__, __LINE__, my_rank, #condition); \
                fprintf(stderr, __VA_ARGS__);                                                     \
                fputc('\n', stderr);                                                              \
            }                                                                                     \
        }                                                                                         \
    } while (0)

/* Every byte depends on its place, on the sender and on the message, so that a swapped, shifted or
 * stale message shows. */
static inline unsigned char pattern_byte(size_t place, unsigned seed)
{
    return (unsigned char) ((place * 131u + (place >> 8) * 7u + seed * 29u + 17u) & 0xff);
}

static inline void pattern_fill(void *buffer, size_t bytes, unsigned seed)
{
    unsigned char *p = buffer;
    for (size_t i = 0; i < bytes; i++)
        p[i] = pattern_byte(i, seed);
}

/* Returns the place of the first wrong byte, or -1. */
static inline long pattern_wrong(const void *buffer, size_t bytes, unsigned seed)
{
    const unsigned char *p = buffer;
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != pattern_byte(i, seed))
            return (long) i;
    return -1;
}

static inline double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

/* No MPI call, and no core taken from the other ranks. A signal does not end it. */
static inline void rest(double seconds)
{
    struct timespec left = {(time_t) seconds, (long) ((seconds - (double) (time_t) seconds) * 1e9)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

/* Computes: no MPI call, no system call (the clock is read in user space). */
static inline double compute(double seconds)
{
    const double end = now_s() + seconds;
    double x = 1.0;
    while (now_s() < end)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001 + 1e-9;
    return x;
}

static inline void start(int *argc, char ***argv)
{
    /* MPI_Init leaves stdout without a buffer: puts() then writes a line and its end by two calls,
     * and another rank's output may come between them. */
    static char output[BUFSIZ];
    MPI_Init(argc, argv);
    setvbuf(stdout, output, _IOLBF, sizeof output);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* Prints what MPI says of an error, as "error: CALL: TEXT". A text that does not fit ends the
 * program. */
static inline void tell_error(int code, const char *call)
{
    struct {
        char text[MPI_MAX_ERROR_STRING], beyond[64], more[4096];
    } said;
    int length, i;
    memset(&said, 0, sizeof said);
    memset(said.beyond, 'x', sizeof said.beyond);
    MPI_Error_string(code, said.text, &length);
    for (i = 0; i < (int) sizeof said.more; i++)
        if (said.more[i] != 0 || said.beyond[i % (int) sizeof said.beyond] != 'x') {
            printf("MPI_Error_string has written beyond MPI_MAX_ERROR_STRING\n");
            fflush(stdout);
            abort();
        }
    printf("error: %s: %s\n", call, said.text);
    fflush(stdout);
}

/* Of a job that has lost a rank: prints how a call has ended, and leaves so that nobody hears of
 * this rank's end. */
static inline int tell_and_leave(const char *name, int code)
{
    printf("%s: rank %d: %s\n", name, my_rank, code == MPI_SUCCESS ? "success" : "an error");
    fflush(stdout);
    rest(3);
    _exit(0);
}

/* The world, its ranks in reverse order, the even and the odd ones, one rank. */
static inline void on_communicators(void (*check)(MPI_Comm comm))
{
    const int colors[] = {0, my_rank % 2}, keys[] = {-my_rank, my_rank};
    check(MPI_COMM_WORLD);
    check(MPI_COMM_SELF);
    for (int i = 0; i < 2; i++) {
        MPI_Comm part;
        MPI_Comm_split(MPI_COMM_WORLD, colors[i], keys[i], &part);
        check(part);
        MPI_Comm_free(&part);
    }
}

/* Sums the failures of all ranks, prints one line, ends MPI; the program's exit code. */
static inline int finish(const char *name)
{
    int mine[2] = {checks_done, checks_failed}, all[2] = {0, 1};
    const int summed = MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS;
    if (my_rank == 0 && summed)
        printf("%s: %d checks, %d failed\n", name, all[0], all[1]);
    else if (my_rank == 0) /* with MPI_ERRORS_RETURN, and a rank that is lost */
        printf("%s: no sum over all ranks\n", name);
    MPI_Finalize();
    return !summed || all[1] != 0;
}

#endif
