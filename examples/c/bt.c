/* NPB's BT: implicit steps in alternating directions, each a block-tridiagonal system for every line, with NPB's
 * verification values.
 *
 *   bt [S | W]      class S: 12 points each way, 60 steps; W: 24 points, 200 steps
 *
 * Lines in z lie in a rank. Lines in x and y cross ranks: elimination runs along them as a pipeline over the planes of
 * z, and the substitution back. (The original deals several small cubes to each rank instead, which needs a square
 * number of ranks.) */
#include "npb.h"

static const struct {
    int points, steps;
    double time_step;
    Vector residuals, errors;
} classes[2] = {
    {12, 60, 0.01,
     {1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02, 2.6436421275166801e-02,
      1.9211784131744430e-01},
     {4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05, 7.3821238632439731e-05,
      8.9269630987491446e-04}},
    {24, 200, 0.0008,
     {0.1125590409344e+03, 0.1180007595731e+02, 0.2710329767846e+02, 0.2469174937669e+02, 0.2638427874317e+03},
     {0.4419655736008e+01, 0.4638531260002e+00, 0.1011551749967e+01, 0.9235878729944e+00, 0.1018045837718e+02}},
};

/* Of each point: the eliminated block of the point behind it. */
static Block *eliminated;

/* What an elimination hands on for one line. */
struct crossing {
    Block block;
    Vector right;
};

/* Eliminates the points before one point of a line from its equation. */
static void eliminate(int direction, int whole, const double *u, ptrdiff_t at, double *right) {
    ptrdiff_t before = at - stride[direction];
    Block own, lower, *upper = &eliminated[at / EQUATIONS];
    own_block(direction, direction, u + at, own);
    neighbour_block(direction, 1, u + at + stride[direction], *upper);
    if (whole > 1) {
        neighbour_block(direction, -1, u + before, lower);
        add_product(right + at, -1, lower, right + before);
        for (int row = 0; row < EQUATIONS; row++)
            for (int column = 0; column < EQUATIONS; column++)
                for (int middle = 0; middle < EQUATIONS; middle++)
                    own[row][column] -= lower[row][middle] * eliminated[before / EQUATIONS][middle][column];
    }
    Block copy;
    memcpy(copy, own, sizeof copy);
    solve_block(copy, (double *)*upper, EQUATIONS);
    solve_block(own, right + at, 1);
}

static void substitute(int direction, int whole, ptrdiff_t at, double *right) {
    if (whole < points - 2)
        add_product(right + at, -1, eliminated[at / EQUATIONS], right + at + stride[direction]);
}

/* Copies what crosses the edge of lines in x or y in one plane, from `field` or into it. */
static size_t copy_crossings(int direction, int at, int z, double *field, struct crossing *packed, int unpacks) {
    int lines = count[1 - direction];
    for (int line = 0; line < lines; line++) {
        double *own = direction == 0 ? cell(field, at, line, z) : cell(field, line, at, z);
        Block *block = &eliminated[(own - field) / EQUATIONS];
        if (unpacks) {
            memcpy(*block, packed[line].block, sizeof(Block));
            memcpy(own, packed[line].right, sizeof(Vector));
        } else {
            memcpy(packed[line].block, *block, sizeof(Block));
            memcpy(packed[line].right, own, sizeof(Vector));
        }
    }
    return (size_t)lines * sizeof *packed;
}

static void receive_crossings(int direction, int z, double *right, struct crossing *packed) {
    int from = neighbour(direction, -1);
    if (from < 0)
        return;
    RCCE_recv((char *)packed, (size_t)count[1 - direction] * sizeof *packed, from);
    copy_crossings(direction, -1, z, right, packed, 1);
}

static void send_crossings(int direction, int z, double *right, struct crossing *packed) {
    int to = neighbour(direction, 1);
    if (to >= 0)
        RCCE_send((char *)packed, copy_crossings(direction, count[direction] - 1, z, right, packed, 0), to);
}

/* Solves the lines of one direction in the planes from `z` to `last`, upwards in elimination and downwards in
 * substitution. */
static void solve_planes(int direction, int is_substitution, int z, int last, const double *u, double *right) {
    int back = is_substitution;
    for (int plane = z; plane <= last; plane++)
        for (int row = 0; row < count[1]; row++)
            for (int column = 0; column < count[0]; column++) {
                int x = back ? count[0] - 1 - column : column, y = back ? count[1] - 1 - row : row;
                int at_z = back ? last + z - plane : plane;
                const int whole[3] = {first[0] + x, first[1] + y, at_z};
                ptrdiff_t at = cell(right, x, y, at_z) - right;
                if (!inner(0, x) || !inner(1, y))
                    continue;
                if (back)
                    substitute(direction, whole[direction], at, right);
                else
                    eliminate(direction, whole[direction], u, at, right);
            }
    isles_work((unsigned long long)(count[0] * count[1]) * (last - z + 1) * (back ? 50 : 948) * CYCLES_PER_FLOP);
}

static void solve_lines(int direction, const double *u, double *right, struct crossing *packed) {
    if (direction == 2) {
        solve_planes(2, 0, 1, points - 2, u, right);
        solve_planes(2, 1, 1, points - 2, u, right);
        return;
    }
    for (int z = 1; z < points - 1; z++) {
        receive_crossings(direction, z, right, packed);
        solve_planes(direction, 0, z, z, u, right);
        send_crossings(direction, z, right, packed);
    }
    for (int z = 1; z < points - 1; z++) {
        receive_slab(right, (struct slab){direction, count[direction], 1, z, 1}, neighbour(direction, 1));
        solve_planes(direction, 1, z, z, u, right);
        send_slab(right, (struct slab){direction, 0, 1, z, 1}, neighbour(direction, -1));
    }
}

/* u += change at inner points */
static void add_step(double *u, double *change) {
    for (int z = 1; z < points - 1; z++)
        for (int y = 0; y < count[1]; y++)
            for (int x = 0; x < count[0]; x++)
                for (int equation = 0; equation < EQUATIONS; equation++)
                    cell(u, x, y, z)[equation] += cell(change, x, y, z)[equation];
}

int RCCE_APP(int argc, char **argv) {
    Vector residuals, errors;
    RCCE_init(&argc, &argv);
    int class = begin_class(argc, argv, "bt");
    if (class < 0)
        return 2;
    divide(classes[class].points);
    time_step = classes[class].time_step;
    double *u = make_field(), *solution = make_field(), *forcing = make_field(), *change = make_field();
    eliminated = calloc(field_length / EQUATIONS, sizeof *eliminated);
    struct crossing *packed = malloc((size_t)points * sizeof *packed);
    for_each_point(solution, exact);
    residual(solution, NULL, forcing);
    for_each_point(u, start_value);
    residual(u, forcing, change);
    RCCE_barrier(&RCCE_COMM_WORLD);
    double begin = RCCE_wtime();
    for (int step = 0; working && step < classes[class].steps; step++) {
        for (size_t at = 0; at < field_length; at++)
            change[at] *= time_step;
        for (int direction = 0; direction < 3; direction++)
            solve_lines(direction, u, change, packed);
        add_step(u, change);
        exchange_halo(u);
        residual(u, forcing, change);
    }
    RCCE_barrier(&RCCE_COMM_WORLD);
    double seconds = RCCE_wtime() - begin;
    mean_squares(change, NULL, residuals);
    mean_squares(u, solution, errors);
    int wrong = 0;
    if (RCCE_ue() == 0) {
        printf("bt: class %c, %d steps\n", "SW"[class], classes[class].steps);
        wrong |= differ("residuals", residuals, classes[class].residuals, EQUATIONS);
        wrong |= differ("errors   ", errors, classes[class].errors, EQUATIONS);
        printf("Verification %s\n", wrong ? "UNSUCCESSFUL" : "SUCCESSFUL");
        fprintf(stderr, "time: %.6f s\n", seconds);
    }
    RCCE_finalize();
    return wrong;
}
