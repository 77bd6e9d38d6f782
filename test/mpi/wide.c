/* A little of everything in MPI point to point, with every byte checked: sizes around all cutoffs,
 * modes, wildcards, order, truncation, probes, derived datatypes, self sends, floods, persistent
 * requests, cancel, communicators, threads of large traffic in both directions. Any number of ranks
 * from 1 on; run it with different LITE_* knobs. Source of the rules: MPI 4.0, chapter 3. */
#include "mpi_test.h"

static int right, left; /* neighbours in the ring */

/* around the defaults of every knob and of the frame and window sizes, and odd ones */
static const int sizes[] = {0,      1,      2,      3,       7,      8,      9,      63,     64,
                            65,     255,    256,    257,     511,    512,    513,    1000,   1023,
                            1024,   1025,   2047,   2048,    2049,   4095,   4096,   4097,   8191,
                            8192,   8193,   16383,  16384,   16385,  32767,  32768,  32769,  65535,
                            65536,  65537,  100003, 131071,  131072, 131073, 262143, 262144, 262145,
                            524287, 524288, 524289, 1048576, 3000001};
enum { SIZES = sizeof sizes / sizeof *sizes, BYTES_MAX = 3000001 };
static unsigned char *out, *in;

static void check_status(const MPI_Status *status, int source, int tag, int bytes,
                         const char *where)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK(status->MPI_SOURCE == source, "%s: source %d, want %d", where, status->MPI_SOURCE,
          source);
    CHECK(status->MPI_TAG == tag, "%s: tag %d, want %d", where, status->MPI_TAG, tag);
    CHECK(count == bytes, "%s: %d bytes, want %d", where, count, bytes);
}

static void check_data(const void *buffer, int bytes, unsigned seed, const char *where)
{
    const long wrong = pattern_wrong(buffer, (size_t) bytes, seed);
    CHECK(wrong < 0, "%s: %d bytes: byte %ld is wrong", where, bytes, wrong);
}

/* One message of every size to the right, each in a mode, posted before or after its send, named or
 * wildcard. */
static void every_size(void)
{
    for (int i = 0; i < SIZES; i++)
        for (int variant = 0; variant < 6; variant++) {
            const int bytes = sizes[i], tag = 100 + variant;
            const unsigned seed = (unsigned) (my_rank * 7 + i * 13 + variant),
                           from_seed = (unsigned) (left * 7 + i * 13 + variant);
            MPI_Request requests[2];
            MPI_Status statuses[2];
            pattern_fill(out, (size_t) bytes, seed);
            memset(in, 0, (size_t) bytes);
            const int source = variant & 1 ? MPI_ANY_SOURCE : left,
                      want_tag = variant & 1 ? MPI_ANY_TAG : tag;
            if (variant < 2) {
                MPI_Irecv(in, bytes, MPI_BYTE, source, want_tag, MPI_COMM_WORLD, &requests[0]);
                MPI_Isend(out, bytes, MPI_BYTE, right, tag, MPI_COMM_WORLD, &requests[1]);
            } else if (variant < 4) {
                MPI_Isend(out, bytes, MPI_BYTE, right, tag, MPI_COMM_WORLD, &requests[1]);
                MPI_Irecv(in, bytes, MPI_BYTE, source, want_tag, MPI_COMM_WORLD, &requests[0]);
            } else {
                MPI_Issend(out, bytes, MPI_BYTE, right, tag, MPI_COMM_WORLD, &requests[1]);
                MPI_Irecv(in, bytes, MPI_BYTE, source, want_tag, MPI_COMM_WORLD, &requests[0]);
            }
            MPI_Waitall(2, requests, statuses);
            check_status(&statuses[0], left, tag, bytes, "every_size");
            check_data(in, bytes, from_seed, "every_size");
        }
}

/* A synchronous send completes only when matched; an ordinary small one need not wait. */
static void synchronous_send_waits_for_its_receive(void)
{
    if (ranks < 2)
        return;
    for (int i = 0; i < SIZES; i += 5) {
        const int bytes = sizes[i];
        int done = 1, token = 0;
        if (my_rank == 0) {
            MPI_Request request;
            pattern_fill(out, (size_t) bytes, 3);
            MPI_Issend(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
            /* rank 1 answers on another tag and has posted no receive yet */
            MPI_Send(&token, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int k = 0; k < 100; k++)
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            CHECK(!done, "a synchronous send of %d bytes completed unmatched", bytes);
            MPI_Send(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (my_rank == 1) {
            MPI_Recv(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_data(in, bytes, 3, "synchronous");
        }
    }
}

/* Messages of one sender do not overtake each other, whatever protocol each takes, and tags pick
 * out of the order. */
static void order_is_kept_across_protocols(void)
{
    enum { COUNT = 40 };
    static const int mixed[] = {10, 300000, 0, 5000, 70000, 1, 150000, 600};
    MPI_Request requests[2 * COUNT];
    unsigned char *sent[COUNT], *received[COUNT];
    for (int k = 0; k < COUNT; k++) {
        const int bytes = mixed[k % 8];
        sent[k] = malloc((size_t) bytes + 1);
        received[k] = calloc(1, 300001);
        if (!sent[k] || !received[k])
            MPI_Abort(MPI_COMM_WORLD, 2);
        pattern_fill(sent[k], (size_t) bytes, (unsigned) (k + my_rank));
    }
    for (int pass = 0; pass < 2; pass++) {
        MPI_Status statuses[2 * COUNT];
        if (pass == 1) /* unexpected: nothing is posted when they arrive */
            for (int k = 0; k < COUNT; k++)
                MPI_Isend(sent[k], mixed[k % 8], MPI_BYTE, right, 5, MPI_COMM_WORLD,
                          &requests[COUNT + k]);
        for (int k = 0; k < COUNT; k++)
            MPI_Irecv(received[k], 300000, MPI_BYTE, k % 3 ? left : MPI_ANY_SOURCE,
                      k % 2 ? 5 : MPI_ANY_TAG, MPI_COMM_WORLD, &requests[k]);
        if (pass == 0)
            for (int k = 0; k < COUNT; k++)
                MPI_Isend(sent[k], mixed[k % 8], MPI_BYTE, right, 5, MPI_COMM_WORLD,
                          &requests[COUNT + k]);
        MPI_Waitall(2 * COUNT, requests, statuses);
        for (int k = 0; k < COUNT; k++) {
            check_status(&statuses[k], left, 5, mixed[k % 8], "order");
            check_data(received[k], mixed[k % 8], (unsigned) (k + left), "order");
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int k = 0; k < COUNT; k++) {
        free(sent[k]);
        free(received[k]);
    }

    /* last tag first */
    for (int i = 0; i < SIZES; i += 7) {
        MPI_Request request[3];
        const int bytes = sizes[i];
        for (int tag = 0; tag < 3; tag++)
            MPI_Isend(&my_rank, 1, MPI_INT, right, 20 + tag, MPI_COMM_WORLD, &request[tag]);
        pattern_fill(out, (size_t) bytes, (unsigned) my_rank);
        MPI_Request large;
        MPI_Isend(out, bytes, MPI_BYTE, right, 23, MPI_COMM_WORLD, &large);
        MPI_Recv(in, bytes, MPI_BYTE, left, 23, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_data(in, bytes, (unsigned) left, "last tag first");
        for (int tag = 2; tag >= 0; tag--) {
            int value = -1;
            MPI_Recv(&value, 1, MPI_INT, left, 20 + tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(value == left, "tag %d brought %d", 20 + tag, value);
        }
        MPI_Wait(&large, MPI_STATUS_IGNORE);
        MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
    }
}

/* A message longer than its receive: an error, the first bytes delivered, nothing written behind
 * them, and the next message is whole. */
static void truncation_is_an_error_and_no_more(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 5; i < SIZES; i += 3)
        for (int posted = 0; posted < 2; posted++) {
            const int bytes = sizes[i], room = bytes / 2;
            MPI_Request send, receive;
            MPI_Status status;
            int class, code;
            pattern_fill(out, (size_t) bytes, (unsigned) (my_rank + 1));
            memset(in, 0xee, (size_t) bytes);
            if (posted)
                MPI_Irecv(in, room, MPI_BYTE, left, 1, comm, &receive);
            MPI_Barrier(comm);
            MPI_Isend(out, bytes, MPI_BYTE, right, 1, comm, &send);
            if (!posted)
                code = MPI_Recv(in, room, MPI_BYTE, left, 1, comm, &status);
            else
                code = MPI_Wait(&receive, &status);
            MPI_Error_class(code, &class);
            CHECK(class == MPI_ERR_TRUNCATE, "%d bytes into %d: error class %d", bytes, room,
                  class);
            int clean = 1;
            for (int k = room; k < bytes; k++)
                clean &= in[k] == 0xee;
            CHECK(clean, "%d bytes into %d: something was written behind the buffer", bytes, room);
            MPI_Wait(&send, MPI_STATUS_IGNORE);
            int value = -1;
            MPI_Sendrecv(&my_rank, 1, MPI_INT, right, 2, &value, 1, MPI_INT, left, 2, comm,
                         MPI_STATUS_IGNORE);
            CHECK(value == left, "the message after a truncated one brought %d", value);
        }
    MPI_Comm_free(&comm);
}

static void probes_find_and_detach(void)
{
    for (int i = 0; i < SIZES; i += 2) {
        const int bytes = sizes[i];
        MPI_Request sends[3];
        MPI_Status status;
        MPI_Message message;
        int flag = 0;
        unsigned char *second = calloc(1, (size_t) bytes + 1);
        if (!second)
            MPI_Abort(MPI_COMM_WORLD, 2);
        pattern_fill(out, (size_t) bytes, (unsigned) (my_rank + i));
        for (int k = 0; k < 3; k++)
            MPI_Isend(out, bytes, MPI_BYTE, right, 30 + k, MPI_COMM_WORLD, &sends[k]);

        MPI_Probe(left, 30, MPI_COMM_WORLD, &status);
        check_status(&status, left, 30, bytes, "probe");
        MPI_Mprobe(MPI_ANY_SOURCE, 31, MPI_COMM_WORLD, &message, &status);
        check_status(&status, left, 31, bytes, "mprobe");
        MPI_Iprobe(left, 31, MPI_COMM_WORLD, &flag, &status);
        CHECK(!flag, "a matched probe left its message for others");
        memset(in, 0, (size_t) bytes);
        MPI_Recv(in, bytes, MPI_BYTE, left, 30, MPI_COMM_WORLD, &status);
        check_data(in, bytes, (unsigned) (left + i), "probe");
        MPI_Request request;
        MPI_Imrecv(second, bytes, MPI_BYTE, &message, &request);
        CHECK(message == MPI_MESSAGE_NULL, "MPI_Imrecv left the message handle");
        MPI_Wait(&request, &status);
        check_status(&status, left, 31, bytes, "imrecv");
        check_data(second, bytes, (unsigned) (left + i), "imrecv");
        while (!flag)
            MPI_Improbe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
        check_status(&status, left, 32, bytes, "improbe");
        memset(in, 0, (size_t) bytes);
        MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status);
        check_status(&status, left, 32, bytes, "mrecv");
        check_data(in, bytes, (unsigned) (left + i), "mrecv");
        MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
        free(second);
        /* else the left neighbour could be a turn ahead, and its next messages be found here */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    int flag = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag, "a probe found a message that nobody sent");
}

/* The same data sent as one type and received as another. */
static void derived_datatypes(void)
{
    static const int counts[] = {1, 3, 17, 100, 1000, 5000, 20000};
    struct record {
        char letter;
        int number;
        double value;
    };
    MPI_Datatype record_type, resized;
    const int lengths[] = {1, 1, 1};
    const MPI_Aint places[] = {offsetof(struct record, letter), offsetof(struct record, number),
                               offsetof(struct record, value)};
    const MPI_Datatype members[] = {MPI_CHAR, MPI_INT, MPI_DOUBLE};
    MPI_Type_create_struct(3, lengths, places, members, &resized);
    MPI_Type_create_resized(resized, 0, sizeof(struct record), &record_type);
    MPI_Type_commit(&record_type);
    MPI_Type_free(&resized);

    for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++) {
        const int n = counts[c];
        MPI_Request request;
        /* strided there, contiguous here, and the other way round */
        int *strided = calloc((size_t) n * 3, sizeof(int)), *flat = calloc((size_t) n, sizeof(int));
        int *places_indexed = malloc((size_t) n * sizeof(int)),
            *lengths_indexed = malloc((size_t) n * sizeof(int));
        struct record *records = calloc((size_t) n, sizeof *records),
                      *got = calloc((size_t) n, sizeof *got);
        if (!strided || !flat || !places_indexed || !lengths_indexed || !records || !got)
            MPI_Abort(MPI_COMM_WORLD, 2);
        MPI_Datatype vector, indexed;
        MPI_Type_vector(n, 1, 3, MPI_INT, &vector);
        MPI_Type_commit(&vector);
        for (int k = 0; k < n; k++) {
            strided[3 * k] = my_rank * 1000003 + k;
            places_indexed[k] = 3 * (n - 1 - k) + 1; /* backwards */
            lengths_indexed[k] = 1;
            records[k] = (struct record){(char) ('a' + k % 26), my_rank + k, my_rank + k * 0.5};
        }
        MPI_Type_indexed(n, lengths_indexed, places_indexed, MPI_INT, &indexed);
        MPI_Type_commit(&indexed);

        MPI_Isend(strided, 1, vector, right, 40, MPI_COMM_WORLD, &request);
        MPI_Recv(flat, n, MPI_INT, left, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        int good = 1;
        for (int k = 0; k < n; k++)
            good &= flat[k] == left * 1000003 + k;
        CHECK(good, "vector to contiguous, %d elements", n);

        int *scattered = calloc((size_t) n * 3, sizeof(int));
        if (!scattered)
            MPI_Abort(MPI_COMM_WORLD, 2);
        MPI_Irecv(scattered, 1, indexed, left, 41, MPI_COMM_WORLD, &request);
        MPI_Send(strided, 1, vector, right, 41, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        good = 1;
        for (int k = 0; k < n; k++) {
            good &= scattered[places_indexed[k]] == left * 1000003 + k;
            good &= scattered[3 * k] == 0 && scattered[3 * k + 2] == 0;
        }
        CHECK(good, "vector to indexed, %d elements", n);

        /* unexpected, then received into holes */
        memset(scattered, 0, (size_t) n * 3 * sizeof(int));
        MPI_Isend(strided, 1, vector, right, 42, MPI_COMM_WORLD, &request);
        MPI_Probe(left, 42, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(scattered, 1, indexed, left, 42, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        good = 1;
        for (int k = 0; k < n; k++)
            good &= scattered[places_indexed[k]] == left * 1000003 + k;
        CHECK(good, "unexpected vector to indexed, %d elements", n);

        MPI_Issend(records, n, record_type, right, 43, MPI_COMM_WORLD, &request);
        MPI_Recv(got, n, record_type, left, 43, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        good = 1;
        for (int k = 0; k < n; k++)
            good &= got[k].letter == 'a' + k % 26 && got[k].number == left + k &&
                    got[k].value == left + k * 0.5;
        CHECK(good, "struct, %d elements", n);

        MPI_Type_free(&vector);
        MPI_Type_free(&indexed);
        free(strided);
        free(flat);
        free(places_indexed);
        free(lengths_indexed);
        free(records);
        free(got);
        free(scattered);
    }
    MPI_Type_free(&record_type);
}

/* ---- types of large blocks, which are moved piece by piece ---- */

/* A type and, from its construction and not from MPI, where its bytes are: in packed order,
 * relative to the address that MPI is given. */
enum { BLOCKS_MAX = 4000, REGION = 2 << 20 };
struct layout {
    const char *name;
    MPI_Datatype type;
    int count;       /* of the type, in the call */
    MPI_Aint origin; /* of that address, in the region; < 0: MPI_BOTTOM, and places are addresses */
    int blocks;
    MPI_Aint place[BLOCKS_MAX];
    size_t length[BLOCKS_MAX];
    size_t bytes;
};

static void add_block(struct layout *l, MPI_Aint place, size_t length)
{
    l->place[l->blocks] = place;
    l->length[l->blocks++] = length;
    l->bytes += length;
}

enum { SHAPES = 7 };

/* `region` has room for every shape; `block` is a multiple of 8. */
static void make_layout(struct layout *l, int shape, int blocks, int block, unsigned char *region)
{
    MPI_Datatype inner;
    int *lengths = malloc(sizeof(int) * (size_t) blocks);
    MPI_Aint *places = malloc(sizeof(MPI_Aint) * (size_t) blocks);
    if (!lengths || !places || blocks > BLOCKS_MAX / 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(l, 0, sizeof *l);
    l->count = 1;
    switch (shape) {
    case 0:
        l->name = "contiguous";
        MPI_Type_contiguous(blocks * block, MPI_BYTE, &l->type);
        add_block(l, 0, (size_t) blocks * (size_t) block);
        break;
    case 1:
        l->name = "vector of doubles";
        MPI_Type_vector(blocks, block / 8, block / 8 + 3, MPI_DOUBLE, &l->type);
        for (int k = 0; k < blocks; k++)
            add_block(l, (MPI_Aint) k * (block + 24), (size_t) block);
        break;
    case 2: /* backwards in memory, from a negative lower bound, blocks of 0 and of other lengths
               among them */
        l->name = "hindexed";
        l->origin = REGION / 2;
        for (int k = 0; k < blocks; k++) {
            lengths[k] = k % 5 == 4 ? 0 : k % 3 == 2 ? block + 1 : block;
            places[k] = (MPI_Aint) (blocks / 2 - k) * (block + 9);
            add_block(l, places[k], (size_t) lengths[k]);
        }
        MPI_Type_create_hindexed(blocks, lengths, places, MPI_BYTE, &l->type);
        break;
    case 3: /* count > 1, with a gap between the elements: the extent is set */
        l->name = "resized, many";
        MPI_Type_contiguous(block, MPI_BYTE, &inner);
        MPI_Type_create_resized(inner, -8, block + 40, &l->type);
        MPI_Type_free(&inner);
        l->count = blocks;
        for (int k = 0; k < blocks; k++)
            add_block(l, (MPI_Aint) k * (block + 40), (size_t) block);
        break;
    case 4: /* absolute addresses */
        l->name = "struct at MPI_BOTTOM";
        l->origin = -1;
        for (int k = 0; k < blocks; k++) {
            lengths[k] = block;
            MPI_Get_address(region + 100 + (size_t) k * (size_t) (block + 16), &places[k]);
            add_block(l, places[k], (size_t) block);
        }
        MPI_Type_create_hindexed(blocks, lengths, places, MPI_BYTE, &l->type);
        break;
    case 5: { /* columns of a matrix of rows of `block` bytes, nested */
        l->name = "vector of vectors";
        MPI_Type_create_hvector(2, block / 2, block, MPI_BYTE, &inner);
        MPI_Type_create_hvector(blocks, 1, 3 * (MPI_Aint) block, inner, &l->type);
        MPI_Type_free(&inner);
        for (int k = 0; k < blocks; k++)
            for (int half = 0; half < 2; half++)
                add_block(l, (MPI_Aint) k * 3 * block + half * block, (size_t) block / 2);
        break;
    }
    default: { /* neighbours that touch, which a list may join, and one that stands alone */
        l->name = "struct";
        MPI_Datatype types[3] = {MPI_DOUBLE, MPI_INT, MPI_BYTE};
        const int counts[3] = {block / 8, block / 4, block};
        const MPI_Aint at[3] = {0, block, 3 * (MPI_Aint) block};
        MPI_Type_create_struct(3, counts, at, types, &inner);
        MPI_Type_create_resized(inner, 0, 5 * (MPI_Aint) block, &l->type);
        MPI_Type_free(&inner);
        l->count = (blocks + 2) / 3;
        for (int k = 0; k < l->count; k++)
            for (int part = 0; part < 3; part++)
                add_block(l, (MPI_Aint) k * 5 * block + at[part], (size_t) block);
    }
    }
    MPI_Type_commit(&l->type);
    free(lengths);
    free(places);
}

static unsigned char *address_of(const struct layout *l, unsigned char *region)
{
    return l->origin < 0 ? (unsigned char *) MPI_BOTTOM : region + l->origin;
}

static unsigned char *block_at(const struct layout *l, int k, unsigned char *region)
{
    return l->origin < 0 ? (unsigned char *) l->place[k] : region + l->origin + l->place[k];
}

/* The first `bytes` are the pattern, and nothing else of the region is written. Puts the region
 * back. */
static int layout_is_right(const struct layout *l, unsigned char *region, size_t bytes,
                           unsigned seed)
{
    size_t i = 0;
    int right_data = 1;
    for (int k = 0; k < l->blocks; k++)
        for (size_t j = 0; j < l->length[k] && i < bytes; j++, i++) {
            unsigned char *p = block_at(l, k, region) + j;
            right_data &= *p == pattern_byte(i, seed);
            *p = 0xee;
        }
    for (size_t j = 0; j < REGION; j++)
        right_data &= region[j] == 0xee;
    return right_data && i == bytes;
}

static void types_of_large_blocks(void)
{
    static const int shapes_of[][2] = {{3, 1000},   {8, 640}, {30, 1024}, {1000, 512},
                                       {300, 2048}, {3, 64},  {200, 104}, {4, 100000}};
    static struct layout from, to;
    unsigned char *sent = malloc(REGION), *got = malloc(REGION);
    MPI_Comm comm;
    if (!sent || !got)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(got, 0xee, REGION);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    unsigned turn = 0;
    for (unsigned s = 0; s < sizeof shapes_of / sizeof *shapes_of; s++)
        for (int pair = 0; pair < SHAPES * SHAPES; pair++, turn++) {
            const int blocks = shapes_of[s][0], block = shapes_of[s][1];
            /* of other block lengths than the sender's; sometimes with less room, sometimes with
             * more */
            const int cut = turn % 4 == 1, more = turn % 4 == 2, posted = turn % 3 != 0,
                      matched = turn % 3 == 0 && turn % 2;
            make_layout(&from, pair / SHAPES, blocks, block, sent);
            make_layout(&to, pair % SHAPES, cut && blocks > 1 ? blocks - 1 : blocks + more, block,
                        got);
            const unsigned seed = (unsigned) my_rank + turn, from_seed = (unsigned) left + turn;
            size_t i = 0;
            for (int k = 0; k < from.blocks; k++)
                for (size_t j = 0; j < from.length[k]; j++)
                    block_at(&from, k, sent)[j] = pattern_byte(i++, seed);
            const size_t delivered = from.bytes < to.bytes ? from.bytes : to.bytes;
            MPI_Request requests[2];
            MPI_Status status;
            int code, class = MPI_SUCCESS;
            if (posted) {
                MPI_Irecv(address_of(&to, got), to.count, to.type, left, 50, comm, &requests[0]);
                MPI_Barrier(comm);
            }
            if (turn % 5 == 0)
                MPI_Issend(address_of(&from, sent), from.count, from.type, right, 50, comm,
                           &requests[1]);
            else
                MPI_Isend(address_of(&from, sent), from.count, from.type, right, 50, comm,
                          &requests[1]);
            /* a type may be freed while it is in use */
            MPI_Type_free(&from.type);
            if (!posted) {
                MPI_Message message;
                MPI_Probe(left, 50, comm, &status);
                if (matched) {
                    MPI_Mprobe(left, 50, comm, &message, &status);
                    MPI_Imrecv(address_of(&to, got), to.count, to.type, &message, &requests[0]);
                } else {
                    MPI_Irecv(address_of(&to, got), to.count, to.type, left, 50, comm,
                              &requests[0]);
                }
            }
            MPI_Type_free(&to.type);
            code = MPI_Wait(&requests[0], &status);
            MPI_Error_class(code, &class);
            /* a message that ends inside of a double is an error of types, as it is when it is
             * unpacked */
            if (from.bytes > to.bytes)
                CHECK(class == MPI_ERR_TRUNCATE, "%s to %s, %zu bytes into %zu: error class %d",
                      from.name, to.name, from.bytes, to.bytes, class);
            else
                CHECK(class == MPI_SUCCESS || class == MPI_ERR_TYPE,
                      "%s to %s, %zu bytes into %zu: error class %d", from.name, to.name,
                      from.bytes, to.bytes, class);
            CHECK(layout_is_right(&to, got, delivered, from_seed) || class == MPI_ERR_TYPE,
                  "%s to %s, %zu bytes into %zu, %d blocks of %d", from.name, to.name, from.bytes,
                  to.bytes, blocks, block);
            if (class == MPI_ERR_TYPE)
                memset(got, 0xee, REGION);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        }

    /* the pieces of a send may overlap */
    const int lengths[] = {2000, 2000, 2000};
    const MPI_Aint places[] = {0, 500, 0};
    MPI_Datatype overlapping;
    MPI_Type_create_hindexed(3, lengths, places, MPI_BYTE, &overlapping);
    MPI_Type_commit(&overlapping);
    pattern_fill(sent, 2500, (unsigned) my_rank);
    MPI_Sendrecv(sent, 1, overlapping, right, 51, in, 6000, MPI_BYTE, left, 51, comm,
                 MPI_STATUS_IGNORE);
    int good = 1;
    for (int k = 0; k < 6000; k++)
        good &= in[k] == pattern_byte((size_t) (k < 2000   ? k
                                                : k < 4000 ? k - 1500
                                                           : k - 4000),
                                      (unsigned) left);
    CHECK(good, "overlapping pieces");
    MPI_Type_free(&overlapping);

    /* ends inside of a double */
    make_layout(&to, 1, 10, 800, got);
    MPI_Request request;
    MPI_Status status;
    int class;
    MPI_Irecv(got, 1, to.type, left, 52, comm, &request);
    MPI_Send(sent, 2003, MPI_BYTE, right, 52, comm);
    MPI_Error_class(MPI_Wait(&request, &status), &class);
    CHECK(class == MPI_ERR_TYPE, "a message that ends inside of a double: error class %d", class);
    MPI_Type_free(&to.type);
    MPI_Comm_free(&comm);
    free(sent);
    free(got);
}

static void self_sends(void)
{
    for (int i = 0; i < SIZES; i++)
        for (int variant = 0; variant < 3; variant++) {
            const int bytes = sizes[i];
            MPI_Request requests[2];
            MPI_Status statuses[2];
            pattern_fill(out, (size_t) bytes, (unsigned) i);
            memset(in, 0, (size_t) bytes);
            if (variant == 0)
                MPI_Irecv(in, bytes, MPI_BYTE, my_rank, 50, MPI_COMM_WORLD, &requests[0]);
            if (variant == 1)
                MPI_Issend(out, bytes, MPI_BYTE, my_rank, 50, MPI_COMM_WORLD, &requests[1]);
            else
                MPI_Isend(out, bytes, MPI_BYTE, my_rank, 50, MPI_COMM_WORLD, &requests[1]);
            if (variant != 0)
                MPI_Irecv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &requests[0]);
            MPI_Waitall(2, requests, statuses);
            check_status(&statuses[0], my_rank, 50, bytes, "self");
            check_data(in, bytes, (unsigned) i, "self");
        }
}

/* Everybody pushes at rank 0, which does not look for a while: credits must hold, nothing may be
 * lost or reordered. */
static void flood_of_unexpected_messages(void)
{
    enum { COUNT = 600, FLOOD_MAX = 40000 };
    static const int flood_sizes[] = {16, 3000, FLOOD_MAX};
    if (my_rank == 0) {
        int *next = calloc((size_t) ranks, sizeof(int));
        if (!next)
            MPI_Abort(MPI_COMM_WORLD, 2);
        usleep(300000);
        for (int k = 0; k < COUNT * (ranks - 1); k++) {
            MPI_Status status;
            int bytes;
            MPI_Recv(in, BYTES_MAX, MPI_BYTE, MPI_ANY_SOURCE, 60, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            const int from = status.MPI_SOURCE, number = next[from]++;
            CHECK(bytes == flood_sizes[number % 3], "message %d of %d has %d bytes", number, from,
                  bytes);
            check_data(in, bytes, (unsigned) (number + from), "flood");
        }
        free(next);
    } else {
        MPI_Request *requests = malloc(COUNT * sizeof *requests);
        unsigned char *data = malloc((size_t) COUNT * FLOOD_MAX);
        if (!requests || !data)
            MPI_Abort(MPI_COMM_WORLD, 2);
        for (int k = 0; k < COUNT; k++) {
            pattern_fill(data + (size_t) k * FLOOD_MAX, (size_t) flood_sizes[k % 3],
                         (unsigned) (k + my_rank));
            MPI_Isend(data + (size_t) k * FLOOD_MAX, flood_sizes[k % 3], MPI_BYTE, 0, 60,
                      MPI_COMM_WORLD, &requests[k]);
        }
        MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
        free(requests);
        free(data);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void persistent_requests(void)
{
    for (int i = 0; i < SIZES; i += 4) {
        const int bytes = sizes[i];
        MPI_Request requests[2];
        MPI_Recv_init(in, bytes, MPI_BYTE, left, 70, MPI_COMM_WORLD, &requests[0]);
        if (i % 8)
            MPI_Send_init(out, bytes, MPI_BYTE, right, 70, MPI_COMM_WORLD, &requests[1]);
        else
            MPI_Ssend_init(out, bytes, MPI_BYTE, right, 70, MPI_COMM_WORLD, &requests[1]);
        for (int turn = 0; turn < 5; turn++) {
            pattern_fill(out, (size_t) bytes, (unsigned) (turn + my_rank));
            memset(in, 0, (size_t) bytes);
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            check_data(in, bytes, (unsigned) (turn + left), "persistent");
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
}

static void cancelled_receive_leaves_the_message_to_the_next(void)
{
    for (int any = 0; any < 2; any++) {
        MPI_Request request;
        MPI_Status status;
        int cancelled = 0, value = -1, wrong = -1;
        MPI_Irecv(&wrong, 1, MPI_INT, any ? MPI_ANY_SOURCE : left, 80, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled, "an unmatched receive could not be cancelled");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Sendrecv(&my_rank, 1, MPI_INT, right, 80, &value, 1, MPI_INT, left, 80, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK(value == left && wrong == -1, "after the cancel: %d, and %d in the cancelled buffer",
              value, wrong);

        /* too late: it completes as usual */
        value = -1;
        MPI_Irecv(&value, 1, MPI_INT, any ? MPI_ANY_SOURCE : left, 81, MPI_COMM_WORLD, &request);
        MPI_Send(&my_rank, 1, MPI_INT, right, 81, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        int flag = 0;
        while (!flag)
            MPI_Request_get_status(request, &flag, &status);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(!cancelled && value == left, "a matched receive: cancelled %d, brought %d", cancelled,
              value);
    }
}

/* Same tags, other communicators: split, duplicated, reversed. */
static void communicators_are_apart(void)
{
    MPI_Comm dup, reversed;
    int reversed_rank, values[3] = {-1, -1, -1};
    MPI_Request requests[3];
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - my_rank, &reversed);
    MPI_Comm_rank(reversed, &reversed_rank);
    const int world = 1, second = 2, third = 3;
    MPI_Irecv(&values[0], 1, MPI_INT, MPI_ANY_SOURCE, 9, reversed, &requests[0]);
    MPI_Irecv(&values[1], 1, MPI_INT, MPI_ANY_SOURCE, 9, dup, &requests[1]);
    MPI_Irecv(&values[2], 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &requests[2]);
    MPI_Send(&world, 1, MPI_INT, right, 9, MPI_COMM_WORLD);
    MPI_Send(&second, 1, MPI_INT, right, 9, dup);
    MPI_Send(&third, 1, MPI_INT, (reversed_rank + 1) % ranks, 9, reversed);
    MPI_Status statuses[3];
    MPI_Waitall(3, requests, statuses);
    CHECK(values[0] == 3 && values[1] == 2 && values[2] == 1, "brought %d %d %d", values[0],
          values[1], values[2]);
    CHECK(statuses[0].MPI_SOURCE == (reversed_rank + ranks - 1) % ranks,
          "source %d in the reversed communicator", statuses[0].MPI_SOURCE);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&reversed);
}

/* All pairs at a time, large both ways, received in another order than sent. */
static void everybody_to_everybody(void)
{
    enum { BYTES = 400000 };
    unsigned char *sent = malloc((size_t) ranks * BYTES), *received = calloc((size_t) ranks, BYTES);
    MPI_Request *requests = malloc(2 * (size_t) ranks * sizeof *requests);
    if (!sent || !received || !requests)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int turn = 0; turn < 3; turn++) {
        for (int k = 0; k < ranks; k++) {
            pattern_fill(sent + (size_t) k * BYTES, BYTES, (unsigned) (my_rank * 31 + k + turn));
            MPI_Isend(sent + (size_t) k * BYTES, BYTES, MPI_BYTE, k, turn, MPI_COMM_WORLD,
                      &requests[k]);
        }
        for (int k = ranks - 1; k >= 0; k--)
            MPI_Irecv(received + (size_t) k * BYTES, BYTES, MPI_BYTE, k, turn, MPI_COMM_WORLD,
                      &requests[ranks + k]);
        MPI_Waitall(2 * ranks, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < ranks; k++)
            check_data(received + (size_t) k * BYTES, BYTES, (unsigned) (k * 31 + my_rank + turn),
                       "everybody");
    }
    free(sent);
    free(received);
    free(requests);
}

/* The parts of MPI that ride on active messages and collectives: a put, a get, an accumulate, an
 * allreduce, a window of large data. */
static void one_sided_and_collective(void)
{
    enum { COUNT = 50000 };
    int *window, *data = malloc(COUNT * sizeof(int));
    MPI_Win win;
    if (!data)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Win_allocate(COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window,
                     &win);
    for (int k = 0; k < COUNT; k++) {
        window[k] = 0;
        data[k] = my_rank + k;
    }
    MPI_Win_fence(0, win);
    MPI_Put(data, COUNT / 2, MPI_INT, right, 0, COUNT / 2, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Accumulate(data, COUNT / 2, MPI_INT, right, 0, COUNT / 2, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    int good = 1;
    for (int k = 0; k < COUNT / 2; k++)
        good &= window[k] == 2 * (left + k);
    CHECK(good, "put and accumulate");
    memset(data, 0, COUNT * sizeof(int));
    MPI_Win_fence(0, win);
    MPI_Get(data, COUNT / 2, MPI_INT, right, 0, COUNT / 2, MPI_INT, win);
    MPI_Win_fence(0, win);
    good = 1;
    for (int k = 0; k < COUNT / 2; k++)
        good &= data[k] == 2 * (my_rank + k);
    CHECK(good, "get");
    MPI_Win_free(&win);

    long sum = 0, mine = my_rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == (long) ranks * (ranks + 1) / 2, "allreduce brought %ld", sum);
    for (int root = 0; root < ranks; root++) {
        if (my_rank == root)
            pattern_fill(in, BYTES_MAX, (unsigned) root);
        else
            memset(in, 0, BYTES_MAX);
        MPI_Bcast(in, BYTES_MAX, MPI_BYTE, root, MPI_COMM_WORLD);
        check_data(in, BYTES_MAX, (unsigned) root, "bcast");
    }
    free(data);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    right = (my_rank + 1) % ranks;
    left = (my_rank + ranks - 1) % ranks;
    out = malloc(BYTES_MAX);
    in = malloc(BYTES_MAX);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 2);
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {
        {"every_size", every_size},
        {"synchronous_send_waits_for_its_receive", synchronous_send_waits_for_its_receive},
        {"order_is_kept_across_protocols", order_is_kept_across_protocols},
        {"truncation_is_an_error_and_no_more", truncation_is_an_error_and_no_more},
        {"probes_find_and_detach", probes_find_and_detach},
        {"derived_datatypes", derived_datatypes},
        {"types_of_large_blocks", types_of_large_blocks},
        {"self_sends", self_sends},
        {"flood_of_unexpected_messages", flood_of_unexpected_messages},
        {"persistent_requests", persistent_requests},
        {"cancelled_receive_leaves_the_message_to_the_next",
         cancelled_receive_leaves_the_message_to_the_next},
        {"communicators_are_apart", communicators_are_apart},
        {"everybody_to_everybody", everybody_to_everybody},
        {"one_sided_and_collective", one_sided_and_collective},
    };
    for (unsigned k = 0; k < sizeof parts / sizeof *parts; k++) {
        /* names as arguments pick parts */
        int wanted = argc < 2;
        for (int a = 1; a < argc; a++)
            wanted |= strcmp(argv[a], parts[k].name) == 0;
        if (!wanted)
            continue;
        const int failed_before = checks_failed;
        const double begin = now_s();
        parts[k].run();
        MPI_Barrier(MPI_COMM_WORLD);
        if (my_rank == 0)
            printf("wide: %s %s (%.2f s)\n", parts[k].name,
                   checks_failed == failed_before ? "done" : "FAILED", now_s() - begin);
        fflush(stdout);
    }
    free(out);
    free(in);
    return finish("wide");
}
