/* Persistent requests to and from MPI_PROC_NULL: active from MPI_Start on, done at once, named by
 * MPI_Waitany and the like, with the status of a receive from nobody. */
#include "mpi_test.h"

enum { SENDS = 4, ALL = SENDS + 1, ROUNDS = 3 };

static void is_from_nobody(const MPI_Status *status, const char *what)
{
    int count = -1;
    MPI_Get_count(status, MPI_INT, &count);
    CHECK(status->MPI_SOURCE == MPI_PROC_NULL, "%s: source %d", what, status->MPI_SOURCE);
    CHECK(status->MPI_TAG == MPI_ANY_TAG, "%s: tag %d", what, status->MPI_TAG);
    CHECK(count == 0, "%s: %d elements", what, count);
}

/* Each request once; the last is the receive. */
static void completed_once(MPI_Request *requests)
{
    int seen[ALL] = {0}, index, indices[ALL], count = 0;
    MPI_Status status, statuses[ALL];

    MPI_Startall(ALL, requests);
    for (int i = 0; i < ALL; i++) {
        MPI_Waitany(ALL, requests, &index, &status);
        CHECK(index >= 0 && index < ALL, "MPI_Waitany: index %d", index);
        if (index >= 0 && index < ALL)
            seen[index]++;
        if (index == SENDS)
            is_from_nobody(&status, "MPI_Waitany");
    }
    for (int i = 0; i < ALL; i++)
        CHECK(seen[i] == 1, "MPI_Waitany: request %d %d times", i, seen[i]);
    MPI_Waitany(ALL, requests, &index, &status);
    CHECK(index == MPI_UNDEFINED, "MPI_Waitany of inactive requests: %d", index);
    MPI_Startall(ALL, requests);
    MPI_Waitsome(ALL, requests, &count, indices, statuses);
    CHECK(count == ALL, "MPI_Waitsome: %d", count);
    for (int i = 0; i < count && count <= ALL; i++)
        if (indices[i] == SENDS)
            is_from_nobody(&statuses[i], "MPI_Waitsome");
}

int main(int argc, char **argv)
{
    MPI_Request requests[ALL];
    MPI_Status status;
    int data = 42, flag = 0;

    start(&argc, &argv);
    MPI_Send_init(&data, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Ssend_init(&data, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Bsend_init(&data, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Rsend_init(&data, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Recv_init(&data, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[SENDS]);
    for (int round = 0; round < ROUNDS; round++) {
        completed_once(requests);
        memset(&status, 0, sizeof status);
        MPI_Start(&requests[SENDS]);
        MPI_Wait(&requests[SENDS], &status);
        is_from_nobody(&status, "MPI_Wait");
        memset(&status, 0, sizeof status);
        MPI_Start(&requests[SENDS]);
        MPI_Test(&requests[SENDS], &flag, &status);
        CHECK(flag, "not done");
        is_from_nobody(&status, "MPI_Test");
        MPI_Startall(ALL, requests);
        MPI_Testall(ALL, requests, &flag, MPI_STATUSES_IGNORE);
        CHECK(flag, "not all done");
    }
    MPI_Startall(ALL, requests);
    for (int i = 0; i < ALL; i++) /* which comes too late */
        MPI_Cancel(&requests[i]);
    MPI_Waitall(ALL, requests, MPI_STATUSES_IGNORE);
    MPI_Startall(ALL, requests); /* freed while they are active */
    for (int i = 0; i < ALL; i++)
        MPI_Request_free(&requests[i]);
    CHECK(data == 42, "the receive has written %d", data);
    return finish("null_ranks");
}
