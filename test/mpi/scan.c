/* MPI_Scan and MPI_Exscan: of a predefined operation and of one that does not commute, with and
 * without MPI_IN_PLACE, elements with gaps, lengths around the pieces of lite_scan.c, on
 * communicators of two ranks to all of them. */
#include "mpi_test.h"

#include <stdbool.h>

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

static int of(bool exclusive, const void *from, void *into, int count, MPI_Datatype type, MPI_Op op,
              MPI_Comm comm)
{
    return exclusive ? MPI_Exscan(from, into, count, type, op, comm)
                     : MPI_Scan(from, into, count, type, op, comm);
}

static void numbers(bool exclusive, bool in_place, int count, MPI_Comm comm)
{
    int rank, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    double *from = malloc(((size_t) count + 1) * sizeof *from);
    double *into = malloc(((size_t) count + 1) * sizeof *into);
    for (int i = 0; i < count; i++) {
        from[i] = number_of(rank, i);
        into[i] = in_place ? from[i] : -1;
    }
    from[count] = into[count] = -2;
    of(exclusive, in_place ? MPI_IN_PLACE : from, into, count, MPI_DOUBLE, MPI_SUM, comm);
    if (!exclusive || rank > 0)
        for (int i = 0; i < count; i++)
            wrong += into[i] != numbers_up_to(rank - exclusive, i);
    for (int i = 0; i < count; i++)
        wrong += from[i] != number_of(rank, i);
    CHECK(wrong == 0 && into[count] == -2 && from[count] == -2, "%d of %d numbers%s%s", wrong,
          count, exclusive ? ", exclusive" : "", in_place ? ", in place" : "");
    free(from);
    free(into);
}

static void lines(bool exclusive, bool in_place, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
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
    of(exclusive, in_place ? MPI_IN_PLACE : from, into, count, type, op, comm);
    for (int i = 0; i < count; i++) {
        const Line wanted = lines_up_to(rank - exclusive, i);
        if (!exclusive || rank > 0)
            wrong += memcmp(&into[i].line, &wanted, sizeof wanted) != 0;
        wrong += into[i].gap != untouched.gap || from[i].gap != untouched.gap;
    }
    CHECK(wrong == 0 && memcmp(&into[count], &untouched, sizeof untouched) == 0,
          "%d of %d lines%s%s", wrong, count, exclusive ? ", exclusive" : "",
          in_place ? ", in place" : "");
    free(from);
    free(into);
}

int main(int argc, char **argv)
{
    static const int counts[] = {0,     1,     100,   8191,  8192,   8193,   16383,
                                 16384, 16385, 32768, 40000, 100000, 262144, 300001};
    MPI_Datatype pair, spaced;
    MPI_Op op;

    start(&argc, &argv);
    MPI_Type_contiguous(2, MPI_UINT64_T, &pair);
    MPI_Type_create_resized(pair, 0, sizeof(Spaced), &spaced);
    MPI_Type_commit(&spaced);
    MPI_Op_create(behind_each_other, 0, &op);
    for (int size = 1; size <= ranks; size++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, my_rank < size ? 0 : MPI_UNDEFINED, 0, &comm);
        if (comm == MPI_COMM_NULL)
            continue;
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            for (int how = 0; how < 4; how++) {
                numbers(how & 1, how & 2, counts[i], comm);
                lines(how & 1, how & 2, counts[i], spaced, op, comm);
            }
        MPI_Comm_free(&comm);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&spaced);
    MPI_Type_free(&pair);
    return finish("scan");
}
