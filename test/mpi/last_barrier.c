/* MPI_Finalize waits for the other ranks: last_barrier news, or does not: last_barrier alone.
 *   news    meanwhile mpiexec tells rank 0 that a process has died (SIGUSR1, which the host answers
 *           by a question to the process manager); all ranks end
 *   alone   with MPIR_CVAR_NO_COLLECTIVE_FINALIZE=1 (MPICH 4.1) rank 0 does not wait for the others
 */
#include "mpi_test.h"

#include <signal.h>
#include <stdbool.h>

static const double late_s = 1.5;

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const bool news = argc > 1 && strcmp(argv[1], "news") == 0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0 && news) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
        const struct itimerspec when = {.it_value = {0, 300000000}, .it_interval = {0, 100000000}};
        timer_t timer;
        CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "no timer");
        CHECK(timer_settime(timer, 0, &when, NULL) == 0, "no timer");
    } else if (my_rank != 0)
        rest(late_s);
    const double before = now_s();
    MPI_Finalize();
    const double took = now_s() - before;
    /* a repeating timer would end a process that has no handler any more */
    signal(SIGUSR1, SIG_IGN);
    if (my_rank == 0) {
        CHECK(news ? took > late_s / 2 : took < late_s / 2, "MPI_Finalize took %.2f s", took);
        printf("last_barrier: %d checks, %d failed\n", checks_done, checks_failed);
        fflush(stdout);
    }
    return checks_failed != 0;
}
