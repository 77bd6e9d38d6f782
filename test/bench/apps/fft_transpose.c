/* A Fourier transform of a square of complex numbers and its inverse: transforms of this rank's
 * rows, a transpose by MPI_Alltoall, and transforms of what were columns; the same way back.
 * Alone: mpiexec -n 4 fft_transpose --pattern fft_transpose --sizes 512,1K --overlap yes.
 *
 * A size is the edge of the square in points, a power of two that the number of ranks divides.
 * Sensible: 512, 1K and 2K, with 10 to 120 ms (4 ranks on 2 cores).
 * --overlap yes transposes in slices of rows by MPI_Ialltoall: one travels while the next is
 * transformed. --overlap no transforms all rows, then calls MPI_Alltoall once.
 *
 * Verified: the input is a few impulses and a few plane waves, whose transforms are plane waves and
 * impulses. So each number of the spectrum is known, and the inverse has to give the input. */
#define _GNU_SOURCE
#include "apps.h"

enum { MOST_SLICES = 4 };

/* Not C's own: its product has to look for infinities, by a call. */
struct number {
    double re, im;
};

static int edge, rows, first_row; /* the rows of this rank */
static int slices, slice_rows;
static struct number *input, *spectrum, *result; /* the spectrum is transposed */
static struct number *square, *out, *in;         /* this rank's rows while at work; what travels */
static struct number *turns;                     /* of the stage that joins h and h: from h on */
static struct number *circle;                    /* exp(2 pi i k / edge) */
static int *reversed;                            /* places with their bits in reverse order */

static struct number times(struct number a, struct number b)
{
    return (struct number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static const char *refusal(size_t size)
{
    if (size < 2 || size > 16384 || (size & (size - 1)) != 0)
        return "the edge has to be a power of two, from 2 to 16K";
    return size % (size_t) ranks != 0 ? "the number of ranks has to divide the edge" : NULL;
}

static struct number *numbers(size_t count)
{
    return allocate(count, sizeof(struct number));
}
static void prepare(int size)
{
    edge = size;
    rows = edge / ranks;
    first_row = rows * my_rank;
    slices = !overlap ? 1 : rows < MOST_SLICES ? rows : MOST_SLICES;
    slice_rows = rows / slices;
    struct number **const squares[] = {&input, &spectrum, &result, &square, &out, &in};
    for (size_t i = 0; i < sizeof squares / sizeof squares[0]; i++)
        *squares[i] = numbers((size_t) rows * (size_t) edge);
    turns = numbers((size_t) edge);
    circle = numbers((size_t) edge);
    reversed = allocate((size_t) edge, sizeof *reversed);
    for (int half = 1; half < edge; half *= 2)
        for (int i = 0; i < half; i++)
            turns[half + i] = (struct number){cos(M_PI * i / half), -sin(M_PI * i / half)};
    for (int i = 0; i < edge; i++)
        circle[i] = (struct number){cos(2.0 * M_PI / edge * i), sin(2.0 * M_PI / edge * i)};
    for (int i = 1; i < edge; i++)
        reversed[i] = reversed[i / 2] / 2 + (i % 2) * (edge / 2);
}
static void release(void)
{
    struct number *const all[] = {input, spectrum, result, square, out, in, turns, circle};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    free(reversed);
}

/* --- what is transformed */
struct place {
    int row, column;
};
/* Taken modulo the edge. No two are the same from an edge of 2 on. */
static const struct place impulses[] = {{0, 1}, {37, 90}, {1001, 250}};
static const struct place waves[] = {{1, 0}, {77, 30}, {130, 517}};
enum { IMPULSES = sizeof impulses / sizeof impulses[0], WAVES = sizeof waves / sizeof waves[0] };

/* Adds exp(2 pi i (row a + column b) / edge) `amplitude` times. */
static void add_wave(struct number *to, double amplitude, int row, int column, int a, int b)
{
    const unsigned turn = (unsigned) row * (unsigned) a + (unsigned) column * (unsigned) b;
    const struct number value = circle[turn % (unsigned) edge];
    to->re += amplitude * value.re;
    to->im += amplitude * value.im;
}
static bool is_at(struct place place, int row, int column)
{
    return place.row % edge == row && place.column % edge == column;
}
/* Impulses of 1; waves of 1 / edge, which give impulses of `edge`. */
static struct number input_at(int row, int column)
{
    struct number value = {0.0, 0.0};
    for (int i = 0; i < IMPULSES; i++)
        value.re += is_at(impulses[i], row, column) ? 1.0 : 0.0;
    for (int i = 0; i < WAVES; i++)
        add_wave(&value, 1.0 / edge, row, column, waves[i].row, waves[i].column);
    return value;
}
static struct number spectrum_at(int row, int column)
{
    struct number value = {0.0, 0.0};
    for (int i = 0; i < WAVES; i++)
        value.re += is_at(waves[i], row, column) ? (double) edge : 0.0;
    for (int i = 0; i < IMPULSES; i++)
        add_wave(&value, 1.0, row, column, -impulses[i].row, -impulses[i].column);
    return value;
}

static void reset(void)
{
    const size_t count = (size_t) rows * (size_t) edge;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < edge; j++)
            input[(size_t) i * (size_t) edge + (size_t) j] = input_at(first_row + i, j);
    for (size_t i = 0; i < count; i++)
        spectrum[i] = result[i] = square[i] = in[i] = out[i] = (struct number){NAN, NAN};
}

/* --- the transform */

/* One row, from `from` to `to`. The inverse has the conjugate turns, and is divided by the edge. */
static void transform_row(struct number *restrict to, const struct number *from, bool inverse)
{
    const double scale = inverse ? 1.0 / edge : 1.0, sign = inverse ? -1.0 : 1.0;
    for (int i = 0; i < edge; i++)
        to[i] = (struct number){scale * from[reversed[i]].re, scale * from[reversed[i]].im};
    for (int half = 1; half < edge; half *= 2)
        for (int start = 0; start < edge; start += 2 * half) {
            struct number *const low = to + start, *const high = low + half;
            for (int i = 0; i < half; i++) {
                const struct number turn = {turns[half + i].re, sign * turns[half + i].im};
                const struct number a = low[i], b = times(high[i], turn);
                low[i] = (struct number){a.re + b.re, a.im + b.im};
                high[i] = (struct number){a.re - b.re, a.im - b.im};
            }
        }
}
static void transform_rows(struct number *to, const struct number *from, int count, bool inverse)
{
    for (size_t i = 0; i < (size_t) count; i++)
        transform_row(to + i * (size_t) edge, from + i * (size_t) edge, inverse);
}

/* Rows of a slice into blocks for the ranks, each transposed; a few columns at a time, because a
 * line of the cache has the numbers of a few. */
static void pack(struct number *to, const struct number *from)
{
    const int most = 8, columns = edge < most ? edge : most;
    for (int first = 0; first < edge; first += columns)
        for (int row = 0; row < slice_rows; row++)
            for (int column = first; column < first + columns; column++)
                to[(size_t) column * (size_t) slice_rows + (size_t) row] =
                    from[(size_t) row * (size_t) edge + (size_t) column];
}
/* The blocks of a slice into columns of the transposed rows. */
static void unpack(int slice, const struct number *from)
{
    for (int rank = 0; rank < ranks; rank++)
        for (int row = 0; row < rows; row++) {
            const int column = rank * rows + slice * slice_rows;
            memcpy(square + (size_t) row * (size_t) edge + (size_t) column, from,
                   (size_t) slice_rows * sizeof *from);
            from += slice_rows;
        }
}

/* Rows of `from`, transpose, then rows again to `to`. Twice, the second time as the inverse, has
 * the axes in their places. */
static void transform(struct number *to, const struct number *from, bool inverse)
{
    const size_t slice = (size_t) slice_rows * (size_t) edge;
    const int block = slice_rows * rows;
    MPI_Request requests[MOST_SLICES];
    for (int i = 0; i < slices; i++) {
        const size_t at = (size_t) i * slice;
        transform_rows(square + at, from + at, slice_rows, inverse);
        pack(out + at, square + at);
        if (overlap)
            MPI_Ialltoall(out + at, block, MPI_C_DOUBLE_COMPLEX, in + at, block,
                          MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Alltoall(out + at, block, MPI_C_DOUBLE_COMPLEX, in + at, block,
                         MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
    }
    for (int i = 0; i < slices; i++) {
        if (overlap)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        unpack(i, in + (size_t) i * slice);
    }
    transform_rows(to, square, rows, inverse);
}

static void solve(void)
{
    transform(spectrum, input, false);
    transform(result, spectrum, true);
}

static bool near(struct number a, struct number b, double allowed)
{
    return fabs(a.re - b.re) <= allowed && fabs(a.im - b.im) <= allowed;
}
static bool verify(void)
{
    bool right = true;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < edge; j++) {
            const size_t at = (size_t) i * (size_t) edge + (size_t) j;
            right = right && near(spectrum[at], spectrum_at(j, first_row + i), 1e-9) &&
                    near(result[at], input_at(first_row + i, j), 1e-11);
        }
    return right;
}

/* Of each rank's rows the columns of the others, there and back. */
static double payload(void)
{
    return 2.0 * sizeof(struct number) * rows * edge * (ranks - 1.0);
}

int main(int argc, char **argv)
{
    const struct app app = {.name = "fft_transpose",
                            .size_means = "the edge of the square in points",
                            .refusal = refusal,
                            .prepare = prepare,
                            .reset = reset,
                            .solve = solve,
                            .verify = verify,
                            .payload = payload,
                            .release = release};
    return run_app(&app, argc, argv);
}
