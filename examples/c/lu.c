/* Symmetric successive over-relaxation in the manner of NPB's LU, class S; see grid.h for what is simpler.
 *
 * A sweep goes through the planes in both directions. Each cell needs its neighbours' new values, so a rank starts on a
 * row when the rank before has sent that row of its last plane: many short messages, as in the original. */
#include "grid.h"

#define STEPS 50
#define OMEGA 1.2

/* Relaxes one cell of `u`, whose neighbours have new values on one side and old values on the other. */
static void relax(double *u, double *right, int plane, int row, int column) {
    Vector change;
    double *own = cell(u, plane, row, column);
    memcpy(change, cell(right, plane, row, column), sizeof change);
    add_product(change, -1, diagonal, own);
    add_product(change, -1, lower[0], own - EQUATIONS);
    add_product(change, -1, upper[0], own + EQUATIONS);
    add_product(change, -1, lower[1], own - N * EQUATIONS);
    add_product(change, -1, upper[1], own + N * EQUATIONS);
    add_product(change, -1, lower[2], own - PLANE);
    add_product(change, -1, upper[2], own + PLANE);
    solve_block(diagonal, change);
    for (int equation = 0; equation < EQUATIONS; equation++)
        own[equation] += OMEGA * change[equation];
}

static void sweep_upwards(double *u, double *right) {
    size_t bytes = N * sizeof(Vector);
    for (int row = 1; row < N - 1; row++) {
        if (rank_now > 0)
            RCCE_recv((char *)cell(u, -1, row, 0), bytes, rank_now - 1);
        for (int plane = 0; plane < plane_count; plane++)
            for (int column = 1; column < N - 1; column++)
                relax(u, right, plane, row, column);
        isles_work((unsigned long long)plane_count * (N - 2) * 500 * 3);
        if (rank_now + 1 < working_ranks)
            RCCE_send((char *)cell(u, plane_count - 1, row, 0), bytes, rank_now + 1);
    }
}

static void sweep_downwards(double *u, double *right) {
    size_t bytes = N * sizeof(Vector);
    for (int row = N - 2; row >= 1; row--) {
        if (rank_now + 1 < working_ranks)
            RCCE_recv((char *)cell(u, plane_count, row, 0), bytes, rank_now + 1);
        for (int plane = plane_count - 1; plane >= 0; plane--)
            for (int column = N - 2; column >= 1; column--)
                relax(u, right, plane, row, column);
        isles_work((unsigned long long)plane_count * (N - 2) * 500 * 3);
        if (rank_now > 0)
            RCCE_send((char *)cell(u, 0, row, 0), bytes, rank_now - 1);
    }
}

int RCCE_APP(int argc, char **argv) {
    RCCE_init(&argc, &argv);
    make_blocks();
    divide_planes();
    double *u = make_planes(), *right = make_planes();
    make_right_side(right);
    start_values(u);
    RCCE_barrier(&RCCE_COMM_WORLD);
    double begin = RCCE_wtime();
    for (int step = 0; plane_count && step < STEPS; step++) {
        exchange_planes(u);
        sweep_upwards(u, right);
        exchange_planes(u);
        sweep_downwards(u, right);
    }
    RCCE_barrier(&RCCE_COMM_WORLD);
    int wrong = report("lu", STEPS, u, 1e-6, RCCE_wtime() - begin);
    RCCE_finalize();
    return wrong;
}
