/* Long gets over several connections (LITE_LANES), between two ranks: long_gets many COUNT, more of
 * them at a time than one origin may have under way; long_gets beside WINDOWS, the window freed
 * right after a get, while an unrelated long message comes from the same rank. */
#include "mpi_test.h"

enum { BYTES = 1024 * 1024, BESIDE = 700000, MESSAGE = 200 * 1024 * 1024 };

static unsigned char *long_memory(size_t bytes)
{
    unsigned char *const memory = malloc(bytes);
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(memory, 0, bytes);
    return memory;
}

static void get_many(int count)
{
    MPI_Win win;
    unsigned char *const memory = long_memory(BYTES), *const into = long_memory(BYTES);
    pattern_fill(memory, BYTES, 7u + (unsigned) my_rank);
    MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int turn = 0; turn < 2; turn++) {
        MPI_Win_lock_all(0, win);
        for (int i = 0; my_rank == 0 && i < count; i++)
            MPI_Get(into, BYTES, MPI_BYTE, 1, 0, BYTES, MPI_BYTE, win);
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (my_rank == 0) {
        const long wrong = pattern_wrong(into, BYTES, 8);
        CHECK(wrong < 0, "byte %ld is wrong", wrong);
    }
    MPI_Win_free(&win);
    free(memory);
    free(into);
}

static void get_beside(int windows)
{
    MPI_Request request;
    unsigned char *const message = long_memory(MESSAGE), *const memory = long_memory(BESIDE);
    unsigned char *const into = long_memory(BESIDE);
    pattern_fill(memory, BESIDE, 7u + (unsigned) my_rank);
    /* the connections are there */
    for (int i = 0; i < 4; i++)
        if (my_rank == 1)
            MPI_Send(message, 16 * BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(message, 16 * BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (my_rank == 1)
        MPI_Isend(message, MESSAGE, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
    else
        MPI_Irecv(message, MESSAGE, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
    for (int i = 0; i < windows; i++) {
        MPI_Win win;
        MPI_Win_create(memory, BESIDE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        memset(into, 0, BESIDE);
        MPI_Win_fence(0, win);
        if (my_rank == 0)
            MPI_Get(into, BESIDE, MPI_BYTE, 1, 0, BESIDE, MPI_BYTE, win);
        MPI_Win_fence(0, win);
        MPI_Win_free(&win);
        if (my_rank == 0) {
            const long wrong = pattern_wrong(into, BESIDE, 8);
            CHECK(wrong < 0, "window %d: byte %ld is wrong", i, wrong);
        }
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(message);
    free(memory);
    free(into);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const char *const what = argc == 3 ? argv[1] : "";
    const int count = argc == 3 ? atoi(argv[2]) : 0;
    if (strcmp(what, "many") == 0)
        get_many(count);
    else if (strcmp(what, "beside") == 0)
        get_beside(count);
    else {
        fprintf(stderr, "long_gets: want many or beside, and a number\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return finish("long_gets");
}
