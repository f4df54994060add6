/* Two exchanges at once on one core, each by a thread with a device of its own: the pattern "two to one" of the paper
 * on BareMichael, which RCCE and iRCCE cannot run. Each other core answers with what it has received, plus 1.
 *
 *   isles bare build bare-metal/examples/c/exchange.c
 *   isles bare run --cores 0,1,2 -- out/exchange.img [ROUNDS] */
#include "bare.h"

#include <stdio.h>
#include <stdlib.h>

#define CHANNEL 1

static int rounds = 200;

/* Sends 0, 2, 4, ... to a rank, and expects 1, 3, 5, ...; returns the number of answers that are wrong. */
static int ask(void *argument) {
    int rank = (int)(intptr_t)argument, wrong = 0;
    int *number = malloc(sizeof *number);
    int device = bare_device_open((unsigned)rank, rank, CHANNEL, rank % 2 ? BARE_INTERRUPT : BARE_POLL);
    if (device < 0 || !number)
        return 1;
    for (int round = 0; round < rounds; round++) {
        *number = 2 * round;
        if (bare_device_write(device, number, sizeof *number))
            return 1;
        if (bare_device_read(device, number, sizeof *number) != sizeof *number)
            return 1;
        wrong += *number != 2 * round + 1;
    }
    bare_device_close(device);
    free(number);
    return wrong;
}

static int answer(void) {
    int device = bare_device_open(CHANNEL, 0, (unsigned)bare_rank(), BARE_POLL), number;
    for (int round = 0; round < rounds; round++) {
        if (bare_device_read(device, &number, sizeof number) != sizeof number)
            return 1;
        number++;
        if (bare_device_write(device, &number, sizeof number))
            return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    int threads[8], sum = 0, value = 1;
    if (argc > 1)
        rounds = atoi(argv[1]);
    if (bare_rank() > 0)
        return answer();
    for (int rank = 1; rank < bare_ranks(); rank++)
        threads[rank] = bare_thread_start(ask, (void *)(intptr_t)rank);
    for (int rank = 1; rank < bare_ranks(); rank++) {
        if (bare_thread_join(threads[rank], &value))
            return 1;
        sum += value;
    }
    printf("%d exchanges at once, %d rounds each, %d wrong answers\n", bare_ranks() - 1, rounds, sum);
    return sum != 0;
}
