/* Calls with hundreds of thousands of requests, between two ranks that are nodes of their own: MPI
 * polls its network every few requests in one call, and that must not look like a wait.
 *   many_requests [REQUESTS [ROUNDS]]   default 200000 and 1; prints one line for each kind of
 *                                       call: many_requests call=NAME requests=N seconds=S, the
 *                                       longest of the ranks' times in the best round
 *   many_requests late SECONDS      a message that comes so much later: processor time and delay of
 *                                   the calls that wait for it, with few and with a million
 *                                   requests
 *   many_requests spin MESSAGES     any number of ranks: a ring of short messages, each awaited by
 *                                   MPI_Test alone
 * A phase that lasts longer than PHASE_LIMIT_S ends the program, and is named. */
#include <signal.h>
#include <sys/resource.h>
#include "mpi_test.h"

enum {
    BYTES = 256,
    DONE_TAG = 1,
    PENDING_TAG,
    LIVE_TAG,
    GO_TAG,
    PHASE_LIMIT_S = 60,
    NULLS = 1000000,
    NAME_MAX_BYTES = 32,
    CALLS_MAX = 32
};

static char phase[NAME_MAX_BYTES] = "start";
static int other;
static MPI_Request *requests;
static int *indices;
static char *memory; /* BYTES for each request */

static void too_long(int signal)
{
    char text[128];
    const int length = snprintf(text, sizeof text, "many_requests: %s is still under way\n", phase);
    (void) signal;
    if (write(2, text, (size_t) length) < 0)
        _exit(2);
    _exit(2);
}

static void begin_phase(const char *name)
{
    snprintf(phase, sizeof phase, "%s", name);
    alarm(PHASE_LIMIT_S);
}

static double longest(double seconds)
{
    double all;
    MPI_Allreduce(&seconds, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static struct {
    char name[NAME_MAX_BYTES];
    int count;
    double best_s;
} calls[CALLS_MAX];

static void report(const char *name, int count, double seconds)
{
    int i = 0;

    seconds = longest(seconds);
    while (i < CALLS_MAX - 1 && calls[i].name[0] != 0 && strcmp(calls[i].name, name) != 0)
        i++;
    if (calls[i].name[0] == 0 || seconds < calls[i].best_s)
        calls[i].best_s = seconds;
    snprintf(calls[i].name, sizeof calls[i].name, "%s", name);
    calls[i].count = count;
}

static void print_best(void)
{
    for (int i = 0; i < CALLS_MAX && calls[i].name[0] != 0 && my_rank == 0; i++)
        printf("many_requests call=%s requests=%d seconds=%.4f\n", calls[i].name, calls[i].count,
               calls[i].best_s);
}

static double processor_s(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double) (used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double) (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void until_complete(MPI_Request request)
{
    for (int done = 0; !done;)
        MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
}

static char *place(int i)
{
    return memory + (size_t) i * BYTES;
}

/* Receives and sends by turns. When it returns all of them are complete, and MPI has told of none.
 */
static void exchange(int count)
{
    const int half = count / 2;

    for (int i = 0; i < half; i++)
        MPI_Irecv(place(i), BYTES, MPI_BYTE, other, DONE_TAG, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = half; i < 2 * half; i++) {
        memset(place(i), 0, BYTES);
        memcpy(place(i), &(int){i - half}, sizeof(int));
        MPI_Isend(place(i), BYTES, MPI_BYTE, other, DONE_TAG, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 2 * half - 1; i >= 0; i--)
        until_complete(requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each receive has the message of its own number. */
static void check_numbers(int count)
{
    for (int i = 0; i < count; i++) {
        int number;
        memcpy(&number, place(i), sizeof number);
        CHECK(number == i, "message %d in receive %d", number, i);
    }
}

static void check_exchange(int count)
{
    check_numbers(count / 2);
    for (int i = 0; i < count; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d", i);
}

/* ---- all complete ---- */

static void testsome(int count)
{
    for (int done = 0, some; done < count; done += some)
        MPI_Testsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
}

static void waitsome(int count)
{
    for (int done = 0, some; done < count; done += some)
        MPI_Waitsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
}

static void testall(int count)
{
    for (int done = 0; !done;)
        MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
}

static void waitall(int count)
{
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* Each call looks at all requests: a few will do. */
static void testany(int count)
{
    for (int i = 0, done, which; i < 10; i++) {
        MPI_Testany(count, requests, &which, &done, MPI_STATUS_IGNORE);
        CHECK(done && which != MPI_UNDEFINED, "call %d", i);
    }
}

static void waitany(int count)
{
    for (int i = 0, which; i < 10; i++) {
        MPI_Waitany(count, requests, &which, MPI_STATUS_IGNORE);
        CHECK(which != MPI_UNDEFINED, "call %d", i);
    }
}

static void all_complete(const char *name, void (*call)(int), int count)
{
    begin_phase(name);
    exchange(count);
    const double begin = now_s();
    call(count);
    const double end = now_s();
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    check_exchange(count);
    report(name, count, end - begin);
}

/* ---- one of many ---- */

enum kind { TESTANY, TESTSOME, TESTALL, WAITANY, WAITSOME, KINDS };
static const char *const kind_names[] = {"Testany", "Testsome", "Testall", "Waitany", "Waitsome"};

struct found {
    int done, some, which; /* as the call says it; where it does not: 1, 1, -1 */
};

static struct found call_of(enum kind kind, int count)
{
    struct found found = {1, 1, -1};

    if (kind == TESTANY)
        MPI_Testany(count, requests, &found.which, &found.done, MPI_STATUS_IGNORE);
    if (kind == WAITANY)
        MPI_Waitany(count, requests, &found.which, MPI_STATUS_IGNORE);
    if (kind == TESTSOME)
        MPI_Testsome(count, requests, &found.some, &found.which, MPI_STATUSES_IGNORE);
    if (kind == WAITSOME)
        MPI_Waitsome(count, requests, &found.some, &found.which, MPI_STATUSES_IGNORE);
    if (kind == TESTALL)
        MPI_Testall(count, requests, &found.done, MPI_STATUSES_IGNORE);
    return found;
}

/* Only the last request can complete; its message is there already, or comes half a second later.
 */
static void one_of_many(const char *name, enum kind kind, int count, int late)
{
    const double delay_s = late ? 0.5 : 0;
    const int last = count - 1;
    int go = 1;

    begin_phase(name);
    MPI_Irecv(place(0), BYTES, MPI_BYTE, other, LIVE_TAG, MPI_COMM_WORLD, &requests[last]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (late && my_rank == 1)
        compute(delay_s);
    if (!late || my_rank == 1)
        MPI_Send(&last, 1, MPI_INT, other, LIVE_TAG, MPI_COMM_WORLD);
    if (late && my_rank == 1) {
        MPI_Recv(&go, 1, MPI_INT, other, GO_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Cancel(&requests[last]);
        MPI_Wait(&requests[last], MPI_STATUS_IGNORE);
        report(name, count, 0);
        return;
    }
    if (!late) {
        until_complete(requests[last]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    const double begin = now_s();
    struct found found = call_of(kind, count);
    if (kind == TESTALL) {
        CHECK(found.done == (requests[0] == MPI_REQUEST_NULL), "%s", name);
        MPI_Wait(&requests[last], MPI_STATUS_IGNORE);
        found = (struct found){1, 1, last};
    }
    const double end = now_s();
    CHECK(found.done && found.some == 1 && found.which == last, "%s: %d requests, the first is %d",
          name, found.some, found.which);
    if (late)
        MPI_Send(&go, 1, MPI_INT, other, GO_TAG, MPI_COMM_WORLD);
    report(name, count, end - begin - delay_s);
}

/* Every kind of call with the message there already, and those that wait with a late one. */
static void each_of_many(const char *there, const char *late, int count)
{
    char name[NAME_MAX_BYTES];

    for (enum kind kind = TESTANY; kind < KINDS; kind++) {
        snprintf(name, sizeof name, "%s:%s", kind_names[kind], there);
        one_of_many(name, kind, count, 0);
    }
    for (enum kind kind = WAITANY; kind < KINDS; kind++) {
        snprintf(name, sizeof name, "%s:%s", kind_names[kind], late);
        one_of_many(name, kind, count, 1);
    }
}

static void many(int count)
{
    all_complete("Testsome", testsome, count);
    all_complete("Testall", testall, count);
    all_complete("Testany", testany, count);
    all_complete("Waitsome", waitsome, count);
    all_complete("Waitany", waitany, count);
    all_complete("Waitall", waitall, count);

    begin_phase("posting");
    for (int i = 0; i < count - 1; i++)
        MPI_Irecv(place(i), BYTES, MPI_BYTE, other, PENDING_TAG, MPI_COMM_WORLD, &requests[i]);
    each_of_many("pending", "late", count);
    begin_phase("Waitall:pending");
    for (int i = 0; i < count - 1; i++)
        MPI_Send(&i, 1, MPI_INT, other, PENDING_TAG, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now_s();
    MPI_Waitall(count - 1, requests, MPI_STATUSES_IGNORE);
    report("Waitall:pending", count - 1, now_s() - begin);
    check_numbers(count - 1);

    for (int i = 0; i < NULLS; i++)
        requests[i] = MPI_REQUEST_NULL;
    each_of_many("null", "null:late", NULLS);
}

/* ---- a wait that lasts ---- */

static void late(const char *name, enum kind kind, int count, double delay_s)
{
    begin_phase(name);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 1) {
        usleep((useconds_t) (1e6 * delay_s));
        const double sent = now_s();
        MPI_Send(&sent, 1, MPI_DOUBLE, 0, LIVE_TAG, MPI_COMM_WORLD);
        return;
    }
    double sent;
    struct found found = {1, 1, count - 1};
    requests[0] = MPI_REQUEST_NULL;
    MPI_Irecv(&sent, 1, MPI_DOUBLE, 1, LIVE_TAG, MPI_COMM_WORLD, &requests[count - 1]);
    /* What one look at all of them costs this machine: a poll for every eight requests.
     * (MPI_Testsome of a newer MPICH polls once.) */
    double used = processor_s();
    int arrived = 0;
    for (int i = 0; i < count / 8; i++)
        MPI_Test(&requests[count - 1], &arrived, MPI_STATUS_IGNORE);
    CHECK(!arrived, "%s: the message was there before it was sent", name);
    const double look_s = processor_s() - used;
    used = processor_s();
    if (kind == TESTALL) /* none of the scanning ones */
        MPI_Wait(&requests[count - 1], MPI_STATUS_IGNORE);
    else
        found = call_of(kind, count);
    CHECK(found.some == 1 && found.which == count - 1, "%s", name);
    printf("many_requests call=%s requests=%d cpu_percent=%.2f late_ms=%.2f look_percent=%.2f\n",
           name, count, 100 * (processor_s() - used) / delay_s, 1e3 * (now_s() - sent),
           100 * look_s / delay_s);
    fflush(stdout);
}

/* ---- MPI_Test alone ---- */

static void spin(int messages)
{
    const int next = (my_rank + 1) % ranks, last = (my_rank + ranks - 1) % ranks;
    int token = 0;

    begin_phase("spin");
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now_s();
    for (int i = 0; i < messages; i++) {
        MPI_Request request;
        if (my_rank == 0)
            MPI_Send(&i, 1, MPI_INT, next, DONE_TAG, MPI_COMM_WORLD);
        MPI_Irecv(&token, 1, MPI_INT, last, DONE_TAG, MPI_COMM_WORLD, &request);
        for (int done = 0; !done;)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (my_rank != 0)
            MPI_Send(&token, 1, MPI_INT, next, DONE_TAG, MPI_COMM_WORLD);
        CHECK(token == i, "message %d in round %d", token, i);
    }
    const double seconds = longest(now_s() - begin);
    if (my_rank == 0)
        printf("many_requests call=spin ranks=%d messages_per_s=%.0f\n", ranks,
               (double) messages * ranks / seconds);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    signal(SIGALRM, too_long);
    const int named = argc > 2 && (strcmp(argv[1], "spin") == 0 || strcmp(argv[1], "late") == 0);
    const int count = argc > 1 && !named ? atoi(argv[1]) : 200000;
    const int room = count > NULLS ? count : NULLS;
    other = 1 - my_rank;
    requests = malloc((size_t) room * sizeof *requests);
    indices = malloc((size_t) room * sizeof *indices);
    memory = calloc((size_t) (named ? 1 : count), BYTES);
    if (requests == NULL || indices == NULL || memory == NULL || count < 2) {
        fprintf(stderr, "many_requests: no memory, or no requests\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < room; i++)
        requests[i] = MPI_REQUEST_NULL;
    if (named && strcmp(argv[1], "spin") == 0) {
        spin(atoi(argv[2]));
    } else if (named) {
        late("Wait", TESTALL, 1, atof(argv[2]));
        late("Waitany", WAITANY, 2, atof(argv[2]));
        late("Waitsome", WAITSOME, 2, atof(argv[2]));
        late("Waitany", WAITANY, NULLS, atof(argv[2]));
        late("Waitsome", WAITSOME, NULLS, atof(argv[2]));
    } else {
        for (int round = 0; round < (argc > 2 ? atoi(argv[2]) : 1); round++)
            many(count);
        print_best();
    }
    alarm(0);
    free(requests);
    free(indices);
    free(memory);
    return finish("many_requests");
}
