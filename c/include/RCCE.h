/* RCCE: the communication library of the Intel SCC, as Isles provides it.
 *
 * Names, signatures and error codes are those of RCCE 1.1 and 2.0, so that programs compile unchanged; the text and the
 * implementation are Isles' own. Compile programs with `isles cc`, which defines what the options say:
 *
 *   -DGORY                   one-sided calls, and sends with explicit flags
 *   -DSINGLEBITFLAGS         a flag is a bit of a line (isles cc --bit-flags); default: a line for each flag
 *   -DRC_POWER_MANAGEMENT    power calls
 *
 * Lengths are in bytes, ranks count from 0. Calls return RCCE_SUCCESS or an error code unless they say otherwise. */
#ifndef RCCE_H
#define RCCE_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#define _RCCE "1.1"
#define RCCE_VERSION "1.1.0.x (Isles)"
#define RCCE_APP main
#define STDERR stdout

#define RCCE_LINE_SIZE 32
#define LOG2_LINE_SIZE 5
#define RCCE_BUFF_SIZE_MAX 8192
#define RCCE_MAXNP 48
#define RCCE_SHM_SIZE_MAX (64 * 1024 * 1024)
#define RCCE_MAX_ERROR_STRING 45

#define RCCE_SUCCESS 0
#define RCCE_ERROR_BASE 1234321
#define RCCE_ERROR_TARGET (RCCE_ERROR_BASE + 1)
#define RCCE_ERROR_SOURCE (RCCE_ERROR_BASE + 2)
#define RCCE_ERROR_ID (RCCE_ERROR_BASE + 3)
#define RCCE_ERROR_MESSAGE_LENGTH (RCCE_ERROR_BASE + 4)
#define RCCE_ERROR_FLAG_UNDEFINED (RCCE_ERROR_BASE + 5)
#define RCCE_ERROR_NUM_UES (RCCE_ERROR_BASE + 6)
#define RCCE_ERROR_DATA_OVERLAP (RCCE_ERROR_BASE + 7)
#define RCCE_ERROR_ALIGNMENT (RCCE_ERROR_BASE + 8)
#define RCCE_ERROR_DEBUG_FLAG (RCCE_ERROR_BASE + 9)
#define RCCE_ERROR_FLAG_NOT_IN_COMM_BUFFER (RCCE_ERROR_BASE + 10)
#define RCCE_ERROR_FLAG_STATUS_UNDEFINED (RCCE_ERROR_BASE + 11)
#define RCCE_ERROR_FLAG_NOT_ALLOCATED (RCCE_ERROR_BASE + 12)
#define RCCE_ERROR_VAL_UNDEFINED (RCCE_ERROR_BASE + 13)
#define RCCE_ERROR_INVALID_ERROR_CODE (RCCE_ERROR_BASE + 14)
#define RCCE_ERROR_RPC_NOT_ALLOCATED (RCCE_ERROR_BASE + 15)
#define RCCE_ERROR_RPC_INTERNAL (RCCE_ERROR_BASE + 16)
#define RCCE_ERROR_MULTIPLE_RPC_REQUESTS (RCCE_ERROR_BASE + 17)
#define RCCE_ERROR_FDIVIDER (RCCE_ERROR_BASE + 18)
#define RCCE_ERROR_FREQUENCY_EXCEEDED (RCCE_ERROR_BASE + 19)
#define RCCE_ERROR_NO_ACTIVE_RPC_REQUEST (RCCE_ERROR_BASE + 20)
#define RCCE_ERROR_STALE_RPC_REQUEST (RCCE_ERROR_BASE + 21)
#define RCCE_ERROR_COMM_UNDEFINED (RCCE_ERROR_BASE + 22)
#define RCCE_ERROR_ILLEGAL_OP (RCCE_ERROR_BASE + 23)
#define RCCE_ERROR_ILLEGAL_TYPE (RCCE_ERROR_BASE + 24)
#define RCCE_ERROR_MALLOC (RCCE_ERROR_BASE + 25)
#define RCCE_ERROR_COMM_INITIALIZED (RCCE_ERROR_BASE + 26)
#define RCCE_ERROR_CORE_NOT_IN_HOSTFILE (RCCE_ERROR_BASE + 27)
#define RCCE_NUM_ERR_CODES 27

#define RCCE_DEBUG_ALL 111111
#define RCCE_DEBUG_SYNCH 111444
#define RCCE_DEBUG_COMM 111555
#define RCCE_DEBUG_RPC 111666
#define RCCE_DEBUG_DEBUG 111888

#define RCCE_FLAG_SET 1
#define RCCE_FLAG_UNSET 0

#define RCCE_NUM_OPS 4
#define RCCE_OP_BASE 23232323
#define RCCE_SUM RCCE_OP_BASE
#define RCCE_MIN (RCCE_OP_BASE + 1)
#define RCCE_MAX (RCCE_OP_BASE + 2)
#define RCCE_PROD (RCCE_OP_BASE + 3)

#define RCCE_TYPE_BASE 63636363
#define RCCE_INT RCCE_TYPE_BASE
#define RCCE_LONG (RCCE_TYPE_BASE + 1)
#define RCCE_FLOAT (RCCE_TYPE_BASE + 2)
#define RCCE_DOUBLE (RCCE_TYPE_BASE + 3)

#define RCCE_POWER_DEFAULT -99999
#define RCCE_COMM_INITIALIZED 45328976
#define RCCE_COMM_NOT_INITIALIZED -45328976

typedef volatile unsigned char *t_vcharp;
typedef int RCCE_FLAG_STATUS;

/* Opaque: a flag at the same offset of every message buffer. */
#ifdef SINGLEBITFLAGS
typedef struct {
    int location; /* of the bit in its line */
    t_vcharp line_address;
} RCCE_FLAG;
#else
typedef volatile int *RCCE_FLAG;
#endif

typedef struct {
    int size;
    int my_rank;
    int initialized;
    int member[RCCE_MAXNP];
    RCCE_FLAG gather;
    RCCE_FLAG release;
} RCCE_COMM;

typedef struct {
    int release;
    int old_voltage_level;
    int new_voltage_level;
    int old_frequency_divider;
    int new_frequency_divider;
    long long start_cycle;
} RCCE_REQUEST;

extern RCCE_COMM RCCE_COMM_WORLD;
#ifdef RC_POWER_MANAGEMENT
extern RCCE_COMM RCCE_P_COMM;
#endif

/* One symbol for each mode, so that the library knows for which mode the program was compiled. */
#if defined(GORY) && defined(RC_POWER_MANAGEMENT)
int RCCE_init(int *, char ***) __asm__("RCCE_init_gory_power");
#elif defined(GORY)
int RCCE_init(int *, char ***) __asm__("RCCE_init_gory");
#elif defined(RC_POWER_MANAGEMENT)
int RCCE_init(int *, char ***) __asm__("RCCE_init_power");
#else
int RCCE_init(int *, char ***);
#endif
int RCCE_finalize(void);
double RCCE_wtime(void); /* seconds; of the chip on a modelled chip */
int RCCE_ue(void);
int RCCE_num_ues(void);

int RCCE_comm_split(int (*)(int, void *), void *, RCCE_COMM *);
int RCCE_comm_free(RCCE_COMM *);
int RCCE_comm_size(RCCE_COMM, int *);
int RCCE_comm_rank(RCCE_COMM, int *);
void RCCE_fence(void);
int RCCE_barrier(RCCE_COMM *);

int RCCE_error_string(int, char *, int *);
int RCCE_debug_set(int);
int RCCE_debug_unset(int);

t_vcharp RCCE_shmalloc(size_t);
void RCCE_shfree(t_vcharp);
void RCCE_shflush(void);
int RCCE_DCMflush(void);

int RCCE_acquire_lock(int);
int RCCE_release_lock(int);

#ifdef GORY
int RCCE_send(char *, t_vcharp, size_t, RCCE_FLAG *, RCCE_FLAG *, size_t, int) __asm__("RCCE_send_gory");
int RCCE_recv(char *, t_vcharp, size_t, RCCE_FLAG *, RCCE_FLAG *, size_t, int) __asm__("RCCE_recv_gory");
int RCCE_recv_test(char *, t_vcharp, size_t, RCCE_FLAG *, RCCE_FLAG *, size_t, int, int *)
    __asm__("RCCE_recv_test_gory");
#else
int RCCE_send(char *, size_t, int);
int RCCE_recv(char *, size_t, int);
int RCCE_recv_test(char *, size_t, int, int *);
int RCCE_bcast(char *, size_t, int, RCCE_COMM);
int RCCE_reduce(char *, char *, int, int, int, int, RCCE_COMM);
int RCCE_allreduce(char *, char *, int, int, int, RCCE_COMM);
#endif

#ifdef RC_POWER_MANAGEMENT
int RCCE_power_domain(void);
int RCCE_power_domain_master(void);
int RCCE_power_domain_size(void);
int RCCE_iset_power(int, RCCE_REQUEST *, int *, int *);
int RCCE_wait_power(RCCE_REQUEST *);
int RCCE_set_frequency_divider(int, int *);
#endif

#ifdef __cplusplus
}
#endif

#ifdef GORY
#include "RCCE_gory.h"
#endif
#endif
