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
        isles_flag_take(ready, costs);
        done += part;
    }
}

void isles_recv(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size, int source,
                enum costs costs) {
    for (size_t done = 0; done < size;) {
        size_t part = isles_part(size - done, chunk);
        isles_flag_take(sent, costs);
        isles_fetch(data + done, buffer, part, source, costs);
        isles_flag_write(ready, RCCE_FLAG_SET, 0, source, costs);
        done += part;
    }
}

/* A message as a caller describes it: in gory mode with the buffer and the flags that the program has allocated. */
struct message {
    char *data;
    size_t size;
    t_vcharp buffer;
    size_t chunk;
    RCCE_FLAG *ready, *sent;
    int peer;
};

/* A message of simple mode from `sender` to `receiver`, one of which is this rank. */
static struct message simple(char *data, size_t size, int sender, int receiver) {
    int is_known = isles_is_rank(sender) && isles_is_rank(receiver);
    return (struct message){.data = data,
                            .size = size,
                            .buffer = RCCE_buff_ptr,
                            .chunk = RCCE_chunk,
                            .ready = is_known ? &RCCE_ready_flag[receiver] : NULL,
                            .sent = is_known ? &RCCE_sent_flag[sender] : NULL,
                            .peer = sender == RCCE_IAM ? receiver : sender};
}

static int wrong_with(const struct message *message, int data_error) {
    if (!isles_is_rank(message->peer))
        return RCCE_ERROR_ID;
    if (!message->data && message->size)
        return data_error;
    if (!message->buffer || !isles_in_buffers(message->buffer))
        return RCCE_ERROR_TARGET;
    if (!message->ready || !message->sent)
        return RCCE_ERROR_FLAG_UNDEFINED;
    if (message->chunk == 0 || message->chunk % RCCE_LINE_SIZE || message->chunk > RCCE_BUFF_SIZE_MAX)
        return RCCE_ERROR_MESSAGE_LENGTH;
    return (uintptr_t)message->buffer % RCCE_LINE_SIZE ? RCCE_ERROR_ALIGNMENT : RCCE_SUCCESS;
}

static int send(const struct message *message) {
    int wrong = wrong_with(message, RCCE_ERROR_SOURCE);
    if (wrong)
        return RCCE_error_return(RCCE_debug_comm, wrong);
    enum call before = isles_enter(CALL_SEND, message->peer);
    isles_send(message->data, message->buffer, message->chunk, message->ready, message->sent, message->size,
               message->peer, COSTS_RCCE);
    isles_leave(before);
    return RCCE_SUCCESS;
}

static int receive(const struct message *message) {
    int wrong = wrong_with(message, RCCE_ERROR_TARGET);
    if (wrong)
        return RCCE_error_return(RCCE_debug_comm, wrong);
    enum call before = isles_enter(CALL_RECV, message->peer);
    isles_recv(message->data, message->buffer, message->chunk, message->ready, message->sent, message->size,
               message->peer, COSTS_RCCE);
    isles_leave(before);
    return RCCE_SUCCESS;
}

/* Receives a message if it is there; *test says whether it was. */
static int receive_test(const struct message *message, int *test) {
    int wrong = wrong_with(message, RCCE_ERROR_TARGET);
    if (wrong)
        return RCCE_error_return(RCCE_debug_comm, wrong);
    isles_relax();
    *test = message->size == 0 || isles_flag_test(*message->sent, RCCE_FLAG_SET, COSTS_RCCE);
    return *test ? receive(message) : RCCE_SUCCESS;
}

int RCCE_send(char *data, size_t size, int dest) {
    struct message message = simple(data, size, RCCE_IAM, dest);
    return send(&message);
}

void isles_prepare_answer(int source) {
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
    struct message message = simple(data, size, source, RCCE_IAM);
    if (isles_is_rank(source))
        isles_prepare_answer(source);
    return receive(&message);
}

int RCCE_recv_test(char *data, size_t size, int source, int *test) {
    struct message message = simple(data, size, source, RCCE_IAM);
    return receive_test(&message, test);
}

/* Gory mode. */
int RCCE_send_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size, int dest);
int RCCE_recv_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size,
                   int source);
int RCCE_recv_test_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size,
                        int source, int *test);

int RCCE_send_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size,
                   int dest) {
    return send(&(struct message){data, size, buffer, chunk, ready, sent, dest});
}

int RCCE_recv_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size,
                   int source) {
    return receive(&(struct message){data, size, buffer, chunk, ready, sent, source});
}

int RCCE_recv_test_gory(char *data, t_vcharp buffer, size_t chunk, RCCE_FLAG *ready, RCCE_FLAG *sent, size_t size,
                        int source, int *test) {
    return receive_test(&(struct message){data, size, buffer, chunk, ready, sent, source}, test);
}
