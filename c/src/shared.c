/* Off-chip memory that all ranks share, at one address in all of them.
 *
 * First fit, with books at each rank: the same calls in one order give the same addresses. On the SCC the memory is not
 * coherent and programs flush; here it is coherent, so a missing flush does not show. */
#include "library.h"

#include <stdatomic.h>

#define BLOCKS 4096
#define ALIGNMENT 64

/* In the order of their addresses. */
static struct {
    size_t start, bytes;
} blocks[BLOCKS];
static int block_count;

void isles_shared_begin(void) { block_count = 0; }

t_vcharp RCCE_shmalloc(size_t bytes) {
    isles_collective(CALL_SHMALLOC, bytes);
    size_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, start = 0;
    int at = 0;
    if (!bytes || room < bytes || block_count == BLOCKS)
        return NULL;
    while (at < block_count && blocks[at].start - start < room) {
        start = blocks[at].start + blocks[at].bytes;
        at++;
    }
    if (room > isles_machine.shared_bytes - start)
        return NULL;
    for (int later = block_count++; later > at; later--)
        blocks[later] = blocks[later - 1];
    blocks[at].start = start;
    blocks[at].bytes = room;
    return isles_machine.shared + start;
}

void RCCE_shfree(t_vcharp memory) {
    size_t start = (size_t)(memory - isles_machine.shared);
    isles_collective(CALL_SHFREE, start);
    for (int at = 0; at < block_count; at++)
        if (blocks[at].start == start) {
            block_count--;
            for (; at < block_count; at++)
                blocks[at] = blocks[at + 1];
            return;
        }
}

void RCCE_shflush(void) { atomic_thread_fence(memory_order_seq_cst); }

int RCCE_DCMflush(void) {
    RCCE_shflush();
    return RCCE_SUCCESS;
}
