/* One-sided calls and flags of RCCE: for programs in gory mode, and for those that include RCCE_lib.h. */
#ifndef RCCE_GORY_H
#define RCCE_GORY_H

#include "RCCE.h"

#ifdef __cplusplus
extern "C" {
#endif

t_vcharp RCCE_malloc(size_t);
t_vcharp RCCE_malloc_request(size_t, size_t *);
void RCCE_free(t_vcharp);
int RCCE_put(t_vcharp, t_vcharp, int, int);
int RCCE_get(t_vcharp, t_vcharp, int, int);
int RCCE_put_char(t_vcharp, t_vcharp, int);
int RCCE_get_char(t_vcharp, t_vcharp, int);
int RCCE_flag_alloc(RCCE_FLAG *);
int RCCE_flag_free(RCCE_FLAG *);
int RCCE_flag_write(RCCE_FLAG *, RCCE_FLAG_STATUS, int);
int RCCE_flag_read(RCCE_FLAG, RCCE_FLAG_STATUS *, int);
int RCCE_wait_until(RCCE_FLAG, RCCE_FLAG_STATUS);

#ifdef __cplusplus
}
#endif
#endif
