/* Waiting and waking, errors that end a run, the order of collective calls.
 *
 * On hosts a waiter spins, then yields, then sleeps on its own futex. It says that it sleeps before it looks for the
 * last time, and a writer looks for sleepers after it has written, so no wake-up is lost. That takes a full fence on
 * both sides; where the system can (membarrier), the sleeper has all processors pass one, and the writer has none. */
#define _GNU_SOURCE
#include "port.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPINS 4000
#define YIELDS 200

/* The launcher has the same numbers, in a test of `crates/rcce/src/interface.rs`. */
_Static_assert(sizeof(struct request) == 40, "");
_Static_assert(sizeof(struct rank_state) == 128 && offsetof(struct rank_state, stage) == 64, "");
_Static_assert(sizeof(struct collective_call) == 24 && offsetof(struct collective_call, argument) == 16, "");
_Static_assert(offsetof(struct control, locks) == 404 && offsetof(struct control, complaint_text) == 792, "");
_Static_assert(offsetof(struct control, names) == 1044 && offsetof(struct control, state) == 2432, "");
_Static_assert(offsetof(struct control, calls) == 8576 && sizeof(struct control) == 33152, "");
_Static_assert(offsetof(struct machine, gigahertz) == 64 && sizeof(struct machine) == 456, "");

struct machine isles_machine;
enum call isles_call_now;
int isles_writers_have_fences;

/* Where the functions of `port.h` that a caller does not inline stand. */
extern inline int isles_modelled(void);
extern inline uint32_t isles_line(const volatile void *);
extern inline int isles_in_buffers(const volatile void *);
extern inline unsigned char *isles_at(const volatile void *, int rank);
extern inline int isles_is_rank(int);
extern inline struct rank_state *isles_own_state(void);
extern inline enum call isles_enter(enum call, int peer);
extern inline void isles_leave(enum call before);
extern inline void isles_waits_for(int peer);
extern inline int isles_holds(const struct awaited *);
extern inline void isles_wait(const struct awaited *, enum costs);
extern inline void isles_wake(int rank);

#define CALL_TEXT(name, text) text,
static const char *const call_texts[] = {CALLS(CALL_TEXT)};

/* Takes what the launcher has prepared; 0 if both are of one version. */
int isles_rcce_attach(const struct machine *machine) {
    if (machine->version != PORT_VERSION)
        return PORT_VERSION;
    isles_machine = *machine;
    for (int call = 0; call < CALL_COUNT; call++)
        strncpy(isles_machine.control->names[call], call_texts[call], CALL_NAME_BYTES - 1);
    isles_writers_have_fences = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0) != 0;
    return 0;
}

uint64_t isles_request(struct request request) {
    int error = errno;
    uint64_t answer = isles_machine.request(isles_machine.context, &request);
    errno = error;
    return answer;
}

void isles_complain(const char *format, ...) {
    struct control *control = isles_machine.control;
    uint32_t none = 0;
    if (atomic_compare_exchange_strong(&control->complaint, &none, 2)) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(control->complaint_text, sizeof control->complaint_text, format, arguments);
        va_end(arguments);
        atomic_store(&control->complaint, 1);
    }
    isles_end(1);
}

void isles_end(int code) {
    if (isles_modelled()) {
        isles_request((struct request){.operation = OP_END, .value = (uint64_t)code});
        __builtin_unreachable();
    }
    fflush(NULL);
    _exit(code);
}

void isles_collective(enum call call, uint64_t argument) {
    static uint64_t made;
    uint64_t sequence = ++made;
    struct collective_call *entry = &isles_machine.control->calls[sequence % COLLECTIVE_CALLS];
    for (;;) {
        uint64_t there = atomic_load(&entry->sequence);
        if (there == UINT64_MAX) { /* another rank writes it */
            sched_yield();
            continue;
        }
        if (there > sequence)
            return; /* others are a thousand calls ahead: it cannot be checked any more */
        if (there == sequence)
            break;
        if (atomic_compare_exchange_strong(&entry->sequence, &there, UINT64_MAX)) {
            atomic_store(&entry->call, (uint32_t)call);
            atomic_store(&entry->rank, isles_machine.rank);
            atomic_store(&entry->argument, argument);
            atomic_store(&entry->sequence, sequence);
            return;
        }
    }
    uint32_t call_there = atomic_load(&entry->call), rank_there = atomic_load(&entry->rank);
    uint64_t argument_there = atomic_load(&entry->argument);
    if (atomic_load(&entry->sequence) != sequence)
        return; /* others have come a thousand calls ahead meanwhile, and use the entry again */
    if (call_there != (uint32_t)call || argument_there != argument)
        isles_complain("collective call %llu is %s(%llu) at rank %u and %s(%llu) at rank %u; all ranks must make them "
                       "in one order",
                       (unsigned long long)sequence, call_texts[call_there], (unsigned long long)argument_there,
                       rank_there, call_texts[call], (unsigned long long)argument, isles_machine.rank);
}

static inline void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value) {
    int error = errno;
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
    errno = error;
}

static void wake_on(_Atomic uint32_t *word) {
    int error = errno;
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    errno = error;
}

/* Sleeps until somebody wakes this rank and `ready` holds. */
static void park(int (*ready)(void *), void *argument) {
    struct rank_state *state = isles_own_state();
    for (;;) {
        atomic_store(&state->parked, PARKED_LOOKS);
        if (!isles_writers_have_fences)
            syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0);
        atomic_thread_fence(memory_order_seq_cst);
        if (ready(argument))
            break;
        uint32_t looks = PARKED_LOOKS;
        if (atomic_compare_exchange_strong(&state->parked, &looks, PARKED_SLEEPS))
            while (atomic_load(&state->parked) == PARKED_SLEEPS)
                sleep_on(&state->parked, PARKED_SLEEPS);
        atomic_fetch_add(&state->wakes, 1);
    }
    atomic_store(&state->parked, PARKED_NO);
    atomic_fetch_add(&state->wakes, 1);
}

static void wait_on_host(int (*ready)(void *), void *argument, int any) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (ready(argument))
            return;
        pause_briefly();
    }
    for (int yield = 0; yield < YIELDS; yield++) {
        if (ready(argument))
            return;
        sched_yield();
    }
    if (any)
        atomic_fetch_add(&isles_machine.control->any_parked, 1);
    park(ready, argument);
    if (any)
        atomic_fetch_sub(&isles_machine.control->any_parked, 1);
}

static int awaited_holds(void *awaited) { return isles_holds(awaited); }

void isles_wait_longer(const struct awaited *awaited, enum costs costs) {
    if (isles_modelled()) {
        isles_request((struct request){.operation = OP_WAIT,
                                       .line = isles_line(awaited->address),
                                       .count = awaited->mask,
                                       .address = (uintptr_t)awaited->address,
                                       .value = (uint64_t)(uint32_t)awaited->value,
                                       .costs = costs});
        return;
    }
    wait_on_host(awaited_holds, (void *)awaited, 0);
}

static void wake_rank(int rank) {
    struct rank_state *state = &isles_machine.control->state[rank];
    if (atomic_load_explicit(&state->parked, memory_order_relaxed) != PARKED_NO &&
        atomic_exchange(&state->parked, PARKED_NO) == PARKED_SLEEPS)
        wake_on(&state->parked);
}

void isles_wake_sleepers(int rank) {
    wake_rank(rank);
    if (atomic_load_explicit(&isles_machine.control->any_parked, memory_order_relaxed))
        for (int other = 0; other < (int)isles_machine.ranks; other++)
            wake_rank(other);
}

void isles_wait_any(int (*ready)(void *), void *argument) {
    if (!isles_modelled()) {
        wait_on_host(ready, argument, 1);
        return;
    }
    uint64_t event = isles_request((struct request){.operation = OP_ANY, .value = UINT64_MAX});
    while (!ready(argument))
        event = isles_request((struct request){.operation = OP_ANY, .value = event});
}

void isles_relax(void) {
    if (!isles_modelled())
        pause_briefly();
}
