/* The heat equation on a square: Jacobi steps of the five-point stencil, halos from the neighbours
 * of a Cartesian grid of ranks, and the norm of a step's change by MPI_Allreduce every 10 steps.
 * Alone: mpiexec -n 4 stencil2d --pattern stencil2d --sizes 512,1K --overlap yes.
 *
 * A size is the edge of the square in points. Sensible: 512 and 1K, with 25 to 150 ms for the 100
 * steps of a solve (4 ranks on 2 cores).
 * --overlap yes computes the points that need no halo while the halos travel; --overlap no waits
 * for the halos first.
 *
 * Verified: a sine mode is an eigenvector, so each point of a sum of two modes is known after any
 * number of steps, and so is the norm of each step's change. A halo that comes a step too late
 * once makes an error of 1e-6 at an edge of 1024; 1e-11 is allowed. */
#define _GNU_SOURCE
#include "apps.h"

enum { STEPS = 100, NORM_EVERY = 10 };

/* They differ in both directions: exchanged axes show. */
struct mode {
    double amplitude;
    int down, across; /* half waves */
};
static const struct mode modes[] = {{1.0, 1, 2}, {0.5, 3, 1}};
enum { MODES = sizeof modes / sizeof modes[0] };

static int edge;
static MPI_Comm grid;
static MPI_Datatype column;
static int above, below, left, right;
static int first_row, first_column, rows, columns; /* of this rank's block */
static double *now, *next; /* rows 1 to `rows`, columns 1 to `columns`; around them the halos */
static size_t pitch;
static double norms[STEPS / NORM_EVERY];

static void blocks_of_ranks(int blocks[2])
{
    blocks[0] = blocks[1] = 0;
    MPI_Dims_create(ranks, 2, blocks);
}
static const char *refusal(size_t size)
{
    int blocks[2];
    blocks_of_ranks(blocks);
    if (size < 4)
        return "the modes need an edge of 4";
    if (size > 32768)
        return "an edge of 32K at most";
    return size < (size_t) blocks[0] ? "an edge shorter than the grid of ranks" : NULL;
}

static void prepare(int size)
{
    const int open[2] = {0, 0};
    int blocks[2], place[2], rank;
    edge = size;
    blocks_of_ranks(blocks);
    /* not reordered: every installation has the same neighbours */
    MPI_Cart_create(MPI_COMM_WORLD, 2, blocks, open, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, place);
    MPI_Cart_shift(grid, 0, 1, &above, &below);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    first_row = share_start(edge, blocks[0], place[0]);
    rows = share_start(edge, blocks[0], place[0] + 1) - first_row;
    first_column = share_start(edge, blocks[1], place[1]);
    columns = share_start(edge, blocks[1], place[1] + 1) - first_column;
    pitch = (size_t) columns + 2;
    now = allocate(((size_t) rows + 2) * pitch, sizeof *now);
    next = allocate(((size_t) rows + 2) * pitch, sizeof *next);
    MPI_Type_vector(rows, 1, (int) pitch, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
}
static void release(void)
{
    MPI_Type_free(&column);
    MPI_Comm_free(&grid);
    free(now);
    free(next);
}

/* What a mode loses in a step, as a share of it. */
static double loss(const struct mode *mode)
{
    return (sine_loss(mode->down, edge) + sine_loss(mode->across, edge)) / 2.0;
}
/* The columns of this rank of the modes after `steps`, without their factors of the rows. */
static double *modes_across(int steps)
{
    double *const values = allocate((size_t) MODES * (size_t) columns, sizeof *values);
    for (int m = 0; m < MODES; m++)
        for (int j = 0; j < columns; j++)
            values[m * columns + j] = modes[m].amplitude * pow(1.0 - loss(&modes[m]), steps) *
                                      sine_mode(modes[m].across, first_column + j, edge);
    return values;
}

/* Halos start as NaN where a neighbour has to fill them, and the walls are 0. */
static void reset(void)
{
    double *const across = modes_across(0);
    for (size_t i = 0; i < ((size_t) rows + 2) * pitch; i++)
        now[i] = next[i] = 0.0;
    for (int i = 1; i <= rows; i++) {
        double *const row = now + (size_t) i * pitch;
        for (int m = 0; m < MODES; m++) {
            const double factor = sine_mode(modes[m].down, first_row + i - 1, edge);
            for (int j = 1; j <= columns; j++)
                row[j] += factor * across[m * columns + j - 1];
        }
        row[0] = left == MPI_PROC_NULL ? 0.0 : NAN;
        row[columns + 1] = right == MPI_PROC_NULL ? 0.0 : NAN;
    }
    for (int j = 1; j <= columns; j++) {
        now[j] = above == MPI_PROC_NULL ? 0.0 : NAN;
        now[((size_t) rows + 1) * pitch + (size_t) j] = below == MPI_PROC_NULL ? 0.0 : NAN;
    }
    for (int i = 0; i < STEPS / NORM_EVERY; i++)
        norms[i] = NAN;
    free(across);
}

static void start_halos(MPI_Request requests[8])
{
    double *const first = now + pitch + 1, *const last = now + (size_t) rows * pitch + 1;
    MPI_Irecv(first - pitch, columns, MPI_DOUBLE, above, 0, grid, &requests[0]);
    MPI_Irecv(last + pitch, columns, MPI_DOUBLE, below, 1, grid, &requests[1]);
    MPI_Irecv(first - 1, 1, column, left, 2, grid, &requests[2]);
    MPI_Irecv(first + columns, 1, column, right, 3, grid, &requests[3]);
    MPI_Isend(last, columns, MPI_DOUBLE, below, 0, grid, &requests[4]);
    MPI_Isend(first, columns, MPI_DOUBLE, above, 1, grid, &requests[5]);
    MPI_Isend(first + columns - 1, 1, column, right, 2, grid, &requests[6]);
    MPI_Isend(first, 1, column, left, 3, grid, &requests[7]);
}

/* The new values of rows `top` to `bottom` - 1 and columns `from` to `to` - 1. Returns the sum of
 * the squares of their changes if `measured`. */
static double update(int top, int bottom, int from, int to, bool measured)
{
    double sum = 0.0;
    for (int i = top; i < bottom; i++) {
        const double *const here = now + (size_t) i * pitch;
        const double *const up = here - pitch, *const down = here + pitch;
        double *restrict const out = next + (size_t) i * pitch;
        for (int j = from; j < to; j++)
            out[j] = 0.25 * (up[j] + down[j] + here[j - 1] + here[j + 1]);
        for (int j = from; measured && j < to; j++)
            sum += (out[j] - here[j]) * (out[j] - here[j]);
    }
    return sum;
}
/* The points beside a halo. A block of one row or column has its only one updated once. */
static double update_border(bool measured)
{
    double sum = update(1, 2, 1, columns + 1, measured);
    if (rows > 1)
        sum += update(rows, rows + 1, 1, columns + 1, measured);
    sum += update(2, rows, 1, 2, measured);
    if (columns > 1)
        sum += update(2, rows, columns, columns + 1, measured);
    return sum;
}

static void solve(void)
{
    MPI_Request requests[8];
    for (int step = 1; step <= STEPS; step++) {
        const bool measured = step % NORM_EVERY == 0;
        double sum;
        start_halos(requests);
        if (overlap) {
            sum = update(2, rows, 2, columns, measured);
            wait_for_all(8, requests);
            sum += update_border(measured);
        } else {
            wait_for_all(8, requests);
            sum = update(1, rows + 1, 1, columns + 1, measured);
        }
        if (measured) {
            MPI_Allreduce(&sum, &norms[step / NORM_EVERY - 1], 1, MPI_DOUBLE, MPI_SUM, grid);
            norms[step / NORM_EVERY - 1] = sqrt(norms[step / NORM_EVERY - 1]);
        }
        double *const old = now;
        now = next;
        next = old;
    }
}

/* The modes are orthogonal, and the square of a sine has the sum (edge + 1) / 2. */
static double expected_norm(int step)
{
    double sum = 0.0;
    for (int m = 0; m < MODES; m++) {
        const double lost = loss(&modes[m]);
        const double change = modes[m].amplitude * lost * pow(1.0 - lost, step - 1);
        sum += change * change;
    }
    return sqrt(sum) * (edge + 1) / 2.0;
}
static bool verify(void)
{
    double *const across = modes_across(STEPS);
    bool right_values = true;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) {
            double value = 0.0;
            for (int m = 0; m < MODES; m++)
                value +=
                    sine_mode(modes[m].down, first_row + i - 1, edge) * across[m * columns + j - 1];
            right_values =
                right_values && fabs(now[(size_t) i * pitch + (size_t) j] - value) <= 1e-11;
        }
    /* the second term is what rounding leaves when a small block has decayed */
    for (int i = 0; i < STEPS / NORM_EVERY; i++) {
        const double norm = expected_norm((i + 1) * NORM_EVERY);
        right_values = right_values && fabs(norms[i] - norm) <= 1e-7 * norm + 1e-15 * edge;
    }
    free(across);
    return right_values;
}

/* Every cut through the square is crossed in both directions at every step. */
static double payload(void)
{
    int blocks[2];
    blocks_of_ranks(blocks);
    const double halos = 2.0 * edge * (blocks[0] - 1 + blocks[1] - 1);
    return sizeof(double) * (STEPS * halos + STEPS / NORM_EVERY * (ranks - 1.0));
}

int main(int argc, char **argv)
{
    const struct app app = {.name = "stencil2d",
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
