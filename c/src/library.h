/* What the files of the library share with each other. */
#ifndef ISLES_LIBRARY_H
#define ISLES_LIBRARY_H

#include "RCCE_lib.h"
#include "port.h"

#include <string.h>

/* Kinds of errors for RCCE_debug_set. */
extern int RCCE_debug_synch, RCCE_debug_comm, RCCE_debug_RPC, RCCE_debug_debug;

/* The next part of a message, as RCCE cuts it: whole chunks, then whole lines, then the rest of a line. */
static inline size_t isles_part(size_t left, size_t chunk) {
    if (left >= chunk)
        return chunk;
    size_t lines = left / RCCE_LINE_SIZE * RCCE_LINE_SIZE;
    return lines ? lines : left;
}

/* Tells the model of a copy of `bytes` between private memory and a buffer. */
void isles_charge_copy(enum operation operation, int rank, const volatile void *buffer, uint64_t other, size_t bytes,
                       enum costs costs);
/* Tells the model of a message whose end is no whole line. */
inline void isles_charge_tail(size_t bytes, enum costs costs) {
    if (isles_modelled() && bytes % RCCE_LINE_SIZE)
        isles_request((struct request){.operation = OP_TAIL, .costs = costs});
}

/* A copy, in line if it is a line. */
inline void isles_copy(void *target, const void *source, size_t bytes) {
    if (bytes == RCCE_LINE_SIZE)
        memcpy(target, source, RCCE_LINE_SIZE);
    else
        memcpy(target, source, bytes);
}

/* Moves `bytes` of private memory into the own buffer at `buffer`, in whole lines; and from `rank`'s buffer back. */
inline void isles_fill(t_vcharp buffer, const char *private_memory, size_t bytes, enum costs costs) {
    isles_charge_tail(bytes, costs);
    isles_charge_copy(OP_PUT, (int)isles_machine.rank, buffer, (uintptr_t)private_memory, bytes, costs);
    isles_copy((void *)buffer, private_memory, bytes);
    atomic_signal_fence(memory_order_seq_cst);
}
inline void isles_fetch(char *private_memory, t_vcharp buffer, size_t bytes, int rank, enum costs costs) {
    isles_charge_copy(OP_GET, rank, buffer, (uintptr_t)private_memory, bytes, costs);
    isles_copy(private_memory, isles_at(buffer, rank), bytes);
    isles_charge_tail(bytes, costs);
}

/* Flags with the costs of a library. `tag`: a second word in a line-sized flag. `isles_flag_take` waits until a flag is
 * set, and clears it; `isles_flag_test` looks at the own copy. */
int isles_flag_test(RCCE_FLAG flag, int value, enum costs);
uint32_t isles_flag_tag(RCCE_FLAG flag);
volatile void *isles_flag_at(RCCE_FLAG flag, int rank); /* its copy in the buffer of `rank` */

#ifdef SINGLEBITFLAGS

void isles_flag_write(RCCE_FLAG *flag, int value, uint32_t tag, int rank, enum costs);
void isles_flag_wait(RCCE_FLAG flag, int value, enum costs);
void isles_flag_take(RCCE_FLAG *flag, enum costs);

#else

inline void isles_flag_store(RCCE_FLAG flag, int value, uint32_t tag, int rank) {
    volatile uint32_t *words = (volatile uint32_t *)isles_at(flag, rank);
    words[1] = tag;
    __atomic_store_n((volatile int *)words, value, __ATOMIC_RELEASE);
    isles_wake(rank);
}

inline void isles_flag_write(RCCE_FLAG *flag, int value, uint32_t tag, int rank, enum costs costs) {
    if (isles_modelled())
        isles_request((struct request){
            .operation = OP_SET, .target = (uint32_t)rank, .line = isles_line(*flag), .costs = costs});
    isles_flag_store(*flag, value, tag, rank);
}

inline void isles_flag_wait(RCCE_FLAG flag, int value, enum costs costs) {
    struct awaited awaited = {.address = isles_at(flag, (int)isles_machine.rank), .mask = 0, .value = value};
    isles_wait(&awaited, costs);
}

/* One request to the model instead of two: half of the time of a short message on a host is requests. */
inline void isles_flag_take(RCCE_FLAG *flag, enum costs costs) {
    if (isles_modelled())
        isles_request((struct request){.operation = OP_TAKE,
                                       .target = isles_machine.rank,
                                       .line = isles_line(*flag),
                                       .address = (uintptr_t)isles_at(*flag, (int)isles_machine.rank),
                                       .value = RCCE_FLAG_SET,
                                       .costs = costs});
    else
        isles_flag_wait(*flag, RCCE_FLAG_SET, costs);
    isles_flag_store(*flag, RCCE_FLAG_UNSET, 0, RCCE_IAM);
}

#endif

void isles_buffers_begin(void);      /* books of the message buffer */
void isles_buffers_simple(void);     /* flags and chunk of simple mode */
void isles_shared_begin(void);
int isles_make_communicator(int (*color)(int, void *), void *, RCCE_COMM *);
void isles_power_begin(void);
int isles_power_communicator(void); /* RCCE_P_COMM */
int isles_put(t_vcharp target, t_vcharp source, int bytes, int rank, enum costs);
int isles_get(t_vcharp target, t_vcharp source, int bytes, int rank, enum costs);

/* Has this processor own the lines of the cache into which an answer to `source` will go, while it waits anyway: they
 * would be asked for one after the other when the answer is on its way. */
void isles_prepare_answer(int source);

/* Sends and receives a part by part; `buffer`, `chunk` and flags as in gory mode. */
void isles_send(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size, int dest,
                enum costs);
void isles_recv(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size, int source,
                enum costs);

#endif
