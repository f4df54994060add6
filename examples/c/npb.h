/* What bt.c and lu.c share: the equations of the simulated applications of the NAS Parallel Benchmarks, in columns.
 *
 * Written from the specification, NAS report RNR-94-007 (Bailey et al., 1994), section 3: five coupled equations of
 * a compressible flow on a cube, discretised by central differences with dissipation of fourth order. The forcing term
 * is made so that the polynomials of `exact` are the discrete solution. Grid, steps and reference values of the classes
 * are those of NPB.
 *
 * A rank has a column of the cube: some x, some y and all z, with a halo of two points on each side. */
#ifndef NPB_H
#define NPB_H

#include "RCCE.h"
#include "isles.h"

#include <math.h>
#include <string.h>

#define EQUATIONS 5
#define HALO 2
#define CYCLES_PER_FLOP 3 /* of a P54C: an assumption */

typedef double Vector[EQUATIONS];
typedef double Block[EQUATIONS][EQUATIONS];

/* Constants of the specification. */
static const double C1 = 1.4, C2 = 0.4, C34 = 0.1, C1345 = 0.196, PRANDTL = 1.96;
static const double diffusion[3] = {0.75, 0.75, 1.0}, dissipation = 0.25;
static const double polynomial[EQUATIONS][13] = {
    {2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
    {1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
    {2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
    {2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
    {5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
};

static int points;         /* each way, with those of the boundary */
static double time_step;
static int working;        /* whether this rank has a column */
static int ranks_along[3], coordinate[3]; /* of x and y; 1 and 0 for z */
static int first[3], count[3];            /* the own points */
static ptrdiff_t stride[3];               /* between neighbours, in numbers */
static size_t field_length;

static int inner(int direction, int at) {
    int whole = first[direction] + at;
    return whole > 0 && whole < points - 1;
}

static double *cell(double *field, int x, int y, int z) {
    return field + (x + HALO) * stride[0] + (y + HALO) * stride[1] + z * stride[2];
}

static double *make_field(void) { return calloc(field_length, sizeof(double)); }

/* Divides the cube into columns of two points each way or more; ranks beyond the columns have none. */
static void divide(int points_each_way) {
    int ranks = RCCE_num_ues(), most = points_each_way / HALO, own = RCCE_ue();
    points = points_each_way;
    ranks_along[0] = ranks_along[1] = ranks_along[2] = 1;
    for (int x = 1; x <= most; x++)
        for (int y = 1; y <= x; y++)
            if (x * y <= ranks && y <= most && x * y >= ranks_along[0] * ranks_along[1]) {
                int is_more = x * y > ranks_along[0] * ranks_along[1];
                if (is_more || x < ranks_along[0]) {
                    ranks_along[0] = x;
                    ranks_along[1] = y;
                }
            }
    working = own < ranks_along[0] * ranks_along[1];
    coordinate[0] = own % ranks_along[0];
    coordinate[1] = own / ranks_along[0];
    for (int direction = 0; direction < 3; direction++) {
        int along = ranks_along[direction], at = coordinate[direction];
        first[direction] = working ? at * points / along : 0;
        count[direction] = working ? (at + 1) * points / along - first[direction] : 0;
    }
    stride[0] = EQUATIONS;
    stride[1] = (count[0] + 2 * HALO) * stride[0];
    stride[2] = (count[1] + 2 * HALO) * stride[1];
    field_length = (size_t)(points * stride[2]);
}

/* The rank before (-1) or behind (1) this one, or -1. */
static int neighbour(int direction, int side) {
    int at = coordinate[direction] + side;
    if (at < 0 || at >= ranks_along[direction])
        return -1;
    return RCCE_ue() + side * (direction == 0 ? 1 : ranks_along[0]);
}

/* A slab of a column: `width` points of one direction from `at` on, all of the other, and planes of z. */
struct slab {
    int direction, at, width, first_plane, planes;
};

static size_t slab_bytes(struct slab slab) {
    return (size_t)(slab.width * count[1 - slab.direction] * slab.planes) * sizeof(Vector);
}

static void copy_slab(double *field, struct slab slab, double *packed, int unpacks) {
    for (int z = slab.first_plane; z < slab.first_plane + slab.planes; z++)
        for (int along = 0; along < count[1 - slab.direction]; along++)
            for (int at = slab.at; at < slab.at + slab.width; at++, packed += EQUATIONS) {
                double *own = slab.direction == 0 ? cell(field, at, along, z) : cell(field, along, at, z);
                memcpy(unpacks ? own : packed, unpacks ? packed : own, sizeof(Vector));
            }
}

static double *packed_slab(void) {
    static double *packed;
    if (!packed)
        packed = malloc((size_t)(HALO * (count[0] > count[1] ? count[0] : count[1]) * points) * sizeof(Vector));
    return packed;
}

static void send_slab(double *field, struct slab slab, int to) {
    double *packed = packed_slab();
    if (to < 0)
        return;
    copy_slab(field, slab, packed, 0);
    RCCE_send((char *)packed, slab_bytes(slab), to);
}

static void receive_slab(double *field, struct slab slab, int from) {
    double *packed = packed_slab();
    if (from < 0)
        return;
    RCCE_recv((char *)packed, slab_bytes(slab), from);
    copy_slab(field, slab, packed, 1);
}

/* Exchanges the halo of a field; ranks with an even coordinate send first. */
static void exchange_halo(double *field) {
    for (int direction = 0; direction < 2; direction++) {
        int before = neighbour(direction, -1), behind = neighbour(direction, 1), own = count[direction];
        for (int phase = 0; phase < 2; phase++)
            if ((coordinate[direction] + phase) % 2 == 0) {
                send_slab(field, (struct slab){direction, own - HALO, HALO, 0, points}, behind);
                send_slab(field, (struct slab){direction, 0, HALO, 0, points}, before);
            } else {
                receive_slab(field, (struct slab){direction, -HALO, HALO, 0, points}, before);
                receive_slab(field, (struct slab){direction, own, HALO, 0, points}, behind);
            }
    }
}

static void exact(double x, double y, double z, double *value) {
    for (int equation = 0; equation < EQUATIONS; equation++) {
        const double *c = polynomial[equation];
        value[equation] = c[0] + x * (c[1] + x * (c[4] + x * (c[7] + x * c[10]))) +
                          y * (c[2] + y * (c[5] + y * (c[8] + y * c[11]))) +
                          z * (c[3] + z * (c[6] + z * (c[9] + z * c[12])));
    }
}

/* Calls `set` for all points of the column and its halo, also for those outside of the cube. */
static void for_each_point(double *field, void (*set)(double x, double y, double z, double *value)) {
    double last = points - 1;
    for (int z = 0; z < points; z++)
        for (int y = -HALO; y < count[1] + HALO; y++)
            for (int x = -HALO; x < count[0] + HALO; x++)
                set((first[0] + x) / last, (first[1] + y) / last, z / last, cell(field, x, y, z));
}

/* The exact solution on the boundary; inside, what the specification makes of interpolations between opposite faces. */
static void start_value(double x, double y, double z, double *value) {
    Vector low, high, along[3];
    double at[3] = {x, y, z};
    if (x <= 0 || x >= 1 || y <= 0 || y >= 1 || z <= 0 || z >= 1) {
        exact(x, y, z, value);
        return;
    }
    for (int direction = 0; direction < 3; direction++) {
        exact(direction == 0 ? 0 : x, direction == 1 ? 0 : y, direction == 2 ? 0 : z, low);
        exact(direction == 0 ? 1 : x, direction == 1 ? 1 : y, direction == 2 ? 1 : z, high);
        for (int equation = 0; equation < EQUATIONS; equation++)
            along[direction][equation] = (1 - at[direction]) * low[equation] + at[direction] * high[equation];
    }
    for (int equation = 0; equation < EQUATIONS; equation++) {
        double a = along[0][equation], b = along[1][equation], c = along[2][equation];
        value[equation] = a + b + c - a * b - b * c - c * a + a * b * c;
    }
}

static double squares(const double *u) { return u[1] * u[1] + u[2] * u[2] + u[3] * u[3]; }

/* The inviscid flux in one direction. */
static void flux(int direction, const double *u, double *f) {
    double speed = u[1 + direction] / u[0], pressure = C2 * (u[4] - 0.5 * squares(u) / u[0]);
    f[0] = u[1 + direction];
    for (int equation = 1; equation < 4; equation++)
        f[equation] = u[equation] * speed + (equation == 1 + direction ? pressure : 0);
    f[4] = (u[4] + pressure) * speed;
}

/* The viscous flux from `u` to its neighbour `v`, times the distance. */
static void viscous_flux(int direction, const double *u, const double *v, double *f) {
    double own = u[1 + direction] / u[0], next = v[1 + direction] / v[0];
    f[0] = 0;
    for (int equation = 1; equation < 4; equation++)
        f[equation] = C34 * (equation == 1 + direction ? 4.0 / 3 : 1) * (v[equation] / v[0] - u[equation] / u[0]);
    f[4] = C34 * (0.5 * (1 - PRANDTL) * (squares(v) / (v[0] * v[0]) - squares(u) / (u[0] * u[0])) +
                  (next * next - own * own) / 6 + PRANDTL * (v[4] / v[0] - u[4] / u[0]));
}

/* Adds the differences of one direction at a point, which lies at `whole` of that direction. */
static void add_differences(int direction, int whole, const double *u, double *result) {
    static const int weights[5] = {1, -4, 6, -4, 1};
    const double *before = u - stride[direction], *behind = u + stride[direction];
    double step = 1.0 / (points - 1);
    Vector f, g, into, out;
    flux(direction, before, f);
    flux(direction, behind, g);
    viscous_flux(direction, before, u, into);
    viscous_flux(direction, u, behind, out);
    for (int equation = 0; equation < EQUATIONS; equation++) {
        double second = before[equation] - 2 * u[equation] + behind[equation];
        result[equation] += -(g[equation] - f[equation]) / (2 * step) +
                            (out[equation] - into[equation] + diffusion[direction] * second) / (step * step);
        for (int offset = -2; offset <= 2; offset++) {
            int at = whole + offset, is_next_to_boundary = whole == 1 || whole == points - 2;
            if (at < 1 || at > points - 2)
                continue;
            double weight = offset == 0 && is_next_to_boundary ? 5 : weights[2 + offset];
            result[equation] -= dissipation * weight * u[offset * stride[direction] + equation];
        }
    }
}

/* result = operator(u) - forcing at inner points, 0 elsewhere; the halo of `u` must be there. */
static void residual(const double *u, const double *forcing, double *result) {
    for (int z = 1; z < points - 1; z++)
        for (int y = 0; y < count[1]; y++)
            for (int x = 0; x < count[0]; x++) {
                if (!inner(0, x) || !inner(1, y))
                    continue;
                ptrdiff_t at = cell(result, x, y, z) - result;
                for (int equation = 0; equation < EQUATIONS; equation++)
                    result[at + equation] = forcing ? -forcing[at + equation] : 0;
                add_differences(0, first[0] + x, u + at, result + at);
                add_differences(1, first[1] + y, u + at, result + at);
                add_differences(2, z, u + at, result + at);
            }
    isles_work((unsigned long long)(count[0] * count[1]) * (points - 2) * 485 * CYCLES_PER_FLOP);
}

/* block += factor * derivative of `flux` */
static void add_flux_jacobian(int direction, const double *u, double factor, Block block) {
    int own = 1 + direction;
    double inverse = 1 / u[0], speed = u[own] * inverse, square = squares(u) * inverse * inverse;
    block[0][own] += factor;
    for (int row = 1; row < 4; row++) {
        block[row][0] -= factor * u[row] * inverse * speed;
        block[row][row] += factor * speed;
        block[row][own] += factor * u[row] * inverse;
    }
    block[own][0] += factor * 0.5 * C2 * square;
    block[own][4] += factor * C2;
    block[4][0] += factor * (C2 * square - C1 * u[4] * inverse) * speed;
    block[4][own] += factor * (C1 * u[4] * inverse - 0.5 * C2 * square);
    block[4][4] += factor * C1 * speed;
    for (int column = 1; column < 4; column++) {
        block[own][column] -= factor * C2 * u[column] * inverse;
        block[4][column] -= factor * C2 * u[column] * inverse * speed;
    }
}

/* block += factor * (derivative of the viscous flux + diffusion) */
static void add_viscous_jacobian(int direction, const double *u, double factor, Block block) {
    double inverse = 1 / u[0];
    for (int row = 1; row < 4; row++) {
        double viscosity = C34 * (row == 1 + direction ? 4.0 / 3 : 1);
        block[row][0] -= factor * viscosity * u[row] * inverse * inverse;
        block[row][row] += factor * viscosity * inverse;
        block[4][0] -= factor * (viscosity - C1345) * u[row] * u[row] * inverse * inverse * inverse;
        block[4][row] += factor * (viscosity - C1345) * u[row] * inverse * inverse;
    }
    block[4][0] -= factor * C1345 * u[4] * inverse * inverse;
    block[4][4] += factor * C1345 * inverse;
    for (int row = 0; row < EQUATIONS; row++)
        block[row][row] += factor * diffusion[direction];
}

/* The block of the implicit operator by which the change of the neighbour `u` counts, before (-1) or behind (1). */
static void neighbour_block(int direction, int side, const double *u, Block block) {
    double inverse = points - 1;
    memset(block, 0, sizeof(Block));
    add_flux_jacobian(direction, u, side * time_step * inverse / 2, block);
    add_viscous_jacobian(direction, u, -time_step * inverse * inverse, block);
}

/* The block of the point itself, for the directions from `from` to `to`. */
static void own_block(int from, int to, const double *u, Block block) {
    double inverse = points - 1;
    memset(block, 0, sizeof(Block));
    for (int row = 0; row < EQUATIONS; row++)
        block[row][row] = 1;
    for (int direction = from; direction <= to; direction++)
        add_viscous_jacobian(direction, u, 2 * time_step * inverse * inverse, block);
}

/* to += factor * block * from */
static void add_product(double *to, double factor, const Block block, const double *from) {
    for (int row = 0; row < EQUATIONS; row++) {
        double sum = 0;
        for (int column = 0; column < EQUATIONS; column++)
            sum += block[row][column] * from[column];
        to[row] += factor * sum;
    }
}

/* Solves block * x = right for `columns` right sides, each a column of `right`; destroys `block`. No pivots are needed:
 * diagonals dominate. */
static void solve_block(Block block, double *right, int columns) {
    for (int pivot = 0; pivot < EQUATIONS; pivot++)
        for (int row = pivot + 1; row < EQUATIONS; row++) {
            double factor = block[row][pivot] / block[pivot][pivot];
            for (int column = pivot; column < EQUATIONS; column++)
                block[row][column] -= factor * block[pivot][column];
            for (int column = 0; column < columns; column++)
                right[row * columns + column] -= factor * right[pivot * columns + column];
        }
    for (int row = EQUATIONS - 1; row >= 0; row--)
        for (int column = 0; column < columns; column++) {
            double *own = &right[row * columns + column];
            for (int known = row + 1; known < EQUATIONS; known++)
                *own -= block[row][known] * right[known * columns + column];
            *own /= block[row][row];
        }
}

/* At rank 0: the root mean square of each equation over the inner points of `field` - `other` (or null). */
static void mean_squares(double *field, double *other, double *mean) {
    Vector own = {0}, all = {0};
    for (int z = 1; z < points - 1; z++)
        for (int y = 0; y < count[1]; y++)
            for (int x = 0; x < count[0]; x++)
                for (int equation = 0; equation < EQUATIONS && inner(0, x) && inner(1, y); equation++) {
                    double value = cell(field, x, y, z)[equation] - (other ? cell(other, x, y, z)[equation] : 0);
                    own[equation] += value * value;
                }
    RCCE_reduce((char *)own, (char *)all, EQUATIONS, RCCE_DOUBLE, RCCE_SUM, 0, RCCE_COMM_WORLD);
    for (int equation = 0; equation < EQUATIONS; equation++)
        mean[equation] = sqrt(all[equation] / ((double)(points - 2) * (points - 2) * (points - 2)));
}

/* Compares values with NPB's references to 1e-8, as NPB does; whether they differ. */
static int differ(const char *what, const double *values, const double *references, int length) {
    int wrong = 0;
    printf("%s", what);
    for (int at = 0; at < length; at++) {
        printf(" %.8e", values[at]);
        wrong |= !(fabs((values[at] - references[at]) / references[at]) <= 1e-8);
    }
    printf("%s\n", wrong ? " DIFFER from NPB" : "");
    return wrong;
}

/* Begins a program: takes the class from its arguments, S or W; -1 if it is neither. */
static int begin_class(int argc, char **argv, const char *name) {
    const char *text = argc > 1 ? argv[1] : "S";
    if (text[0] && !text[1] && (text[0] == 'S' || text[0] == 'W'))
        return text[0] == 'W';
    if (RCCE_ue() == 0)
        fprintf(stderr, "%s: class is \"%s\"; allowed: S, W\n", name, text);
    return -1;
}

#endif
