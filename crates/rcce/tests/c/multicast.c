/* Rank 0 hands 4 KiB to all others, ten times: by sends one after the other, or by a multicast. */
#include "check.h"
#include "iRCCE.h"

#include <string.h>

int RCCE_APP(int argc, char **argv) {
    static char data[4096];
    RCCE_init(&argc, &argv);
    iRCCE_init();
    int sends = argc > 1 && !strcmp(argv[1], "sends");
    for (int round = 1; round <= 10; round++) {
        if (RCCE_ue() == 0)
            memset(data, round, sizeof data);
        if (!sends)
            iRCCE_mcast(data, sizeof data, 0);
        else if (RCCE_ue())
            iRCCE_srecv(data, sizeof data, 0);
        for (int rank = 1; sends && RCCE_ue() == 0 && rank < RCCE_num_ues(); rank++)
            iRCCE_ssend(data, sizeof data, rank);
        CHECK(data[0] == round && data[sizeof data - 1] == round);
    }
    return passed();
}
