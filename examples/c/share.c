/* Off-chip memory that all ranks share: a table that every rank fills in part, and a sum under a lock.
 *
 * On the SCC this memory is not coherent, hence the flushes. */
#include "RCCE.h"

#define ENTRIES 1000

int RCCE_APP(int argc, char **argv) {
    RCCE_init(&argc, &argv);
    int rank = RCCE_ue(), ranks = RCCE_num_ues(), wrong = 0;
    volatile long *table = (volatile long *)RCCE_shmalloc(ENTRIES * sizeof(long));
    volatile long *sum = (volatile long *)RCCE_shmalloc(sizeof(long));
    volatile long **there = (volatile long **)RCCE_shmalloc(sizeof(long *));
    if (!table || !sum || !there) {
        printf("rank %d: no shared memory\n", rank);
        return 1;
    }
    if (rank == 0) {
        *sum = 0;
        *there = table; /* pointers into it mean the same at every rank */
    }
    for (int entry = rank; entry < ENTRIES; entry += ranks)
        table[entry] = (long)entry * entry;
    RCCE_shflush();
    RCCE_barrier(&RCCE_COMM_WORLD);
    long own = 0;
    for (int entry = (rank + 1) % ranks; entry < ENTRIES; entry += ranks)
        own += (*there)[entry];
    RCCE_acquire_lock(0);
    *sum += own;
    RCCE_shflush();
    RCCE_release_lock(0);
    RCCE_barrier(&RCCE_COMM_WORLD);
    long expected = (long)(ENTRIES - 1) * ENTRIES * (2 * ENTRIES - 1) / 6;
    wrong = *sum != expected;
    if (wrong)
        printf("rank %d: Verification UNSUCCESSFUL: %ld instead of %ld\n", rank, *sum, expected);
    else if (rank == 0)
        printf("share: sum %ld\nVerification SUCCESSFUL\n", *sum);
    RCCE_shfree((t_vcharp)there);
    RCCE_shfree((t_vcharp)sum);
    RCCE_shfree((t_vcharp)table);
    RCCE_finalize();
    return wrong;
}
