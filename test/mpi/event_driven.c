/* Does what MPICH schedules above the device move while every rank computes and makes no MPI call?
 * Nonblocking collectives of 1 MiB, and accumulates, fetch-and-op and locks at windows of a rank
 * that computes. Each rank looks at the last element of its result just before MPI_Wait. Prints:
 * event_driven operation=… rank=… complete_before_wait=yes|no; and for the accesses at their
 * origin: … served_in_ms=… target_computes_ms=… All of it is done twice, and a user's reduction
 * and callbacks run, which call MPI; how many of them came in another thread than main's:
 * event_driven rank=… foreign_calls=… */
#include <pthread.h>

#include "mpi_test.h"

enum operation { IALLREDUCE, IBCAST, IALLTOALL, IREDUCE_USER, OPERATIONS };
static const char *const names[] = {"iallreduce", "ibcast", "ialltoall", "ireduce_user"};

static pthread_t main_thread;
static int foreign_calls;

/* Not commutative in its declaration, so that the order of the schedule matters; calls MPI as a
 * reduction may. */
static void sum_of_users(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int bytes = 0;
    if (!pthread_equal(pthread_self(), main_thread))
        foreign_calls++;
    MPI_Type_size(*type, &bytes);
    CHECK(bytes == (int) sizeof(int), "%d bytes in the type of the reduction", bytes);
    for (int i = 0; i < *count; i++)
        ((int *) inout)[i] += ((int *) in)[i];
}

static void overlap(enum operation operation, int *out, int *in, int count, double seconds,
                    MPI_Op user)
{
    MPI_Request request;
    const int each = count / ranks, used = each * ranks;

    for (int i = 0; i < count; i++) {
        out[i] = i % 1000 + my_rank;
        in[i] = -1;
    }
    if (operation == IBCAST && my_rank == 0)
        memcpy(in, out, sizeof(int) * (size_t) count);
    MPI_Barrier(MPI_COMM_WORLD);
    switch (operation) {
    case IALLREDUCE:
        MPI_Iallreduce(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        break;
    case IBCAST: MPI_Ibcast(in, count, MPI_INT, 0, MPI_COMM_WORLD, &request); break;
    case IALLTOALL:
        MPI_Ialltoall(out, each, MPI_INT, in, each, MPI_INT, MPI_COMM_WORLD, &request);
        break;
    default: MPI_Ireduce(out, in, count, MPI_INT, user, 0, MPI_COMM_WORLD, &request); break;
    }
    CHECK(compute(seconds) > 0.0, "no work was done");

    const int sum_of_ranks = ranks * (ranks - 1) / 2;
    const int has_result = operation != IREDUCE_USER || my_rank == 0;
    const int last = operation == IALLTOALL ? used - 1 : count - 1;
    const volatile int *seen = in;
    const int last_value = operation == IALLREDUCE || operation == IREDUCE_USER
                               ? ranks * (last % 1000) + sum_of_ranks
                           : operation == IBCAST ? last % 1000
                                                 : (my_rank * each + each - 1) % 1000 + ranks - 1;
    const int complete = !has_result || seen[last] == last_value;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int wrong = -1;
    for (int i = 0; has_result && i < (operation == IALLTOALL ? used : count) && wrong < 0; i++) {
        const int want = operation == IALLREDUCE || operation == IREDUCE_USER
                             ? ranks * (i % 1000) + sum_of_ranks
                         : operation == IBCAST ? i % 1000
                                               : (my_rank * each + i % each) % 1000 + i / each;
        if (in[i] != want)
            wrong = i;
    }
    CHECK(wrong < 0, "element %d of %s is wrong: %d", wrong, names[operation],
          in[wrong < 0 ? 0 : wrong]);
    printf("event_driven operation=%s rank=%d complete_before_wait=%s\n", names[operation], my_rank,
           complete ? "yes" : "no");
    fflush(stdout);
}

/* The last rank computes; rank 0 adds to its window, which ch4 does by active messages that
 * somebody at the target has to handle: all locks, and all that is done here. */
enum access { ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP, DYNAMIC, ACCESSES };
static const char *const access_names[] = {"accumulate", "fetch_and_op", "compare_and_swap",
                                           "dynamic"};

static void one_sided(enum access access, double seconds)
{
    const int target = ranks - 1, one = 1, zero = 0;
    int memory = 0, before_it = -1;
    MPI_Aint at = 0;
    MPI_Win win;

    if (access == DYNAMIC) {
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_attach(win, &memory, sizeof(memory));
        MPI_Get_address(&memory, &at);
    } else {
        MPI_Win_create(&memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    MPI_Bcast(&at, 1, MPI_AINT, target, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == target) {
        CHECK(compute(seconds) > 0.0, "no work was done");
    } else if (my_rank == 0) {
        const double before = now_s();
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        if (access == FETCH_AND_OP)
            MPI_Fetch_and_op(&one, &before_it, MPI_INT, target, at, MPI_SUM, win);
        else if (access == COMPARE_AND_SWAP)
            MPI_Compare_and_swap(&one, &zero, &before_it, MPI_INT, target, at, win);
        else
            MPI_Accumulate(&one, 1, MPI_INT, target, at, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_unlock(target, win);
        CHECK(access == ACCUMULATE || access == DYNAMIC || before_it == 0, "%d was in the window",
              before_it);
        printf(
            "event_driven operation=%s rank=0 served_in_ms=%.1f target_computes_ms=%.1f "
            "complete_before_wait=%s\n",
            access_names[access], 1e3 * (now_s() - before), 1e3 * seconds,
            now_s() - before < 0.7 * seconds ? "yes" : "no");
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == target) {
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        CHECK(memory == 1, "the window holds %d", memory);
        MPI_Win_unlock(target, win);
    }
    if (access == DYNAMIC)
        MPI_Win_detach(win, &memory);
    MPI_Win_free(&win);
}

/* Everybody accesses its neighbour, while a schedule is under way and a communicator is made: calls
 * of all kinds meet the thread that serves the others. */
static void crossing(int *out, int *in, int count)
{
    const int right = (my_rank + 1) % ranks, turns = 300;
    int memory[2] = {0, 0}, before = -1, sum = 0;
    const int ones[2] = {1, 2};
    MPI_Win win;
    MPI_Request requests[2], get;
    MPI_Comm made;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < turns; i++) {
        int got[2] = {-1, -1};
        if (i % 50 == 0) {
            MPI_Iallreduce(out, in, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[0]);
            MPI_Comm_idup(MPI_COMM_WORLD, &made, &requests[1]);
        }
        MPI_Get_accumulate(ones, 2, MPI_INT, got, 2, MPI_INT, right, 0, 2, MPI_INT, MPI_SUM, win);
        MPI_Win_flush(right, win);
        CHECK(got[0] == before + 1 && got[1] == 2 * got[0], "%d and %d after %d", got[0], got[1],
              before);
        before = got[0];
        CHECK(compute(i % 7 * 2e-5) > 0.0, "no work was done");
        MPI_Rget(got, 2, MPI_INT, right, 0, 2, MPI_INT, win, &get);
        MPI_Wait(&get, MPI_STATUS_IGNORE);
        CHECK(got[0] == i + 1, "%d in turn %d", got[0], i);
        if (i % 50 == 49) {
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, made);
            CHECK(sum == ranks * i, "%d", sum);
            MPI_Comm_free(&made);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memory[0] == turns && memory[1] == 2 * turns, "%d and %d", memory[0], memory[1]);
    MPI_Win_free(&win);
}

/* What MPI calls of the program's: in its own thread, and with MPI calls of theirs. */
static void note_caller(void)
{
    int rank = -1;
    if (!pthread_equal(pthread_self(), main_thread))
        foreign_calls++;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(rank == my_rank, "rank %d in a callback", rank);
}
static int called;
static int on_delete(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void) comm, (void) keyval, (void) value, (void) state;
    note_caller();
    called++;
    return MPI_SUCCESS;
}
static void on_error(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, error_class;
    (void) comm;
    MPI_Error_class(*code, &error_class);
    MPI_Error_string(*code, text, &length);
    CHECK(error_class == MPI_ERR_COUNT, "%s", text);
    note_caller();
    called++;
}
static int on_query(void *state, MPI_Status *status)
{
    (void) state;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    note_caller();
    return MPI_SUCCESS;
}
static int on_free(void *state)
{
    (void) state;
    note_caller();
    called++;
    return MPI_SUCCESS;
}
static int on_cancel(void *state, int complete)
{
    (void) state, (void) complete;
    return MPI_SUCCESS;
}

/* While a schedule is under way that holds the last reference to a communicator with an attribute.
 */
static void callbacks(int *out, int *in, int count, double seconds)
{
    MPI_Request request, general;
    MPI_Errhandler handler;
    MPI_Comm comm;
    int keyval;
    called = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &keyval, NULL);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, keyval, &called);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Iallreduce(out, in, count, MPI_INT, MPI_SUM, comm, &request);
    MPI_Send(out, -1, MPI_INT, 0, 1, comm);
    CHECK(called == 1, "the error handler was called %d times", called);
    MPI_Comm_free(&comm);
    CHECK(compute(seconds) > 0.0, "no work was done");
    MPI_Grequest_start(on_query, on_free, on_cancel, NULL, &general);
    MPI_Grequest_complete(general);
    MPI_Wait(&general, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(called == 3, "%d callbacks", called);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free_keyval(&keyval);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    main_thread = pthread_self();
    const double seconds = argc > 1 ? atof(argv[1]) : 0.5;
    const int count = 256 * 1024;
    int *out = malloc(sizeof(int) * (size_t) count), *in = malloc(sizeof(int) * (size_t) count);
    MPI_Op user;
    MPI_Op_create(sum_of_users, 0, &user);
    if (!out || !in || ranks < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < 2; round++) {
        for (int operation = IALLREDUCE; operation < OPERATIONS; operation++)
            overlap((enum operation) operation, out, in, count, seconds, user);
        for (int access = ACCUMULATE; access < ACCESSES; access++)
            one_sided((enum access) access, seconds);
        callbacks(out, in, count, seconds);
        crossing(out, in, count);
    }
    printf("event_driven rank=%d foreign_calls=%d\n", my_rank, foreign_calls);
    MPI_Op_free(&user);
    free(out);
    free(in);
    return finish("event_driven");
}
