/* Shared memory and the device side by side: receives, probes and cancels that do not know by which
 * of the two their message will come. Run with several ranks on each of several hosts; with one
 * rank per host, or all on one, the same has to hold. */
#include "mpi_test.h"

#include <stdbool.h>

#define WINDOW 24
#define PER_SENDER 60
#define BYTES_MAX (500 * 1000)

static const int sizes[] = {0, 8, 1000, 5000, 70000, 300000, 3, 64, 4096, BYTES_MAX};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static int neighbour = -1, stranger = -1; /* a rank on this host, and one on another */
static unsigned char *buffers[WINDOW], *outgoing;

static int size_of(int source, int number)
{
    return sizes[(number * 7 + source) % SIZES];
}

static unsigned seed_of(int source, int number)
{
    return (unsigned) (source * 1000 + number);
}

static void find_ranks(bool expect_mixed)
{
    MPI_Comm node;
    int here, *host_of = malloc(sizeof(int) * (size_t) ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int leader = my_rank;
    MPI_Bcast(&leader, 1, MPI_INT, 0, node);
    MPI_Comm_size(node, &here);
    MPI_Comm_free(&node);
    MPI_Allgather(&leader, 1, MPI_INT, host_of, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        if (i == my_rank)
            continue;
        if (host_of[i] == leader && neighbour < 0)
            neighbour = i;
        if (host_of[i] != leader && stranger < 0)
            stranger = i;
    }
    free(host_of);
    if (expect_mixed)
        CHECK(neighbour >= 0 && stranger >= 0, "%d ranks here of %d", here, ranks);
}

/* ---- storms: everybody sends to everybody, everybody receives from anybody ---- */

struct sending {
    MPI_Request *requests;
    unsigned char **data;
    int count;
};

static void start_sending(struct sending *s, bool synchronous)
{
    s->count = 0;
    s->requests = malloc(sizeof(MPI_Request) * (size_t) (ranks * PER_SENDER));
    s->data = malloc(sizeof(unsigned char *) * (size_t) PER_SENDER);
    for (int number = 0; number < PER_SENDER; number++) {
        const int bytes = size_of(my_rank, number);
        s->data[number] = malloc((size_t) bytes + 1);
        pattern_fill(s->data[number], (size_t) bytes, seed_of(my_rank, number));
        for (int to = 0; to < ranks; to++)
            if (to != my_rank)
                (synchronous ? MPI_Issend : MPI_Isend)(s->data[number], bytes, MPI_BYTE, to, number,
                                                       MPI_COMM_WORLD, &s->requests[s->count++]);
    }
}

static void end_sending(struct sending *s)
{
    MPI_Waitall(s->count, s->requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < PER_SENDER; i++)
        free(s->data[i]);
    free(s->data);
    free(s->requests);
}

static void check_message(const unsigned char *data, const MPI_Status *status, const char *what)
{
    int bytes;
    const int source = status->MPI_SOURCE, number = status->MPI_TAG;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    CHECK(source >= 0 && source < ranks && source != my_rank, "%s: source %d", what, source);
    CHECK(bytes == size_of(source, number), "%s: %d bytes of message %d from %d", what, bytes,
          number, source);
    const long wrong = pattern_wrong(data, (size_t) bytes, seed_of(source, number));
    CHECK(wrong < 0, "%s: byte %ld of message %d from %d", what, wrong, number, source);
}

enum way { WAITANY, WAITALL, TESTSOME, PERSISTENT, VECTOR, WAYS };
static const char *const way_names[] = {"waitany", "waitall", "testsome", "persistent", "vector"};

/* Receives are matched in the order in which they were posted: so the messages of one source,
 * looked at in that order, have rising numbers. */
static void storm(enum way way, bool synchronous, double compute_s)
{
    const int expected = (ranks - 1) * PER_SENDER;
    int *source_of = malloc(sizeof(int) * (size_t) expected),
        *number_of = malloc(sizeof(int) * (size_t) expected);
    int order[WINDOW];
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    MPI_Datatype type = MPI_BYTE;
    struct sending sending;
    int posted = 0, received = 0, count = BYTES_MAX;
    const int window = expected < WINDOW ? expected : WINDOW;

    if (way == VECTOR) { /* holes of 3 after 1 byte: the data is unpacked into places 0, 4, 8 ... */
        MPI_Type_create_resized(MPI_BYTE, 0, 4, &type);
        MPI_Type_commit(&type);
        count = BYTES_MAX;
    }
    start_sending(&sending, synchronous);
    for (; posted < window; posted++) {
        if (way == PERSISTENT) {
            MPI_Recv_init(buffers[posted], count, type, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                          &requests[posted]);
            MPI_Start(&requests[posted]);
        } else {
            MPI_Irecv(buffers[posted], count, type, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                      &requests[posted]);
        }
        order[posted] = posted;
    }
    while (received < expected) {
        int done = 0, which[WINDOW];
        if (compute_s > 0)
            compute(compute_s);
        if (way == WAITALL) {
            MPI_Waitall(window, requests, statuses);
            for (int i = 0; i < window; i++)
                if (order[i] >= 0)
                    which[done++] = i;
            for (int i = 0; i < done; i++)
                statuses[i] = statuses[which[i]];
        } else if (way == TESTSOME) {
            MPI_Testsome(window, requests, &done, which, statuses);
        } else {
            MPI_Waitany(window, requests, &which[0], &statuses[0]);
            done = 1;
        }
        for (int i = 0; i < done; i++) {
            const int slot = which[i];
            if (way == VECTOR) {
                int bytes;
                MPI_Get_count(&statuses[i], type, &bytes);
                for (int b = 0; b < bytes; b++)
                    buffers[slot][b] = buffers[slot][4 * (size_t) b];
            }
            check_message(buffers[slot], &statuses[i], way_names[way]);
            source_of[order[slot]] = statuses[i].MPI_SOURCE;
            number_of[order[slot]] = statuses[i].MPI_TAG;
            received++;
            order[slot] = -1;
            if (posted < expected) {
                if (way == PERSISTENT)
                    MPI_Start(&requests[slot]);
                else
                    MPI_Irecv(buffers[slot], count, type, MPI_ANY_SOURCE, MPI_ANY_TAG,
                              MPI_COMM_WORLD, &requests[slot]);
                order[slot] = posted++;
            }
        }
    }
    if (way == PERSISTENT)
        for (int i = 0; i < window; i++)
            MPI_Request_free(&requests[i]);
    end_sending(&sending);
    for (int source = 0; source < ranks; source++) {
        int next = 0;
        for (int i = 0; i < expected; i++)
            if (source_of[i] == source) {
                CHECK(number_of[i] == next, "%s: message %d of rank %d came where %d was due",
                      way_names[way], number_of[i], source, next);
                next = number_of[i] + 1;
            }
        CHECK(source == my_rank || next == PER_SENDER, "%s: %d messages of rank %d", way_names[way],
              next, source);
    }
    if (way == VECTOR)
        MPI_Type_free(&type);
    free(source_of);
    free(number_of);
    MPI_Barrier(MPI_COMM_WORLD);
}

enum probing { PROBE, IPROBE, MPROBE, IMPROBE, PROBINGS };

static void storm_of_probes(enum probing how)
{
    const int expected = (ranks - 1) * PER_SENDER;
    int *next = calloc((size_t) ranks, sizeof(int));
    struct sending sending;
    start_sending(&sending, false);
    for (int i = 0; i < expected; i++) {
        MPI_Status status, received;
        MPI_Message message = MPI_MESSAGE_NULL;
        int flag = how == PROBE || how == MPROBE, bytes;
        if (how == PROBE)
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (how == MPROBE)
            MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
        while (!flag) {
            if (how == IPROBE)
                MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
            else
                MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
        }
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        if (message != MPI_MESSAGE_NULL) {
            MPI_Request request;
            MPI_Imrecv(buffers[0], bytes, MPI_BYTE, &message, &request);
            MPI_Wait(&request, &received);
        } else {
            MPI_Recv(buffers[0], bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
                     &received);
        }
        CHECK(received.MPI_SOURCE == status.MPI_SOURCE && received.MPI_TAG == status.MPI_TAG,
              "probed %d of %d, received %d of %d", status.MPI_TAG, status.MPI_SOURCE,
              received.MPI_TAG, received.MPI_SOURCE);
        check_message(buffers[0], &received, "probe");
        CHECK(received.MPI_TAG == next[received.MPI_SOURCE],
              "message %d of rank %d came where %d was due", received.MPI_TAG, received.MPI_SOURCE,
              next[received.MPI_SOURCE]);
        next[received.MPI_SOURCE] = received.MPI_TAG + 1;
    }
    end_sending(&sending);
    free(next);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- cancel ---- */

/* What nobody sends to can be cancelled, and leaves nothing behind. */
static void cancel_in_vain_sent(void)
{
    for (int i = 0; i < 50; i++) {
        MPI_Request request;
        MPI_Status status;
        int cancelled;
        MPI_Irecv(buffers[0], 100, MPI_BYTE, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled, "receive %d", i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A message is on its way while its receive is being cancelled: either that one gets it, whole, or
 * the next one. */
static void cancel_race(int from, int to, int rounds)
{
    int won = 0, lost = 0;
    for (int round = 0; round < rounds; round++) {
        const int bytes = sizes[round % SIZES];
        const unsigned seed = (unsigned) round;
        MPI_Status status;
        if (my_rank == to) {
            MPI_Request request;
            int cancelled;
            MPI_Irecv(buffers[0], BYTES_MAX, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, from, 8, MPI_COMM_WORLD);
            /* long enough for the handler to match it, or about as long as the message takes */
            compute(round % 4 == 0 ? 3e-3 : 2e-6 * (double) (round % 50));
            if (round % 3 == 1) {
                int flag;
                MPI_Iprobe(MPI_ANY_SOURCE, 1234, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            }
            MPI_Cancel(&request);
            MPI_Wait(&request, &status);
            MPI_Test_cancelled(&status, &cancelled);
            if (cancelled) {
                won++;
                MPI_Recv(buffers[0], BYTES_MAX, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD,
                         &status);
            } else {
                lost++;
            }
            int got;
            MPI_Get_count(&status, MPI_BYTE, &got);
            CHECK(status.MPI_SOURCE == from && status.MPI_TAG == 7 && got == bytes,
                  "round %d: %d bytes, tag %d, from %d", round, got, status.MPI_TAG,
                  status.MPI_SOURCE);
            CHECK(pattern_wrong(buffers[0], (size_t) bytes, seed) < 0, "round %d, cancelled %d",
                  round, cancelled);
        } else if (my_rank == from) {
            pattern_fill(outgoing, (size_t) bytes, seed);
            MPI_Recv(NULL, 0, MPI_BYTE, to, 8, MPI_COMM_WORLD, &status);
            MPI_Send(outgoing, bytes, MPI_BYTE, to, 7, MPI_COMM_WORLD);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == to)
        printf("mixed: cancel from %d to %d: %d cancelled, %d too late\n", from, to, won, lost);
}

/* ---- errors ---- */

static void truncation(int from, int to)
{
    if (my_rank == from)
        MPI_Send(outgoing, 1000, MPI_BYTE, to, 5, MPI_COMM_WORLD);
    if (my_rank == to) {
        MPI_Status status;
        int class = MPI_SUCCESS;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        const int code =
            MPI_Recv(buffers[0], 10, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status);
        if (code != MPI_SUCCESS)
            MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_TRUNCATE, "class %d from rank %d", class, from);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- one-sided: some targets by shared memory, some by the device ---- */

static void windows(bool allocate)
{
    enum { CELLS = 64 };
    MPI_Win win;
    long *cells, one = 1, *mine = NULL;
    const MPI_Aint bytes = (MPI_Aint) (sizeof(long) * CELLS * (size_t) (ranks + 1));
    if (allocate) {
        MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &win);
    } else {
        cells = mine = malloc((size_t) bytes);
        MPI_Win_create(cells, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    long source[CELLS], back[CELLS];
    for (int round = 1; round <= 10; round++) {
        memset(cells, 0, (size_t) bytes);
        for (int i = 0; i < CELLS; i++)
            source[i] = my_rank * 10000 + round * 100 + i;
        MPI_Win_fence(0, win);
        for (int to = 0; to < ranks; to++)
            MPI_Put(source, CELLS, MPI_LONG, to, (MPI_Aint) CELLS * my_rank, CELLS, MPI_LONG, win);
        MPI_Win_fence(0, win);
        for (int from = 0; from < ranks; from++)
            for (int i = 0; i < CELLS; i++)
                CHECK(cells[from * CELLS + i] == from * 10000 + round * 100 + i,
                      "cell %d of rank %d: %ld", i, from, cells[from * CELLS + i]);
        MPI_Win_fence(0, win);
        for (int to = 0; to < ranks; to++) {
            MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
            MPI_Get(back, CELLS, MPI_LONG, to, (MPI_Aint) CELLS * my_rank, CELLS, MPI_LONG, win);
            MPI_Win_flush(to, win);
            CHECK(memcmp(back, source, sizeof source) == 0, "get from %d", to);
            MPI_Accumulate(&one, 1, MPI_LONG, to, (MPI_Aint) CELLS * ranks, 1, MPI_LONG, MPI_SUM,
                           win);
            MPI_Win_unlock(to, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, my_rank, 0, win);
        CHECK(cells[CELLS * ranks] == ranks, "sum %ld", cells[CELLS * ranks]);
        MPI_Win_unlock(my_rank, win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&win);
    free(mine);
}

/* At each root in turn: also one that is not its node's first rank. */
static void reduce_in_place(void)
{
    enum { COUNT = 30000 };
    int *const data = malloc(COUNT * sizeof *data);
    for (int root = 0; root < ranks; root++) {
        long wrong = 0;
        for (int i = 0; i < COUNT; i++)
            data[i] = my_rank + i;
        if (my_rank == root)
            MPI_Reduce(MPI_IN_PLACE, data, COUNT, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD);
        else
            MPI_Reduce(data, NULL, COUNT, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD);
        for (int i = 0; i < COUNT; i++)
            wrong += my_rank == root && data[i] != ranks - 1 + i;
        CHECK(wrong == 0, "in place at root %d: %ld wrong of %d", root, wrong, COUNT);
    }
    free(data);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const int rounds = argc > 1 ? atoi(argv[1]) : 300;
    const bool expect_mixed = argc > 2 && strcmp(argv[2], "mixed") == 0;
    for (int i = 0; i < WINDOW; i++)
        buffers[i] = malloc(4 * (size_t) BYTES_MAX);
    outgoing = malloc(BYTES_MAX);
    memset(outgoing, 0, BYTES_MAX);
    find_ranks(expect_mixed);
    for (int way = 0; way < WAYS; way++)
        for (int variant = 0; variant < 3; variant++)
            storm((enum way) way, variant == 1, variant == 2 ? 300e-6 : 0);
    for (int how = 0; how < PROBINGS; how++)
        storm_of_probes((enum probing) how);
    cancel_in_vain_sent();
    for (int to = 0; to < ranks; to++) {
        int from[2] = {neighbour, stranger};
        MPI_Bcast(from, 2, MPI_INT, to, MPI_COMM_WORLD);
        for (int i = 0; i < 2; i++) {
            if (from[i] < 0)
                continue;
            cancel_race(from[i], to, rounds);
            truncation(from[i], to);
        }
    }
    windows(false);
    windows(true);
    reduce_in_place();
    for (int i = 0; i < WINDOW; i++)
        free(buffers[i]);
    free(outgoing);
    return finish("mixed");
}
