/* A divider that the chip refuses is not booked: the next request names the one before it. The chip has none above
 * 12. */
#define RC_POWER_MANAGEMENT
#include "check.h"

int RCCE_APP(int argc, char **argv) {
    RCCE_REQUEST request = {0};
    int divider = 0, level = 0;
    RCCE_init(&argc, &argv);
    if (RCCE_ue() == RCCE_power_domain_master()) {
        CHECK(RCCE_set_frequency_divider(16, &divider) == RCCE_ERROR_RPC_INTERNAL && divider == 0);
        CHECK(RCCE_iset_power(14, &request, &divider, &level) == RCCE_ERROR_RPC_INTERNAL && divider == 0);
        CHECK(request.old_frequency_divider == 3);
        CHECK(RCCE_iset_power(4, &request, &divider, &level) == RCCE_SUCCESS && divider == 4);
        CHECK(request.old_frequency_divider == 3 && request.new_frequency_divider == 4);
        CHECK(RCCE_wait_power(&request) == RCCE_SUCCESS);
    }
    return passed();
}
