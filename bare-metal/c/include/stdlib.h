/* The part of <stdlib.h> that RCCE and its programs use. */
#ifndef _STDLIB_H
#define _STDLIB_H

#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647

void *malloc(size_t);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);
_Noreturn void exit(int);
_Noreturn void abort(void);
int atexit(void (*)(void));
int atoi(const char *);
long strtol(const char *, char **, int);
unsigned long strtoul(const char *, char **, int);
void qsort(void *, size_t, size_t, int (*)(const void *, const void *));
int abs(int);
int rand(void);
void srand(unsigned);
long random(void);
void srandom(unsigned);
double drand48(void);
long lrand48(void);
long mrand48(void);
void srand48(long);

#endif
