/* What iRCCE's files need of requests. */
#ifndef ISLES_IREQUEST_H
#define ISLES_IREQUEST_H

#include "iRCCE.h"

int isles_request_is_over(const iRCCE_SEND_REQUEST *request);
/* Goes on with all requests as far as that is possible without waiting. */
void isles_push_requests(void);
/* Whether any request is pending. */
int isles_has_requests(void);
/* Wait until no send, or no receive from `source` (which may be anybody), is pending. They go on with all requests: a
 * peer may wait for one that this call is not about. */
void isles_finish_sends(void);
void isles_finish_receives(int source);
/* Returns a rank that has sent a message of which no pending receive takes anything, `source` or, if that is anybody, any
 * one; -1 if there is none now. */
int isles_sender(int source);
/* Waits for a flag to be set, and meanwhile goes on with requests; not with receives from `apart`, whose message is under
 * way otherwise. `take` also clears the flag. */
void isles_await_flag(RCCE_FLAG *flag, int apart);
void isles_take_flag(RCCE_FLAG *flag, int apart);
/* Sets what iRCCE_get_length returns. */
void isles_set_last_length(size_t length);

#endif
