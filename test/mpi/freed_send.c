/* Sends whose requests are freed before they are complete, and MPI_Finalize at once; the receiver
 * is late. MPI guarantees nothing here (MPI 3.1, 8.7), and users expect what they have everywhere
 * else: that the data arrives.
 *   freed_send SECONDS [spawn]    by which the receiver is late; spawn: it is rank 0 of a job that
 *                                 rank 0 starts */
#include <stdbool.h>
#include "mpi_test.h"

#define LENGTHS 4
static const size_t lengths[LENGTHS] = {1000, 100000, 4 << 20, 40 << 20};
static unsigned char *memory[LENGTHS];

static void send_all(MPI_Comm comm)
{
    for (int i = 0; i < LENGTHS; i++) {
        MPI_Request request;
        pattern_fill(memory[i], lengths[i], (unsigned) (my_rank + i));
        MPI_Isend(memory[i], (int) lengths[i], MPI_BYTE, 0, i, comm, &request);
        MPI_Request_free(&request);
    }
}

static void receive_all(MPI_Comm comm, double late, int first, int end)
{
    usleep((useconds_t) (late * 1e6));
    for (int from = first; from < end; from++) {
        for (int i = 0; i < LENGTHS; i++) {
            MPI_Recv(memory[i], (int) lengths[i], MPI_BYTE, from, i, comm, MPI_STATUS_IGNORE);
            CHECK(pattern_wrong(memory[i], lengths[i], (unsigned) (from + i)) < 0,
                  "%zu bytes from %d are wrong", lengths[i], from);
        }
    }
    printf("freed_send: %d checks, %d failed\n", checks_done, checks_failed);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, child;
    start(&argc, &argv);
    const double late = argc > 1 ? atof(argv[1]) : 1;

    for (int i = 0; i < LENGTHS; i++)
        memory[i] = calloc(1, lengths[i]);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        receive_all(parent, late, 0, 1);
    } else if (argc > 2) {
        char *arguments[] = {argv[1], NULL};
        MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child,
                       MPI_ERRCODES_IGNORE);
        if (my_rank == 0)
            send_all(child);
    } else if (my_rank != 0) {
        send_all(MPI_COMM_WORLD);
    } else {
        receive_all(MPI_COMM_WORLD, late, 1, ranks);
    }
    MPI_Finalize();
    return checks_failed != 0;
}
