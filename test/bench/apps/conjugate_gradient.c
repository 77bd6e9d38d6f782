/* Conjugate gradients for the five-point Laplacian on a square, distributed by rows: per iteration
 * a halo of one row from each neighbour and two sums over all ranks.
 * Alone: mpiexec -n 4 conjugate_gradient --pattern conjugate_gradient --sizes 64,128.
 *
 * A size is the edge of the square in points. Sensible: 64, 128 and 256, with 158, 313 and 622
 * iterations in 25 to 300 ms (4 ranks on 2 cores).
 * --overlap yes takes the pipelined method of Ghysels and Vanroose (Parallel Computing 40, 2014):
 * both sums are one MPI_Iallreduce that travels during the matrix product, and the product's rows
 * that need no halo are computed while the halos travel. --overlap no takes the method of Hestenes
 * and Stiefel, and waits for each message.
 *
 * Both do as many iterations as the Chebyshev bound asks for, so the work depends on the size only.
 * Verified: the solution is known, and the right side is made from it without communication. The
 * error in the norm of the matrix has to be below that bound, and so has the true residual, whose
 * halos come by MPI_Sendrecv. The residual that the method carries along has to be the true one. */
#define _GNU_SOURCE
#include "apps.h"

/* Of the error's norm, as a share of that at the start. */
static const double tolerance = 1e-3;
/* Between the true residual and the method's own, as a share of the right side's norm. */
static const double allowed_gap = 1e-8;

static int edge, iterations;
static int above, below;
static int first_row, rows; /* of this rank */
static size_t pitch, count; /* of a row with a 0 at both ends, and of all rows without halos */

/* Vectors: row 0 and row `rows` + 1 are halos. The zeros at the ends of rows remain zeros. */
enum { SOLUTION, RIGHT_SIDE, R, P, Q, S, W, Z, VECTORS };
static double *vectors[VECTORS];

static const char *refusal(size_t size)
{
    if (size < 2 || size > 2048)
        return "an edge from 2 to 2K";
    return size < (size_t) ranks ? "an edge shorter than the number of ranks" : NULL;
}

/* The square root of the matrix's condition: of its eigenvalues 8 cos^2(a) is the greatest and
 * 8 sin^2(a) the least, where a = pi / (2 (edge + 1)). */
static double root_of_condition(void)
{
    return 1.0 / tan(0.5 * M_PI / (edge + 1));
}

static void prepare(int size)
{
    edge = size;
    first_row = share_start(edge, ranks, my_rank);
    rows = share_start(edge, ranks, my_rank + 1) - first_row;
    above = my_rank > 0 ? my_rank - 1 : MPI_PROC_NULL;
    below = my_rank < ranks - 1 ? my_rank + 1 : MPI_PROC_NULL;
    pitch = (size_t) edge + 2;
    count = (size_t) rows * pitch;
    iterations = (int) ceil(0.5 * root_of_condition() * log(2.0 / tolerance));
    for (int i = 0; i < VECTORS; i++)
        vectors[i] = allocate(count + 2 * pitch, sizeof(double));
}
static void release(void)
{
    for (int i = 0; i < VECTORS; i++)
        free(vectors[i]);
}

/* The solution: from -1 to 1 without a pattern, so that all eigenvectors take part. Rows and
 * columns count from 0; it is 0 outside. */
static double known(int row, int column)
{
    if (row < 0 || row >= edge || column < 0 || column >= edge)
        return 0.0;
    return (double) (scramble((uint64_t) row << 32 | (uint64_t) column) >> 11) * 0x1p-52 - 1.0;
}

/* Halos start as NaN where a neighbour has to fill them. */
static void reset(void)
{
    for (int v = 0; v < VECTORS; v++) {
        memset(vectors[v], 0, (count + 2 * pitch) * sizeof(double));
        for (size_t j = 1; j <= (size_t) edge; j++) {
            vectors[v][j] = above == MPI_PROC_NULL ? 0.0 : NAN;
            vectors[v][pitch + count + j] = below == MPI_PROC_NULL ? 0.0 : NAN;
        }
    }
    for (int i = 0; i < rows; i++) {
        const int row = first_row + i;
        double *const b = vectors[RIGHT_SIDE] + ((size_t) i + 1) * pitch + 1;
        for (int j = 0; j < edge; j++)
            b[j] = 4.0 * known(row, j) - known(row - 1, j) - known(row + 1, j) - known(row, j - 1) -
                   known(row, j + 1);
    }
}

/* --- the matrix */
static void multiply_rows(double *restrict out, const double *in, int from, int to)
{
    for (int i = from; i < to; i++) {
        const double *const here = in + (size_t) i * pitch;
        const double *const up = here - pitch, *const down = here + pitch;
        double *const to_row = out + (size_t) i * pitch;
        for (int j = 1; j <= edge; j++)
            to_row[j] = 4.0 * here[j] - up[j] - down[j] - here[j - 1] - here[j + 1];
    }
}
static void multiply(double *out, double *in)
{
    MPI_Request requests[4];
    double *const last = in + (size_t) rows * pitch;
    MPI_Irecv(in + 1, edge, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(last + pitch + 1, edge, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(last + 1, edge, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(in + pitch + 1, edge, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[3]);
    if (overlap)
        multiply_rows(out, in, 2, rows);
    wait_for_all(4, requests);
    if (!overlap) {
        multiply_rows(out, in, 1, rows + 1);
        return;
    }
    multiply_rows(out, in, 1, 2);
    if (rows > 1)
        multiply_rows(out, in, rows, rows + 1);
}

/* --- the methods */

/* This rank's part. */
static double dot(const double *a, const double *b)
{
    double sum = 0.0;
    for (size_t i = pitch; i < pitch + count; i++)
        sum += a[i] * b[i];
    return sum;
}
static double sum_of_ranks(double mine)
{
    double sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}
/* A step of a small problem that is solved already is 0, not 0 / 0. */
static double quotient(double a, double b)
{
    return b != 0.0 ? a / b : 0.0;
}

static void solve_in_turn(void)
{
    double *restrict const x = vectors[SOLUTION], *restrict const r = vectors[R];
    double *const p = vectors[P], *const q = vectors[Q];
    memcpy(r + pitch, vectors[RIGHT_SIDE] + pitch, count * sizeof *r);
    memcpy(p + pitch, vectors[RIGHT_SIDE] + pitch, count * sizeof *p);
    double squared = sum_of_ranks(dot(r, r));
    for (int iteration = 0; iteration < iterations; iteration++) {
        multiply(q, p);
        const double alpha = quotient(squared, sum_of_ranks(dot(p, q)));
        double mine = 0.0;
        for (size_t i = pitch; i < pitch + count; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            mine += r[i] * r[i];
        }
        const double before = squared;
        squared = sum_of_ranks(mine);
        const double beta = quotient(squared, before);
        for (size_t i = pitch; i < pitch + count; i++)
            p[i] = r[i] + beta * p[i];
    }
}

/* The names are the paper's: w = A r, s = A p, z = A s, q = A w. */
static void solve_pipelined(void)
{
    double *restrict const x = vectors[SOLUTION], *restrict const r = vectors[R],
                           *restrict const p = vectors[P], *restrict const s = vectors[S],
                           *restrict const z = vectors[Z];
    double *const w = vectors[W], *const q = vectors[Q];
    double alpha = 0.0, before = 0.0;
    memcpy(r + pitch, vectors[RIGHT_SIDE] + pitch, count * sizeof *r);
    multiply(w, r);
    for (int iteration = 0; iteration < iterations; iteration++) {
        MPI_Request request;
        const double mine[2] = {dot(r, r), dot(w, r)};
        double sums[2];
        MPI_Iallreduce(mine, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        multiply(q, w);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        const double beta = quotient(sums[0], before);
        alpha = quotient(sums[0], sums[1] - beta * quotient(sums[0], alpha));
        before = sums[0];
        for (size_t i = pitch; i < pitch + count; i++) {
            z[i] = q[i] + beta * z[i];
            s[i] = w[i] + beta * s[i];
            p[i] = r[i] + beta * p[i];
            x[i] += alpha * p[i];
            r[i] -= alpha * s[i];
            w[i] -= alpha * z[i];
        }
    }
}

static void solve(void)
{
    if (overlap)
        solve_pipelined();
    else
        solve_in_turn();
}

static bool verify(void)
{
    double *const x = vectors[SOLUTION], *const b = vectors[RIGHT_SIDE],
                  *const product = vectors[Q];
    double *const last = x + (size_t) rows * pitch;
    enum { ERROR, RESIDUAL, GAP, FIRST_ERROR, FIRST_RESIDUAL, NORMS };
    double mine[NORMS] = {0.0}, sums[NORMS]; /* squares; at first x was 0 */
    MPI_Sendrecv(last, (int) pitch, MPI_DOUBLE, below, 2, x, (int) pitch, MPI_DOUBLE, above, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(x + pitch, (int) pitch, MPI_DOUBLE, above, 3, last + pitch, (int) pitch,
                 MPI_DOUBLE, below, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    multiply_rows(product, x, 1, rows + 1);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < edge; j++) {
            const size_t at = ((size_t) i + 1) * pitch + (size_t) j + 1;
            const double solution = known(first_row + i, j), residual = b[at] - product[at];
            const double gap = residual - vectors[R][at];
            mine[ERROR] += (solution - x[at]) * residual;
            mine[RESIDUAL] += residual * residual;
            mine[GAP] += gap * gap;
            mine[FIRST_ERROR] += solution * b[at];
            mine[FIRST_RESIDUAL] += b[at] * b[at];
        }
    MPI_Allreduce(mine, sums, NORMS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sqrt(fabs(sums[ERROR])) <= tolerance * sqrt(sums[FIRST_ERROR]) &&
           sqrt(sums[RESIDUAL]) <= tolerance * root_of_condition() * sqrt(sums[FIRST_RESIDUAL]) &&
           sqrt(sums[GAP]) <= allowed_gap * sqrt(sums[FIRST_RESIDUAL]);
}

/* Two halos and two sums per iteration. */
static double payload(void)
{
    return sizeof(double) * (ranks - 1.0) * iterations * (2.0 * edge + 2.0);
}

int main(int argc, char **argv)
{
    const struct app app = {.name = "conjugate_gradient",
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
