/* The two system calls that RCCE's port to hosts makes; system.c says what they do on a bare core. */
#ifndef _SYS_SYSCALL_H
#define _SYS_SYSCALL_H

#define SYS_futex 202
#define SYS_membarrier 324

#endif
