/* What the benchmark programs of this directory share: clock, statistics, JSON, patterns of bytes,
 * sizes. */
#ifndef BENCH_COMMON_H_INCLUDED
#define BENCH_COMMON_H_INCLUDED

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double clock_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e6 * (double) t.tv_sec + 1e-3 * (double) t.tv_nsec;
}
static inline double now_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

/* --- statistics */
static inline int ascending(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}
/* The values stay in their order. NaN when there are none. */
static inline double percentile(const double *values, int count, double percent)
{
    if (count < 1)
        return NAN;
    double *sorted = malloc((size_t) count * sizeof *sorted);
    if (!sorted)
        abort();
    memcpy(sorted, values, (size_t) count * sizeof *sorted);
    qsort(sorted, (size_t) count, sizeof *sorted, ascending);
    const double at = percent / 100.0 * (count - 1);
    const int low = (int) at;
    const double result =
        low + 1 < count ? sorted[low] + (at - low) * (sorted[low + 1] - sorted[low]) : sorted[low];
    free(sorted);
    return result;
}
static inline double median(const double *values, int count)
{
    return percentile(values, count, 50.0);
}

/* --- JSON */
static inline void print_number(FILE *out, double value)
{
    if (isnan(value) || isinf(value))
        fputs("null", out);
    else if (value == floor(value) && fabs(value) < 1e15)
        fprintf(out, "%.0f", value);
    else
        fprintf(out, "%.3f", value);
}
/* The inside of a JSON string. */
static inline void print_text(const char *text)
{
    for (; *text && *text != '\n'; text++)
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char) *text >= ' ')
            putchar(*text);
        else
            putchar(' ');
}

/* --- patterns: every byte depends on its place, its sender and its message */
static inline unsigned char pattern_byte(size_t place, unsigned seed)
{
    return (unsigned char) ((place * 131u + (place >> 8) * 7u + seed * 29u + 17u) & 0xff);
}

/* "64K", "4M", "1000" -> bytes; 0 when it is none. */
static inline size_t parse_size(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text)
        return 0;
    switch (*end) {
    case 'k':
    case 'K':
        value <<= 10;
        end++;
        break;
    case 'm':
    case 'M':
        value <<= 20;
        end++;
        break;
    case 'g':
    case 'G':
        value <<= 30;
        end++;
        break;
    }
    return *end ? 0 : (size_t) value;
}

#endif
