// What an MPI library does on one host, in the words of the bench.
//
// Built at run time by `isles-bench`, once with each MPI found (mpicc.openmpi, mpicc.mpich), and started as
//
//     mpirun -n RANKS mpi SECTION BATCH_MILLISECONDS REPETITIONS
//
// with SECTION one of `message`, `rounds`, `collective`, `large`, `channels`, `windows` (2 ranks), `wavefront`,
// `automaton`, `aggregation` and `crowd` (any number). Prints one line `measured NAME VALUE` for each figure: the
// median over the repetitions, each of which is one batch long enough for the clock. It does not judge and knows no
// target.
//
// To keep in mind: each figure is defined so that the last step of a batch has ended at both sides before
// the clock is read; nothing is counted that is still on its way.

#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETTLING_SECONDS 0.5

enum { STEPS_A_ROUND = 100000, BUSY = 4 };
enum { WINDOW = 64, LARGE_WINDOW = 8, LARGE = 2 << 20 };

static int rank, ranks, repetitions;
static double batch_seconds;
static char *near_end, *far_end;
static MPI_Status ignored;

typedef void (*Step)(long count, int bytes);

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double seconds_of(Step step, long count, int bytes) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    step(count, bytes);
    return MPI_Wtime() - start;
}

// The number of steps that fills a batch; all ranks use what rank 0 found.
static long calibrate(Step step, int bytes) {
    long count = 1;
    for (;;) {
        double seconds = seconds_of(step, count, bytes);
        long next = seconds >= batch_seconds ? 0 : count * 2;
        MPI_Bcast(&next, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        if (next == 0) return count;
        count = next;
    }
}

// Prints `per_step(seconds)` of the median batch, where the batch's seconds are divided by its steps.
static void measure(const char *name, Step step, int bytes, double factor, int is_rate) {
    long count = calibrate(step, bytes);
    MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    double *seconds = malloc(sizeof(double) * repetitions);
    for (int i = 0; i < repetitions; i++) seconds[i] = seconds_of(step, count, bytes) / count;
    qsort(seconds, repetitions, sizeof(double), ascending);
    double median = seconds[repetitions / 2];
    if (rank == 0) printf("measured %s %.9g\n", name, is_rate ? factor / median : factor * median);
    fflush(stdout);
    free(seconds);
}

typedef int (*Send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);

// There and back, the same bytes both ways.
static inline void ping_pong_by(Send send, long count, int bytes) {
    for (long i = 0; i < count; i++) {
        if (rank == 0) {
            send(near_end, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(far_end, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &ignored);
        } else if (rank == 1) {
            MPI_Recv(far_end, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &ignored);
            send(near_end, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
}

static void ping_pong(long count, int bytes) { ping_pong_by(MPI_Send, count, bytes); }

// The same with sends that end when the receiver has begun to receive.
static void synchronous_ping_pong(long count, int bytes) { ping_pong_by(MPI_Ssend, count, bytes); }

// Ping-pongs in rounds before each of which both ranks sleep; the first round is not counted.
static void rounds(const char *name) {
    double *seconds = malloc(sizeof(double) * repetitions);
    for (int i = -1; i < repetitions; i++) {
        usleep(30000);
        double found = seconds_of(ping_pong, STEPS_A_ROUND, 8) / STEPS_A_ROUND;
        if (i >= 0) seconds[i] = found;
    }
    qsort(seconds, repetitions, sizeof(double), ascending);
    if (rank == 0) printf("measured %s %.9g\n", name, 1e6 / 2 * seconds[repetitions / 2]);
    fflush(stdout);
    free(seconds);
}

// A process that computes for nothing, at the lowest priority, on any core.
static pid_t busy_process(void) {
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t all;
        CPU_ZERO(&all);
        for (int core = 0; core < CPU_SETSIZE; core++) CPU_SET(core, &all);
        sched_setaffinity(0, sizeof all, &all);
        nice(19);
        for (volatile long i = 0;; i++) {}
    }
    return child;
}

// There, and eight bytes back: what a call with a large argument does.
static void answered(long count, int bytes) {
    for (long i = 0; i < count; i++) {
        if (rank == 0) {
            MPI_Send(near_end, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(far_end, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &ignored);
        } else if (rank == 1) {
            MPI_Recv(far_end, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &ignored);
            MPI_Send(near_end, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
}

static volatile unsigned long long total;

// As `answered`, but the receiver also reads each word of what it got.
static void answered_and_read(long count, int bytes) {
    for (long i = 0; i < count; i++) {
        if (rank == 0) {
            MPI_Send(near_end, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(far_end, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &ignored);
        } else if (rank == 1) {
            MPI_Recv(far_end, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &ignored);
            unsigned long long sum = 0;
            const unsigned long long *words = (const unsigned long long *)far_end;
            for (int w = 0; w < bytes / 8; w++) sum += words[w];
            total = sum;
            MPI_Send(near_end, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
}

// One way, `window` messages under way at a time; no answer.
static void windowed(long count, int bytes, int window) {
    MPI_Request requests[WINDOW];
    MPI_Status ended[WINDOW];
    for (long i = 0; i < count; i++) {
        for (int m = 0; m < window; m++) {
            if (rank == 0) MPI_Isend(near_end, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[m]);
            else if (rank == 1) MPI_Irecv(far_end, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[m]);
        }
        if (rank < 2) MPI_Waitall(window, requests, ended);
    }
}

// Eight bytes back: all before has been taken in.
static void acknowledged(void) {
    if (rank == 0) MPI_Recv(far_end, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &ignored);
    else if (rank == 1) MPI_Send(near_end, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}

// One answer for the whole batch, as with a finish round it.
static void small_stream(long count, int bytes) {
    windowed(count, bytes, WINDOW);
    acknowledged();
}

// The same with calls that block, which some libraries do faster.
static void blocking_stream(long count, int bytes) {
    for (long i = 0; i < count * WINDOW; i++) {
        if (rank == 0) MPI_Send(near_end, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else if (rank == 1) MPI_Recv(far_end, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &ignored);
    }
    acknowledged();
}

// An answer for each window, as with a finish round each.
static void large_stream(long count, int bytes) {
    for (long i = 0; i < count; i++) {
        windowed(1, bytes, LARGE_WINDOW);
        acknowledged();
    }
}

static void barrier(long count, int bytes) {
    (void)bytes;
    for (long i = 0; i < count; i++) MPI_Barrier(MPI_COMM_WORLD);
}

static void all_reduce(long count, int bytes) {
    (void)bytes;
    double in = 1.0, out;
    for (long i = 0; i < count; i++) MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

// Element by element, into the same memory.
static void all_reduce_slice(long count, int bytes) {
    for (long i = 0; i < count; i++)
        MPI_Allreduce(MPI_IN_PLACE, near_end, bytes / 8, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

// The root changes each time, so that no broadcast starts before the one before it has arrived.
static void broadcast(long count, int bytes) {
    for (long i = 0; i < count; i++) MPI_Bcast(near_end, bytes, MPI_BYTE, (int)(i % ranks), MPI_COMM_WORLD);
}

// Eight bytes once round all ranks.
static void token(long count, int bytes) {
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    for (long i = 0; i < count; i++) {
        if (rank == 0) {
            MPI_Send(near_end, bytes, MPI_BYTE, right, 0, MPI_COMM_WORLD);
            MPI_Recv(far_end, bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, &ignored);
        } else {
            MPI_Recv(far_end, bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, &ignored);
            MPI_Send(far_end, bytes, MPI_BYTE, right, 0, MPI_COMM_WORLD);
        }
    }
}

// The kernel p2p of the Parallel Research Kernels, columns split over the ranks: the own columns, row after row, and
// before them the last one of the rank to the left.
static double *cells;
static long width, rows_of_grid, columns_of_grid, sweeps;

// Row 0 and column 0 have the numbers of their cells.
static void lay_grid(long columns, long rows) {
    long first = rank * (columns - 1) / ranks, last = (rank + 1) * (columns - 1) / ranks;
    columns_of_grid = columns, rows_of_grid = rows, width = last - first + 1, sweeps = 0;
    cells = calloc(width * rows, sizeof(double));
    for (long i = 0; i < width; i++) cells[i] = first + i;
    if (first == 0) for (long j = 0; j < rows; j++) cells[j * width] = j;
}

// After each sweep the last cell of all, negated, becomes the first one of all, so that no sweep begins early. The
// kernel verifies itself by the last cell.
static void sweep(long count, int bytes) {
    (void)bytes;
    int is_first = rank == 0, is_last = rank == ranks - 1;
    for (long n = 0; n < count; n++) {
        for (long j = 1; j < rows_of_grid; j++) {
            const double *restrict above = cells + (j - 1) * width;
            double *restrict row = cells + j * width;
            if (!is_first) MPI_Recv(row, 1, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, &ignored);
            for (long i = 1; i < width; i++) row[i] = above[i] + row[i - 1] - above[i - 1];
            if (!is_last) MPI_Send(row + width - 1, 1, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
        }
        double corner = -cells[rows_of_grid * width - 1];
        if (is_last && !is_first) MPI_Send(&corner, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
        if (is_first && !is_last) MPI_Recv(&corner, 1, MPI_DOUBLE, ranks - 1, 0, MPI_COMM_WORLD, &ignored);
        if (is_first) cells[0] = corner;
    }
    sweeps += count;
    double expected = (double)(sweeps * (columns_of_grid + rows_of_grid - 2));
    if (is_first && -cells[0] != expected) {
        fprintf(stderr, "the last cell is %g after %ld sweeps, and not %g\n", -cells[0], sweeps, expected);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

// Millions of additions and subtractions a second.
static void wavefront(const char *name, long columns, long rows) {
    lay_grid(columns, rows);
    measure(name, sweep, 0, 2e-6 * (columns - 1) * (rows - 1), 1);
    free(cells);
}

// The token travels for a while before it is timed, as with Isles: new processes are not yet spread over the cores.
static void settle(double seconds) {
    double start = MPI_Wtime();
    for (int go_on = 1; go_on;) {
        token(1, 8);
        go_on = MPI_Wtime() - start < seconds;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

// Whether one rank may read the memory of another, which decides how large messages go; asked of the kernel itself.
static const char *cross_memory_attach(void) {
    static long word = 42;
    long pid_and_address[2] = {getpid(), (long)&word};
    if (rank == 1) MPI_Send(pid_and_address, 2, MPI_LONG, 0, 0, MPI_COMM_WORLD);
    const char *answer = "";
    if (rank == 0) {
        long seen = 0;
        MPI_Recv(pid_and_address, 2, MPI_LONG, 1, 0, MPI_COMM_WORLD, &ignored);
        struct iovec here = {&seen, sizeof seen}, there = {(void *)pid_and_address[1], sizeof seen};
        ssize_t read = process_vm_readv((pid_t)pid_and_address[0], &here, 1, &there, 1, 0);
        answer = read == sizeof seen && seen == 42 ? "allowed" : "refused";
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return answer;
}

// A setting as the library has chosen it by now, in its own words; null if it has none of this name.
static const char *setting(const char *name) {
    static char text[256];
    int provided, index, verbosity, binding, scope, length = sizeof text, count;
    MPI_Datatype type;
    MPI_T_enum words;
    MPI_T_cvar_handle handle;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return NULL;
    MPI_T_cvar_get_info(index, text, &length, &verbosity, &type, &words, NULL, NULL, &binding, &scope);
    if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS) return NULL;
    if (type != MPI_INT && type != MPI_UNSIGNED) return NULL;
    int value = 0, item;
    MPI_T_cvar_read(handle, &value);
    snprintf(text, sizeof text, "%d", value);
    int items = 0;
    char enum_name[64], item_name[64];
    int enum_length = sizeof enum_name;
    if (words == MPI_T_ENUM_NULL) return text;
    MPI_T_enum_get_info(words, &items, enum_name, &enum_length);
    for (int i = 0; i < items; i++) {
        int item_length = sizeof item_name;
        MPI_T_enum_get_item(words, i, &item, item_name, &item_length);
        if (item == value) snprintf(text, sizeof text, "%s", item_name);
    }
    return text;
}

static void print_version(const char *attach) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    const char *device = strstr(text, "MPICH Device:");
    if (device) device += strlen("MPICH Device:");
    if (device) device += strspn(device, "\t ");
    char chosen[64] = "";
    if (device) snprintf(chosen, sizeof chosen, ", device %.*s", (int)strcspn(device, "\n"), device);
    text[strcspn(text, ",\n")] = 0;
    for (char *c = text; *c; c++) if (*c == '\t') *c = ' ';
    printf("version %s%s", text, chosen);
    const char *layers[] = {"ob1", "ucx", "cm"};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "pml_%s_priority", layers[i]);
        if (setting(name)) printf(", pml %s", layers[i]);  // those that were not chosen are closed by now
    }
    const char *copy = setting("btl_vader_single_copy_mechanism");
    if (copy) printf(", btl_vader_single_copy_mechanism %s", copy);
    printf(", CMA %s\n", attach);
}

// One-sided calls, by rank 0 on the memory of rank 1. All of it lies within an epoch of all ranks.
static MPI_Win win;
static uint64_t *part;

static void put_and_flush(long count, int bytes) {
    if (rank > 0) return;
    for (long i = 0; i < count; i++) {
        MPI_Put(near_end, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win);
        MPI_Win_flush(1, win);
    }
}

static void fetch_and_add(long count, int bytes) {
    (void)bytes;
    if (rank > 0) return;
    uint64_t one = 1, before;
    for (long i = 0; i < count; i++) {
        MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, 1, 8, MPI_SUM, win);
        MPI_Win_flush(1, win);
    }
}

// With both neighbours, which of two ranks are the other one; the edges are made anew each time, as a stencil does.
static void halos(long count, int bytes) {
    int up = (rank + ranks - 1) % ranks, down = (rank + 1) % ranks;
    for (long i = 0; i < count; i++) {
        memset(near_end, (char)i, 2 * bytes);
        MPI_Sendrecv(near_end, bytes, MPI_BYTE, up, 0, far_end, bytes, MPI_BYTE, down, 0, MPI_COMM_WORLD, &ignored);
        MPI_Sendrecv(near_end + bytes, bytes, MPI_BYTE, down, 1, far_end + bytes, bytes, MPI_BYTE, up, 1,
                     MPI_COMM_WORLD, &ignored);
    }
}

static void windows(void) {
    MPI_Win_allocate(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    measure("put_us", put_and_flush, 8, 1e6, 0);
    measure("fetch_add_us", fetch_and_add, 8, 1e6, 0);
    measure("put_1m_gb", put_and_flush, 1 << 20, (1 << 20) / 1e9, 1);
    MPI_Win_unlock_all(win);
    measure("halo_us", halos, 8 << 10, 1e6, 0);
    MPI_Win_free(&win);
}

// Life on a ring of rows and columns, rows split over the ranks: a byte a cell, above and below the row of a neighbour.
enum { LIFE_ROWS = 1024, LIFE_COLUMNS = 8192, LIFE_STEPS = 400 };
static uint8_t *life, *next_life;
static long life_rows;

static void life_row(long row) {
    static uint8_t sums[LIFE_COLUMNS + 2];
    const uint8_t *above = life + (row - 1) * LIFE_COLUMNS, *here = above + LIFE_COLUMNS, *below = here + LIFE_COLUMNS;
    uint8_t *next = next_life + row * LIFE_COLUMNS;
    for (int i = 0; i < LIFE_COLUMNS; i++) sums[i + 1] = above[i] + here[i] + below[i];
    sums[0] = sums[LIFE_COLUMNS];
    sums[LIFE_COLUMNS + 1] = sums[1];
    for (int i = 0; i < LIFE_COLUMNS; i++) {
        uint8_t nine = sums[i] + sums[i + 1] + sums[i + 2];
        next[i] = (nine == 3) | ((nine == 4) & here[i]);
    }
}

// The sums that each generation of ours comes to: how many cells live, and two hashes of each row.
static uint64_t life_sums(void) {
    uint64_t total = 0;
    for (long row = 1; row <= life_rows; row++) {
        const uint8_t *cells_of_row = life + row * LIFE_COLUMNS;
        uint32_t one = 0, other = 0, living = 0;
        for (int i = 0; i < LIFE_COLUMNS / 4; i++) {
            uint32_t word;
            memcpy(&word, cells_of_row + 4 * i, 4);
            one += word * (2654435761u * i | 1);
            other += (word ^ word >> 7) * (2246822519u * i | 1);
        }
        for (int i = 0; i < LIFE_COLUMNS; i++) living += cells_of_row[i];
        total += ((uint64_t)one << 32 | other) ^ living;
    }
    return total;
}

// One run, edges by messages or by puts and fences.
static double life_seconds(int is_one_sided) {
    int up = (rank + ranks - 1) % ranks, down = (rank + 1) % ranks;
    long bytes = (life_rows + 2) * LIFE_COLUMNS;
    MPI_Win halo;
    uint8_t *rows;
    MPI_Win_allocate(2 * LIFE_COLUMNS, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &rows, &halo);
    srand(1);
    for (long i = 0; i < bytes; i++) life[i] = rand() % 8 < 3;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    uint64_t sums = life_sums();
    MPI_Win_fence(0, halo);
    for (int step = 0; step < LIFE_STEPS; step++) {
        uint8_t *top = life + LIFE_COLUMNS, *bottom = life + life_rows * LIFE_COLUMNS;
        MPI_Request requests[4];
        if (is_one_sided) {
            MPI_Put(top, LIFE_COLUMNS, MPI_BYTE, up, LIFE_COLUMNS, LIFE_COLUMNS, MPI_BYTE, halo);
            MPI_Put(bottom, LIFE_COLUMNS, MPI_BYTE, down, 0, LIFE_COLUMNS, MPI_BYTE, halo);
        } else {
            MPI_Irecv(life, LIFE_COLUMNS, MPI_BYTE, up, 1, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(bottom + LIFE_COLUMNS, LIFE_COLUMNS, MPI_BYTE, down, 0, MPI_COMM_WORLD, &requests[1]);
            MPI_Isend(top, LIFE_COLUMNS, MPI_BYTE, up, 0, MPI_COMM_WORLD, &requests[2]);
            MPI_Isend(bottom, LIFE_COLUMNS, MPI_BYTE, down, 1, MPI_COMM_WORLD, &requests[3]);
        }
        for (long row = 2; row < life_rows; row++) life_row(row);
        if (is_one_sided) {
            MPI_Win_fence(0, halo);
            memcpy(life, rows, LIFE_COLUMNS);
            memcpy(bottom + LIFE_COLUMNS, rows + LIFE_COLUMNS, LIFE_COLUMNS);
            MPI_Win_fence(0, halo);
        } else {
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        }
        life_row(1);
        life_row(life_rows);
        uint8_t *before = life;
        life = next_life;
        next_life = before;
        sums ^= life_sums();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    near_end[0] = (char)sums;
    MPI_Win_free(&halo);
    return seconds;
}

static void automaton(void) {
    life_rows = LIFE_ROWS / ranks;
    life = calloc(life_rows + 2, LIFE_COLUMNS);
    next_life = calloc(life_rows + 2, LIFE_COLUMNS);
    for (int is_one_sided = 0; is_one_sided < 2; is_one_sided++) {
        double seconds = life_seconds(is_one_sided);
        if (rank == 0) printf("measured %s %.9g\n", is_one_sided ? "one_sided_seconds" : "seconds", seconds);
    }
}

// Updates of random entries of a table in blocks, `AHEAD` a rank at a time, as the rules of RandomAccess allow: those
// of each rank are put into its part of a buffer, exchanged by Alltoallv, and applied. One rank applies them at once.
enum { AHEAD = 1024, RANKS_MAX = 64 };

static uint64_t next_update(uint64_t number) {
    return (number << 1) ^ ((int64_t)number < 0 ? 7 : 0);
}

// Millions of updates a second: `entries` of each rank, a power of two; counts instead of exclusive ors if `counts`.
static double updates_million(uint64_t entries, uint64_t updates, int ahead, int counts) {
    uint64_t *table = malloc(entries * sizeof *table), first = entries * rank, mask = entries * ranks - 1;
    uint64_t *made = malloc(ahead * sizeof *made), *got = malloc(ranks * ahead * sizeof *got);
    for (uint64_t i = 0; i < entries; i++) table[i] = counts ? 0 : first + i;
    uint64_t number = 0x123456789abcdef ^ (uint64_t)rank << 40;
    for (int i = 0; i < 1000; i++) number = next_update(number);
    int bits = 0;
    while (entries >> bits > 1) bits++;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (ranks == 1) {
        for (uint64_t i = 0; i < updates; i++) {
            number = next_update(number);
            if (counts) table[number & mask]++; else table[number & mask] ^= number;
        }
    }
    for (uint64_t done = 0; ranks > 1 && done < updates; done += ahead) {
        int to[RANKS_MAX] = {0}, at[RANKS_MAX], from[RANKS_MAX], gotten[RANKS_MAX];
        uint64_t again = number;
        for (int i = 0; i < ahead; i++) {
            again = next_update(again);
            to[(again & mask) >> bits]++;
        }
        for (int r = 0, sum = 0; r < ranks; r++) { at[r] = sum; sum += to[r]; }
        int place[RANKS_MAX];
        memcpy(place, at, sizeof place);
        for (int i = 0; i < ahead; i++) {
            number = next_update(number);
            made[place[(number & mask) >> bits]++] = number;
        }
        MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
        int all = 0;
        for (int r = 0; r < ranks; r++) { gotten[r] = all; all += from[r]; }
        MPI_Alltoallv(made, to, at, MPI_UINT64_T, got, from, gotten, MPI_UINT64_T, MPI_COMM_WORLD);
        for (int i = 0; i < all; i++) {
            uint64_t index = (got[i] & mask) - first;
            if (counts) table[index]++; else table[index] ^= got[i];
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    near_end[0] = (char)table[number & (entries - 1)];
    free(table); free(made); free(got);
    return updates * ranks / seconds / 1e6;
}

static void aggregation(void) {
    double gups = updates_million((1ull << 26) / ranks, (1ull << 26) / ranks, AHEAD, 0);
    double counts = updates_million(1024, 20000000, 4 * AHEAD, 1);
    if (rank == 0) printf("measured updates_million %.9g\nmeasured counts_million %.9g\n", gups, counts);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count != 4) {
        if (rank == 0) fprintf(stderr, "usage: mpi SECTION BATCH_MILLISECONDS REPETITIONS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const char *section = words[1];
    batch_seconds = atof(words[2]) / 1e3;
    repetitions = atoi(words[3]);
    near_end = malloc(LARGE);
    far_end = malloc(LARGE);
    memset(near_end, 1, LARGE);
    memset(far_end, 2, LARGE);
    const char *attach = ranks > 1 ? cross_memory_attach() : "not tried (one rank)";
    if (rank == 0) print_version(attach);

    if (strcmp(section, "message") == 0) {
        measure("half_round_trip_us", ping_pong, 8, 1e6 / 2, 0);
        measure("rate_million", small_stream, 8, WINDOW / 1e6, 1);
        measure("blocking_rate_million", blocking_stream, 8, WINDOW / 1e6, 1);
    } else if (strcmp(section, "rounds") == 0) {
        rounds("half_round_trip_us");
        pid_t busy[BUSY];
        if (rank == 0) for (int i = 0; i < BUSY; i++) busy[i] = busy_process();
        rounds("crowded_us");
        if (rank == 0) for (int i = 0; i < BUSY; i++) { kill(busy[i], SIGKILL); waitpid(busy[i], NULL, 0); }
    } else if (strcmp(section, "collective") == 0) {
        measure("barrier_us", barrier, 0, 1e6, 0);
        measure("all_reduce_us", all_reduce, 8, 1e6, 0);
        measure("all_reduce_8k_us", all_reduce_slice, 8 << 10, 1e6, 0);
        measure("all_reduce_1m_us", all_reduce_slice, 1 << 20, 1e6, 0);
        measure("broadcast_8k_us", broadcast, 8 << 10, 1e6, 0);
        measure("broadcast_1m_us", broadcast, 1 << 20, 1e6, 0);
    } else if (strcmp(section, "large") == 0) {
        measure("ping_pong_gb", ping_pong, LARGE, 2.0 * LARGE / 1e9, 1);
        measure("answered_gb", answered, LARGE, LARGE / 1e9, 1);
        measure("read_gb", answered_and_read, LARGE, LARGE / 1e9, 1);
        measure("stream_gb", large_stream, LARGE, 1.0 * LARGE_WINDOW * LARGE / 1e9, 1);
    } else if (strcmp(section, "sizes") == 0) {
        measure("us_8", ping_pong, 8, 1e6 / 2, 0);
        measure("us_1k", ping_pong, 1 << 10, 1e6 / 2, 0);
        measure("us_16k", ping_pong, 16 << 10, 1e6 / 2, 0);
        measure("us_256k", ping_pong, 256 << 10, 1e6 / 2, 0);
        measure("us_2m", ping_pong, LARGE, 1e6 / 2, 0);
    } else if (strcmp(section, "start") == 0) {
        if (rank == 0) printf("measured ranks %d\n", ranks);
    } else if (strcmp(section, "channels") == 0) {
        measure("half_round_trip_us", synchronous_ping_pong, 8, 1e6 / 2, 0);
        measure("blocking_rate_million", blocking_stream, 8, WINDOW / 1e6, 1);
    } else if (strcmp(section, "wavefront") == 0) {
        wavefront("square_mflops", 1024, 1024);
        wavefront("tall_mflops", 128, 8192);
    } else if (strcmp(section, "windows") == 0) {
        windows();
    } else if (strcmp(section, "automaton") == 0) {
        automaton();
    } else if (strcmp(section, "aggregation") == 0) {
        aggregation();
    } else if (strcmp(section, "crowd") == 0) {
        settle(SETTLING_SECONDS);
        measure("hop_us", token, 8, 1e6 / ranks, 0);
        measure("barrier_us", barrier, 0, 1e6, 0);
    }
    MPI_Finalize();
    return 0;
}
