/* Simple mode: what the library takes of the buffer, communicators, reductions in the order of ranks, errors. */
#include "RCCE_lib.h"
#include "check.h"

#include <math.h>
#include <string.h>

static int parity(int rank, void *argument) { return rank % *(int *)argument; }

static void chunk(void) {
#ifdef SINGLEBITFLAGS
    CHECK(RCCE_chunk == 8192 - 32);
#else
    CHECK(RCCE_chunk == 8192 - 32 * (2 + 2 * (size_t)RCCE_num_ues()));
#endif
}

static void communicators(void) {
    RCCE_COMM half = {0};
    int two = 2, size, rank, sum, own = RCCE_ue();
    CHECK(RCCE_comm_size(half, &size) == RCCE_ERROR_COMM_UNDEFINED);
    CHECK(RCCE_comm_split(parity, &two, &half) == RCCE_SUCCESS);
    RCCE_comm_size(half, &size);
    RCCE_comm_rank(half, &rank);
    CHECK(size == RCCE_num_ues() / 2 && rank == own / 2);
    for (int round = 0; round < 5; round++)
        RCCE_barrier(&half);
    int value = own + 1;
    RCCE_allreduce((char *)&value, (char *)&sum, 1, RCCE_INT, RCCE_SUM, half);
    CHECK(sum == (own % 2 ? 2 + 4 : 1 + 3));
    CHECK(RCCE_comm_free(&half) == RCCE_SUCCESS);
    CHECK(RCCE_barrier(&half) == RCCE_ERROR_COMM_UNDEFINED);
}

static void reductions(void) {
    /* In this order the small numbers are lost one by one; in another they would not be. */
    static const double numbers[4] = {1e16, 1, 1, -1e16};
    int rank = RCCE_ue(), least, most;
    double own = numbers[rank], sum = 0, product = 0, expected = ((1e16 + 1) + 1) - 1e16;
    float number = (float)rank + 1, factorial;
    RCCE_allreduce((char *)&own, (char *)&sum, 1, RCCE_DOUBLE, RCCE_SUM, RCCE_COMM_WORLD);
    CHECK(sum == expected);
    RCCE_allreduce((char *)&number, (char *)&factorial, 1, RCCE_FLOAT, RCCE_PROD, RCCE_COMM_WORLD);
    CHECK(factorial == 24);
    int value = 10 - rank;
    RCCE_allreduce((char *)&value, (char *)&least, 1, RCCE_INT, RCCE_MIN, RCCE_COMM_WORLD);
    value = 10 - rank;
    RCCE_allreduce((char *)&value, (char *)&most, 1, RCCE_INT, RCCE_MAX, RCCE_COMM_WORLD);
    CHECK(least == 7 && most == 10);
    /* The root's input is destroyed: it ends up with what the last rank sent. */
    value = rank;
    RCCE_reduce((char *)&value, (char *)&most, 1, RCCE_INT, RCCE_SUM, 1, RCCE_COMM_WORLD);
    CHECK(value == (rank == 1 ? 3 : rank));
    CHECK(RCCE_reduce((char *)&own, (char *)&product, 1, RCCE_DOUBLE, 7, 0, RCCE_COMM_WORLD) == RCCE_ERROR_ILLEGAL_OP);
    CHECK(RCCE_reduce((char *)&own, (char *)&product, 1, 7, RCCE_SUM, 0, RCCE_COMM_WORLD) == RCCE_ERROR_ILLEGAL_TYPE);
    CHECK(RCCE_reduce((char *)&own, (char *)&product, 1, RCCE_INT, RCCE_SUM, 4, RCCE_COMM_WORLD) == RCCE_ERROR_ID);
}

static void messages(void) {
    static char data[20001];
    int rank = RCCE_ue(), test = 0;
    CHECK(RCCE_send(data, 1, RCCE_num_ues()) == RCCE_ERROR_ID);
    CHECK(RCCE_send(data, 0, 1) == RCCE_SUCCESS);
    if (rank == 2) {
        for (size_t at = 0; at < sizeof data; at++)
            data[at] = (char)(at % 251);
        RCCE_send(data, sizeof data, 3);
    } else if (rank == 3) {
        while (!test)
            RCCE_recv_test(data, sizeof data, 2, &test);
        for (size_t at = 0; at < sizeof data; at++)
            CHECK(data[at] == (char)(at % 251));
    }
    memset(data, rank == 1 ? 9 : 0, 100);
    RCCE_bcast(data, 100, 1, RCCE_COMM_WORLD);
    CHECK(data[0] == 9 && data[99] == 9);
}

static void errors(void) {
    char text[RCCE_MAX_ERROR_STRING];
    int length;
    CHECK(RCCE_error_string(RCCE_ERROR_ID, text, &length) == RCCE_SUCCESS && length == (int)strlen(text));
    CHECK(RCCE_error_string(1, text, &length) == RCCE_ERROR_INVALID_ERROR_CODE);
    CHECK(RCCE_debug_set(5) == RCCE_ERROR_DEBUG_FLAG);
    CHECK(RCCE_debug_set(RCCE_DEBUG_SYNCH) == RCCE_SUCCESS && RCCE_debug_unset(RCCE_DEBUG_ALL) == RCCE_SUCCESS);
    CHECK(RCCE_acquire_lock(-1) == RCCE_ERROR_ID);
    for (int round = 0; round < 20; round++) {
        CHECK(RCCE_acquire_lock(round % 4) == RCCE_SUCCESS);
        CHECK(RCCE_release_lock(round % 4) == RCCE_SUCCESS);
    }
}

static void shared_memory(void) {
    t_vcharp first = RCCE_shmalloc(100), second = RCCE_shmalloc(100);
    CHECK(first && second >= first + 100);
    CHECK(!RCCE_shmalloc(65 << 20));
    RCCE_shfree(first);
    CHECK(RCCE_shmalloc(50) == first);
}

/* The state of libc that a rank has for itself, with the sequences of the system's own. */
static void own_state(void) {
    srand(42);
    CHECK(rand() == 71876166 && rand() == 708592740);
    srand48(42);
    CHECK(fabs(drand48() - 0.7445250000610066) < 1e-15);
}

int RCCE_APP(int argc, char **argv) {
    RCCE_init(&argc, &argv);
    chunk();
    own_state();
    messages();
    communicators();
    reductions();
    errors();
    shared_memory();
    return passed();
}
