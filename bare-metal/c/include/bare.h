/* What a C program on a bare core can call besides the C library and RCCE; see docs/bare-metal.md. */
#ifndef BARE_H
#define BARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BARE_LINT0 0
#define BARE_LINT1 1

int bare_core(void);                    /* number of this core, 0 to 47 */
int bare_rank(void);                    /* its position in the list of cores */
int bare_ranks(void);                   /* cores of the program */
int bare_core_of(int rank);             /* or -1 */
uint32_t bare_rates(void);              /* MHz of the tile, and << 16 of the mesh */
uint64_t bare_nanoseconds(void);        /* since boot */
uint64_t bare_milliseconds(void);       /* that the timer has counted */
void bare_sleep(uint32_t milliseconds); /* handles interrupts */
void bare_wait(void);                   /* until the next interrupt; ends the core if another has failed */
int bare_acquire_lock(int core); /* the test-and-set register of a core; -1: no such core, or one has stopped */
int bare_try_lock(int core);     /* -1: held */
int bare_release_lock(int core);
int bare_interrupt_core(int core, int pin);
int bare_set_handler(int pin, void (*handler)(void)); /* runs with interrupts disabled */
void bare_write(const char *text, size_t bytes);
_Noreturn void bare_exit(int code);

/* Threads of this core, preempted each millisecond: at most 8, with main, which is 0. RCCE is for one of them. */
int bare_thread_start(int (*function)(void *), void *argument); /* its number; -1: too many */
int bare_thread_join(int thread, int *value);                   /* 0; -1: no such thread */
int bare_thread_self(void);
void bare_thread_yield(void);
int bare_signal(int thread); /* counted; handlers of interrupts may */
void bare_wait_signal(void);

/* Devices: channels to threads of other cores, at most 4 open. -1: refused, or a core has stopped. */
#define BARE_POLL 0
#define BARE_INTERRUPT 1
int bare_device_open(uint32_t channel, int rank, uint32_t rank_channel, int mode); /* its number */
int bare_device_close(int device);
int64_t bare_device_read(int device, void *into, size_t room); /* bytes of the message */
int bare_device_write(int device, const void *bytes, size_t length);

unsigned char *bare_shared_memory(uint64_t *bytes); /* of the cores of the program; RCCE's, if the program uses it */

/* For the C library and the library of RCCE. */
size_t bare_format_double(uint64_t bits, unsigned char conversion, uint32_t precision, bool is_alternate, char *text,
                          size_t room);
int bare_arguments(const char **text);
void *bare_library_area(void);
unsigned char *bare_buffers(void);

#endif
