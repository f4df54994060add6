/* Flags in message buffers: a line for each, or a bit of a line.
 *
 * A bit is changed under the test-and-set lock of the core whose buffer holds it, because others change bits of the
 * same line; that is why it is slower. */
#include "library.h"

#include <stdatomic.h>

RCCE_FLAG RCCE_sent_flag[RCCE_MAXNP], RCCE_ready_flag[RCCE_MAXNP];

static int is_status(int value) { return value == RCCE_FLAG_SET || value == RCCE_FLAG_UNSET; }

#ifdef SINGLEBITFLAGS

static struct {
    t_vcharp line;
    unsigned char used[RCCE_FLAGS_PER_LINE];
} bit_lines[LINES];
static int bit_line_count;

static t_vcharp line_of(RCCE_FLAG flag) { return flag.line_address + flag.location / RCCE_FLAGS_PER_BYTE; }
static uint32_t mask_of(RCCE_FLAG flag) { return 1u << flag.location % RCCE_FLAGS_PER_BYTE; }

int RCCE_flag_alloc(RCCE_FLAG *flag) {
    for (int line = 0; line < bit_line_count; line++)
        for (int bit = 0; bit < RCCE_FLAGS_PER_LINE; bit++)
            if (!bit_lines[line].used[bit]) {
                isles_collective(CALL_FLAG_ALLOC, 0);
                bit_lines[line].used[bit] = 1;
                flag->location = bit;
                flag->line_address = bit_lines[line].line;
                return RCCE_SUCCESS;
            }
    t_vcharp line = bit_line_count < LINES ? RCCE_malloc(RCCE_LINE_SIZE) : NULL;
    if (!line)
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_FLAG_NOT_ALLOCATED);
    bit_lines[bit_line_count++].line = line;
    return RCCE_flag_alloc(flag);
}

int RCCE_flag_free(RCCE_FLAG *flag) {
    for (int line = 0; line < bit_line_count; line++)
        if (bit_lines[line].line == flag->line_address && bit_lines[line].used[flag->location]) {
            isles_collective(CALL_FLAG_FREE, (uint64_t)flag->location);
            bit_lines[line].used[flag->location] = 0;
            flag->line_address = NULL;
            return RCCE_SUCCESS;
        }
    return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_FLAG_NOT_ALLOCATED);
}

static t_vcharp flag_address(RCCE_FLAG flag) { return flag.line_address; }

void isles_flag_wait(RCCE_FLAG flag, int value, enum costs costs) {
    struct awaited awaited = {.address = isles_at(line_of(flag), (int)isles_machine.rank),
                              .mask = mask_of(flag),
                              .value = value};
    isles_wait(&awaited, costs);
}

void isles_flag_write(RCCE_FLAG *flag, int value, uint32_t tag, int rank, enum costs costs) {
    (void)tag;
    RCCE_acquire_lock(rank);
    if (isles_modelled()) {
        isles_request(
            (struct request){.operation = OP_LOOK, .target = (uint32_t)rank, .line = isles_line(flag->line_address)});
        isles_request((struct request){.operation = OP_SET,
                                       .target = (uint32_t)rank,
                                       .line = isles_line(flag->line_address),
                                       .costs = costs});
    }
    unsigned char *byte = isles_at(line_of(*flag), rank);
    if (value)
        __atomic_fetch_or(byte, (unsigned char)mask_of(*flag), __ATOMIC_SEQ_CST);
    else
        __atomic_fetch_and(byte, (unsigned char)~mask_of(*flag), __ATOMIC_SEQ_CST);
    isles_wake(rank);
    RCCE_release_lock(rank);
}

void isles_flag_take(RCCE_FLAG *flag, enum costs costs) {
    isles_flag_wait(*flag, RCCE_FLAG_SET, costs);
    isles_flag_write(flag, RCCE_FLAG_UNSET, 0, RCCE_IAM, costs);
}

uint32_t isles_flag_tag(RCCE_FLAG flag) {
    (void)flag;
    return 0;
}

static int value_at(RCCE_FLAG flag, int rank) {
    return (__atomic_load_n(isles_at(line_of(flag), rank), __ATOMIC_ACQUIRE) & mask_of(flag)) != 0;
}

#else

int RCCE_flag_alloc(RCCE_FLAG *flag) {
    t_vcharp line = RCCE_malloc(RCCE_LINE_SIZE);
    if (!line)
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_FLAG_NOT_ALLOCATED);
    *flag = (RCCE_FLAG)line;
    return RCCE_SUCCESS;
}

int RCCE_flag_free(RCCE_FLAG *flag) {
    if (!*flag || !isles_in_buffers(*flag))
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_FLAG_NOT_ALLOCATED);
    RCCE_free((t_vcharp)*flag);
    *flag = NULL;
    return RCCE_SUCCESS;
}

static t_vcharp flag_address(RCCE_FLAG flag) { return (t_vcharp)flag; }

extern inline void isles_flag_store(RCCE_FLAG flag, int value, uint32_t tag, int rank);
extern inline void isles_flag_write(RCCE_FLAG *flag, int value, uint32_t tag, int rank, enum costs);
extern inline void isles_flag_wait(RCCE_FLAG flag, int value, enum costs);
extern inline void isles_flag_take(RCCE_FLAG *flag, enum costs);

uint32_t isles_flag_tag(RCCE_FLAG flag) {
    return ((volatile uint32_t *)isles_at(flag, (int)isles_machine.rank))[1];
}

static int value_at(RCCE_FLAG flag, int rank) {
    return __atomic_load_n((volatile int *)isles_at(flag, rank), __ATOMIC_ACQUIRE);
}

#endif

volatile void *isles_flag_at(RCCE_FLAG flag, int rank) { return isles_at(flag_address(flag), rank); }

int isles_flag_test(RCCE_FLAG flag, int value, enum costs costs) {
    if (isles_modelled())
        isles_request((struct request){.operation = OP_LOOK,
                                       .target = isles_machine.rank,
                                       .line = isles_line(flag_address(flag)),
                                       .value = 1,
                                       .costs = costs});
    return value_at(flag, (int)isles_machine.rank) == value;
}

static int wrong_with(RCCE_FLAG flag, int rank) {
    if (!flag_address(flag))
        return RCCE_ERROR_FLAG_UNDEFINED;
    if (!isles_is_rank(rank))
        return RCCE_ERROR_ID;
    return isles_in_buffers(flag_address(flag)) ? RCCE_SUCCESS : RCCE_ERROR_FLAG_NOT_IN_COMM_BUFFER;
}

int RCCE_flag_write(RCCE_FLAG *flag, RCCE_FLAG_STATUS value, int rank) {
    int wrong = flag ? wrong_with(*flag, rank) : RCCE_ERROR_FLAG_UNDEFINED;
    if (!wrong && !is_status(value))
        wrong = RCCE_ERROR_FLAG_STATUS_UNDEFINED;
    if (wrong)
        return RCCE_error_return(RCCE_debug_synch, wrong);
    isles_flag_write(flag, value, 0, rank, COSTS_RCCE);
    return RCCE_SUCCESS;
}

int RCCE_flag_read(RCCE_FLAG flag, RCCE_FLAG_STATUS *value, int rank) {
    int wrong = wrong_with(flag, rank);
    if (!wrong && !value)
        wrong = RCCE_ERROR_VAL_UNDEFINED;
    if (wrong)
        return RCCE_error_return(RCCE_debug_synch, wrong);
    if (isles_modelled())
        isles_request((struct request){.operation = OP_LOOK,
                                       .target = (uint32_t)rank,
                                       .line = isles_line(flag_address(flag)),
                                       .value = 1});
    *value = value_at(flag, rank);
    return RCCE_SUCCESS;
}

int RCCE_wait_until(RCCE_FLAG flag, RCCE_FLAG_STATUS value) {
    int wrong = wrong_with(flag, (int)isles_machine.rank);
    if (!wrong && !is_status(value))
        wrong = RCCE_ERROR_FLAG_STATUS_UNDEFINED;
    if (wrong)
        return RCCE_error_return(RCCE_debug_synch, wrong);
    enum call before = isles_enter(CALL_WAIT_UNTIL, -1);
    isles_flag_wait(flag, value, COSTS_RCCE);
    isles_leave(before);
    return RCCE_SUCCESS;
}

int RCCE_test_flag(RCCE_FLAG flag, RCCE_FLAG_STATUS value, int *result) {
    int wrong = wrong_with(flag, (int)isles_machine.rank);
    if (wrong)
        return RCCE_error_return(RCCE_debug_synch, wrong);
    isles_relax();
    *result = isles_flag_test(flag, value, COSTS_RCCE);
    return RCCE_SUCCESS;
}

int RCCE_probe(RCCE_FLAG flag) {
    int result = 0;
    RCCE_test_flag(flag, RCCE_FLAG_SET, &result);
    return result;
}
