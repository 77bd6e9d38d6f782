/* A job that meets trouble: trouble CASE FILE. The ranks reach a known point, rank 0 creates
 * FILE.ready, and what happens then depends on CASE:
 *
 *   connect    nothing was sent yet; both wait until FILE.go exists (the test cuts the wire), then
 *              rank 0 sends to rank 1, which answers
 *   vanished   nothing was sent yet; both wait until FILE.go exists (the test cuts the wire), then
 *              rank 0 waits in MPI_Recv for rank 1
 *   polled     the same, but rank 0 calls MPI_Test again and again
 *   probed     the same, but rank 0 waits in MPI_Probe
 *   recv       they have talked; rank 0 waits in MPI_Recv for rank 1, which waits for FILE.go and
 *              then kills itself by SIGKILL
 *   late       as recv, but rank 0 does not wait: it posts another receive when the loss is known
 *              already
 *   fatal      as recv, with MPI_ERRORS_ARE_FATAL: the library has to end the job by itself
 *   first      rank 1 kills itself before any connection exists, then rank 0 sends to it
 *   idle       they have talked; rank 0 waits in MPI_Recv for ever, rank 1 computes for ever (the
 *              test cuts the wire)
 *   bulk       rank 0 sends large messages to rank 1 without end (the test cuts the wire)
 *   memory     rank 1 waits in MPI_Recv and has no memory for what rank 0 accumulates onto it
 *   freed      a receive of rank 0 is posted into memory that is unmapped (all but its beginning)
 *              before rank 1 sends
 *   freed_send the same with a send of rank 0 that is under way
 *
 * An error that MPI returns is printed as "error: TEXT"; then the rank ends by code 3 where it is
 * the last, else it calls MPI_Abort. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "mpi_test.h"

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
    if (code == MPI_SUCCESS)
        return;
    tell_error(code, call);
    /* mpiexec first passes the news of the dead rank around; it fails when this one is gone by then
     * too */
    sleep(1);
    if (peer_is_killed)
        _exit(3);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char **argv)
{
    /* ignored for mpiexec's sake (lost_peer.sh); a write of ours to a dead peer must not hide
     * behind that */
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
    peer_is_killed = strcmp(what, "recv") == 0 || strcmp(what, "late") == 0 ||
                     strcmp(what, "fatal") == 0 || strcmp(what, "first") == 0;
    const int talked = strcmp(what, "connect") != 0 && strcmp(what, "first") != 0 &&
                       strcmp(what, "vanished") != 0 && strcmp(what, "polled") != 0 &&
                       strcmp(what, "probed") != 0;
    int token = 0;
    if (talked) {
        if (my_rank == 0) {
            check(MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD), "MPI_Send");
            check(MPI_Recv(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  "MPI_Recv");
        } else {
            check(MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  "MPI_Recv");
            check(MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD), "MPI_Send");
        }
    }
    if (my_rank == 0)
        tell_ready();

    if (strcmp(what, "connect") == 0) {
        wait_for_go();
        if (my_rank == 0)
            check(MPI_Send(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD), "MPI_Send");
        check(MPI_Recv(&token, 1, MPI_INT, 1 - my_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
              "MPI_Recv");
        if (my_rank == 1)
            check(MPI_Send(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD), "MPI_Send");
    } else if (strcmp(what, "vanished") == 0 || strcmp(what, "polled") == 0 ||
               strcmp(what, "probed") == 0) {
        MPI_Request request;
        int done = 0;
        wait_for_go();
        if (my_rank == 1)
            for (;;)
                pause();
        if (strcmp(what, "probed") == 0)
            check(MPI_Probe(1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Probe");
        if (strcmp(what, "vanished") == 0 || strcmp(what, "probed") == 0)
            check(MPI_Recv(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  "MPI_Recv");
        else
            check(MPI_Irecv(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request), "MPI_Irecv");
        while (!done) {
            check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
            usleep(1000);
        }
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
                check(MPI_Recv(buffer, sizeof buffer, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
                               MPI_STATUS_IGNORE),
                      "MPI_Recv");
        }
    } else if (strcmp(what, "memory") == 0) {
        static int window_memory[16];
        const int count = 64 << 20; /* of int */
        MPI_Win win;
        int *data = my_rank == 0 ? calloc(count, sizeof *data) : NULL;
        void *base = my_rank == 1 ? mmap(NULL, (size_t) count * 4, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                  : window_memory;
        check(MPI_Win_create(base,
                             my_rank == 1 ? (MPI_Aint) count * 4 : (MPI_Aint) sizeof window_memory,
                             4, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
              "MPI_Win_create");
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        if (my_rank == 1) {
            long pages = 0;
            FILE *statm = fopen("/proc/self/statm", "r");
            if (!statm || fscanf(statm, "%ld", &pages) != 1)
                MPI_Abort(MPI_COMM_WORLD, 2);
            fclose(statm);
            const struct rlimit limit = {
                (rlim_t) pages * (rlim_t) sysconf(_SC_PAGESIZE) + (64 << 20), RLIM_INFINITY};
            if (setrlimit(RLIMIT_AS, &limit))
                MPI_Abort(MPI_COMM_WORLD, 2);
        }
        check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        if (my_rank == 0) {
            check(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win), "MPI_Win_lock");
            check(MPI_Accumulate(data, count, MPI_INT, 1, 0, count, MPI_INT, MPI_SUM, win),
                  "MPI_Accumulate");
            check(MPI_Win_unlock(1, win), "MPI_Win_unlock");
            check(MPI_Send(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD), "MPI_Send");
        } else {
            const int code = MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            int class = MPI_SUCCESS;
            MPI_Error_class(code, &class);
            if (class == MPI_ERR_NO_MEM)
                printf("class: MPI_ERR_NO_MEM\n");
            check(code, "MPI_Recv");
        }
    } else if (strcmp(what, "freed") == 0 || strcmp(what, "freed_send") == 0) {
        const size_t bytes = 64 << 20,
                     there = (1 << 20) + 5 * 4096; /* the hole begins inside of a frame */
        const int sends = strcmp(what, "freed_send") == 0;
        char *memory =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MPI_Request request;
        if (my_rank == 1) {
            check(MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  "MPI_Recv");
            if (sends)
                check(MPI_Recv(memory, (int) bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD,
                               MPI_STATUS_IGNORE),
                      "MPI_Recv");
            else
                check(MPI_Send(memory, (int) bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD), "MPI_Send");
        } else {
            if (sends)
                check(MPI_Isend(memory, (int) bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request),
                      "MPI_Isend");
            else
                check(MPI_Irecv(memory, (int) bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request),
                      "MPI_Irecv");
            munmap(memory + there, bytes - there);
            check(MPI_Send(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD), "MPI_Send");
            check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        }
    } else {
        fprintf(stderr, "trouble: no case %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return finish("trouble");
}
