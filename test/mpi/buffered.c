/* MPI_Bsend: a message of more than INT_MAX bytes that the buffer has no room for is refused, and
 * does not leave with what remains of its length. With automatic buffers (MPI_BUFFER_AUTOMATIC,
 * MPICH 4.2 and later) a flush waits for every message, and their memory is given back. Two ranks.
 */
#include "mpi_test.h"

enum { MESSAGES = 3, LONG = 8 << 20, ROUNDS = 60, PART = 1 << 20, UNSENT = 99 };

static void too_long(void)
{
    static char room[1 << 16];
    void *back;
    int size, class = MPI_SUCCESS;

    MPI_Buffer_attach(room, sizeof room);
    const int code =
        MPI_Bsend_c(room, (MPI_Count) 1 << 32, MPI_BYTE, MPI_PROC_NULL, UNSENT, MPI_COMM_WORLD);
    CHECK(code == MPI_SUCCESS, "to nobody: code %d", code);
    MPI_Error_class(MPI_Bsend_c(room, (MPI_Count) 1 << 32, MPI_BYTE, (my_rank + 1) % ranks, UNSENT,
                                MPI_COMM_WORLD),
                    &class);
    CHECK(class == MPI_ERR_BUFFER, "4 GB in a buffer of 64 KB: class %d", class);
    MPI_Buffer_detach(&back, &size);
}

#ifdef MPI_BUFFER_AUTOMATIC
static long resident_kb(void)
{
    long pages = 0;
    FILE *const file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Rank 1 takes the last message at once, and the others a second later. */
static void flushed(unsigned char *data)
{
    const double pause = 1.0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        for (int i = 0; i < MESSAGES; i++) {
            pattern_fill(data, LONG, (unsigned) i);
            MPI_Bsend(data, LONG, MPI_BYTE, 1, i, MPI_COMM_WORLD);
        }
        const double begin = now_s();
        MPI_Buffer_flush();
        CHECK(now_s() - begin > 0.7 * pause, "flushed after %.3f s", now_s() - begin);
    } else if (my_rank == 1) {
        for (int i = MESSAGES - 1; i >= 0; i--) {
            MPI_Recv(data, LONG, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(pattern_wrong(data, LONG, (unsigned) i) < 0, "message %d", i);
            if (i == MESSAGES - 1)
                rest(pause);
        }
    }
}

static void given_back(unsigned char *data)
{
    long before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (round == ROUNDS / 4)
            before = resident_kb();
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < MESSAGES && my_rank == 0; i++)
            MPI_Bsend(data, PART, MPI_BYTE, 1, i, MPI_COMM_WORLD);
        for (int i = 0; i < MESSAGES && my_rank == 1; i++)
            MPI_Recv(data, PART, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (my_rank == 0)
            MPI_Buffer_flush();
    }
    const long more = resident_kb() - before;
    CHECK(more < ROUNDS / 4 * PART / 1024, "%ld KB more", more);
}

static void automatic(void)
{
    unsigned char *const data = malloc(LONG);
    void *back;
    int size;

    memset(data, 1, LONG);
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    flushed(data);
    given_back(data);
    MPI_Buffer_detach(&back, &size);
    free(data);
}
#endif

int main(int argc, char **argv)
{
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    too_long();
#ifdef MPI_BUFFER_AUTOMATIC
    automatic();
#endif
    return finish("buffered");
}
