/* The start of a C program, and the few calls of an operating system that the library of RCCE makes.
 *
 * The library is the one for hosts, unmodified: its waits spin, then yield, then sleep on a futex. Here a sleep on a
 * futex is one until the next tick of a millisecond, which then takes back that this rank sleeps, as a writer would, so
 * that the library looks again. So no wake-up has to come, and writers need no fence for it: membarrier succeeds. */
#include "bare.h"
#include "port.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENTS_MAX 128
#define COLUMNS 6

int errno;

int isles_rcce_attach(const struct machine *);
void isles_rcce_run(int argc, char **argv);

static uint64_t no_model(void *context, const struct request *request) {
    (void)context, (void)request;
    return 0;
}

/* The voltage domain of a core: 2 by 2 tiles. */
static uint32_t domain_of(int core) {
    int tile = core / 2;
    return (uint32_t)(tile / COLUMNS / 2 * (COLUMNS / 2) + tile % COLUMNS / 2);
}

int bare_c_start(void) {
    static char *words[ARGUMENTS_MAX + 1];
    static struct machine machine;
    const char *text;
    int count = bare_arguments(&text);
    for (int at = 0; at < count && at < ARGUMENTS_MAX; at++) {
        words[at] = (char *)text;
        text += strlen(text) + 1;
    }
    struct control *control = bare_library_area();
    _Static_assert(sizeof *control <= 0x1f000, "the area of libraries is too small");
    control->version = PORT_VERSION;
    control->ranks = (uint32_t)bare_ranks();
    machine.version = PORT_VERSION;
    machine.rank = (uint32_t)bare_rank();
    machine.ranks = (uint32_t)bare_ranks();
    machine.control = control;
    machine.buffers = bare_buffers();
    machine.shared = bare_shared_memory(&machine.shared_bytes);
    machine.request = no_model;
    machine.gigahertz = (bare_rates() & 0xffff) * 1e-3;
    for (int rank = 0; rank < bare_ranks(); rank++) {
        machine.cores[rank] = (uint32_t)bare_core_of(rank);
        machine.domains[rank] = domain_of(bare_core_of(rank));
    }
    if (isles_rcce_attach(&machine)) {
        bare_write("the library of RCCE is of another version\n", 42);
        return 1;
    }
    isles_rcce_run(count, words);
    return 0;
}

long syscall(long number, ...) {
    if (number == SYS_membarrier)
        return 0;
    if (number != SYS_futex) {
        errno = ENOSYS;
        return -1;
    }
    va_list arguments;
    va_start(arguments, number);
    uint32_t *word = va_arg(arguments, uint32_t *);
    int operation = va_arg(arguments, int);
    uint32_t value = va_arg(arguments, uint32_t);
    va_end(arguments);
    if (operation == FUTEX_WAIT && __atomic_load_n(word, __ATOMIC_ACQUIRE) == value) {
        bare_wait();
        __atomic_compare_exchange_n(word, &value, PARKED_NO, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
    return 0;
}

int sched_yield(void) {
    __builtin_ia32_pause();
    return 0;
}

void _exit(int code) {
    struct control *control = bare_library_area();
    if (control->complaint == 1 && code)
        for (const char *text = control->complaint_text; *text; text += strlen(text)) {
            bare_write(text, strlen(text));
            bare_write("\n", 1);
        }
    bare_exit(code);
}

int clock_gettime(int clock, struct timespec *now) {
    uint64_t nanoseconds = bare_nanoseconds();
    (void)clock;
    now->tv_sec = (time_t)(nanoseconds / 1000000000);
    now->tv_nsec = (long)(nanoseconds % 1000000000);
    return 0;
}
