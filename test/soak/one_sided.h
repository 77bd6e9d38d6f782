/* One-sided communication: windows that are made, used in each kind of epoch, and freed. */
#ifndef SOAK_ONE_SIDED_H_INCLUDED
#define SOAK_ONE_SIDED_H_INCLUDED

#include "common.h"

enum { SLOT_MOST = (256 << 10) - 16 };
enum { FENCE, LOCK, LOCK_ALL, START_POST, EPOCHS };
static const char *const put_by[EPOCHS] = {"put, fence", "put, lock", "put, lock_all",
                                           "put, start"};
static const char *const got_by[EPOCHS] = {"get, fence", "get, lock", "get, lock_all",
                                           "get, start"};

/* The window of each process has a slot for each, and two words at its end: what was added to and
 * what was fetched and added to. */
typedef struct {
    const Lane *lane;
    MPI_Win win;
    unsigned char *memory;
    size_t slot;
    MPI_Group others;
} Window;

static MPI_Aint slot_at(const Window *w, int process)
{
    return (MPI_Aint) ((size_t) process * w->slot);
}

static void open_epoch(const Window *w, int kind, int target, int shared)
{
    if (kind == LOCK)
        MPI_Win_lock(shared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, w->win);
}

static void close_epoch(const Window *w, int kind, int target)
{
    if (kind == LOCK)
        MPI_Win_unlock(target, w->win);
    else if (kind == LOCK_ALL)
        MPI_Win_flush(target, w->win);
}

static void begin_epochs(const Window *w, int kind)
{
    if (kind == FENCE)
        MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
    else if (kind == LOCK_ALL)
        MPI_Win_lock_all(0, w->win);
    else if (kind == START_POST) {
        MPI_Win_post(w->others, 0, w->win);
        MPI_Win_start(w->others, 0, w->win);
    }
}

/* What was put and added is there, at all processes. */
static void end_epochs(const Window *w, int kind)
{
    if (kind == FENCE)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    else if (kind == LOCK_ALL)
        MPI_Win_unlock_all(w->win);
    else if (kind == START_POST) {
        MPI_Win_complete(w->win);
        MPI_Win_wait(w->win);
    }
    if (kind == LOCK || kind == LOCK_ALL)
        MPI_Barrier(w->lane->comm);
}

static void use_window(const Window *w, uint64_t step, int kind)
{
    const Lane *lane = w->lane;
    const MPI_Aint words = slot_at(w, lane->count);
    const uint64_t one = 1;
    uint64_t *last = (uint64_t *) (w->memory + words);
    uint64_t *was = memory_of((size_t) lane->count * sizeof *was);
    for (int turn = 0; turn < 2; turn++) {
        const uint64_t key = step + (uint64_t) turn;
        begin_epochs(w, kind);
        for (int shift = 1; shift < lane->count; shift++) {
            const int to = (lane->me + shift) % lane->count;
            fill(out_for(lane, to), w->slot, key_of(key, lane->me, to));
            open_epoch(w, kind, to, (int) (key_of(key, to, 0) % 2));
            MPI_Put(out_for(lane, to), (int) w->slot, MPI_BYTE, to, slot_at(w, lane->me),
                    (int) w->slot, MPI_BYTE, w->win);
            MPI_Accumulate(&one, 1, MPI_UINT64_T, to, words, 1, MPI_UINT64_T, MPI_SUM, w->win);
            close_epoch(w, kind, to);
        }
        end_epochs(w, kind);
        /* in an epoch of its own, for the sake of separate memory models */
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, lane->me, 0, w->win);
        for (int p = 0; p < lane->count; p++)
            if (p != lane->me)
                expect(w->memory + slot_at(w, p), w->slot, key_of(key, p, lane->me), put_by[kind],
                       p);
        REQUIRE(last[0] == (uint64_t) (turn + 1) * (uint64_t) (lane->count - 1),
                "%s: %llu added in turn %d", put_by[kind], (unsigned long long) last[0], turn);
        MPI_Win_unlock(lane->me, w->win);

        MPI_Barrier(lane->comm);
        begin_epochs(w, kind);
        for (int shift = 1; shift < lane->count; shift++) {
            const int to = (lane->me + shift) % lane->count;
            open_epoch(w, kind, to, 1);
            MPI_Get(in_from(lane, to), (int) w->slot, MPI_BYTE, to, slot_at(w, lane->me),
                    (int) w->slot, MPI_BYTE, w->win);
            was[to] = ~0ull;
            MPI_Fetch_and_op(&one, &was[to], MPI_UINT64_T, to, words + 8, MPI_SUM, w->win);
            close_epoch(w, kind, to);
        }
        end_epochs(w, kind);
        for (int p = 0; p < lane->count; p++)
            if (p != lane->me) {
                expect(in_from(lane, p), w->slot, key_of(key, lane->me, p), got_by[kind], p);
                REQUIRE(was[p] / (uint64_t) (lane->count - 1) == (uint64_t) turn,
                        "%s: %llu fetched from %d in turn %d", got_by[kind],
                        (unsigned long long) was[p], p, turn);
            }
        MPI_Barrier(lane->comm);
    }
    free(was);
}

/* The group of all others has the ranks that it should have in the window, processes of another job
 * too: MPI_Win_post and MPI_Win_start go by it. */
static void look_at_groups(const Window *w)
{
    const Lane *lane = w->lane;
    MPI_Group group;
    MPI_Win_get_group(w->win, &group);
    for (int i = 0; i < lane->count - 1; i++) {
        int there = -1;
        MPI_Group_translate_ranks(w->others, 1, &i, group, &there);
        REQUIRE(there == i + (i >= lane->me), "process %d of the others is rank %d", i, there);
    }
    MPI_Group_free(&group);
}

static void one_sided(const Lane *lane, uint64_t step)
{
    Draw draw = {step};
    Window w = {.lane = lane, .slot = (size_drawn(next(&draw), SLOT_MOST) + 15) / 8 * 8};
    const size_t bytes = (size_t) lane->count * w.slot + 16;
    const int created = below(&draw, 2), first = below(&draw, EPOCHS);
    MPI_Group group;
    if (created) {
        w.memory = memory_of(bytes);
        MPI_Win_create(w.memory, (MPI_Aint) bytes, 1, MPI_INFO_NULL, lane->comm, &w.win);
    } else
        MPI_Win_allocate((MPI_Aint) bytes, 1, MPI_INFO_NULL, lane->comm, &w.memory, &w.win);
    MPI_Comm_group(lane->comm, &group);
    MPI_Group_excl(group, 1, &lane->me, &w.others);
    MPI_Group_free(&group);
    look_at_groups(&w);
    for (int i = 0; i < 2; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, lane->me, 0, w.win);
        memset(w.memory, 0, bytes);
        MPI_Win_unlock(lane->me, w.win);
        MPI_Barrier(lane->comm);
        use_window(&w, next(&draw), (first + i) % EPOCHS);
    }
    MPI_Win_free(&w.win);
    MPI_Group_free(&w.others);
    if (created)
        free(w.memory);
}

#endif
