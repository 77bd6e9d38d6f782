/* The program of the campaign of faults (run): victim TRAFFIC FAULT FILE.
 *
 * All ranks keep TRAFFIC going, every byte checked. After some turns rank 0 creates FILE.ready;
 * when FILE.go exists, the last rank does FAULT in the middle of a turn; when FILE.stop exists, all
 * end well, and "victim: N checks, 0 failed" is printed. An error that MPI returns is printed, as
 * "error: CALL: TEXT", and ends the rank by code 3. Each rank leaves its process id in
 * FILE.pid.RANK.
 *
 * TRAFFIC
 *   short (8 bytes), eager (16 KB), long (1 MB), any (8 bytes, from anybody)
 *   collective           reductions and broadcasts
 *   rma                  put, get and accumulate under a shared lock
 *   rma_requests         accumulates with requests
 *   flood, flood_eager   unexpected messages: 2000 of 4 bytes, 200 of 16 KB
 *   dup, split, create, disconnect   a communicator or a window is made in each turn, used and
 * freed none                 no message before FILE.go, then short FAULT: what happens to the last
 * rank none         nothing: something outside of the program goes wrong init         it is killed
 * in MPI_Init (FILE.ready is there before; by the process manager's variables it knows its rank)
 *   kill segv abort terminate      by signal;   mpi_abort  by MPI_Abort
 *   kill_soon    killed within 0.5 ms, wherever it is then;   kill_first  before its first message
 *   throw        by an exception of C++ that nobody catches
 *   exit exit3 quick               it leaves by exit(0), exit(3), _exit(0), without MPI_Finalize
 *   finalize     killed after the last turn; the others hear of it, and call MPI_Finalize
 *   close        it closes every descriptor but 0, 1, 2
 *   fork         100 children, which leave by exit(0);   exec  100 children that become another
 *                program;   popen  20 commands by popen
 *   blocked      it blocks every signal;   ignored  it ignores SIGIO;   taken  it takes SIGIO for
 *                itself
 *   eintr        a timer of 1 kHz interrupts its system calls
 *   memory       its address space may not grow beyond 8 MB more
 *   files        it may open no descriptor more
 *   and those of wire.h */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "wire.h"

static const char *fault, *file;

static int there(const char *what)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.%s", file, what);
    return access(name, F_OK) == 0;
}

static void leave(const char *what, long number)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.%s", file, what);
    FILE *f = fopen(name, "w");
    if (!f || fprintf(f, "%ld\n", number) < 0 || fclose(f) != 0) {
        perror(name);
        _exit(2);
    }
}

static void check(int code, const char *call)
{
    if (code == MPI_SUCCESS)
        return;
    tell_error(code, call);
    /* mpiexec first passes the news of a dead rank around */
    sleep(1);
    _exit(3);
}
#define TRY(name, ...) check(name(__VA_ARGS__), #name)

/* ---- what happens to the last rank ---- */

static void do_nothing(int number)
{
    (void) number;
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void close_all(void)
{
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
}

static void children(int count, int become_another)
{
    for (int i = 0; i < count; i++) {
        const pid_t child = fork();
        int status = -1;
        if (child == 0) {
            if (become_another)
                execlp("true", "true", (char *) NULL);
            exit(become_another);
        }
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
        CHECK(status == 0, "child %d of %d ended with status %d", i, count, status);
    }
}

static void commands(void)
{
    for (int i = 0; i < 20; i++) {
        char line[64] = "";
        FILE *pipe = popen("echo here", "r");
        CHECK(pipe && fgets(line, sizeof line, pipe) && strcmp(line, "here\n") == 0,
              "popen %d: '%s'", i, line);
        if (pipe)
            pclose(pipe);
    }
}

static void limit(int what, rlim_t most)
{
    struct rlimit limits;
    getrlimit(what, &limits);
    limits.rlim_cur = most;
    if (setrlimit(what, &limits) != 0)
        perror("setrlimit");
}

static rlim_t address_space(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld", &pages) != 1)
        perror("/proc/self/statm");
    if (f)
        fclose(f);
    return (rlim_t) pages * (rlim_t) sysconf(_SC_PAGESIZE);
}

static int open_files(void)
{
    int most = 0;
    DIR *directory = opendir("/proc/self/fd");
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (atoi(entry->d_name) > most)
            most = atoi(entry->d_name);
    if (directory)
        closedir(directory);
    return most;
}

/* of throw.cpp, where there is a compiler of C++ */
__attribute__((weak)) void throw_uncaught(void);

static void kill_soon(void)
{
    const struct itimerval soon = {{0, 0}, {0, 500}};
    signal(SIGALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &soon, NULL);
}

static void suffer(void)
{
    sigset_t all;
    const struct itimerval tick = {{0, 1000}, {0, 1000}};
    if (strcmp(fault, "kill") == 0)
        raise(SIGKILL);
    else if (strcmp(fault, "segv") == 0)
        raise(SIGSEGV);
    else if (strcmp(fault, "abort") == 0)
        abort();
    else if (strcmp(fault, "terminate") == 0)
        raise(SIGTERM);
    else if (strcmp(fault, "kill_soon") == 0)
        kill_soon();
    else if (strcmp(fault, "throw") == 0)
        throw_uncaught();
    else if (strcmp(fault, "mpi_abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 5);
    else if (strcmp(fault, "exit") == 0)
        exit(0);
    else if (strcmp(fault, "exit3") == 0)
        exit(3);
    else if (strcmp(fault, "quick") == 0)
        _exit(0);
    else if (strcmp(fault, "close") == 0)
        close_all();
    else if (strcmp(fault, "fork") == 0)
        children(100, 0);
    else if (strcmp(fault, "exec") == 0)
        children(100, 1);
    else if (strcmp(fault, "popen") == 0)
        commands();
    else if (strcmp(fault, "blocked") == 0) {
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    } else if (strcmp(fault, "ignored") == 0)
        signal(SIGIO, SIG_IGN);
    else if (strcmp(fault, "taken") == 0)
        handle(SIGIO, do_nothing);
    else if (strcmp(fault, "eintr") == 0) {
        handle(SIGALRM, do_nothing);
        setitimer(ITIMER_REAL, &tick, NULL);
    } else if (strcmp(fault, "memory") == 0)
        limit(RLIMIT_AS, address_space() + (8 << 20));
    else if (strcmp(fault, "files") == 0)
        limit(RLIMIT_NOFILE, (rlim_t) open_files());
    else if (strcmp(fault, "none") != 0 && strcmp(fault, "init") != 0 &&
             strcmp(fault, "finalize") != 0 && !do_to_the_wire(fault)) {
        fprintf(stderr, "victim: no fault %s\n", fault);
        _exit(2);
    }
}

/* In the middle of a turn: what the turn has to do is under way. Returns once. */
static void middle(void)
{
    static int done;
    if (done || my_rank != ranks - 1 || !there("go"))
        return;
    done = 1;
    suffer();
}

/* ---- traffic: a turn of each kind, by all ranks ---- */

enum { LONG = 1 << 20, EAGER = 16 << 10, SHORT = 8, FLOOD = 2000, FLOOD_EAGER = 200 };
static unsigned char *out_bytes, *in_bytes;
static MPI_Win window;
static int *words;

static void expect(const void *buffer, size_t bytes, unsigned seed, unsigned turn, int from)
{
    const long wrong = pattern_wrong(buffer, bytes, seed);
    CHECK(wrong < 0, "turn %u, %zu bytes from %d: byte %ld is wrong", turn, bytes, from, wrong);
}

static void exchange(unsigned turn, size_t bytes, int from_anybody)
{
    for (int shift = 1; shift < ranks; shift++) {
        const int to = (my_rank + shift) % ranks, from = (my_rank + ranks - shift) % ranks;
        MPI_Request requests[2];
        pattern_fill(out_bytes, bytes, turn + (unsigned) my_rank);
        memset(in_bytes, 0, bytes);
        TRY(MPI_Irecv, in_bytes, (int) bytes, MPI_BYTE, from_anybody ? MPI_ANY_SOURCE : from, shift,
            MPI_COMM_WORLD, &requests[0]);
        TRY(MPI_Isend, out_bytes, (int) bytes, MPI_BYTE, to, shift, MPI_COMM_WORLD, &requests[1]);
        middle();
        TRY(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
        expect(in_bytes, bytes, turn + (unsigned) from, turn, from);
    }
}

static void collective(unsigned turn)
{
    double mine[1000], sums[1000];
    for (int i = 0; i < 1000; i++)
        mine[i] = my_rank + i + (double) turn;
    middle();
    TRY(MPI_Allreduce, mine, sums, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 1000; i++)
        CHECK(sums[i] == ranks * (i + (double) turn) + ranks * (ranks - 1) / 2.0,
              "turn %u: sum %d is %g", turn, i, sums[i]);
    const int root = (int) turn % ranks;
    if (my_rank == root)
        pattern_fill(in_bytes, LONG / 4, turn);
    else
        memset(in_bytes, 0, LONG / 4);
    TRY(MPI_Bcast, in_bytes, LONG / 4, MPI_BYTE, root, MPI_COMM_WORLD);
    expect(in_bytes, LONG / 4, turn, turn, root);
}

/* Every rank has a window of two words for each rank (what was put, what was added up). */
static void one_sided(unsigned turn)
{
    const int target = (my_rank + 1) % ranks, put = (int) turn * ranks + my_rank, one = 1;
    int back[2] = {-1, -1};
    TRY(MPI_Win_lock, MPI_LOCK_SHARED, target, 0, window);
    TRY(MPI_Put, &put, 1, MPI_INT, target, 2 * my_rank, 1, MPI_INT, window);
    TRY(MPI_Accumulate, &one, 1, MPI_INT, target, 2 * my_rank + 1, 1, MPI_INT, MPI_SUM, window);
    middle();
    TRY(MPI_Win_flush, target, window);
    TRY(MPI_Get, back, 2, MPI_INT, target, 2 * my_rank, 2, MPI_INT, window);
    TRY(MPI_Win_unlock, target, window);
    CHECK(back[0] == put && back[1] == (int) turn + 1, "turn %u: %d and %d are in the window", turn,
          back[0], back[1]);
}

static void one_sided_requests(unsigned turn)
{
    const int target = (my_rank + 1) % ranks, one = 1;
    int back = -1;
    MPI_Request first, second;
    TRY(MPI_Win_lock, MPI_LOCK_SHARED, target, 0, window);
    TRY(MPI_Raccumulate, &one, 1, MPI_INT, target, 2 * my_rank, 1, MPI_INT, MPI_SUM, window,
        &first);
    middle();
    TRY(MPI_Rget_accumulate, &one, 1, MPI_INT, &back, 1, MPI_INT, target, 2 * my_rank, 1, MPI_INT,
        MPI_SUM, window, &second);
    TRY(MPI_Wait, &first, MPI_STATUS_IGNORE);
    TRY(MPI_Wait, &second, MPI_STATUS_IGNORE);
    TRY(MPI_Win_unlock, target, window);
    CHECK(back == 2 * (int) turn + 1, "turn %u: %d is in the window", turn, back);
}

static void flood(unsigned turn)
{
    const int to = (my_rank + 1) % ranks, from = (my_rank + ranks - 1) % ranks;
    static MPI_Request requests[FLOOD];
    static int numbers[FLOOD];
    for (int i = 0; i < FLOOD; i++) {
        numbers[i] = (int) turn + i;
        TRY(MPI_Isend, &numbers[i], 1, MPI_INT, to, i, MPI_COMM_WORLD, &requests[i]);
    }
    middle();
    for (int i = FLOOD - 1; i >= 0; i--) { /* from the last one on: all are unexpected */
        int number = -1;
        TRY(MPI_Recv, &number, 1, MPI_INT, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(number == (int) turn + i, "turn %u: message %d is %d", turn, i, number);
    }
    TRY(MPI_Waitall, FLOOD, requests, MPI_STATUSES_IGNORE);
}

static void flood_eager(unsigned turn)
{
    const int to = (my_rank + 1) % ranks, from = (my_rank + ranks - 1) % ranks;
    static MPI_Request requests[FLOOD_EAGER];
    static unsigned char bytes[FLOOD_EAGER][EAGER];
    for (int i = 0; i < FLOOD_EAGER; i++) {
        pattern_fill(bytes[i], EAGER, turn + (unsigned) (my_rank + i));
        TRY(MPI_Isend, bytes[i], EAGER, MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[i]);
    }
    middle();
    for (int i = FLOOD_EAGER - 1; i >= 0; i--) {
        memset(in_bytes, 0, EAGER);
        TRY(MPI_Recv, in_bytes, EAGER, MPI_BYTE, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(in_bytes, EAGER, turn + (unsigned) (from + i), turn, from);
    }
    TRY(MPI_Waitall, FLOOD_EAGER, requests, MPI_STATUSES_IGNORE);
}

/* Everybody's number, once around. */
static void add_up(MPI_Comm comm, unsigned turn)
{
    int members, sum = 0;
    const int one = 1;
    MPI_Comm_size(comm, &members);
    TRY(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == members, "turn %u: sum 0 is %d of %d", turn, sum, members);
}

/* The last rank comes to its fault while the others are in the call, or on their way to it. */
static void communicators(unsigned turn, int split, int disconnect)
{
    MPI_Comm comm;
    middle();
    if (split)
        TRY(MPI_Comm_split, MPI_COMM_WORLD, (int) turn % 2, -my_rank, &comm);
    else
        TRY(MPI_Comm_dup, MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    add_up(comm, turn);
    if (disconnect) {
        middle();
        TRY(MPI_Comm_disconnect, &comm);
    } else {
        TRY(MPI_Comm_free, &comm);
    }
}

static void windows(unsigned turn)
{
    const int target = (my_rank + 1) % ranks, from = (my_rank + ranks - 1) % ranks;
    const int mine = (int) turn * ranks + my_rank;
    int got = -1;
    MPI_Win win;
    middle();
    TRY(MPI_Win_create, &got, sizeof got, sizeof got, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    TRY(MPI_Win_fence, 0, win);
    TRY(MPI_Put, &mine, 1, MPI_INT, target, 0, 1, MPI_INT, win);
    TRY(MPI_Win_fence, 0, win);
    TRY(MPI_Win_free, &win);
    CHECK(got == (int) turn * ranks + from, "turn %u: sum 0 is %d", turn, got);
}

static void one_turn(const char *traffic, unsigned turn)
{
    if (strcmp(traffic, "eager") == 0)
        exchange(turn, EAGER, 0);
    else if (strcmp(traffic, "long") == 0)
        exchange(turn, LONG, 0);
    else if (strcmp(traffic, "any") == 0)
        exchange(turn, SHORT, 1);
    else if (strcmp(traffic, "collective") == 0)
        collective(turn);
    else if (strcmp(traffic, "rma") == 0)
        one_sided(turn);
    else if (strcmp(traffic, "rma_requests") == 0)
        one_sided_requests(turn);
    else if (strcmp(traffic, "flood") == 0)
        flood(turn);
    else if (strcmp(traffic, "flood_eager") == 0)
        flood_eager(turn);
    else if (strcmp(traffic, "dup") == 0)
        communicators(turn, 0, 0);
    else if (strcmp(traffic, "split") == 0)
        communicators(turn, 1, 0);
    else if (strcmp(traffic, "disconnect") == 0)
        communicators(turn, 0, 1);
    else if (strcmp(traffic, "create") == 0)
        windows(turn);
    else
        exchange(turn, SHORT, 0);
}

/* Whether the process manager started this process as the last rank. */
static int will_be_last(void)
{
    const char *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
    if (!rank || !size) {
        rank = getenv("OMPI_COMM_WORLD_RANK");
        size = getenv("OMPI_COMM_WORLD_SIZE");
    }
    return rank && size && atoi(rank) == atoi(size) - 1;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "victim: want traffic, a fault and a file\n");
        return 2;
    }
    const char *traffic = argv[1];
    fault = argv[2];
    file = argv[3];
    if (strcmp(fault, "init") == 0 && will_be_last()) {
        /* within the time that MPI_Init takes */
        const struct itimerval soon = {{0, 0}, {0, 3000}};
        leave("ready", 0);
        while (!there("go"))
            usleep(1000);
        signal(SIGALRM, SIG_DFL);
        setitimer(ITIMER_REAL, &soon, NULL);
    }
    /* ignored for mpiexec's sake (run); a write of ours to a dead peer must not hide behind that */
    signal(SIGPIPE, SIG_DFL);
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char pid[32];
    snprintf(pid, sizeof pid, "pid.%d", my_rank);
    leave(pid, getpid());
    out_bytes = malloc(LONG);
    in_bytes = malloc(LONG);
    if (!out_bytes || !in_bytes)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const int one_sided_calls = strncmp(traffic, "rma", 3) == 0;
    if (one_sided_calls) {
        TRY(MPI_Win_allocate, (MPI_Aint) (2 * ranks) * (MPI_Aint) sizeof *words, sizeof *words,
            MPI_INFO_NULL, MPI_COMM_WORLD, &words, &window);
        MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
        memset(words, 0, (size_t) (2 * ranks) * sizeof *words);
        TRY(MPI_Barrier, MPI_COMM_WORLD);
    }
    if (strcmp(traffic, "none") == 0) {
        /* by which mpiexec tells of a dead rank: MPICH asks it who that is, and mpiexec may die of
         * the answer, and all ranks with it, before one of them has spoken to the dead one */
        if (strncmp(fault, "kill", 4) == 0)
            signal(SIGUSR1, SIG_IGN);
        if (my_rank == 0)
            leave("ready", 0);
        while (!there("go"))
            usleep(1000);
        if (strcmp(fault, "kill_first") == 0) {
            if (my_rank == ranks - 1)
                raise(SIGKILL);
            usleep(300000); /* the others come later */
        }
    }
    int go_on = 1;
    for (unsigned turn = 0; go_on; turn++) {
        one_turn(traffic, turn);
        if (my_rank == 0 && turn == 3 && strcmp(traffic, "none") != 0)
            leave("ready", 0);
        if (turn % 4 == 3) {
            go_on = !there("stop");
            TRY(MPI_Bcast, &go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
    }
    if (one_sided_calls)
        MPI_Win_free(&window);
    free(out_bytes);
    free(in_bytes);
    if (strcmp(fault, "finalize") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (my_rank == ranks - 1)
            raise(SIGKILL);
        /* time to hear of it */
        for (int i = 0, flag; i < 100; i++, usleep(10000))
            MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Finalize();
        return checks_failed != 0;
    }
    return finish("victim");
}
