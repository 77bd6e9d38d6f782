/* The method of the overlap benchmarks, shared by mpi_overlap.c and tcp_overlap.c so that they
 * cannot differ in it. Three kinds of iterations take turns in one run: pure (post, wait), work
 * (compute alone, all ranks at a time), overlap (post, compute, wait). availability = 100 (1 -
 * (overlap - work) / base)     base: median of pure; the longest of all ranks, as the operation is
 * over when all are done slowdown     = 100 (compute within overlap - work) / work The computation
 * is an amount, not a time: a loop until a clock says stop would hide what it was slowed down by.
 * Times in microseconds. MB: 2^20 bytes of payload that the rank sent and received, as its caller
 * sees it. docs/overlap.md tells the rest. */
#ifndef OVERLAP_METHOD_H_INCLUDED
#define OVERLAP_METHOD_H_INCLUDED

#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>
#include "bench_common.h"

/* --- the computation: steps of the logistic map on 4 KB of cells. It is chaotic, so one wrong bit
 * (a register that a handler lost) changes the sum. */
enum { KERNEL_CELLS = 512 };
static double kernel_cells[KERNEL_CELLS] __attribute__((aligned(64)));

__attribute__((noinline)) static double kernel_run(uint64_t units)
{
    for (int i = 0; i < KERNEL_CELLS; i++)
        kernel_cells[i] = (double) (i + 1) / (KERNEL_CELLS + 2);
    for (uint64_t unit = 0; unit < units; unit++)
        for (int i = 0; i < KERNEL_CELLS; i++)
            kernel_cells[i] = 3.99 * kernel_cells[i] * (1.0 - kernel_cells[i]);
    double sum = 0.0;
    for (int i = 0; i < KERNEL_CELLS; i++)
        sum += kernel_cells[i];
    return sum;
}

/* --- what the program under test provides */
struct side {
    int rank;
    bool computes;      /* this rank; the others sit in a blocking call */
    double moved_bytes; /* payload per iteration, sent and received by this rank */
    void (*drain)(
        void); /* exchanges as many bytes as a shaper lets through at once; NULL: not wanted */
    void (*barrier)(void);
    double (*max)(double); /* over all ranks */
    void (*post)(void);    /* of a rank that does not compute: the whole blocking operation */
    void (*wait)(void);
    void (*after)(void);          /* not timed; may be NULL */
    void (*fill)(unsigned seed);  /* writes what is sent, spoils what is received */
    long (*wrong)(unsigned seed); /* first wrong byte of what was received, or -1 */
    double (*signals)(void);      /* taken so far, by this process; NULL: not known */
    double (*handler_us)(void);   /* spent in the handler so far; NULL: not known */
};

struct plan {
    double factor;  /* T = factor x base */
    int iterations; /* of each kind; 0: as many as fit into `seconds`, 8 to 400 */
    double seconds;
    double settle_us;   /* idle before each iteration */
    size_t drain_bytes; /* moved before each iteration of any kind, so that a shaper's bucket is
                           empty: a real link has none */
};

/* --- what comes out, per rank; all doubles, so that any transport can gather it. NaN: does not
 * apply, null in JSON. */
/* clang-format off */
#define RESULT_FIELDS(F) \
    F(computes) F(iterations) F(moved_mb) F(base_us) F(base_min_us) F(base_max_us) \
    F(operation_us) F(work_us) F(iteration_us) F(post_us) F(compute_us) F(wait_us) F(availability) \
    F(availability_min) F(availability_p10) F(availability_p90) F(availability_max) \
    F(availability_own_base) F(availability_minima) F(slowdown_pct) F(cpu_moving_pct) \
    F(cpu_moving_us_per_mb) F(cpu_wait_us_per_mb) F(cpu_pure_us_per_mb) F(cpu_user_us_per_mb) \
    F(cpu_system_us_per_mb) F(switches_voluntary_per_mb) F(switches_involuntary_per_mb) \
    F(helper_cpu_pct) F(stolen_pct) F(signals_per_mb) F(signals_pure_per_mb) \
    F(handler_us_per_mb) F(wait_ratio) F(wrong_iterations) F(core)
/* clang-format on */
struct result {
#define F(name) double name;
    RESULT_FIELDS(F)
#undef F
};
static const char *const result_names[] = {
#define F(name) #name,
    RESULT_FIELDS(F)
#undef F
};
enum { RESULT_COUNT = sizeof(struct result) / sizeof(double) };

/* [{"rank":0,"host":"h0",…},…] */
static inline void print_ranks(FILE *out, const struct result *results, const char (*hosts)[64],
                               int ranks)
{
    fputc('[', out);
    for (int rank = 0; rank < ranks; rank++) {
        fprintf(out, "%s{\"rank\":%d,\"host\":\"%s\"", rank ? "," : "", rank, hosts[rank]);
        const double *values = (const double *) &results[rank];
        for (int i = 0; i < RESULT_COUNT; i++) {
            fprintf(out, ",\"%s\":", result_names[i]);
            print_number(out, values[i]);
        }
        fputc('}', out);
    }
    fputc(']', out);
}

/* --- one iteration */
enum kind { PURE, WORK, OVERLAP, KINDS };

struct sums { /* over the iterations of one kind */
    double cpu_us, cpu_wait_us, helper_us, elapsed_us, voluntary, involuntary, user_us, system_us,
        signals, handler_us;
};
struct times {
    double all, post, compute, wait;
};
static double method_sum; /* of the computation; the same every time */
static bool method_sum_known;
static long method_wrong; /* iterations with wrong data or a wrong sum */

static double seconds_us(struct timeval t)
{
    return 1e6 * (double) t.tv_sec + (double) t.tv_usec;
}

static struct times iterate(const struct side *side, const struct plan *plan, enum kind kind,
                            uint64_t units, bool checked, unsigned seed, struct sums *sums)
{
    struct times times;
    struct rusage before, after;
    if (checked && kind != WORK)
        side->fill(seed);
    if (plan->settle_us > 0.0) {
        struct timespec pause = {.tv_nsec = (long) (plan->settle_us * 1e3)};
        while (nanosleep(&pause, &pause))
            continue;
    }
    if (side->drain)
        side->drain();
    side->barrier();
    const double signals = side->signals ? side->signals() : 0.0,
                 handler = side->handler_us ? side->handler_us() : 0.0;
    getrusage(RUSAGE_SELF, &before);
    const double thread_0 = clock_us(CLOCK_THREAD_CPUTIME_ID),
                 cpu_0 = clock_us(CLOCK_PROCESS_CPUTIME_ID);
    const double t_0 = now_us();
    if (kind != WORK)
        side->post();
    const double t_posted = now_us();
    double sum = method_sum;
    if (kind != PURE && side->computes)
        sum = kernel_run(units);
    const double t_computed = now_us();
    const double cpu_computed = clock_us(CLOCK_PROCESS_CPUTIME_ID);
    const double t_waiting = now_us(); /* what the look at the clocks took is not the operation's */
    if (kind != WORK)
        side->wait();
    const double t_end = now_us();
    const double cpu_end = clock_us(CLOCK_PROCESS_CPUTIME_ID),
                 thread_end = clock_us(CLOCK_THREAD_CPUTIME_ID);
    getrusage(RUSAGE_SELF, &after);
    const double signals_end = side->signals ? side->signals() : 0.0,
                 handler_end = side->handler_us ? side->handler_us() : 0.0;
    if (kind != WORK && side->after)
        side->after();
    if (checked && kind != WORK && side->wrong(seed) >= 0)
        method_wrong++;
    if (kind != PURE && side->computes && method_sum_known && sum != method_sum)
        method_wrong++;
    method_sum = sum;

    times.all = t_computed - t_0 + (t_end - t_waiting);
    times.post = t_posted - t_0;
    times.compute = t_computed - t_posted;
    times.wait = t_end - t_waiting;
    if (sums) {
        sums->cpu_us += cpu_computed - cpu_0;
        sums->cpu_wait_us += cpu_end - cpu_computed;
        sums->helper_us += fmax(0.0, (cpu_end - cpu_0) - (thread_end - thread_0));
        sums->elapsed_us += t_end - t_0;
        sums->voluntary += (double) (after.ru_nvcsw - before.ru_nvcsw);
        sums->involuntary += (double) (after.ru_nivcsw - before.ru_nivcsw);
        sums->user_us += seconds_us(after.ru_utime) - seconds_us(before.ru_utime);
        sums->system_us += seconds_us(after.ru_stime) - seconds_us(before.ru_stime);
        sums->signals += signals_end - signals;
        sums->handler_us += handler_end - handler;
    }
    return times;
}

/* All ranks call it with the same plan. */
static struct result measure(const struct side *side, const struct plan *plan)
{
    enum { WARM = 3, PILOT = 7, PILOT_MORE = 25, CALIBRATIONS = 5, CALIBRATION_US = 4000 };
    struct result result;
    double pilot[PILOT_MORE];
    unsigned seed = 1;
    for (int i = 0; i < RESULT_COUNT; i++)
        ((double *) &result)[i] = NAN;
    method_wrong = 0;
    method_sum_known = false;

    /* connections, windows and buffers grow to their size; then a first guess of base */
    for (int i = 0; i < WARM; i++)
        iterate(side, plan, PURE, 0, i == 0, seed++, NULL);
    for (int i = 0; i < PILOT; i++)
        pilot[i] = iterate(side, plan, PURE, 0, false, 0, NULL).all;
    double guess = side->max(median(pilot, PILOT));
    if (guess < 3000.0) {
        for (int i = 0; i < PILOT_MORE; i++)
            pilot[i] = iterate(side, plan, PURE, 0, false, 0, NULL).all;
        guess = side->max(median(pilot, PILOT_MORE));
    }

    /* microseconds per unit while all compute; the fastest of a few, as a neighbour can only slow
     * it down */
    double per_unit = INFINITY;
    uint64_t units = 1000;
    for (int i = 0; i < CALIBRATIONS; i++) {
        method_sum_known = false;
        const double took =
            iterate(side, plan, WORK, units, false, 0, NULL).compute / (double) units;
        if (side->computes && took < per_unit)
            per_unit = took;
        if (side->computes)
            units = (uint64_t) fmax(1.0, CALIBRATION_US / per_unit);
    }
    units = side->computes ? (uint64_t) fmax(1.0, plan->factor * guess / per_unit) : 0;
    method_sum_known = false;
    iterate(side, plan, WORK, units, false, 0, NULL);
    method_sum_known = true;

    int count = plan->iterations;
    if (count < 1)
        count = (int) fmin(
            400.0, fmax(8.0, plan->seconds * 1e6 /
                                 (guess * (1.0 + 2.1 * plan->factor) + 3.0 * plan->settle_us)));
    count = (int) side->max(count);
    double *values = malloc((size_t) count * 8 * sizeof *values);
    if (!values)
        abort();
    double *pure = values, *work = values + count, *overlap = values + 2 * count,
           *compute = values + 3 * count;
    double *post = values + 4 * count, *wait = values + 5 * count, *available = values + 6 * count,
           *own = values + 7 * count;
    struct sums sums[KINDS];
    memset(sums, 0, sizeof sums);
    for (int i = 0; i < count; i++)
        for (int turn = 0; turn < KINDS; turn++) {
            const enum kind kind = (enum kind)((turn + i) % KINDS);
            const struct times times =
                iterate(side, plan, kind, units, i == 0 || i == count - 1, seed++, &sums[kind]);
            if (kind == PURE) {
                pure[i] = times.all;
            } else if (kind == WORK) {
                work[i] = times.compute;
            } else {
                overlap[i] = times.all;
                compute[i] = times.compute;
                post[i] = times.post;
                wait[i] = times.wait;
            }
        }

    const double mb = side->moved_bytes * count / 1048576.0;
    const double base = median(pure, count), operation = side->max(base);
    const double operation_min = side->max(percentile(pure, count, 0.0));
    result.computes = side->computes;
    result.iterations = count;
    result.moved_mb = side->moved_bytes / 1048576.0;
    result.base_us = base;
    result.base_min_us = percentile(pure, count, 0.0);
    result.base_max_us = percentile(pure, count, 100.0);
    result.operation_us = operation;
    result.iteration_us = median(overlap, count);
    result.wrong_iterations = (double) method_wrong;
    result.core = sched_getcpu();
    result.cpu_pure_us_per_mb = (sums[PURE].cpu_us + sums[PURE].cpu_wait_us) / mb;
    result.switches_voluntary_per_mb = sums[OVERLAP].voluntary / mb;
    result.switches_involuntary_per_mb = sums[OVERLAP].involuntary / mb;
    result.helper_cpu_pct = 100.0 * sums[OVERLAP].helper_us / sums[OVERLAP].elapsed_us;
    /* no communication in these: who took the core is no part of what is measured */
    if (side->computes)
        result.stolen_pct = fmax(0.0, 100.0 * (1.0 - sums[WORK].cpu_us / sums[WORK].elapsed_us));
    if (side->signals) {
        result.signals_per_mb = sums[OVERLAP].signals / mb;
        result.signals_pure_per_mb = sums[PURE].signals / mb;
    }
    if (side->handler_us)
        result.handler_us_per_mb = sums[OVERLAP].handler_us / mb;
    if (side->computes) {
        result.work_us = median(work, count);
        result.post_us = median(post, count);
        result.compute_us = median(compute, count);
        result.wait_us = median(wait, count);
        result.availability = 100.0 * (1.0 - (result.iteration_us - result.work_us) / operation);
        result.availability_own_base =
            100.0 * (1.0 - (result.iteration_us - result.work_us) / base);
        /* the least time of each kind: what a busy machine leaves of the truth */
        result.availability_minima =
            100.0 * (1.0 - (percentile(overlap, count, 0.0) - percentile(work, count, 0.0)) /
                               operation_min);
        for (int i = 0; i < count; i++)
            available[i] = 100.0 * (1.0 - (overlap[i] - work[i]) / operation);
        result.availability_min = percentile(available, count, 0.0);
        result.availability_p10 = percentile(available, count, 10.0);
        result.availability_p90 = percentile(available, count, 90.0);
        result.availability_max = percentile(available, count, 100.0);
        result.slowdown_pct = 100.0 * (result.compute_us - result.work_us) / result.work_us;
        /* from posting to the end of the computation: nobody polls then, so what is more than the
         * work moved bytes */
        result.cpu_moving_pct =
            100.0 * (sums[OVERLAP].cpu_us - sums[WORK].cpu_us) / sums[WORK].cpu_us;
        result.cpu_moving_us_per_mb = (sums[OVERLAP].cpu_us - sums[WORK].cpu_us) / mb;
        result.cpu_wait_us_per_mb = sums[OVERLAP].cpu_wait_us / mb;
        result.cpu_user_us_per_mb = (sums[OVERLAP].user_us - sums[WORK].user_us) / mb;
        result.cpu_system_us_per_mb = (sums[OVERLAP].system_us - sums[WORK].system_us) / mb;
    } else {
        for (int i = 0; i < count; i++)
            own[i] = overlap[i] / base;
        result.wait_ratio = median(own, count);
    }
    free(values);
    return result;
}

#endif
