/* iRCCE: requests. They move part by part, only while the program calls.
 *
 * One queue for sends, because there is one buffer: the first request fills it. A queue of receives for each source,
 * and one for receives from anybody, which takes a message only if no request for its source waits. */
#include "library.h"

#include "irequest.h"

const int iRCCE_ANY_SOURCE = -1;
const int iRCCE_ANY_LENGTH = -1;

#define ANY_LENGTH ((size_t)-1)

enum { REQUEST_NEW, REQUEST_WAITS_FOR_READY, REQUEST_DONE, REQUEST_CANCELLED };

static iRCCE_SEND_REQUEST *sends;
static iRCCE_RECV_REQUEST *receives[RCCE_MAXNP], *receives_from_any;
static int receive_count; /* in all queues of receives */
static int last_length;

int iRCCE_init(void) {
    sends = NULL;
    receives_from_any = NULL;
    receive_count = 0;
    for (int rank = 0; rank < RCCE_MAXNP; rank++)
        receives[rank] = NULL;
    return iRCCE_SUCCESS;
}

static int is_over(const iRCCE_SEND_REQUEST *request) { return request->state >= REQUEST_DONE; }
int isles_request_is_over(const iRCCE_SEND_REQUEST *request) { return is_over(request); }

static void enqueue(iRCCE_SEND_REQUEST **queue, iRCCE_SEND_REQUEST *request) {
    while (*queue)
        queue = &(*queue)->next;
    *queue = request;
}

static void begin(iRCCE_SEND_REQUEST *request, char *data, ssize_t size, int peer) {
    *request = (iRCCE_SEND_REQUEST){.buffer = data,
                                    .size = size < 0 ? ANY_LENGTH : (size_t)size,
                                    .peer = peer,
                                    .state = size ? REQUEST_NEW : REQUEST_DONE};
}

/* Sends the next part of the first send. */
static void fill(iRCCE_SEND_REQUEST *request) {
    request->part = isles_part(request->size - request->moved, RCCE_chunk);
    isles_fill(RCCE_buff_ptr, request->buffer + request->moved, request->part, COSTS_IRCCE);
    isles_flag_write(&RCCE_sent_flag[RCCE_IAM], RCCE_FLAG_SET, (uint32_t)request->size, request->peer, COSTS_IRCCE);
    request->state = REQUEST_WAITS_FOR_READY;
}

/* Goes on with the first send as far as it can without waiting, or with waiting. */
static void push_first_send(int may_wait) {
    iRCCE_SEND_REQUEST *request = sends;
    RCCE_FLAG *ready = &RCCE_ready_flag[request->peer];
    while (!is_over(request)) {
        if (request->state == REQUEST_NEW)
            fill(request);
        if (!may_wait && !isles_flag_test(*ready, RCCE_FLAG_SET, COSTS_IRCCE))
            return;
        if (may_wait)
            isles_flag_take(ready, COSTS_IRCCE);
        else
            isles_flag_write(ready, RCCE_FLAG_UNSET, 0, RCCE_IAM, COSTS_IRCCE);
        request->moved += request->part;
        request->state = request->moved < request->size ? REQUEST_NEW : REQUEST_DONE;
    }
    sends = request->next;
}

int iRCCE_isend_push(void) {
    isles_relax();
    while (sends) {
        iRCCE_SEND_REQUEST *first = sends;
        push_first_send(0);
        if (sends == first)
            return iRCCE_PENDING;
    }
    return iRCCE_SUCCESS;
}

int iRCCE_isend(char *data, ssize_t size, int dest, iRCCE_SEND_REQUEST *request) {
    iRCCE_SEND_REQUEST own;
    if (!isles_is_rank(dest))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    if (size < 0)
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_MESSAGE_LENGTH);
    iRCCE_SEND_REQUEST *used = request ? request : &own;
    begin(used, data, size, dest);
    if (is_over(used))
        return iRCCE_SUCCESS;
    int is_first = !sends;
    enqueue(&sends, used);
    if (!request)
        return iRCCE_isend_wait(used);
    if (!is_first)
        return iRCCE_RESERVED;
    fill(used);
    return iRCCE_PENDING;
}

int iRCCE_isend_test(iRCCE_SEND_REQUEST *request, int *test) {
    iRCCE_isend_push();
    int over = !request ? !sends : is_over(request);
    if (test)
        *test = over;
    return over ? iRCCE_SUCCESS : request && request != sends ? iRCCE_RESERVED : iRCCE_PENDING;
}

/* Takes a part of a receive whose sent flag is set. */
static void take(iRCCE_RECV_REQUEST *request, int source) {
    RCCE_FLAG *sent = &RCCE_sent_flag[source];
    if (request->size == ANY_LENGTH)
        request->size = isles_flag_tag(*sent);
    last_length = (int)request->size;
    request->part = isles_part(request->size - request->moved, RCCE_chunk);
    isles_flag_write(sent, RCCE_FLAG_UNSET, 0, RCCE_IAM, COSTS_IRCCE);
    isles_fetch(request->buffer + request->moved, RCCE_buff_ptr, request->part, source, COSTS_IRCCE);
    isles_flag_write(&RCCE_ready_flag[RCCE_IAM], RCCE_FLAG_SET, 0, source, COSTS_IRCCE);
    request->moved += request->part;
    request->peer = source;
    request->state = request->moved < request->size ? REQUEST_WAITS_FOR_READY : REQUEST_DONE;
}

/* A receive from anybody but `apart` that has a first part belongs to its source from then on. */
static int push_from_any(int apart) {
    for (int source = 0; receives_from_any && source < RCCE_NP; source++) {
        if (source == RCCE_IAM || source == apart || receives[source] ||
            !isles_flag_test(RCCE_sent_flag[source], RCCE_FLAG_SET, COSTS_IRCCE))
            continue;
        iRCCE_RECV_REQUEST *request = receives_from_any;
        receives_from_any = request->next;
        request->next = NULL;
        take(request, source);
        if (is_over(request))
            receive_count--;
        else
            receives[source] = request;
    }
    return receives_from_any == NULL;
}

static void push_from(int source, int may_wait) {
    while (receives[source]) {
        iRCCE_RECV_REQUEST *request = receives[source];
        if (may_wait)
            isles_flag_wait(RCCE_sent_flag[source], RCCE_FLAG_SET, COSTS_IRCCE);
        else if (!isles_flag_test(RCCE_sent_flag[source], RCCE_FLAG_SET, COSTS_IRCCE))
            return;
        take(request, source);
        if (is_over(request)) {
            receives[source] = request->next;
            receive_count--;
            if (may_wait)
                return;
        }
    }
}

/* Goes on with all receives but those from `apart`; -1 is no rank. */
static int push_receives(int apart) {
    isles_relax();
    int pending = 0;
    for (int source = 0; source < RCCE_NP; source++) {
        if (source != apart)
            push_from(source, 0);
        pending |= receives[source] != NULL;
    }
    pending |= !push_from_any(apart);
    return pending ? iRCCE_PENDING : iRCCE_SUCCESS;
}

int iRCCE_irecv_push(void) { return push_receives(-1); }

int iRCCE_irecv(char *data, ssize_t size, int source, iRCCE_RECV_REQUEST *request) {
    iRCCE_RECV_REQUEST own;
    if (source != iRCCE_ANY_SOURCE && !isles_is_rank(source))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
#ifdef SINGLEBITFLAGS
    if (size < 0)
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_MESSAGE_LENGTH);
#endif
    iRCCE_RECV_REQUEST *used = request ? request : &own;
    begin(used, data, size, source);
    if (is_over(used))
        return iRCCE_SUCCESS;
    iRCCE_RECV_REQUEST **queue = source == iRCCE_ANY_SOURCE ? &receives_from_any : &receives[source];
    int is_first = !*queue;
    enqueue(queue, used);
    receive_count++;
    if (!request)
        return iRCCE_irecv_wait(used);
    return is_first ? iRCCE_PENDING : iRCCE_RESERVED;
}

static int is_reserved(const iRCCE_RECV_REQUEST *request) {
    return request != receives_from_any && (request->peer < 0 || receives[request->peer] != request);
}

int iRCCE_irecv_test(iRCCE_RECV_REQUEST *request, int *test) {
    int pushed = iRCCE_irecv_push();
    int over = request ? is_over(request) : pushed == iRCCE_SUCCESS;
    if (test)
        *test = over;
    return over ? iRCCE_SUCCESS : request && is_reserved(request) ? iRCCE_RESERVED : iRCCE_PENDING;
}

void isles_push_requests(void) {
    iRCCE_isend_push();
    iRCCE_irecv_push();
}

int isles_has_requests(void) { return sends || receive_count; }

static int no_send_is_pending(void *unused) {
    (void)unused;
    isles_push_requests();
    return !sends;
}

void isles_finish_sends(void) {
    if (sends)
        isles_wait_any(no_send_is_pending, NULL);
}

static int has_receives_from(int source) {
    return (source == iRCCE_ANY_SOURCE ? receives_from_any : receives[source]) != NULL;
}

static int no_receive_is_pending(void *source) {
    isles_push_requests();
    return !has_receives_from(*(int *)source);
}

void isles_finish_receives(int source) {
    if (has_receives_from(source))
        isles_wait_any(no_receive_is_pending, &source);
}

int isles_sender(int source) {
    int first = source == iRCCE_ANY_SOURCE ? 0 : source;
    int last = source == iRCCE_ANY_SOURCE ? RCCE_NP - 1 : source;
    isles_push_requests();
    for (int rank = first; rank <= last; rank++)
        if (rank != RCCE_IAM && !receives[rank] &&
            isles_flag_test(RCCE_sent_flag[rank], RCCE_FLAG_SET, COSTS_IRCCE))
            return rank;
    return -1;
}

struct awaited_flag {
    RCCE_FLAG *flag;
    int apart;
};

static int flag_is_set(void *argument) {
    struct awaited_flag *awaited = argument;
    iRCCE_isend_push();
    push_receives(awaited->apart);
    return isles_flag_test(*awaited->flag, RCCE_FLAG_SET, COSTS_IRCCE);
}

void isles_await_flag(RCCE_FLAG *flag, int apart) {
    struct awaited_flag awaited = {flag, apart};
    if (isles_has_requests())
        isles_wait_any(flag_is_set, &awaited);
    else
        isles_flag_wait(*flag, RCCE_FLAG_SET, COSTS_IRCCE);
}

void isles_take_flag(RCCE_FLAG *flag, int apart) {
    if (!isles_has_requests()) {
        isles_flag_take(flag, COSTS_IRCCE);
        return;
    }
    isles_await_flag(flag, apart);
    isles_flag_write(flag, RCCE_FLAG_UNSET, 0, RCCE_IAM, COSTS_IRCCE);
}

/* Waiting for one request goes on with all others, too: their peers may wait for them, and this one for those. */
static int send_is_over(void *request) {
    iRCCE_irecv_push();
    return iRCCE_isend_test(request, NULL) == iRCCE_SUCCESS;
}

static int receive_is_over(void *request) {
    iRCCE_isend_push();
    return iRCCE_irecv_test(request, NULL) == iRCCE_SUCCESS;
}

int iRCCE_isend_wait(iRCCE_SEND_REQUEST *request) {
    while (request ? !is_over(request) : sends != NULL) {
        enum call before = isles_enter(CALL_ISEND_WAIT, sends->peer);
        if (receive_count)
            isles_wait_any(send_is_over, request);
        else
            push_first_send(1);
        isles_leave(before);
    }
    return iRCCE_SUCCESS;
}

/* Whether all sends go on without this rank: there is none, or the last part of the only one has been handed over. */
static int sends_need_no_push(void) {
    return !sends ||
           (!sends->next && sends->state == REQUEST_WAITS_FOR_READY && sends->moved + sends->part == sends->size);
}

int iRCCE_irecv_wait(iRCCE_RECV_REQUEST *request) {
    enum call before = isles_enter(CALL_IRECV_WAIT, request ? request->peer : -1);
    if (request && request->peer >= 0 && !is_over(request))
        isles_prepare_answer(request->peer);
    while (request && request->peer >= 0 && !is_over(request) && receive_count == 1 && sends_need_no_push())
        push_from(request->peer, 1);
    if (!(request && is_over(request)) && !receive_is_over(request))
        isles_wait_any(receive_is_over, request);
    isles_leave(before);
    return iRCCE_SUCCESS;
}

/* Removes a request of which nothing has been moved. */
static int remove_from(iRCCE_SEND_REQUEST **queue, iRCCE_SEND_REQUEST *request) {
    while (*queue && *queue != request)
        queue = &(*queue)->next;
    if (!*queue)
        return 0;
    *queue = request->next;
    request->state = REQUEST_CANCELLED;
    return 1;
}

int iRCCE_isend_cancel(iRCCE_SEND_REQUEST *request, int *test) {
    int done = request && request->state == REQUEST_NEW && remove_from(&sends, request);
    if (test)
        *test = done;
    return done ? iRCCE_SUCCESS : request && is_over(request) ? iRCCE_NOT_ENQUEUED : iRCCE_PENDING;
}

int iRCCE_irecv_cancel(iRCCE_RECV_REQUEST *request, int *test) {
    iRCCE_RECV_REQUEST **queue =
        !request || request->peer < 0 ? &receives_from_any : &receives[request->peer];
    int done = request && request->state == REQUEST_NEW && remove_from(queue, request);
    receive_count -= done;
    if (test)
        *test = done;
    return done ? iRCCE_SUCCESS : request && is_over(request) ? iRCCE_NOT_ENQUEUED : iRCCE_PENDING;
}

int iRCCE_get_dest(iRCCE_SEND_REQUEST *request) { return request ? request->peer : iRCCE_ERROR; }
int iRCCE_get_source(iRCCE_RECV_REQUEST *request) { return request ? request->peer : iRCCE_ERROR; }
int iRCCE_get_length(void) { return last_length; }
void isles_set_last_length(size_t length) { last_length = (int)length; }

int iRCCE_get_size(iRCCE_SEND_REQUEST *send, iRCCE_RECV_REQUEST *receive) {
    iRCCE_SEND_REQUEST *request = send ? send : receive;
    return request ? (int)request->size : iRCCE_ERROR;
}
