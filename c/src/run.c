/* Beginning and end of a rank, time, error texts; and what a rank must not share with the others of its process.
 *
 * On the chip all ranks are in one process, each with a copy of the program. Their copies of this file replace the
 * functions of libc that end a process or keep a state (exit, abort, rand, drand48 and their kin), with the same
 * sequences of numbers. */
#define _GNU_SOURCE
#include "library.h"

#include "isles.h"
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

int RCCE_NP, RCCE_IAM;
int RC_COREID[RCCE_MAXNP], RC_MY_COREID;
double RC_REFCLOCKGHZ = 1.0;
int RCCE_debug_synch, RCCE_debug_comm, RCCE_debug_RPC, RCCE_debug_debug;

int main(int argc, char **argv);

static void set_stage(uint32_t stage) {
    atomic_store(&isles_machine.control->state[isles_machine.rank].stage, stage);
}

/* Runs the program of this rank; the launcher calls it after `isles_rcce_attach`. */
void isles_rcce_run(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    exit(main(argc, argv));
}

static int initialise(int is_gory, int has_power) {
    RCCE_NP = (int)isles_machine.ranks;
    RCCE_IAM = (int)isles_machine.rank;
    RC_REFCLOCKGHZ = isles_machine.gigahertz;
    for (int rank = 0; rank < RCCE_NP; rank++)
        RC_COREID[rank] = (int)isles_machine.cores[rank];
    RC_MY_COREID = RC_COREID[RCCE_IAM];
    enum call before = isles_enter(CALL_INIT, -1);
    isles_buffers_begin();
    isles_shared_begin();
    if (!is_gory)
        isles_buffers_simple();
    int error = isles_make_communicator(NULL, NULL, &RCCE_COMM_WORLD);
    isles_power_begin();
    if (has_power && !error)
        error = isles_power_communicator();
    isles_leave(before);
    set_stage(STAGE_INITIALISED);
    return error;
}

int RCCE_init_gory(int *argc, char ***argv);
int RCCE_init_power(int *argc, char ***argv);
int RCCE_init_gory_power(int *argc, char ***argv);

int RCCE_init(int *argc, char ***argv) {
    (void)argc, (void)argv;
    return initialise(0, 0);
}

int RCCE_init_gory(int *argc, char ***argv) {
    (void)argc, (void)argv;
    return initialise(1, 0);
}

int RCCE_init_power(int *argc, char ***argv) {
    (void)argc, (void)argv;
    return initialise(0, 1);
}

int RCCE_init_gory_power(int *argc, char ***argv) {
    (void)argc, (void)argv;
    return initialise(1, 1);
}

int RCCE_finalize(void) {
    enum call before = isles_enter(CALL_FINALIZE, -1);
    isles_collective(CALL_FINALIZE, 0);
    int error = RCCE_barrier(&RCCE_COMM_WORLD);
    RCCE_release_lock(RCCE_IAM);
    isles_leave(before);
    set_stage(STAGE_FINALIZED);
    return error;
}

int RCCE_ue(void) { return RCCE_IAM; }
int RCCE_num_ues(void) { return RCCE_NP; }

static double seconds(void) {
    if (isles_modelled())
        return (double)isles_request((struct request){.operation = OP_NOW}) * 1e-12;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double RCCE_wtime(void) { return seconds(); }
unsigned long long _rdtsc(void) { return (unsigned long long)(seconds() * RC_REFCLOCKGHZ * 1e9); }

int isles_is_modelled(void) { return isles_modelled(); }

void isles_work(unsigned long long cycles) {
    if (isles_modelled() && cycles)
        isles_request((struct request){.operation = OP_WORK, .value = cycles});
}

static const char *const error_texts[RCCE_NUM_ERR_CODES + 1] = {
    "Success",
    "Invalid target buffer",
    "Invalid source buffer",
    "Invalid rank",
    "Invalid message length",
    "Flag is not defined",
    "Invalid number of ranks",
    "Source and target overlap",
    "Address is not aligned to a line",
    "Invalid debug flag",
    "Flag is not in a message buffer",
    "Flag status is neither set nor unset",
    "No room for the flag, or it is not allocated",
    "No variable for the value",
    "Invalid error code",
    "Power request is not allocated",
    "Power request failed",
    "A power request is under way already",
    "Invalid frequency divider",
    "Frequency exceeds what the voltage allows",
    "No power request is under way",
    "Power request is stale",
    "Communicator is not defined",
    "Invalid operation of a reduction",
    "Invalid type of a reduction",
    "No memory",
    "Communicator is initialised already",
    "Core is not in the host file",
};

int RCCE_error_string(int code, char *text, int *length) {
    int index = code == RCCE_SUCCESS ? 0 : code - RCCE_ERROR_BASE;
    int known = index >= 0 && index <= RCCE_NUM_ERR_CODES;
    snprintf(text, RCCE_MAX_ERROR_STRING, "%s",
             error_texts[known ? index : RCCE_ERROR_INVALID_ERROR_CODE - RCCE_ERROR_BASE]);
    *length = (int)strlen(text);
    return known ? RCCE_SUCCESS : RCCE_ERROR_INVALID_ERROR_CODE;
}

int RCCE_error_return(int is_shown, int code) {
    if (is_shown && code != RCCE_SUCCESS) {
        char text[RCCE_MAX_ERROR_STRING];
        int length;
        RCCE_error_string(code, text, &length);
        fprintf(STDERR, "Error on UE %d: %s\n", RCCE_IAM, text);
        fflush(NULL);
    }
    return code;
}

static int set_debug(int which, int value) {
    int all = which == RCCE_DEBUG_ALL, known = all;
    struct {
        int which, *shown;
    } const kinds[] = {{RCCE_DEBUG_SYNCH, &RCCE_debug_synch},
                       {RCCE_DEBUG_COMM, &RCCE_debug_comm},
                       {RCCE_DEBUG_RPC, &RCCE_debug_RPC},
                       {RCCE_DEBUG_DEBUG, &RCCE_debug_debug}};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        if (all || kinds[kind].which == which) {
            *kinds[kind].shown = value;
            known = 1;
        }
    return known ? RCCE_SUCCESS : RCCE_error_return(RCCE_debug_debug, RCCE_ERROR_DEBUG_FLAG);
}

int RCCE_debug_set(int which) { return set_debug(which, 1); }
int RCCE_debug_unset(int which) { return set_debug(which, 0); }

/* Instead of libc's. */

#define EXITS 32
static void (*at_exit[EXITS])(void);
static int at_exit_count;

int atexit(void (*function)(void)) {
    if (at_exit_count == EXITS)
        return -1;
    at_exit[at_exit_count++] = function;
    return 0;
}

_Noreturn void exit(int code) {
    while (at_exit_count)
        at_exit[--at_exit_count]();
    isles_end(code);
}

_Noreturn void abort(void) { isles_complain("rank %u has called abort", isles_machine.rank); }

/* The additive feedback of glibc's rand: r[i] = r[i - 3] + r[i - 31]. */
static uint32_t feedback[31];
static unsigned feedback_at;
static int is_seeded;

static uint32_t next_feedback(void) {
    uint32_t *here = &feedback[feedback_at];
    *here += feedback[(feedback_at + 28) % 31];
    feedback_at = (feedback_at + 1) % 31;
    return *here >> 1;
}

void srand(unsigned seed) {
    int64_t word = seed ? seed : 1;
    is_seeded = 1;
    feedback_at = 3;
    for (int at = 0; at < 31; at++) {
        feedback[at] = (uint32_t)word;
        int64_t signed_word = (int32_t)word;
        word = 16807 * (signed_word % 127773) - 2836 * (signed_word / 127773);
        if (word < 0)
            word += 2147483647;
    }
    for (int discarded = 0; discarded < 310; discarded++)
        next_feedback();
}

int rand(void) {
    if (!is_seeded)
        srand(1);
    return (int)next_feedback();
}

void srandom(unsigned seed) { srand(seed); }
long random(void) { return rand(); }

/* The congruence of POSIX's drand48, modulo 2^48. */
static uint64_t congruence = 0x1234abcd330e;

static uint64_t next_congruence(void) {
    congruence = (congruence * 0x5deece66d + 0xb) & 0xffffffffffff;
    return congruence;
}

void srand48(long seed) { congruence = (uint64_t)(uint32_t)seed << 16 | 0x330e; }
double drand48(void) { return (double)next_congruence() / 281474976710656.0; }
long lrand48(void) { return (long)(next_congruence() >> 17); }
long mrand48(void) { return (long)(int32_t)(next_congruence() >> 16); }
