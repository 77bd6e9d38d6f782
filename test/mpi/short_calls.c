// A target in a loop of calls that make no progress by themselves: rank 1 waits for a word in its
// window by MPI_Win_sync (the loop of a queue lock), rank 0 puts it there, by accumulates and by
// puts in turns. Before that rank 0 sends messages that rank 1 receives at the end: more than the
// signal handler has blocks for. One line: the average and the longest time of a flush.
//   short_calls [ROUNDS [attributes [multiple]]]
// attributes: a communicator is freed while a receive is open, after an attribute has been made:
// only the application's own calls may run what deletes attributes. multiple: with
// MPI_THREAD_MULTIPLE.
#include "mpi_test.h"

#define MESSAGES 20
#define BYTES 20000

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 50;
    static char data[MESSAGES][BYTES];
    MPI_Request sends[MESSAGES], open_receive = MPI_REQUEST_NULL;
    int sent = 0;
    double sum = 0, longest = 0;
    volatile int *memory;
    MPI_Win window;

    MPI_Init_thread(&argc, &argv, argc > 3 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &sent);
    sent = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    *memory = 0;
    MPI_Win_lock_all(0, window);
    MPI_Win_sync(window);
    if (argc > 2) {
        MPI_Comm comm;
        int key;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
        MPI_Irecv(NULL, 0, MPI_BYTE, 1 - my_rank, 8, MPI_COMM_WORLD, &open_receive);
        MPI_Comm_free(&comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int value = 1; value <= rounds; value++) {
        if (my_rank == 0) {
            usleep(1000);  // rank 1 is in its loop
            for (; sent < MESSAGES; sent++) {
                pattern_fill(data[sent], BYTES, (unsigned) sent);
                MPI_Isend(data[sent], BYTES, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &sends[sent]);
            }
            const double began = now_s();
            if (value % 2 == 0)
                MPI_Accumulate(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_REPLACE, window);
            else
                MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
            MPI_Win_flush(1, window);
            const double took = now_s() - began;
            sum += took;
            if (took > longest)
                longest = took;
        } else if (my_rank == 1) {
            do
                MPI_Win_sync(window);
            while (*memory < value);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window);
    if (open_receive != MPI_REQUEST_NULL) {
        MPI_Send(NULL, 0, MPI_BYTE, 1 - my_rank, 8, MPI_COMM_WORLD);
        MPI_Wait(&open_receive, MPI_STATUS_IGNORE);
    }
    if (my_rank == 0) {
        MPI_Waitall(sent, sends, MPI_STATUSES_IGNORE);
    } else if (my_rank == 1) {
        for (int i = 0; rounds > 0 && i < MESSAGES; i++) {
            MPI_Recv(data[i], BYTES, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(pattern_wrong(data[i], BYTES, (unsigned) i) < 0, "message %d", i);
        }
    }
    if (my_rank == 0)
        printf("short_calls: %d flushes, average %.3f ms, longest %.1f ms\n", rounds,
               1e3 * sum / rounds, 1e3 * longest);
    MPI_Win_free(&window);
    MPI_Finalize();
    return checks_failed != 0;
}
