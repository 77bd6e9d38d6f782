/* Rank 0 sends COUNT messages of each SIZE to rank 1: messages COUNT [SIZE…]. The sender waits for
 * each before the next, so that credits never run out; what the counters of two runs differ by is
 * exactly these messages. */
#include "mpi_test.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const int count = argc > 1 ? atoi(argv[1]) : 0;
    for (int a = 2; a < argc; a++) {
        const size_t bytes = strtoul(argv[a], NULL, 0);
        unsigned char *buffer = malloc(bytes ? bytes : 1);
        if (!buffer)
            MPI_Abort(MPI_COMM_WORLD, 2);
        for (int i = 0; i < count; i++) {
            const unsigned seed = (unsigned) (a * 100 + i);
            if (my_rank == 0) {
                pattern_fill(buffer, bytes, seed);
                MPI_Send(buffer, (int) bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD);
            } else if (my_rank == 1) {
                memset(buffer, 0, bytes);
                MPI_Recv(buffer, (int) bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                const long wrong = pattern_wrong(buffer, bytes, seed);
                CHECK(wrong < 0, "message %d of %zu bytes: byte %ld is wrong", i, bytes, wrong);
            }
        }
        free(buffer);
    }
    return finish("messages");
}
