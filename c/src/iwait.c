/* iRCCE: wait lists, probing, tagged flags, atomic counters, and RCCE's calls under iRCCE's names. */
#define AIR
#include "library.h"

#include "irequest.h"
#include <stdatomic.h>
#include <string.h>

void iRCCE_init_wait_list(iRCCE_WAIT_LIST *list) { memset(list, 0, sizeof *list); }

static void add(iRCCE_WAIT_LIST *list, iRCCE_SEND_REQUEST *send, iRCCE_RECV_REQUEST *receive) {
    if (list->entries == list->room) {
        int room = list->room ? 2 * list->room : 16;
        void *entries = realloc(list->entry, (size_t)room * sizeof *list->entry);
        if (!entries)
            isles_complain("rank %d has no memory for a wait list of %d requests", RCCE_IAM, room);
        list->entry = entries;
        list->room = room;
    }
    list->entry[list->entries++] = (struct iRCCE_WAIT_ENTRY){send, receive};
}

void iRCCE_add_to_wait_list(iRCCE_WAIT_LIST *list, iRCCE_SEND_REQUEST *send, iRCCE_RECV_REQUEST *receive) {
    if (send)
        add(list, send, NULL);
    if (receive)
        add(list, NULL, receive);
}

/* An empty list holds no memory. */
static void clear(iRCCE_WAIT_LIST *list) {
    free(list->entry);
    iRCCE_init_wait_list(list);
}

static int entry_is_over(const struct iRCCE_WAIT_ENTRY *entry) {
    return isles_request_is_over(entry->send ? entry->send : entry->recv);
}

int iRCCE_test_all(iRCCE_WAIT_LIST *list, int *test) {
    int all = 1;
    isles_push_requests();
    for (int entry = 0; entry < list->entries; entry++)
        all &= entry_is_over(&list->entry[entry]);
    if (all)
        clear(list);
    if (test)
        *test = all;
    return all ? iRCCE_SUCCESS : iRCCE_PENDING;
}

static int all_are_over(void *list) { return iRCCE_test_all(list, NULL) == iRCCE_SUCCESS; }

int iRCCE_wait_all(iRCCE_WAIT_LIST *list) {
    enum call before = isles_enter(CALL_WAIT_ALL, -1);
    isles_wait_any(all_are_over, list);
    isles_leave(before);
    return iRCCE_SUCCESS;
}

int iRCCE_test_any(iRCCE_WAIT_LIST *list, iRCCE_SEND_REQUEST **send, iRCCE_RECV_REQUEST **receive) {
    if (send)
        *send = NULL;
    if (receive)
        *receive = NULL;
    isles_push_requests();
    for (int entry = 0; entry < list->entries; entry++) {
        if (!entry_is_over(&list->entry[entry]))
            continue;
        if (send)
            *send = list->entry[entry].send;
        if (receive)
            *receive = list->entry[entry].recv;
        list->entries--;
        for (; entry < list->entries; entry++)
            list->entry[entry] = list->entry[entry + 1];
        if (!list->entries)
            clear(list);
        return iRCCE_SUCCESS;
    }
    return list->entries ? iRCCE_PENDING : iRCCE_SUCCESS;
}

struct any {
    iRCCE_WAIT_LIST *list;
    iRCCE_SEND_REQUEST **send;
    iRCCE_RECV_REQUEST **receive;
};

static int any_is_over(void *argument) {
    struct any *any = argument;
    return iRCCE_test_any(any->list, any->send, any->receive) == iRCCE_SUCCESS;
}

int iRCCE_wait_any(iRCCE_WAIT_LIST *list, iRCCE_SEND_REQUEST **send, iRCCE_RECV_REQUEST **receive) {
    struct any any = {list, send, receive};
    enum call before = isles_enter(CALL_WAIT_ANY, -1);
    isles_wait_any(any_is_over, &any);
    isles_leave(before);
    return iRCCE_SUCCESS;
}

int iRCCE_iprobe(int source, int *found, int *test) {
    int first = source == iRCCE_ANY_SOURCE ? 0 : source;
    int last = source == iRCCE_ANY_SOURCE ? RCCE_NP - 1 : source;
    int seen = -1;
    if (!isles_is_rank(first) || !isles_is_rank(last))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    isles_relax();
    for (int rank = first; rank <= last && seen < 0; rank++)
        if (rank != RCCE_IAM && isles_flag_test(RCCE_sent_flag[rank], RCCE_FLAG_SET, COSTS_IRCCE))
            seen = rank;
    if (found && seen >= 0)
        *found = seen;
    if (test)
        *test = seen >= 0;
    return seen >= 0 ? iRCCE_SUCCESS : iRCCE_PENDING;
}

struct probe {
    int source, *found;
};

static int is_there(void *argument) {
    struct probe *probe = argument;
    return iRCCE_iprobe(probe->source, probe->found, NULL) != iRCCE_PENDING;
}

int iRCCE_probe(int source, int *found) {
    if (source != iRCCE_ANY_SOURCE && !isles_is_rank(source))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    struct probe probe = {source, found};
    enum call before = isles_enter(CALL_PROBE, source);
    isles_wait_any(is_there, &probe);
    isles_leave(before);
    return iRCCE_SUCCESS;
}

int iRCCE_put(t_vcharp target, t_vcharp source, int bytes, int rank) {
    return isles_put(target, source, bytes, rank, COSTS_IRCCE);
}

int iRCCE_get(t_vcharp target, t_vcharp source, int bytes, int rank) {
    return isles_get(target, source, bytes, rank, COSTS_IRCCE);
}

void *iRCCE_memcpy_put(void *to, const void *from, size_t bytes) { return memcpy(to, from, bytes); }
void *iRCCE_memcpy_get(void *to, const void *from, size_t bytes) { return memcpy(to, from, bytes); }

int iRCCE_barrier(RCCE_COMM *comm) { return RCCE_barrier(comm ? comm : &RCCE_COMM_WORLD); }

t_vcharp iRCCE_malloc(size_t bytes) { return RCCE_malloc(bytes); }
int iRCCE_flag_alloc(RCCE_FLAG *flag) { return RCCE_flag_alloc(flag); }
int iRCCE_flag_write(RCCE_FLAG *flag, RCCE_FLAG_STATUS value, int rank) { return RCCE_flag_write(flag, value, rank); }
int iRCCE_flag_read(RCCE_FLAG flag, RCCE_FLAG_STATUS *value, int rank) { return RCCE_flag_read(flag, value, rank); }
int iRCCE_wait_until(RCCE_FLAG flag, RCCE_FLAG_STATUS value) { return RCCE_wait_until(flag, value); }

#ifndef SINGLEBITFLAGS
int iRCCE_get_max_tagged_len(void) { return iRCCE_MAX_TAGGED_LEN; }
int iRCCE_flag_alloc_tagged(RCCE_FLAG *flag) { return RCCE_flag_alloc(flag); }

int iRCCE_flag_write_tagged(RCCE_FLAG *flag, RCCE_FLAG_STATUS value, int rank, void *tag, int bytes) {
    if (!isles_is_rank(rank))
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_ID);
    if (bytes < 0 || bytes > iRCCE_MAX_TAGGED_LEN)
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_MESSAGE_LENGTH);
    if (isles_modelled())
        isles_request((struct request){
            .operation = OP_SET, .target = (uint32_t)rank, .line = isles_line(*flag), .costs = COSTS_IRCCE});
    volatile int *there = (volatile int *)isles_at(*flag, rank);
    memcpy((void *)(there + 1), tag, (size_t)bytes);
    __atomic_store_n(there, value, __ATOMIC_RELEASE);
    isles_wake(rank);
    return iRCCE_SUCCESS;
}

int iRCCE_flag_read_tagged(RCCE_FLAG flag, RCCE_FLAG_STATUS *value, int rank, void *tag, int bytes) {
    int error = RCCE_flag_read(flag, value, rank);
    if (!error && tag && bytes > 0 && bytes <= iRCCE_MAX_TAGGED_LEN)
        memcpy(tag, isles_at(flag, rank) + sizeof(int), (size_t)bytes);
    return error;
}

int iRCCE_wait_tagged(RCCE_FLAG flag, RCCE_FLAG_STATUS value, void *tag, int bytes) {
    enum call before = isles_enter(CALL_WAIT_TAGGED, -1);
    int error = RCCE_wait_until(flag, value);
    isles_leave(before);
    if (!error && tag && bytes > 0 && bytes <= iRCCE_MAX_TAGGED_LEN)
        memcpy(tag, isles_at(flag, RCCE_IAM) + sizeof(int), (size_t)bytes);
    return error;
}

int iRCCE_test_tagged(RCCE_FLAG flag, RCCE_FLAG_STATUS value, int *result, void *tag, int bytes) {
    int error = RCCE_test_flag(flag, value, result);
    if (!error && *result && tag && bytes > 0 && bytes <= iRCCE_MAX_TAGGED_LEN)
        memcpy(tag, isles_at(flag, RCCE_IAM) + sizeof(int), (size_t)bytes);
    return error;
}
#endif

/* Counters, in the order in which they are allocated, which is one for all ranks. */
static iRCCE_AIR counters[2 * RCCE_MAXNP];
static int counter_count;

int iRCCE_atomic_alloc(iRCCE_AIR **counter) {
    isles_collective(CALL_ATOMIC_ALLOC, 0);
    if (counter_count == 2 * RCCE_MAXNP)
        return iRCCE_ERROR;
    counters[counter_count].index = counter_count;
    *counter = &counters[counter_count++];
    return iRCCE_SUCCESS;
}

static _Atomic int32_t *word(iRCCE_AIR *counter) {
    if (isles_modelled())
        isles_request((struct request){.operation = OP_COUNTER});
    return &isles_machine.control->counters[counter->index];
}

int iRCCE_atomic_inc(iRCCE_AIR *counter, int *value) {
    int before = atomic_fetch_add(word(counter), 1);
    if (value)
        *value = before;
    return iRCCE_SUCCESS;
}

int iRCCE_atomic_read(iRCCE_AIR *counter, int *value) {
    *value = atomic_load(word(counter));
    return iRCCE_SUCCESS;
}

int iRCCE_atomic_write(iRCCE_AIR *counter, int value) {
    atomic_store(word(counter), value);
    return iRCCE_SUCCESS;
}
