/* The device's error codes and sentences as MPI errors, and the end of a process that has asked for
 * the end of its job. Used by the other files of the glue, uses none of them. */
#include "lite_impl.h"
/* behind the host's headers, which choose what libc declares */
#include <time.h>

MPIR_Comm *MPIDI_LITE_comm_to_end(MPIR_Comm *comm)
{
    for (int i = 0; comm != NULL && MPIR_Process.comm_world != NULL && i < comm->remote_size; i++)
        if (MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, i)) >= MPIR_Process.size)
            return MPIR_Process.comm_world;
    return comm;
}

int MPIDI_LITE_error(int code, int peer, const char *function, int line)
{
    const char *text = lite_last_error();

    switch (code) {
    case LITE_ERR_TRUNCATE:
        return MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, function, line,
                                    MPI_ERR_TRUNCATE, "**truncate", NULL);
    case LITE_ERR_NOMEM:
        return MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, function, line,
                                    MPI_ERR_NO_MEM, "**nomem", "ch_lite: %s", text);
    case LITE_ERR_PEER_LOST:
        /* Not MPIX_ERR_PROC_FAILED, although that is what it is: this host has no text for that
         * class and would head the message with "Unknown error class". */
        if (peer >= 0)
            return MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, function, line,
                                        MPI_ERR_OTHER, "**comm_fail", "**comm_fail %d %s", peer,
                                        text);
        break;
    default: break;
    }
    return MPIDI_LITE_error_text(MPIR_ERR_RECOVERABLE, text, function, line);
}

/* The host's catalogue has no message for a text from outside; a format that it does not know is
 * used as it stands. */
int MPIDI_LITE_error_text(int fatal, const char *text, const char *function, int line)
{
    return MPIR_Err_create_code(MPI_SUCCESS, fatal, function, line, MPI_ERR_OTHER, "**other",
                                "ch_lite: %s", text);
}

int MPIDI_LITE_port_error(const char *text, const char *function, int line)
{
    return MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, function, line, MPI_ERR_PORT,
                                "**other", "ch_lite: %s", text);
}

/* install-device calls it in the host's MPID_Abort. Since 4.1 the host's client of the process
 * manager does not wait for the kill, and MPI_Abort would return. Up to 3 s, whatever signals come
 * meanwhile, as the kill may be under way; then the process ends by itself. */
void MPIDI_LITE_await_kill(int exit_code)
{
    struct timespec rest = {.tv_sec = 3};

    while (nanosleep(&rest, &rest) != 0) {}
    MPL_exit(exit_code);
}
