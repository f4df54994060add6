/* What programs reach for below RCCE's public interface: the buffers' addresses, one-sided calls in simple mode.
 *
 * The names are those of the original's internal header. Programs that use others of its names need changes. */
#ifndef RCCE_LIB_H
#define RCCE_LIB_H

#include "RCCE_gory.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PAD32byte(x) (((x) + RCCE_LINE_SIZE - 1) / RCCE_LINE_SIZE * RCCE_LINE_SIZE)
#define RCCE_FLAGS_PER_BYTE 8
#define RCCE_FLAGS_PER_LINE (RCCE_LINE_SIZE * RCCE_FLAGS_PER_BYTE)

extern t_vcharp RCCE_comm_buffer[RCCE_MAXNP]; /* each rank's message buffer, RCCE_BUFF_SIZE bytes */
extern int RCCE_NP, RCCE_IAM, RCCE_BUFF_SIZE;
extern int RC_COREID[RCCE_MAXNP], RC_MY_COREID;
extern double RC_REFCLOCKGHZ;
extern t_vcharp RCCE_buff_ptr; /* where messages of simple mode lie in the own buffer */
extern size_t RCCE_chunk;      /* and their longest part, in bytes */
extern RCCE_FLAG RCCE_sent_flag[RCCE_MAXNP], RCCE_ready_flag[RCCE_MAXNP];

int RCCE_test_flag(RCCE_FLAG, RCCE_FLAG_STATUS, int *); /* whether the own copy has that value */
int RCCE_probe(RCCE_FLAG);
int RCCE_error_return(int, int); /* prints the error if the first argument is not 0; returns the second */
void RCCE_fool_write_combine_buffer(void);
void RC_cache_invalidate(void);
unsigned long long _rdtsc(void); /* cycles of the core at the reference clock */

#ifdef __cplusplus
}
#endif
#endif
