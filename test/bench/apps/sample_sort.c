/* A sort of random 64-bit keys: each rank sorts its own and gives samples of them to all
 * (MPI_Allgather), from which all choose the same splitters. Ranks tell how many keys they have for
 * each other (MPI_Alltoall), exchange them (MPI_Alltoallv), and merge what they got.
 * Alone: mpiexec -n 4 sample_sort --pattern sample_sort --sizes 256K,1M --overlap yes.
 *
 * A size is the number of keys per rank. Sensible: 256K, 512K and 1M, with 20 to 80 ms (4 ranks on
 * 2 cores).
 * --overlap yes exchanges keys by MPI_Isend and MPI_Irecv, and merges some while others travel.
 *
 * Verified: keys ascend within each rank and from rank to rank. Their number, their sum and the sum
 * of a hash of each are those of the keys before. */
#define _GNU_SOURCE
#include "apps.h"

enum { MOST_SAMPLES = 64 }; /* per rank */

static int count;   /* keys per rank */
static int samples; /* of each rank */
static uint64_t *keys, *sorted, *spare;
static uint64_t *my_samples, *all_samples, *spare_samples;
static int *send_counts, *send_places, *receive_counts, *receive_places;
static MPI_Request *sends, *receives;

/* Runs of keys are merged in a binary tree whose leaves are the sources. The run of a node at
 * height h lies in runs[h % 2], at the places of its sources. Node 1 is the root. */
static int leaves;
static bool *complete;
static uint64_t *runs[2];
static size_t room; /* keys in each of `runs` */
static const uint64_t *result;
static int result_count;

static const char *refusal(size_t size)
{
    return size > (size_t) (1 << 27) / (size_t) ranks ? "128M keys at most, of all ranks" : NULL;
}

static void prepare(int size)
{
    const size_t of_ranks = (size_t) ranks;
    count = size;
    samples = count < MOST_SAMPLES ? count : MOST_SAMPLES;
    keys = allocate((size_t) count, sizeof *keys);
    sorted = allocate((size_t) count, sizeof *sorted);
    spare = allocate((size_t) count, sizeof *spare);
    my_samples = allocate((size_t) samples, sizeof *my_samples);
    all_samples = allocate((size_t) samples * of_ranks, sizeof *all_samples);
    spare_samples = allocate((size_t) samples * of_ranks, sizeof *spare_samples);
    send_counts = allocate(of_ranks, sizeof *send_counts);
    send_places = allocate(of_ranks + 1, sizeof *send_places);
    receive_counts = allocate(of_ranks, sizeof *receive_counts);
    receive_places = allocate(of_ranks + 1, sizeof *receive_places);
    sends = allocate(of_ranks, sizeof(MPI_Request));
    receives = allocate(of_ranks, sizeof(MPI_Request));
    for (leaves = 1; leaves < ranks; leaves *= 2)
        ;
    complete = allocate(2 * (size_t) leaves, sizeof *complete);
    runs[0] = runs[1] = NULL;
    room = 0;
}
static void release(void)
{
    void *const all[] = {keys,          sorted,      spare,       my_samples,     all_samples,
                         spare_samples, send_counts, send_places, receive_counts, receive_places,
                         sends,         receives,    complete,    runs[0],        runs[1]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static uint64_t key_at(int place)
{
    return scramble((uint64_t) my_rank << 32 | (uint64_t) place);
}
static void reset(void)
{
    for (int i = 0; i < count; i++)
        keys[i] = key_at(i);
    for (int i = 0; i < 2; i++)
        if (runs[i])
            memset(runs[i], 0, room * sizeof *runs[i]);
    result = NULL;
    result_count = 0;
}

/* By bytes, from the lowest to the highest. The result is where the keys were. */
static void sort_keys(uint64_t *values, uint64_t *other, int length)
{
    uint64_t *from = values, *to = other;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        int next[256] = {0}, place = 0;
        for (int i = 0; i < length; i++)
            next[from[i] >> shift & 0xff]++;
        for (int digit = 0; digit < 256; digit++) {
            const int those = next[digit];
            next[digit] = place;
            place += those;
        }
        for (int i = 0; i < length; i++)
            to[next[from[i] >> shift & 0xff]++] = from[i];
        uint64_t *const swap = from;
        from = to;
        to = swap;
    }
}

/* --- who gets which keys */

/* The first of the sorted keys that is not below `splitter`. */
static int lower_bound(uint64_t splitter)
{
    int low = 0, high = count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (sorted[middle] < splitter)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
static void split_keys(void)
{
    for (int i = 0; i < samples; i++)
        my_samples[i] = sorted[share_start(count, samples, i)];
    MPI_Allgather(my_samples, samples, MPI_UINT64_T, all_samples, samples, MPI_UINT64_T,
                  MPI_COMM_WORLD);
    sort_keys(all_samples, spare_samples, samples * ranks);
    send_places[0] = 0;
    for (int i = 1; i < ranks; i++)
        send_places[i] = lower_bound(all_samples[i * samples]);
    send_places[ranks] = count;
    for (int i = 0; i < ranks; i++)
        send_counts[i] = send_places[i + 1] - send_places[i];
    MPI_Alltoall(send_counts, 1, MPI_INT, receive_counts, 1, MPI_INT, MPI_COMM_WORLD);
    receive_places[0] = 0;
    for (int i = 0; i < ranks; i++)
        receive_places[i + 1] = receive_places[i] + receive_counts[i];
    result_count = receive_places[ranks];
}
/* The first solve makes it; the others have the same keys. */
static void make_room(void)
{
    if ((size_t) result_count <= room && room > 0)
        return;
    room = (size_t) result_count + 1;
    for (int i = 0; i < 2; i++) {
        free(runs[i]);
        runs[i] = allocate(room, sizeof *runs[i]);
    }
}

/* --- merging */
static int place_of_source(int source)
{
    return receive_places[source < ranks ? source : ranks];
}
/* Both runs of the lower height into one. Their sources are `first`, and `width` from each. */
static void merge(int height, int first, int width)
{
    const uint64_t *const from = runs[(height - 1) % 2];
    const int begin = place_of_source(first), middle = place_of_source(first + width),
              end = place_of_source(first + 2 * width);
    uint64_t *restrict to = runs[height % 2] + begin;
    int a = begin, b = middle;
    while (a < middle && b < end)
        *to++ = from[a] <= from[b] ? from[a++] : from[b++];
    memcpy(to, from + a, (size_t) (middle - a) * sizeof *to);
    memcpy(to + (middle - a), from + b, (size_t) (end - b) * sizeof *to);
}
/* The keys of `source` are there: merges all nodes that this completes. */
static void arrived(int source)
{
    int node = leaves + source, height = 0, width = 1;
    complete[node] = true;
    while (node > 1 && complete[node ^ 1]) {
        node /= 2;
        height++;
        merge(height, source / (2 * width) * (2 * width), width);
        width *= 2;
        complete[node] = true;
    }
    if (node == 1)
        result = runs[height % 2];
}

/* --- the exchange */
static void exchange_in_turn(void)
{
    MPI_Alltoallv(sorted, send_counts, send_places, MPI_UINT64_T, runs[0], receive_counts,
                  receive_places, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++)
        arrived(i);
}
/* Each rank starts with its next one, so that not all send to the same. */
static void exchange_overlapped(void)
{
    for (int i = 0; i < ranks; i++) {
        const int from = (my_rank + ranks - i) % ranks;
        receives[from] = MPI_REQUEST_NULL;
        if (from != my_rank)
            MPI_Irecv(runs[0] + receive_places[from], receive_counts[from], MPI_UINT64_T, from, 0,
                      MPI_COMM_WORLD, &receives[from]);
    }
    for (int i = 0; i < ranks; i++) {
        const int to = (my_rank + i) % ranks;
        sends[to] = MPI_REQUEST_NULL;
        if (to != my_rank)
            MPI_Isend(sorted + send_places[to], send_counts[to], MPI_UINT64_T, to, 0,
                      MPI_COMM_WORLD, &sends[to]);
    }
    memcpy(runs[0] + receive_places[my_rank], sorted + send_places[my_rank],
           (size_t) send_counts[my_rank] * sizeof *sorted);
    arrived(my_rank);
    for (int i = 1; i < ranks; i++) {
        int from;
        MPI_Waitany(ranks, receives, &from, MPI_STATUS_IGNORE);
        arrived(from);
    }
    wait_for_all(ranks, sends);
}

static void solve(void)
{
    memcpy(sorted, keys, (size_t) count * sizeof *keys);
    sort_keys(sorted, spare, count);
    split_keys();
    make_room();
    memset(complete, 0, 2 * (size_t) leaves * sizeof *complete);
    for (int i = ranks; i < leaves; i++)
        arrived(i); /* nothing comes from there */
    if (overlap)
        exchange_overlapped();
    else
        exchange_in_turn();
}

static bool verify(void)
{
    /* of keys before and after: how many, their sum, the sum of their hashes */
    uint64_t mine[2][3] = {{0}}, sums[2][3];
    uint64_t below = 0;
    bool right = result || result_count == 0;
    for (int i = 0; i < count; i++) {
        const uint64_t key = key_at(i);
        mine[0][0]++;
        mine[0][1] += key;
        mine[0][2] += scramble(key);
    }
    for (int i = 0; right && i < result_count; i++) {
        mine[1][0]++;
        mine[1][1] += result[i];
        mine[1][2] += scramble(result[i]);
    }
    MPI_Allreduce(mine, sums, 6, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    right = right && memcmp(sums[0], sums[1], sizeof sums[0]) == 0;
    for (int i = 1; right && i < result_count; i++)
        right = result[i - 1] <= result[i];
    /* the greatest key of all ranks before this one; some may have none */
    const uint64_t greatest = right && result_count > 0 ? result[result_count - 1] : 0;
    MPI_Exscan(&greatest, &below, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return right && (my_rank == 0 || result_count == 0 || below <= result[0]);
}

/* The keys that belong to another rank than the one that had them. */
static double payload(void)
{
    const double mine = count - send_counts[my_rank];
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sizeof(uint64_t) * all;
}

int main(int argc, char **argv)
{
    const struct app app = {.name = "sample_sort",
                            .size_means = "the number of keys per rank",
                            .refusal = refusal,
                            .prepare = prepare,
                            .reset = reset,
                            .solve = solve,
                            .verify = verify,
                            .payload = payload,
                            .release = release};
    return run_app(&app, argc, argv);
}
