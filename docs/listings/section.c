/* An MPI program with a section of Isles in it (section.rs): first over all processes, then over each half of them. */
#include <mpi.h>
#include <stdio.h>

enum { BINS = 8, COUNT = 1000, ROUNDS = 20 };

/* The section. */
int histogram(int communicator, const double *values, int count, double *bins);

static MPI_Comm members;

/* What the section calls with memory of its own. */
void add_up(double *values, int count) {
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, members);
}

/* Runs the section over `members`; whether it has found the values of all of them. */
static int section(const double *values) {
    double bins[BINS], all = 0;
    int processes, code = histogram(MPI_Comm_c2f(members), values, COUNT, bins);
    MPI_Comm_size(members, &processes);
    for (int bin = 0; bin < BINS; bin++) all += bins[bin];
    return !code && all == (double)COUNT * processes && bins[0] == bins[BINS - 1];
}

int main(int argc, char **argv) {
    int level, rank, good = 1, all_good;
    double values[COUNT];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int at = 0; at < COUNT; at++) values[at] = (at + 0.5) / COUNT;
    for (int round = 0; round < ROUNDS; round++) {
        members = MPI_COMM_WORLD;
        good &= section(values);
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &members);
        good &= section(values);
        MPI_Comm_free(&members);
    }
    /* MPI is as it was. */
    MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0) printf("%d sections: %s\n", 2 * ROUNDS, all_good ? "good" : "bad");
    MPI_Finalize();
    return !all_good;
}
