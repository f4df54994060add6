/* The part of <time.h> that RCCE uses: a clock that begins at boot. */
#ifndef _TIME_H
#define _TIME_H

#define CLOCK_MONOTONIC 1

typedef long time_t;
struct timespec {
    time_t tv_sec;
    long tv_nsec;
};
int clock_gettime(int, struct timespec *);

#endif
