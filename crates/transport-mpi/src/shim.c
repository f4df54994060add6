/* The calls of MPI that the transport needs, without a type of the library in any signature.
 *
 * Requests stay in a table here and are numbers outside: MPICH's are integers, Open MPI's are pointers. Each function
 * returns the library's code, 0 for success. All are called by one thread (MPI_THREAD_FUNNELED).
 */

#define _GNU_SOURCE /* environ, on_exit */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static MPI_Comm frames = MPI_COMM_NULL; /* small messages, whose tag is their class */
static MPI_Comm blocks = MPI_COMM_NULL; /* large ones, each with a tag of its own */

static MPI_Request *requests;
static int *next_free; /* for each free slot the next one */
static int slots, first_free = -1;

static int take_slot(void) {
    if (first_free < 0) {
        int more = slots ? 2 * slots : 64;
        MPI_Request *grown = realloc(requests, (size_t)more * sizeof *grown);
        if (!grown) abort();
        requests = grown;
        int *links = realloc(next_free, (size_t)more * sizeof *links);
        if (!links) abort();
        next_free = links;
        for (int slot = more - 1; slot >= slots; slot--) {
            next_free[slot] = first_free;
            first_free = slot;
        }
        slots = more;
    }
    int slot = first_free;
    first_free = next_free[slot];
    return slot;
}

static int give_back(int code, int slot) {
    next_free[slot] = first_free;
    first_free = slot;
    return code;
}

/* Two copies of a communicator, so that nothing of the program gets in between. */
static int copy(MPI_Comm of, int *rank, int *size) {
    int code;
    if ((code = MPI_Comm_dup(of, &frames))) return code;
    if ((code = MPI_Comm_dup(of, &blocks))) return code;
    MPI_Comm_set_errhandler(frames, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(blocks, MPI_ERRORS_RETURN);
    if ((code = MPI_Comm_rank(frames, rank))) return code;
    return MPI_Comm_size(frames, size);
}

/* How a process of MPICH talks to its launcher, or -1. */
static int hydra = -1;

/* What launchers tell a rank of itself, as names begin, but for what people set (PMIX_MCA_). */
static const char *const of_launchers[] = {
    "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE=", "OMPI_APP_CTX_NUM_PROCS=", "OMPI_NUM_APP_CTX=", "OMPI_FIRST_RANKS=",
    "OMPI_FILE_LOCATION=", "OMPI_COMMAND=", "OMPI_MCA_ess=", "OMPI_MCA_ess_base_", "OMPI_MCA_orte_", "OMPI_MCA_pmix=",
    "PMIX_", "PMI_", "MPI_LOCALNRANKS=", "MPI_LOCALRANKID=", "HYDI_CONTROL_FD=",
};

static int is_of_launcher(const char *variable) {
    if (!strncmp(variable, "PMIX_MCA_", strlen("PMIX_MCA_"))) return 0;
    for (size_t at = 0; at < sizeof of_launchers / sizeof *of_launchers; at++)
        if (!strncmp(variable, of_launchers[at], strlen(of_launchers[at]))) return 1;
    return 0;
}

/* Takes what the launcher has said out of the environment, so that a program that this process starts is no rank. The
 * library has read it. Its threads may read the environment meanwhile: it gets another list, and nothing moves. */
static void forget_launcher(void) {
    const char *descriptor = getenv("PMI_FD");
    if (descriptor) {
        hydra = atoi(descriptor);
        fcntl(hydra, F_SETFD, FD_CLOEXEC);
    }
    size_t all = 0, kept = 0;
    while (environ[all]) all++;
    char **list = malloc((all + 1) * sizeof *list);
    if (!list) abort();
    for (size_t at = 0; at < all; at++)
        if (!is_of_launcher(environ[at])) list[kept++] = environ[at];
    list[kept] = NULL;
    __atomic_store_n(&environ, list, __ATOMIC_RELEASE);
}

/* Begins the library, unless the program has; on all ranks. */
int shim_begin(int *rank, int *size) {
    int provided = MPI_THREAD_SINGLE, begun = 0;
    MPI_Initialized(&begun);
    int code = begun ? MPI_Query_thread(&provided) : MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (code) return code;
    if (provided < MPI_THREAD_FUNNELED) return -1;
    forget_launcher();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return copy(MPI_COMM_WORLD, rank, size);
}

/* How many processes a communicator of the program has, an integer of Fortran; all that can be wrong is seen here. */
int shim_size(int communicator, int *size) {
    int begun = 0, ended = 0, provided = MPI_THREAD_SINGLE, is_inter = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (!begun || ended) return -2;
    int code = MPI_Query_thread(&provided);
    if (code) return code;
    if (provided < MPI_THREAD_FUNNELED) return -1;
    MPI_Comm of = MPI_Comm_f2c(communicator);
    if (of == MPI_COMM_NULL) return -3;
    if ((code = MPI_Comm_test_inter(of, &is_inter))) return code;
    return is_inter ? -4 : MPI_Comm_size(of, size);
}

/* Uses such a communicator until shim_give_back, which all of its processes call, too. */
int shim_use(int communicator, int *rank, int *size) {
    return copy(MPI_Comm_f2c(communicator), rank, size);
}

int shim_give_back(void) {
    int code = MPI_Comm_free(&blocks);
    return code ? code : MPI_Comm_free(&frames);
}

int shim_send_frame(const void *bytes, int length, int to, int tag, int *slot) {
    *slot = take_slot();
    int code = MPI_Isend(bytes, length, MPI_BYTE, to, tag, frames, &requests[*slot]);
    return code ? give_back(code, *slot) : 0;
}

int shim_send_block(const void *bytes, int length, int to, int tag, int *slot) {
    *slot = take_slot();
    int code = MPI_Isend(bytes, length, MPI_BYTE, to, tag, blocks, &requests[*slot]);
    return code ? give_back(code, *slot) : 0;
}

int shim_receive_block(void *bytes, int length, int from, int tag, int *slot) {
    *slot = take_slot();
    int code = MPI_Irecv(bytes, length, MPI_BYTE, from, tag, blocks, &requests[*slot]);
    return code ? give_back(code, *slot) : 0;
}

/* Whether a request is done; if it is, its slot is free again. */
int shim_test(int slot, int *done) {
    int code = MPI_Test(&requests[slot], done, MPI_STATUS_IGNORE);
    return code || *done ? give_back(code, slot) : 0;
}

/* Posts a receive of the next frame that no earlier receive takes. */
int shim_post_frame(void *bytes, int room, int *slot) {
    *slot = take_slot();
    int code = MPI_Irecv(bytes, room, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, frames, &requests[*slot]);
    return code ? give_back(code, *slot) : 0;
}

/* As shim_test; of whom the frame is, of which tag, and how long, if it has come. */
int shim_test_frame(int slot, int *done, int *from, int *tag, int *length) {
    MPI_Status status;
    int code = MPI_Test(&requests[slot], done, &status);
    if (code || !*done) return code ? give_back(code, slot) : 0;
    *from = status.MPI_SOURCE;
    *tag = status.MPI_TAG;
    return give_back(MPI_Get_count(&status, MPI_BYTE, length), slot);
}

/* Ends a receive that nothing has come for. */
int shim_cancel(int slot) {
    int code = MPI_Cancel(&requests[slot]);
    return give_back(code ? code : MPI_Wait(&requests[slot], MPI_STATUS_IGNORE), slot);
}

/* What each rank says of itself; only at the start, where all do nothing else. */
int shim_gather_all(const void *own, int length, void *all) {
    return MPI_Allgather(own, length, MPI_BYTE, all, length, MPI_BYTE, frames);
}

int shim_begin_barrier(int *slot) {
    *slot = take_slot();
    int code = MPI_Ibarrier(frames, &requests[*slot]);
    return code ? give_back(code, *slot) : 0;
}

static void (*at_exit)(int);

static void exiting(int code, void *unused) {
    (void)unused;
    at_exit(code);
}

/* Lets `call` be called with the exit code when the process exits in good order. */
int shim_at_exit(void (*call)(int)) {
    at_exit = call;
    return on_exit(exiting, NULL);
}

int shim_end(void) {
    return MPI_Finalize();
}

/* Ends this process with `code` as its launcher wants it, without MPI_Finalize: that of MPICH sometimes never ends over
 * TCP (openucx/ucx 8738). Returns if that is no need or no way; the requests of all ranks are done. */
void shim_sign_off(int code) {
#ifdef MPICH_VERSION
    /* The words of PMI 1 by which a process tells Hydra that it is done; the process then may end as it likes. */
    const char *words = "cmd=finalize\n";
    if (hydra < 0) return;
    char answer[256];
    if (write(hydra, words, strlen(words)) != (ssize_t)strlen(words)) return;
    if (read(hydra, answer, sizeof answer) <= 0) return;
    fflush(NULL);
    _exit(code);
#else
    (void)code;
#endif
}

void shim_leave(int code) {
    _exit(code);
}

int shim_abort(int code) {
    return MPI_Abort(MPI_COMM_WORLD, code);
}

/* The library and its version, cut to `room` bytes with the closing zero. */
void shim_version(char *text, int room) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (MPI_Get_library_version(version, &length)) length = 0;
    version[length] = 0;
    strncpy(text, version, (size_t)room - 1);
    text[room - 1] = 0;
}

/* What an error code means. */
void shim_error(int code, char *text, int room) {
    char meaning[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (code < 0 || MPI_Error_string(code, meaning, &length)) length = 0;
    meaning[length] = 0;
    strncpy(text, meaning, (size_t)room - 1);
    text[room - 1] = 0;
}
