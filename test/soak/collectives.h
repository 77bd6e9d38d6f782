/* Collective operations, communicators that are made and freed. All processes of the lane call each
 * function with the same `step`. */
#ifndef SOAK_COLLECTIVES_H_INCLUDED
#define SOAK_COLLECTIVES_H_INCLUDED

#include "messages.h"

enum { PIECE_MOST = 1 << 20 };

static void broadcasts(const Lane *lane, uint64_t step)
{
    const int root = (int) ((step >> 16) % (uint64_t) lane->count);
    const size_t bytes = size_drawn(step, lane->most);
    for (int nonblocking_call = 0; nonblocking_call < 2; nonblocking_call++) {
        const uint64_t key = key_of(step, root, nonblocking_call);
        if (lane->me == root)
            fill(lane->in, bytes, key);
        else
            memset(lane->in, 0, bytes);
        if (nonblocking_call) {
            MPI_Request request;
            MPI_Ibcast(lane->in, (int) bytes, MPI_BYTE, root, lane->comm, &request);
            compute(0.001);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else
            MPI_Bcast(lane->in, (int) bytes, MPI_BYTE, root, lane->comm);
        expect(lane->in, bytes, key, "broadcast", root);
    }
}

/* Sums wrap around: any order gives the same. */
static uint64_t sum_of(uint64_t step, int processes, size_t place)
{
    uint64_t sum = 0;
    for (int p = 0; p < processes; p++)
        sum += word_of(key_of(step, p, 0), place);
    return sum;
}

static void expect_sums(uint64_t step, const uint64_t *sums, int count, int processes, size_t first,
                        const char *what)
{
    for (int i = 0; i < count; i++)
        REQUIRE(sums[i] == sum_of(step, processes, first + (size_t) i),
                "%s: word %d of %d is wrong", what, i, count);
    atomic_fetch_add(&messages_checked, 1);
    atomic_fetch_add(&bytes_checked, 8 * (unsigned) count);
}

static void reductions(const Lane *lane, uint64_t step)
{
    const int count = (int) (size_drawn(step, PIECE_MOST) / 8) + 1, root = count % lane->count;
    const int each = count / lane->count + 1;
    uint64_t *mine = (uint64_t *) lane->out, *sums = (uint64_t *) lane->in;
    MPI_Request request;
    fill(mine, 8 * (size_t) each * (size_t) lane->count, key_of(step, lane->me, 0));
    MPI_Allreduce(mine, sums, count, MPI_UINT64_T, MPI_SUM, lane->comm);
    expect_sums(step, sums, count, lane->count, 0, "MPI_Allreduce");
    memset(sums, 0, 8 * (size_t) count);
    MPI_Reduce(mine, sums, count, MPI_UINT64_T, MPI_SUM, root, lane->comm);
    if (lane->me == root)
        expect_sums(step, sums, count, lane->count, 0, "MPI_Reduce");
    memset(sums, 0, 8 * (size_t) count);
    MPI_Scan(mine, sums, count, MPI_UINT64_T, MPI_SUM, lane->comm);
    expect_sums(step, sums, count, lane->me + 1, 0, "MPI_Scan");
    memset(sums, 0, 8 * (size_t) count);
    MPI_Reduce_scatter_block(mine, sums, each, MPI_UINT64_T, MPI_SUM, lane->comm);
    expect_sums(step, sums, each, lane->count, (size_t) (lane->me * each),
                "MPI_Reduce_scatter_block");
    memset(sums, 0, 8 * (size_t) count);
    MPI_Iallreduce(mine, sums, count, MPI_UINT64_T, MPI_SUM, lane->comm, &request);
    compute(0.002);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_sums(step, sums, count, lane->count, 0, "MPI_Iallreduce");
}

/* MPI_Alltoall and MPI_Allgather, then with counts that differ, then gather and scatter. */
static void exchanges(const Lane *lane, uint64_t step)
{
    const size_t room = lane->most;
    const int count = lane->count, same = (int) size_drawn(step, PIECE_MOST),
              root = same % lane->count;
    int *sizes = memory_of(4 * (size_t) count * sizeof *sizes);
    int *out_sizes = sizes, *in_sizes = sizes + count, *out_at = sizes + 2 * count,
        *in_at = sizes + 3 * count;
    for (int p = 0; p < count; p++)
        fill(lane->out + (size_t) p * (size_t) same, (size_t) same, key_of(step, lane->me, p));
    MPI_Alltoall(lane->out, same, MPI_BYTE, lane->in, same, MPI_BYTE, lane->comm);
    for (int p = 0; p < count; p++)
        expect(lane->in + (size_t) p * (size_t) same, (size_t) same, key_of(step, p, lane->me),
               "MPI_Alltoall", p);

    for (int p = 0; p < count; p++) {
        out_sizes[p] = filled(lane, step, p);
        in_sizes[p] = (int) size_between(lane, step, p, lane->me);
        out_at[p] = in_at[p] = (int) ((size_t) p * room);
    }
    MPI_Alltoallv(lane->out, out_sizes, out_at, MPI_BYTE, lane->in, in_sizes, in_at, MPI_BYTE,
                  lane->comm);
    for (int p = 0; p < count; p++)
        expect(in_from(lane, p), (size_t) in_sizes[p], key_of(step, p, lane->me), "MPI_Alltoallv",
               p);

    fill(lane->out, (size_t) same, key_of(step, lane->me, -1));
    MPI_Allgather(lane->out, same, MPI_BYTE, lane->in, same, MPI_BYTE, lane->comm);
    for (int p = 0; p < count; p++)
        expect(lane->in + (size_t) p * (size_t) same, (size_t) same, key_of(step, p, -1),
               "MPI_Allgather", p);
    memset(lane->in, 0, (size_t) same * (size_t) count);
    MPI_Gather(lane->out, same, MPI_BYTE, lane->in, same, MPI_BYTE, root, lane->comm);
    if (lane->me == root)
        for (int p = 0; p < count; p++)
            expect(lane->in + (size_t) p * (size_t) same, (size_t) same, key_of(step, p, -1),
                   "MPI_Gather", p);
    memset(lane->out, 0, (size_t) same);
    MPI_Scatter(lane->in, same, MPI_BYTE, lane->out, same, MPI_BYTE, root, lane->comm);
    expect(lane->out, (size_t) same, key_of(step, lane->me, -1), "MPI_Scatter", root);
    free(sizes);
}

/* A barrier that is under way while messages are exchanged. */
static void barriers(const Lane *lane, uint64_t step)
{
    MPI_Request request;
    MPI_Ibarrier(lane->comm, &request);
    nonblocking(lane, step, 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(lane->comm);
}

/* Copies, parts and pairs of groups, each with a little traffic of its own. */
static void communicators(const Lane *lane, uint64_t step)
{
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_dup(lane->comm, &comm);
    Lane part = lane_of(comm, 4096, lane->out, lane->in);
    nonblocking(&part, step, 1);
    MPI_Comm_free(&comm);

    MPI_Comm_idup(lane->comm, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    part = lane_of(comm, 4096, lane->out, lane->in);
    reductions(&part, step + 1);
    MPI_Comm_free(&comm);

    if (lane->count < 2)
        return;
    const int half = lane->me < (lane->count + 1) / 2;
    MPI_Comm_split(lane->comm, half, lane->me, &comm);
    part = lane_of(comm, 4096, lane->out, lane->in);
    nonblocking(&part, step + 2, 0);
    MPI_Comm pair;
    MPI_Intercomm_create(comm, 0, lane->comm, half ? (lane->count + 1) / 2 : 0, tag_of(step),
                         &pair);
    int there = 0, one = 1, want;
    MPI_Comm_remote_size(pair, &want);
    MPI_Allreduce(&one, &there, 1, MPI_INT, MPI_SUM, pair);
    REQUIRE(there == want, "%d processes on the other side, not %d", there, want);
    MPI_Comm_free(&pair);
    MPI_Comm_free(&comm);
}

#endif
