/* What LITE_STALL tells of a job that waits: stall CASE SECONDS, with 2 ranks.
 *   recv       both ranks wait in MPI_Recv for each other: rank 0 for tag 5, rank 1 for tag 7.
 * After SECONDS mpiexec is told to end the job (the launcher's time limit would take longer) send
 * rank 0 waits in MPI_Ssend for rank 1, which computes for SECONDS probe      the same in MPI_Probe
 *   collective the same in MPI_Allreduce of a duplicate of MPI_COMM_WORLD that is named "halo"
 *   slow       rank 1 receives for SECONDS what rank 0 sends in small messages, ten a second, and
 *              waits for a message that comes last
 *   test       rank 1 waits for that long in a loop of MPI_Test
 * All but recv end in order. */
#include <pthread.h>
#include "mpi_test.h"

static double seconds;

/* In a thread that makes no MPI call: the others are in MPI_Recv for good. */
static void *end_later(void *unused)
{
    rest(seconds);
    fflush(stdout);
    _exit(4);
    return unused;
}

static void receive_from_each_other(void)
{
    pthread_t ender;
    int word = 0;
    CHECK(pthread_create(&ender, NULL, end_later, NULL) == 0, "no thread");
    MPI_Recv(&word, 1, MPI_INT, 1 - my_rank, my_rank == 0 ? 5 : 7, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

static void wait_for_one_that_computes(const char *what)
{
    MPI_Comm halo;
    int word = my_rank + 1, sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &halo);
    MPI_Comm_set_name(halo, "halo");
    MPI_Barrier(halo);
    if (my_rank == 1)
        compute(seconds);
    if (strcmp(what, "send") == 0) {
        if (my_rank == 0)
            MPI_Ssend(&word, 1, MPI_INT, 1, 11, halo);
        else {
            MPI_Recv(&word, 1, MPI_INT, 0, 11, halo, MPI_STATUS_IGNORE);
            CHECK(word == 1, "%d was received", word);
        }
    } else if (strcmp(what, "probe") == 0) {
        if (my_rank == 0) {
            MPI_Probe(1, 13, halo, MPI_STATUS_IGNORE);
            MPI_Recv(&word, 1, MPI_INT, 1, 13, halo, MPI_STATUS_IGNORE);
            CHECK(word == 2, "%d was received", word);
        } else
            MPI_Send(&word, 1, MPI_INT, 0, 13, halo);
    } else {
        MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, halo);
        CHECK(sum == 3, "the sum is %d", sum);
    }
    MPI_Comm_free(&halo);
}

static void receive_while_something_moves(void)
{
    const double end = now_s() + seconds;
    int word = 0, going = 1;
    if (my_rank == 0) {
        while (now_s() < end) {
            MPI_Send(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
            rest(0.1);
            word++;
        }
        going = word;
        MPI_Send(&going, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&going, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < going; i++) {
            MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(word == i, "%d in place of %d", word, i);
        }
    }
}

static void test_in_a_loop(void)
{
    MPI_Request request;
    int word = 6 - my_rank, done = 0;
    if (my_rank == 0) {
        rest(seconds);
        MPI_Send(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
        while (!done) {
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            rest(0.001);
        }
        CHECK(word == 6, "%d was received", word);
    }
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const char *const what = argc == 3 ? argv[1] : "";
    seconds = argc == 3 ? atof(argv[2]) : 0;
    /* connections are made, so that nobody has to wait for one */
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(what, "recv") == 0)
        receive_from_each_other();
    else if (strcmp(what, "slow") == 0)
        receive_while_something_moves();
    else if (strcmp(what, "test") == 0)
        test_in_a_loop();
    else if (strcmp(what, "send") == 0 || strcmp(what, "probe") == 0 ||
             strcmp(what, "collective") == 0)
        wait_for_one_that_computes(what);
    else {
        fprintf(stderr, "stall: want a case and a number of seconds\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return finish("stall");
}
