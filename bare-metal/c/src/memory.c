/* Memory and texts: the heap between the image and the end of private memory, copies, searches, sorting, numbers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A block of the heap; blocks lie one behind the other. */
struct block {
    size_t bytes; /* without this header */
    size_t is_free;
};

#define MEMORY_END 0x3ff0000
extern char bare_image_end[];
static struct block *first;

static struct block *next_of(struct block *block) {
    return (struct block *)((char *)(block + 1) + block->bytes);
}

static int is_end(struct block *block) { return (uintptr_t)block >= MEMORY_END; }

static void begin(void) {
    first = (struct block *)(((uintptr_t)bare_image_end + 63) / 64 * 64);
    first->bytes = MEMORY_END - (uintptr_t)(first + 1);
    first->is_free = 1;
}

/* Disables interrupts, so that no other thread of the core runs, and returns the flags before. */
static uint64_t disable_interrupts(void) {
    uint64_t flags;
    __asm__ volatile("pushfq; popq %0; cli" : "=r"(flags) : : "memory");
    return flags;
}

static void restore_interrupts(uint64_t flags) { __asm__ volatile("pushq %0; popfq" : : "r"(flags) : "memory", "cc"); }

/* First fit; neighbours that are free are joined on the way. */
static void *allocate(size_t bytes) {
    if (!first)
        begin();
    if (bytes > MEMORY_END)
        return NULL;
    bytes = (bytes + 15) / 16 * 16;
    for (struct block *block = first; !is_end(block); block = next_of(block)) {
        if (!block->is_free)
            continue;
        while (!is_end(next_of(block)) && next_of(block)->is_free)
            block->bytes += sizeof *block + next_of(block)->bytes;
        if (block->bytes < bytes)
            continue;
        if (block->bytes >= bytes + 2 * sizeof *block) {
            size_t rest = block->bytes - bytes - sizeof *block;
            block->bytes = bytes;
            next_of(block)->bytes = rest;
            next_of(block)->is_free = 1;
        }
        block->is_free = 0;
        return block + 1;
    }
    return NULL;
}

void *malloc(size_t bytes) {
    uint64_t flags = disable_interrupts();
    void *memory = allocate(bytes);
    restore_interrupts(flags);
    return memory;
}

void free(void *memory) {
    if (memory)
        ((struct block *)memory - 1)->is_free = 1; /* one store, so a thread that allocates sees it or does not */
}

void *calloc(size_t count, size_t bytes) {
    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    void *memory = malloc(count * bytes);
    return memory ? memset(memory, 0, count * bytes) : NULL;
}

void *realloc(void *memory, size_t bytes) {
    void *other = malloc(bytes);
    if (memory && other) {
        size_t old = ((struct block *)memory - 1)->bytes;
        memcpy(other, memory, old < bytes ? old : bytes);
        free(memory);
    }
    return other;
}

/* By words: a translator takes as long for a byte. */
typedef uint64_t __attribute__((aligned(1), may_alias)) any_word;
#define PLAIN_LOOPS "no-tree-loop-distribute-patterns", "no-tree-vectorize", "no-tree-slp-vectorize"
#define NO_CALLS __attribute__((optimize(PLAIN_LOOPS)))

/* Eight words between two branches, each of which takes a translator as long as several words. Registers of SSE, which
 * plain loops avoid, are memory to it. */
NO_CALLS void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    char *target = to;
    const char *source = from;
    for (; bytes >= 64; bytes -= 64, target += 64, source += 64) {
        any_word *there = (any_word *)target;
        const any_word *here = (const any_word *)source;
        uint64_t first = here[0], second = here[1], third = here[2], fourth = here[3];
        there[0] = first, there[1] = second, there[2] = third, there[3] = fourth;
        first = here[4], second = here[5], third = here[6], fourth = here[7];
        there[4] = first, there[5] = second, there[6] = third, there[7] = fourth;
    }
    for (; bytes >= 8; bytes -= 8, target += 8, source += 8)
        *(any_word *)target = *(const any_word *)source;
    while (bytes--)
        *target++ = *source++;
    return to;
}

NO_CALLS void *memmove(void *to, const void *from, size_t bytes) {
    char *target = to;
    const char *source = from;
    if (target <= source || target >= source + bytes)
        for (size_t at = 0; at < bytes; at++)
            target[at] = source[at];
    else
        while (bytes--)
            target[bytes] = source[bytes];
    return to;
}

NO_CALLS void *memset(void *memory, int byte, size_t bytes) {
    char *target = memory;
    uint64_t word = (unsigned char)byte * 0x0101010101010101u;
    for (; bytes >= 8; bytes -= 8, target += 8)
        *(any_word *)target = word;
    while (bytes--)
        *target++ = (char)byte;
    return memory;
}

NO_CALLS int memcmp(const void *one, const void *other, size_t bytes) {
    const unsigned char *first_byte = one, *second_byte = other;
    for (; bytes--; first_byte++, second_byte++)
        if (*first_byte != *second_byte)
            return *first_byte - *second_byte;
    return 0;
}

NO_CALLS size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

char *strcpy(char *restrict to, const char *restrict from) { return memcpy(to, from, strlen(from) + 1); }

char *strncpy(char *restrict to, const char *restrict from, size_t bytes) {
    size_t at = 0;
    for (; at < bytes && from[at]; at++)
        to[at] = from[at];
    for (; at < bytes; at++)
        to[at] = 0;
    return to;
}

int strncmp(const char *one, const char *other, size_t bytes) {
    for (; bytes; bytes--, one++, other++)
        if (*one != *other || !*one)
            return (unsigned char)*one - (unsigned char)*other;
    return 0;
}

int strcmp(const char *one, const char *other) { return strncmp(one, other, SIZE_MAX); }

char *strchr(const char *text, int byte) {
    for (; *text != (char)byte; text++)
        if (!*text)
            return NULL;
    return (char *)text;
}

unsigned long strtoul(const char *text, char **end, int base) {
    const char *start = text;
    unsigned long value = 0;
    while (*text == ' ' || (*text >= '\t' && *text <= '\r'))
        text++;
    int is_negative = *text == '-';
    text += *text == '-' || *text == '+';
    if ((base == 0 || base == 16) && text[0] == '0' && (text[1] | 32) == 'x') {
        text += 2;
        base = 16;
    } else if (base == 0) {
        base = *text == '0' ? 8 : 10;
    }
    const char *digits = text;
    for (;; text++) {
        int digit = *text >= '0' && *text <= '9' ? *text - '0' : (*text | 32) >= 'a' ? (*text | 32) - 'a' + 10 : base;
        if (digit >= base)
            break;
        value = value * (unsigned long)base + (unsigned long)digit;
    }
    if (end)
        *end = (char *)(text == digits ? start : text);
    return is_negative ? -value : value;
}

long strtol(const char *text, char **end, int base) { return (long)strtoul(text, end, base); }
int atoi(const char *text) { return (int)strtol(text, NULL, 10); }
int abs(int value) { return value < 0 ? -value : value; }

static void swap(char *one, char *other, size_t bytes) {
    for (; bytes--; one++, other++) {
        char byte = *one;
        *one = *other;
        *other = byte;
    }
}

/* A heap sort: no memory, no bad case. */
void qsort(void *items, size_t count, size_t bytes, int (*compare)(const void *, const void *)) {
    char *base = items;
    for (size_t end = count, start = count / 2; end > 1;) {
        if (start > 0)
            start--;
        else
            swap(base, base + --end * bytes, bytes);
        for (size_t root = start, child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && compare(base + child * bytes, base + (child + 1) * bytes) < 0)
                child++;
            if (compare(base + root * bytes, base + child * bytes) >= 0)
                break;
            swap(base + root * bytes, base + child * bytes, bytes);
        }
    }
}
