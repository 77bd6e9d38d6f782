/* The heat equation in a cube: Jacobi steps of the seven-point stencil, six faces from the
 * neighbours of a Cartesian grid of ranks as subarrays, and the norm of a step's change by
 * MPI_Allreduce every 10 steps.
 * Alone: mpiexec -n 4 stencil3d --pattern stencil3d --sizes 64,96 --overlap yes.
 *
 * A size is the edge of the cube in points. Sensible: 64, 96 and 128, with 20 to 130 ms for the 50
 * steps of a solve (4 ranks on 2 cores).
 * --overlap yes computes the points that need no halo while the halos travel; --overlap no waits
 * for the halos first.
 *
 * Verified as in stencil2d: each point of a sum of two sine modes is known after any number of
 * steps, and so is the norm of each step's change. */
#define _GNU_SOURCE
#include "apps.h"

enum { AXES = 3, SIDES = 2, FACES = AXES * SIDES, STEPS = 50, NORM_EVERY = 10 };

/* They differ along every axis: exchanged axes show. */
struct mode {
    double amplitude;
    int waves[AXES]; /* half waves */
};
static const struct mode modes[] = {{1.0, {1, 2, 3}}, {0.5, {3, 1, 2}}};
enum { MODES = sizeof modes / sizeof modes[0] };

/* Places from `from` to `to` - 1, along each axis. */
struct box {
    int from[AXES], to[AXES];
};

static int edge;
static MPI_Comm grid;
static int neighbours[AXES][SIDES];
static MPI_Datatype sent[AXES][SIDES], received[AXES][SIDES];
static int first[AXES], length[AXES];
static double *now, *next; /* places 1 to `length` along each axis; around them the halos */
static size_t points, plane, pitch;
static double norms[STEPS / NORM_EVERY];

static void blocks_of_ranks(int blocks[AXES])
{
    for (int axis = 0; axis < AXES; axis++)
        blocks[axis] = 0;
    MPI_Dims_create(ranks, AXES, blocks);
}
static const char *refusal(size_t size)
{
    int blocks[AXES];
    blocks_of_ranks(blocks);
    if (size < 4)
        return "the modes need an edge of 4";
    if (size > 1024)
        return "an edge of 1K at most";
    return size < (size_t) blocks[0] ? "an edge shorter than the grid of ranks" : NULL;
}

static size_t index_of(int i, int j, int k)
{
    return (size_t) i * plane + (size_t) j * pitch + (size_t) k;
}

/* The layer at `place` along `axis`, without its rim: the stencil has no diagonals. */
static MPI_Datatype layer(int axis, int place)
{
    MPI_Datatype type;
    int whole[AXES], part[AXES], start[AXES];
    for (int a = 0; a < AXES; a++) {
        whole[a] = length[a] + 2;
        part[a] = a == axis ? 1 : length[a];
        start[a] = a == axis ? place : 1;
    }
    MPI_Type_create_subarray(AXES, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void prepare(int size)
{
    const int open[AXES] = {0, 0, 0};
    int blocks[AXES], place[AXES], rank;
    edge = size;
    blocks_of_ranks(blocks);
    /* not reordered: every installation has the same neighbours */
    MPI_Cart_create(MPI_COMM_WORLD, AXES, blocks, open, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, AXES, place);
    for (int axis = 0; axis < AXES; axis++) {
        first[axis] = share_start(edge, blocks[axis], place[axis]);
        length[axis] = share_start(edge, blocks[axis], place[axis] + 1) - first[axis];
    }
    for (int axis = 0; axis < AXES; axis++) {
        MPI_Cart_shift(grid, axis, 1, &neighbours[axis][0], &neighbours[axis][1]);
        sent[axis][0] = layer(axis, 1);
        sent[axis][1] = layer(axis, length[axis]);
        received[axis][0] = layer(axis, 0);
        received[axis][1] = layer(axis, length[axis] + 1);
    }
    pitch = (size_t) length[2] + 2;
    plane = pitch * ((size_t) length[1] + 2);
    points = plane * ((size_t) length[0] + 2);
    now = allocate(points, sizeof *now);
    next = allocate(points, sizeof *next);
}
static void release(void)
{
    for (int axis = 0; axis < AXES; axis++)
        for (int side = 0; side < SIDES; side++) {
            MPI_Type_free(&sent[axis][side]);
            MPI_Type_free(&received[axis][side]);
        }
    MPI_Comm_free(&grid);
    free(now);
    free(next);
}

/* What a mode loses in a step, as a share of it. */
static double loss(const struct mode *mode)
{
    double sum = 0.0;
    for (int axis = 0; axis < AXES; axis++)
        sum += sine_loss(mode->waves[axis], edge);
    return sum / AXES;
}
/* The modes after `steps`, in this rank's block without halos. */
static double *modes_after(int steps)
{
    const size_t count = (size_t) length[0] * (size_t) length[1] * (size_t) length[2];
    double *const values = allocate(count, sizeof *values);
    double *const line = allocate((size_t) length[2], sizeof *line);
    for (int m = 0; m < MODES; m++) {
        const int *const waves = modes[m].waves;
        const double factor = modes[m].amplitude * pow(1.0 - loss(&modes[m]), steps);
        double *value = values;
        for (int k = 0; k < length[2]; k++)
            line[k] = sine_mode(waves[2], first[2] + k, edge);
        for (int i = 0; i < length[0]; i++)
            for (int j = 0; j < length[1]; j++) {
                const double at = factor * sine_mode(waves[0], first[0] + i, edge) *
                                  sine_mode(waves[1], first[1] + j, edge);
                for (int k = 0; k < length[2]; k++)
                    *value++ += at * line[k];
            }
    }
    free(line);
    return values;
}

static bool is_wall(int axis, int place)
{
    return (place == 0 && neighbours[axis][0] == MPI_PROC_NULL) ||
           (place == length[axis] + 1 && neighbours[axis][1] == MPI_PROC_NULL);
}
/* Halos start as NaN where a neighbour has to fill them, and the walls are 0. */
static void reset(void)
{
    double *const modes_now = modes_after(0);
    const double *value = modes_now;
    for (int i = 0; i < length[0] + 2; i++)
        for (int j = 0; j < length[1] + 2; j++)
            for (int k = 0; k < length[2] + 2; k++)
                now[index_of(i, j, k)] = next[index_of(i, j, k)] =
                    is_wall(0, i) || is_wall(1, j) || is_wall(2, k) ? 0.0 : NAN;
    for (int i = 1; i <= length[0]; i++)
        for (int j = 1; j <= length[1]; j++)
            for (int k = 1; k <= length[2]; k++)
                now[index_of(i, j, k)] = *value++;
    for (int i = 0; i < STEPS / NORM_EVERY; i++)
        norms[i] = NAN;
    free(modes_now);
}

/* A message's tag says along which axis and to which side it travels. */
static void start_halos(MPI_Request requests[2 * FACES])
{
    MPI_Request *next_request = requests;
    for (int axis = 0; axis < AXES; axis++)
        for (int side = 0; side < SIDES; side++)
            MPI_Irecv(now, 1, received[axis][side], neighbours[axis][side],
                      SIDES * axis + (1 - side), grid, next_request++);
    for (int axis = 0; axis < AXES; axis++)
        for (int side = 0; side < SIDES; side++)
            MPI_Isend(now, 1, sent[axis][side], neighbours[axis][side], SIDES * axis + side, grid,
                      next_request++);
}

/* The new values in `box`. Returns the sum of the squares of their changes if `measured`. */
static double update(const struct box *box, bool measured)
{
    double sum = 0.0;
    for (int i = box->from[0]; i < box->to[0]; i++)
        for (int j = box->from[1]; j < box->to[1]; j++) {
            const double *const here = now + index_of(i, j, 0);
            const double *const up = here - plane, *const down = here + plane;
            const double *const left = here - pitch, *const right = here + pitch;
            double *restrict const out = next + index_of(i, j, 0);
            for (int k = box->from[2]; k < box->to[2]; k++)
                out[k] = (up[k] + down[k] + left[k] + right[k] + here[k - 1] + here[k + 1]) *
                         (1.0 / 6.0);
            for (int k = box->from[2]; measured && k < box->to[2]; k++)
                sum += (out[k] - here[k]) * (out[k] - here[k]);
        }
    return sum;
}
/* All points, or those that need no halo. */
static double update_block(bool inner, bool measured)
{
    struct box box;
    for (int axis = 0; axis < AXES; axis++) {
        box.from[axis] = inner ? 2 : 1;
        box.to[axis] = inner ? length[axis] : length[axis] + 1;
    }
    return update(&box, measured);
}
/* The points that need a halo: two layers of each axis, without what the axes before it did. */
static double update_border(bool measured)
{
    double sum = 0.0;
    for (int axis = 0; axis < AXES; axis++) {
        struct box box;
        for (int a = 0; a < AXES; a++) {
            box.from[a] = a < axis ? 2 : 1;
            box.to[a] = a < axis ? length[a] : length[a] + 1;
        }
        box.to[axis] = 2;
        sum += update(&box, measured);
        box.from[axis] = length[axis];
        box.to[axis] = length[axis] + 1;
        if (length[axis] > 1)
            sum += update(&box, measured);
    }
    return sum;
}

static void solve(void)
{
    MPI_Request requests[2 * FACES];
    for (int step = 1; step <= STEPS; step++) {
        const bool measured = step % NORM_EVERY == 0;
        double sum;
        start_halos(requests);
        if (overlap) {
            sum = update_block(true, measured);
            wait_for_all(2 * FACES, requests);
            sum += update_border(measured);
        } else {
            wait_for_all(2 * FACES, requests);
            sum = update_block(false, measured);
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
    return sqrt(sum) * pow((edge + 1) / 2.0, AXES / 2.0);
}
static bool verify(void)
{
    double *const expected = modes_after(STEPS);
    const double *value = expected;
    bool right = true;
    for (int i = 1; i <= length[0]; i++)
        for (int j = 1; j <= length[1]; j++)
            for (int k = 1; k <= length[2]; k++)
                right = right && fabs(now[index_of(i, j, k)] - *value++) <= 1e-11;
    /* the second term is what rounding leaves when a small block has decayed */
    for (int i = 0; i < STEPS / NORM_EVERY; i++) {
        const double norm = expected_norm((i + 1) * NORM_EVERY);
        right = right && fabs(norms[i] - norm) <= 1e-7 * norm + 1e-15 * edge * sqrt(edge);
    }
    free(expected);
    return right;
}

/* Every cut through the cube is crossed in both directions at every step. */
static double payload(void)
{
    int blocks[AXES];
    blocks_of_ranks(blocks);
    const double cuts = blocks[0] - 1 + blocks[1] - 1 + blocks[2] - 1;
    return sizeof(double) * (STEPS * 2.0 * edge * edge * cuts + STEPS / NORM_EVERY * (ranks - 1.0));
}

int main(int argc, char **argv)
{
    const struct app app = {.name = "stencil3d",
                            .size_means = "the edge of the cube in points",
                            .refusal = refusal,
                            .prepare = prepare,
                            .reset = reset,
                            .solve = solve,
                            .verify = verify,
                            .payload = payload,
                            .release = release};
    return run_app(&app, argc, argv);
}
