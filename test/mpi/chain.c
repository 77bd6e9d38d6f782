/* MPI_Scan, MPI_Exscan, MPI_Reduce and MPI_Allreduce: of a predefined operation and of one that
 * does not commute, with and without MPI_IN_PLACE, elements with gaps, lengths around the pieces of
 * lite_chain.c, on communicators of two ranks to all of them. */
#include "mpi_test.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

/* A function x -> factor * x + term, modulo 2^64: one behind the other is the operation. */
typedef struct {
    uint64_t factor, term;
} Line;
/* The same with a gap behind it, which nobody may touch. */
typedef struct {
    Line line;
    uint64_t gap;
} Spaced;
enum { GAP = 0x5a };

static void behind_each_other(void *before, void *into, int *length, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    for (int i = 0; i < *length; i++) {
        const Line *first = (const Line *) ((char *) before + i * extent);
        Line *second = (Line *) ((char *) into + i * extent);
        second->term += second->factor * first->term;
        second->factor *= first->factor;
    }
}

static Line line_of(int rank, int i)
{
    return (Line){2 * (uint64_t) (rank + i) + 3, (uint64_t) rank * 1000003u + (uint64_t) i};
}

static double number_of(int rank, int i)
{
    return rank * 3 + i % 1000;
}

/* What the ranks 0 to `last` have together. */
static Line lines_up_to(int last, int i)
{
    Line sum = line_of(0, i);
    for (int rank = 1; rank <= last; rank++) {
        const Line next = line_of(rank, i);
        sum.term = next.factor * sum.term + next.term;
        sum.factor *= next.factor;
    }
    return sum;
}

static double numbers_up_to(int last, int i)
{
    double sum = 0;
    for (int rank = 0; rank <= last; rank++)
        sum += number_of(rank, i);
    return sum;
}

enum call { SCAN, EXSCAN, ALLREDUCE };
static const char *const call_names[] = {"MPI_Scan", "MPI_Exscan", "MPI_Allreduce"};

static int of(enum call call, const void *from, void *into, int count, MPI_Datatype type, MPI_Op op,
              MPI_Comm comm)
{
    return call == SCAN     ? MPI_Scan(from, into, count, type, op, comm)
           : call == EXSCAN ? MPI_Exscan(from, into, count, type, op, comm)
                            : MPI_Allreduce(from, into, count, type, op, comm);
}

/* The last rank whose data is in the result; -1: the result is undefined. */
static int last_of(enum call call, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    return call == ALLREDUCE ? size - 1 : rank - (call == EXSCAN);
}

static void numbers(enum call call, bool in_place, int count, MPI_Comm comm)
{
    const int last = last_of(call, comm);
    int rank, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    double *from = malloc(((size_t) count + 1) * sizeof *from);
    double *into = malloc(((size_t) count + 1) * sizeof *into);
    for (int i = 0; i < count; i++) {
        from[i] = number_of(rank, i);
        into[i] = in_place ? from[i] : -1;
    }
    from[count] = into[count] = -2;
    of(call, in_place ? MPI_IN_PLACE : from, into, count, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < count; i++)
        wrong += (last >= 0 && into[i] != numbers_up_to(last, i)) || from[i] != number_of(rank, i);
    CHECK(wrong == 0 && into[count] == -2 && from[count] == -2, "%s: %d of %d numbers%s",
          call_names[call], wrong, count, in_place ? ", in place" : "");
    free(from);
    free(into);
}

static void lines(enum call call, bool in_place, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    const int last = last_of(call, comm);
    int rank, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    Spaced *from = malloc(((size_t) count + 1) * sizeof *from);
    Spaced *into = malloc(((size_t) count + 1) * sizeof *into);
    memset(from, GAP, ((size_t) count + 1) * sizeof *from);
    memset(into, GAP, ((size_t) count + 1) * sizeof *into);
    const Spaced untouched = into[count];
    for (int i = 0; i < count; i++) {
        from[i].line = line_of(rank, i);
        if (in_place)
            into[i].line = from[i].line;
    }
    of(call, in_place ? MPI_IN_PLACE : from, into, count, type, op, comm);
    for (int i = 0; i < count; i++) {
        if (last >= 0) {
            const Line wanted = lines_up_to(last, i);
            wrong += memcmp(&into[i].line, &wanted, sizeof wanted) != 0;
        }
        wrong += into[i].gap != untouched.gap || from[i].gap != untouched.gap;
    }
    CHECK(wrong == 0 && memcmp(&into[count], &untouched, sizeof untouched) == 0,
          "%s: %d of %d lines%s", call_names[call], wrong, count, in_place ? ", in place" : "");
    free(from);
    free(into);
}

/* Elements that reach into one another: their data is longer than the step from one to the next, by
 * an odd number. The operation gets what malloc would give, aligned. */
static int misaligned;
static void first_numbers(void *before, void *into, int *length, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    misaligned += (uintptr_t) before % 8 != 0 || (uintptr_t) into % 8 != 0;
    for (int i = 0; i < *length; i++) {
        int64_t one, sum;
        memcpy(&one, (char *) before + i * extent, sizeof one);
        memcpy(&sum, (char *) into + i * extent, sizeof sum);
        sum += one;
        memcpy((char *) into + i * extent, &sum, sizeof sum);
    }
}

static void interleaved(MPI_Comm comm)
{
    enum { STEP = 4096, FLAG = 200 * STEP, COUNT = 190 };
    static const int lengths[] = {STEP / 2, 1};
    static const MPI_Aint places[] = {0, FLAG};
    MPI_Datatype parts[] = {MPI_CHAR, MPI_CHAR}, whole, type;
    MPI_Op op;
    int rank, wrong = 0;

    MPI_Comm_rank(comm, &rank);
    MPI_Type_create_struct(2, lengths, places, parts, &whole);
    MPI_Type_create_resized(whole, 0, STEP, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(first_numbers, 0, &op);
    char *const from = calloc(1, FLAG + COUNT * STEP), *const into = calloc(1, FLAG + COUNT * STEP);
    for (int i = 0; i < COUNT; i++)
        memcpy(from + (ptrdiff_t) i * STEP, &(int64_t){rank + i}, sizeof(int64_t));
    MPI_Scan(from, into, COUNT, type, op, comm);
    for (int i = 0; i < COUNT; i++) {
        const int64_t wanted = (int64_t) rank * (rank + 1) / 2 + (int64_t) i * (rank + 1);
        wrong += memcmp(into + (ptrdiff_t) i * STEP, &wanted, sizeof wanted) != 0;
    }
    CHECK(wrong == 0 && misaligned == 0, "%d of %d interleaved, %d calls with misaligned data",
          wrong, (int) COUNT, misaligned);
    free(from);
    free(into);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    MPI_Type_free(&whole);
}

/* Rank 0 dies: whoever waits for what it has gets an error, whoever hears of it only through others
 * too. */
static int lost(bool all)
{
    enum { COUNT = 1000000 };
    static int from[COUNT], into[COUNT];

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0)
        raise(SIGKILL);
    const int code = all ? MPI_Allreduce(from, into, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD)
                         : MPI_Scan(from, into, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return tell_and_leave("chain", code);
}

static void sums(void *before, void *into, int *length, MPI_Datatype *type)
{
    MPI_Aint lb, extent, begin, true_extent;
    int bytes;
    MPI_Type_get_extent(*type, &lb, &extent);
    MPI_Type_get_true_extent(*type, &begin, &true_extent);
    MPI_Type_size(*type, &bytes);
    for (int i = 0; i < *length; i++)
        for (int k = 0; k < bytes / (int) sizeof(int64_t); k++)
            ((int64_t *) ((char *) into + begin + i * extent))[k] +=
                ((const int64_t *) ((const char *) before + begin + i * extent))[k];
}

/* To each rank in turn. */
static void reduced(bool in_place, int count, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    double *from = malloc(((size_t) count + 1) * sizeof *from);
    double *into = malloc(((size_t) count + 1) * sizeof *into);
    for (int root = 0; root < size; root++) {
        int wrong = 0;
        for (int i = 0; i < count; i++) {
            from[i] = number_of(rank, i);
            into[i] = in_place ? from[i] : -1;
        }
        from[count] = into[count] = -2;
        MPI_Reduce(in_place && rank == root ? MPI_IN_PLACE : from, rank == root ? into : NULL,
                   count, MPI_DOUBLE, MPI_SUM, root, comm);
        for (int i = 0; i < count; i++) {
            wrong += from[i] != number_of(rank, i);
            if (rank == root)
                wrong += into[i] != numbers_up_to(size - 1, i);
            else
                wrong += into[i] != (in_place ? from[i] : -1);
        }
        CHECK(wrong == 0 && into[count] == -2 && from[count] == -2, "%d of %d reduced to %d%s",
              wrong, count, root, in_place ? ", in place" : "");
    }
    free(from);
    free(into);
}

/* Takes what memory there is, but for pieces of less than BLOCK. */
enum { BLOCK = 300000 };
typedef struct Block {
    struct Block *behind;
} Block;
static Block *exhaust_memory(void)
{
    Block *taken = NULL;
    unsigned long pages = 0;
    FILE *const statm = fopen("/proc/self/statm", "r");

    CHECK(statm && fscanf(statm, "%lu", &pages) == 1, "statm");
    if (statm)
        fclose(statm);
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * (rlim_t) sysconf(_SC_PAGESIZE);
    setrlimit(RLIMIT_AS, &limit);
    for (Block *block; (block = malloc(BLOCK)) != NULL; taken = block)
        block->behind = taken;
    return taken;
}

static void give_memory_back(Block *taken)
{
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
    while (taken) {
        Block *const behind = taken->behind;
        free(taken);
        taken = behind;
    }
}

/* Rank 1 of three has no memory for its spares: it says so, whoever needs its data gets an error,
 * nobody waits, and the communicator is as good as before. */
static int no_memory(void)
{
    enum { COUNT = 1000000, REDUCE = ALLREDUCE + 1 };
    static double from[COUNT], into[COUNT];
    static const int first_to_know[] = {[SCAN] = 1, [EXSCAN] = 1, [ALLREDUCE] = 0, [REDUCE] = 1};

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int call = SCAN; call <= REDUCE; call++) {
        int error_class = MPI_SUCCESS;
        MPI_Barrier(MPI_COMM_WORLD);
        Block *const taken = my_rank == 1 ? exhaust_memory() : NULL;
        const int code = call == REDUCE
                             ? MPI_Reduce(from, into, COUNT, MPI_DOUBLE, MPI_SUM, 2, MPI_COMM_WORLD)
                             : of((enum call) call, call == EXSCAN ? from : MPI_IN_PLACE, into,
                                  COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (my_rank == 1)
            give_memory_back(taken);
        MPI_Error_class(code, &error_class);
        CHECK((code != MPI_SUCCESS) == (my_rank >= first_to_know[call]), "call %d: code %d", call,
              code);
        CHECK(my_rank != 1 || error_class == MPI_ERR_NO_MEM, "call %d: class %d", call,
              error_class);
        numbers(SCAN, true, COUNT, MPI_COMM_WORLD);
        numbers(ALLREDUCE, true, COUNT, MPI_COMM_WORLD);
    }
    return finish("chain");
}

/* In place, by addresses in the type: the buffer is MPI_BOTTOM. */
static void from_bottom(enum call call, int count, MPI_Comm comm)
{
    const int last = last_of(call, comm);
    MPI_Aint address;
    MPI_Datatype number, type;
    MPI_Op op;
    int rank, wrong = 0;

    MPI_Comm_rank(comm, &rank);
    int64_t *const into = malloc(((size_t) count + 1) * sizeof *into);
    for (int i = 0; i < count; i++)
        into[i] = (int64_t) number_of(rank, i);
    MPI_Get_address(into, &address);
    MPI_Type_create_hindexed_block(1, 1, &address, MPI_INT64_T, &number);
    MPI_Type_create_resized(number, address, sizeof *into, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(sums, 1, &op);
    of(call, MPI_IN_PLACE, MPI_BOTTOM, count, type, op, comm);
    for (int i = 0; i < count && last >= 0; i++)
        wrong += into[i] != (int64_t) numbers_up_to(last, i);
    CHECK(wrong == 0, "%s: %d of %d from MPI_BOTTOM", call_names[call], wrong, count);
    free(into);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    MPI_Type_free(&number);
}

/* Elements longer than a piece, one less than ranks to one more, with a gap behind each. */
static void large_elements_to_all(bool in_place, int count, MPI_Comm comm)
{
    enum { DATA = 40000, STEP = DATA + 3 };
    MPI_Datatype data, type;
    MPI_Op op;
    int size, rank, wrong = 0;

    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    MPI_Type_contiguous(DATA, MPI_INT64_T, &data);
    MPI_Type_create_resized(data, 0, STEP * (MPI_Aint) sizeof(int64_t), &type);
    MPI_Type_commit(&type);
    MPI_Op_create(sums, 1, &op);
    int64_t *const from = calloc((size_t) count * STEP + 1, sizeof *from);
    int64_t *const into = calloc((size_t) count * STEP + 1, sizeof *into);
    for (int i = 0; i < count * STEP; i++)
        if (i % STEP < DATA)
            (in_place ? into : from)[i] = (int64_t) rank * i + 1;
    MPI_Allreduce(in_place ? MPI_IN_PLACE : from, into, count, type, op, comm);
    for (int i = 0; i < count * STEP; i++)
        wrong +=
            into[i] != (i % STEP < DATA ? (int64_t) size * (size - 1) / 2 * i + size : (int64_t) 0);
    CHECK(wrong == 0 && into[count * STEP] == 0, "%d wrong in %d large elements to all%s", wrong,
          count, in_place ? ", in place" : "");
    free(from);
    free(into);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    MPI_Type_free(&data);
}

/* An operation that does not commute, and elements with gaps, to the last rank. */
static void lines_reduced(int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int rank, size, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    Spaced *from = calloc((size_t) count + 1, sizeof *from);
    Spaced *into = calloc((size_t) count + 1, sizeof *into);
    for (int i = 0; i < count; i++)
        from[i].line = line_of(rank, i);
    MPI_Reduce(from, into, count, type, op, size - 1, comm);
    for (int i = 0; i < count && rank == size - 1; i++) {
        const Line wanted = lines_up_to(rank, i);
        wrong += memcmp(&into[i].line, &wanted, sizeof wanted) != 0 || into[i].gap != 0;
    }
    CHECK(wrong == 0, "%d of %d lines reduced", wrong, count);
    free(from);
    free(into);
}

int main(int argc, char **argv)
{
    static const int counts[] = {0,     1,     100,   8191,  8192,  8193,   16383,  16384,
                                 16385, 32768, 40000, 65536, 65537, 100000, 262144, 300001};
    MPI_Datatype pair, spaced;
    MPI_Op op;

    start(&argc, &argv);
    if (argc > 1 && strncmp(argv[1], "lost", 4) == 0)
        return lost(strcmp(argv[1], "lost-all") == 0);
    if (argc > 1 && strcmp(argv[1], "no-memory") == 0)
        return no_memory();
    const bool scans_only = argc > 1 && strcmp(argv[1], "scans") == 0;
    /* MPICH 4.0's own MPI_Allreduce in shared memory ends in a signal for MPI_BOTTOM, and for
     * elements of 320 KB. */
    const char *const nolocal = getenv("MPIR_CVAR_NOLOCAL");
    const bool apart = nolocal && strcmp(nolocal, "1") == 0;
    MPI_Type_contiguous(2, MPI_UINT64_T, &pair);
    MPI_Type_create_resized(pair, 0, sizeof(Spaced), &spaced);
    MPI_Type_commit(&spaced);
    MPI_Op_create(behind_each_other, 0, &op);
    for (int size = 1; size <= ranks; size++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, my_rank < size ? 0 : MPI_UNDEFINED, 0, &comm);
        if (comm == MPI_COMM_NULL)
            continue;
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            for (enum call call = SCAN; call <= (scans_only ? EXSCAN : ALLREDUCE); call++) {
                for (int in_place = 0; in_place < 2; in_place++) {
                    numbers(call, in_place, counts[i], comm);
                    lines(call, in_place, counts[i], spaced, op, comm);
                }
                if (call != ALLREDUCE || apart)
                    from_bottom(call, counts[i], comm);
            }
            for (int in_place = 0; in_place < 2 && !scans_only; in_place++)
                reduced(in_place, counts[i], comm);
            if (!scans_only)
                lines_reduced(counts[i], spaced, op, comm);
        }
        interleaved(comm);
        for (int count = size > 1 ? size - 1 : 1; count <= size + 1 && !scans_only && apart;
             count++)
            for (int in_place = 0; in_place < 2; in_place++)
                large_elements_to_all(in_place, count, comm);
        MPI_Comm_free(&comm);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&spaced);
    MPI_Type_free(&pair);
    return finish("chain");
}
