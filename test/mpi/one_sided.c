/* One-sided communication between hosts. First: does a target that computes for SECONDS (argument,
 * default 1), and makes no MPI call, serve put and get of another host meanwhile? Rank 1 computes,
 * rank 0 puts and gets by lock with MPI_MODE_NOCHECK, and inside of an epoch of MPI_Win_lock_all
 * (the locks themselves are the host's active messages and need a target in MPI). Prints per case:
 * one_sided epoch=… bytes=… while_computing=yes|no ms=… Then: data of 1 B to 8 MB by put, get, and
 * their request-based kin, in fence, PSCW, lock and lock_all epochs, on allocated and created
 * windows, together with what goes by active messages (vectors, accumulates); ends with accesses
 * outside of the window. */
#include "mpi_test.h"

static const size_t sizes[] = {1, 8, 1000, 32768, 65536, 1 << 20, 8 << 20};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), BYTES_MAX = 8 << 20 };

static unsigned char *memory, *out, *in;
static MPI_Win win;

static void busy_target(const char *epoch, int lock_all, size_t bytes, double seconds)
{
    if (lock_all)
        MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 1) {
        const double from = now_s();
        CHECK(compute(seconds) > 0.0, "no work was done");
        CHECK(now_s() - from >= seconds, "the clock went back");
    } else if (my_rank == 0) {
        const double middle = now_s() + seconds * 0.2;
        while (now_s() < middle)
            ; /* the target is out of MPI by then */
        pattern_fill(out, bytes, (unsigned) bytes);
        memset(in, 0, bytes);
        const double from = now_s();
        if (!lock_all)
            MPI_Win_lock(MPI_LOCK_SHARED, 1, MPI_MODE_NOCHECK, win);
        MPI_Put(out, (int) bytes, MPI_BYTE, 1, 64, (int) bytes, MPI_BYTE, win);
        MPI_Win_flush(1, win);
        MPI_Get(in, (int) bytes, MPI_BYTE, 1, 64, (int) bytes, MPI_BYTE, win);
        MPI_Win_flush(1, win);
        if (!lock_all)
            MPI_Win_unlock(1, win);
        const double took = now_s() - from;
        CHECK(pattern_wrong(in, bytes, (unsigned) bytes) < 0, "byte %ld of %zu is wrong",
              pattern_wrong(in, bytes, (unsigned) bytes), bytes);
        if (seconds > 0.0)
            printf("one_sided epoch=%s bytes=%zu while_computing=%s ms=%.2f\n", epoch, bytes,
                   took < seconds * 0.5 ? "yes" : "no", took * 1e3);
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (lock_all)
        MPI_Win_unlock_all(win);
}

enum epoch { FENCE, PSCW, LOCK, LOCK_ALL, EPOCHS };
static const char *const epoch_names[] = {"fence", "pscw", "lock", "lock_all"};

static MPI_Group everybody_else(void)
{
    MPI_Group world, others;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_excl(world, 1, &my_rank, &others);
    MPI_Group_free(&world);
    return others;
}

static void open_epoch(enum epoch epoch, int target, MPI_Group others)
{
    if (epoch == FENCE) {
        MPI_Win_fence(0, win);
    } else if (epoch == PSCW) {
        MPI_Win_post(others, 0, win);
        MPI_Win_start(others, 0, win);
    } else if (epoch == LOCK) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    } else {
        MPI_Win_lock_all(0, win);
    }
}

static void close_epoch(enum epoch epoch, int target)
{
    if (epoch == FENCE) {
        MPI_Win_fence(0, win);
    } else if (epoch == PSCW) {
        MPI_Win_complete(win);
        MPI_Win_wait(win);
    } else if (epoch == LOCK) {
        MPI_Win_unlock(target, win);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Everybody puts to the next rank, looks at what the one before has put, and gets it back from the
 * next. */
static void all_sizes(enum epoch epoch, int by_request)
{
    MPI_Group others = everybody_else();
    const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
    const char *name = epoch_names[epoch];
    for (int i = 0; i < SIZES; i++) {
        const size_t bytes = sizes[i];
        const unsigned seed = (unsigned) (epoch * 100 + i * 10 + by_request),
                       mine = seed + 1000u * (unsigned) my_rank,
                       theirs = seed + 1000u * (unsigned) before;
        MPI_Request request;
        pattern_fill(out, bytes, mine);
        memset(memory, 0x55, bytes + 128);
        memset(in, 0, bytes);
        MPI_Barrier(MPI_COMM_WORLD);

        open_epoch(epoch, next, others);
        if (by_request) {
            MPI_Rput(out, (int) bytes, MPI_BYTE, next, 64, (int) bytes, MPI_BYTE, win, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            memset(out, 0, bytes);
        } else {
            MPI_Put(out, (int) bytes, MPI_BYTE, next, 64, (int) bytes, MPI_BYTE, win);
            if (epoch == LOCK) {
                MPI_Win_flush_local(next, win);
                memset(out, 0, bytes);
            }
        }
        close_epoch(epoch, next);
        const long wrong = pattern_wrong(memory + 64, bytes, theirs);
        CHECK(wrong < 0, "%s: byte %ld of %zu is wrong in the target's memory", name, wrong, bytes);
        CHECK(memory[63] == 0x55 && memory[64 + bytes] == 0x55,
              "%s: %zu bytes, and more was written", name, bytes);
        MPI_Barrier(MPI_COMM_WORLD);

        open_epoch(epoch, next, others);
        if (by_request) {
            MPI_Rget(in, (int) bytes, MPI_BYTE, next, 64, (int) bytes, MPI_BYTE, win, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(pattern_wrong(in, bytes, mine) < 0,
                  "%s: the request is complete, the data is not", name);
        } else {
            MPI_Get(in, (int) bytes, MPI_BYTE, next, 64, (int) bytes, MPI_BYTE, win);
        }
        close_epoch(epoch, next);
        const long bad = pattern_wrong(in, bytes, mine);
        CHECK(bad < 0, "%s: get of %zu: byte %ld is wrong", name, bytes, bad);
    }
    MPI_Group_free(&others);
}

/* Native operations and active messages in one epoch, with many at once. */
static void mixed(enum epoch epoch)
{
    MPI_Group others = everybody_else();
    const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
    enum { COUNT = 500, INTS = COUNT * 8 };
    int *source = (int *) out, *target = (int *) memory;
    MPI_Datatype every_other;
    MPI_Type_vector(COUNT, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    for (int i = 0; i < INTS; i++) {
        source[i] = my_rank * 100000 + i;
        target[i] = 7;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    open_epoch(epoch, next, others);
    for (int i = 0; i < COUNT; i++)
        MPI_Put(source + i, 1, MPI_INT, next, i * (MPI_Aint) sizeof(int), 1, MPI_INT, win);
    MPI_Put(source + COUNT, COUNT, MPI_INT, next, COUNT * (MPI_Aint) sizeof(int), 1, every_other,
            win);
    for (int i = 0; i < COUNT; i++)
        MPI_Accumulate(source + 3 * COUNT + i, 1, MPI_INT, next,
                       (3 * COUNT + i) * (MPI_Aint) sizeof(int), 1, MPI_INT, MPI_SUM, win);
    MPI_Put(source + 4 * COUNT, 4 * COUNT, MPI_INT, next, 4 * COUNT * (MPI_Aint) sizeof(int),
            4 * COUNT, MPI_INT, win);
    close_epoch(epoch, next);
    const int base = before * 100000;
    for (int i = 0; i < INTS; i++) {
        const int vector = i >= COUNT && i < 3 * COUNT, k = i - COUNT;
        const int want = vector                            ? (k % 2 ? 7 : base + COUNT + k / 2)
                         : i >= 3 * COUNT && i < 4 * COUNT ? base + i + 7
                                                           : base + i;
        CHECK(target[i] == want, "%s: int %d is %d, want %d", epoch_names[epoch], i, target[i],
              want);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&every_other);
    MPI_Group_free(&others);
}

/* An error at the origin, and nothing happens at the target. */
static void outside(void)
{
    const MPI_Aint bytes = BYTES_MAX + 128;
    memset(memory, 0x55, (size_t) bytes);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    int class = 0;
    const int code = MPI_Put(out, 8, MPI_BYTE, (my_rank + 1) % ranks, bytes - 7, 8, MPI_BYTE, win);
    CHECK(code != MPI_SUCCESS, "a put over the end of the window succeeds");
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_RMA_RANGE, "error class %d", class);
    CHECK(MPI_Get(in, 1, MPI_BYTE, (my_rank + 1) % ranks, -1, 1, MPI_BYTE, win) != MPI_SUCCESS,
          "a get from before the window succeeds");
    MPI_Win_fence(0, win);
    for (MPI_Aint i = 0; i < bytes; i++)
        if (memory[i] != 0x55) {
            CHECK(0, "byte %ld was written", (long) i);
            break;
        }
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const double seconds = argc > 1 ? atof(argv[1]) : 1.0;
    if (ranks < 2) {
        fprintf(stderr, "one_sided: want at least 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    out = malloc(BYTES_MAX);
    in = malloc(BYTES_MAX);
    unsigned char *created = malloc(BYTES_MAX + 128);
    if (!out || !in || !created)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Win_allocate(BYTES_MAX + 128, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (int i = 0; i < SIZES; i += 2) {
        busy_target("lock", 0, sizes[i], seconds);
        busy_target("lock_all", 1, sizes[i], seconds);
    }
    /* What was asserted holds for those locks only: MPICH remembers it, and would not give back
     * those that are taken later. */
    for (int i = 0; i < 2 && my_rank == 0; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 0) {
            MPI_Win_allocate(BYTES_MAX + 128, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
        } else {
            memory = created;
            MPI_Win_create(memory, BYTES_MAX + 128, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        }
        for (int epoch = FENCE; epoch < EPOCHS; epoch++) {
            all_sizes((enum epoch) epoch, 0);
            /* requests are for passive target only */
            if (epoch == LOCK || epoch == LOCK_ALL)
                all_sizes((enum epoch) epoch, 1);
            mixed((enum epoch) epoch);
        }
        outside();
        MPI_Win_free(&win);
    }
    free(created);
    free(out);
    free(in);
    return finish("one_sided");
}
