/* The part of <unistd.h> that RCCE's port to hosts uses. */
#ifndef _UNISTD_H
#define _UNISTD_H

long syscall(long number, ...);
_Noreturn void _exit(int code);

#endif
