/* iRCCE: non-blocking and pipelined messages beside RCCE, as Isles provides it.
 *
 * Names and signatures are those of iRCCE 1.2 and 2.0. A request moves only while the program is in a call of iRCCE:
 * test, wait or push. Requests need simple mode (no -DGORY). Do not mix collective calls with pending requests. */
#ifndef IRCCE_H
#define IRCCE_H

#include "RCCE.h"
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define iRCCE_SUCCESS 0
#define iRCCE_ERROR -1
#define iRCCE_PENDING -2
#define iRCCE_RESERVED -3
#define iRCCE_NOT_ENQUEUED -4
#define iRCCE_MAX_TAGGED_LEN (RCCE_LINE_SIZE - (int)sizeof(int))

extern const int iRCCE_ANY_SOURCE;
extern const int iRCCE_ANY_LENGTH;

/* A message under way. The fields are the library's. */
typedef struct iRCCE_MESSAGE_REQUEST {
    char *buffer;
    size_t size;
    size_t moved;     /* bytes whose part has been handed over */
    size_t part;      /* bytes of the part under way */
    int peer;
    int state;
    struct iRCCE_MESSAGE_REQUEST *next;
} iRCCE_SEND_REQUEST, iRCCE_RECV_REQUEST;

/* Requests that are waited for together. The fields are the library's. */
typedef struct {
    int entries;
    int room;
    struct iRCCE_WAIT_ENTRY {
        iRCCE_SEND_REQUEST *send; /* null if the entry is a receive */
        iRCCE_RECV_REQUEST *recv;
    } *entry;
} iRCCE_WAIT_LIST;

int iRCCE_init(void);

/* Enqueues a send. Returns iRCCE_SUCCESS if it is over, iRCCE_PENDING if it is under way, iRCCE_RESERVED if another
 * send was under way and this one waits for it. Without a request (NULL) it returns when the send is over. */
int iRCCE_isend(char *, ssize_t, int, iRCCE_SEND_REQUEST *);
int iRCCE_isend_test(iRCCE_SEND_REQUEST *, int *);
int iRCCE_isend_wait(iRCCE_SEND_REQUEST *);
int iRCCE_isend_push(void);
int iRCCE_irecv(char *, ssize_t, int, iRCCE_RECV_REQUEST *);
int iRCCE_irecv_test(iRCCE_RECV_REQUEST *, int *);
int iRCCE_irecv_wait(iRCCE_RECV_REQUEST *);
int iRCCE_irecv_push(void);
int iRCCE_isend_cancel(iRCCE_SEND_REQUEST *, int *);
int iRCCE_irecv_cancel(iRCCE_RECV_REQUEST *, int *);

/* Blocking. */
int iRCCE_ssend(char *, ssize_t, int);
int iRCCE_srecv(char *, ssize_t, int);
int iRCCE_srecv_test(char *, ssize_t, int, int *);
int iRCCE_issend(char *, ssize_t, int, iRCCE_SEND_REQUEST *);
int iRCCE_isrecv(char *, ssize_t, int, iRCCE_RECV_REQUEST *);
#define iRCCE_send iRCCE_ssend
#define iRCCE_recv iRCCE_srecv
#define iRCCE_recv_test iRCCE_srecv_test
#define iRCCE_issend_test iRCCE_isend_test
#define iRCCE_issend_wait iRCCE_isend_wait
#define iRCCE_issend_push iRCCE_isend_push
#define iRCCE_isrecv_test iRCCE_irecv_test
#define iRCCE_isrecv_wait iRCCE_irecv_wait
#define iRCCE_isrecv_push iRCCE_irecv_push

/* The names that these have in the library of RWTH Aachen. */
#define RCCE_SEND_REQUEST iRCCE_SEND_REQUEST
#define RCCE_RECV_REQUEST iRCCE_RECV_REQUEST
#define RCCE_isend iRCCE_isend
#define RCCE_isend_test iRCCE_isend_test
#define RCCE_isend_wait iRCCE_isend_wait
#define RCCE_isend_push iRCCE_isend_push
#define RCCE_irecv iRCCE_irecv
#define RCCE_irecv_test iRCCE_irecv_test
#define RCCE_irecv_wait iRCCE_irecv_wait
#define RCCE_irecv_push iRCCE_irecv_push

int iRCCE_probe(int, int *);
int iRCCE_iprobe(int, int *, int *);

void iRCCE_init_wait_list(iRCCE_WAIT_LIST *);
void iRCCE_add_to_wait_list(iRCCE_WAIT_LIST *, iRCCE_SEND_REQUEST *, iRCCE_RECV_REQUEST *);
int iRCCE_test_all(iRCCE_WAIT_LIST *, int *);
int iRCCE_wait_all(iRCCE_WAIT_LIST *);
int iRCCE_test_any(iRCCE_WAIT_LIST *, iRCCE_SEND_REQUEST **, iRCCE_RECV_REQUEST **);
int iRCCE_wait_any(iRCCE_WAIT_LIST *, iRCCE_SEND_REQUEST **, iRCCE_RECV_REQUEST **);

int iRCCE_get_dest(iRCCE_SEND_REQUEST *);
int iRCCE_get_source(iRCCE_RECV_REQUEST *);
int iRCCE_get_size(iRCCE_SEND_REQUEST *, iRCCE_RECV_REQUEST *);
int iRCCE_get_length(void);

int iRCCE_put(t_vcharp, t_vcharp, int, int);
int iRCCE_get(t_vcharp, t_vcharp, int, int);
void *iRCCE_memcpy_put(void *, const void *, size_t);
void *iRCCE_memcpy_get(void *, const void *, size_t);
#define iRCCE_memcpy iRCCE_memcpy_put

int iRCCE_barrier(RCCE_COMM *);
int iRCCE_bcast(char *, size_t, int, RCCE_COMM);
int iRCCE_mcast(char *, size_t, int);
int iRCCE_msend(char *, ssize_t);
int iRCCE_mrecv(char *, ssize_t, int);

t_vcharp iRCCE_malloc(size_t);
int iRCCE_flag_alloc(RCCE_FLAG *);
int iRCCE_flag_write(RCCE_FLAG *, RCCE_FLAG_STATUS, int);
int iRCCE_flag_read(RCCE_FLAG, RCCE_FLAG_STATUS *, int);
int iRCCE_wait_until(RCCE_FLAG, RCCE_FLAG_STATUS);

#ifndef SINGLEBITFLAGS
/* Flags of a line carry up to iRCCE_MAX_TAGGED_LEN bytes beside their value. */
int iRCCE_flag_alloc_tagged(RCCE_FLAG *);
int iRCCE_flag_write_tagged(RCCE_FLAG *, RCCE_FLAG_STATUS, int, void *, int);
int iRCCE_flag_read_tagged(RCCE_FLAG, RCCE_FLAG_STATUS *, int, void *, int);
int iRCCE_wait_tagged(RCCE_FLAG, RCCE_FLAG_STATUS, void *, int);
int iRCCE_test_tagged(RCCE_FLAG, RCCE_FLAG_STATUS, int *, void *, int);
int iRCCE_get_max_tagged_len(void);
#endif

#ifdef AIR
/* An atomic counter; on the SCC a register outside the chip. */
typedef struct {
    int index;
} iRCCE_AIR;
int iRCCE_atomic_alloc(iRCCE_AIR **);
int iRCCE_atomic_inc(iRCCE_AIR *, int *);
int iRCCE_atomic_read(iRCCE_AIR *, int *);
int iRCCE_atomic_write(iRCCE_AIR *, int);
#endif

#ifdef __cplusplus
}
#endif
#endif
