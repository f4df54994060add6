/* Half a round of a ping-ping between ranks 0 and 1: both send at the same time, then both receive.
 *
 *   pingping [BYTES [ROUNDS [BATCHES]]]     the median of the batches
 *
 * Compile it with -DIRCCE. A send of RCCE returns when it has been received, so without iRCCE both ranks wait for each
 * other for ever, as they should: RCCE cannot run this pattern. */
#include "RCCE.h"
#ifdef IRCCE
#include "iRCCE.h"
#endif

#define LONGEST (1 << 16)
#define BATCHES_MAX 101

static char sent[LONGEST] __attribute__((aligned(4096))), received[LONGEST] __attribute__((aligned(4096)));

static void exchange(size_t bytes, int other) {
#ifdef IRCCE
    iRCCE_SEND_REQUEST sending;
    iRCCE_RECV_REQUEST receiving;
    iRCCE_isend(sent, (ssize_t)bytes, other, &sending);
    iRCCE_irecv(received, (ssize_t)bytes, other, &receiving);
    iRCCE_irecv_wait(&receiving);
    iRCCE_isend_wait(&sending);
#else
    RCCE_send(sent, bytes, other);
    RCCE_recv(received, bytes, other);
#endif
}

static double rounds(size_t bytes, int count) {
    RCCE_barrier(&RCCE_COMM_WORLD);
    double begin = RCCE_wtime();
    for (int round = 0; round < count; round++)
        exchange(bytes, 1 - RCCE_ue());
    return (RCCE_wtime() - begin) / (2.0 * count);
}

static int by_time(const void *one, const void *other) {
    double first = *(const double *)one, second = *(const double *)other;
    return (first > second) - (first < second);
}

int RCCE_APP(int argc, char **argv) {
    double times[BATCHES_MAX];
    int wrong = 0;
    RCCE_init(&argc, &argv);
#ifdef IRCCE
    iRCCE_init();
#endif
    size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 32;
    int count = argc > 2 ? atoi(argv[2]) : 100, batches = argc > 3 ? atoi(argv[3]) : 1;
    if (RCCE_num_ues() != 2 || bytes < 1 || bytes > LONGEST || count < 1 || batches < 1 || batches > BATCHES_MAX) {
        fprintf(stderr, "pingping: %d ranks, %zu bytes, %d rounds, %d batches; allowed: 2, 1 to %d, 1 or more, 1 to %d\n",
                RCCE_num_ues(), bytes, count, batches, LONGEST, BATCHES_MAX);
        return 2;
    }
    for (size_t at = 0; at < bytes; at++)
        sent[at] = (char)((at * 31 >> 3) + (size_t)RCCE_ue());
    for (int batch = 0; batch < batches; batch++)
        times[batch] = rounds(bytes, count);
    qsort(times, (size_t)batches, sizeof *times, by_time);
    double half = times[batches / 2];
    for (size_t at = 0; at < bytes; at++)
        wrong += received[at] != (char)((at * 31 >> 3) + (size_t)(1 - RCCE_ue()));
    if (wrong)
        printf("rank %d: Verification UNSUCCESSFUL: %d bytes differ\n", RCCE_ue(), wrong);
    else if (RCCE_ue() == 0)
        printf("%8zu bytes %14.3f us %12.3f MB/s\nVerification SUCCESSFUL\n", bytes, half * 1e6, bytes / half / 1e6);
    RCCE_finalize();
    return wrong != 0;
}
