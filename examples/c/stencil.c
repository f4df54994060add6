/* Jacobi's iteration on a grid whose rows are divided among the ranks, which exchange their edges by blocking messages.
 *
 *   stencil [COLUMNS [ROWS [ITERATIONS]]]
 *
 * Even ranks send first and odd ranks receive first, so nobody waits in a circle. At the end each rank computes the
 * whole grid alone and compares its rows to the bit. */
#include "RCCE.h"
#include "isles.h"

#include <string.h>

/* Cycles of a P54C for a point: four additions, a multiplication, loads and a store. */
#define POINT_CYCLES 24

static int columns = 64, rows = 48, iterations = 50;

static double *grid(int count) { return calloc((size_t)count * (size_t)columns, sizeof(double)); }

static void start(double *rows_from, int first, int count) {
    for (int row = 0; row < count; row++)
        for (int column = 0; column < columns; column++)
            rows_from[row * columns + column] = ((first + row) * 7 + column * 13) % 101;
}

/* One step on `count` rows, with a row above and below them. The edges of the whole grid stay. */
static void step(const double *from, double *to, int first, int count) {
    for (int row = 1; row <= count; row++) {
        int whole = first + row - 1, is_edge = whole == 0 || whole == rows - 1;
        for (int column = 0; column < columns; column++) {
            const double *at = from + row * columns + column;
            int fixed = is_edge || column == 0 || column == columns - 1;
            to[row * columns + column] =
                fixed ? *at : 0.25 * (at[-1] + at[1] + at[-columns] + at[columns]);
        }
    }
}

static void exchange(double *own, int count, int rank, int ranks) {
    size_t bytes = (size_t)columns * sizeof(double);
    for (int phase = 0; phase < 2; phase++) {
        /* In the first phase even ranks send, in the second odd ones. */
        if ((rank + phase) % 2 == 0) {
            if (rank + 1 < ranks)
                RCCE_send((char *)(own + count * columns), bytes, rank + 1);
            if (rank > 0)
                RCCE_send((char *)(own + columns), bytes, rank - 1);
        } else {
            if (rank > 0)
                RCCE_recv((char *)own, bytes, rank - 1);
            if (rank + 1 < ranks)
                RCCE_recv((char *)(own + (count + 1) * columns), bytes, rank + 1);
        }
    }
}

static int compare(const double *own, int first, int count) {
    double *one = grid(rows + 2), *other = grid(rows + 2);
    start(one + columns, 0, rows);
    for (int iteration = 0; iteration < iterations; iteration++) {
        step(one, other, 0, rows);
        double *swap = one;
        one = other, other = swap;
    }
    size_t bytes = (size_t)count * (size_t)columns * sizeof(double);
    int wrong = memcmp(one + (first + 1) * columns, own + columns, bytes) != 0;
    free(one);
    free(other);
    return wrong;
}

int RCCE_APP(int argc, char **argv) {
    RCCE_init(&argc, &argv);
    int rank = RCCE_ue(), ranks = RCCE_num_ues();
    if (argc > 1)
        columns = atoi(argv[1]);
    if (argc > 2)
        rows = atoi(argv[2]);
    if (argc > 3)
        iterations = atoi(argv[3]);
    if (columns < 3 || rows < ranks || iterations < 0) {
        if (rank == 0)
            fprintf(stderr, "stencil: allowed: 3 columns or more, a row for each rank or more, 0 iterations or more\n");
        return 2;
    }
    int first = rank * rows / ranks, count = (rank + 1) * rows / ranks - first;
    double *own = grid(count + 2), *next = grid(count + 2);
    start(own + columns, first, count);
    RCCE_barrier(&RCCE_COMM_WORLD);
    double begin = RCCE_wtime();
    for (int iteration = 0; iteration < iterations; iteration++) {
        exchange(own, count, rank, ranks);
        step(own, next, first, count);
        isles_work((unsigned long long)count * (unsigned long long)columns * POINT_CYCLES);
        double *swap = own;
        own = next, next = swap;
    }
    double sum = 0, total, seconds = RCCE_wtime() - begin;
    for (int at = columns; at < (count + 1) * columns; at++)
        sum += own[at];
    RCCE_reduce((char *)&sum, (char *)&total, 1, RCCE_DOUBLE, RCCE_SUM, 0, RCCE_COMM_WORLD);
    int wrong = compare(own, first, count), wrongs;
    RCCE_reduce((char *)&wrong, (char *)&wrongs, 1, RCCE_INT, RCCE_SUM, 0, RCCE_COMM_WORLD);
    if (rank == 0) {
        printf("stencil: %d columns, %d rows, %d iterations, sum %.17g\n", columns, rows, iterations, total);
        fprintf(stderr, "time: %.6f s\n", seconds);
        printf("Verification %s\n", wrongs ? "UNSUCCESSFUL" : "SUCCESSFUL");
    }
    RCCE_finalize();
    return wrong;
}
