/* A ring in gory mode: every rank puts its line into the next rank's message buffer, round after round.
 *
 * Two flags keep the buffer of a round from being overwritten: `full` is set by the writer, `empty` by the reader. */
#ifndef GORY
#define GORY
#endif
#include "RCCE.h"

#include <string.h>

#define BYTES 1024

int RCCE_APP(int argc, char **argv) {
    static char sent[BYTES] __attribute__((aligned(32))), got[BYTES] __attribute__((aligned(32)));
    RCCE_FLAG full, empty;
    RCCE_init(&argc, &argv);
    int rank = RCCE_ue(), ranks = RCCE_num_ues(), rounds = argc > 1 ? atoi(argv[1]) : ranks;
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    t_vcharp buffer = RCCE_malloc(BYTES);
    if (!buffer || RCCE_flag_alloc(&full) || RCCE_flag_alloc(&empty)) {
        printf("rank %d: no room in the message buffer\n", rank);
        return 1;
    }
    memset(sent, rank, BYTES);
    RCCE_flag_write(&empty, RCCE_FLAG_SET, before);
    for (int round = 0; round < rounds; round++) {
        RCCE_wait_until(empty, RCCE_FLAG_SET);
        RCCE_flag_write(&empty, RCCE_FLAG_UNSET, rank);
        RCCE_put(buffer, (t_vcharp)sent, BYTES, next);
        RCCE_flag_write(&full, RCCE_FLAG_SET, next);
        RCCE_wait_until(full, RCCE_FLAG_SET);
        RCCE_flag_write(&full, RCCE_FLAG_UNSET, rank);
        RCCE_get((t_vcharp)got, buffer, BYTES, rank);
        RCCE_flag_write(&empty, RCCE_FLAG_SET, before);
        memcpy(sent, got, BYTES);
    }
    /* After as many rounds as there are ranks the own line is back. */
    int expected = ((rank - rounds) % ranks + ranks) % ranks, wrong = 0;
    for (int at = 0; at < BYTES; at++)
        wrong += sent[at] != (char)expected;
    RCCE_barrier(&RCCE_COMM_WORLD);
    if (wrong)
        printf("rank %d: Verification UNSUCCESSFUL: %d bytes differ\n", rank, wrong);
    else if (rank == 0)
        printf("shift: %d ranks, %d rounds\nVerification SUCCESSFUL\n", ranks, rounds);
    RCCE_finalize();
    return wrong != 0;
}
