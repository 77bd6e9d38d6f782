/* Shared by the parts of soak.c: what is drawn from the seed, the content of messages, checks that
 * end the job, and lanes: a communicator with buffers of its own. Safe with threads. */
#ifndef SOAK_COMMON_H_INCLUDED
#define SOAK_COMMON_H_INCLUDED

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/time.h>
#include "../mpi/mpi_test.h"

enum { MOST = 4 << 20 }; /* bytes of the longest message */

static unsigned long long seed;
static long round_number;
static const char *step_name = "start";
static long spawned, connected;
static atomic_ullong checks, messages_checked, bytes_checked;

/* Wrong data ends the job: what comes after it would be judged by it. */
__attribute__((format(printf, 4, 5), noreturn)) static void fail(const char *file, int line,
                                                                 const char *condition,
                                                                 const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "soak: wrong: rank %d, round %ld, %s, seed %llu: %s (%s:%d: %s)\n", my_rank,
            round_number, step_name, seed, text, file, line, condition);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 4);
    _exit(4);
}
#define REQUIRE(condition, ...)                                \
    do {                                                       \
        atomic_fetch_add(&checks, 1);                          \
        if (!(condition))                                      \
            fail(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    } while (0)

static void *memory_of(size_t bytes)
{
    void *memory = malloc(bytes + 1);
    REQUIRE(memory != NULL, "no memory for %zu bytes", bytes);
    return memory;
}

/* ---- what is drawn ---- */

typedef struct {
    uint64_t state;
} Draw;

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t next(Draw *draw)
{
    draw->state += 0x9e3779b97f4a7c15u;
    return mixed(draw->state);
}

static int below(Draw *draw, int limit)
{
    return (int) (next(draw) % (uint64_t) limit);
}

/* A step has a number, its low 16 bits (tag_of in messages.h), and random bits above. */
static uint64_t step_drawn(Draw *draw, int number)
{
    return (next(draw) & ~0xffffull) | (number & 0xffff);
}

/* One of the things that belong to a step: both sides of a message come to the same. */
static uint64_t key_of(uint64_t step, int a, int b)
{
    return mixed(step + mixed(((uint64_t) (unsigned) a << 32) + (unsigned) b + 1));
}

/* From 0 to `most`, each power of two as likely as the next; often one of them, or next to it, as
 * the protocols change there. */
static size_t size_drawn(uint64_t key, size_t most)
{
    Draw draw = {key};
    int bits = 0;
    while (((size_t) 1 << bits) < most)
        bits++;
    const int chosen = below(&draw, bits + 2) - 1;
    if (chosen < 0)
        return 0;
    size_t size = (size_t) 1 << chosen;
    switch (below(&draw, 6)) {
    case 0: break;
    case 1: size++; break;
    case 2: size--; break;
    default: size += (size_t) (next(&draw) % size);
    }
    return size < most ? size : most;
}

/* ---- content ---- */

static inline uint64_t word_of(uint64_t key, size_t place)
{
    uint64_t x = key + place * 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

static void fill(void *buffer, size_t bytes, uint64_t key)
{
    unsigned char *p = buffer;
    for (size_t i = 0; i < bytes / 8; i++) {
        const uint64_t word = word_of(key, i);
        memcpy(p + 8 * i, &word, 8);
    }
    const uint64_t last = word_of(key, bytes / 8);
    memcpy(p + bytes / 8 * 8, &last, bytes % 8);
}

/* The place of the first wrong byte (to eight), or -1. */
static long wrong_byte(const void *buffer, size_t bytes, uint64_t key)
{
    const unsigned char *p = buffer;
    for (size_t i = 0; i < bytes / 8; i++) {
        const uint64_t word = word_of(key, i);
        if (memcmp(p + 8 * i, &word, 8) != 0)
            return (long) (8 * i);
    }
    const uint64_t last = word_of(key, bytes / 8);
    return memcmp(p + bytes / 8 * 8, &last, bytes % 8) == 0 ? -1 : (long) (bytes / 8 * 8);
}

static void expect(const void *buffer, size_t bytes, uint64_t key, const char *what, int from)
{
    const long wrong = wrong_byte(buffer, bytes, key);
    REQUIRE(wrong < 0, "%s: %zu bytes from %d: byte %ld is wrong", what, bytes, from, wrong);
    atomic_fetch_add(&messages_checked, 1);
    atomic_fetch_add(&bytes_checked, bytes);
}

/* ---- lanes ---- */

/* A communicator, and for each of its processes `most` bytes to send from and to receive to. */
typedef struct {
    MPI_Comm comm;
    int me, count;
    size_t most;
    unsigned char *out, *in;
} Lane;

static Lane lane_of(MPI_Comm comm, size_t most, unsigned char *out, unsigned char *in)
{
    Lane lane = {comm, 0, 0, most, out, in};
    MPI_Comm_rank(comm, &lane.me);
    MPI_Comm_size(comm, &lane.count);
    return lane;
}

static size_t size_between(const Lane *lane, uint64_t step, int from, int to)
{
    return size_drawn(key_of(step, from, to), lane->most);
}

static unsigned char *out_for(const Lane *lane, int to)
{
    return lane->out + (size_t) to * lane->most;
}

static unsigned char *in_from(const Lane *lane, int from)
{
    return lane->in + (size_t) from * lane->most;
}

/* Fills what goes to `to`; returns its size. */
static int filled(const Lane *lane, uint64_t step, int to)
{
    const size_t bytes = size_between(lane, step, lane->me, to);
    fill(out_for(lane, to), bytes, key_of(step, lane->me, to));
    return (int) bytes;
}

static void expect_from(const Lane *lane, uint64_t step, int from, const MPI_Status *status,
                        const void *buffer, const char *what)
{
    const size_t bytes = size_between(lane, step, from, lane->me);
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    REQUIRE(count == (int) bytes, "%s: %d bytes from %d, not %zu", what, count, from, bytes);
    expect(buffer, bytes, key_of(step, from, lane->me), what, from);
}

#endif
