/* What a C program can tell Isles. All of it does nothing on hosts. */
#ifndef ISLES_H
#define ISLES_H
#ifdef __cplusplus
extern "C" {
#endif

/* Charges `cycles` of the core's own clock to this rank on a modelled chip: what the code between two calls costs. */
void isles_work(unsigned long long cycles);

/* 1 on a modelled chip, 0 on a host. */
int isles_is_modelled(void);

#ifdef __cplusplus
}
#endif
#endif
