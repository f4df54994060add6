/* <sys/types.h>: lengths with a sign. */
#ifndef _SYS_TYPES_H
#define _SYS_TYPES_H

#include <stddef.h>
typedef long ssize_t;

#endif
