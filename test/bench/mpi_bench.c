/* The patterns of bench_method.h under any MPI, from MPI 1.2 on. Run by scripts/compare; alone:
 * mpiexec -n 2 mpi_bench --pattern pingpong --sizes 8,64K. */
#define _GNU_SOURCE
#include <pthread.h>
#include "bench_method.h"
#include "bench_mpi.h"

enum { TAG = 1 };
static struct transport transport;

static void send_to(int to, const void *buffer, size_t bytes)
{
    MPI_Send((void *) buffer, (int) bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}
static void receive_from(int from, void *buffer, size_t bytes)
{
    MPI_Status status;
    MPI_Recv(buffer, (int) bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &status);
}

static MPI_Request requests[2 * WINDOW];
static MPI_Status statuses[2 * WINDOW];

#if MPI_VERSION >= 3
static struct part {
    MPI_Comm comm;
    int other, count, times;
    char *buffer;
    size_t bytes;
} parts[THREADS];

static void *run_part(void *arg)
{
    const struct part *const part = arg;
    MPI_Request under_way[WINDOW];
    MPI_Status results[WINDOW];
    for (int k = 0; k < part->times; k++) {
        for (int i = 0; i < part->count; i++) {
            char *const at = part->buffer + (size_t) i * part->bytes;
            if (transport.rank == 0)
                MPI_Isend(at, (int) part->bytes, MPI_BYTE, part->other, TAG, part->comm,
                          &under_way[i]);
            else
                MPI_Irecv(at, (int) part->bytes, MPI_BYTE, part->other, TAG, part->comm,
                          &under_way[i]);
        }
        MPI_Waitall(part->count, under_way, results);
    }
    return NULL;
}
static void threads(int other, char *buffer, size_t bytes, int count, int times)
{
    static bool ready;
    pthread_t others[THREADS];
    for (int i = 0; i < THREADS; i++) {
        if (!ready)
            MPI_Comm_dup(MPI_COMM_WORLD, &parts[i].comm);
        parts[i] = (struct part){
            parts[i].comm, other, count, times, buffer + (size_t) i * bytes * (size_t) count,
            bytes};
    }
    ready = true;
    for (int i = 1; i < THREADS; i++)
        if (pthread_create(&others[i], NULL, run_part, &parts[i]))
            abort();
    run_part(&parts[0]);
    for (int i = 1; i < THREADS; i++)
        pthread_join(others[i], NULL);
}
/* Only what needs several threads asks for them: they cost every call a lock. */
static void start(int *argc, char ***argv)
{
    int level = MPI_THREAD_SINGLE;
    for (int i = 1; i < *argc; i++)
        if (strcmp((*argv)[i], "thread_rate") == 0)
            level = MPI_THREAD_MULTIPLE;
    if (level == MPI_THREAD_SINGLE) {
        MPI_Init(argc, argv);
        return;
    }
    MPI_Init_thread(argc, argv, level, &level);
    if (level == MPI_THREAD_MULTIPLE)
        transport.threads = threads;
}
#else
static void start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
}
#endif

static void burst_out(int to, const char *buffer, size_t bytes, int count)
{
    /* many_to_one has one message's memory only */
    const size_t step = (size_t) count * bytes <= memory_bytes ? bytes : 0;
    for (int i = 0; i < count; i++)
        MPI_Isend((char *) buffer + (size_t) i * step, (int) bytes, MPI_BYTE, to, TAG,
                  MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(count, requests, statuses);
}
static void burst_in(int from, char *buffer, size_t bytes, int count)
{
    for (int i = 0; i < count; i++)
        MPI_Irecv(buffer + (size_t) i * bytes, (int) bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD,
                  &requests[i]);
    MPI_Waitall(count, requests, statuses);
}
static void burst_both(int other, const char *out, char *in, size_t bytes, int count)
{
    for (int i = 0; i < count; i++)
        MPI_Irecv(in + (size_t) i * bytes, (int) bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD,
                  &requests[i]);
    for (int i = 0; i < count; i++)
        MPI_Isend((char *) out + (size_t) i * bytes, (int) bytes, MPI_BYTE, other, TAG,
                  MPI_COMM_WORLD, &requests[count + i]);
    MPI_Waitall(2 * count, requests, statuses);
}

static void sink(char *buffer, size_t bytes, long each, long *counts)
{
    const long all = each * (transport.ranks - 1);
    long *const so_far = calloc((size_t) transport.ranks, sizeof *so_far);
    bool first = true;
    if (!so_far)
        abort();
    for (long i = 0; i < all; i++) {
        MPI_Status status;
        MPI_Recv(buffer, (int) bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
        if (++so_far[status.MPI_SOURCE] == each && first) {
            memcpy(counts, so_far, (size_t) transport.ranks * sizeof *counts);
            first = false;
        }
    }
    free(so_far);
}

static void halo(const char *out, char *in, size_t bytes)
{
    static MPI_Comm torus;
    static MPI_Datatype face;
    static size_t face_bytes;
    static int neighbour[FACES]; /* north, south, west, east */
    if (face_bytes == 0) {
        int sides[2] = {0, 0}, periodic[2] = {1, 1};
        MPI_Dims_create(transport.ranks, 2, sides);
        MPI_Cart_create(MPI_COMM_WORLD, 2, sides, periodic, 0, &torus);
        MPI_Cart_shift(torus, 0, 1, &neighbour[0], &neighbour[1]);
        MPI_Cart_shift(torus, 1, 1, &neighbour[2], &neighbour[3]);
    }
    if (face_bytes != bytes) {
        if (face_bytes != 0)
            MPI_Type_free(&face);
        MPI_Type_vector((int) (bytes / sizeof(double)), 1, FACE_STRIDE, MPI_DOUBLE, &face);
        MPI_Type_commit(&face);
        face_bytes = bytes;
    }
    const size_t place[FACES] = {0, bytes, 2 * bytes, (2 + FACE_STRIDE) * bytes};
    for (int i = 0; i < FACES; i++)
        MPI_Irecv(in + place[i], i < 2 ? (int) bytes : 1, i < 2 ? MPI_BYTE : face, neighbour[i], i,
                  torus, &requests[i]);
    /* what I send to the north arrives there from the south; all faces of a kind that travel
     * together hold the same bytes as their place at the receiver */
    for (int i = 0; i < FACES; i++)
        MPI_Isend((char *) out + place[i ^ 1], i < 2 ? (int) bytes : 1, i < 2 ? MPI_BYTE : face,
                  neighbour[i], i ^ 1, torus, &requests[FACES + i]);
    MPI_Waitall(2 * FACES, requests, statuses);
}

/* An amount of computation, not a time: what interrupts it makes it longer. */
static void compute(long steps)
{
    static volatile double kept = 1.0;
    double x = kept;
    for (long i = 0; i < steps; i++)
        x = x * 0.999 + 1.0;
    kept = x;
}
/* How much takes LATE_US when nothing interrupts it. */
static long steps_of_late(void)
{
    enum { STEPS = 100000 };
    double least = 0.0;
    for (int i = 0; i < 20; i++) {
        const double begun = now_us();
        compute(STEPS);
        const double took = now_us() - begun;
        least = i == 0 || took < least ? took : least;
    }
    return (long) (LATE_US * STEPS / least);
}
static void late(int other, const char *out, char *in, size_t bytes)
{
    static long steps;
    if (steps == 0)
        steps = steps_of_late();
    MPI_Isend((char *) out, (int) bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, requests);
    compute(steps);
    receive_from(other, in, bytes);
    MPI_Wait(requests, statuses);
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}
static void from_root(void *value, size_t bytes)
{
    MPI_Bcast(value, (int) bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static double max_of_all(double mine)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv)
{
    struct plan plan;
    start(&argc, &argv);
    transport = (struct transport){.threads = transport.threads,
                                   .send = send_to,
                                   .receive = receive_from,
                                   .burst_out = burst_out,
                                   .burst_in = burst_in,
                                   .burst_both = burst_both,
                                   .sink = sink,
                                   .halo = halo,
                                   .late = late,
                                   .barrier = barrier,
                                   .from_root = from_root,
                                   .max = max_of_all};
    MPI_Comm_rank(MPI_COMM_WORLD, &transport.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &transport.ranks);
    const bool good = parse_plan(&plan, argc, argv, NULL);
    const char *const why =
        good ? obstacle(&transport, &plan)
             : "usage: mpi_bench --pattern NAME --sizes 8,64K [--seconds S] [--limit SECONDS]";
    if (why) {
        if (transport.rank == 0)
            fprintf(stderr, "mpi_bench: %s\n", why);
        MPI_Finalize();
        return 2;
    }
    end_after(plan.words.limit);
    if (transport.rank == 0)
        print_library();
    const bool ran = run_plan(&transport, &plan);
    MPI_Finalize();
    return ran ? 0 : 1;
}
