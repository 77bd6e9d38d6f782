/* A job to be traced (test/lab/trace.sh, docs/trace.svg): messages of each protocol between ranks 0
 * and 1, with known tags, one of them received while rank 1 computes; then everything else that has
 * a protocol of its own.
 * Usage: trace [SECONDS that rank 1 computes at most (less than 0: rank 0 ends without
 * MPI_Finalize) [others]]
 *
 * tag 101: short, its receive posted      tag 102: eager, unexpected
 * tag 103: rendezvous, rank 1 computes    tag 104: short, the answer
 * tag 105: synchronous                    tag 106: to oneself
 */
#include "mpi_test.h"

enum { SHORT = 1024, EAGER = 48 * 1024, RENDEZVOUS = 2 * 1024 * 1024 };
static const double LATER_S = 0.02; /* the other has posted its receive, or left MPI, by then */
static unsigned char data[RENDEZVOUS];

static void expect(int bytes, unsigned seed)
{
    CHECK(pattern_wrong(data, (size_t) bytes, seed) < 0, "message %u", seed);
}

static void messages(double longest)
{
    MPI_Request request;
    volatile unsigned char *last = data + RENDEZVOUS - 1;
    if (my_rank == 0) {
        pattern_fill(data, SHORT, 1);
        compute(LATER_S);
        MPI_Send(data, SHORT, MPI_BYTE, 1, 101, MPI_COMM_WORLD);
        pattern_fill(data, EAGER, 2);
        MPI_Send(data, EAGER, MPI_BYTE, 1, 102, MPI_COMM_WORLD);
        pattern_fill(data, RENDEZVOUS, 3);
        MPI_Barrier(MPI_COMM_WORLD);
        compute(LATER_S);
        MPI_Send(data, RENDEZVOUS, MPI_BYTE, 1, 103, MPI_COMM_WORLD);
        MPI_Recv(data, SHORT, MPI_BYTE, 1, 104, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(SHORT, 4);
    } else if (my_rank == 1) {
        int found = 0;
        MPI_Recv(data, SHORT, MPI_BYTE, 0, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(SHORT, 1);
        while (!found) /* so that it is unexpected */
            MPI_Iprobe(0, 102, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        MPI_Recv(data, EAGER, MPI_BYTE, 0, 102, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(EAGER, 2);
        pattern_fill(data, RENDEZVOUS, 3);
        data[RENDEZVOUS - 1]++;
        MPI_Irecv(data, RENDEZVOUS, MPI_BYTE, 0, 103, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        /* until its last byte is there, which without asynchronous progress never comes */
        for (double end = now_s() + longest;
             now_s() < end && *last != pattern_byte(RENDEZVOUS - 1, 3);)
            compute(10e-6);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(RENDEZVOUS, 3);
        pattern_fill(data, SHORT, 4);
        compute(LATER_S);
        MPI_Send(data, SHORT, MPI_BYTE, 0, 104, MPI_COMM_WORLD);
    }
}

static void others(void)
{
    MPI_Request request;
    MPI_Win window;
    int peer = my_rank ^ 1, one = my_rank + 1;
    if (my_rank == 0) {
        compute(LATER_S);
        MPI_Ssend(data, SHORT, MPI_BYTE, 1, 105, MPI_COMM_WORLD);
    } else if (my_rank == 1)
        MPI_Recv(data, SHORT, MPI_BYTE, 0, 105, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(data, SHORT, MPI_BYTE, my_rank, 106, MPI_COMM_WORLD, &request);
    MPI_Send(data + SHORT, SHORT, MPI_BYTE, my_rank, 106, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Irecv(data, SHORT, MPI_BYTE, MPI_ANY_SOURCE, 107, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    MPI_Win_create(data, RENDEZVOUS, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    if (peer < ranks) {
        static unsigned char own[256 * 1024];
        MPI_Put(&one, sizeof one, MPI_BYTE, peer, 0, sizeof one, MPI_BYTE, window);
        MPI_Put(own, sizeof own, MPI_BYTE, peer, 4096, sizeof own, MPI_BYTE, window);
        MPI_Win_flush(peer, window);
        MPI_Get(&one, sizeof one, MPI_BYTE, peer, 0, sizeof one, MPI_BYTE, window);
        MPI_Get(own, sizeof own, MPI_BYTE, peer, 4096, sizeof own, MPI_BYTE, window);
        MPI_Accumulate(&one, 1, MPI_INT, peer, 1024, 1, MPI_INT, MPI_SUM, window);
        MPI_Win_flush(peer, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && atof(argv[1]) < 0 && my_rank == 0)
        exit(3);
    messages(argc > 1 ? atof(argv[1]) : 0.01);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 2)
        others();
    return finish("trace");
}
