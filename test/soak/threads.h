/* Threads of each process, each with the same number's of the other processes in a communicator of
 * its own, and all together in one. With MPI_THREAD_MULTIPLE. */
#ifndef SOAK_THREADS_H_INCLUDED
#define SOAK_THREADS_H_INCLUDED

#include "collectives.h"

enum { THREADS = 4 };

typedef struct {
    Lane lane;
    MPI_Comm together;
    uint64_t step;
    int number;
} Thread;
static Thread thread_of[THREADS];

static void prepare_threads(const Lane *world)
{
    const size_t most = world->most / THREADS;
    MPI_Comm together, comm;
    MPI_Comm_dup(world->comm, &together);
    for (int t = 0; t < THREADS; t++) {
        const size_t at = (size_t) t * (size_t) world->count * most;
        MPI_Comm_dup(world->comm, &comm);
        thread_of[t] =
            (Thread){lane_of(comm, most, world->out + at, world->in + at), together, 0, t};
    }
}

static void free_threads(void)
{
    MPI_Comm_free(&thread_of[0].together);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_free(&thread_of[t].lane.comm);
}

/* From each thread to the next one of the next process, and of this process. */
static void across(const Thread *thread, uint64_t step)
{
    const Lane *lane = &thread->lane;
    const int target = (thread->number + 1) % THREADS;
    const int origin = (thread->number + THREADS - 1) % THREADS;
    const int next_one = (lane->me + 1) % lane->count;
    const int last_one = (lane->me + lane->count - 1) % lane->count;
    const int to[2] = {lane->me, next_one}, from[2] = {lane->me, last_one};
    unsigned char *out[2], *in;
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++) {
        const uint64_t key = key_of(step, lane->me, target * 2 + i);
        const size_t bytes = size_drawn(key, 1 << 17);
        out[i] = memory_of(bytes);
        fill(out[i], bytes, key);
        MPI_Isend(out[i], (int) bytes, MPI_BYTE, to[i], target * 2 + i, thread->together,
                  &requests[i]);
    }
    in = memory_of(1 << 17);
    for (int i = 0; i < 2; i++) {
        const uint64_t key = key_of(step, from[i], thread->number * 2 + i);
        const size_t bytes = size_drawn(key, 1 << 17);
        MPI_Status status;
        int count;
        MPI_Recv(in, 1 << 17, MPI_BYTE, from[i], thread->number * 2 + i, thread->together, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        REQUIRE(count == (int) bytes, "%d bytes from thread %d of %d", count, origin, from[i]);
        expect(in, bytes, key, "between threads", from[i]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    free(out[0]);
    free(out[1]);
    free(in);
}

static void *run_thread(void *argument)
{
    const Thread *thread = argument;
    Draw draw = {key_of(thread->step, thread->number, 0)};
    for (int turn = 0; turn < 3; turn++) {
        const uint64_t step = step_drawn(&draw, turn);
        across(thread, thread->step * 8 + (uint64_t) turn);
        switch (below(&draw, 6)) {
        case 0: blocking(&thread->lane, step); break;
        case 1: nonblocking(&thread->lane, step, 0); break;
        case 2: nonblocking(&thread->lane, step, 1); break;
        case 3: probed(&thread->lane, step); break;
        case 4: with_holes(&thread->lane, step); break;
        default: broadcasts(&thread->lane, step);
        }
    }
    return NULL;
}

static void threads(uint64_t step)
{
    pthread_t ids[THREADS];
    for (int t = 0; t < THREADS; t++) {
        /* what goes from one thread to another has the same key in all of them */
        thread_of[t].step = step;
        REQUIRE(pthread_create(&ids[t], NULL, run_thread, &thread_of[t]) == 0, "thread %d", t);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(ids[t], NULL);
}

#endif
