/* Ends the rank with the line of a check that does not hold. */
#ifndef CHECK_H
#define CHECK_H

#include "RCCE.h"

#define CHECK(holds)                                                                                                   \
    do {                                                                                                               \
        if (!(holds)) {                                                                                                \
            printf("rank %d: %s:%d: %s does not hold\n", RCCE_ue(), __FILE__, __LINE__, #holds);                       \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int passed(void) {
    RCCE_barrier(&RCCE_COMM_WORLD);
    if (RCCE_ue() == 0)
        printf("ok\n");
    RCCE_finalize();
    return 0;
}

#endif
