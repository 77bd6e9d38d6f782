/* Receives from any source that a loss does not concern: they go on.
 *   bystander serve FILE    two ranks with such receives pending; a caller at their port dies
 *                           before it is accepted (FILE.dead), then they talk, and accept the next
 *                           one
 *   bystander asleep FILE   two ranks without a connection that make no call while such a caller
 *                           comes and dies; then they accept the next one
 *   bystander die FILE      connects, and is killed while it waits
 *   bystander call FILE     connects, and disconnects
 *   bystander rank          rank 2 kills itself, rank 0 has receives from any source pending in
 *                           a communicator with it and in one without */
#include <signal.h>
#include "mpi_test.h"

static void path_of(char *path, size_t size, const char *file, const char *suffix)
{
    snprintf(path, size, "%s%s", file, suffix);
}

static void read_port(const char *file, char *port)
{
    for (int tenths = 0; tenths < 300; tenths++) {
        FILE *in = fopen(file, "r");
        if (in != NULL) {
            const int good = fgets(port, MPI_MAX_PORT_NAME, in) != NULL;
            fclose(in);
            CHECK(good, "no port in %s", file);
            return;
        }
        usleep(100000);
    }
    CHECK(0, "%s does not come", file);
}

/* Rank 0 has a port, in the file. */
static void open_port(const char *file, char *port)
{
    char made[4200];

    if (my_rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        path_of(made, sizeof made, file, ".new");
        FILE *out = fopen(made, "w");
        fputs(port, out);
        fclose(out);
        rename(made, file);
    }
}

/* Whoever is dead is not accepted in place of the next caller. */
static void accept_the_living(const char *port)
{
    MPI_Comm inter;

    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    MPI_Comm_disconnect(&inter);
    if (my_rank == 0)
        MPI_Close_port(port);
}

static void sleep_and_serve(const char *file)
{
    char port[MPI_MAX_PORT_NAME] = "", path[4096];
    int dead = 0;

    open_port(file, port);
    path_of(path, sizeof path, file, ".dead");
    for (const double end = now_s() + 60; !dead && now_s() < end; usleep(1000))
        dead = access(path, F_OK) == 0;
    CHECK(dead, "no %s", path);
    accept_the_living(port);
}

static void serve(const char *file)
{
    char port[MPI_MAX_PORT_NAME] = "", path[4096];
    int got = -1, flag = 0, dead = 0;
    const int other = 1 - my_rank;
    MPI_Request request;

    MPI_Sendrecv(&my_rank, 1, MPI_INT, other, 0, &got, 1, MPI_INT, other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    open_port(file, port);
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &request);
    path_of(path, sizeof path, file, ".dead");
    for (const double end = now_s() + 60; !dead && now_s() < end;) {
        dead = access(path, F_OK) == 0;
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "a receive from any source has ended, nobody has sent");
        usleep(1000);
    }
    CHECK(dead, "no %s", path);
    for (const double end = now_s() + 1; now_s() < end; usleep(1000))
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag, "a receive from any source has ended with the caller");
    MPI_Barrier(MPI_COMM_WORLD); /* nobody sends before both have looked */
    MPI_Send(&my_rank, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(got == other, "%d received", got);
    /* one that is posted after the loss */
    got = -1;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &request);
    MPI_Send(&my_rank, 1, MPI_INT, other, 2, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(got == other, "%d received", got);
    MPI_Barrier(MPI_COMM_WORLD);
    accept_the_living(port);
}

static void call(const char *file, int die)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    read_port(file, port);
    if (die)
        alarm(2);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    CHECK(!die, "it was accepted");
    MPI_Comm_disconnect(&inter);
}

/* Ends without MPI_Finalize, which a dead rank would keep waiting. */
static void lose_a_rank(void)
{
    MPI_Comm sub;
    MPI_Request in_world, in_sub;
    int one = -1, two = -1, code, flag = 0;
    char text[MPI_MAX_ERROR_STRING];
    int length;

    MPI_Comm_split(MPI_COMM_WORLD, my_rank == 2, my_rank, &sub);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(sub, MPI_ERRORS_RETURN);
    if (my_rank == 0) {
        MPI_Irecv(&one, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &in_world);
        MPI_Irecv(&two, 1, MPI_INT, MPI_ANY_SOURCE, 1, sub, &in_sub);
    }
    for (int p = 0; p < 3; p++) {
        int token;
        if (p != my_rank)
            MPI_Sendrecv(&my_rank, 1, MPI_INT, p, 0, &token, 1, MPI_INT, p, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    }
    if (my_rank == 2) {
        sleep(1);
        raise(SIGKILL);
    } else if (my_rank == 1) {
        for (const double end = now_s() + 4; now_s() < end; usleep(1000))
            MPI_Iprobe(0, 9, sub, &flag, MPI_STATUS_IGNORE);
        one = 11;
        code = MPI_Send(&one, 1, MPI_INT, 0, 1, sub);
        CHECK(code == MPI_SUCCESS, "a send beside the loss fails");
        two = 12;
        code = MPI_Send(&two, 1, MPI_INT, 0, 2, sub);
        CHECK(code == MPI_SUCCESS, "a send beside the loss fails");
        MPI_Recv(&one, 1, MPI_INT, 0, 3, sub, MPI_STATUS_IGNORE);
    } else {
        code = MPI_Wait(&in_world, MPI_STATUS_IGNORE);
        CHECK(code != MPI_SUCCESS,
              "a receive from any source in a communicator with the dead rank goes on");
        MPI_Error_string(code, text, &length);
        printf("error: %s\n", text);
        MPI_Test(&in_sub, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "a receive from any source in a communicator without the dead rank has ended");
        code = MPI_Iprobe(MPI_ANY_SOURCE, 5, sub, &flag, MPI_STATUS_IGNORE);
        CHECK(code == MPI_SUCCESS && !flag, "a probe there fails");
        code = MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(code != MPI_SUCCESS, "a probe of the other does not");
        code = MPI_Wait(&in_sub, MPI_STATUS_IGNORE);
        CHECK(code == MPI_SUCCESS && two == 11, "code %d, %d received", code, two);
        code = MPI_Recv(&two, 1, MPI_INT, MPI_ANY_SOURCE, 2, sub, MPI_STATUS_IGNORE);
        CHECK(code == MPI_SUCCESS && two == 12, "posted later: code %d, %d received", code, two);
        MPI_Send(&two, 1, MPI_INT, 1, 3, sub);
    }
    printf("rank %d: %d checks, %d failed\n", my_rank, checks_done, checks_failed);
    fflush(stdout);
    sleep(1);
    _exit(0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    start(&argc, &argv);
    if (strcmp(what, "serve") == 0 && argc > 2)
        serve(argv[2]);
    else if (strcmp(what, "asleep") == 0 && argc > 2)
        sleep_and_serve(argv[2]);
    else if (strcmp(what, "die") == 0 && argc > 2)
        call(argv[2], 1);
    else if (strcmp(what, "call") == 0 && argc > 2)
        call(argv[2], 0);
    else if (strcmp(what, "rank") == 0)
        lose_a_rank();
    else
        CHECK(0, "usage: bystander serve FILE | asleep FILE | die FILE | call FILE | rank");
    return finish(what);
}
