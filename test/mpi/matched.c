/* Matched probes.
 *   matched threads THREADS MESSAGES   several threads per rank exchange with the same thread of
 *                                      every other rank: by MPI_Sendrecv, then by MPI_Isend,
 *                                      MPI_Improbe in a loop, MPI_Mrecv and MPI_Wait. Rank 0
 *                                      prints: matched by=sendrecv seconds=S, matched by=improbe
 *                                      seconds=S
 *   matched storm MESSAGES             every rank sends to all others, short to 1.5 MB, some
 *                                      synchronous, 24 at a time, and takes what comes by
 *                                      MPI_Improbe (any source, any tag or one) and MPI_Mrecv */
#include <pthread.h>

#include "mpi_test.h"

#define THREADS_MAX 64
#define TAGS 4
#define WINDOW 24
#define STORM_BYTES_MAX 1500000

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t) (*state >> 33);
}

/* ---- threads ---- */

static const size_t lengths[] = {4, 64, 1000, 9000, 40000, 150000, 600000};

#define LENGTHS (sizeof lengths / sizeof lengths[0])
#define LENGTH_MAX 600000

static int messages;
static int by_improbe;

struct worker {
    pthread_t thread;
    int tag;
    int wrong;
};

static void *exchange(void *arg)
{
    struct worker *w = arg;
    unsigned char *out = malloc(LENGTH_MAX), *in = malloc(LENGTH_MAX);

    for (int i = 0; i < messages; i++) {
        const int step = 1 + i % (ranks - 1);
        const int to = (my_rank + step) % ranks, from = (my_rank + ranks - step) % ranks;
        const size_t bytes = lengths[((size_t) w->tag * 3 + (size_t) i * 5) % LENGTHS];
        const unsigned salt = (unsigned) (w->tag * 37 + i);
        MPI_Status status;
        int count;
        pattern_fill(out, bytes, salt + (unsigned) my_rank);
        if (by_improbe) {
            MPI_Request send;
            MPI_Message message;
            int flag = 0;
            MPI_Isend(out, (int) bytes, MPI_BYTE, to, w->tag, MPI_COMM_WORLD, &send);
            while (!flag)
                MPI_Improbe(from, w->tag, MPI_COMM_WORLD, &flag, &message, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            MPI_Mrecv(in, count, MPI_BYTE, &message, &status);
            MPI_Wait(&send, MPI_STATUS_IGNORE);
        } else {
            MPI_Sendrecv(out, (int) bytes, MPI_BYTE, to, w->tag, in, LENGTH_MAX, MPI_BYTE, from,
                         w->tag, MPI_COMM_WORLD, &status);
        }
        MPI_Get_count(&status, MPI_BYTE, &count);
        if ((size_t) count != bytes || pattern_wrong(in, bytes, salt + (unsigned) from) >= 0)
            w->wrong++;
    }
    free(out);
    free(in);
    return NULL;
}

static void run_threads(int threads)
{
    struct worker workers[THREADS_MAX];

    for (by_improbe = 0; by_improbe < 2; by_improbe++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double began = now_s();
        for (int t = 0; t < threads; t++) {
            workers[t].tag = t;
            workers[t].wrong = 0;
            pthread_create(&workers[t].thread, NULL, exchange, &workers[t]);
        }
        for (int t = 0; t < threads; t++) {
            pthread_join(workers[t].thread, NULL);
            CHECK(workers[t].wrong == 0, "thread %d: %d messages of %d", t, workers[t].wrong,
                  messages);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (my_rank == 0)
            printf("matched by=%s seconds=%.3f\n", by_improbe ? "improbe" : "sendrecv",
                   now_s() - began);
    }
}

/* ---- storm ---- */

/* At the front of each message; after it comes a pattern. */
struct head {
    int number; /* of those with this tag to this rank */
    int bytes;
};

static size_t random_length(uint64_t *state)
{
    static const struct {
        uint32_t percent, below;
    } mix[] = {{40, 56}, {70, 2000}, {85, 40000}, {96, 300000}, {100, STORM_BYTES_MAX}};
    const uint32_t kind = next_random(state) % 100;
    int i = 0;

    while (kind >= mix[i].percent)
        i++;
    return sizeof(struct head) + next_random(state) % mix[i].below;
}

static unsigned salt_of(int number, int tag, int from)
{
    return (unsigned) (number * 31 + tag * 7 + from);
}

static void run_storm(void)
{
    const long total = (long) messages * (ranks - 1);
    const size_t room = sizeof(struct head) + STORM_BYTES_MAX;
    unsigned char *out[WINDOW], *in = malloc(room);
    MPI_Request sends[WINDOW];
    int(*sent_to)[TAGS] = calloc((size_t) ranks, sizeof *sent_to);
    int(*got_from)[TAGS] = calloc((size_t) ranks, sizeof *got_from);
    uint64_t state = 4711u + (unsigned) my_rank;
    long sent = 0, got = 0;
    unsigned probes = 0;

    for (int i = 0; i < WINDOW; i++) {
        out[i] = malloc(room);
        sends[i] = MPI_REQUEST_NULL;
    }
    while (sent < total || got < total) {
        if (sent < total) {
            const int slot = (int) (sent % WINDOW);
            int is_free;
            MPI_Test(&sends[slot], &is_free, MPI_STATUS_IGNORE);
            if (is_free) {
                const int to = (my_rank + 1 + (int) (sent % (ranks - 1))) % ranks;
                const int tag = (int) (next_random(&state) % TAGS);
                const size_t bytes = random_length(&state);
                const struct head head = {sent_to[to][tag]++, (int) bytes};
                memcpy(out[slot], &head, sizeof head);
                pattern_fill(out[slot] + sizeof head, bytes - sizeof head,
                             salt_of(head.number, tag, my_rank));
                (sent % 11 == 0 ? MPI_Issend : MPI_Isend)(out[slot], (int) bytes, MPI_BYTE, to, tag,
                                                          MPI_COMM_WORLD, &sends[slot]);
                sent++;
            }
        }
        if (got < total) {
            MPI_Message message;
            MPI_Status status;
            int flag, count;
            const int wanted = ++probes % 3 != 0 ? MPI_ANY_TAG : (int) (probes % TAGS);
            MPI_Improbe(MPI_ANY_SOURCE, wanted, MPI_COMM_WORLD, &flag, &message, &status);
            if (!flag)
                continue;
            const int from = status.MPI_SOURCE, tag = status.MPI_TAG;
            struct head head;
            MPI_Get_count(&status, MPI_BYTE, &count);
            MPI_Mrecv(in, count, MPI_BYTE, &message, &status);
            memcpy(&head, in, sizeof head);
            CHECK(head.bytes == count, "%d bytes, probed as %d", head.bytes, count);
            CHECK(head.number == got_from[from][tag], "number %d, expected %d", head.number,
                  got_from[from][tag]);
            got_from[from][tag] = head.number + 1;
            CHECK(pattern_wrong(in + sizeof head, (size_t) count - sizeof head,
                                salt_of(head.number, tag, from)) < 0,
                  "%d bytes from %d", count, from);
            got++;
        }
    }
    MPI_Waitall(WINDOW, sends, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < WINDOW; i++)
        free(out[i]);
    free(in);
    free(sent_to);
    free(got_from);
}

int main(int argc, char **argv)
{
    int provided;

    if (argc > 2 && strcmp(argv[1], "storm") == 0) {
        start(&argc, &argv);
        messages = atoi(argv[2]);
        run_storm();
        return finish("matched");
    }
    if (argc < 4 || strcmp(argv[1], "threads") != 0 || atoi(argv[2]) > THREADS_MAX) {
        fprintf(stderr, "usage: matched threads THREADS MESSAGES | storm MESSAGES\n");
        return 2;
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(provided == MPI_THREAD_MULTIPLE, "provided %d", provided);
    messages = atoi(argv[3]);
    run_threads(atoi(argv[2]));
    return finish("matched");
}
