/* Communicators, the barrier, locks, broadcast and reductions.
 *
 * The barrier is linear: member 0 reads the others' gather flags, all of them again and again until each has the new
 * value, then writes the release flags one by one. Reductions take the members in the order of their ranks, so a sum of
 * floating-point numbers has one result; the root receives into its own input, which is destroyed, as in RCCE. */
#include "library.h"

#include <stdatomic.h>
#include <string.h>

RCCE_COMM RCCE_COMM_WORLD;

int isles_make_communicator(int (*color)(int, void *), void *argument, RCCE_COMM *comm) {
    if (!comm)
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_COMM_UNDEFINED);
    int own = color ? color(RCCE_IAM, argument) : 0;
    comm->size = 0;
    for (int rank = 0; rank < RCCE_NP; rank++) {
        if (color && color(rank, argument) != own)
            continue;
        if (rank == RCCE_IAM)
            comm->my_rank = comm->size;
        comm->member[comm->size++] = rank;
    }
    if (comm->initialized == RCCE_COMM_INITIALIZED)
        return RCCE_SUCCESS;
    int error = RCCE_flag_alloc(&comm->gather);
    if (!error)
        error = RCCE_flag_alloc(&comm->release);
    if (error)
        return error;
    isles_flag_write(&comm->gather, RCCE_FLAG_UNSET, 0, RCCE_IAM, COSTS_RCCE);
    isles_flag_write(&comm->release, RCCE_FLAG_UNSET, 0, RCCE_IAM, COSTS_RCCE);
    comm->initialized = RCCE_COMM_INITIALIZED;
    return RCCE_SUCCESS;
}

int RCCE_comm_split(int (*color)(int, void *), void *argument, RCCE_COMM *comm) {
    enum call before = isles_enter(CALL_SPLIT, -1);
    isles_collective(CALL_SPLIT, 0);
    int error = isles_make_communicator(color, argument, comm);
    RCCE_barrier(&RCCE_COMM_WORLD); /* so that nobody uses the flags while others unset theirs */
    isles_leave(before);
    return error;
}

int RCCE_comm_free(RCCE_COMM *comm) {
    if (!comm || comm->initialized != RCCE_COMM_INITIALIZED)
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_COMM_UNDEFINED);
    RCCE_flag_free(&comm->gather);
    RCCE_flag_free(&comm->release);
    comm->initialized = RCCE_COMM_NOT_INITIALIZED;
    return RCCE_SUCCESS;
}

int RCCE_comm_size(RCCE_COMM comm, int *size) {
    if (comm.initialized != RCCE_COMM_INITIALIZED)
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_COMM_UNDEFINED);
    *size = comm.size;
    return RCCE_SUCCESS;
}

int RCCE_comm_rank(RCCE_COMM comm, int *rank) {
    if (comm.initialized != RCCE_COMM_INITIALIZED)
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_COMM_UNDEFINED);
    *rank = comm.my_rank;
    return RCCE_SUCCESS;
}

void RCCE_fence(void) { atomic_thread_fence(memory_order_seq_cst); }

struct sweep {
    RCCE_COMM *comm;
    int value;
};

static int all_have_gathered(void *argument) {
    struct sweep *sweep = argument;
    int all = 1;
    for (int member = 1; member < sweep->comm->size; member++) {
        RCCE_FLAG_STATUS seen;
        RCCE_flag_read(sweep->comm->gather, &seen, sweep->comm->member[member]);
        if (seen != sweep->value && all) {
            isles_waits_for(sweep->comm->member[member]);
            all = 0;
        }
    }
    return all;
}

int RCCE_barrier(RCCE_COMM *comm) {
    if (!comm || comm->initialized != RCCE_COMM_INITIALIZED)
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_COMM_UNDEFINED);
    enum call before = isles_enter(CALL_BARRIER, comm->my_rank ? comm->member[0] : -1);
    RCCE_FLAG_STATUS old;
    RCCE_flag_read(comm->gather, &old, RCCE_IAM);
    int value = !old;
    isles_flag_write(&comm->gather, value, 0, RCCE_IAM, COSTS_RCCE);
    if (comm->my_rank == 0) {
        struct sweep sweep = {comm, value};
        isles_wait_any(all_have_gathered, &sweep);
        for (int member = 1; member < comm->size; member++)
            isles_flag_write(&comm->release, value, 0, comm->member[member], COSTS_RCCE);
    } else {
        isles_flag_wait(comm->release, value, COSTS_RCCE);
    }
    isles_leave(before);
    return RCCE_SUCCESS;
}

static int take_lock(void *rank) {
    return !atomic_exchange(&isles_machine.control->locks[*(int *)rank], isles_machine.rank + 1);
}

int RCCE_acquire_lock(int rank) {
    if (!isles_is_rank(rank))
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_ID);
    enum call before = isles_enter(CALL_LOCK, -1);
    if (isles_modelled())
        isles_request((struct request){.operation = OP_LOCK, .target = (uint32_t)rank});
    else if (!take_lock(&rank))
        isles_wait_any(take_lock, &rank);
    isles_leave(before);
    return RCCE_SUCCESS;
}

int RCCE_release_lock(int rank) {
    if (!isles_is_rank(rank))
        return RCCE_error_return(RCCE_debug_synch, RCCE_ERROR_ID);
    if (isles_modelled())
        isles_request((struct request){.operation = OP_UNLOCK, .target = (uint32_t)rank});
    atomic_store(&isles_machine.control->locks[rank], 0);
    isles_wake(rank);
    return RCCE_SUCCESS;
}

int RCCE_bcast(char *data, size_t size, int root, RCCE_COMM comm) {
    if (comm.initialized != RCCE_COMM_INITIALIZED)
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_COMM_UNDEFINED);
    if (root < 0 || root >= comm.size)
        return RCCE_error_return(RCCE_debug_comm, RCCE_ERROR_ID);
    enum call before = isles_enter(CALL_BCAST, -1);
    int error = RCCE_SUCCESS;
    if (comm.my_rank != root)
        error = RCCE_recv(data, size, comm.member[root]);
    else
        for (int member = 0; member < comm.size && !error; member++)
            if (member != root)
                error = RCCE_send(data, size, comm.member[member]);
    isles_leave(before);
    return error;
}

#define COMBINE(type)                                                                                                  \
    do {                                                                                                               \
        type *to = (type *)result;                                                                                     \
        const type *from = (const type *)other;                                                                        \
        for (int at = 0; at < count; at++)                                                                             \
            to[at] = op == RCCE_SUM   ? to[at] + from[at]                                                              \
                     : op == RCCE_PROD ? to[at] * from[at]                                                             \
                     : op == RCCE_MIN  ? (from[at] < to[at] ? from[at] : to[at])                                       \
                                       : (from[at] > to[at] ? from[at] : to[at]);                                      \
    } while (0)

static void combine(char *result, const char *other, int count, int type, int op) {
    switch (type) {
    case RCCE_INT: COMBINE(int); break;
    case RCCE_LONG: COMBINE(long); break;
    case RCCE_FLOAT: COMBINE(float); break;
    default: COMBINE(double);
    }
}

static size_t size_of(int type) {
    switch (type) {
    case RCCE_INT: return sizeof(int);
    case RCCE_LONG: return sizeof(long);
    case RCCE_FLOAT: return sizeof(float);
    case RCCE_DOUBLE: return sizeof(double);
    default: return 0;
    }
}

static int reduce(char *in, char *out, int count, int type, int op, int root, RCCE_COMM *comm) {
    size_t size = size_of(type) * (size_t)count;
    if (comm->my_rank != root)
        return RCCE_send(in, size, comm->member[root]);
    memcpy(out, in, size);
    for (int member = 0; member < comm->size; member++) {
        if (member == root)
            continue;
        int error = RCCE_recv(in, size, comm->member[member]);
        if (error)
            return error;
        combine(out, in, count, type, op);
    }
    return RCCE_SUCCESS;
}

static int wrong_with(int count, int type, int op, int root, RCCE_COMM *comm) {
    if (comm->initialized != RCCE_COMM_INITIALIZED)
        return RCCE_ERROR_COMM_UNDEFINED;
    if (root < 0 || root >= comm->size)
        return RCCE_ERROR_ID;
    if (count < 0)
        return RCCE_ERROR_MESSAGE_LENGTH;
    if (op < RCCE_OP_BASE || op >= RCCE_OP_BASE + RCCE_NUM_OPS)
        return RCCE_ERROR_ILLEGAL_OP;
    return size_of(type) ? RCCE_SUCCESS : RCCE_ERROR_ILLEGAL_TYPE;
}

int RCCE_reduce(char *in, char *out, int count, int type, int op, int root, RCCE_COMM comm) {
    int wrong = wrong_with(count, type, op, root, &comm);
    if (wrong)
        return RCCE_error_return(RCCE_debug_comm, wrong);
    enum call before = isles_enter(CALL_REDUCE, -1);
    int error = reduce(in, out, count, type, op, root, &comm);
    isles_leave(before);
    return error;
}

int RCCE_allreduce(char *in, char *out, int count, int type, int op, RCCE_COMM comm) {
    int wrong = wrong_with(count, type, op, 0, &comm);
    if (wrong)
        return RCCE_error_return(RCCE_debug_comm, wrong);
    enum call before = isles_enter(CALL_ALLREDUCE, -1);
    int error = reduce(in, out, count, type, op, 0, &comm);
    if (!error)
        error = RCCE_bcast(out, size_of(type) * (size_t)count, 0, comm);
    isles_leave(before);
    return error;
}
