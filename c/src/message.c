/* Blocking sends and receives, simple and gory: the sender fills its own buffer, the receiver fetches from there.
 *
 *   send, each part:  put into the own buffer; set `sent` at the receiver; wait for the own `ready`; clear it
 *   recv, each part:  wait for the own `sent`; clear it; get from the sender's buffer; set `ready` at the sender
 *
 * A send returns when its message has been received, so two ranks that send to each other stand still. */
#include "library.h"

void isles_send(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size, int dest,
                enum costs costs) {
    for (size_t done = 0; done < size;) {
        size_t part = isles_part(size - done, chunk);
        isles_fill(buffer, data + done, part, costs);
        isles_flag_write(sent, RCCE_FLAG_SET, (uint32_t)size, dest, costs);
        isles_flag_wait(*ready, RCCE_FLAG_SET, costs);
        isles_flag_write(ready, RCCE_FLAG_UNSET, 0, RCCE_IAM, costs);
        done += part;
    }
}

void isles_recv(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size, int source,
                enum costs costs) {
    for (size_t done = 0; done < size;) {
        size_t part = isles_part(size - done, chunk);
        isles_flag_wait(*sent, RCCE_FLAG_SET, costs);
        isles_flag_write(sent, RCCE_FLAG_UNSET, 0, RCCE_IAM, costs);
        isles_fetch(data + done, buffer, part, source, costs);
        isles_flag_write(ready, RCCE_FLAG_SET, 0, source, costs);
        done += part;
    }
}

int RCCE_send(char *data, size_t size, int dest) {
    if (!isles_is_rank(dest))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    if (!data && size)
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_SOURCE);
    enum call before = isles_enter(CALL_SEND, dest);
    isles_send(data, RCCE_buff_ptr, RCCE_chunk, &RCCE_ready_flag[dest], &RCCE_sent_flag[RCCE_IAM], size, dest,
               COSTS_RCCE);
    isles_leave(before);
    return RCCE_SUCCESS;
}

/* Has this processor own the lines of the cache into which an answer to `source` will go, while it waits anyway: they
 * would be asked for one after the other when the answer is on its way. */
static void prepare_answer(int source) {
#if defined(__x86_64__)
    if (!isles_modelled()) {
        __asm__ volatile("prefetchw (%0)" : : "r"(RCCE_buff_ptr));
        __asm__ volatile("prefetchw (%0)" : : "r"(isles_flag_at(RCCE_sent_flag[RCCE_IAM], source)));
    }
#else
    (void)source;
#endif
}

int RCCE_recv(char *data, size_t size, int source) {
    if (!isles_is_rank(source))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    if (!data && size)
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_TARGET);
    enum call before = isles_enter(CALL_RECV, source);
    prepare_answer(source);
    isles_recv(data, RCCE_buff_ptr, RCCE_chunk, &RCCE_ready_flag[RCCE_IAM], &RCCE_sent_flag[source], size, source,
               COSTS_RCCE);
    isles_leave(before);
    return RCCE_SUCCESS;
}

int RCCE_recv_test(char *data, size_t size, int source, int *test) {
    if (!isles_is_rank(source))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    isles_relax();
    *test = size == 0 || isles_flag_test(RCCE_sent_flag[source], RCCE_FLAG_SET, COSTS_RCCE);
    return *test ? RCCE_recv(data, size, source) : RCCE_SUCCESS;
}

/* Gory mode: the program has allocated buffer and flags. */
int RCCE_send_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size, int dest);
int RCCE_recv_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size,
                   int source);
int RCCE_recv_test_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size,
                        int source, int *test);

static int wrong_with(const char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size,
                      int rank, int data_error) {
    if (!isles_is_rank(rank))
        return RCCE_ERROR_ID;
    if (!data && size)
        return data_error;
    if (!buffer || !isles_in_buffers(buffer))
        return RCCE_ERROR_TARGET;
    if (!ready || !sent)
        return RCCE_ERROR_FLAG_UNDEFINED;
    if (chunk == 0 || chunk % RCCE_LINE_SIZE || chunk > RCCE_BUFF_SIZE_MAX)
        return RCCE_ERROR_MESSAGE_LENGTH;
    return (uintptr_t)buffer % RCCE_LINE_SIZE ? RCCE_ERROR_ALIGNMENT : RCCE_SUCCESS;
}

int RCCE_send_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size,
                   int dest) {
    int wrong = wrong_with(data, buffer, chunk, ready, sent, size, dest, RCCE_ERROR_SOURCE);
    if (wrong)
        return RCCE_error_return(RCCE_debug_comm, wrong);
    enum call before = isles_enter(CALL_SEND, dest);
    isles_send(data, buffer, chunk, ready, sent, size, dest, COSTS_RCCE);
    isles_leave(before);
    return RCCE_SUCCESS;
}

int RCCE_recv_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size,
                   int source) {
    int wrong = wrong_with(data, buffer, chunk, ready, sent, size, source, RCCE_ERROR_TARGET);
    if (wrong)
        return RCCE_error_return(RCCE_debug_comm, wrong);
    enum call before = isles_enter(CALL_RECV, source);
    isles_recv(data, buffer, chunk, ready, sent, size, source, COSTS_RCCE);
    isles_leave(before);
    return RCCE_SUCCESS;
}

int RCCE_recv_test_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size,
                        int source, int *test) {
    int wrong = wrong_with(data, buffer, chunk, ready, sent, size, source, RCCE_ERROR_TARGET);
    if (wrong)
        return RCCE_error_return(RCCE_debug_comm, wrong);
    isles_relax();
    *test = size == 0 || isles_flag_test(*sent, RCCE_FLAG_SET, COSTS_RCCE);
    return *test ? RCCE_recv_gory(data, buffer, chunk, ready, sent, size, source) : RCCE_SUCCESS;
}
