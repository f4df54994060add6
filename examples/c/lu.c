/* NPB's LU: symmetric successive over-relaxation of an implicit step, with NPB's verification values.
 *
 *   lu [S | W]      class S: 12 points each way, 50 steps; W: 33 points, 300 steps
 *
 * Each sweep goes through the planes of z in order. A point needs the new values of its neighbours before it in x, y
 * and z, so a plane starts when the ranks before have sent their edges of it: many short messages, as in the original.
 */
#include "npb.h"

#define OMEGA 1.2

static const struct {
    int points, steps;
    double time_step;
    Vector residuals, errors;
    double integral;
} classes[2] = {
    {12, 50, 0.5,
     {1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03, 1.5029584435994323e-03,
      3.4264073155896461e-02},
     {6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05, 5.8474222595157350e-05,
      1.3103347914111294e-03},
     7.8418928865937083},
    {33, 300, 1.5e-3,
     {0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01, 0.2826799444189e+02},
     {0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01, 0.1084277417792e+01},
     0.1161399311023e+02},
};

/* Relaxes one point; its neighbours on `side` have new changes. */
static void relax(const double *u, double *change, int side) {
    Block block;
    Vector sum = {0};
    for (int direction = 0; direction < 3; direction++) {
        ptrdiff_t there = side * stride[direction];
        neighbour_block(direction, side, u + there, block);
        add_product(sum, OMEGA, block, change + there);
    }
    own_block(0, 2, u, block);
    if (side < 0) {
        for (int equation = 0; equation < EQUATIONS; equation++)
            change[equation] -= sum[equation];
        solve_block(block, change, 1);
    } else {
        solve_block(block, sum, 1);
        for (int equation = 0; equation < EQUATIONS; equation++)
            change[equation] -= sum[equation];
    }
}

/* Goes through all points upwards (side -1: neighbours before a point are new) or downwards (1). */
static void sweep(double *u, double *change, int side) {
    for (int step = 1; step < points - 1; step++) {
        int z = side < 0 ? step : points - 1 - step;
        for (int direction = 0; direction < 2; direction++) {
            int at = side < 0 ? -1 : count[direction];
            receive_slab(change, (struct slab){direction, at, 1, z, 1}, neighbour(direction, side));
        }
        for (int row = 0; row < count[1]; row++)
            for (int column = 0; column < count[0]; column++) {
                int y = side < 0 ? row : count[1] - 1 - row, x = side < 0 ? column : count[0] - 1 - column;
                if (inner(0, x) && inner(1, y))
                    relax(cell(u, x, y, z), cell(change, x, y, z), side);
            }
        isles_work((unsigned long long)(count[0] * count[1]) * 750 * CYCLES_PER_FLOP);
        for (int direction = 0; direction < 2; direction++) {
            int at = side < 0 ? count[direction] - 1 : 0;
            send_slab(change, (struct slab){direction, at, 1, z, 1}, neighbour(direction, -side));
        }
    }
}

static void add_step(double *u, double *change, double factor) {
    for (size_t at = 0; at < field_length; at++)
        u[at] += factor * change[at];
}

/* How many of the squares of a face, from `from` to `to`, have this point as a corner, along one direction. */
static int corners(int at, int from, int to) { return at < from || at > to ? 0 : at == from || at == to ? 1 : 2; }

/* At rank 0: NPB's surface integral of the pressure over a box in the cube. */
static double surface_integral(double *u) {
    const int from[3] = {1, 1, 2}, to[3] = {points - 2, points - 3, points - 2};
    double own = 0, all = 0;
    for (int z = 0; z < points; z++)
        for (int y = 0; y < count[1]; y++)
            for (int x = 0; x < count[0]; x++) {
                const int at[3] = {first[0] + x, first[1] + y, z};
                const double *value = cell(u, x, y, z);
                int weight = 0;
                for (int normal = 0; normal < 3; normal++) {
                    int one = (normal + 1) % 3, other = (normal + 2) % 3;
                    if (at[normal] == from[normal] || at[normal] == to[normal])
                        weight += corners(at[one], from[one], to[one]) * corners(at[other], from[other], to[other]);
                }
                own += weight * C2 * (value[4] - 0.5 * squares(value) / value[0]);
            }
    RCCE_reduce((char *)&own, (char *)&all, 1, RCCE_DOUBLE, RCCE_SUM, 0, RCCE_COMM_WORLD);
    return 0.25 * all / ((points - 1.0) * (points - 1.0));
}

int RCCE_APP(int argc, char **argv) {
    Vector residuals, errors;
    RCCE_init(&argc, &argv);
    int class = begin_class(argc, argv, "lu");
    if (class < 0)
        return 2;
    divide(classes[class].points);
    time_step = classes[class].time_step;
    double *u = make_field(), *solution = make_field(), *forcing = make_field(), *change = make_field();
    for_each_point(solution, exact);
    residual(solution, NULL, forcing);
    for_each_point(u, start_value);
    residual(u, forcing, change);
    RCCE_barrier(&RCCE_COMM_WORLD);
    double begin = RCCE_wtime();
    for (int step = 0; working && step < classes[class].steps; step++) {
        for (size_t at = 0; at < field_length; at++)
            change[at] *= time_step;
        sweep(u, change, -1);
        sweep(u, change, 1);
        add_step(u, change, 1 / (OMEGA * (2 - OMEGA)));
        exchange_halo(u);
        residual(u, forcing, change);
    }
    RCCE_barrier(&RCCE_COMM_WORLD);
    double seconds = RCCE_wtime() - begin, integral = surface_integral(u);
    mean_squares(change, NULL, residuals);
    mean_squares(u, solution, errors);
    int wrong = 0;
    if (RCCE_ue() == 0) {
        printf("lu: class %c, %d steps\n", "SW"[class], classes[class].steps);
        wrong |= differ("residuals", residuals, classes[class].residuals, EQUATIONS);
        wrong |= differ("errors   ", errors, classes[class].errors, EQUATIONS);
        wrong |= differ("integral ", &integral, &classes[class].integral, 1);
        printf("Verification %s\n", wrong ? "UNSUCCESSFUL" : "SUCCESSFUL");
        fprintf(stderr, "time: %.6f s\n", seconds);
    }
    RCCE_finalize();
    return wrong;
}
