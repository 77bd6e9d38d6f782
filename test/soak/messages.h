/* Point-to-point traffic of a lane, a function each way; all processes of the lane call it with the
 * same `step`. */
#ifndef SOAK_MESSAGES_H_INCLUDED
#define SOAK_MESSAGES_H_INCLUDED

#include "common.h"

/* A fast process is a step ahead: no message of one step fits a receive of the next. */
static int tag_of(uint64_t step)
{
    return (int) (step & 0xffff);
}

enum { UNEXPECTED_TAGS = 1 << 17, NEVER_SENT = 1 << 16 };

/* Each pair in turn: MPI_Send, MPI_Ssend or MPI_Sendrecv. */
static void blocking(const Lane *lane, uint64_t step)
{
    const int tag = tag_of(step);
    for (int a = 0; a < lane->count; a++)
        for (int b = a + 1; b < lane->count; b++) {
            if (lane->me != a && lane->me != b)
                continue;
            const int other = lane->me == a ? b : a, bytes = filled(lane, step, other);
            MPI_Status status;
            switch (key_of(step, a, b) % 3) {
            case 0:
                MPI_Sendrecv(out_for(lane, other), bytes, MPI_BYTE, other, tag,
                             in_from(lane, other), (int) lane->most, MPI_BYTE, other, tag,
                             lane->comm, &status);
                break;
            case 1:
                if (lane->me == a)
                    MPI_Ssend(out_for(lane, other), bytes, MPI_BYTE, other, tag, lane->comm);
                MPI_Recv(in_from(lane, other), (int) lane->most, MPI_BYTE, other, tag, lane->comm,
                         &status);
                if (lane->me == b)
                    MPI_Ssend(out_for(lane, other), bytes, MPI_BYTE, other, tag, lane->comm);
                break;
            default:
                if (lane->me == b)
                    MPI_Send(out_for(lane, other), bytes, MPI_BYTE, other, tag, lane->comm);
                MPI_Recv(in_from(lane, other), (int) lane->most, MPI_BYTE, other, tag, lane->comm,
                         &status);
                if (lane->me == a)
                    MPI_Send(out_for(lane, other), bytes, MPI_BYTE, other, tag, lane->comm);
            }
            expect_from(lane, step, other, &status, in_from(lane, other), "blocking");
        }
}

/* Starts the sends to all others into `requests`; returns how many. */
static int send_to_all(const Lane *lane, uint64_t step, MPI_Request *requests)
{
    int count = 0;
    for (int shift = 1; shift < lane->count; shift++) {
        const int to = (lane->me + shift) % lane->count, bytes = filled(lane, step, to);
        (key_of(step, to, lane->me) % 4 == 0 ? MPI_Issend : MPI_Isend)(
            out_for(lane, to), bytes, MPI_BYTE, to, tag_of(step), lane->comm, &requests[count++]);
    }
    return count;
}

static void wait_for(int count, MPI_Request *requests, MPI_Status *statuses, int way)
{
    int done = 0, some, index;
    switch (way) {
    case 0:
        for (int i = 0; i < count; i++) {
            MPI_Status status;
            MPI_Waitany(count, requests, &index, &status);
            statuses[index] = status;
        }
        break;
    case 1:
        while (!done)
            MPI_Testall(count, requests, &done, statuses);
        break;
    case 2: {
        int *indices = memory_of((size_t) count * sizeof *indices);
        MPI_Status *found = memory_of((size_t) count * sizeof *found);
        for (; done < count; done += some) {
            MPI_Waitsome(count, requests, &some, indices, found);
            for (int i = 0; i < some; i++)
                statuses[indices[i]] = found[i];
        }
        free(indices);
        free(found);
        break;
    }
    default: MPI_Waitall(count, requests, statuses);
    }
}

/* All to all at once, received from known or from any sources; half of the processes compute for
 * some milliseconds while the messages are under way. */
static void nonblocking(const Lane *lane, uint64_t step, int from_any)
{
    const int others = lane->count - 1;
    const uint64_t mine = key_of(step, lane->me, -1);
    MPI_Request *requests = memory_of(2 * (size_t) others * sizeof *requests);
    MPI_Status *statuses = memory_of(2 * (size_t) others * sizeof *statuses);
    for (int i = 0; i < others; i++) {
        const int from = (lane->me + 1 + i) % lane->count;
        MPI_Irecv(in_from(lane, from), (int) lane->most, MPI_BYTE, from_any ? MPI_ANY_SOURCE : from,
                  tag_of(step), lane->comm, &requests[i]);
    }
    send_to_all(lane, step, requests + others);
    if (mine % 2 == 0)
        compute(0.001 * (double) (mine / 2 % 20));
    wait_for(2 * others, requests, statuses, (int) (mine / 64 % 4));
    for (int i = 0; i < others; i++) {
        const int place = (lane->me + 1 + i) % lane->count, from = statuses[i].MPI_SOURCE;
        REQUIRE(from_any || from == place, "from %d in place of %d", from, place);
        expect_from(lane, step, from, &statuses[i], in_from(lane, place), "nonblocking");
    }
    free(requests);
    free(statuses);
}

/* What has come is asked for first: by MPI_Probe, MPI_Mprobe, or MPI_Improbe in a loop. */
static void probed(const Lane *lane, uint64_t step)
{
    MPI_Request *requests = memory_of((size_t) lane->count * sizeof *requests);
    const int tag = tag_of(step), sends = send_to_all(lane, step, requests);
    for (int i = 0; i < lane->count - 1; i++) {
        MPI_Status status;
        MPI_Message message;
        int found = 0, bytes;
        const int way = (int) (key_of(step, lane->me, -2 - i) % 3);
        if (way == 0)
            MPI_Probe(MPI_ANY_SOURCE, tag, lane->comm, &status);
        else if (way == 1)
            MPI_Mprobe(MPI_ANY_SOURCE, tag, lane->comm, &message, &status);
        else
            while (!found)
                MPI_Improbe(MPI_ANY_SOURCE, tag, lane->comm, &found, &message, &status);
        const int from = status.MPI_SOURCE;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        REQUIRE(bytes >= 0 && bytes <= (int) lane->most, "%d bytes from %d", bytes, from);
        if (way == 0)
            MPI_Recv(in_from(lane, from), bytes, MPI_BYTE, from, tag, lane->comm, &status);
        else
            MPI_Mrecv(in_from(lane, from), bytes, MPI_BYTE, &message, &status);
        expect_from(lane, step, from, &status, in_from(lane, from), "probed");
    }
    MPI_Waitall(sends, requests, MPI_STATUSES_IGNORE);
    free(requests);
}

/* To the next process from data with holes, and back into such; words of 8 bytes. */
static void with_holes(const Lane *lane, uint64_t step)
{
    enum { LENGTH_MOST = 64 };
    Draw draw = {step};
    const int to = (lane->me + 1) % lane->count, from = (lane->me + lane->count - 1) % lane->count;
    const int length = 1 + below(&draw, LENGTH_MOST), gap = 1 + below(&draw, 16),
              odd = below(&draw, 2), tag = tag_of(step);
    const int stride = length + gap + odd;
    int blocks = (int) (size_drawn(next(&draw), lane->most / 2) / 8) / stride;
    blocks = blocks > 0 ? blocks : 1;
    const int words = blocks * length;
    uint64_t *out = (uint64_t *) out_for(lane, to), *in = (uint64_t *) in_from(lane, from);
    MPI_Datatype type;
    int *places = memory_of((size_t) blocks * sizeof *places);
    for (int b = 0; b < blocks; b++)
        places[b] = b * stride + (odd ? b % 2 : 0);
    if (odd)
        MPI_Type_create_indexed_block(blocks, length, places, MPI_UINT64_T, &type);
    else
        MPI_Type_vector(blocks, length, stride, MPI_UINT64_T, &type);
    MPI_Type_commit(&type);

    fill(out, 8 * (size_t) blocks * (size_t) stride, key_of(step, lane->me, to));
    MPI_Sendrecv(out, 1, type, to, tag, in, 8 * words, MPI_BYTE, from, tag, lane->comm,
                 MPI_STATUS_IGNORE);
    for (int b = 0, k = 0; b < blocks; b++)
        for (int i = 0; i < length; i++, k++)
            REQUIRE(in[k] == word_of(key_of(step, from, lane->me), (size_t) (places[b] + i)),
                    "packed from data with holes: word %d of %d", k, words);

    fill(out, 8 * (size_t) words, key_of(step, to, lane->me));
    memset(in, 0x5a, 8 * (size_t) blocks * (size_t) stride);
    MPI_Sendrecv(out, 8 * words, MPI_BYTE, to, tag, in, 1, type, from, tag, lane->comm,
                 MPI_STATUS_IGNORE);
    for (int b = 0, k = 0; b < blocks; b++) {
        const int end = b + 1 < blocks ? places[b + 1] : places[b] + length;
        for (int place = places[b]; place < end; place++)
            if (place < places[b] + length) {
                REQUIRE(in[place] == word_of(key_of(step, lane->me, from), (size_t) k),
                        "unpacked to data with holes: word %d of %d", k, words);
                k++;
            } else
                REQUIRE(in[place] == 0x5a5a5a5a5a5a5a5au, "the hole after block %d", b);
    }
    atomic_fetch_add(&messages_checked, 2);
    atomic_fetch_add(&bytes_checked, 16 * (size_t) words);
    MPI_Type_free(&type);
    free(places);
}

/* Many messages, of which the last is received first. */
static void unexpected(const Lane *lane, uint64_t step)
{
    enum { COUNT_MOST = 600, BYTES_MOST = 20000 };
    Draw draw = {step};
    const int to = (lane->me + 1) % lane->count, from = (lane->me + lane->count - 1) % lane->count;
    const int count = 1 + below(&draw, COUNT_MOST);
    const size_t most = below(&draw, 4) == 0 ? BYTES_MOST : 64;
    unsigned char *out = memory_of((size_t) count * most), *in = memory_of(most);
    MPI_Request *requests = memory_of((size_t) count * sizeof *requests);
    for (int i = 0; i < count; i++) {
        const uint64_t key = key_of(step + (uint64_t) i, lane->me, to);
        const size_t bytes = size_drawn(key, most);
        fill(out + (size_t) i * most, bytes, key);
        MPI_Isend(out + (size_t) i * most, (int) bytes, MPI_BYTE, to, UNEXPECTED_TAGS + i,
                  lane->comm, &requests[i]);
    }
    for (int i = count - 1; i >= 0; i--) {
        const uint64_t key = key_of(step + (uint64_t) i, from, lane->me);
        MPI_Status status;
        int bytes;
        MPI_Recv(in, (int) most, MPI_BYTE, from, UNEXPECTED_TAGS + i, lane->comm, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        REQUIRE(bytes == (int) size_drawn(key, most), "unexpected %d: %d bytes", i, bytes);
        expect(in, (size_t) bytes, key, "unexpected", from);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(out);
    free(in);
}

/* Persistent requests, started several times; and a receive that is cancelled. */
static void persistent(const Lane *lane, uint64_t step)
{
    const int to = (lane->me + 1) % lane->count, from = (lane->me + lane->count - 1) % lane->count;
    MPI_Request requests[2], never;
    MPI_Status statuses[2], status;
    int cancelled = 0;
    const int bytes = filled(lane, step, to);
    MPI_Irecv(&cancelled, 1, MPI_INT, from, NEVER_SENT, lane->comm, &never);
    MPI_Send_init(out_for(lane, to), bytes, MPI_BYTE, to, tag_of(step), lane->comm, &requests[0]);
    MPI_Recv_init(in_from(lane, from), (int) lane->most, MPI_BYTE, from, tag_of(step), lane->comm,
                  &requests[1]);
    for (int turn = 0; turn < 3; turn++) {
        memset(in_from(lane, from), turn, (size_t) size_between(lane, step, from, lane->me));
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        expect_from(lane, step, from, &statuses[1], in_from(lane, from), "persistent");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Cancel(&never);
    MPI_Wait(&never, &status);
    MPI_Test_cancelled(&status, &cancelled);
    REQUIRE(cancelled, "a receive that nothing was sent to is not cancelled");
}

#endif
