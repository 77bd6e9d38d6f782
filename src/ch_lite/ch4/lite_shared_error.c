/* An intercommunicator is made, merged, duplicated or divided by the leaders of its two groups, who
 * exchange a few messages; then each of them broadcasts what it has got to its group. A leader that
 * had lost the other one returned an error, and its group waited for the broadcast for ever. Here
 * it tells them. Called by lines of scripts/install-device in the host's sources. */
#include "lite_impl.h"

enum { CAUSE_BYTES = 256 };

typedef struct {
    int error_class;
    char cause[CAUSE_BYTES];
} shared_error;

/* The last line of the host's stack of errors, without the place in its source. */
static void describe(int error, char *cause)
{
    char stack[4096] = "";

    MPIR_Err_get_string(error, stack, sizeof(stack), NULL);
    const char *line = strrchr(stack, '\n');
    line = line != NULL ? line + 1 : stack;
    const char *text = strstr(line, ": ");
    snprintf(cause, CAUSE_BYTES, "%s", text != NULL ? text + 2 : line);
}

static int broadcast(shared_error *said, int leader, MPIR_Comm *comm)
{
#if LITE_HOST_SINCE(4, 2, 0)
    return MPIR_Bcast(said, sizeof(*said), MPIDI_LITE_BYTE, leader, comm, MPIDI_LITE_COLL_NO_ERROR);
#else
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    return MPIR_Bcast(said, sizeof(*said), MPI_BYTE, leader, comm, &errflag);
#endif
}

/* MPIC_Sendrecv marks its errors as fatal. The loss of another job need not end this one. */
int MPIDI_LITE_recoverable(int error)
{
    return MPIR_Err_is_fatal(error) ? error & ~ERROR_FATAL_MASK : error;
}

int MPIDI_LITE_share_error(MPIR_Comm *comm, int leader, int error)
{
    shared_error said = {0};

    error = MPIDI_LITE_recoverable(error);
    if (comm->rank == leader && error != MPI_SUCCESS) {
        said.error_class = MPIR_ERR_GET_CLASS(error);
        describe(error, said.cause);
    }
    const int mpi_errno = broadcast(&said, leader, comm);
    if (error != MPI_SUCCESS)
        return error;
    if (mpi_errno != MPI_SUCCESS || said.error_class == MPI_SUCCESS)
        return mpi_errno;
    said.cause[CAUSE_BYTES - 1] = '\0';
    return MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, __func__, __LINE__,
                                said.error_class, "**other", "ch_lite: rank %d, for all: %s",
                                leader, said.cause);
}
