/* Every rank talks to every other for SECONDS (default 3), all data checked: steady [SECONDS
 * [FILE]]. With FILE: after MPI_Init, before anything is sent, rank 0 creates FILE.ready and all
 * wait until FILE.go exists; the end waits for FILE.stop. What a test does to the job before and
 * meanwhile must not show in the data. */
#include "mpi_test.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const double seconds = argc > 1 ? atof(argv[1]) : 3.0;
    static const size_t sizes[] = {0, 1, 100, 2000, 40000, 300000};
    enum { SIZES = sizeof sizes / sizeof *sizes, BYTES_MAX = 300000 };
    unsigned char *out = malloc(BYTES_MAX), *in = malloc(BYTES_MAX);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 2);
    char name[4096];
    if (argc > 2) {
        if (my_rank == 0) {
            snprintf(name, sizeof name, "%s.ready", argv[2]);
            FILE *f = fopen(name, "w");
            if (!f || fclose(f))
                MPI_Abort(MPI_COMM_WORLD, 2);
        }
        snprintf(name, sizeof name, "%s.go", argv[2]);
        while (access(name, F_OK) != 0)
            usleep(10000);
    }
    const double end = now_s() + seconds;
    int go_on = 1;
    unsigned turn = 0;
    for (; go_on; turn++) {
        for (int shift = 1; shift < ranks; shift++) {
            const int to = (my_rank + shift) % ranks, from = (my_rank + ranks - shift) % ranks;
            const size_t bytes = sizes[(turn + (unsigned) shift) % SIZES];
            pattern_fill(out, bytes, turn + (unsigned) my_rank);
            memset(in, 0, bytes);
            MPI_Sendrecv(out, (int) bytes, MPI_BYTE, to, shift, in, (int) bytes, MPI_BYTE, from,
                         shift, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            const long wrong = pattern_wrong(in, bytes, turn + (unsigned) from);
            CHECK(wrong < 0, "turn %u, %zu bytes from %d: byte %ld is wrong", turn, bytes, from,
                  wrong);
        }
        go_on = now_s() < end;
        if (argc > 2) {
            snprintf(name, sizeof name, "%s.stop", argv[2]);
            go_on |= access(name, F_OK) != 0;
        }
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    free(out);
    free(in);
    return finish("steady");
}
