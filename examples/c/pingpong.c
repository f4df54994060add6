/* Half a round of a ping-pong between ranks 0 and 1, by message length.
 *
 *   pingpong                              1 B to 1 MiB
 *   pingpong BYTES [ROUNDS [BATCHES]]     one length; the median of the batches
 *
 * With -DIRCCE the messages are requests of iRCCE, with -DPIPELINED beside that its blocking messages. One buffer
 * serves both ways, and a first round warms the caches. */
#include "RCCE.h"
#ifdef IRCCE
#include "iRCCE.h"
#endif

#define LONGEST (1 << 20)
#define BATCHES_MAX 101

/* Aligned to a page: where else it begins decides which of its lines share a place in the caches. */
static char message[LONGEST] __attribute__((aligned(4096)));

static void send(size_t bytes, int to) {
#if defined(PIPELINED)
    iRCCE_ssend(message, (ssize_t)bytes, to);
#elif defined(IRCCE)
    iRCCE_isend(message, (ssize_t)bytes, to, NULL);
#else
    RCCE_send(message, bytes, to);
#endif
}

static void receive(size_t bytes, int from) {
#if defined(PIPELINED)
    iRCCE_srecv(message, (ssize_t)bytes, from);
#elif defined(IRCCE)
    iRCCE_irecv(message, (ssize_t)bytes, from, NULL);
#else
    RCCE_recv(message, bytes, from);
#endif
}

static double rounds(size_t bytes, int count) {
    int rank = RCCE_ue();
    RCCE_barrier(&RCCE_COMM_WORLD);
    double begin = RCCE_wtime();
    for (int round = 0; round < count; round++) {
        if (rank == 0) {
            send(bytes, 1);
            receive(bytes, 1);
        } else if (rank == 1) {
            receive(bytes, 0);
            send(bytes, 0);
        }
    }
    return (RCCE_wtime() - begin) / (2.0 * count);
}

static int by_time(const void *one, const void *other) {
    double first = *(const double *)one, second = *(const double *)other;
    return (first > second) - (first < second);
}

static double median(size_t bytes, int count, int batches) {
    double times[BATCHES_MAX];
    for (int batch = 0; batch < batches; batch++)
        times[batch] = rounds(bytes, count);
    qsort(times, (size_t)batches, sizeof *times, by_time);
    return times[batches / 2];
}

static int measure(size_t bytes, int count, int batches) {
    int rank = RCCE_ue(), wrong = 0;
    for (size_t at = 0; at < bytes; at++)
        message[at] = rank == 0 ? (char)(at * 31 >> 3) : 0;
    rounds(bytes, 1);
    double half = median(bytes, count, batches);
    for (size_t at = 0; rank < 2 && at < bytes; at++)
        wrong += message[at] != (char)(at * 31 >> 3);
    if (rank == 0)
        printf("%8zu bytes %14.3f us %12.3f MB/s\n", bytes, half * 1e6, bytes / half / 1e6);
    return wrong;
}

int RCCE_APP(int argc, char **argv) {
    static const size_t sizes[] = {1,       4,       8,       32,       128,      256,      1 << 10,
                                   2 << 10, 8 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20};
    int wrong = 0;
    RCCE_init(&argc, &argv);
#ifdef IRCCE
    iRCCE_init();
#endif
    if (RCCE_num_ues() < 2) {
        fprintf(stderr, "pingpong needs 2 ranks or more\n");
        return 2;
    }
    if (argc > 1) {
        size_t bytes = strtoul(argv[1], NULL, 10);
        if (bytes < 1 || bytes > LONGEST) {
            fprintf(stderr, "pingpong: a message of %s bytes; allowed: 1 to %d\n", argv[1], LONGEST);
            return 2;
        }
        int batches = argc > 3 ? atoi(argv[3]) : 1;
        wrong = measure(bytes, argc > 2 ? atoi(argv[2]) : 100, batches < 1 || batches > BATCHES_MAX ? 1 : batches);
    } else {
        for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
            wrong += measure(sizes[size], sizes[size] > 64 << 10 ? 1 : 4, 1);
    }
    if (wrong)
        printf("rank %d: Verification UNSUCCESSFUL: %d bytes differ\n", RCCE_ue(), wrong);
    else if (RCCE_ue() == 0)
        printf("Verification SUCCESSFUL\n");
    RCCE_finalize();
    return wrong != 0;
}
