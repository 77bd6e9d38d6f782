/* The program of the soak (run): soak SECONDS SEED FILE SAMPLE_SECONDS.
 *
 * Rounds of mixed traffic, drawn from the seed, until SECONDS are over by rank 0's clock. Each
 * round has every step of the table below, in another order, and all data is checked; wrong data
 * ends the job with code 4. Some rounds have a timer that interrupts system calls. Every
 * SAMPLE_SECONDS each rank leaves a sample in FILE.samples.RANK (sample.h). At the end: "soak: N
 * rounds, N checks". soak child SEED STEP is what it spawns. */
#include "collectives.h"
#include "common.h"
#include "messages.h"
#include "one_sided.h"
#include "processes.h"
#include "sample.h"
#include "threads.h"

enum { SPAWN_EVERY = 20, CONNECT_EVERY = 10, INTERRUPT_EVERY = 3 };

static Lane world;

static void any_source(const Lane *lane, uint64_t step)
{
    nonblocking(lane, step, 1);
}

static void known_source(const Lane *lane, uint64_t step)
{
    nonblocking(lane, step, 0);
}

/* No MPI call for a while: by all ranks, or by some, for whom the others wait. */
static void computing(const Lane *lane, uint64_t step)
{
    Draw draw = {key_of(step, lane->me, 0)};
    if ((step >> 16 & 1) || below(&draw, 2) == 0)
        compute(0.001 * below(&draw, 50));
    MPI_Barrier(lane->comm);
}

static void all_threads(const Lane *lane, uint64_t step)
{
    int level;
    (void) lane;
    MPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE)
        threads(step);
}

static const struct {
    const char *name;
    void (*step)(const Lane *lane, uint64_t step);
} steps[] = {
    {"blocking", blocking},     {"nonblocking", known_source}, {"any source", any_source},
    {"probe", probed},          {"holes", with_holes},         {"unexpected", unexpected},
    {"persistent", persistent}, {"broadcast", broadcasts},     {"reduce", reductions},
    {"exchange", exchanges},    {"barrier", barriers},         {"communicator", communicators},
    {"one-sided", one_sided},   {"one-sided", one_sided},      {"threads", all_threads},
    {"compute", computing},
};
enum { STEPS = sizeof steps / sizeof *steps };

static void count_interruption(int number)
{
    (void) number;
    interruptions++;
}

static void interrupt_every(long microseconds)
{
    const struct itimerval tick = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &tick, NULL);
}

static void one_round(char *program)
{
    Draw plan = {key_of(seed, (int) round_number, 0)};
    Draw mine = {key_of(next(&plan), my_rank, 0)};
    int order[STEPS];
    for (int i = 0; i < STEPS; i++) {
        const int other = below(&plan, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    if (round_number % INTERRUPT_EVERY == 0 && below(&mine, 2) == 0)
        interrupt_every(500 + below(&mine, 5000));
    for (int i = 0; i < STEPS; i++) {
        at(steps[order[i]].name);
        steps[order[i]].step(&world, step_drawn(&plan, (int) round_number * STEPS + i));
    }
    interrupt_every(0);
    if (round_number % CONNECT_EVERY == CONNECT_EVERY / 2) {
        at("connect");
        connect_halves(step_drawn(&plan, 0));
    }
    if (round_number % SPAWN_EVERY == SPAWN_EVERY - 1) {
        at("spawn");
        spawn(program, step_drawn(&plan, 0));
    }
}

/* Rank 0's clock decides for all: whether to go on, whether to sample. */
static void soak(double seconds, double sample_seconds, char *program)
{
    int orders[2] = {1, 1};
    double next_sample = 0, since = now_s(), begin = since;
    MPI_Bcast(&begin, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    since = begin; /* of the same machine */
    for (round_number = 0; orders[0]; round_number++) {
        one_round(program);
        at("end of round");
        const double now = now_s() - since;
        orders[0] = now < seconds;
        orders[1] = now >= next_sample || !orders[0];
        MPI_Bcast(orders, 2, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        if (orders[1]) {
            take_sample(now_s() - since);
            next_sample = now + sample_seconds;
        }
    }
}

int main(int argc, char **argv)
{
    const int child = argc == 4 && strcmp(argv[1], "child") == 0;
    struct sigaction action = {.sa_handler = count_interruption}; /* no SA_RESTART */
    int level;
    if (argc != 5 && !child) {
        fprintf(stderr, "soak: want seconds, a seed, a file and the seconds between samples\n");
        return 2;
    }
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    seed = strtoull(argv[2], NULL, 0);
    if (child)
        return be_a_child(strtoull(argv[3], NULL, 0));
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    /* touched once, so that all growth from here on is the library's */
    const size_t bytes = (size_t) ranks * MOST;
    unsigned char *out = memory_of(bytes), *in = memory_of(bytes);
    memset(out, 1, bytes);
    memset(in, 1, bytes);
    world = lane_of(MPI_COMM_WORLD, MOST, out, in);
    prepare_samples(argv[3]);
    prepare_threads(&world);
    if (my_rank == 0 && level < MPI_THREAD_MULTIPLE)
        printf("soak: left out: threads: MPI_THREAD_MULTIPLE is not provided\n");
    soak(atof(argv[1]), atof(argv[4]), argv[0]);
    at("finalize");
    free_threads();
    end_samples();
    unsigned long long done = atomic_load(&checks), sum = 0;
    MPI_Reduce(&done, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (my_rank == 0)
        printf("soak: %ld rounds, %llu checks, 0 failed\n", round_number, sum);
    free(out);
    free(in);
    MPI_Finalize();
    MPI_T_finalize();
    return 0;
}
