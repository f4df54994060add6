/* Power calls: domains, masters, the rules of a change. Ranks 0 to 3 are in one domain of the SCC. */
#define RC_POWER_MANAGEMENT
#include "check.h"
#include "isles.h"

int RCCE_APP(int argc, char **argv) {
    RCCE_REQUEST request = {0};
    int divider = 0, level = 0, size;
    RCCE_init(&argc, &argv);
    CHECK(RCCE_power_domain() == 0 && RCCE_power_domain_master() == 0 && RCCE_power_domain_size() == 4);
    CHECK(RCCE_comm_size(RCCE_P_COMM, &size) == RCCE_SUCCESS && size == 4);
    if (RCCE_ue() != 0) {
        /* Of others nothing changes. */
        CHECK(RCCE_iset_power(99, &request, &divider, &level) == RCCE_SUCCESS && divider == 0);
    } else {
        CHECK(RCCE_wait_power(&request) == RCCE_ERROR_NO_ACTIVE_RPC_REQUEST);
        CHECK(RCCE_iset_power(17, &request, &divider, &level) == RCCE_ERROR_FDIVIDER);
        double begin = RCCE_wtime();
        isles_work(1000000);
        double fast = RCCE_wtime() - begin;
        CHECK(RCCE_iset_power(4, &request, &divider, &level) == RCCE_SUCCESS && divider == 4 && level == 0);
        CHECK(RCCE_iset_power(4, &request, &divider, &level) == RCCE_ERROR_MULTIPLE_RPC_REQUESTS);
        CHECK(RCCE_wait_power(&request) == RCCE_SUCCESS);
        CHECK(RCCE_wait_power(&request) == RCCE_ERROR_STALE_RPC_REQUEST);
        begin = RCCE_wtime();
        isles_work(1000000);
        double slow = RCCE_wtime() - begin;
        if (isles_is_modelled())
            CHECK(slow > 1.33 * fast && slow < 1.34 * fast);
        CHECK(RCCE_set_frequency_divider(2, &divider) == RCCE_ERROR_FREQUENCY_EXCEEDED);
        CHECK(RCCE_set_frequency_divider(8, &divider) == RCCE_SUCCESS && divider == 8);
        CHECK(RCCE_iset_power(2, &request, &divider, &level) == RCCE_SUCCESS && level == 4);
        CHECK(RCCE_wait_power(&request) == RCCE_SUCCESS);
    }
    return passed();
}
