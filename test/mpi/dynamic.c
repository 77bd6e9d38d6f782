/* Dynamic processes: two jobs that connect by a port, names that must not connect, spawn; traffic
 * of every protocol over the intercommunicator and over the merged one. dynamic accept FILE ROUNDS
 * opens a port, leaves its name in FILE, accepts ROUNDS times, closes the port, leaves FILE.closed
 *   dynamic connect FILE ROUNDS      connects as often
 *   dynamic refused FILE             tries names that must not work, then the right one once, then
 *                                    that of the closed port (with accept FILE 1)
 *   dynamic entertain FILE GUESTS MOST   (one rank) accepts GUESTS jobs, MOST at a time
 *   dynamic visit FILE NUMBER        (one rank) is one of them
 *   dynamic spawn N                  starts N processes and talks to them */
#include "mpi_test.h"

static const int sizes[] = {0, 1, 8, 1000, 4096, 5000, 100000, 262145, 3000000};
#define SIZES ((int) (sizeof sizes / sizeof *sizes))

/* Everybody sends a message of every size to everybody on the other side and receives as many from
 * anybody; alternately synchronous. */
static void everybody_to_everybody(MPI_Comm comm, int partners, unsigned seed)
{
    int me;
    MPI_Comm_rank(comm, &me);
    for (int s = 0; s < SIZES; s++) {
        char *out = malloc((size_t) sizes[s] + 1), *in = malloc((size_t) sizes[s] + 1);
        MPI_Request *requests = malloc((size_t) partners * sizeof *requests);
        pattern_fill(out, (size_t) sizes[s], seed + (unsigned) (me + s));
        for (int p = 0; p < partners; p++)
            (s % 2 ? MPI_Issend : MPI_Isend)(out, sizes[s], MPI_BYTE, p, s, comm, &requests[p]);
        for (int p = 0; p < partners; p++) {
            MPI_Status status;
            int count;
            MPI_Recv(in, sizes[s] + 1, MPI_BYTE, MPI_ANY_SOURCE, s, comm, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK(count == sizes[s], "%d bytes from %d, want %d", count, status.MPI_SOURCE,
                  sizes[s]);
            CHECK(
                pattern_wrong(in, (size_t) sizes[s], seed + (unsigned) (status.MPI_SOURCE + s)) < 0,
                "wrong data of %d bytes from %d", count, status.MPI_SOURCE);
        }
        MPI_Waitall(partners, requests, MPI_STATUSES_IGNORE);
        free(requests);
        free(in);
        free(out);
    }
}

/* Memory of processes of both jobs. */
static void one_sided(MPI_Comm comm)
{
    int me, all;
    MPI_Win win;
    int *memory;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    MPI_Win_allocate((MPI_Aint) all * (MPI_Aint) sizeof(int), sizeof(int), MPI_INFO_NULL, comm,
                     &memory, &win);
    MPI_Win_fence(0, win);
    for (int p = 0; p < all; p++) {
        const int mine = 1000 * me + p;
        MPI_Put(&mine, 1, MPI_INT, p, me, 1, MPI_INT, win);
        MPI_Win_fence(0, win);
    }
    for (int p = 0; p < all; p++)
        CHECK(memory[p] == 1000 * p + me, "%d put by %d", memory[p], p);
    MPI_Win_free(&win);
}

/* What the host does by active messages of its own, of all kinds: types with holes, accumulates,
 * locks, partitioned communication. */
static void by_active_messages(MPI_Comm comm)
{
    enum { COLUMN = 600 };
    int me, all;
    MPI_Win win;
    int *memory, *out;
    MPI_Datatype column, long_column;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    const int row = 2 * all;
    out = malloc(COLUMN * sizeof *out);
    MPI_Type_vector(8, 1, row, MPI_INT, &column);
    MPI_Type_commit(&column);
    {
        int places[COLUMN]; /* does not flatten into a few bytes */
        for (int i = 0; i < COLUMN; i++)
            places[i] = row * i + i % 2;
        MPI_Type_create_indexed_block(COLUMN, 1, places, MPI_INT, &long_column);
        MPI_Type_commit(&long_column);
    }
    MPI_Win_allocate((MPI_Aint) row * COLUMN * (MPI_Aint) sizeof(int), sizeof(int), MPI_INFO_NULL,
                     comm, &memory, &win);
    memset(memory, 0, (size_t) row * COLUMN * sizeof(int));
    for (int i = 0; i < COLUMN; i++)
        out[i] = 100 * me + i;
    MPI_Win_fence(0, win);
    for (int p = 0; p < all; p++)
        MPI_Put(out, 8, MPI_INT, p, 2 * me, 1, column, win);
    MPI_Win_fence(0, win);
    for (int p = 0; p < all; p++)
        for (int i = 0; i < 8; i++)
            CHECK(memory[row * i + 2 * p] == 100 * p + i, "%d put by %d", memory[row * i + 2 * p],
                  p);
    MPI_Win_fence(0, win);
    for (int p = 0; p < all; p++)
        MPI_Put(out, COLUMN, MPI_INT, p, 2 * me, 1, long_column, win);
    MPI_Win_fence(0, win);
    for (int p = 0; p < all; p++)
        for (int i = 0; i < COLUMN; i++)
            CHECK(memory[row * i + 2 * p + i % 2] == 100 * p + i, "place %d put by %d", i, p);
    for (int p = 0; p < all; p++) {
        int back[COLUMN];
        MPI_Win_lock(MPI_LOCK_SHARED, p, 0, win);
        MPI_Get(back, COLUMN, MPI_INT, p, 2 * me, 1, long_column, win);
        MPI_Win_unlock(p, win);
        CHECK(memcmp(back, out, sizeof back) == 0, "a get of what was put at %d", p);
    }
    MPI_Barrier(comm);
    memset(memory, 0, (size_t) row * COLUMN * sizeof(int));
    MPI_Win_fence(0, win);
    for (int p = 0; p < all; p++) {
        MPI_Accumulate(out, 1, MPI_INT, p, 0, 1, MPI_INT, MPI_SUM, win);
        MPI_Accumulate(out, 8, MPI_INT, p, 1, 1, column, MPI_SUM, win);
    }
    MPI_Win_fence(0, win);
    CHECK(memory[0] == 100 * all * (all - 1) / 2, "sum %d", memory[0]);
    CHECK(memory[row + 1] == 100 * all * (all - 1) / 2 + all, "sum %d", memory[row + 1]);
    MPI_Win_lock_all(0, win);
    for (int p = 0; p < all; p++) {
        const int one = 1, none = 0, mine = me + 1;
        int was = -1, swapped = -1;
        MPI_Fetch_and_op(&one, &was, MPI_INT, p, 2, MPI_SUM, win);
        MPI_Compare_and_swap(&mine, &none, &swapped, MPI_INT, p, 3, win);
        MPI_Get_accumulate(&one, 1, MPI_INT, &was, 1, MPI_INT, p, 2, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_flush(p, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(comm);
    CHECK(memory[2] == 2 * all, "%d counted", memory[2]);
    CHECK(memory[3] > 0 && memory[3] <= all, "%d swapped in", memory[3]);
    MPI_Win_free(&win);

    MPI_Request halves[2];
    int in[2] = {-1, -1}, mine[2] = {me, me + 1000};
    const int next = (me + 1) % all, before = (me + all - 1) % all;
    MPI_Psend_init(mine, 2, 1, MPI_INT, next, 5, comm, MPI_INFO_NULL, &halves[0]);
    MPI_Precv_init(in, 2, 1, MPI_INT, before, 5, comm, MPI_INFO_NULL, &halves[1]);
    MPI_Startall(2, halves);
    MPI_Pready(0, halves[0]);
    MPI_Pready(1, halves[0]);
    MPI_Waitall(2, halves, MPI_STATUSES_IGNORE);
    CHECK(in[0] == before && in[1] == before + 1000, "%d and %d received in parts", in[0], in[1]);
    MPI_Request_free(&halves[0]);
    MPI_Request_free(&halves[1]);
    MPI_Type_free(&column);
    MPI_Type_free(&long_column);
    free(out);
}

/* Processes of the other job are none of ours, though they have the same numbers there. */
static void groups_of_both(MPI_Comm inter, MPI_Comm merged)
{
    MPI_Group ours, theirs, all, both, left, none;
    int how, size, remote, zero = 0, place;
    MPI_Comm_group(inter, &ours);
    MPI_Comm_remote_group(inter, &theirs);
    MPI_Comm_group(merged, &all);
    MPI_Group_union(ours, theirs, &both);
    MPI_Group_compare(both, all, &how);
    CHECK(how == MPI_IDENT || how == MPI_SIMILAR, "both jobs are another group than all of them");
    MPI_Group_difference(all, theirs, &left);
    MPI_Group_compare(left, ours, &how);
    CHECK(how == MPI_IDENT, "all without the others is another group than ours");
    MPI_Group_intersection(ours, theirs, &none);
    MPI_Group_size(none, &size);
    CHECK(size == 0, "%d processes are of both jobs", size);
    MPI_Group_translate_ranks(theirs, 1, &zero, ours, &place);
    CHECK(place == MPI_UNDEFINED, "the other job's first process is our rank %d", place);
    MPI_Group_size(all, &size);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Group_translate_ranks(theirs, 1, &zero, all, &place);
    CHECK(place == 0 || place == size - remote, "the other job's first process is rank %d", place);
    MPI_Group_free(&none);
    MPI_Group_free(&left);
    MPI_Group_free(&both);
    MPI_Group_free(&all);
    MPI_Group_free(&theirs);
    MPI_Group_free(&ours);
}

static void talk(MPI_Comm inter)
{
    int remote, all, me, sum, mine = 1;
    MPI_Comm merged;
    MPI_Comm_remote_size(inter, &remote);
    everybody_to_everybody(inter, remote, 3);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == remote, "%d on the other side, want %d", sum, remote);
    MPI_Intercomm_merge(inter, 0, &merged);
    MPI_Comm_size(merged, &all);
    MPI_Comm_rank(merged, &me);
    groups_of_both(inter, merged);
    everybody_to_everybody(merged, all, 7);
    one_sided(merged);
    by_active_messages(merged);
    MPI_Barrier(merged);
    MPI_Comm_free(&merged);
    everybody_to_everybody(MPI_COMM_WORLD, ranks, 11);
    MPI_Barrier(inter);
}

static void leave_name(const char *file, const char *suffix, const char *text)
{
    char path[4096], made[4200];
    snprintf(path, sizeof path, "%s%s", file, suffix);
    snprintf(made, sizeof made, "%s.new", path);
    FILE *out = fopen(made, "w");
    fputs(text, out);
    fclose(out);
    rename(made, path);
}

/* Rank 0 waits for the file; false: it does not come. */
static int read_name(const char *file, const char *suffix, char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s", file, suffix);
    for (int tenths = 0; tenths < 600; tenths++) {
        FILE *in = fopen(path, "r");
        if (in != NULL) {
            const int good = fgets(text, MPI_MAX_PORT_NAME, in) != NULL;
            fclose(in);
            return good;
        }
        usleep(100000);
    }
    return 0;
}

static void serve(const char *file, int rounds)
{
    char port[MPI_MAX_PORT_NAME] = "";
    if (my_rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        leave_name(file, "", port);
    }
    for (int i = 0; i < rounds; i++) {
        MPI_Comm inter;
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        talk(inter);
        MPI_Comm_disconnect(&inter);
    }
    if (my_rank == 0) {
        MPI_Close_port(port);
        leave_name(file, ".closed", port);
    }
}

static void call(const char *file, int rounds)
{
    char port[MPI_MAX_PORT_NAME] = "";
    if (my_rank == 0)
        CHECK(read_name(file, "", port), "no port in %s", file);
    for (int i = 0; i < rounds; i++) {
        MPI_Comm inter;
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        talk(inter);
        MPI_Comm_disconnect(&inter);
    }
}

/* An error of the class that MPI wants, on every rank, and soon. */
static void must_be_refused(const char *port, const char *what)
{
    MPI_Comm inter = MPI_COMM_NULL;
    int class = MPI_SUCCESS, length;
    char text[MPI_MAX_ERROR_STRING];
    const double begin = now_s();
    const int code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    CHECK(code != MPI_SUCCESS && (class == MPI_ERR_PORT || class == MPI_ERR_OTHER), "%s: class %d",
          what, class);
    CHECK(now_s() - begin < 12, "%s: took %.1f s", what, now_s() - begin);
    if (my_rank == 0)
        printf("%s: class %s: %s\n", what, class == MPI_ERR_PORT ? "MPI_ERR_PORT" : "other", text);
}

static void try_wrong_names(const char *file)
{
    char port[MPI_MAX_PORT_NAME] = "", wrong[MPI_MAX_PORT_NAME];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (my_rank == 0)
        CHECK(read_name(file, "", port), "no port in %s", file);
    const size_t length = strlen(port);
    /* a digit of the key, near the end; of the owner's own key; of the number */
    strcpy(wrong, port);
    if (my_rank == 0)
        wrong[length - 4] = wrong[length - 4] == '0' ? '1' : '0';
    must_be_refused(wrong, "wrong key");
    must_be_refused("no port at all", "no name");
    strcpy(wrong, port);
    if (my_rank == 0)
        memset(wrong + length - 12, 'f', 10);
    must_be_refused(wrong, "another wrong key");
    call(file, 1);
    if (my_rank == 0)
        CHECK(read_name(file, ".closed", port), "no closed port in %s", file);
    must_be_refused(port, "closed port");
}

/* A process of each of several jobs, `most` at a time: each is another one, and answered as such.
 */
static void entertain(const char *file, int guests, int most)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm *there = malloc((size_t) most * sizeof *there);
    int *numbers = malloc((size_t) most * sizeof *numbers);
    MPI_Open_port(MPI_INFO_NULL, port);
    leave_name(file, "", port);
    for (int came = 0; came < guests;) {
        int count = 0;
        for (; count < most && came < guests; count++, came++) {
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &there[count]);
            MPI_Recv(&numbers[count], 1, MPI_INT, 0, 0, there[count], MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < count; i++) {
            MPI_Group one, other;
            int same;
            MPI_Comm_remote_group(there[i], &one);
            MPI_Comm_remote_group(there[(i + 1) % count], &other);
            MPI_Group_compare(one, other, &same);
            CHECK(count == 1 || same == MPI_UNEQUAL, "guests %d and %d are one process", numbers[i],
                  numbers[(i + 1) % count]);
            MPI_Group_free(&one);
            MPI_Group_free(&other);
            MPI_Send(&numbers[i], 1, MPI_INT, 0, 1, there[i]);
        }
        for (int i = 0; i < count; i++)
            MPI_Comm_disconnect(&there[i]);
    }
    MPI_Close_port(port);
    free(numbers);
    free(there);
}

static void visit(const char *file, int number)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int answer = -1;
    MPI_Comm inter;
    CHECK(read_name(file, "", port), "no port in %s", file);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    MPI_Send(&number, 1, MPI_INT, 0, 0, inter);
    MPI_Recv(&answer, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE);
    CHECK(answer == number, "the answer to %d is that to %d", number, answer);
    MPI_Comm_disconnect(&inter);
}

static void spawn(char *program, int count)
{
    MPI_Comm children;
    char *arguments[] = {"child", NULL};
    int *codes = malloc((size_t) count * sizeof *codes);
    for (int round = 0; round < 2; round++) {
        MPI_Comm_spawn(program, arguments, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                       codes);
        for (int i = 0; i < count; i++)
            CHECK(codes[i] == MPI_SUCCESS, "process %d: %d", i, codes[i]);
        talk(children);
        if (round == 0) /* the second time both just end */
            MPI_Comm_disconnect(&children);
    }
    free(codes);
}

static void be_a_child(void)
{
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    CHECK(parent != MPI_COMM_NULL, "no parent");
    if (parent == MPI_COMM_NULL)
        return;
    talk(parent);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    start(&argc, &argv);
    if (strcmp(what, "accept") == 0 && argc > 3)
        serve(argv[2], atoi(argv[3]));
    else if (strcmp(what, "connect") == 0 && argc > 3)
        call(argv[2], atoi(argv[3]));
    else if (strcmp(what, "refused") == 0 && argc > 2)
        try_wrong_names(argv[2]);
    else if (strcmp(what, "entertain") == 0 && argc > 4)
        entertain(argv[2], atoi(argv[3]), atoi(argv[4]));
    else if (strcmp(what, "visit") == 0 && argc > 3)
        visit(argv[2], atoi(argv[3]));
    else if (strcmp(what, "spawn") == 0 && argc > 2)
        spawn(argv[0], atoi(argv[2]));
    else if (strcmp(what, "child") == 0)
        be_a_child();
    else
        CHECK(0,
              "usage: dynamic accept FILE ROUNDS | connect FILE ROUNDS | refused FILE | "
              "entertain FILE GUESTS MOST | visit FILE NUMBER | spawn N");
    return finish(what);
}
