/* Runs that cannot go on, by the first argument. */
#include "RCCE_lib.h"

#include <string.h>

int bad_access(volatile int *address) { return *address; }

int too_deep(int depth) {
    volatile char room[4096];
    room[depth % 4096] = 1;
    return depth < 1 << 24 ? too_deep(depth + 1) + room[0] : 0;
}

int RCCE_APP(int argc, char **argv) {
    char message[64] = {0};
    RCCE_init(&argc, &argv);
    int rank = RCCE_ue(), ranks = RCCE_num_ues();
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "ring")) {
        RCCE_send(message, sizeof message, (rank + 1) % ranks);
        RCCE_recv(message, sizeof message, (rank + ranks - 1) % ranks);
    } else if (!strcmp(how, "order")) {
        RCCE_FLAG flag;
        if (rank == 1)
            RCCE_shmalloc(64);
        RCCE_flag_alloc(&flag);
    } else if (!strcmp(how, "fault")) {
        if (rank == 1)
            bad_access(NULL);
    } else if (!strcmp(how, "deep")) {
        if (rank == 1)
            too_deep(1);
    } else if (!strcmp(how, "spin")) {
        while (rank == 1 && !*(volatile char *)message)
            ;
    } else if (!strcmp(how, "more")) {
        if (rank == 1)
            RCCE_shmalloc(64);
    } else if (rank == 1) {
        if (!strcmp(how, "exit"))
            exit(7);
        return 0;
    } else if (!strcmp(how, "gone")) {
        RCCE_recv(message, sizeof message, 1);
    }
    RCCE_finalize();
    return 0;
}
