/* iRCCE: blocking calls. Sends of more than a chunk are pipelined, multicasts put each part once for all receivers.
 *
 * A pipelined message alternates between the halves of the sender's buffer, so the sender fills one while the receiver
 * fetches from the other. Each half has two flags, in the copies of receiver and sender:
 *
 *   half     filled, at the receiver         taken, at the sender
 *   first    RCCE_sent_flag[sender]          RCCE_ready_flag[receiver]
 *   second   RCCE_ready_flag[receiver]       RCCE_sent_flag[sender]
 *
 * RCCE uses neither flag of the second half at that rank. All senders share its `filled` flag, so a sender sets that
 * only after the receiver has taken its first part, and so takes no other message before the end of this one. A message
 * of one chunk or less moves as one of a request does, and may be received by one. */
#include "library.h"

#include "irequest.h"

struct half {
    size_t offset;
    RCCE_FLAG *filled, *taken;
};

struct halves {
    size_t bytes; /* of the longest part */
    struct half half[2];
};

static struct halves halves_between(int sender, int receiver) {
    size_t bytes = RCCE_chunk / 2 / RCCE_LINE_SIZE * RCCE_LINE_SIZE;
    return (struct halves){bytes,
                           {{0, &RCCE_sent_flag[sender], &RCCE_ready_flag[receiver]},
                            {bytes, &RCCE_ready_flag[receiver], &RCCE_sent_flag[sender]}}};
}

static int is_pipelined(size_t size) { return size > RCCE_chunk && RCCE_chunk >= 2 * RCCE_LINE_SIZE; }

static void send_pipelined(char *data, size_t size, int dest) {
    struct halves halves = halves_between(RCCE_IAM, dest);
    int is_filled[2] = {0, 0}, number = 0;
    size_t part;
    for (size_t done = 0; done < size; done += part, number++) {
        struct half *half = &halves.half[number % 2], *other = &halves.half[(number + 1) % 2];
        part = isles_part(size - done, halves.bytes);
        if (is_filled[number % 2])
            isles_take_flag(half->taken, RCCE_IAM);
        isles_fill(RCCE_buff_ptr + half->offset, data + done, part, COSTS_IRCCE);
        if (number == 1) {
            isles_take_flag(other->taken, RCCE_IAM);
            is_filled[0] = 0;
        }
        isles_flag_write(half->filled, RCCE_FLAG_SET, (uint32_t)size, dest, COSTS_IRCCE);
        is_filled[number % 2] = 1;
    }
    for (int last = 0; last < 2; last++, number++)
        if (is_filled[number % 2])
            isles_take_flag(halves.half[number % 2].taken, RCCE_IAM);
}

static void receive_pipelined(char *data, size_t size, int source) {
    struct halves halves = halves_between(source, RCCE_IAM);
    int number = 0;
    size_t part;
    for (size_t done = 0; done < size; done += part, number++) {
        struct half *half = &halves.half[number % 2];
        part = isles_part(size - done, halves.bytes);
        isles_take_flag(half->filled, source);
        isles_fetch(data + done, RCCE_buff_ptr + half->offset, part, source, COSTS_IRCCE);
        isles_flag_write(half->taken, RCCE_FLAG_SET, 0, source, COSTS_IRCCE);
    }
}

int iRCCE_ssend(char *data, ssize_t size, int dest) {
    if (!isles_is_rank(dest))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    if (size < 0)
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_MESSAGE_LENGTH);
    enum call before = isles_enter(CALL_SSEND, dest);
    isles_finish_sends();
    if (is_pipelined((size_t)size))
        send_pipelined(data, (size_t)size, dest);
    else
        iRCCE_isend(data, size, dest, NULL);
    isles_leave(before);
    return iRCCE_SUCCESS;
}

/* Receives a message whose source is known, and of which no request takes anything. */
static int receive(char *data, ssize_t size, int source) {
#ifndef SINGLEBITFLAGS
    if (size < 0) {
        isles_await_flag(&RCCE_sent_flag[source], source);
        size = (ssize_t)isles_flag_tag(RCCE_sent_flag[source]);
    }
#endif
    if (size < 0 || !is_pipelined((size_t)size))
        return iRCCE_irecv(data, size, source, NULL);
    isles_set_last_length((size_t)size);
    receive_pipelined(data, (size_t)size, source);
    return iRCCE_SUCCESS;
}

/* Sets the source to a rank that has sent a message for a call without a request. */
static int sender_is_there(void *source) {
    int sender = isles_sender(*(int *)source);
    if (sender >= 0)
        *(int *)source = sender;
    return sender >= 0;
}

int iRCCE_srecv(char *data, ssize_t size, int source) {
    if (source != iRCCE_ANY_SOURCE && !isles_is_rank(source))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    if (size == 0)
        return iRCCE_SUCCESS;
    enum call before = isles_enter(CALL_SRECV, source);
    isles_finish_receives(source);
    if (source == iRCCE_ANY_SOURCE && isles_has_requests())
        isles_wait_any(sender_is_there, &source);
    else if (source == iRCCE_ANY_SOURCE)
        iRCCE_probe(source, &source);
    int error = receive(data, size, source);
    isles_leave(before);
    return error;
}

int iRCCE_srecv_test(char *data, ssize_t size, int source, int *test) {
    int is_there = size == 0; /* such a message moves nothing, and announces nothing */
    if (is_there)
        source = source == iRCCE_ANY_SOURCE ? RCCE_IAM : source;
    if (source != iRCCE_ANY_SOURCE && !isles_is_rank(source))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    if (!is_there && isles_has_requests())
        is_there = sender_is_there(&source);
    else if (!is_there)
        iRCCE_iprobe(source, &source, &is_there);
    if (test)
        *test = is_there;
    return is_there ? iRCCE_srecv(data, size, source) : iRCCE_PENDING;
}

/* Requests move their parts one after the other. */
int iRCCE_issend(char *data, ssize_t size, int dest, iRCCE_SEND_REQUEST *request) {
    return iRCCE_isend(data, size, dest, request);
}

int iRCCE_isrecv(char *data, ssize_t size, int source, iRCCE_RECV_REQUEST *request) {
    return iRCCE_irecv(data, size, source, request);
}

/* Sends to all other ranks: each part is put once, and announced to each. */
int iRCCE_msend(char *data, ssize_t size) {
    enum call before = isles_enter(CALL_MCAST, -1);
    isles_finish_sends();
    size_t part;
    for (size_t done = 0; size > 0 && done < (size_t)size && RCCE_NP > 1; done += part) {
        part = isles_part((size_t)size - done, RCCE_chunk);
        isles_fill(RCCE_buff_ptr, data + done, part, COSTS_IRCCE);
        for (int rank = 0; rank < RCCE_NP; rank++)
            if (rank != RCCE_IAM)
                isles_flag_write(&RCCE_sent_flag[RCCE_IAM], RCCE_FLAG_SET, (uint32_t)size, rank, COSTS_IRCCE);
        for (int rank = 0; rank < RCCE_NP; rank++) {
            if (rank == RCCE_IAM)
                continue;
            isles_waits_for(rank);
            isles_take_flag(&RCCE_ready_flag[rank], RCCE_IAM);
        }
    }
    isles_leave(before);
    return iRCCE_SUCCESS;
}

int iRCCE_mrecv(char *data, ssize_t size, int source) {
    if (source != iRCCE_ANY_SOURCE && !isles_is_rank(source))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    enum call before = isles_enter(CALL_MCAST, source);
    isles_finish_receives(source);
    int error = iRCCE_irecv(data, size, source, NULL);
    isles_leave(before);
    return error;
}

int iRCCE_mcast(char *data, size_t size, int root) {
    if (!isles_is_rank(root))
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    return root == RCCE_IAM ? iRCCE_msend(data, (ssize_t)size) : iRCCE_mrecv(data, (ssize_t)size, root);
}

int iRCCE_bcast(char *data, size_t size, int root, RCCE_COMM comm) {
    int is_world = comm.initialized == RCCE_COMM_INITIALIZED && comm.size == RCCE_NP && isles_is_rank(root);
    return is_world ? iRCCE_mcast(data, size, comm.member[root]) : RCCE_bcast(data, size, root, comm);
}
