/* Hello from every rank, in the order of ranks. */
#include "RCCE.h"

int RCCE_APP(int argc, char **argv) {
    RCCE_init(&argc, &argv);
    for (int rank = 0; rank < RCCE_num_ues(); rank++) {
        if (rank == RCCE_ue())
            printf("hello from rank %d of %d\n", rank, RCCE_num_ues());
        RCCE_barrier(&RCCE_COMM_WORLD);
    }
    RCCE_finalize();
    return 0;
}
