/* Processes of other jobs: children that are spawned, talk and end; and two halves of the job that
 * connect by a port. */
#ifndef SOAK_PROCESSES_H_INCLUDED
#define SOAK_PROCESSES_H_INCLUDED

#include "collectives.h"
#include "one_sided.h"
#include "sample.h"

enum { TALK_MOST = 256 << 10, CHILDREN_MOST = 2 };

/* Both sides of an intercommunicator, with the same step. */
static void talk(MPI_Comm inter, uint64_t step, int high)
{
    int there = 0, one = 1, want, me;
    MPI_Comm merged;
    at("merge");
    MPI_Comm_rank(inter, &me);
    MPI_Comm_remote_size(inter, &want);
    MPI_Allreduce(&one, &there, 1, MPI_INT, MPI_SUM, inter);
    REQUIRE(there == want, "%d processes on the other side, not %d", there, want);
    MPI_Intercomm_merge(inter, high, &merged);
    Lane lane = lane_of(merged, TALK_MOST, NULL, NULL);
    lane.out = memory_of((size_t) lane.count * lane.most);
    lane.in = memory_of((size_t) lane.count * lane.most);
    at("messages of two jobs");
    nonblocking(&lane, step, 0);
    nonblocking(&lane, step + 1, 1);
    probed(&lane, step + 2);
    broadcasts(&lane, step + 3);
    unexpected(&lane, step + 4);
    if (step >> 16 & 1) {
        at("one-sided of two jobs");
        one_sided(&lane, step + 5);
    }
    MPI_Barrier(merged);
    at("disconnect");
    MPI_Comm_free(&merged);
    free(lane.out);
    free(lane.in);
}

static void spawn(char *program, uint64_t step)
{
    Draw draw = {step};
    const int root = below(&draw, ranks), count = 1 + below(&draw, CHILDREN_MOST);
    char seed_text[32], step_text[32];
    char *arguments[] = {(char *) "child", seed_text, step_text, NULL};
    int codes[CHILDREN_MOST];
    MPI_Comm children;
    snprintf(seed_text, sizeof seed_text, "%llu", seed);
    snprintf(step_text, sizeof step_text, "%llu", (unsigned long long) step);
    MPI_Comm_spawn(program, arguments, count, MPI_INFO_NULL, root, MPI_COMM_WORLD, &children,
                   codes);
    for (int i = 0; i < count; i++)
        REQUIRE(codes[i] == MPI_SUCCESS, "child %d of %d: %d", i, count, codes[i]);
    talk(children, step, 0);
    MPI_Comm_disconnect(&children);
    spawned += count;
}

static int be_a_child(uint64_t step)
{
    MPI_Comm parent;
    step_name = "child";
    MPI_Comm_get_parent(&parent);
    REQUIRE(parent != MPI_COMM_NULL, "no parent");
    talk(parent, step, 1);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
}

static void connect_halves(uint64_t step)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, inter;
    /* who accepts: the lower half of the ranks, or the even ones */
    const int accepts = step >> 17 & 1 ? my_rank < (ranks + 1) / 2 : my_rank % 2 == 0;
    if (ranks < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, accepts, my_rank, &half);
    if (my_rank == 0)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (accepts)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
    talk(inter, step, !accepts);
    MPI_Comm_disconnect(&inter);
    if (my_rank == 0)
        MPI_Close_port(port);
    MPI_Comm_free(&half);
    connected++;
}

#endif
