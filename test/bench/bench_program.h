/* The command line and the limit of the programs that scripts/compare runs. */
#ifndef BENCH_PROGRAM_H_INCLUDED
#define BENCH_PROGRAM_H_INCLUDED

#include <signal.h>
#include <stdbool.h>
#include "bench_common.h"

struct words {
    const char *pattern;
    char *sizes;    /* with commas, see parse_size() */
    double seconds; /* per size */
    int limit;      /* of the program, in seconds */
};

/* Never a hang: the program is killed after `seconds`, by a timer of its own that no library knows.
 */
static inline void end_after(int seconds)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    const struct itimerspec when = {.it_value.tv_sec = seconds};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL))
        perror("timer");
}

/* Takes --pattern, --sizes, --seconds, --limit, and passes others to `more`; false: not understood.
 */
static inline bool parse_words(struct words *words, int argc, char **argv,
                               bool (*more)(const char *name, const char *value))
{
    *words = (struct words){.pattern = "", .seconds = 0.2, .limit = 600};
    for (int i = 1; i < argc; i++) {
        const char *const name = argv[i];
        char *const value = i + 1 < argc ? argv[++i] : NULL;
        if (!value)
            return false;
        if (strcmp(name, "--pattern") == 0)
            words->pattern = value;
        else if (strcmp(name, "--sizes") == 0)
            words->sizes = value;
        else if (strcmp(name, "--seconds") == 0)
            words->seconds = atof(value);
        else if (strcmp(name, "--limit") == 0)
            words->limit = atoi(value);
        else if (!more || !more(name, value))
            return false;
    }
    return words->sizes && words->seconds > 0.0 && words->limit > 0;
}

/* Of `name` in `names`; -1: not there. */
static inline int place_of(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

#endif
