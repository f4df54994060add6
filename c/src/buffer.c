/* The message buffer of each rank: its books, one-sided puts and gets, copies of messages.
 *
 * Every rank keeps its own books. They are equal because all ranks make the same calls in one order, which
 * `isles_collective` checks. In gory mode memory is first fit; in simple mode only single lines are given, from the
 * front of what messages use, which is then shorter for good. */
#include "library.h"

#include <stdatomic.h>
#include <string.h>

t_vcharp RCCE_comm_buffer[RCCE_MAXNP];
int RCCE_BUFF_SIZE = RCCE_BUFF_SIZE_MAX;
t_vcharp RCCE_buff_ptr;
size_t RCCE_chunk;

/* Lines of the block that begins at a line; 0 elsewhere. */
static unsigned short block_lines[LINES];
static int is_simple;

void isles_buffers_begin(void) {
    for (int rank = 0; rank < (int)isles_machine.ranks; rank++)
        RCCE_comm_buffer[rank] = isles_machine.buffers + (size_t)rank * RCCE_BUFF_SIZE_MAX;
    memset(block_lines, 0, sizeof block_lines);
    is_simple = 0;
    RCCE_buff_ptr = RCCE_comm_buffer[isles_machine.rank];
    RCCE_chunk = RCCE_BUFF_SIZE_MAX;
}

/* First fit; null if there is no room. */
static t_vcharp allocate(size_t lines) {
    size_t end = is_simple ? (size_t)(RCCE_buff_ptr - RCCE_comm_buffer[isles_machine.rank]) / RCCE_LINE_SIZE : LINES;
    for (size_t start = 0; start + lines <= end;) {
        size_t free_lines = 0;
        while (free_lines < lines && !block_lines[start + free_lines])
            free_lines++;
        if (free_lines == lines) {
            block_lines[start] = (unsigned short)lines;
            return RCCE_comm_buffer[isles_machine.rank] + start * RCCE_LINE_SIZE;
        }
        start += free_lines + block_lines[start + free_lines];
    }
    return NULL;
}

static t_vcharp allocate_any(size_t bytes) {
    if (bytes == 0 || bytes % RCCE_LINE_SIZE || bytes > RCCE_BUFF_SIZE_MAX)
        return NULL;
    if (is_simple && bytes != RCCE_LINE_SIZE)
        return NULL;
    t_vcharp memory = allocate(bytes / RCCE_LINE_SIZE);
    if (!memory && is_simple && RCCE_chunk > RCCE_LINE_SIZE) {
        RCCE_buff_ptr += RCCE_LINE_SIZE;
        RCCE_chunk -= RCCE_LINE_SIZE;
        memory = allocate(1);
    }
    return memory;
}

void isles_buffers_simple(void) {
    is_simple = 1;
    for (int rank = 0; rank < RCCE_NP; rank++)
        RCCE_flag_alloc(&RCCE_sent_flag[rank]);
    for (int rank = 0; rank < RCCE_NP; rank++)
        RCCE_flag_alloc(&RCCE_ready_flag[rank]);
}

t_vcharp RCCE_malloc(size_t bytes) {
    isles_collective(CALL_MALLOC, bytes);
    return allocate_any(bytes);
}

t_vcharp RCCE_malloc_request(size_t bytes, size_t *obtained) {
    isles_collective(CALL_MALLOC, bytes);
    t_vcharp memory = NULL;
    size_t request = bytes;
    while (!(memory = allocate_any(request)) && request > RCCE_LINE_SIZE)
        request = PAD32byte(request / 2);
    *obtained = memory ? request : 0;
    return memory;
}

void RCCE_free(t_vcharp memory) {
    if (!memory || !isles_in_buffers(memory))
        return;
    isles_collective(CALL_FREE, isles_line(memory));
    block_lines[isles_line(memory)] = 0;
}

void RC_cache_invalidate(void) {}
void RCCE_fool_write_combine_buffer(void) {}

extern inline void isles_charge_tail(size_t bytes, enum costs);
extern inline void isles_copy(void *target, const void *source, size_t bytes);
extern inline void isles_fill(t_vcharp buffer, const char *private_memory, size_t bytes, enum costs);
extern inline void isles_fetch(char *private_memory, t_vcharp buffer, size_t bytes, int rank, enum costs);

void isles_charge_copy(enum operation operation, int rank, const volatile void *buffer, uint64_t other, size_t bytes,
                       enum costs costs) {
    if (isles_modelled())
        isles_request((struct request){.operation = operation,
                                       .target = (uint32_t)rank,
                                       .line = isles_line(buffer),
                                       .count = (uint32_t)((bytes + RCCE_LINE_SIZE - 1) / RCCE_LINE_SIZE),
                                       .address = other,
                                       .value = other,
                                       .costs = costs});
}

/* What is wrong with a put or a get between `buffer` of `rank` and `memory`. */
static int wrong_with(t_vcharp buffer, t_vcharp memory, int bytes, int rank, int buffer_error, int memory_error) {
    if (!buffer)
        return buffer_error;
    if (!memory)
        return memory_error;
    if (!isles_is_rank(rank))
        return RCCE_ERROR_ID;
    if (bytes < 0 || bytes % RCCE_LINE_SIZE)
        return RCCE_ERROR_MESSAGE_LENGTH;
    if (!isles_in_buffers(buffer) || isles_at(buffer, 0) + bytes > isles_machine.buffers + RCCE_BUFF_SIZE_MAX)
        return buffer_error;
    if (isles_line(buffer) * RCCE_LINE_SIZE != (uintptr_t)isles_at(buffer, 0) - (uintptr_t)isles_machine.buffers)
        return RCCE_ERROR_ALIGNMENT;
    if (isles_in_buffers(memory) && (uintptr_t)memory % RCCE_LINE_SIZE)
        return RCCE_ERROR_ALIGNMENT;
    unsigned char *there = isles_at(buffer, rank);
    if ((t_vcharp)there < memory + bytes && memory < (t_vcharp)there + bytes)
        return RCCE_ERROR_DATA_OVERLAP;
    return RCCE_SUCCESS;
}

int isles_put(t_vcharp target, t_vcharp source, int bytes, int rank, enum costs costs) {
    int wrong = wrong_with(target, source, bytes, rank, RCCE_ERROR_TARGET, RCCE_ERROR_SOURCE);
    if (wrong)
        return RCCE_error_return(RCCE_debug_comm, wrong);
    isles_charge_copy(OP_PUT, rank, target, (uintptr_t)source, (size_t)bytes, costs);
    memcpy(isles_at(target, rank), (void *)source, (size_t)bytes);
    isles_wake(rank);
    return RCCE_SUCCESS;
}

int isles_get(t_vcharp target, t_vcharp source, int bytes, int rank, enum costs costs) {
    int wrong = wrong_with(source, target, bytes, rank, RCCE_ERROR_SOURCE, RCCE_ERROR_TARGET);
    if (wrong)
        return RCCE_error_return(RCCE_debug_comm, wrong);
    if (isles_in_buffers(target))
        isles_charge_copy(OP_RELAY, rank, source, isles_line(target), (size_t)bytes, costs);
    else
        isles_charge_copy(OP_GET, rank, source, (uintptr_t)target, (size_t)bytes, costs);
    atomic_thread_fence(memory_order_acquire);
    memcpy((void *)target, isles_at(source, rank), (size_t)bytes);
    if (isles_in_buffers(target))
        isles_wake((int)isles_machine.rank);
    return RCCE_SUCCESS;
}

int RCCE_put(t_vcharp target, t_vcharp source, int bytes, int rank) {
    return isles_put(target, source, bytes, rank, COSTS_RCCE);
}

int RCCE_get(t_vcharp target, t_vcharp source, int bytes, int rank) {
    return isles_get(target, source, bytes, rank, COSTS_RCCE);
}

int RCCE_put_char(t_vcharp target, t_vcharp source, int rank) {
    if (!isles_is_rank(rank))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    if (isles_modelled())
        isles_request((struct request){.operation = OP_SET, .target = (uint32_t)rank, .line = isles_line(target)});
    __atomic_store_n(isles_at(target, rank), *source, __ATOMIC_RELEASE);
    isles_wake(rank);
    return RCCE_SUCCESS;
}

int RCCE_get_char(t_vcharp target, t_vcharp source, int rank) {
    if (!isles_is_rank(rank))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    if (isles_modelled())
        isles_request(
            (struct request){.operation = OP_LOOK, .target = (uint32_t)rank, .line = isles_line(source), .value = 1});
    *target = __atomic_load_n(isles_at(source, rank), __ATOMIC_ACQUIRE);
    return RCCE_SUCCESS;
}
