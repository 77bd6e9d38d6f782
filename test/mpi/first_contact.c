/* The first words to ranks that compute: first_contact WHO WHAT SECONDS [FILE].
 * After MPI_Init, before any rank has talked to another one, some ranks make no MPI call for
 * SECONDS while the others send to them messages of every protocol and wait. WHO   one: rank 0
 * computes, all others send to it; others: all but rank 0 compute, it sends to them WHAT  idle:
 * nothing is outstanding at a computing rank; posted: it has posted the receives before it
 * computes; eager: as idle, and the others say one message by the eager protocol to it by MPI_Send,
 * which is to end while it computes With FILE: rank 0 creates FILE.ready after MPI_Init, and all
 * wait until FILE.go exists: what the test does to the listeners comes first. */
#include "mpi_test.h"

enum { SIZES = 3 };
static const int sizes[SIZES] = {100, 100000, 1500000};

static unsigned char *new_buffer(int bytes)
{
    unsigned char *buffer = malloc((size_t) bytes);
    if (!buffer)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return buffer;
}

static void wait_for_strangers(const char *file)
{
    char name[4096];
    if (my_rank == 0) {
        snprintf(name, sizeof name, "%s.ready", file);
        FILE *f = fopen(name, "w");
        if (!f || fclose(f))
            MPI_Abort(MPI_COMM_WORLD, 2);
    }
    snprintf(name, sizeof name, "%s.go", file);
    while (access(name, F_OK) != 0)
        usleep(10000);
}

/* Too long for one packet, not too long to be sent unasked: it has left when the kernel has it, and
 * that takes a connection. */
static void say_unasked(int computes, int first, int last, double seconds)
{
    enum { EAGER = 60000 };
    const char *controller = getenv("LITE_CONTROLLER");
    const int let_in = !controller || strcmp(controller, "sync") != 0;
    unsigned char *buffer = new_buffer(EAGER);
    const double began = now_s();
    if (computes)
        rest(seconds);
    for (int peer = first; peer <= last; peer++) {
        if (computes) {
            MPI_Recv(buffer, EAGER, MPI_BYTE, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            const long wrong = pattern_wrong(buffer, EAGER, (unsigned) peer);
            CHECK(wrong < 0, "%d bytes from %d: byte %ld is wrong", EAGER, peer, wrong);
        } else {
            pattern_fill(buffer, EAGER, (unsigned) my_rank);
            MPI_Send(buffer, EAGER, MPI_BYTE, peer, 9, MPI_COMM_WORLD);
        }
    }
    const double took = now_s() - began;
    if (!computes && let_in)
        CHECK(took < 1, "%d bytes to ranks that compute for %.0f s took %.2f s", EAGER, seconds,
              took);
    free(buffer);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    if (argc < 4 || ranks < 2) {
        fprintf(stderr, "first_contact: want WHO, WHAT, SECONDS and 2 ranks or more\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int one = strcmp(argv[1], "one") == 0, posted = strcmp(argv[2], "posted") == 0,
              eager = strcmp(argv[2], "eager") == 0;
    const double seconds = atof(argv[3]);
    const int computes = one == (my_rank == 0);
    /* with whom this rank talks */
    const int first = my_rank == 0 ? 1 : 0, last = my_rank == 0 ? ranks - 1 : 0;
    const int pairs = last - first + 1, count = pairs * SIZES;
    MPI_Request *requests = malloc((size_t) count * sizeof *requests);
    unsigned char **buffers = malloc((size_t) count * sizeof *buffers);
    if (!requests || !buffers)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < count; i++)
        buffers[i] = new_buffer(sizes[i % SIZES]);
    if (argc > 4)
        wait_for_strangers(argv[4]);
    const double began = now_s();
    if (eager)
        say_unasked(computes, first, last, seconds);
    else if (computes && !posted)
        rest(seconds);
    for (int i = 0; i < count; i++) {
        const int peer = first + i / SIZES, bytes = sizes[i % SIZES];
        if (computes) {
            MPI_Irecv(buffers[i], bytes, MPI_BYTE, peer, i % SIZES, MPI_COMM_WORLD, &requests[i]);
        } else {
            pattern_fill(buffers[i], (size_t) bytes, (unsigned) (my_rank + i % SIZES));
            MPI_Isend(buffers[i], bytes, MPI_BYTE, peer, i % SIZES, MPI_COMM_WORLD, &requests[i]);
        }
    }
    if (computes && posted)
        rest(seconds);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    const double took = now_s() - began;
    /* what has a receive moves while its rank computes, unless nobody moves it there */
    const char *controller = getenv("LITE_CONTROLLER");
    if (!computes && posted && (!controller || strcmp(controller, "sync") != 0))
        CHECK(took < 0.7 * seconds, "the sends to ranks with posted receives took %.1f of %.1f s",
              took, seconds);
    for (int i = 0; computes && i < count; i++) {
        const int peer = first + i / SIZES;
        const long wrong =
            pattern_wrong(buffers[i], (size_t) sizes[i % SIZES], (unsigned) (peer + i % SIZES));
        CHECK(wrong < 0, "%d bytes from %d: byte %ld is wrong", sizes[i % SIZES], peer, wrong);
    }
    if (computes)
        CHECK(now_s() - began >= seconds, "did not compute that long");
    for (int i = 0; i < count; i++)
        free(buffers[i]);
    free(buffers);
    free(requests);
    return finish("first_contact");
}
