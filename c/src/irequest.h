/* What iRCCE's files need of requests. */
#ifndef ISLES_IREQUEST_H
#define ISLES_IREQUEST_H

#include "iRCCE.h"

int isles_request_is_over(const iRCCE_SEND_REQUEST *request);
/* Goes on with all requests as far as that is possible without waiting. */
void isles_push_requests(void);
/* Waits until no request is pending. */
void isles_finish_requests(void);
/* Sets what iRCCE_get_length returns. */
void isles_set_last_length(size_t length);

#endif
