/* Overlap of communication and computation under any MPI-3 library: post, compute T with no MPI
 * call, wait. See overlap_method.h for the method and docs/overlap.md for what the numbers mean.
 * Run by test/bench/overlap; alone: mpiexec -n 2 mpi_overlap --op both --sizes 1M,4M. Rank 0 prints
 * one JSON object per size, on a line of its own.
 *
 *   isend       rank 0 sends, rank 1 receives           irecv       rank 1 sends, rank 0 receives
 *   both        each sends and receives (Irecv, Isend)
 *   put, get    rank 0 is the origin, passive target (lock_all, flush); rank 1 makes no MPI call
 *               while it computes, then waits for a token
 *   ialltoall   BYTES to each rank    iallreduce   a vector of BYTES, sum of doubles    ibcast
 *               BYTES from rank 0
 * --compute all: every rank posts and computes. --compute N: rank N alone does; the others sit in
 * MPI_Recv, MPI_Send, MPI_Sendrecv (or the operation and its wait at once), and wait_ratio is their
 * time by that of the same call when nobody computes. */
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include "overlap_method.h"

enum op { ISEND, IRECV, BOTH, PUT, GET, IALLTOALL, IALLREDUCE, IBCAST, OPS };
static const char *const op_names[] = {"isend", "irecv",     "both",       "put",
                                       "get",   "ialltoall", "iallreduce", "ibcast"};

static enum op op = BOTH;
static int my_rank, ranks, computing_rank = -1; /* -1: all */
static bool strided;
static size_t bytes, block = 1024, extent; /* extent: what one message spans in memory */
static unsigned char *out, *in;
static MPI_Datatype type;
static int count;
static MPI_Win window;
static MPI_Request requests[2];
static int pending;

static void die(const char *text)
{
    if (my_rank == 0)
        fprintf(stderr, "mpi_overlap: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static bool computes(int rank)
{
    return computing_rank < 0 || computing_rank == rank;
}

/* --- the operation */
enum { TAG = 3, TOKEN = 4 };

static void post_pair(bool send, bool receive)
{
    const int other = 1 - my_rank;
    pending = 0;
    if (computes(my_rank)) {
        if (receive)
            MPI_Irecv(in, count, type, other, TAG, MPI_COMM_WORLD, &requests[pending++]);
        if (send)
            MPI_Isend(out, count, type, other, TAG, MPI_COMM_WORLD, &requests[pending++]);
    } else if (send && receive) {
        MPI_Sendrecv(out, count, type, other, TAG, in, count, type, other, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    } else if (send) {
        MPI_Send(out, count, type, other, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, count, type, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void wait_all(void)
{
    MPI_Status statuses[2];
    MPI_Waitall(pending, requests, statuses);
}

static void wait_one_sided(void)
{
    if (my_rank == 0)
        MPI_Win_flush(1, window);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void post(void)
{
    pending = 1;
    switch (op) {
    case ISEND: post_pair(my_rank == 0, my_rank == 1); return;
    case IRECV: post_pair(my_rank == 1, my_rank == 0); return;
    case BOTH: post_pair(true, true); return;
    case PUT:
        if (my_rank == 0)
            MPI_Put(out, count, type, 1, 0, count, type, window);
        break;
    case GET:
        if (my_rank == 0)
            MPI_Get(in, count, type, 1, 0, count, type, window);
        break;
    case IALLTOALL:
        MPI_Ialltoall(out, count, type, in, count, type, MPI_COMM_WORLD, requests);
        break;
    case IALLREDUCE:
        MPI_Iallreduce(out, in, (int) (bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                       requests);
        break;
    case IBCAST:
        MPI_Ibcast(my_rank == 0 ? out : in, count, type, 0, MPI_COMM_WORLD, requests);
        break;
    case OPS: break;
    }
    if (!computes(my_rank)) {
        if (op == PUT || op == GET)
            wait_one_sided();
        else
            wait_all();
    }
}

static void wait_for_it(void)
{
    if (!computes(my_rank))
        return;
    if (op == PUT || op == GET)
        wait_one_sided();
    else
        wait_all();
}

static void after(void)
{
    if ((op == PUT || op == GET) && my_rank == 0)
        MPI_Send(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD);
}

/* Round the ring, so that every host's way out and every way in has carried them. */
static unsigned char *drain_out, *drain_in;
static size_t drain_bytes;
static void drain(void)
{
    MPI_Sendrecv(drain_out, (int) drain_bytes, MPI_BYTE, (my_rank + 1) % ranks, TAG, drain_in,
                 (int) drain_bytes, MPI_BYTE, (my_rank + ranks - 1) % ranks, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static double max_of_all(double mine)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* --- data */
static size_t place_of(size_t i)
{
    return strided ? i / block * 2 * block + i % block : i;
}
static unsigned pair_seed(unsigned seed, int from, int to)
{
    return seed * 64u + (unsigned) from * 8u + (unsigned) to;
}
static double addend(size_t i, int rank, unsigned seed)
{
    return (double) ((i * 7 + (size_t) rank * 3 + seed) & 0xff);
}

static void fill_message(unsigned char *to, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        to[place_of(i)] = pattern_byte(i, seed);
}
/* What lies between the blocks must not change: it was zero. */
static long wrong_in_message(const unsigned char *got, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (got[place_of(i)] != pattern_byte(i, seed))
            return (long) i;
    if (strided)
        for (size_t i = 0; i + block < bytes; i++)
            if (got[place_of(i) + block] != 0)
                return (long) i;
    return -1;
}

static void fill(unsigned seed)
{
    const int messages = op == IALLTOALL ? ranks : 1;
    if (op == IALLREDUCE) {
        for (size_t i = 0; i < bytes / sizeof(double); i++)
            ((double *) out)[i] = addend(i, my_rank, seed);
    } else {
        const int other = ranks == 2 ? 1 - my_rank : 0;
        for (int m = 0; m < messages; m++)
            fill_message(out + (size_t) m * extent, pair_seed(seed, my_rank,
                                                              op == IALLTOALL ? m
                                                              : op == IBCAST  ? 0
                                                                              : other));
    }
    memset(in, 0, (size_t) messages * extent);
    if (op == PUT || op == GET)
        MPI_Win_sync(window);
}

static long wrong(unsigned seed)
{
    switch (op) {
    case ISEND:
    case PUT:
        if (my_rank != 1)
            return -1;
        break;
    case IRECV:
    case GET:
        if (my_rank != 0)
            return -1;
        break;
    case IALLTOALL:
        for (int m = 0; m < ranks; m++) {
            const long found =
                wrong_in_message(in + (size_t) m * extent, pair_seed(seed, m, my_rank));
            if (found >= 0)
                return found;
        }
        return -1;
    case IALLREDUCE:
        for (size_t i = 0; i < bytes / sizeof(double); i++) {
            double sum = 0.0;
            for (int rank = 0; rank < ranks; rank++)
                sum += addend(i, rank, seed);
            if (((double *) in)[i] != sum)
                return (long) (i * sizeof(double));
        }
        return -1;
    case IBCAST: return my_rank == 0 ? -1 : wrong_in_message(in, pair_seed(seed, 0, 0));
    case BOTH:
    case OPS: break;
    }
    if (op == PUT)
        MPI_Win_sync(window);
    return wrong_in_message(in, pair_seed(seed, 1 - my_rank, my_rank));
}

/* --- one size */
static double moved_per_iteration(void)
{
    switch (op) {
    case BOTH:
    case IALLREDUCE: return 2.0 * (double) bytes;
    case IALLTOALL: return 2.0 * (double) bytes * (ranks - 1);
    default: return (double) bytes;
    }
}

static bool one_size(const struct plan *plan)
{
    const size_t piece = block < bytes ? block : bytes, whole_block = block;
    if (strided && bytes % piece != 0)
        die("--block must divide the sizes");
    if (op == IALLREDUCE && bytes % sizeof(double) != 0)
        die("iallreduce wants sizes that are multiples of 8");
    block = piece;
    extent = strided ? 2 * bytes : bytes;
    if (strided) {
        MPI_Datatype vector;
        MPI_Type_vector((int) (bytes / block), (int) block, (int) (2 * block), MPI_BYTE, &vector);
        MPI_Type_create_resized(vector, 0, (MPI_Aint) extent, &type);
        MPI_Type_commit(&type);
        MPI_Type_free(&vector);
        count = 1;
    } else {
        type = MPI_BYTE;
        count = (int) bytes;
    }
    const size_t room = extent * (op == IALLTOALL ? (size_t) ranks : 1) + sizeof(double);
    if (posix_memalign((void **) &out, 4096, room) || posix_memalign((void **) &in, 4096, room))
        die("out of memory");
    memset(out, 0, room);
    memset(in, 0, room);
    if (op == PUT || op == GET) {
        MPI_Win_create(op == PUT ? in : out, (MPI_Aint) room, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                       &window);
        MPI_Win_lock_all(0, window);
    }

    const struct side side = {.rank = my_rank,
                              .computes = computes(my_rank),
                              .moved_bytes = moved_per_iteration(),
                              .drain = drain_bytes > 0 ? drain : NULL,
                              .barrier = barrier,
                              .max = max_of_all,
                              .post = post,
                              .wait = wait_for_it,
                              .after = after,
                              .fill = fill,
                              .wrong = wrong};
    struct result mine = measure(&side, plan), *all = NULL;
    char host[64] = "", (*hosts)[64] = NULL;
    gethostname(host, sizeof host - 1);
    if (my_rank == 0) {
        all = calloc((size_t) ranks, sizeof *all);
        hosts = calloc((size_t) ranks, sizeof *hosts);
        if (!all || !hosts)
            die("out of memory");
    }
    MPI_Gather(&mine, RESULT_COUNT, MPI_DOUBLE, all, RESULT_COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Gather(host, sizeof host, MPI_CHAR, hosts, sizeof host, MPI_CHAR, 0, MPI_COMM_WORLD);
    const bool good = max_of_all(mine.wrong_iterations) == 0.0;
    if (my_rank == 0) {
        char version[MPI_MAX_LIBRARY_VERSION_STRING];
        int length;
        MPI_Get_library_version(version, &length);
        printf("{\"program\":\"mpi_overlap\",\"library\":\"");
        print_text(version);
        /* the second line of MPICH's that says which it is */
        const char *device = strstr(version, "MPICH Device:");
        if (device) {
            fputs(", ", stdout);
            print_text(device + strlen("MPICH Device:") +
                       strspn(device + strlen("MPICH Device:"), " \t"));
        }
        printf("\",\"op\":\"%s\",\"datatype\":\"%s\",\"block\":%zu,\"compute\":", op_names[op],
               strided ? "strided" : "contiguous", strided ? block : 0);
        if (computing_rank < 0)
            printf("\"all\"");
        else
            printf("\"%d\"", computing_rank);
        printf(
            ",\"bytes\":%zu,\"ranks\":%d,\"factor\":%g,\"drain\":%zu,\"verified\":%s,\"per_rank\":",
            bytes, ranks, plan->factor, drain_bytes, good ? "true" : "false");
        print_ranks(stdout, all, (const char(*)[64]) hosts, ranks);
        puts("}");
        fflush(stdout);
        free(all);
        free(hosts);
    }
    if (op == PUT || op == GET) {
        MPI_Win_unlock_all(window);
        MPI_Win_free(&window);
    }
    if (strided)
        MPI_Type_free(&type);
    free(out);
    free(in);
    block = whole_block;
    return good;
}

static void usage(void)
{
    if (my_rank == 0)
        fputs(
            "usage: mpi_overlap [--op isend|irecv|both|put|get|ialltoall|iallreduce|ibcast] "
            "[--sizes 1K,64K,4M] [--datatype contiguous|strided]\n"
            "  [--block BYTES] [--compute all|RANK] [--factor 1.2] [--iterations N | --seconds S] "
            "[--settle MICROSECONDS] [--drain BYTES] [--multiple]\n",
            stderr);
}

int main(int argc, char **argv)
{
    enum {
        OP = 1,
        SIZES,
        DATATYPE,
        BLOCK,
        COMPUTE,
        FACTOR,
        ITERATIONS,
        SECONDS,
        SETTLE,
        DRAIN,
        MULTIPLE,
        HELP
    };
    static const struct option options[] = {{"op", 1, NULL, OP},
                                            {"sizes", 1, NULL, SIZES},
                                            {"datatype", 1, NULL, DATATYPE},
                                            {"block", 1, NULL, BLOCK},
                                            {"compute", 1, NULL, COMPUTE},
                                            {"factor", 1, NULL, FACTOR},
                                            {"iterations", 1, NULL, ITERATIONS},
                                            {"seconds", 1, NULL, SECONDS},
                                            {"settle", 1, NULL, SETTLE},
                                            {"drain", 1, NULL, DRAIN},
                                            {"multiple", 0, NULL, MULTIPLE},
                                            {"help", 0, NULL, HELP},
                                            {NULL, 0, NULL, 0}};
    struct plan plan = {
        .factor = 1.2, .iterations = 0, .seconds = 1.0, .settle_us = 0.0, .drain_bytes = 0};
    char *sizes = NULL;
    int level = MPI_THREAD_SINGLE, given;
    /* asked for before MPI_Init, which takes the level */
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--multiple") == 0)
            level = MPI_THREAD_MULTIPLE;
    MPI_Init_thread(&argc, &argv, level, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (given < level)
        die("this library does not give MPI_THREAD_MULTIPLE");
    for (int c; opterr = my_rank == 0, (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (c) {
        case OP:
            for (op = 0; op < OPS && strcmp(optarg, op_names[op]) != 0; op++)
                continue;
            if (op == OPS)
                die("no such --op: isend, irecv, both, put, get, ialltoall, iallreduce or ibcast");
            break;
        case SIZES: sizes = optarg; break;
        case DATATYPE:
            strided = strcmp(optarg, "strided") == 0;
            if (!strided && strcmp(optarg, "contiguous") != 0)
                die("--datatype: contiguous or strided");
            break;
        case BLOCK: block = parse_size(optarg); break;
        case COMPUTE: computing_rank = strcmp(optarg, "all") == 0 ? -1 : atoi(optarg); break;
        case FACTOR: plan.factor = atof(optarg); break;
        case ITERATIONS: plan.iterations = atoi(optarg); break;
        case SECONDS: plan.seconds = atof(optarg); break;
        case SETTLE: plan.settle_us = atof(optarg); break;
        case DRAIN: plan.drain_bytes = parse_size(optarg); break;
        case MULTIPLE: break;
        default:
            usage();
            MPI_Finalize();
            return c == HELP ? 0 : 2;
        }
    if (op <= GET && ranks != 2)
        die("this operation wants 2 ranks");
    if (ranks < 2 || ranks > 64)
        die("want 2 to 64 ranks");
    if (computing_rank >= ranks)
        die("--compute names a rank that is not there");
    if (strided && op == IALLREDUCE)
        die("iallreduce is contiguous only");
    if (block < 1 || plan.factor < 0.0 || plan.seconds <= 0.0 || plan.settle_us < 0.0 ||
        plan.settle_us >= 1e6)
        die("a value is out of range");
    drain_bytes = plan.drain_bytes;
    if (drain_bytes > 0) {
        drain_out = calloc(1, drain_bytes);
        drain_in = calloc(1, drain_bytes);
        if (!drain_out || !drain_in)
            die("out of memory");
    }
    char default_sizes[] = "1K,4K,16K,64K,256K,1M,4M,16M";
    bool good = true;
    for (char *size = strtok(sizes ? sizes : default_sizes, ","); size; size = strtok(NULL, ",")) {
        bytes = parse_size(size);
        if (bytes < 1 || bytes > (size_t) 512 << 20)
            die("--sizes: want sizes from 1 to 512M, with commas");
        good &= one_size(&plan);
    }
    if (!good && my_rank == 0)
        fputs("mpi_overlap: wrong data, see wrong_iterations in the result\n", stderr);
    free(drain_out);
    free(drain_in);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return good ? 0 : 1;
}
