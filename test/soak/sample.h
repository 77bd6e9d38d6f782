/* What a rank says of itself: a line of JSON in FILE.samples.RANK, taken between two rounds, when
 * none of the program's requests is open; and in FILE.at.RANK, where it is. */
#ifndef SOAK_SAMPLE_H_INCLUDED
#define SOAK_SAMPLE_H_INCLUDED

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include "common.h"

enum { VARIABLES_MOST = 128 };
static struct {
    char name[64];
    int level; /* else a counter, which never gets less */
    MPI_T_pvar_handle handle;
} variables[VARIABLES_MOST];
static int variable_count, place_file = -1;
static MPI_T_pvar_session variable_session;
static FILE *sample_file;
static volatile sig_atomic_t interruptions;
/* Since the last sample. */
static double slowest_seconds;
static const char *slowest_step = "";

/* The device's variables of MPI_T, each by a handle that stays. */
static void find_variables(void)
{
    int count = 0;
    MPI_T_pvar_session_create(&variable_session);
    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count && variable_count < VARIABLES_MOST; i++) {
        char name[64] = "", text[4096];
        int name_length = sizeof name, text_length = sizeof text, verbosity, class, binding;
        int read_only, continuous, atomic, elements;
        MPI_Datatype type;
        MPI_T_enum kinds;
        if (MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &class, &type, &kinds, text,
                                &text_length, &binding, &read_only, &continuous,
                                &atomic) != MPI_SUCCESS ||
            strncmp(name, "lite_", 5) != 0)
            continue;
        snprintf(variables[variable_count].name, sizeof name, "%s", name + 5);
        variables[variable_count].level = class != MPI_T_PVAR_CLASS_COUNTER;
        if (MPI_T_pvar_handle_alloc(variable_session, i, NULL, &variables[variable_count].handle,
                                    &elements) == MPI_SUCCESS)
            variable_count++;
    }
}

static int opened(const char *file, const char *what)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.%s.%d", file, what, my_rank);
    const int descriptor = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(descriptor >= 0, "%s: %s", name, strerror(errno));
    return descriptor;
}

static void prepare_samples(const char *file)
{
    find_variables();
    sample_file = fdopen(opened(file, "samples"), "w");
    place_file = opened(file, "at");
}

static void end_samples(void)
{
    fclose(sample_file);
    MPI_T_pvar_session_free(&variable_session);
}

/* Where this rank is, for who watches: round and step. */
static void at(const char *step)
{
    static double since;
    char text[64];
    const double now = now_s();
    if (since > 0 && now - since > slowest_seconds) {
        slowest_seconds = now - since;
        slowest_step = step_name;
    }
    since = now;
    step_name = step;
    if (place_file < 0) /* a child */
        return;
    const int length = snprintf(text, sizeof text, "%ld %-40s\n", round_number, step);
    if (pwrite(place_file, text, (size_t) length, 0) != length)
        perror("soak: where this rank is");
}

/* Of /proc/self/status, kB or a number. */
static long status_of(const char *text, const char *field)
{
    const char *found = strstr(text, field);
    return found ? atol(found + strlen(field)) : -1;
}

static int open_descriptors(void)
{
    int count = -3; /* ".", "..", and the directory itself */
    DIR *directory = opendir("/proc/self/fd");
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

/* Bytes that malloc has given out, and those that were given back and that it keeps; -1 where the C
 * library cannot say. */
static void ask_malloc(long long *given, long long *kept)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    const struct mallinfo2 info = mallinfo2();
    *given = (long long) (info.uordblks + info.hblkhd);
    *kept = (long long) info.fordblks;
#else
    *given = *kept = -1;
#endif
}

static void take_sample(double seconds)
{
    char text[8192];
    long long given, kept;
    ask_malloc(&given, &kept);
    const int file = open("/proc/self/status", O_RDONLY);
    const ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    if (file >= 0)
        close(file);
    fprintf(
        sample_file,
        "{\"rank\": %d, \"pid\": %d, \"t\": %.3f, \"round\": %ld, \"messages\": %llu, "
        "\"bytes\": %llu, \"checks\": %llu, \"spawned\": %ld, \"connected\": %ld, "
        "\"interruptions\": %ld, \"rss\": %ld, \"rss_peak\": %ld, \"heap\": %lld, \"kept\": %lld, "
        "\"descriptors\": %d, \"threads\": %ld, \"slowest\": %.3f, \"slowest_step\": \"%s\"",
        my_rank, (int) getpid(), seconds, round_number, atomic_load(&messages_checked),
        atomic_load(&bytes_checked), atomic_load(&checks), spawned, connected, (long) interruptions,
        1024 * status_of(text, "VmRSS:"), 1024 * status_of(text, "VmHWM:"), given, kept,
        open_descriptors(), status_of(text, "Threads:"), slowest_seconds, slowest_step);
    slowest_seconds = 0;
    for (int levels = 0; levels < 2; levels++) {
        const char *between = "";
        fprintf(sample_file, ", \"%s\": {", levels ? "levels" : "counters");
        for (int i = 0; i < variable_count; i++) {
            unsigned long long value = 0;
            if (variables[i].level != levels)
                continue;
            MPI_T_pvar_read(variable_session, variables[i].handle, &value);
            fprintf(sample_file, "%s\"%s\": %llu", between, variables[i].name, value);
            between = ", ";
        }
        fputs("}", sample_file);
    }
    fputs("}\n", sample_file);
    fflush(sample_file);
}

#endif
