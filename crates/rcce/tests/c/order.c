/* Another rank overwrites an entry of the log of collective calls while this one compares it: at each instruction in
 * turn, by single steps of the processor. The entry is then that of a call a thousand later, which differs. */
#define _GNU_SOURCE
#include "check.h"
#include "../../../../c/src/port.h"
#include <signal.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100
#define STEPS_MAX 100000

static struct collective_call *entry;
static uint64_t sequence;
static volatile int steps, overwritten_at, is_over;

static void write_entry(enum call call, uint64_t argument, uint64_t of) {
    entry->call = call;
    entry->rank = 1;
    entry->argument = argument;
    entry->sequence = of;
}

static void step(int signal, siginfo_t *info, void *context) {
    (void)info;
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    if (signal == SIGUSR1)
        *flags |= TRAP_FLAG;
    else if (is_over || steps > STEPS_MAX)
        *flags &= ~TRAP_FLAG;
    else if (steps++ == overwritten_at)
        write_entry(CALL_FREE, 7, sequence + COLLECTIVE_CALLS);
}

int RCCE_APP(int argc, char **argv) {
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    RCCE_init(&argc, &argv);
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    for (int call = 0; call < COLLECTIVE_CALLS; call++) /* those of RCCE_init */
        if (isles_machine.control->calls[call].sequence > sequence)
            sequence = isles_machine.control->calls[call].sequence;
    do {
        entry = &isles_machine.control->calls[++sequence % COLLECTIVE_CALLS];
        write_entry(CALL_MALLOC, 32, sequence);
        steps = is_over = 0;
        raise(SIGUSR1);
        isles_collective(CALL_MALLOC, 32);
        is_over = 1;
        CHECK(steps < STEPS_MAX);
    } while (overwritten_at++ < steps);
    CHECK(steps > 20);
    return passed();
}
