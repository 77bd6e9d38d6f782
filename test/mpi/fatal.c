/* A rank that aborts the job does not return from the call: fatal HOW FILE. The others wait for
 * rank 1, which makes FILE if it returns, or is ended by a fault of memory.
 *   error       an error with MPI_ERRORS_ARE_FATAL
 *   intercomm   the same in an intercommunicator
 *   abort       MPI_Abort of MPI_COMM_WORLD */
#include "mpi_test.h"

#include <fcntl.h>
#include <signal.h>

static const char *file;

/* By one call: the process manager's kill is under way. */
static void tell(int signal)
{
    (void) signal;
    close(open(file, O_CREAT | O_WRONLY, 0600));
    _exit(9);
}

int main(int argc, char **argv)
{
    int number = 0;
    MPI_Comm half, both;
    start(&argc, &argv);
    if (argc != 3)
        return 2;
    file = argv[2];
    signal(SIGSEGV, tell);
    signal(SIGBUS, tell);
    if (strcmp(argv[1], "intercomm") == 0) {
        MPI_Comm_split(MPI_COMM_WORLD, my_rank % 2, my_rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - my_rank % 2, 0, &both);
        if (my_rank == 1)
            MPI_Send(&number, 1, MPI_INT, ranks, 0, both);
        else
            MPI_Recv(&number, 1, MPI_INT, 0, 0, both, MPI_STATUS_IGNORE);
    } else if (my_rank != 1)
        MPI_Recv(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (strcmp(argv[1], "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 7);
    else
        MPI_Send(&number, 1, MPI_INT, ranks, 0, MPI_COMM_WORLD);
    if (my_rank == 1)
        tell(0);
    return 0;
}
