/* A job that meets trouble: trouble CASE FILE. The ranks reach a known point, rank 0 creates FILE.ready, and what happens then depends on CASE:
 *   connect    nothing was sent yet; both wait until FILE.go exists (the test cuts the wire), then rank 0 sends to rank 1
 *   recv       they have talked; rank 0 waits in MPI_Recv for rank 1, which waits for FILE.go and then kills itself by SIGKILL
 *   late       as recv, but rank 0 does not wait: it posts another receive when the loss is known already
 *   fatal      as recv, with MPI_ERRORS_ARE_FATAL: the library has to end the job by itself
 *   first      rank 1 kills itself before any connection exists, then rank 0 sends to it
 *   idle       they have talked; rank 0 waits in MPI_Recv for ever, rank 1 computes for ever (the test cuts the wire)
 *   bulk       rank 0 sends large messages to rank 1 without end (the test cuts the wire)
 * An error that MPI returns is printed as "error: TEXT"; then the rank ends by code 3 where it is the last, else it calls MPI_Abort. */
#include "mpi_test.h"
#include <signal.h>

static int peer_is_killed;
static char ready_name[4096], go_name[4096];

static void wait_for_go(void)
{
    while (access(go_name, F_OK) != 0)
        usleep(10000);
}

static void tell_ready(void)
{
    FILE *f = fopen(ready_name, "w");
    if (!f || fclose(f)) {
        perror(ready_name);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

static void check(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    printf("error: %s: %s\n", call, text);
    fflush(stdout);
    /* mpiexec first passes the news of the dead rank around; it fails when this one is gone by then too */
    sleep(1);
    if (peer_is_killed)
        _exit(3);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char **argv)
{
    /* ignored for mpiexec's sake (lost_peer.sh); a write of ours to a dead peer must not hide behind that */
    signal(SIGPIPE, SIG_DFL);
    start(&argc, &argv);
    if (argc != 3 || ranks != 2) {
        fprintf(stderr, "trouble: want a case, a file and 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const char *what = argv[1];
    snprintf(ready_name, sizeof ready_name, "%s.ready", argv[2]);
    snprintf(go_name, sizeof go_name, "%s.go", argv[2]);
    if (strcmp(what, "fatal") != 0)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    peer_is_killed = strcmp(what, "recv") == 0 || strcmp(what, "late") == 0 || strcmp(what, "fatal") == 0 || strcmp(what, "first") == 0;
    const int talked = strcmp(what, "connect") != 0 && strcmp(what, "first") != 0;
    int token = 0;
    if (talked) {
        if (my_rank == 0) {
            check(MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD), "MPI_Send");
            check(MPI_Recv(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
        } else {
            check(MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
            check(MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD), "MPI_Send");
        }
    }
    if (my_rank == 0)
        tell_ready();

    if (strcmp(what, "connect") == 0) {
        wait_for_go();
        if (my_rank == 0)
            check(MPI_Send(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD), "MPI_Send"),
            check(MPI_Recv(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
        else
            check(MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    } else if (strcmp(what, "recv") == 0 || strcmp(what, "fatal") == 0) {
        if (my_rank == 1) {
            wait_for_go();
            raise(SIGKILL);
        }
        check(MPI_Recv(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    } else if (strcmp(what, "late") == 0) {
        MPI_Request requests[2];
        if (my_rank == 1) {
            wait_for_go();
            raise(SIGKILL);
        }
        check(MPI_Irecv(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]), "MPI_Irecv");
        wait_for_go();
        for (int i = 0; i < 50; i++)
            usleep(10000);
        int other = 0;
        check(MPI_Irecv(&other, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[1]), "MPI_Irecv");
        check(MPI_Wait(&requests[1], MPI_STATUS_IGNORE), "MPI_Wait");
    } else if (strcmp(what, "first") == 0) {
        if (my_rank == 1)
            raise(SIGKILL);
        wait_for_go();
        check(MPI_Send(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD), "MPI_Send");
        check(MPI_Recv(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    } else if (strcmp(what, "idle") == 0) {
        if (my_rank == 1)
            for (;;)
                pause();
        check(MPI_Recv(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    } else if (strcmp(what, "bulk") == 0) {
        static char buffer[8 << 20];
        for (;;) {
            if (my_rank == 0)
                check(MPI_Send(buffer, sizeof buffer, MPI_BYTE, 1, 1, MPI_COMM_WORLD), "MPI_Send");
            else
                check(MPI_Recv(buffer, sizeof buffer, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
        }
    } else {
        fprintf(stderr, "trouble: no case %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return finish("trouble");
}
