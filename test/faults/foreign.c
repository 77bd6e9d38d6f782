/* Two jobs that meet, of which one dies (run): foreign ROLE FAULT FILE.
 *
 * ROLE    server   opens a port, whose name it leaves in FILE.port, and accepts until a caller has
 *                  stayed to the end
 *         caller   connects, and talks to the server
 *         parent   spawns two processes, and talks to them;   child  one of these
 * FAULT   none, or ROLE-PHASE: who dies, and when
 *         before       the server with its port open, before it accepts; the caller while it waits
 *                      for that; the child before MPI_Init
 *         init         (child) its last rank is killed in MPI_Init
 *         joining      the last rank dies in place of the call by which the jobs meet
 *         exchange     rank 0 is killed within 2 ms, in that call
 *         connected    the last rank dies in the middle of a message
 *         merge, dup, split, create   (caller) rank 0, which speaks for its group, dies in place of
 *                      MPI_Intercomm_merge, MPI_Comm_dup, MPI_Comm_split, MPI_Comm_create
 *         collectives  (caller) the same, in place of MPI_Barrier, MPI_Bcast and others
 *         disconnect   the last rank dies in place of MPI_Comm_disconnect
 *         network-connected   nobody dies: something outside of the program goes wrong
 *
 * FILE.ready is there when the fault begins. Whoever is left says each error of MPI, as "error:
 * CALL: TEXT", and goes on with what it can still do: the server with its next caller, all with
 * their own job. Then "foreign: N checks, 0 failed" is printed. */
#include <signal.h>
#include <sys/time.h>
#include "../mpi/mpi_test.h"

enum { TURNS = 20, LONG = 1 << 20 };
static const char *fault, *file, *role;
static int errors;

static int there(const char *what)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.%s", file, what);
    return access(name, F_OK) == 0;
}

static void leave(const char *what, const char *text)
{
    char name[4096], made[4200];
    snprintf(name, sizeof name, "%s.%s", file, what);
    snprintf(made, sizeof made, "%s.%s.%d", name, role, my_rank);
    FILE *f = fopen(made, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0 || rename(made, name) != 0) {
        perror(name);
        _exit(2);
    }
}

static void await(const char *what)
{
    for (int tenths = 0; !there(what); tenths++) {
        if (tenths == 300) {
            fprintf(stderr, "foreign: no %s.%s\n", file, what);
            _exit(2);
        }
        rest(0.1);
    }
}

/* Whether this is the moment at which this role dies. */
static int is_time(const char *phase)
{
    const size_t length = strlen(role);
    return strncmp(fault, role, length) == 0 && fault[length] == '-' &&
           strcmp(fault + length + 1, phase) == 0;
}

static void die_within(int microseconds)
{
    const struct itimerval soon = {{0, 0}, {0, microseconds}};
    leave("ready", "");
    signal(SIGALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &soon, NULL);
}

static void die_if(const char *phase)
{
    if (my_rank != ranks - 1 || !is_time(phase))
        return;
    leave("ready", "");
    raise(SIGKILL);
    leave("survived", ""); /* run looks for it */
}

/* Before the call by which the jobs meet. */
static void come_to_the_call(void)
{
    die_if("joining");
    if (my_rank == 0 && is_time("exchange"))
        die_within(2000);
}

static int went_well(int code, const char *call)
{
    if (code != MPI_SUCCESS) {
        errors++;
        tell_error(code, call);
    }
    return code == MPI_SUCCESS;
}
#define TRY(name, ...) went_well(name(__VA_ARGS__), #name)

/* Each with the one of its number on the other side. */
static int talk(MPI_Comm inter)
{
    static unsigned char out[LONG], in[LONG];
    const int until_it_breaks = strncmp(fault, "network", 7) == 0;
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    for (unsigned turn = 0; turn < TURNS || until_it_breaks; turn++) {
        static const int sizes[] = {8, 16 << 10, LONG};
        const int bytes = sizes[turn % 3];
        MPI_Request request;
        pattern_fill(out, (size_t) bytes, turn + (unsigned) my_rank);
        memset(in, 0, (size_t) bytes);
        if (!TRY(MPI_Irecv, in, bytes, MPI_BYTE, my_rank, 1, inter, &request))
            return 0;
        if (turn == TURNS / 2) {
            die_if("connected");
            if (until_it_breaks && my_rank == 0)
                leave("ready", "");
        }
        const int sent = TRY(MPI_Send, out, bytes, MPI_BYTE, my_rank, 1, inter);
        if (!TRY(MPI_Wait, &request, MPI_STATUS_IGNORE) || !sent)
            return 0;
        const long wrong = pattern_wrong(in, (size_t) bytes, turn + (unsigned) my_rank);
        CHECK(wrong < 0, "turn %u, %d bytes from %d: byte %ld is wrong", turn, bytes, my_rank,
              wrong);
    }
    return 1;
}

/* All of this job, whose other ranks may have met nobody. */
static int all_of_us(int good)
{
    int all = 0;
    TRY(MPI_Allreduce, &good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

static int phase_is(const char *phase)
{
    const char *dash = strchr(fault, '-');
    return dash && strcmp(dash + 1, phase) == 0;
}

/* Each has an error on all of this group, as they get something of rank 0 of the other one; the
 * last two on rank 0. Whoever has it, nobody waits. */
#define CALL(call, ...) (name = #call, code = call(__VA_ARGS__))
static int communicate(MPI_Comm inter)
{
    enum { ITEMS = 4, RANKS_MAX = 64 };
    static int out[ITEMS * RANKS_MAX], in[ITEMS * RANKS_MAX], counts[RANKS_MAX], places[RANKS_MAX];
    int size = 0, told = 0;
    const int root = my_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Comm_remote_size(inter, &size);
    for (int i = 0; i < size; i++) {
        counts[i] = ITEMS;
        places[i] = ITEMS * i;
    }
    for (int call = 0; call < 11; call++) {
        int code = MPI_SUCCESS;
        const char *name = "";
        switch (call) {
        case 0: CALL(MPI_Barrier, inter); break;
        case 1: CALL(MPI_Bcast, in, ITEMS, MPI_INT, 0, inter); break;
        case 2: CALL(MPI_Scatter, out, ITEMS, MPI_INT, in, ITEMS, MPI_INT, 0, inter); break;
        case 3: CALL(MPI_Allgather, out, ITEMS, MPI_INT, in, ITEMS, MPI_INT, inter); break;
        case 4:
            CALL(MPI_Allgatherv, out, ITEMS, MPI_INT, in, counts, places, MPI_INT, inter);
            break;
        case 5: CALL(MPI_Allreduce, out, in, ITEMS, MPI_INT, MPI_SUM, inter); break;
        case 6: CALL(MPI_Alltoall, out, ITEMS, MPI_INT, in, ITEMS, MPI_INT, inter); break;
        case 7:
            CALL(MPI_Alltoallv, out, counts, places, MPI_INT, in, counts, places, MPI_INT, inter);
            break;
        case 8: CALL(MPI_Reduce_scatter_block, out, in, ITEMS, MPI_INT, MPI_SUM, inter); break;
        case 9: CALL(MPI_Gather, out, ITEMS, MPI_INT, in, ITEMS, MPI_INT, root, inter); break;
        default: CALL(MPI_Reduce, out, in, ITEMS, MPI_INT, MPI_SUM, root, inter); break;
        }
        if (code != MPI_SUCCESS && told++ == 0)
            went_well(code, name);
        CHECK(code != MPI_SUCCESS || (call >= 9 && my_rank != 0), "%s: no error", name);
    }
    return told == 0;
}

static int make_of(MPI_Comm inter, MPI_Comm *made)
{
    MPI_Group group;
    if (phase_is("collectives"))
        return communicate(inter);
    if (phase_is("merge"))
        return TRY(MPI_Intercomm_merge, inter, strcmp(role, "server") == 0, made);
    if (phase_is("dup"))
        return TRY(MPI_Comm_dup, inter, made);
    if (phase_is("split"))
        return TRY(MPI_Comm_split, inter, 0, my_rank, made);
    MPI_Comm_group(inter, &group);
    const int good = TRY(MPI_Comm_create, inter, group, made);
    MPI_Group_free(&group);
    return good;
}

/* The first visitor only: the next one makes nothing. */
static int make_something(MPI_Comm inter)
{
    static int visits;
    MPI_Comm made = MPI_COMM_NULL;
    if (visits++ > 0 || !(phase_is("merge") || phase_is("dup") || phase_is("split") ||
                          phase_is("create") || phase_is("collectives")))
        return 1;
    if (!TRY(MPI_Barrier, inter))
        return 0;
    if (my_rank == 0 && strcmp(role, "caller") == 0) {
        rest(0.5); /* all others are in the call */
        leave("ready", "");
        raise(SIGKILL);
    }
    const int good = make_of(inter, &made);
    if (made != MPI_COMM_NULL)
        MPI_Comm_free(&made);
    return good;
}

/* Whether it was a visit to the end. */
static int meet(int code, const char *call, MPI_Comm *inter)
{
    if (!went_well(code, call))
        return 0;
    const int stayed = talk(*inter) && make_something(*inter);
    die_if("disconnect");
    return TRY(MPI_Comm_disconnect, inter) && stayed;
}

static void serve(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int stayed = 0;
    if (my_rank == 0) {
        TRY(MPI_Open_port, MPI_INFO_NULL, port);
        leave("port", port);
    }
    if (is_time("before")) {
        await("calling");
        rest(0.5);
        die_if("before");
        rest(60);
    }
    if (strcmp(fault, "caller-before") == 0) {
        await("ready");
        rest(2);
    }
    for (int calls = 0; !stayed && calls < 3 && errors < 20; calls++) {
        MPI_Comm inter = MPI_COMM_NULL;
        come_to_the_call();
        const int code = MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        stayed = all_of_us(meet(code, "MPI_Comm_accept", &inter));
        if (strncmp(fault, "caller", 6) != 0)
            return; /* no other caller will come */
    }
    CHECK(stayed, "no caller has stayed");
    if (my_rank == 0)
        MPI_Close_port(port);
}

static void call(void)
{
    char port[MPI_MAX_PORT_NAME] = "", name[4096];
    MPI_Comm inter = MPI_COMM_NULL;
    if (my_rank == 0) {
        await("port");
        snprintf(name, sizeof name, "%s.port", file);
        FILE *in = fopen(name, "r");
        CHECK(in && fgets(port, sizeof port, in), "no port in %s", name);
        if (in)
            fclose(in);
        if (strncmp(fault, "server", 6) == 0)
            leave("calling", "");
        if (strcmp(fault, "server-joining") == 0 || strcmp(fault, "server-exchange") == 0)
            rest(0.5);
    }
    if (my_rank == 0 && is_time("before"))
        die_within(500000);
    come_to_the_call();
    const int code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    all_of_us(meet(code, "MPI_Comm_connect", &inter));
}

static void spawn(char *program)
{
    MPI_Comm children = MPI_COMM_NULL;
    char *arguments[] = {"child", (char *) fault, (char *) file, NULL};
    int codes[2];
    come_to_the_call();
    const int code =
        MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes);
    all_of_us(meet(code, "MPI_Comm_spawn", &children));
}

static void be_a_child(void)
{
    MPI_Comm parent = MPI_COMM_NULL;
    MPI_Comm_get_parent(&parent);
    CHECK(parent != MPI_COMM_NULL, "no parent");
    if (parent != MPI_COMM_NULL)
        all_of_us(meet(MPI_SUCCESS, "MPI_Comm_get_parent", &parent));
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "foreign: want a role, a fault and a file\n");
        return 2;
    }
    role = argv[1];
    fault = argv[2];
    file = argv[3];
    const char *rank = getenv("PMI_RANK");
    if (rank && atoi(rank) == 1 && strcmp(role, "child") == 0) {
        if (is_time("before")) {
            leave("ready", "");
            raise(SIGKILL);
        } else if (is_time("init")) {
            die_within(3000);
        }
    }
    signal(SIGPIPE, SIG_DFL);
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    char pid[32], number[32];
    snprintf(
        pid, sizeof pid, "pid.%d",
        strcmp(role, "server") == 0 || strcmp(role, "parent") == 0 ? my_rank : ranks + my_rank);
    snprintf(number, sizeof number, "%d", (int) getpid());
    leave(pid, number);
    if (strcmp(role, "server") == 0)
        serve();
    else if (strcmp(role, "caller") == 0)
        call();
    else if (strcmp(role, "parent") == 0)
        spawn(argv[0]);
    else if (strcmp(role, "child") == 0)
        be_a_child();
    else
        CHECK(0, "no role %s", role);
    /* of a job that mpiexec does not end when a rank dies: MPI_Finalize waits for that rank */
    const int job_is_whole = strcmp(role, "server") == 0 || strcmp(role, "caller") == 0;
    if (errors > 0 && !job_is_whole) {
        rest(1);
        _exit(3);
    }
    if (strcmp(role, "child") == 0)
        return finish("child");
    return finish("foreign");
}
