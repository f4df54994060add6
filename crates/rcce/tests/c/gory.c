/* Gory mode: memory of the message buffer, error codes of puts and gets, flags. */
#define GORY
#include "check.h"

#include <string.h>

static void memory(void) {
    size_t got;
    t_vcharp first = RCCE_malloc(64), second = RCCE_malloc(4096);
    CHECK(first && second == first + 64);
    CHECK(!RCCE_malloc(33));
    CHECK(!RCCE_malloc(8192));
    t_vcharp part = RCCE_malloc_request(8192, &got);
    CHECK(part && got == 2048);
    RCCE_free(first);
    CHECK(RCCE_malloc(32) == first);
    RCCE_free(second);
    RCCE_free(part);
    RCCE_free(first);
}

static void puts_and_gets(void) {
    static char data[8192] __attribute__((aligned(32)));
    int rank = RCCE_ue(), ranks = RCCE_num_ues();
    t_vcharp buffer = RCCE_malloc(128), source = (t_vcharp)data;
    CHECK(RCCE_put(NULL, source, 32, 0) == RCCE_ERROR_TARGET);
    CHECK(RCCE_put(buffer, NULL, 32, 0) == RCCE_ERROR_SOURCE);
    CHECK(RCCE_put(buffer, source, 32, ranks) == RCCE_ERROR_ID);
    CHECK(RCCE_put(buffer, source, 32, -1) == RCCE_ERROR_ID);
    CHECK(RCCE_put(buffer, source, 33, 0) == RCCE_ERROR_MESSAGE_LENGTH);
    CHECK(RCCE_put(buffer, source, -32, 0) == RCCE_ERROR_MESSAGE_LENGTH);
    CHECK(RCCE_put(buffer + 1, source, 32, 0) == RCCE_ERROR_ALIGNMENT);
    CHECK(RCCE_put(buffer, source, 8192, 0) == RCCE_ERROR_TARGET);
    CHECK(RCCE_put(source, source, 32, 0) == RCCE_ERROR_TARGET);
    CHECK(RCCE_put(buffer, buffer, 32, rank) == RCCE_ERROR_DATA_OVERLAP);
    CHECK(RCCE_get(source, source, 32, 0) == RCCE_ERROR_SOURCE);
    RCCE_barrier(&RCCE_COMM_WORLD);
    memset(data, rank + 1, 128);
    CHECK(RCCE_put(buffer, source, 128, (rank + 1) % ranks) == RCCE_SUCCESS);
    RCCE_barrier(&RCCE_COMM_WORLD);
    CHECK(RCCE_get(source, buffer, 128, (rank + 2) % ranks) == RCCE_SUCCESS);
    CHECK(data[0] == (rank + 1) % ranks + 1 && data[127] == data[0]);
    /* From one message buffer into another. */
    t_vcharp copy = RCCE_malloc(128);
    CHECK(RCCE_get(copy, buffer, 128, (rank + 2) % ranks) == RCCE_SUCCESS);
    CHECK(copy[64] == data[0]);
    unsigned char byte = 77, read = 0;
    RCCE_barrier(&RCCE_COMM_WORLD);
    RCCE_put_char(copy, &byte, (rank + 1) % ranks);
    RCCE_barrier(&RCCE_COMM_WORLD);
    RCCE_get_char(&read, copy, rank);
    CHECK(read == 77 && copy[1] == data[0]);
    RCCE_barrier(&RCCE_COMM_WORLD);
    RCCE_free(copy);
    RCCE_free(buffer);
}

static void flags(void) {
    RCCE_FLAG flag;
    RCCE_FLAG_STATUS value;
    int next = (RCCE_ue() + 1) % RCCE_num_ues();
    CHECK(RCCE_flag_alloc(&flag) == RCCE_SUCCESS);
    RCCE_flag_write(&flag, RCCE_FLAG_UNSET, RCCE_ue()); /* there were other bytes before */
    RCCE_barrier(&RCCE_COMM_WORLD);
    CHECK(RCCE_flag_write(&flag, 5, 0) == RCCE_ERROR_FLAG_STATUS_UNDEFINED);
    CHECK(RCCE_flag_write(&flag, RCCE_FLAG_SET, 48) == RCCE_ERROR_ID);
    CHECK(RCCE_flag_read(flag, NULL, 0) == RCCE_ERROR_VAL_UNDEFINED);
    RCCE_flag_write(&flag, RCCE_FLAG_SET, next);
    CHECK(RCCE_wait_until(flag, RCCE_FLAG_SET) == RCCE_SUCCESS);
    RCCE_barrier(&RCCE_COMM_WORLD);
    CHECK(RCCE_flag_read(flag, &value, next) == RCCE_SUCCESS && value == RCCE_FLAG_SET);
    RCCE_barrier(&RCCE_COMM_WORLD);
    CHECK(RCCE_flag_free(&flag) == RCCE_SUCCESS);
    CHECK(RCCE_flag_free(&flag) == RCCE_ERROR_FLAG_NOT_ALLOCATED);
}

static void messages(void) {
    char data[1000];
    int test, rank = RCCE_ue(), dest = rank ^ 1;
    RCCE_FLAG ready, sent;
    t_vcharp buffer = RCCE_malloc(96);
    RCCE_flag_alloc(&ready);
    RCCE_flag_alloc(&sent);
    RCCE_flag_write(&ready, RCCE_FLAG_UNSET, rank); /* there were other bytes before */
    RCCE_flag_write(&sent, RCCE_FLAG_UNSET, rank);
    RCCE_barrier(&RCCE_COMM_WORLD);
    memset(data, 'a' + rank, sizeof data);
    CHECK(RCCE_send(data, buffer, 33, &ready, &sent, 10, dest) == RCCE_ERROR_MESSAGE_LENGTH);
    if (rank % 2 == 0) {
        RCCE_send(data, buffer, 96, &ready, &sent, sizeof data, dest);
        do
            RCCE_recv_test(data, buffer, 96, &ready, &sent, sizeof data, dest, &test);
        while (!test);
    } else {
        char own[1000];
        memcpy(own, data, sizeof own);
        RCCE_recv(data, buffer, 96, &ready, &sent, sizeof data, dest);
        RCCE_send(own, buffer, 96, &ready, &sent, sizeof own, dest);
    }
    CHECK(data[0] == 'a' + dest && data[999] == 'a' + dest);
}

int RCCE_APP(int argc, char **argv) {
    RCCE_init(&argc, &argv);
    memory();
    puts_and_gets();
    flags();
    messages();
    return passed();
}
