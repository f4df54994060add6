/* The part of <math.h> for which a processor has an instruction. */
#ifndef _MATH_H
#define _MATH_H

static inline double fabs(double value) { return __builtin_fabs(value); }
static inline double sqrt(double value) {
    double root;
    __asm__("sqrtsd %1, %0" : "=x"(root) : "x"(value));
    return root;
}

#endif
