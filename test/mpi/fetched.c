/* MPI_Fetch_and_op of pairs, of which MPI_SHORT_INT has a hole, and MPI_Accumulate of unsigned
 * numbers whose first bit is set, onto every rank: this one, others of this node, others. */
#include "mpi_test.h"

enum { ROOM = 64 }; /* bytes of each target for each origin */
static MPI_Win win;

static void put(const void *value, MPI_Datatype type, int target)
{
    MPI_Accumulate(value, 1, type, target, ROOM * my_rank, 1, type, MPI_REPLACE, win);
    MPI_Win_flush(target, win);
}

static void fetch(const void *value, void *result, MPI_Datatype type, MPI_Op op, int target)
{
    MPI_Fetch_and_op(value, result, type, target, ROOM * my_rank, op, win);
    MPI_Win_flush(target, win);
}

#define CHECK_PAIR(number_, pair_)                                                                 \
    do {                                                                                           \
        struct {                                                                                   \
            number_ value;                                                                         \
            int place;                                                                             \
        } first = {1, 70000}, second = {2, 80000}, got;                                            \
        put(&first, pair_, target);                                                                \
        memset(&got, 0, sizeof got);                                                               \
        fetch(&second, &got, pair_, MPI_MAXLOC, target);                                           \
        CHECK(got.value == 1 && got.place == 70000, #pair_ " of rank %d: first place %d", target,  \
              got.place);                                                                          \
        memset(&got, 0, sizeof got);                                                               \
        fetch(&first, &got, pair_, MPI_NO_OP, target);                                             \
        CHECK(got.value == 2 && got.place == 80000, #pair_ " of rank %d: second place %d", target, \
              got.place);                                                                          \
    } while (0)

static void combine(const void *value, void *found, MPI_Datatype type, MPI_Op op, int target)
{
    MPI_Accumulate(value, 1, type, target, ROOM * my_rank, 1, type, op, win);
    MPI_Win_flush(target, win);
    MPI_Get(found, 1, type, target, ROOM * my_rank, 1, type, win);
    MPI_Win_flush(target, win);
}

#define CHECK_UNSIGNED(number_, type_)                                                        \
    do {                                                                                      \
        number_ great = (number_) ((number_) 1 << (8 * sizeof(number_) - 1)), low = 1, found; \
        combine(&low, &found, type_, MPI_REPLACE, target);                                    \
        combine(&great, &found, type_, MPI_MAX, target);                                      \
        CHECK(found == great, #type_ " of rank %d: the greatest is %llu", target,             \
              (unsigned long long) found);                                                    \
        combine(&low, &found, type_, MPI_MIN, target);                                        \
        CHECK(found == low, #type_ " of rank %d: the least is %llu", target,                  \
              (unsigned long long) found);                                                    \
    } while (0)

int main(int argc, char **argv)
{
    char *memory;

    start(&argc, &argv);
    MPI_Win_allocate(ROOM * ranks, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock_all(0, win);
    for (int target = 0; target < ranks; target++) {
        CHECK_PAIR(short, MPI_SHORT_INT);
        CHECK_PAIR(int, MPI_2INT);
        CHECK_PAIR(long, MPI_LONG_INT);
        CHECK_PAIR(float, MPI_FLOAT_INT);
        CHECK_PAIR(double, MPI_DOUBLE_INT);
        CHECK_PAIR(long double, MPI_LONG_DOUBLE_INT);
        CHECK_UNSIGNED(unsigned char, MPI_UNSIGNED_CHAR);
        CHECK_UNSIGNED(unsigned short, MPI_UNSIGNED_SHORT);
        CHECK_UNSIGNED(unsigned, MPI_UNSIGNED);
        CHECK_UNSIGNED(unsigned long, MPI_UNSIGNED_LONG);
        CHECK_UNSIGNED(uint64_t, MPI_UINT64_T);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return finish("fetched");
}
