/* How much is done between a message's arrival and the answer: rank 0 steps through its own
 * MPI_Recv and MPI_Send by the processor's trap flag (x86-64), in the middle of a ping-pong of
 * BYTES (8) bytes, and counts from the return of the read that brought the message to the send.
 * Every run of it is the same. path [BYTES [FILE]]   FILE: where the addresses go, one way a line
 * block: "object offset" in order (test/bench/path makes functions of them) Prints "path bytes=B
 * instructions=N lines=L calls=C allocations=A": the median way, its cache lines of code, system
 * calls in between, calls of malloc and the like. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include "mpi_test.h"

#if defined(__x86_64__)
#include <ucontext.h>

enum { WARM_UP = 2000, WAYS = 15, STEPS_MAX = 1 << 16, BYTES_MAX = 1 << 20 };

typedef struct {
    int steps, calls, allocations;
    uintptr_t at[STEPS_MAX];
} way_t;

static way_t now, kept;
static int counts[WAYS];
static volatile sig_atomic_t recording, complete;
static long before_call; /* the number of the system call whose instruction is next, or -1 */
static uintptr_t allocators[5];

static void on_step(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *) context)->uc_mcontext.gregs;
    const unsigned char *next = (const unsigned char *) registers[REG_RIP];
    const long called = before_call;

    (void) number;
    (void) info;
    before_call = -1;
    if ((called == SYS_recvfrom || called == SYS_recvmsg) && (long) registers[REG_RAX] > 0) {
        recording = 1;
        now.steps = now.calls = now.allocations = 0;
    }
    if (recording && now.steps < STEPS_MAX)
        now.at[now.steps++] = (uintptr_t) next;
    if (recording)
        for (int i = 0; i < 5; i++)
            now.allocations += (uintptr_t) next == allocators[i];
    if (next[0] == 0x0f && next[1] == 0x05) {
        before_call = (long) registers[REG_RAX];
        if (recording && (before_call == SYS_sendto || before_call == SYS_sendmsg)) {
            complete = 1;
            recording = 0;
            registers[REG_EFL] &= ~0x100;
        } else if (recording) {
            now.calls++;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = *(const uintptr_t *) a, y = *(const uintptr_t *) b;
    return x < y ? -1 : x > y;
}

static void dump(const char *name)
{
    FILE *file = fopen(name, "w");

    CHECK(file != NULL, "cannot write %s", name);
    for (int i = 0; file != NULL && i < kept.steps; i++) {
        Dl_info where;
        if (dladdr((void *) kept.at[i], &where) != 0)
            fprintf(file, "%s %lx\n", where.dli_fname,
                    (unsigned long) (kept.at[i] - (uintptr_t) where.dli_fbase));
    }
    if (file != NULL)
        fclose(file);
}

int main(int argc, char **argv)
{
    static unsigned char data[BYTES_MAX];
    static uintptr_t sorted[STEPS_MAX];
    static const char *const names[5] = {"malloc", "free", "calloc", "realloc", "posix_memalign"};
    int bytes = argc > 1 ? atoi(argv[1]) : 8, lines = 0;
    struct sigaction action = {.sa_flags = SA_SIGINFO};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (bytes < 0 || bytes > BYTES_MAX || ranks != 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < 5; i++)
        allocators[i] = (uintptr_t) dlsym(RTLD_DEFAULT, names[i]);
    action.sa_sigaction = on_step;
    sigfillset(&action.sa_mask);
    sigaction(SIGTRAP, &action, NULL);
    before_call = -1;

    for (int i = 0; i < WARM_UP + WAYS; i++) {
        const int stepped = my_rank == 0 && i >= WARM_UP;
        if (my_rank == 1 && i >= WARM_UP)
            usleep(3000); /* rank 0 is in the middle of its wait then */
        if (my_rank == 1)
            MPI_Send(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        if (stepped) {
            complete = 0;
            __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | 0x100);
        }
        MPI_Recv(data, bytes, MPI_BYTE, 1 - my_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (my_rank == 0)
            MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        if (stepped) {
            __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~0x100ULL);
            CHECK(complete, "no read brought the message, or none followed it by a send");
            counts[i - WARM_UP] = now.steps;
        }
        if (stepped && (kept.steps == 0 || now.steps < kept.steps))
            kept = now;
    }
    if (my_rank == 0) {
        qsort(counts, WAYS, sizeof counts[0], by_value);
        memcpy(sorted, kept.at, (size_t) kept.steps * sizeof sorted[0]);
        qsort(sorted, (size_t) kept.steps, sizeof sorted[0], by_address);
        for (int i = 0; i < kept.steps; i++)
            lines += i == 0 || sorted[i] / 64 != sorted[i - 1] / 64;
        printf("path bytes=%d instructions=%d lines=%d calls=%d allocations=%d\n", bytes,
               counts[WAYS / 2], lines, kept.calls, kept.allocations);
        if (argc > 2)
            dump(argv[2]);
    }
    return finish("path");
}
#else
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    printf("path: stepping by the trap flag is for x86-64\n");
    MPI_Finalize();
    return 0;
}
#endif
