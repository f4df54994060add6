/* What bt.c and lu.c share: a system of five coupled equations of convection and diffusion on a cube, in planes.
 *
 * Both are in the manner of the NAS Parallel Benchmarks of these names: blocks of 5 by 5, class S with 12 points each
 * way and 60 or 50 steps. The equations are simpler, and so are not those of the benchmarks: the coefficients are constant.
 * The right side is made from a known solution, so the error at the end is that of the solver. */
#ifndef GRID_H
#define GRID_H

#include "RCCE.h"
#include "isles.h"

#include <math.h>
#include <string.h>

#define N 12 /* points each way, with those of the boundary */
#define EQUATIONS 5
#define PLANE (N * N * EQUATIONS)

typedef double Block[EQUATIONS][EQUATIONS];
typedef double Vector[EQUATIONS];

/* Planes of this rank: from `first_plane` on, with a halo plane on each side. Ranks beyond the inner planes have
 * none. */
static int rank_now, working_ranks, first_plane, plane_count;

static Block lower[3], upper[3], diagonal; /* of the directions x, y, z */

static double *cell(double *planes, int plane, int row, int column) {
    return planes + ((plane + 1) * N * N + row * N + column) * EQUATIONS;
}

static double solution(int plane, int row, int column, int equation) {
    double x = (double)column / (N - 1), y = (double)row / (N - 1), z = (double)plane / (N - 1);
    return 1 + (equation + 1) * (x * x - y * z) + 0.5 * x * y * y - 0.25 * equation * z * z * z;
}

static void make_blocks(void) {
    static const double speed[3] = {0.3, 0.2, 0.1};
    memset(diagonal, 0, sizeof diagonal);
    for (int direction = 0; direction < 3; direction++)
        for (int row = 0; row < EQUATIONS; row++)
            for (int column = 0; column < EQUATIONS; column++) {
                double coupling = row == column ? 1 : 0.1 / (1 + abs(row - column));
                double convection = 0.5 * speed[direction] * coupling, diffusion = row == column;
                lower[direction][row][column] = -diffusion - convection;
                upper[direction][row][column] = -diffusion + convection;
                diagonal[row][column] += 2 * diffusion;
            }
}

static void divide_planes(void) {
    int inner = N - 2, ranks = RCCE_num_ues();
    rank_now = RCCE_ue();
    working_ranks = ranks < inner ? ranks : inner;
    first_plane = 1 + (rank_now < working_ranks ? rank_now * inner / working_ranks : inner);
    plane_count = rank_now < working_ranks ? 1 + (rank_now + 1) * inner / working_ranks - first_plane : 0;
}

static double *make_planes(void) { return calloc((size_t)(plane_count + 2) * PLANE, sizeof(double)); }

/* to += factor * block * from */
static void add_product(double *to, double factor, const Block block, const double *from) {
    for (int row = 0; row < EQUATIONS; row++) {
        double sum = 0;
        for (int column = 0; column < EQUATIONS; column++)
            sum += block[row][column] * from[column];
        to[row] += factor * sum;
    }
}

/* Solves block * x = right, by elimination without pivoting: diagonals dominate here. */
static void solve_block(const Block block, double *right) {
    Block work;
    memcpy(work, block, sizeof(Block));
    for (int pivot = 0; pivot < EQUATIONS; pivot++)
        for (int row = pivot + 1; row < EQUATIONS; row++) {
            double factor = work[row][pivot] / work[pivot][pivot];
            for (int column = pivot; column < EQUATIONS; column++)
                work[row][column] -= factor * work[pivot][column];
            right[row] -= factor * right[pivot];
        }
    for (int row = EQUATIONS - 1; row >= 0; row--) {
        for (int column = row + 1; column < EQUATIONS; column++)
            right[row] -= work[row][column] * right[column];
        right[row] /= work[row][row];
    }
}

/* result = right side - operator(u), on inner points; the halo of `u` must be there. */
static void residual(double *u, double *right, double *result) {
    for (int plane = 0; plane < plane_count; plane++)
        for (int row = 1; row < N - 1; row++)
            for (int column = 1; column < N - 1; column++) {
                double *to = cell(result, plane, row, column);
                memcpy(to, cell(right, plane, row, column), sizeof(Vector));
                add_product(to, -1, diagonal, cell(u, plane, row, column));
                add_product(to, -1, lower[0], cell(u, plane, row, column - 1));
                add_product(to, -1, upper[0], cell(u, plane, row, column + 1));
                add_product(to, -1, lower[1], cell(u, plane, row - 1, column));
                add_product(to, -1, upper[1], cell(u, plane, row + 1, column));
                add_product(to, -1, lower[2], cell(u, plane - 1, row, column));
                add_product(to, -1, upper[2], cell(u, plane + 1, row, column));
            }
    isles_work((unsigned long long)plane_count * (N - 2) * (N - 2) * 7 * 50 * 3);
}

/* `u` is the solution on the boundary of the cube and 1 inside. */
static void start_values(double *u) {
    for (int plane = -1; plane <= plane_count; plane++)
        for (int row = 0; row < N; row++)
            for (int column = 0; column < N; column++)
                for (int equation = 0; equation < EQUATIONS; equation++) {
                    int whole = first_plane + plane;
                    int inside = whole > 0 && whole < N - 1 && row > 0 && row < N - 1 && column > 0 && column < N - 1;
                    cell(u, plane, row, column)[equation] = inside ? 1 : solution(whole, row, column, equation);
                }
}

/* The right side of which `solution` is the discrete solution. */
static void make_right_side(double *right) {
    double *exact = make_planes(), *zero = make_planes();
    for (int plane = -1; plane <= plane_count; plane++)
        for (int row = 0; row < N; row++)
            for (int column = 0; column < N; column++)
                for (int equation = 0; equation < EQUATIONS; equation++)
                    cell(exact, plane, row, column)[equation] = solution(first_plane + plane, row, column, equation);
    residual(exact, zero, right);
    for (int at = 0; at < (plane_count + 2) * PLANE; at++)
        right[at] = -right[at];
    free(exact);
    free(zero);
}

/* Exchanges halo planes with the neighbours; even ranks send first. */
static void exchange_planes(double *u) {
    size_t bytes = PLANE * sizeof(double);
    int below = rank_now - 1, above = rank_now + 1 < working_ranks ? rank_now + 1 : -1;
    if (!plane_count)
        return;
    for (int phase = 0; phase < 2; phase++) {
        if ((rank_now + phase) % 2 == 0) {
            if (above >= 0)
                RCCE_send((char *)cell(u, plane_count - 1, 0, 0), bytes, above);
            if (below >= 0)
                RCCE_send((char *)cell(u, 0, 0, 0), bytes, below);
        } else {
            if (below >= 0)
                RCCE_recv((char *)cell(u, -1, 0, 0), bytes, below);
            if (above >= 0)
                RCCE_recv((char *)cell(u, plane_count, 0, 0), bytes, above);
        }
    }
}

/* The largest error of each equation, at rank 0: a maximum does not depend on how planes are divided. */
static void largest_errors(double *u, double *largest) {
    Vector own = {0};
    for (int plane = 0; plane < plane_count; plane++)
        for (int row = 1; row < N - 1; row++)
            for (int column = 1; column < N - 1; column++)
                for (int equation = 0; equation < EQUATIONS; equation++) {
                    double error = fabs(cell(u, plane, row, column)[equation] -
                                        solution(first_plane + plane, row, column, equation));
                    if (error > own[equation])
                        own[equation] = error;
                }
    RCCE_reduce((char *)own, (char *)largest, EQUATIONS, RCCE_DOUBLE, RCCE_MAX, 0, RCCE_COMM_WORLD);
}

/* Prints the errors and whether they are what a solver that has converged leaves. */
static int report(const char *name, int steps, double *u, double limit, double seconds) {
    Vector errors;
    int wrong = 0;
    largest_errors(u, errors);
    if (rank_now == 0) {
        printf("%s: class S, %d steps, errors", name, steps);
        for (int equation = 0; equation < EQUATIONS; equation++) {
            printf(" %.9e", errors[equation]);
            wrong |= !(errors[equation] < limit);
        }
        printf("\nVerification %s\n", wrong ? "UNSUCCESSFUL" : "SUCCESSFUL");
        fprintf(stderr, "time: %.6f s\n", seconds);
    }
    return wrong;
}

#endif
