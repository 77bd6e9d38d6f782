/* A tool's view of the device: LITE_* as control variables, counters as performance variables,
 * exact around known traffic. Two ranks on two hosts. Usage: tools EAGER_MAX, the value that
 * LITE_EAGER_MAX has been set to. Differences are judged, as MPI leaves open where a counter
 * begins. */
#include "mpi_test.h"
#include "mpi_tools.h"

static char eager_max[64];

static void read_cvar(const char *name, char *value, size_t size)
{
    MPI_T_cvar_handle handle;
    char text[4096];
    int index, count, verbosity, binding, scope, name_length = 0, text_length = sizeof text;
    MPI_Datatype type;
    MPI_T_enum kinds;

    value[0] = 0;
    CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS, "%s", name);
    MPI_T_cvar_get_info(index, NULL, &name_length, &verbosity, &type, &kinds, text, &text_length,
                        &binding, &scope);
    CHECK(type == MPI_CHAR && binding == MPI_T_BIND_NO_OBJECT && scope == MPI_T_SCOPE_CONSTANT,
          "%s", name);
    CHECK(strstr(text, "Allowed: ") != NULL, "%s: %s", name, text);
    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    CHECK(count > 0 && (size_t) count <= size, "%s: %d", name, count);
    MPI_T_cvar_read(handle, value);
    CHECK(MPI_T_cvar_write(handle, "1") != MPI_SUCCESS, "%s can be written", name);
    MPI_T_cvar_handle_free(&handle);
}

static void check_cvars(void)
{
    char value[2048];

    read_cvar("LITE_EAGER_MAX", value, sizeof value);
    CHECK(strcmp(value, eager_max) == 0, "%s", value);
    read_cvar("LITE_SHORT_MAX", value, sizeof value);
    CHECK(strcmp(value, "32K") == 0, "%s", value);
    read_cvar("LITE_CONTROLLER", value, sizeof value);
    CHECK(getenv("LITE_CONTROLLER") == NULL || strcmp(value, getenv("LITE_CONTROLLER")) == 0, "%s",
          value);
    read_cvar("LITE_TRACE", value, sizeof value);
}

/* All counters at once, by handles that stay. */
enum {
    SHORT,
    SHORT_BYTES,
    EAGER,
    EAGER_BYTES,
    RNDV,
    RNDV_BYTES,
    PUT,
    PUT_BYTES,
    GET,
    GET_BYTES,
    SERVED,
    UNEXPECTED,
    UNEXPECTED_BYTES,
    COUNTERS
};
static const char *const names[COUNTERS] = {
    "lite_short_msgs",      "lite_short_bytes", "lite_eager_msgs",  "lite_eager_bytes",
    "lite_rndv_msgs",       "lite_rndv_bytes",  "lite_put_msgs",    "lite_put_bytes",
    "lite_get_msgs",        "lite_get_bytes",   "lite_served_msgs", "lite_unexpected",
    "lite_unexpected_bytes"};
static MPI_T_pvar_handle handles[COUNTERS];
static unsigned long long before[COUNTERS];

static void alloc_counters(void)
{
    for (int i = 0; i < COUNTERS; i++) {
        int index, count;
        CHECK(MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS, "%s",
              names[i]);
        CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count) == MPI_SUCCESS,
              "%s", names[i]);
    }
}

static void mark(void)
{
    for (int i = 0; i < COUNTERS; i++)
        MPI_T_pvar_read(session, handles[i], &before[i]);
}

static void expect(int counter, unsigned long long want, const char *when)
{
    unsigned long long now;
    MPI_T_pvar_read(session, handles[counter], &now);
    CHECK(now - before[counter] == want, "%s %s: %llu, not %llu", when, names[counter],
          now - before[counter], want);
}

static void check_point_to_point(void)
{
    static char buffer[1 << 20];
    const int other = 1 - my_rank;
    const size_t sizes[3] = {
        100, 40000, sizeof buffer}; /* by the short, the eager and the rendezvous protocol */

    for (int kind = 0; kind < 3; kind++) {
        const int repeats = 5 + kind;
        MPI_Barrier(MPI_COMM_WORLD);
        mark();
        for (int i = 0; i < repeats; i++) {
            MPI_Request request;
            /* posted before the other one sends: never unexpected, as each waits for the other's
             * last message */
            if (my_rank == 0)
                MPI_Send(buffer, (int) sizes[kind], MPI_BYTE, other, 1, MPI_COMM_WORLD);
            MPI_Irecv(buffer, (int) sizes[kind], MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (my_rank == 1)
                MPI_Send(buffer, (int) sizes[kind], MPI_BYTE, other, 1, MPI_COMM_WORLD);
        }
        for (int other_kind = 0; other_kind < 3; other_kind++) {
            const unsigned long long messages =
                kind == other_kind ? (unsigned long long) repeats : 0;
            expect(SHORT + 2 * other_kind, messages, "send and receive");
            expect(SHORT_BYTES + 2 * other_kind, messages * sizes[kind], "send and receive");
        }
    }
}

/* The queues, seen while they hold something. */
static void check_queues(void)
{
    enum { MESSAGES = 7, BYTES = 3000 };
    static char buffers[MESSAGES][BYTES];
    MPI_Request requests[MESSAGES];

    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 97, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE); /* the other one has looked */
        for (int i = 0; i < MESSAGES; i++)
            MPI_Send(buffers[i], BYTES, MPI_BYTE, 1, 100 + i, MPI_COMM_WORLD);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 99, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < MESSAGES; i++)
            MPI_Send(buffers[i], BYTES, MPI_BYTE, 1, 200 + i, MPI_COMM_WORLD);
    } else {
        mark();
        const unsigned long long held =
            pvar_of("lite_unexpected_bytes_held", MPI_T_PVAR_CLASS_LEVEL);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 97, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        unsigned long long now = pvar_of("lite_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL);
        CHECK(now == MESSAGES, "%llu messages in the unexpected queue", now);
        now = pvar_of("lite_unexpected_bytes_held", MPI_T_PVAR_CLASS_LEVEL);
        CHECK(now >= held + MESSAGES * BYTES, "%llu bytes held", now);
        /* the empty one may have come before or after its receive */
        unsigned long long count;
        MPI_T_pvar_read(session, handles[UNEXPECTED], &count);
        CHECK(count - before[UNEXPECTED] == MESSAGES || count - before[UNEXPECTED] == MESSAGES + 1,
              "%llu", count - before[UNEXPECTED]);
        expect(UNEXPECTED_BYTES, MESSAGES * BYTES, "unexpected");
        for (int i = 0; i < MESSAGES; i++)
            MPI_Recv(buffers[i], BYTES, MPI_BYTE, 0, 100 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        now = pvar_of("lite_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL);
        CHECK(now == 0, "%llu messages in the unexpected queue", now);
        for (int i = 0; i < MESSAGES; i++)
            MPI_Irecv(buffers[i], BYTES, MPI_BYTE, 0, 200 + i, MPI_COMM_WORLD, &requests[i]);
        now = pvar_of("lite_posted_receives", MPI_T_PVAR_CLASS_LEVEL);
        CHECK(now == MESSAGES, "%llu receives posted", now);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 98, MPI_COMM_WORLD);
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
        now = pvar_of("lite_posted_receives", MPI_T_PVAR_CLASS_LEVEL);
        CHECK(now == 0, "%llu receives posted", now);
    }
}

static void check_one_sided(void)
{
    enum { PUTS = 9, GETS = 4, BYTES = 5000 };
    static char here[BYTES];
    char *window_memory;
    MPI_Win window;

    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_memory, &window);
    MPI_Win_fence(0, window);
    mark();
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        for (int i = 0; i < PUTS; i++)
            MPI_Put(here, BYTES, MPI_BYTE, 1, 0, BYTES, MPI_BYTE, window);
        for (int i = 0; i < GETS; i++)
            MPI_Get(here, BYTES, MPI_BYTE, 1, 0, BYTES, MPI_BYTE, window);
    }
    MPI_Win_fence(0, window);
    expect(PUT, my_rank == 0 ? PUTS : 0, "fence");
    expect(PUT_BYTES, my_rank == 0 ? PUTS * BYTES : 0, "fence");
    expect(GET, my_rank == 0 ? GETS : 0, "fence");
    expect(GET_BYTES, my_rank == 0 ? GETS * BYTES : 0, "fence");
    expect(SERVED, my_rank == 0 ? 0 : PUTS + GETS, "fence");
    MPI_Win_free(&window);
}

/* Several variables are in a category of their own. */
static void check_category(void)
{
    int index, cvars, pvars, subcategories, name_length = 0, text_length = 0;

    CHECK(MPI_T_category_get_index("LITE", &index) == MPI_SUCCESS, "no category");
    MPI_T_category_get_info(index, NULL, &name_length, NULL, &text_length, &cvars, &pvars,
                            &subcategories);
    CHECK(cvars >= 18 && pvars >= 50 && subcategories == 0, "%d %d %d", cvars, pvars,
          subcategories);
}

int main(int argc, char **argv)
{
    int provided;
    unsigned long long sent;

    snprintf(eager_max, sizeof eager_max, "%s", argc > 1 ? argv[1] : "256K");
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    start(&argc, &argv);
    MPI_T_pvar_session_create(&session);
    alloc_counters();
    check_category();
    check_cvars();
    check_point_to_point();
    check_queues();
    check_one_sided();
    CHECK(pvar_of("lite_syscalls", MPI_T_PVAR_CLASS_COUNTER) > 0, "no system call");
    CHECK(pvar_of("lite_connections", MPI_T_PVAR_CLASS_COUNTER) == 1, "connections");
    sent = pvar_of("lite_rndv_msgs", MPI_T_PVAR_CLASS_COUNTER);

    const int failed = finish("tools");
    /* a tool may outlive MPI */
    CHECK(pvar_of("lite_rndv_msgs", MPI_T_PVAR_CLASS_COUNTER) == sent, "after MPI_Finalize");
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return failed != 0 || checks_failed != 0;
}
