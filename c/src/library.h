/* What the files of the library share with each other. */
#ifndef ISLES_LIBRARY_H
#define ISLES_LIBRARY_H

#include "RCCE_lib.h"
#include "port.h"

/* Kinds of errors for RCCE_debug_set. */
extern int RCCE_debug_synch, RCCE_debug_comm, RCCE_debug_RPC, RCCE_debug_debug;

/* The next part of a message, as RCCE cuts it: whole chunks, then whole lines, then the rest of a line. */
static inline size_t isles_part(size_t left, size_t chunk) {
    if (left >= chunk)
        return chunk;
    size_t lines = left / RCCE_LINE_SIZE * RCCE_LINE_SIZE;
    return lines ? lines : left;
}

/* Moves `bytes` of private memory into the own buffer at `buffer`, in whole lines; and from `rank`'s buffer back. */
void isles_fill(t_vcharp buffer, const char *private_memory, size_t bytes, enum costs);
void isles_fetch(char *private_memory, t_vcharp buffer, size_t bytes, int rank, enum costs);

/* Flags with the costs of a library. `tag`: a second word in a line-sized flag. */
void isles_flag_write(RCCE_FLAG *flag, int value, uint32_t tag, int rank, enum costs);
void isles_flag_wait(RCCE_FLAG flag, int value, enum costs);
void isles_flag_take(RCCE_FLAG *flag, enum costs costs);    /* waits until it is set, and clears it */
int isles_flag_test(RCCE_FLAG flag, int value, enum costs); /* on the own copy */
uint32_t isles_flag_tag(RCCE_FLAG flag);
volatile void *isles_flag_at(RCCE_FLAG flag, int rank); /* its copy in the buffer of `rank` */

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
