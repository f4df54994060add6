// What an MPI library does on one host, in the words of the bench.
//
// Built at run time by `isles-bench`, once with each MPI found (mpicc.openmpi, mpicc.mpich), and started as
//
//     mpirun -n RANKS mpi SECTION BATCH_MILLISECONDS REPETITIONS
//
// with SECTION one of `message`, `collective`, `large` (2 ranks) and `crowd` (any number). Prints one line
// `measured NAME VALUE` for each figure: the median over the repetitions, each of which is one batch long
// enough for the clock. It does not judge and knows no target.
//
// To keep in mind: each figure is defined so that the last step of a batch has ended at both sides before
// the clock is read; nothing is counted that is still on its way.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

// There and back, the same bytes both ways.
static void ping_pong(long count, int bytes) {
    for (long i = 0; i < count; i++) {
        if (rank == 0) {
            MPI_Send(near_end, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(far_end, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &ignored);
        } else if (rank == 1) {
            MPI_Recv(far_end, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &ignored);
            MPI_Send(near_end, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
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

// One way, `window` messages under way at a time, eight bytes back for each window.
static void windowed(long count, int bytes, int window) {
    MPI_Request requests[WINDOW];
    for (long i = 0; i < count; i++) {
        for (int m = 0; m < window; m++) {
            if (rank == 0) MPI_Isend(near_end, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[m]);
            else if (rank == 1) MPI_Irecv(far_end, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[m]);
        }
        if (rank < 2) MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) MPI_Recv(far_end, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &ignored);
        else if (rank == 1) MPI_Send(near_end, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static void small_stream(long count, int bytes) { windowed(count, bytes, WINDOW); }
static void large_stream(long count, int bytes) { windowed(count, bytes, LARGE_WINDOW); }

static void barrier(long count, int bytes) {
    (void)bytes;
    for (long i = 0; i < count; i++) MPI_Barrier(MPI_COMM_WORLD);
}

static void all_reduce(long count, int bytes) {
    (void)bytes;
    double in = 1.0, out;
    for (long i = 0; i < count; i++) MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
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

static void print_version(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    for (char *c = text; *c; c++) if (*c == '\t') *c = ' ';
    printf("version %s\n", text);
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
    if (rank == 0) print_version();

    if (strcmp(section, "message") == 0) {
        measure("half_round_trip_us", ping_pong, 8, 1e6 / 2, 0);
        measure("rate_million", small_stream, 8, WINDOW / 1e6, 1);
    } else if (strcmp(section, "collective") == 0) {
        measure("barrier_us", barrier, 0, 1e6, 0);
        measure("all_reduce_us", all_reduce, 8, 1e6, 0);
        measure("broadcast_8k_us", broadcast, 8 << 10, 1e6, 0);
        measure("broadcast_1m_us", broadcast, 1 << 20, 1e6, 0);
    } else if (strcmp(section, "large") == 0) {
        measure("ping_pong_gb", ping_pong, LARGE, 2.0 * LARGE / 1e9, 1);
        measure("answered_gb", answered, LARGE, LARGE / 1e9, 1);
        measure("read_gb", answered_and_read, LARGE, LARGE / 1e9, 1);
        measure("stream_gb", large_stream, LARGE, 1.0 * LARGE_WINDOW * LARGE / 1e9, 1);
    } else if (strcmp(section, "crowd") == 0) {
        measure("hop_us", token, 8, 1e6 / ranks, 0);
        measure("barrier_us", barrier, 0, 1e6, 0);
    }
    MPI_Finalize();
    return 0;
}
