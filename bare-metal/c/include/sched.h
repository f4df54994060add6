/* <sched.h>: there is nobody else on a bare core. */
#ifndef _SCHED_H
#define _SCHED_H

int sched_yield(void);

#endif
