// The Parallel Research Kernels over an MPI library, as `isles run prk` has them; our own code.
//
// Built at run time by `isles-bench`, once with each MPI found, and started as
//
//     mpirun -n RANKS prk stencil ITERATIONS ORDER RADIUS
//     mpirun -n RANKS prk transpose ITERATIONS ORDER
//     mpirun -n RANKS prk p2p ITERATIONS COLUMNS ROWS
//     mpirun -n RANKS prk random BITS RATIO
//
// Prints `measured seconds VALUE` and `measured rate VALUE`: of all iterations but the first, by the longest time
// of a rank; millions of operations, bytes or updates a second. The algorithms are those of R. F. Van der Wijngaart and
// T. G. Mattson, "The Parallel Research Kernels", HPEC 2014, in the form for MPI. It judges nothing but that its own
// result is right.

#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = 32, LOOKAHEAD = 1024 };

static int rank, ranks;
static double started;

static void *zeros(size_t count, size_t bytes) {
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 3);
    return memory;
}

static void begin(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    started = MPI_Wtime();
}

// Ends the timing, checks the summed error and prints the rate.
static void tell(double amount, double error) {
    double seconds = MPI_Wtime() - started, longest, sum;
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&error, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank) return;
    if (!(sum < 1e-8)) {
        fprintf(stderr, "the result is off by %g\n", sum);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    printf("measured seconds %.9g\nmeasured rate %.9g\n", longest, amount / longest);
}

static long least(long one, long other) { return one < other ? one : other; }

// Part k of p parts of n begins here.
static long bound(long n, long k, long p) { return k * n / p; }

// A star over a grid in blocks of rows and columns, with the four neighbours' edges around each.
static inline __attribute__((always_inline)) void stencil(long iterations, long order, long radius) {
    int across = 1;
    for (int k = 1; k * k <= ranks; k++) if (ranks % k == 0) across = k;
    int down = ranks / across, row = rank / across, column = rank % across;
    long top = bound(order, row, down), rows = bound(order, row + 1, down) - top;
    long left = bound(order, column, across), columns = bound(order, column + 1, across) - left;
    long step = columns + 2 * radius;
    double *in = zeros((rows + 2 * radius) * step, sizeof *in), *out = zeros(rows * columns, sizeof *out);
    double weights[16];
    for (long k = 1; k <= radius; k++) weights[k] = 1.0 / (2.0 * k * radius);
#define IN(i, j) in[((i) + radius) * step + (j) + radius]
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++) IN(i, j) = (double)(top + i + left + j);
    size_t edge = radius * (rows > columns ? rows : columns);
    double *sent[4], *received[4];
    for (int side = 0; side < 4; side++) {
        sent[side] = zeros(edge, sizeof(double));
        received[side] = zeros(edge, sizeof(double));
    }
    int beside[4] = {row > 0 ? rank - across : MPI_PROC_NULL, row < down - 1 ? rank + across : MPI_PROC_NULL,
                     column > 0 ? rank - 1 : MPI_PROC_NULL, column < across - 1 ? rank + 1 : MPI_PROC_NULL};
    long from_row = radius > top ? radius - top : 0, end_row = least(order - radius - top, rows);
    long from = radius > left ? radius - left : 0, end = least(order - radius - left, columns);
    for (long iteration = 0; iteration <= iterations; iteration++) {
        if (iteration == 1) begin();
        MPI_Request requests[8];
        for (int side = 0; side < 4; side++) {
            long count = radius * (side < 2 ? columns : rows);
            MPI_Irecv(received[side], count, MPI_DOUBLE, beside[side], side ^ 1, MPI_COMM_WORLD, requests + side);
        }
        for (int side = 0; side < 4; side++) {
            long count = 0;
            if (beside[side] != MPI_PROC_NULL && side < 2)
                for (long k = 0; k < radius; k++, count += columns)
                    memcpy(sent[side] + count, &IN(side ? rows - radius + k : k, 0), columns * sizeof(double));
            else if (beside[side] != MPI_PROC_NULL)
                for (long i = 0; i < rows; i++)
                    for (long k = 0; k < radius; k++) sent[side][count++] = IN(i, side == 3 ? columns - radius + k : k);
            MPI_Isend(sent[side], radius * (side < 2 ? columns : rows), MPI_DOUBLE, beside[side], side, MPI_COMM_WORLD,
                      requests + 4 + side);
        }
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
        for (int side = 0; side < 4; side++) {
            long count = 0;
            if (beside[side] != MPI_PROC_NULL && side < 2)
                for (long k = 0; k < radius; k++, count += columns)
                    memcpy(&IN(side ? rows + k : k - radius, 0), received[side] + count, columns * sizeof(double));
            else if (beside[side] != MPI_PROC_NULL)
                for (long i = 0; i < rows; i++)
                    for (long k = 0; k < radius; k++)
                        IN(i, side == 3 ? columns + k : k - radius) = received[side][count++];
        }
        for (long i = from_row; i < end_row; i++)
            for (long j = from; j < end; j++) {
                double star = 0;
                for (long k = 1; k <= radius; k++)
                    star += weights[k] * (IN(i, j + k) - IN(i, j - k) + IN(i + k, j) - IN(i - k, j));
                out[i * columns + j] += star;
            }
        for (long i = 0; i < rows; i++)
            for (long j = 0; j < columns; j++) IN(i, j) += 1.0;
    }
    double own = 0, points = (double)(order - 2 * radius) * (order - 2 * radius), sum;
    for (long i = 0; i < rows * columns; i++) own += fabs(out[i]);
    double seconds = MPI_Wtime() - started;
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    started = MPI_Wtime() - seconds;
    double error = rank ? 0 : fabs(sum / points - 2.0 * (iterations + 1));
    tell(1e-6 * iterations * (2 * (4 * radius + 1) + 1) * points, error);
}

// B += A transposed, A += 1; both in rows. In each phase a rank sends a block to one other, already transposed.
static void transpose(long iterations, long order) {
    long top = bound(order, rank, ranks), rows = bound(order, rank + 1, ranks) - top;
    double *a = zeros(rows * order, sizeof *a), *b = zeros(rows * order, sizeof *b);
    size_t most = (size_t)rows * (order / ranks + 1);
    double *sent = zeros(most, sizeof *sent), *received = zeros(most, sizeof *received);
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < order; j++) a[i * order + j] = (double)(order * (top + i) + j);
    for (long iteration = 0; iteration <= iterations; iteration++) {
        if (iteration == 1) begin();
        for (int phase = 0; phase < ranks; phase++) {
            int to = (rank + phase) % ranks, from = (rank - phase + ranks) % ranks;
            long left = bound(order, to, ranks), width = bound(order, to + 1, ranks) - left;
            for (long jt = 0; jt < width; jt += TILE)
                for (long it = 0; it < rows; it += TILE)
                    for (long j = jt; j < width && j < jt + TILE; j++)
                        for (long i = it; i < rows && i < it + TILE; i++)
                            sent[j * rows + i] = a[i * order + left + j];
            long start = bound(order, from, ranks), count = bound(order, from + 1, ranks) - start;
            double *came = sent;
            if (phase) {
                came = received;
                MPI_Sendrecv(sent, width * rows, MPI_DOUBLE, to, phase, received, rows * count, MPI_DOUBLE, from, phase,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            for (long i = 0; i < rows; i++)
                for (long j = 0; j < count; j++) b[i * order + start + j] += came[i * count + j];
        }
        for (long i = 0; i < rows * order; i++) a[i] += 1.0;
    }
    double seconds = MPI_Wtime() - started, error = 0, times = iterations + 1;
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < order; j++)
            error += fabs(b[i * order + j] - (times * (double)(order * j + top + i) + times * iterations / 2.0));
    started = MPI_Wtime() - seconds;
    tell(1e-6 * iterations * 16.0 * order * order, error);
}

// A wave over a grid whose columns are split; one number for each row to the right.
static void p2p(long iterations, long columns, long rows) {
    long left = bound(columns, rank, ranks), width = bound(columns, rank + 1, ranks) - left, step = width + 1;
    double *grid = zeros(rows * step, sizeof *grid);
#define CELL(i, j) grid[(j) * step + (i) + 1]
    for (long i = -1; i < width; i++) CELL(i, 0) = (double)(left + i);
    if (rank == 0) for (long j = 0; j < rows; j++) CELL(0, j) = (double)j;
    for (long iteration = 0; iteration <= iterations; iteration++) {
        if (iteration == 1) begin();
        for (long j = 1; j < rows; j++) {
            if (rank) MPI_Recv(&CELL(-1, j), 1, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (long i = rank ? 0 : 1; i < width; i++)
                CELL(i, j) = CELL(i - 1, j) + CELL(i, j - 1) - CELL(i - 1, j - 1);
            if (rank < ranks - 1) MPI_Send(&CELL(width - 1, j), 1, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
        }
        double corner = -CELL(width - 1, rows - 1);
        if (ranks > 1 && rank == ranks - 1) MPI_Send(&corner, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        if (ranks > 1 && rank == 0) MPI_Recv(&corner, 1, MPI_DOUBLE, ranks - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 0) CELL(0, 0) = corner;
    }
    double last = (double)(iterations + 1) * (columns + rows - 2);
    double error = rank == ranks - 1 ? fabs(CELL(width - 1, rows - 1) - last) / last : 0;
    tell(2e-6 * iterations * (columns - 1) * (rows - 1), error);
}

static uint64_t next(uint64_t number) { return number << 1 ^ (number >> 63 ? 7 : 0); }

static uint64_t times(uint64_t one, uint64_t other) {
    uint64_t product = 0;
    for (int bit = 0; bit < 64; bit++, one = next(one)) product ^= other >> bit & 1 ? one : 0;
    return product;
}

// A number of the stream: a power of two modulo the polynomial, by squaring.
static uint64_t number_at(uint64_t position) {
    uint64_t number = 1;
    position %= 1317624576693539401ULL;
    for (int bit = 63; bit >= 0; bit--) {
        number = times(number, number);
        if (position >> bit & 1) number = next(number);
    }
    return number;
}

// Updates of random entries of a table; what 1,024 streams give is exchanged by all.
static void random_access(int bits, long ratio) {
    uint64_t entries = 1ULL << bits, own = entries / ranks, updates = ratio * own, *table = zeros(own, 8);
    int own_bits = 0;
    while (1ULL << own_bits < own) own_bits++;
    for (uint64_t i = 0; i < own; i++) table[i] = i + own * rank;
    uint64_t *streams = zeros(LOOKAHEAD, 8), *sent = zeros(LOOKAHEAD * ranks, 8);
    uint64_t *received = zeros(LOOKAHEAD * ranks, 8);
    int *counts = zeros(4 * ranks, sizeof *counts), *coming = counts + ranks, *starts = coming + ranks;
    int *offsets = starts + ranks;
    for (int k = 0; k < ranks; k++) starts[k] = k * LOOKAHEAD;
    begin();
    for (int twice = 0; twice < 2; twice++) {
        for (uint64_t k = 0; k < LOOKAHEAD; k++)
            streams[k] = number_at(834568137686317453ULL + updates / LOOKAHEAD * k + own * rank);
        for (uint64_t round = 0; round < updates / (2 * LOOKAHEAD); round++) {
            memset(counts, 0, ranks * sizeof *counts);
            for (int k = 0; k < LOOKAHEAD; k++) {
                streams[k] = next(streams[k]);
                int to = (streams[k] & (entries - 1)) >> own_bits;
                sent[to * LOOKAHEAD + counts[to]++] = streams[k];
            }
            MPI_Alltoall(counts, 1, MPI_INT, coming, 1, MPI_INT, MPI_COMM_WORLD);
            long all = 0;
            for (int k = 0; k < ranks; all += coming[k++]) offsets[k] = all;
            MPI_Alltoallv(sent, counts, starts, MPI_UINT64_T, received, coming, offsets, MPI_UINT64_T, MPI_COMM_WORLD);
            for (long k = 0; k < all; k++) table[received[k] & (own - 1)] ^= received[k];
        }
    }
    double seconds = MPI_Wtime() - started, error = 0;
    for (uint64_t i = 0; i < own; i++) error += table[i] != i + own * rank;
    started = MPI_Wtime() - seconds;
    tell(1e-6 * ratio * entries, error);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long numbers[3] = {0};
    for (int k = 2; k < count && k < 5; k++) numbers[k - 2] = atol(words[k]);
    const char *kernel = count > 1 ? words[1] : "";
    // The kernels have the radius as a constant of the compiler.
    if (strcmp(kernel, "stencil") == 0 && numbers[2] == 2) stencil(numbers[0], numbers[1], 2);
    else if (strcmp(kernel, "stencil") == 0) stencil(numbers[0], numbers[1], numbers[2]);
    else if (strcmp(kernel, "transpose") == 0) transpose(numbers[0], numbers[1]);
    else if (strcmp(kernel, "p2p") == 0) p2p(numbers[0], numbers[1], numbers[2]);
    else if (strcmp(kernel, "random") == 0) random_access((int)numbers[0], numbers[1]);
    else MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}
