/* Block-tridiagonal solver in the manner of NPB's BT, class S; see grid.h for what is simpler.
 *
 * Each step factors the operator into the three directions (alternating directions, implicit). Lines in x and y lie in
 * a plane, so each rank solves its own. Lines in z cross all ranks: elimination runs upwards through them as a pipeline
 * over rows, the substitution downwards. */
#include "grid.h"

#define STEPS 60
#define TIME_STEP 0.8

/* Of each inner cell: the eliminated upper block. */
static Block *eliminated;

static Block *eliminated_at(int plane, int row, int column) {
    return &eliminated[((plane + 1) * N + row) * N + column];
}

/* Eliminates one cell of a line: `before` is its neighbour's upper block and right side, null at the start. */
static void eliminate(int direction, const Block *block_before, const double *right_before, Block *block,
                      double *right) {
    Block middle;
    for (int row = 0; row < EQUATIONS; row++)
        for (int column = 0; column < EQUATIONS; column++) {
            double identity = row == column;
            middle[row][column] = identity * (1 + 2 * TIME_STEP);
            (*block)[row][column] = TIME_STEP * upper[direction][row][column];
        }
    if (block_before) {
        for (int row = 0; row < EQUATIONS; row++)
            for (int column = 0; column < EQUATIONS; column++) {
                double sum = 0;
                for (int at = 0; at < EQUATIONS; at++)
                    sum += lower[direction][row][at] * (*block_before)[at][column];
                middle[row][column] -= TIME_STEP * sum;
            }
        add_product(right, -TIME_STEP, lower[direction], right_before);
    }
    solve_block(middle, right);
    for (int column = 0; column < EQUATIONS; column++) {
        Vector one;
        for (int row = 0; row < EQUATIONS; row++)
            one[row] = (*block)[row][column];
        solve_block(middle, one);
        for (int row = 0; row < EQUATIONS; row++)
            (*block)[row][column] = one[row];
    }
}

static void solve_in_plane(double *change, int direction) {
    Block blocks[N];
    for (int plane = 0; plane < plane_count; plane++)
        for (int line = 1; line < N - 1; line++) {
            for (int at = 1; at < N - 1; at++) {
                double *own = direction ? cell(change, plane, at, line) : cell(change, plane, line, at);
                double *before = own - (direction ? N : 1) * EQUATIONS;
                eliminate(direction, at > 1 ? &blocks[at - 1] : NULL, before, &blocks[at], own);
            }
            for (int at = N - 3; at >= 1; at--) {
                double *own = direction ? cell(change, plane, at, line) : cell(change, plane, line, at);
                add_product(own, -1, blocks[at], own + (direction ? N : 1) * EQUATIONS);
            }
        }
    isles_work((unsigned long long)plane_count * (N - 2) * (N - 2) * 900 * 3);
}

/* What crosses from plane to plane for a row of lines: blocks and right sides. */
struct crossing {
    Block blocks[N];
    Vector rights[N];
};

static void solve_across(double *change) {
    static struct crossing crossing;
    int last = rank_now == working_ranks - 1;
    for (int row = 1; row < N - 1; row++) {
        if (rank_now > 0) {
            RCCE_recv((char *)&crossing, sizeof crossing, rank_now - 1);
            for (int column = 1; column < N - 1; column++) {
                memcpy(eliminated_at(-1, row, column), crossing.blocks[column], sizeof(Block));
                memcpy(cell(change, -1, row, column), crossing.rights[column], sizeof(Vector));
            }
        }
        for (int plane = 0; plane < plane_count; plane++)
            for (int column = 1; column < N - 1; column++) {
                int is_first = first_plane + plane == 1;
                eliminate(2, is_first ? NULL : eliminated_at(plane - 1, row, column),
                          cell(change, plane - 1, row, column), eliminated_at(plane, row, column),
                          cell(change, plane, row, column));
            }
        isles_work((unsigned long long)plane_count * (N - 2) * 900 * 3);
        if (!last) {
            for (int column = 1; column < N - 1; column++) {
                memcpy(crossing.blocks[column], eliminated_at(plane_count - 1, row, column), sizeof(Block));
                memcpy(crossing.rights[column], cell(change, plane_count - 1, row, column), sizeof(Vector));
            }
            RCCE_send((char *)&crossing, sizeof crossing, rank_now + 1);
        }
    }
    for (int row = 1; row < N - 1; row++) {
        size_t bytes = N * sizeof(Vector);
        if (!last)
            RCCE_recv((char *)cell(change, plane_count, row, 0), bytes, rank_now + 1);
        for (int plane = plane_count - 1; plane >= 0; plane--)
            for (int column = 1; column < N - 1; column++)
                if (first_plane + plane < N - 2)
                    add_product(cell(change, plane, row, column), -1, *eliminated_at(plane, row, column),
                                cell(change, plane + 1, row, column));
        if (rank_now > 0)
            RCCE_send((char *)cell(change, 0, row, 0), bytes, rank_now - 1);
    }
}

int RCCE_APP(int argc, char **argv) {
    RCCE_init(&argc, &argv);
    make_blocks();
    divide_planes();
    double *u = make_planes(), *right = make_planes(), *change = make_planes();
    eliminated = calloc((size_t)(plane_count + 2) * N * N, sizeof(Block));
    make_right_side(right);
    start_values(u);
    RCCE_barrier(&RCCE_COMM_WORLD);
    double begin = RCCE_wtime();
    for (int step = 0; plane_count && step < STEPS; step++) {
        exchange_planes(u);
        residual(u, right, change);
        for (int at = PLANE; at < (plane_count + 1) * PLANE; at++)
            change[at] *= TIME_STEP;
        solve_in_plane(change, 0);
        solve_in_plane(change, 1);
        solve_across(change);
        for (int at = PLANE; at < (plane_count + 1) * PLANE; at++)
            u[at] += change[at];
    }
    RCCE_barrier(&RCCE_COMM_WORLD);
    int wrong = report("bt", STEPS, u, 1e-5, RCCE_wtime() - begin);
    RCCE_finalize();
    return wrong;
}
