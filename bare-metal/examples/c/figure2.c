/* The program of figure 2 of the paper on BareMichael: each core says hello, core 0 raises the two interrupt pins of
 * core 47, whose handlers print the seconds since boot.
 *
 *   isles bare build bare-metal/examples/c/figure2.c
 *   isles bare run --cores 0,1,5,24,47 -- out/figure2.img [MILLISECONDS before the first; half as much more follows] */
#include "bare.h"

#include <stdio.h>
#include <stdlib.h>

#define TARGET 47

static volatile int interruptions;

static void print_time(void) {
    printf("(SCC has been booted for %llu seconds)\n", (unsigned long long)(bare_nanoseconds() / 1000000000));
    interruptions++;
}

static void on_lint0(void) {
    printf("I've been interrupted!\n");
    print_time();
}

static void on_lint1(void) {
    printf("Another interruption!\n");
    print_time();
}

int main(int argc, char **argv) {
    uint32_t pause = argc > 1 ? (uint32_t)atoi(argv[1]) : 2000;
    printf("Hello, World -- I'm core %d!\n", bare_core());
    if (bare_core() == TARGET) {
        bare_set_handler(BARE_LINT0, on_lint0);
        bare_set_handler(BARE_LINT1, on_lint1);
        while (interruptions < 2)
            bare_wait();
    }
    if (bare_core() == 0) {
        bare_sleep(pause);
        printf("I'm going to trigger core %d's LINT0 now.\n", TARGET);
        bare_interrupt_core(TARGET, BARE_LINT0);
        bare_sleep(pause + pause / 2);
        printf("Now I'm toggling core %d's LINT1.\n", TARGET);
        bare_interrupt_core(TARGET, BARE_LINT1);
    }
    return 0;
}
