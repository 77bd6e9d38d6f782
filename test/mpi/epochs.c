/* Accumulates in every kind of epoch. Three ranks or more, on any hosts:
 * epochs [ROUNDS [HINT [spawn]]].
 * Each rank accumulates onto all others: a few elements and many, of several types, by operations
 * that commute (sums, products, the greatest) and, in places of its own, by MPI_REPLACE, with
 * contiguous and strided datatypes by turns, of which the last one must stay. Behind each epoch,
 * and behind a flush in it, all data is looked at. At last rank 1 begins an accumulate that its
 * target cannot finish, does a short one behind it and rests, while rank 2 does others in an epoch
 * of its own. HINT is an info key of the window, set to true. With `spawn`, the job spawns as many
 * ranks as it has, and the window is one of both jobs. */
#include <stdbool.h>

#include "mpi_test.h"

enum { FEW = 5, MANY = 70000, STEPS = 7 };
enum { SUMS = 0, MANY_SUMS = FEW, PRODUCTS = MANY_SUMS + MANY, GREATEST, PLACES };

static int *memory; /* PLACES integers, and two for each rank at the end */
static int *many;
/* Origin data, which must stay until the epoch ends. */
static int one = 1, two = 2, mine;
static int steps[STEPS + 1][2];
static MPI_Win win;
static MPI_Comm everybody; /* the world, or both jobs */
static MPI_Group others;
static MPI_Datatype strided; /* two integers with a hole between them */

static void clear(void)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, my_rank, 0, win);
    for (int i = 0; i < PLACES + 2 * ranks; i++)
        memory[i] = 0;
    memory[PRODUCTS] = 1;
    MPI_Win_unlock(my_rank, win);
    MPI_Barrier(everybody);
}

static void accumulate_onto(int target)
{
    /* by the device's message between fences, too, as none of the host's is under way */
    MPI_Accumulate(many, MANY, MPI_INT, target, MANY_SUMS, MANY, MPI_INT, MPI_SUM, win);
    for (int i = 0; i < FEW; i++)
        MPI_Accumulate(&one, 1, MPI_INT, target, SUMS + i, 1, MPI_INT, MPI_SUM, win);
    MPI_Accumulate(&two, 1, MPI_INT, target, PRODUCTS, 1, MPI_INT, MPI_PROD, win);
    MPI_Accumulate(&mine, 1, MPI_INT, target, GREATEST, 1, MPI_INT, MPI_MAX, win);
    for (int step = 1; step <= STEPS; step++) {
        if (step % 3 == 2)
            MPI_Accumulate(steps[step], 2, MPI_INT, target, PLACES + my_rank, 1, strided,
                           MPI_REPLACE, win);
        else
            MPI_Accumulate(steps[step], 1, MPI_INT, target, PLACES + my_rank, 1, MPI_INT,
                           MPI_REPLACE, win);
    }
}

static void check_whole(const char *kind)
{
    const int from = ranks - 1;
    int product = 1, wrong = -1;

    MPI_Win_lock(MPI_LOCK_SHARED, my_rank, 0, win);
    for (int i = 0; i < FEW; i++)
        CHECK(memory[SUMS + i] == from, "%s: sum %d is %d", kind, i, memory[SUMS + i]);
    for (int i = 0; i < MANY && wrong < 0; i++)
        if (memory[MANY_SUMS + i] != from * many[i])
            wrong = i;
    CHECK(wrong < 0, "%s: sum %d of many is wrong", kind, wrong);
    for (int i = 0; i < from; i++)
        product *= 2;
    CHECK(memory[PRODUCTS] == product, "%s: the product is %d", kind, memory[PRODUCTS]);
    CHECK(memory[GREATEST] == 100 + (my_rank == from ? from - 1 : from), "%s: the greatest is %d",
          kind, memory[GREATEST]);
    for (int rank = 0; rank < ranks; rank++)
        CHECK(rank == my_rank || memory[PLACES + rank] == 1000 * STEPS + rank,
              "%s: what rank %d wrote last is %d", kind, rank, memory[PLACES + rank]);
    MPI_Win_unlock(my_rank, win);
    MPI_Barrier(everybody);
}

/* What this rank has put there is there. */
static void check_flushed(int target, const char *kind)
{
    int there = -1;

    MPI_Get(&there, 1, MPI_INT, target, PLACES + my_rank, 1, MPI_INT, win);
    MPI_Win_flush(target, win);
    CHECK(there == 1000 * STEPS + my_rank, "%s: %d is there after a flush", kind, there);
}

static void by_posts(void)
{
    clear();
    MPI_Win_post(others, 0, win);
    MPI_Win_start(others, 0, win);
    for (int target = 0; target < ranks; target++)
        if (target != my_rank)
            accumulate_onto(target);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    check_whole("post");
}

static void by_fence(void)
{
    clear();
    MPI_Win_fence(0, win);
    for (int target = 0; target < ranks; target++)
        if (target != my_rank)
            accumulate_onto(target);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    check_whole("fence");
}

/* flush: 0 none, 1 of the target, 2 of all */
static void by_locks(int type, int assert, int flush, const char *kind)
{
    clear();
    for (int i = 1; i < ranks; i++) {
        const int target = (my_rank + i) % ranks;
        MPI_Win_lock(type, target, assert, win);
        accumulate_onto(target);
        if (flush == 1)
            MPI_Win_flush(target, win);
        else if (flush == 2)
            MPI_Win_flush_all(win);
        if (flush != 0)
            check_flushed(target, kind);
        MPI_Win_unlock(target, win);
    }
    MPI_Barrier(everybody);
    check_whole(kind);
}

/* Several locks at once. */
static void by_shared_locks(bool flush, const char *kind)
{
    clear();
    for (int i = 1; i < ranks; i++)
        MPI_Win_lock(MPI_LOCK_SHARED, (my_rank + i) % ranks, 0, win);
    for (int i = 1; i < ranks; i++)
        accumulate_onto((my_rank + i) % ranks);
    if (flush)
        MPI_Win_flush_all(win);
    for (int i = 1; i < ranks; i++) {
        if (flush)
            check_flushed((my_rank + i) % ranks, kind);
        MPI_Win_unlock((my_rank + i) % ranks, win);
    }
    MPI_Barrier(everybody);
    check_whole(kind);
}

static void by_lock_all(void)
{
    clear();
    MPI_Win_lock_all(0, win);
    for (int i = 1; i < ranks; i++)
        accumulate_onto((my_rank + i) % ranks);
    MPI_Win_unlock_all(win);
    MPI_Barrier(everybody);
    check_whole("lock_all");
}

/* The datatype of rank 1's accumulate is too long for one message, so its data goes only when the
 * target has asked for it; with LITE_CONTROLLER=sync that is when rank 1 is back. */
static void beside_one_that_rests(double seconds)
{
    enum { BLOCKS = 3000 };
    const int value = 7, last = 9;
    int *places = malloc(BLOCKS * sizeof(int)), *ones = malloc(BLOCKS * sizeof(int));
    MPI_Datatype scattered;

    clear();
    for (int i = 0; i < BLOCKS; i++) {
        places[i] = 2 * i + i % 3 / 2;
        ones[i] = 1;
    }
    MPI_Type_create_indexed_block(BLOCKS, 1, places, MPI_INT, &scattered);
    MPI_Type_commit(&scattered);
    if (my_rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Accumulate(ones, BLOCKS, MPI_INT, 0, MANY_SUMS, 1, scattered, MPI_REPLACE, win);
        MPI_Accumulate(&last, 1, MPI_INT, 0, MANY_SUMS, 1, MPI_INT, MPI_REPLACE, win);
        MPI_Send(NULL, 0, MPI_INT, 2, 0, everybody);
        rest(seconds);
        MPI_Win_unlock(0, win);
    } else if (my_rank == 2) {
        MPI_Recv(NULL, 0, MPI_INT, 1, 0, everybody, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Accumulate(&value, 1, MPI_INT, 0, PLACES, 1, MPI_INT, MPI_REPLACE, win);
        MPI_Accumulate(&one, 1, MPI_INT, 0, SUMS, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        MPI_Send(NULL, 0, MPI_INT, 0, 0, everybody);
    } else if (my_rank == 0) {
        MPI_Recv(NULL, 0, MPI_INT, 2, 0, everybody, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        CHECK(memory[PLACES] == value && memory[SUMS] == one,
              "rank 2 has unlocked, and %d and %d are here", memory[PLACES], memory[SUMS]);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(everybody);
    if (my_rank == 0) {
        int sum = 0;
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        for (int i = 0; i < MANY; i++)
            sum += memory[MANY_SUMS + i];
        CHECK(memory[MANY_SUMS] == last, "rank 1 wrote %d last", memory[MANY_SUMS]);
        CHECK(sum == BLOCKS - 1 + last, "the sum of %d scattered numbers is %d", BLOCKS, sum);
        MPI_Win_unlock(0, win);
    }
    MPI_Type_free(&scattered);
    free(ones);
    free(places);
}

static void join_jobs(char **argv, bool spawns)
{
    MPI_Comm other;

    everybody = MPI_COMM_WORLD;
    if (!spawns)
        return;
    MPI_Comm_get_parent(&other);
    const bool is_spawned = other != MPI_COMM_NULL;
    if (!is_spawned)
        MPI_Comm_spawn(argv[0], argv + 1, ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
                       MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(other, is_spawned, &everybody);
    MPI_Comm_disconnect(&other);
    MPI_Comm_rank(everybody, &my_rank);
    MPI_Comm_size(everybody, &ranks);
}

/* What both jobs found is told by the first one's rank 0. */
static void part_jobs(void)
{
    int found[2] = {checks_done, checks_failed};

    if (everybody == MPI_COMM_WORLD)
        return;
    MPI_Reduce(my_rank == 0 ? MPI_IN_PLACE : found, found, 2, MPI_INT, MPI_SUM, 0, everybody);
    checks_done = my_rank == 0 ? found[0] : 0;
    checks_failed = my_rank == 0 ? found[1] : 0;
    MPI_Comm_disconnect(&everybody);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const int rounds = argc > 1 ? atoi(argv[1]) : 5;
    MPI_Group all;
    MPI_Info info;

    join_jobs(argv, argc > 3 && strcmp(argv[3], "spawn") == 0);
    mine = 100 + my_rank;
    for (int step = 1; step <= STEPS; step++)
        steps[step][0] = 1000 * step + my_rank;
    many = malloc(MANY * sizeof(int));
    for (int i = 0; i < MANY; i++)
        many[i] = 1 + i % 7;
    MPI_Info_create(&info);
    if (argc > 2)
        MPI_Info_set(info, argv[2], "true");
    MPI_Win_allocate((PLACES + 2 * ranks) * (MPI_Aint) sizeof(int), sizeof(int), info, everybody,
                     &memory, &win);
    MPI_Info_free(&info);
    MPI_Type_vector(2, 1, ranks, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    MPI_Comm_group(everybody, &all);
    MPI_Group_excl(all, 1, &my_rank, &others);
    for (int round = 0; round < rounds; round++) {
        by_posts();
        by_locks(MPI_LOCK_SHARED, 0, 0, "shared lock");
        by_locks(MPI_LOCK_EXCLUSIVE, 0, 0, "exclusive lock");
        by_locks(MPI_LOCK_SHARED, 0, 1, "shared lock with a flush");
        by_locks(MPI_LOCK_SHARED, 0, 0, "shared lock behind one with a flush");
        by_locks(MPI_LOCK_EXCLUSIVE, 0, 2, "exclusive lock with a flush of all");
        by_locks(MPI_LOCK_SHARED, MPI_MODE_NOCHECK, 0, "lock without a check");
        by_shared_locks(false, "several locks");
        by_shared_locks(true, "several locks with a flush");
        by_fence();
        by_lock_all();
    }
    beside_one_that_rests(1);
    MPI_Group_free(&others);
    MPI_Group_free(&all);
    MPI_Type_free(&strided);
    MPI_Win_free(&win);
    free(many);
    part_jobs();
    return finish("epochs");
}
