/* MPI_Testall over persistent collectives and partitioned messages beside ordinary requests: no
 * error, and all are done at last. Two ranks or more. */
#include "mpi_test.h"

enum { PARTS = 4, ROUNDS = 20 };

static void test_until_all(int count, MPI_Request *requests, const char *what)
{
    MPI_Status statuses[4];
    int flag = 0, code = MPI_SUCCESS;
    const double end = now_s() + 20;

    while (!flag && code == MPI_SUCCESS && now_s() < end)
        code = MPI_Testall(count, requests, &flag, statuses);
    CHECK(code == MPI_SUCCESS, "%s: code %d", what, code);
    CHECK(flag, "%s: not done after 20 s", what);
}

int main(int argc, char **argv)
{
    MPI_Request requests[4];
    double parts[PARTS];
    int sum = 0, from = -1;

    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Allreduce_init(&my_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[1]);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Startall(2, requests);
        MPI_Irecv(&from, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(&my_rank, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[3]);
        test_until_all(4, requests, "collectives beside messages");
        CHECK(sum == ranks * (ranks - 1) / 2, "the sum is %d", sum);
        CHECK(from == before, "%d instead of %d", from, before);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    for (int i = 0; i < PARTS; i++)
        parts[i] = my_rank == 0 ? i + 1 : 0;
    if (my_rank == 0)
        MPI_Psend_init(parts, PARTS, 1, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[0]);
    else if (my_rank == 1)
        MPI_Precv_init(parts, PARTS, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[0]);
    for (int round = 0; round < ROUNDS && my_rank < 2; round++) {
        MPI_Start(&requests[0]);
        for (int i = 0; i < PARTS && my_rank == 0; i++)
            MPI_Pready(i, requests[0]);
        test_until_all(1, requests, "partitioned message");
        CHECK(parts[PARTS - 1] == PARTS, "the last part is %g", parts[PARTS - 1]);
    }
    if (my_rank < 2)
        MPI_Request_free(&requests[0]);
    return finish("testall");
}
