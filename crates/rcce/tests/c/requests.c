/* iRCCE: requests, wait lists, receives from anybody and of any length, probing, cancelling, tags, counters. */
#define AIR
#include "check.h"
#include "RCCE_lib.h"
#include "iRCCE.h"

#include <string.h>

static char out[4][9000], in[4][9000];

/* Everybody sends to everybody else, with receives posted first. */
static void exchange(void) {
    iRCCE_WAIT_LIST list;
    iRCCE_SEND_REQUEST sends[4];
    iRCCE_RECV_REQUEST receives[4];
    int rank = RCCE_ue(), ranks = RCCE_num_ues();
    iRCCE_init_wait_list(&list);
    for (int other = 0; other < ranks; other++) {
        if (other == rank)
            continue;
        memset(out[other], 10 * rank + other, sizeof out[other]);
        iRCCE_irecv(in[other], sizeof in[other], other, &receives[other]);
        iRCCE_add_to_wait_list(&list, NULL, &receives[other]);
        RCCE_isend(out[other], sizeof out[other], other, &sends[other]);
        iRCCE_add_to_wait_list(&list, &sends[other], NULL);
    }
    CHECK(iRCCE_wait_all(&list) == iRCCE_SUCCESS);
    for (int other = 0; other < ranks; other++)
        CHECK(other == rank || (in[other][0] == 10 * other + rank && in[other][8999] == in[other][0]));
}

/* More requests to one peer than can be under way. */
static void many(void) {
    static iRCCE_SEND_REQUEST sends[150];
    static iRCCE_RECV_REQUEST receives[150];
    static int sent[150], got[150];
    iRCCE_WAIT_LIST list;
    int other = RCCE_ue() ^ 1;
    iRCCE_init_wait_list(&list);
    for (int at = 0; at < 150; at++) {
        sent[at] = 1000 * RCCE_ue() + at;
        int begun = iRCCE_isend((char *)&sent[at], sizeof sent[at], other, &sends[at]);
        CHECK(begun == (at ? iRCCE_RESERVED : iRCCE_PENDING));
        iRCCE_irecv((char *)&got[at], sizeof got[at], other, &receives[at]);
        iRCCE_add_to_wait_list(&list, &sends[at], &receives[at]);
    }
    CHECK(iRCCE_wait_all(&list) == iRCCE_SUCCESS && iRCCE_test_all(&list, NULL) == iRCCE_SUCCESS);
    for (int at = 0; at < 150; at++)
        CHECK(got[at] == 1000 * other + at);
}

static void any_of_a_list(void) {
    iRCCE_WAIT_LIST list;
    iRCCE_RECV_REQUEST receives[4], *over;
    iRCCE_SEND_REQUEST *none;
    int rank = RCCE_ue(), ranks = RCCE_num_ues(), seen = 0;
    if (rank != 0) {
        memset(out[0], rank, 40);
        iRCCE_ssend(out[0], 40, 0);
        return;
    }
    iRCCE_init_wait_list(&list);
    for (int other = 1; other < ranks; other++) {
        iRCCE_irecv(in[other], 40, other, &receives[other]);
        iRCCE_add_to_wait_list(&list, NULL, &receives[other]);
    }
    for (int other = 1; other < ranks; other++) {
        CHECK(iRCCE_wait_any(&list, &none, &over) == iRCCE_SUCCESS && !none && over);
        int source = iRCCE_get_source(over);
        CHECK(!(seen & 1 << source) && in[source][39] == source);
        CHECK(iRCCE_get_size(NULL, over) == 40);
        seen |= 1 << source;
    }
    CHECK(seen == 14);
}

static void from_anybody(void) {
    int rank = RCCE_ue(), ranks = RCCE_num_ues(), sum = 0, source, test;
    if (rank != 0) {
        memset(out[0], rank, 3000);
        iRCCE_isend(out[0], 100 * rank, 0, NULL);
        return;
    }
    for (int other = 1; other < ranks; other++) {
        iRCCE_RECV_REQUEST request;
        CHECK(iRCCE_probe(iRCCE_ANY_SOURCE, &source) == iRCCE_SUCCESS);
        CHECK(iRCCE_iprobe(source, NULL, &test) == iRCCE_SUCCESS && test);
#ifdef SINGLEBITFLAGS
        CHECK(iRCCE_irecv(in[0], iRCCE_ANY_LENGTH, source, &request) == RCCE_ERROR_MESSAGE_LENGTH);
        iRCCE_irecv(in[0], 100 * source, source, &request);
#else
        iRCCE_irecv(in[0], iRCCE_ANY_LENGTH, iRCCE_ANY_SOURCE, &request);
#endif
        iRCCE_irecv_wait(&request);
        source = iRCCE_get_source(&request);
        CHECK(in[0][100 * source - 1] == source && iRCCE_get_length() == 100 * source);
        sum += source;
    }
    CHECK(sum == 6);
}

#define LONG 40000
static char long_out[LONG], long_in[LONG];

static char pattern(int at, int from) { return (char)((at * 31 >> 3) + 7 * from); }

static void fill_long(int bytes) {
    for (int at = 0; at < bytes; at++)
        long_out[at] = pattern(at, RCCE_ue());
    memset(long_in, -1, sizeof long_in);
}

static void check_long(int bytes, int from) {
    int wrong = 0;
    for (int at = 0; at < LONG; at++)
        wrong += long_in[at] != (at < bytes ? pattern(at, from) : -1);
    CHECK(wrong == 0);
}

/* A receive is pending whose message the peer sends only after a blocking call has ended at both. */
static void blocks_beside_a_receive(int bytes) {
    iRCCE_RECV_REQUEST request;
    int rank = RCCE_ue(), test;
    if (rank > 1)
        return;
    fill_long(bytes);
    memset(in[0], 0, 100);
    memset(out[0], rank + 1, 100);
    if (rank == 0) {
        iRCCE_irecv(in[0], 100, 1, &request);
        CHECK(iRCCE_ssend(long_out, bytes, 1) == iRCCE_SUCCESS);
        iRCCE_irecv_wait(&request);
        CHECK(in[0][0] == 2 && in[0][99] == 2);
        CHECK(iRCCE_srecv_test(long_in, 0, 1, &test) == iRCCE_SUCCESS && test);
    } else {
        CHECK(iRCCE_srecv(long_in, bytes, 0) == iRCCE_SUCCESS);
        check_long(bytes, 0);
        CHECK(iRCCE_ssend(out[0], 100, 0) == iRCCE_SUCCESS);
    }
}

/* A blocking receive from one rank goes on while a receive from another is pending, which is sent afterwards. */
static void receives_beside_a_receive(int bytes) {
    iRCCE_RECV_REQUEST request;
    int rank = RCCE_ue(), go = 1;
    fill_long(bytes);
    memset(in[0], 0, 100);
    memset(out[0], rank, 100);
    if (rank == 0) {
        iRCCE_irecv(in[0], 100, 2, &request);
        CHECK(iRCCE_srecv(long_in, bytes, iRCCE_ANY_SOURCE) == iRCCE_SUCCESS);
        check_long(bytes, 1);
        CHECK(iRCCE_ssend((char *)&go, sizeof go, 2) == iRCCE_SUCCESS);
        iRCCE_irecv_wait(&request);
        CHECK(in[0][0] == 2 && in[0][99] == 2);
    } else if (rank == 1) {
        CHECK(iRCCE_ssend(long_out, bytes, 0) == iRCCE_SUCCESS);
    } else if (rank == 2) {
        CHECK(iRCCE_srecv((char *)&go, sizeof go, 0) == iRCCE_SUCCESS);
        CHECK(iRCCE_ssend(out[0], 100, 0) == iRCCE_SUCCESS);
    }
}

/* Both of a pair wait for one request while the other, of several parts, is pending. */
static void separate_waits(void) {
    iRCCE_SEND_REQUEST sending;
    iRCCE_RECV_REQUEST receiving;
    int rank = RCCE_ue(), other = rank ^ 1;
    for (int bytes = 20000; bytes <= 20001; bytes++)
        for (int sends_first = 0; sends_first < 2; sends_first++) {
            fill_long(bytes);
            iRCCE_isend(long_out, bytes, other, &sending);
            iRCCE_irecv(long_in, bytes, other, &receiving);
            if (sends_first)
                iRCCE_isend_wait(&sending);
            iRCCE_irecv_wait(&receiving);
            iRCCE_isend_wait(&sending);
            check_long(bytes, other);
        }
}

/* Rank 0 waits for rank 1, which sends only after rank 2 has, which waits for a second request of rank 0. */
static void waits_serve_other_requests(void) {
    iRCCE_RECV_REQUEST from_1, from_2;
    int rank = RCCE_ue();
    if (rank == 0) {
        iRCCE_irecv(in[1], 64, 1, &from_1);
        iRCCE_irecv(in[2], 64, 2, &from_2);
        iRCCE_irecv_wait(&from_1);
        iRCCE_irecv_wait(&from_2);
    } else if (rank == 2) {
        iRCCE_isend(out[0], 64, 0, NULL);
        iRCCE_isend(out[0], 64, 1, NULL);
    } else if (rank == 1) {
        iRCCE_irecv(in[2], 64, 2, NULL);
        iRCCE_isend(out[0], 64, 0, NULL);
    }
}

/* Lengths around the halves of the buffer and its whole, from all others at once. */
static void pipelined(void) {
    int rank = RCCE_ue(), ranks = RCCE_num_ues(), chunk = (int)RCCE_chunk;
    const int lengths[] = {1, 33, chunk - 1, chunk, chunk + 1, chunk + 32, 2 * chunk, 3 * chunk + 47, LONG};
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        int bytes = lengths[at];
        fill_long(bytes);
        if (rank != 0) {
            CHECK(iRCCE_ssend(long_out, bytes, 0) == iRCCE_SUCCESS);
        } else {
            for (int other = ranks - 1; other > 0; other--) {
                memset(long_in, -1, sizeof long_in);
                CHECK(iRCCE_srecv(long_in, bytes, other) == iRCCE_SUCCESS);
                check_long(bytes, other);
            }
        }
        if (rank == 0) {
            for (int other = 1; other < ranks; other++)
                iRCCE_ssend(long_out, bytes, other);
        } else {
#ifdef SINGLEBITFLAGS
            iRCCE_srecv(long_in, bytes, iRCCE_ANY_SOURCE);
#else
            iRCCE_srecv(long_in, iRCCE_ANY_LENGTH, iRCCE_ANY_SOURCE);
            CHECK(iRCCE_get_length() == bytes);
#endif
            check_long(bytes, 0);
        }
    }
    CHECK(iRCCE_ssend(long_out, 1, ranks) == RCCE_ERROR_ID && iRCCE_ssend(long_out, -1, 0) != iRCCE_SUCCESS);
}

static void multicasts(void) {
    int rank = RCCE_ue();
    for (int root = 0; root < RCCE_num_ues(); root++)
        for (int bytes = 0; bytes <= LONG; bytes += 13333) {
            fill_long(bytes);
            CHECK(iRCCE_mcast(rank == root ? long_out : long_in, (size_t)bytes, root) == iRCCE_SUCCESS);
            if (rank != root)
                check_long(bytes, root);
            fill_long(bytes);
            iRCCE_bcast(rank == root ? long_out : long_in, (size_t)bytes, root, RCCE_COMM_WORLD);
            if (rank != root)
                check_long(bytes, root);
        }
}

static void cancelling(void) {
    iRCCE_RECV_REQUEST request;
    int test, other = RCCE_ue() ^ 1;
    CHECK(iRCCE_irecv(in[0], 32, other, &request) == iRCCE_PENDING);
    CHECK(iRCCE_irecv_test(&request, &test) == iRCCE_PENDING && !test);
    CHECK(iRCCE_irecv_cancel(&request, &test) == iRCCE_SUCCESS && test);
    CHECK(iRCCE_irecv_push() == iRCCE_SUCCESS);
    CHECK(iRCCE_isend(out[0], -1, other, NULL) == RCCE_ERROR_MESSAGE_LENGTH);
}

static void counters(void) {
    iRCCE_AIR *counter;
    int value, before;
    iRCCE_atomic_alloc(&counter);
    for (int round = 0; round < 10; round++)
        iRCCE_atomic_inc(counter, &before);
    RCCE_barrier(&RCCE_COMM_WORLD);
    iRCCE_atomic_read(counter, &value);
    CHECK(value == 40 && before < 40);
}

#ifndef SINGLEBITFLAGS
static void tags(void) {
    RCCE_FLAG flag;
    char tag[iRCCE_MAX_TAGGED_LEN] = "to the next", got[iRCCE_MAX_TAGGED_LEN];
    iRCCE_flag_alloc_tagged(&flag);
    CHECK(iRCCE_flag_write_tagged(&flag, 1, 0, tag, 29) == RCCE_ERROR_MESSAGE_LENGTH);
    iRCCE_flag_write_tagged(&flag, RCCE_FLAG_SET, (RCCE_ue() + 1) % RCCE_num_ues(), tag, sizeof tag);
    iRCCE_wait_tagged(flag, RCCE_FLAG_SET, got, sizeof got);
    CHECK(!memcmp(tag, got, sizeof tag) && iRCCE_get_max_tagged_len() == 28);
}
#endif

int RCCE_APP(int argc, char **argv) {
    RCCE_init(&argc, &argv);
    iRCCE_init();
    exchange();
    many();
    RCCE_barrier(&RCCE_COMM_WORLD);
    any_of_a_list();
    RCCE_barrier(&RCCE_COMM_WORLD);
    from_anybody();
    RCCE_barrier(&RCCE_COMM_WORLD);
    separate_waits();
    waits_serve_other_requests();
    RCCE_barrier(&RCCE_COMM_WORLD);
    blocks_beside_a_receive(100);
    blocks_beside_a_receive(LONG);
    RCCE_barrier(&RCCE_COMM_WORLD);
    receives_beside_a_receive(100);
    RCCE_barrier(&RCCE_COMM_WORLD);
    receives_beside_a_receive(LONG);
    CHECK(iRCCE_mcast(in[0], 4, -1) == RCCE_ERROR_ID);
    RCCE_barrier(&RCCE_COMM_WORLD);
    pipelined();
    multicasts();
    cancelling();
    counters();
#ifndef SINGLEBITFLAGS
    tags();
#endif
    return passed();
}
