/* Waiting for a word to change. */
#ifndef _LINUX_FUTEX_H
#define _LINUX_FUTEX_H

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

#endif
