/* Power domains, frequency dividers and voltages, by RCCE's rules.
 *
 * Only the master of a domain, its lowest rank, changes anything; calls of others succeed without effect. To slow down,
 * the divider changes first and the voltage falls after that; to speed up, the voltage rises first, and the divider
 * changes in RCCE_wait_power. On hosts the books are kept and nothing changes. */
#define RC_POWER_MANAGEMENT
#include "library.h"

#define REFERENCE_MHZ 1600
#define FIRST_DIVIDER 3
#define FIRST_LEVEL 4

RCCE_COMM RCCE_P_COMM;

/* The highest rate in MHz at each voltage level: 0.7 V, 0.8 V, .. 1.3 V. From the table of the original library. */
static const int level_mhz[] = {460, 598, 644, 748, 875, 1024, 1198};
#define LEVELS ((int)(sizeof level_mhz / sizeof *level_mhz))

static int divider_now, level_now, is_under_way;

static int own_domain(void) { return (int)isles_machine.domains[isles_machine.rank]; }
static int domain_of(int rank, void *argument) {
    (void)argument;
    return (int)isles_machine.domains[rank];
}

void isles_power_begin(void) {
    divider_now = FIRST_DIVIDER;
    level_now = FIRST_LEVEL;
    is_under_way = 0;
}

int isles_power_communicator(void) { return isles_make_communicator(domain_of, NULL, &RCCE_P_COMM); }

int RCCE_power_domain(void) { return own_domain(); }

int RCCE_power_domain_master(void) {
    int rank = 0;
    while (domain_of(rank, NULL) != own_domain())
        rank++;
    return rank;
}

int RCCE_power_domain_size(void) {
    int size = 0;
    for (int rank = 0; rank < RCCE_NP; rank++)
        size += domain_of(rank, NULL) == own_domain();
    return size;
}

static int lowest_level(int divider) {
    int level = 0;
    while (level < LEVELS && level_mhz[level] * divider < REFERENCE_MHZ)
        level++;
    return level;
}

/* Has the model change the domain; on hosts nothing. */
static int change(int divider, int with_voltage) {
    struct request request = {
        .operation = OP_POWER, .target = (uint32_t)divider, .value = (uint64_t)with_voltage};
    int is_done = !isles_modelled() || isles_request(request);
    if (is_done)
        divider_now = divider;
    return is_done;
}

int RCCE_iset_power(int divider, RCCE_REQUEST *request, int *new_divider, int *new_level) {
    if (RCCE_power_domain_master() != RCCE_IAM)
        return RCCE_SUCCESS;
    if (!request)
        return RCCE_error_return(RCCE_debug_RPC, RCCE_ERROR_RPC_NOT_ALLOCATED);
    if (is_under_way)
        return RCCE_error_return(RCCE_debug_RPC, RCCE_ERROR_MULTIPLE_RPC_REQUESTS);
    if (divider == RCCE_POWER_DEFAULT)
        divider = FIRST_DIVIDER;
    if (divider < 2 || divider > 16)
        return RCCE_error_return(RCCE_debug_RPC, RCCE_ERROR_FDIVIDER);
    int level = lowest_level(divider);
    *request = (RCCE_REQUEST){.release = 0,
                              .old_voltage_level = level_now,
                              .new_voltage_level = level,
                              .old_frequency_divider = divider_now,
                              .new_frequency_divider = divider,
                              .start_cycle = (long long)_rdtsc()};
    if (!change(divider, 1))
        return RCCE_error_return(RCCE_debug_RPC, RCCE_ERROR_RPC_INTERNAL);
    level_now = level;
    is_under_way = 1;
    if (new_divider)
        *new_divider = divider;
    if (new_level)
        *new_level = level;
    return RCCE_SUCCESS;
}

int RCCE_wait_power(RCCE_REQUEST *request) {
    if (RCCE_power_domain_master() != RCCE_IAM)
        return RCCE_SUCCESS;
    if (!request)
        return RCCE_error_return(RCCE_debug_RPC, RCCE_ERROR_RPC_NOT_ALLOCATED);
    if (request->release)
        return RCCE_error_return(RCCE_debug_RPC, RCCE_ERROR_STALE_RPC_REQUEST);
    if (!is_under_way)
        return RCCE_error_return(RCCE_debug_RPC, RCCE_ERROR_NO_ACTIVE_RPC_REQUEST);
    enum call before = isles_enter(CALL_WAIT_POWER, -1);
    if (isles_modelled())
        isles_request((struct request){.operation = OP_SETTLED, .value = 1});
    is_under_way = 0;
    request->release = 1;
    isles_leave(before);
    return RCCE_SUCCESS;
}

int RCCE_set_frequency_divider(int divider, int *new_divider) {
    if (RCCE_power_domain_master() != RCCE_IAM)
        return RCCE_SUCCESS;
    if (divider == RCCE_POWER_DEFAULT)
        divider = FIRST_DIVIDER;
    if (divider < 2 || divider > 16)
        return RCCE_error_return(RCCE_debug_RPC, RCCE_ERROR_FDIVIDER);
    if (level_mhz[level_now] * divider < REFERENCE_MHZ)
        return RCCE_error_return(RCCE_debug_RPC, RCCE_ERROR_FREQUENCY_EXCEEDED);
    if (!change(divider, 0))
        return RCCE_error_return(RCCE_debug_RPC, RCCE_ERROR_RPC_INTERNAL);
    if (new_divider)
        *new_divider = divider;
    return RCCE_SUCCESS;
}
