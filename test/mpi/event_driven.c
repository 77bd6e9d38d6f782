/* Does what MPICH schedules above the device move while every rank computes and makes no MPI call?
 * Nonblocking collectives of 1 MiB, and MPI_Accumulate into a window of a rank that computes. Each
 * rank looks at the last element of its result just before MPI_Wait. Prints: event_driven
 * operation=… rank=… complete_before_wait=yes|no; and for accumulate at its origin: …
 * served_in_ms=… target_computes_ms=… All of it is done twice, and a user's reduction runs, so that
 * a helper thread's MPI calls meet the application's. */
#include "mpi_test.h"

enum operation { IALLREDUCE, IBCAST, IALLTOALL, IREDUCE_USER, OPERATIONS };
static const char *const names[] = {"iallreduce", "ibcast", "ialltoall", "ireduce_user"};

/* Not commutative in its declaration, so that the order of the schedule matters; calls MPI as a
 * reduction may. */
static void sum_of_users(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int bytes = 0;
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
 * somebody at the target has to handle. */
static void accumulate(double seconds)
{
    const int target = ranks - 1;
    int *window = NULL, one = 1;
    MPI_Win win;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    *window = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == target) {
        CHECK(compute(seconds) > 0.0, "no work was done");
    } else if (my_rank == 0) {
        const double before = now_s();
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        MPI_Accumulate(&one, 1, MPI_INT, target, 0, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_unlock(target, win);
        printf(
            "event_driven operation=accumulate rank=0 served_in_ms=%.1f target_computes_ms=%.1f "
            "complete_before_wait=%s\n",
            1e3 * (now_s() - before), 1e3 * seconds,
            now_s() - before < 0.7 * seconds ? "yes" : "no");
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == target) {
        int value = 0;
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        value = *window;
        MPI_Win_unlock(target, win);
        CHECK(value == 1, "the window holds %d", value);
    }
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
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
        accumulate(seconds);
    }
    MPI_Op_free(&user);
    free(out);
    free(in);
    return finish("event_driven");
}
