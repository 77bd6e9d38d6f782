/* Long accumulates beside unexpected messages: accumulate [MB [MESSAGES]]. The data of an
 * accumulate that the target has to keep until it is whole must not take the place of what the
 * others may send unasked (LITE_UNEXPECTED_MAX). Every other rank accumulates MB megabytes (default
 * 32) in one operation and in small ones onto rank 0, with MESSAGES (default 300) small messages
 * before, between and behind, which rank 0 receives only at the end, in the reverse order. All data
 * is looked at. */
#include "mpi_test.h"

enum { MESSAGE_MAX = 1500 };

static size_t bytes_of(int i)
{
    return 1 + (size_t) i * 37 % MESSAGE_MAX;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const int count = (argc > 1 ? atoi(argv[1]) : 32) * (1 << 20) / (int) sizeof(int),
              messages = argc > 2 ? atoi(argv[2]) : 300;
    const int rounds = 3, part = count / 100;
    int *memory, *data = malloc((size_t) count * sizeof(int));
    MPI_Win win;
    MPI_Win_allocate(my_rank == 0 ? (MPI_Aint) count * (MPI_Aint) sizeof(int) : 0, sizeof(int),
                     MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (int i = 0; i < count; i++)
        data[i] = i % 1000 + my_rank;
    if (my_rank == 0)
        memset(memory, 0, (size_t) count * sizeof(int));
    MPI_Barrier(MPI_COMM_WORLD);

    char(*out)[MESSAGE_MAX] = malloc((size_t) messages * rounds * MESSAGE_MAX);
    MPI_Request *requests = malloc((size_t) messages * rounds * sizeof *requests);
    if (my_rank != 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        for (int round = 0; round < rounds; round++) {
            MPI_Accumulate(data, count, MPI_INT, 0, 0, count, MPI_INT, MPI_SUM, win);
            for (int i = round * messages; i < (round + 1) * messages; i++) {
                pattern_fill(out[i], bytes_of(i), (unsigned) (i + my_rank));
                MPI_Isend(out[i], (int) bytes_of(i), MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
                if (i % 3 == 0)
                    MPI_Accumulate(data + part * (i % 100), 1000, MPI_INT, 0, part * (i % 100),
                                   1000, MPI_INT, MPI_SUM, win);
            }
        }
        MPI_Win_unlock(0, win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall(messages * rounds, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        char in[MESSAGE_MAX];
        for (int i = messages * rounds; i-- > 0;)
            for (int from = 1; from < ranks; from++) {
                MPI_Status status;
                int got = -1;
                MPI_Recv(in, sizeof in, MPI_BYTE, from, i, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_BYTE, &got);
                CHECK(got == (int) bytes_of(i) &&
                          pattern_wrong(in, bytes_of(i), (unsigned) (i + from)) < 0,
                      "message %d from %d is wrong", i, from);
            }
        int *want = calloc((size_t) count, sizeof(int));
        for (int from = 1; from < ranks; from++) {
            for (int i = 0; i < count; i++)
                want[i] += rounds * (i % 1000 + from);
            for (int i = 0; i < messages * rounds; i += 3)
                for (int k = part * (i % 100); k < part * (i % 100) + 1000; k++)
                    want[k] += k % 1000 + from;
        }
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        int wrong = -1;
        for (int i = 0; i < count && wrong < 0; i++)
            if (memory[i] != want[i])
                wrong = i;
        CHECK(wrong < 0, "element %d is %d", wrong, memory[wrong]);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
    return finish("accumulate");
}
