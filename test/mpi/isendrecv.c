/* MPI_Isendrecv and MPI_Isendrecv_replace: data of strided types, which live on after the call;
 * the status of the receive, and its error; MPI_PROC_NULL on either side and on both. From one rank
 * on, in a ring. */
#include "mpi_test.h"

#include <stdbool.h>

enum { STRIDE = 3, GAP = 0x5a, TAG = 7, ROUNDS = 5, LONG = 1 << 18 };

static int next, before;

/* `count` bytes, of which each is the first of STRIDE. */
static MPI_Datatype strided(int count)
{
    MPI_Datatype type;
    MPI_Type_vector(count, 1, STRIDE, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void spread(unsigned char *buffer, int count, unsigned seed)
{
    memset(buffer, GAP, (size_t) count * STRIDE);
    for (int i = 0; i < count; i++)
        buffer[i * STRIDE] = pattern_byte((size_t) i, seed);
}

static int wrong_in(const unsigned char *buffer, int count, unsigned seed)
{
    int wrong = 0;
    for (int i = 0; i < count * STRIDE; i++)
        wrong += buffer[i] != (i % STRIDE ? GAP : pattern_byte((size_t) (i / STRIDE), seed));
    return wrong;
}

static void status_is(const MPI_Status *status, int source, int tag, int bytes, const char *what)
{
    int count = -1, cancelled = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Test_cancelled(status, &cancelled);
    CHECK(status->MPI_SOURCE == source, "%s: source %d, not %d", what, status->MPI_SOURCE, source);
    CHECK(status->MPI_TAG == tag, "%s: tag %d, not %d", what, status->MPI_TAG, tag);
    CHECK(count == bytes, "%s: %d bytes, not %d", what, count, bytes);
    CHECK(cancelled == 0, "%s: cancelled", what);
}

/* The same type in every round. It is freed, as the user may, while the last call is under way. */
static void in_a_ring(int count, bool replace, bool from_any)
{
    const char *const what = replace ? "MPI_Isendrecv_replace" : "MPI_Isendrecv";
    const int source = from_any ? MPI_ANY_SOURCE : before, tag = from_any ? MPI_ANY_TAG : TAG;
    unsigned char *const out = malloc((size_t) count * STRIDE);
    unsigned char *const in = replace ? out : malloc((size_t) count * STRIDE);
    MPI_Datatype type = strided(count);

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        MPI_Status status;
        spread(in, count, 0);
        spread(out, count, (unsigned) (my_rank + ranks * round));
        if (replace)
            MPI_Isendrecv_replace(out, 1, type, next, TAG, source, tag, MPI_COMM_WORLD, &request);
        else
            MPI_Isendrecv(out, 1, type, next, TAG, in, 1, type, source, tag, MPI_COMM_WORLD,
                          &request);
        if (round == ROUNDS - 1)
            MPI_Type_free(&type);
        MPI_Wait(&request, &status);
        status_is(&status, before, TAG, count, what);
        const int wrong = wrong_in(in, count, (unsigned) (before + ranks * round));
        CHECK(wrong == 0, "%s of %d bytes, round %d: %d wrong", what, count, round, wrong);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(out);
    if (!replace)
        free(in);
}

/* The code is that of MPI_Wait, and stands in the status of MPI_Waitall. */
static void too_long(bool replace)
{
    enum { SENT = 64, ROOM = 16 };
    unsigned char out[SENT], in[SENT];
    MPI_Request request;
    MPI_Status status = {0};
    int code = MPI_SUCCESS, class = -1;

    pattern_fill(out, SENT, 1);
    for (int all = 0; all < 2; all++) {
        unsigned char short_one[ROOM];
        MPI_Request others[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        if (replace) {
            MPI_Irecv(short_one, ROOM, MPI_BYTE, before, TAG + 1, MPI_COMM_WORLD, &others[0]);
            MPI_Isend(out, SENT, MPI_BYTE, next, TAG, MPI_COMM_WORLD, &others[1]);
            MPI_Isendrecv_replace(in, ROOM, MPI_BYTE, next, TAG + 1, before, TAG, MPI_COMM_WORLD,
                                  &request);
        } else {
            MPI_Isendrecv(out, SENT, MPI_BYTE, next, TAG, in, ROOM, MPI_BYTE, before, TAG,
                          MPI_COMM_WORLD, &request);
        }
        if (all) {
            code = MPI_Waitall(1, &request, &status);
            CHECK(code == MPI_ERR_IN_STATUS, "MPI_Waitall: code %d", code);
            code = status.MPI_ERROR;
        } else {
            code = MPI_Wait(&request, &status);
        }
        MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_TRUNCATE, "class %d of code %d, %s", class, code,
              all ? "MPI_Waitall" : "MPI_Wait");
        MPI_Waitall(2, others, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Sends to `to` and receives from `from`, of which one at least is nobody; the neighbour's side is
 * an ordinary message. */
static void with_nobody(int to, int from, bool replace)
{
    const char *const what = to == from ? "from and to nobody"
                             : from < 0 ? "from nobody"
                                        : "to nobody";
    enum { COUNT = 100 };
    unsigned char out[COUNT * STRIDE], in[COUNT * STRIDE], other[COUNT * STRIDE];
    MPI_Datatype type = strided(COUNT);
    MPI_Request request, partner = MPI_REQUEST_NULL;
    MPI_Status status = {.MPI_SOURCE = 12345, .MPI_TAG = 12345};
    unsigned char *const into = replace ? out : in;

    spread(out, COUNT, (unsigned) my_rank);
    spread(in, COUNT, 99);
    spread(other, COUNT, 77);
    if (from != MPI_PROC_NULL) {
        spread(other, COUNT, (unsigned) my_rank);
        MPI_Isend(other, 1, type, next, TAG, MPI_COMM_WORLD, &partner);
    } else if (to != MPI_PROC_NULL) {
        MPI_Irecv(other, 1, type, before, TAG, MPI_COMM_WORLD, &partner);
    }
    if (replace)
        MPI_Isendrecv_replace(out, 1, type, to, TAG, from, TAG, MPI_COMM_WORLD, &request);
    else
        MPI_Isendrecv(out, 1, type, to, TAG, in, 1, type, from, TAG, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    MPI_Wait(&partner, MPI_STATUS_IGNORE);
    if (from == MPI_PROC_NULL) {
        status_is(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, what);
        CHECK(wrong_in(into, COUNT, replace ? (unsigned) my_rank : 99) == 0, "%s: changed", what);
        if (to != MPI_PROC_NULL)
            CHECK(wrong_in(other, COUNT, (unsigned) before) == 0, "%s: not sent", what);
    } else {
        status_is(&status, before, TAG, COUNT, what);
        CHECK(wrong_in(into, COUNT, (unsigned) before) == 0, "%s: not received", what);
    }
    MPI_Type_free(&type);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    next = (my_rank + 1) % ranks;
    before = (my_rank + ranks - 1) % ranks;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int replace = 0; replace < 2; replace++) {
        with_nobody(next, MPI_PROC_NULL, replace);
        with_nobody(MPI_PROC_NULL, before, replace);
        with_nobody(MPI_PROC_NULL, MPI_PROC_NULL, replace);
        too_long(replace);
        for (int from_any = 0; from_any < 2; from_any++) {
            in_a_ring(100, replace, from_any);
            in_a_ring(LONG, replace, from_any);
        }
    }
    return finish("isendrecv");
}
