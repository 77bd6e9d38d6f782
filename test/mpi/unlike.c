/* Ranks that describe the same data in unlike ways, each of them correct. Two ranks or more, on any
 * hosts. Receives that have more room than the message is long, of a struct with elements of
 * several types; MPI_Allgather of it; MPI_Allgatherv of long data into types whose extent is
 * another one on each rank; partitioned messages in an intercommunicator whose sides have made
 * unlike numbers of communicators before; what MPI_Probe and its kin leave of a status. */
#include "mpi_test.h"

enum { INTS = 256, GAP = 8 };
struct record {
    int whole[INTS];
    char gap[GAP];
    float parts[INTS];
};

static MPI_Datatype record_type(void)
{
    const int lengths[] = {INTS, INTS};
    const MPI_Aint places[] = {offsetof(struct record, whole), offsetof(struct record, parts)};
    const MPI_Datatype types[] = {MPI_INT, MPI_FLOAT};
    MPI_Datatype members, type;

    MPI_Type_create_struct(2, lengths, places, types, &members);
    MPI_Type_create_resized(members, 0, sizeof(struct record), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&members);
    return type;
}

static void fill(struct record *record, int from)
{
    memset(record, 0, sizeof *record);
    for (int i = 0; i < INTS; i++) {
        record->whole[i] = 1000 * from + i;
        record->parts[i] = (float) (from - i);
    }
}

static void check_record(const struct record *record, int from, const char *what)
{
    struct record wanted;

    fill(&wanted, from);
    CHECK(memcmp(record->whole, wanted.whole, sizeof wanted.whole) == 0 &&
              memcmp(record->parts, wanted.parts, sizeof wanted.parts) == 0,
          "%s: the record of rank %d", what, from);
}

static void records(void)
{
    enum { ROOM = 16 };
    const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
    struct record mine, *theirs = calloc((size_t) (ranks > ROOM ? ranks : ROOM), sizeof *theirs);
    const MPI_Datatype type = record_type();
    MPI_Status status;
    MPI_Message message;
    int count = -1;

    fill(&mine, my_rank);
    for (int sent = 0; sent < 2; sent++) {
        MPI_Sendrecv(&mine, sent, type, next, 1, theirs, ROOM, type, before, 1, MPI_COMM_WORLD,
                     &status);
        MPI_Get_count(&status, type, &count);
        CHECK(count == sent, "%d records came, and %d were sent", count, sent);
    }
    check_record(theirs, before, "a receive with more room");
    MPI_Request request;
    MPI_Isend(&mine, 1, type, next, 2, MPI_COMM_WORLD, &request);
    MPI_Mprobe(before, 2, MPI_COMM_WORLD, &message, &status);
    memset(theirs, 0, sizeof *theirs);
    MPI_Mrecv(theirs, ROOM, type, &message, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_record(theirs, before, "a matched receive");
    MPI_Allgather(&mine, 1, type, theirs, 1, type, MPI_COMM_WORLD);
    for (int rank = 0; rank < ranks; rank++)
        check_record(&theirs[rank], rank, "MPI_Allgather");
    free((void *) theirs);
    MPI_Datatype freed = type;
    MPI_Type_free(&freed);
}

/* Whether no two ranks share memory: what they send is the device's own then. */
static int all_apart(void)
{
    MPI_Comm node;
    int size = 0, largest = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_free(&node);
    MPI_Allreduce(&size, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return largest == 1;
}

/* An odd number of MPI_INT into long blocks of MPI_2INT: the last pair gets one half. (In short
 * blocks the host's datatype engine leaves it out.) */
static void halves(void)
{
    enum { BLOCKS = 8, PAIRS = 1024 };
    const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
    const int sent = 2 * PAIRS * (BLOCKS - 1) + 3, stride = PAIRS + 8;
    int *const mine = malloc((size_t) sent * sizeof *mine);
    int *const theirs = calloc((size_t) (2 * BLOCKS * stride), sizeof *theirs);
    MPI_Datatype type;
    MPI_Status status = {.MPI_ERROR = MPI_SUCCESS};
    int wrong = 0, elements = -1;

    for (int i = 0; i < sent; i++)
        mine[i] = (my_rank + 1) * 1000000 + i;
    MPI_Type_vector(BLOCKS, PAIRS, stride, MPI_2INT, &type);
    MPI_Type_commit(&type);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int error = MPI_Sendrecv(mine, sent, MPI_INT, next, 3, theirs, 1, type, before, 3,
                                   MPI_COMM_WORLD, &status);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    CHECK(error == MPI_SUCCESS, "half a pair is an error");
    for (int i = 0; i < sent; i++)
        wrong +=
            theirs[i / (2 * PAIRS) * 2 * stride + i % (2 * PAIRS)] != (before + 1) * 1000000 + i;
    CHECK(wrong == 0, "%d of %d halves are wrong", wrong, sent);
    MPI_Get_elements(&status, type, &elements);
    CHECK(elements == sent, "%d elements of %d", elements, sent);
    MPI_Type_free(&type);
    free(theirs);
    free(mine);
}

/* An element every 8, 16, 24 … bytes of the receive buffer, by rank. */
static void extents(void)
{
    enum { EACH = 75000 };
    const size_t stride = (size_t) my_rank % 4 + 1;
    double *mine = malloc(EACH * sizeof *mine);
    double *all = calloc((size_t) ranks * EACH * stride, sizeof *all);
    int *counts = malloc((size_t) ranks * sizeof *counts);
    int *places = malloc((size_t) ranks * sizeof *places);
    MPI_Datatype spread;

    for (int i = 0; i < EACH; i++)
        mine[i] = my_rank + i / (double) EACH;
    for (int rank = 0; rank < ranks; rank++) {
        counts[rank] = EACH;
        places[rank] = rank * EACH;
    }
    MPI_Type_create_resized(MPI_DOUBLE, 0, (MPI_Aint) (stride * sizeof(double)), &spread);
    MPI_Type_commit(&spread);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int error =
        MPI_Allgatherv(mine, EACH, MPI_DOUBLE, all, counts, places, spread, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    CHECK(error == MPI_SUCCESS, "MPI_Allgatherv is an error");
    for (int rank = 0; rank < ranks; rank++) {
        int wrong = 0;
        for (int i = 0; i < EACH; i++)
            wrong += all[(size_t) (rank * EACH + i) * stride] != rank + i / (double) EACH;
        CHECK(wrong == 0, "%d numbers of rank %d are wrong", wrong, rank);
    }
    MPI_Type_free(&spread);
    free(places);
    free(counts);
    free(all);
    free(mine);
}

/* One block is long; every second rank has ints in threes in its receive buffer. */
static void threes(int nonblocking)
{
    enum { LONG = 3000000, SHORT = 300 };
    const int each = my_rank % 2 == 0 ? 1 : 3;
    const int own = my_rank == 0 ? LONG : SHORT;
    int *mine = malloc((size_t) own * sizeof *mine);
    int *all = calloc(LONG + (size_t) ranks * SHORT, sizeof *all);
    int *counts = malloc((size_t) ranks * sizeof *counts);
    int *places = malloc((size_t) ranks * sizeof *places);
    MPI_Datatype type;
    MPI_Request request = MPI_REQUEST_NULL;

    for (int i = 0; i < own; i++)
        mine[i] = my_rank * LONG + i;
    for (int rank = 0; rank < ranks; rank++) {
        counts[rank] = (rank == 0 ? LONG : SHORT) / each;
        places[rank] = rank == 0 ? 0 : (LONG + (rank - 1) * SHORT) / each;
    }
    MPI_Type_contiguous(each, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = nonblocking ? MPI_Iallgatherv(mine, own, MPI_INT, all, counts, places,
                                              each == 1 ? MPI_INT : type, MPI_COMM_WORLD, &request)
                            : MPI_Allgatherv(mine, own, MPI_INT, all, counts, places,
                                             each == 1 ? MPI_INT : type, MPI_COMM_WORLD);
    if (error == MPI_SUCCESS)
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    CHECK(error == MPI_SUCCESS, "MPI_%s of threes is an error",
          nonblocking ? "Iallgatherv" : "Allgatherv");
    for (int rank = 0; rank < ranks; rank++) {
        int wrong = 0;
        for (int i = 0; i < counts[rank] * each; i++)
            wrong += all[places[rank] * each + i] != rank * LONG + i;
        CHECK(wrong == 0, "%d ints of rank %d are wrong", wrong, rank);
    }
    MPI_Type_free(&type);
    free(places);
    free(counts);
    free(all);
    free(mine);
}

/* Rank 0 and the others; these have one communicator more. */
static void sides(void)
{
    const int side = my_rank > 0;
    MPI_Comm mine, more = MPI_COMM_NULL, across;

    MPI_Comm_split(MPI_COMM_WORLD, side, my_rank, &mine);
    if (side)
        MPI_Comm_dup(mine, &more);
    MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, side ? 0 : 1, 3, &across);
    if (my_rank <= 1) {
        MPI_Request halves[2];
        int out[2] = {10 + my_rank, 20 + my_rank}, in[2] = {-1, -1};
        MPI_Psend_init(out, 2, 1, MPI_INT, 0, 5, across, MPI_INFO_NULL, &halves[0]);
        MPI_Precv_init(in, 2, 1, MPI_INT, 0, 5, across, MPI_INFO_NULL, &halves[1]);
        MPI_Startall(2, halves);
        MPI_Pready(0, halves[0]);
        MPI_Pready(1, halves[0]);
        MPI_Waitall(2, halves, MPI_STATUSES_IGNORE);
        CHECK(in[0] == 11 - my_rank && in[1] == 21 - my_rank, "%d and %d came in parts", in[0],
              in[1]);
        MPI_Request_free(&halves[0]);
        MPI_Request_free(&halves[1]);
    }
    MPI_Comm_free(&across);
    if (side)
        MPI_Comm_free(&more);
    MPI_Comm_free(&mine);
}

static void check_status(MPI_Status *status, int from, const char *call)
{
    int cancelled = -1, count = -1;

    MPI_Test_cancelled(status, &cancelled);
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK(status->MPI_ERROR == 77 && !cancelled, "%s: MPI_ERROR is %d, cancelled %d", call,
          status->MPI_ERROR, cancelled);
    CHECK(status->MPI_SOURCE == from && status->MPI_TAG == 6 && count == 3,
          "%s: source %d, tag %d, %d bytes", call, status->MPI_SOURCE, status->MPI_TAG, count);
    memset(status, 0xff, sizeof *status);
    status->MPI_ERROR = 77;
}

static void statuses(void)
{
    const int next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
    char bytes[3] = "ab", came[3];
    MPI_Request request;
    MPI_Status status;
    MPI_Message message;

    MPI_Isend(bytes, 3, MPI_CHAR, next, 6, MPI_COMM_WORLD, &request);
    memset(&status, 0xff, sizeof status);
    status.MPI_ERROR = 77;
    MPI_Probe(before, 6, MPI_COMM_WORLD, &status);
    check_status(&status, before, "MPI_Probe");
    for (int found = 0; !found;)
        MPI_Iprobe(before, 6, MPI_COMM_WORLD, &found, &status);
    check_status(&status, before, "MPI_Iprobe");
    MPI_Mprobe(before, 6, MPI_COMM_WORLD, &message, &status);
    check_status(&status, before, "MPI_Mprobe");
    MPI_Mrecv(came, 3, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    records();
    if (all_apart())
        halves();
    extents();
    threes(0);
    threes(1);
    statuses();
    sides();
    return finish("unlike");
}
