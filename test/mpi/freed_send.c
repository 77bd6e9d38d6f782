/* Sends whose requests are freed before they are complete, and MPI_Finalize at once; the receiver
 * is late. MPI guarantees nothing here (MPI 3.1, 8.7), and users expect what they have everywhere
 * else: that the data arrives.
 *   freed_send SECONDS    by which the receiver is late */
#include "mpi_test.h"

#define LENGTHS 4
static const size_t lengths[LENGTHS] = {1000, 100000, 4 << 20, 40 << 20};

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const double late = argc > 1 ? atof(argv[1]) : 1;
    unsigned char *memory[LENGTHS];

    for (int i = 0; i < LENGTHS; i++)
        memory[i] = calloc(1, lengths[i]);
    if (my_rank != 0) {
        for (int i = 0; i < LENGTHS; i++) {
            MPI_Request request;
            pattern_fill(memory[i], lengths[i], (unsigned) (my_rank + i));
            MPI_Isend(memory[i], (int) lengths[i], MPI_BYTE, 0, i, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        }
    } else {
        usleep((useconds_t) (late * 1e6));
        for (int from = 1; from < ranks; from++) {
            for (int i = 0; i < LENGTHS; i++) {
                MPI_Recv(memory[i], (int) lengths[i], MPI_BYTE, from, i, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
                CHECK(pattern_wrong(memory[i], lengths[i], (unsigned) (from + i)) < 0,
                      "%zu bytes from %d are wrong", lengths[i], from);
            }
        }
        printf("freed_send: %d checks, %d failed\n", checks_done, checks_failed);
        fflush(stdout);
    }
    MPI_Finalize();
    return checks_failed != 0;
}
