/* <errno.h> for one thread. */
#ifndef _ERRNO_H
#define _ERRNO_H

extern int errno;
#define ENOSYS 38

#endif
