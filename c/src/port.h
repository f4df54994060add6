/* What the library needs of the machine below it: memory that all ranks share, waiting, and on a modelled chip time.
 *
 * The library moves all bytes itself, by plain stores and loads, on hosts and on the chip. On the chip it tells the
 * model of each access beforehand by a request, which returns when the access has ended; the bytes move at that moment.
 * `crates/rcce/src/interface.rs` has the same layouts; PORT_VERSION changes with either. */
#ifndef ISLES_PORT_H
#define ISLES_PORT_H

#include "RCCE.h"
#include <stdatomic.h>
#include <stdint.h>

#define PORT_VERSION 2
#define LINES (RCCE_BUFF_SIZE_MAX / RCCE_LINE_SIZE)
#define CALL_NAMES 40
#define CALL_NAME_BYTES 32
#define COLLECTIVE_CALLS 1024

/* Whose instructions a request costs besides its accesses. */
enum costs { COSTS_RCCE, COSTS_IRCCE };

enum operation {
    OP_WORK,     /* value: cycles */
    OP_PUT,      /* target, line, address, count lines: private memory into a buffer */
    OP_GET,      /* target, line, address, count lines: a buffer into private memory */
    OP_RELAY,    /* target, line, value: own line, count lines: a buffer into the own one */
    OP_SET,      /* target, line: writing a flag */
    OP_LOOK,     /* target, line, value: whether it is a call: reading a flag */
    OP_WAIT,     /* line, address: of the flag, value, count: bit mask or 0: waiting for an own flag */
    OP_TAKE,     /* as OP_WAIT, then as OP_SET: waiting for an own flag and clearing it; target: this rank */
    OP_ANY,      /* value: writes seen; waits while the chip has seen no more; returns how many it has */
    OP_LOCK,     /* target: its test-and-set register */
    OP_UNLOCK,   /* target */
    OP_NOW,      /* returns picoseconds */
    OP_TAIL,     /* a message whose end is no whole line */
    OP_POWER,    /* target: divider; value: 0 frequency, 1 with voltage; returns 1 if it can */
    OP_SETTLED,  /* returns whether the voltage has settled; waits if value is 1 */
    OP_COUNTER,  /* an access to a counter outside the chip */
    OP_END       /* value: exit code; does not return */
};

struct request {
    uint32_t operation;
    uint32_t target;
    uint32_t line;
    uint32_t count;
    uint64_t address;
    uint64_t value;
    uint32_t costs;
    uint32_t spare;
};

/* What others see of a rank. Each write of a flag reads the first line; the second changes with each call. */
struct rank_state {
    _Atomic uint32_t parked; /* PARKED_..; the futex */
    _Atomic uint32_t wakes;  /* how often it has gone on after a park */
    uint32_t spare[14];
    _Atomic uint32_t stage; /* STAGE_.. */
    _Atomic uint32_t call;  /* the blocking call that it is in, by name */
    _Atomic int32_t peer;   /* for whom it waits, or -1 */
    uint32_t more_spare[13];
};

enum { PARKED_NO, PARKED_LOOKS, PARKED_SLEEPS };
enum { STAGE_STARTED, STAGE_INITIALISED, STAGE_FINALIZED };

/* A collective call, as the first rank that made it says. */
struct collective_call {
    _Atomic uint64_t sequence; /* of the call, from 1; UINT64_MAX while it is written */
    _Atomic uint32_t call;
    _Atomic uint32_t rank;
    _Atomic uint64_t argument;
};

struct control {
    uint32_t version;
    uint32_t ranks;
    _Atomic uint32_t any_parked; /* ranks that wait for whatever line */
    _Atomic uint32_t any_event;
    _Atomic uint32_t next_counter;
    _Atomic int32_t counters[2 * RCCE_MAXNP];
    _Atomic uint32_t locks[RCCE_MAXNP];
    _Atomic uint32_t lock_waiters[RCCE_MAXNP];
    _Atomic uint32_t complaint; /* 1: `complaint_text` says why the run ends */
    char complaint_text[252];
    char names[CALL_NAMES][CALL_NAME_BYTES];
    uint32_t spare[27]; /* so that states begin with a line of the cache */
    struct rank_state state[RCCE_MAXNP];
    struct collective_call calls[COLLECTIVE_CALLS];
};

/* What the launcher hands to `isles_rcce_attach`. */
struct machine {
    uint32_t version;
    uint32_t rank, ranks;
    uint32_t modelled;
    struct control *control;
    unsigned char *buffers;
    unsigned char *shared;
    uint64_t shared_bytes;
    uint64_t (*request)(void *context, const struct request *);
    void *context;
    double gigahertz;
    uint32_t cores[RCCE_MAXNP];
    uint32_t domains[RCCE_MAXNP]; /* of power, of each rank */
};

extern struct machine isles_machine;

/* The names of calls that block or are collective. */
#define CALLS(call)                                                                                                    \
    call(NONE, "a computation") call(SEND, "RCCE_send") call(RECV, "RCCE_recv") call(BARRIER, "RCCE_barrier")          \
    call(WAIT_UNTIL, "RCCE_wait_until") call(BCAST, "RCCE_bcast") call(REDUCE, "RCCE_reduce")                          \
    call(ALLREDUCE, "RCCE_allreduce") call(LOCK, "RCCE_acquire_lock") call(FINALIZE, "RCCE_finalize")                  \
    call(SPLIT, "RCCE_comm_split") call(MALLOC, "RCCE_malloc") call(FREE, "RCCE_free")                                 \
    call(FLAG_ALLOC, "RCCE_flag_alloc") call(FLAG_FREE, "RCCE_flag_free") call(SHMALLOC, "RCCE_shmalloc")              \
    call(SHFREE, "RCCE_shfree") call(INIT, "RCCE_init") call(WAIT_POWER, "RCCE_wait_power")                            \
    call(ISEND_WAIT, "iRCCE_isend_wait") call(IRECV_WAIT, "iRCCE_irecv_wait") call(WAIT_ALL, "iRCCE_wait_all")         \
    call(WAIT_ANY, "iRCCE_wait_any") call(PROBE, "iRCCE_probe") call(SSEND, "iRCCE_ssend") call(SRECV, "iRCCE_srecv")  \
    call(MCAST, "iRCCE_mcast") call(ATOMIC_ALLOC, "iRCCE_atomic_alloc") call(WAIT_TAGGED, "iRCCE_wait_tagged")
#define CALL_CONSTANT(name, text) CALL_##name,
enum call { CALLS(CALL_CONSTANT) CALL_COUNT };

extern enum call isles_call_now;

/* The functions of a short message are inline: as calls they took a sixth of its time. */

inline struct rank_state *isles_own_state(void) { return &isles_machine.control->state[isles_machine.rank]; }

/* Names the rank that the present call waits for. */
inline void isles_waits_for(int peer) {
    atomic_store_explicit(&isles_own_state()->peer, peer, memory_order_relaxed);
}

/* Says that this rank is in a blocking call, for a peer or nobody (-1). The outermost call and the last peer count. */
inline enum call isles_enter(enum call call, int peer) {
    enum call before = isles_call_now;
    if (before == CALL_NONE) {
        isles_call_now = call;
        atomic_store_explicit(&isles_own_state()->call, call, memory_order_relaxed);
    }
    if (before == CALL_NONE || peer >= 0)
        isles_waits_for(peer);
    return before;
}

/* Ends what `isles_enter` began, with what that returned. */
inline void isles_leave(enum call before) {
    if (before == CALL_NONE) {
        isles_call_now = CALL_NONE;
        atomic_store_explicit(&isles_own_state()->call, CALL_NONE, memory_order_relaxed);
    }
}

/* Checks that all ranks make their collective calls in one order; ends the run, naming the calls, if they do not. */
void isles_collective(enum call call, uint64_t argument);

/* Ends the run with a line; does not return. */
_Noreturn void isles_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends this rank; does not return. */
_Noreturn void isles_end(int code);

/* A request to the model; only on a modelled chip. errno stays. */
uint64_t isles_request(struct request request);
inline int isles_modelled(void) { return isles_machine.modelled != 0; }

/* The line in its buffer, and whether an address lies in one. */
inline uint32_t isles_line(const volatile void *address) {
    return (uint32_t)(((const unsigned char *)address - isles_machine.buffers) % RCCE_BUFF_SIZE_MAX / RCCE_LINE_SIZE);
}
inline int isles_in_buffers(const volatile void *address) {
    uintptr_t at = (uintptr_t)address, first = (uintptr_t)isles_machine.buffers;
    return at >= first && at < first + (uintptr_t)isles_machine.ranks * RCCE_BUFF_SIZE_MAX;
}
/* The same offset in the buffer of `rank`. */
inline unsigned char *isles_at(const volatile void *address, int rank) {
    size_t offset = (size_t)((const unsigned char *)address - isles_machine.buffers) % RCCE_BUFF_SIZE_MAX;
    return isles_machine.buffers + (size_t)rank * RCCE_BUFF_SIZE_MAX + offset;
}
inline int isles_is_rank(int rank) { return rank >= 0 && rank < (int)isles_machine.ranks; }

/* The value that a waiter looks for: a word, or the bits of a mask in a byte. */
struct awaited {
    volatile void *address; /* in the own buffer */
    uint32_t mask;          /* 0: an int of line-sized flags */
    int value;
};
inline int isles_holds(const struct awaited *awaited) {
    if (awaited->mask) {
        unsigned char byte = __atomic_load_n((volatile unsigned char *)awaited->address, __ATOMIC_ACQUIRE);
        return ((byte & awaited->mask) != 0) == (awaited->value != 0);
    }
    return __atomic_load_n((volatile int *)awaited->address, __ATOMIC_ACQUIRE) == awaited->value;
}

#define EAGER_SPINS 500 /* without a pause, which takes as long as a third of a short message */

/* Waits until it holds. On hosts: spins, yields, sleeps. */
void isles_wait_longer(const struct awaited *, enum costs);
inline void isles_wait(const struct awaited *awaited, enum costs costs) {
    if (!isles_modelled())
        for (int spin = 0; spin < EAGER_SPINS; spin++)
            if (isles_holds(awaited))
                return;
    isles_wait_longer(awaited, costs);
}

/* True if the system cannot have all processors pass a fence, so that each writer has one. */
extern int isles_writers_have_fences;
/* To be called after a store into a line of `rank`'s buffer, for which somebody may wait. */
void isles_wake_sleepers(int rank);
inline void isles_wake(int rank) {
    if (isles_modelled())
        return;
    if (isles_writers_have_fences)
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&isles_machine.control->state[rank].parked, memory_order_relaxed) != PARKED_NO ||
        atomic_load_explicit(&isles_machine.control->any_parked, memory_order_relaxed))
        isles_wake_sleepers(rank);
}
/* Waits until `ready` says so; whatever line is written may change that. */
void isles_wait_any(int (*ready)(void *), void *argument);
/* Lets others run between two looks of a loop in the program. */
void isles_relax(void);

#endif
