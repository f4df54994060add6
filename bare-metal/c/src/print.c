/* printf and its kin: one formatter, whose texts go to the console or into memory. */
#include "bare.h"

#include <stdio.h>
#include <string.h>

struct bare_file {
    int unused;
};
static struct bare_file console;
FILE *const stdin = &console, *const stdout = &console, *const stderr = &console;

#define NUMBER_MAX 512
#define CHUNK 256

/* Where text goes: memory of `room` bytes, or, if that is null, the console by chunks. */
struct sink {
    char *memory;
    size_t room, total, used;
    char chunk[CHUNK];
};

static void flush(struct sink *sink) {
    bare_write(sink->chunk, sink->used);
    sink->used = 0;
}

static void put(struct sink *sink, char byte) {
    if (sink->memory) {
        if (sink->total + 1 < sink->room)
            sink->memory[sink->total] = byte;
    } else {
        if (sink->used == CHUNK)
            flush(sink);
        sink->chunk[sink->used++] = byte;
    }
    sink->total++;
}

static void pad(struct sink *sink, char byte, int count) {
    while (count-- > 0)
        put(sink, byte);
}

struct directive {
    int is_left, has_plus, has_space, has_zero, is_alternate;
    int width, precision; /* precision -1: none */
    int longs;            /* of the length: -2 hh, -1 h, 0, 1 l, 2 ll */
};

/* A text with a prefix of signs, filled to the width. */
static void put_field(struct sink *sink, const struct directive *directive, const char *prefix, const char *text,
                      int length, int zeros, int may_zero) {
    int fill = directive->width - (int)strlen(prefix) - length - zeros;
    if (may_zero && directive->has_zero && !directive->is_left) {
        zeros += fill > 0 ? fill : 0;
        fill = 0;
    }
    if (!directive->is_left)
        pad(sink, ' ', fill);
    while (*prefix)
        put(sink, *prefix++);
    pad(sink, '0', zeros);
    for (int at = 0; at < length; at++)
        put(sink, text[at]);
    if (directive->is_left)
        pad(sink, ' ', fill);
}

static const char *sign_of(const struct directive *directive, int is_negative) {
    return is_negative ? "-" : directive->has_plus ? "+" : directive->has_space ? " " : "";
}

static void put_integer(struct sink *sink, const struct directive *directive, const char *prefix, uint64_t value,
                        unsigned base, int is_capital) {
    char digits[24];
    int at = (int)sizeof digits;
    for (; value; value /= base)
        digits[--at] = (is_capital ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
    int length = (int)sizeof digits - at, least = directive->precision < 0 ? 1 : directive->precision;
    put_field(sink, directive, prefix, digits + at, length, length < least ? least - length : 0,
              directive->precision < 0);
}

static void put_double(struct sink *sink, const struct directive *directive, char conversion, double value) {
    char digits[NUMBER_MAX], *text = digits;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    size_t length = bare_format_double(bits & ~(1ull << 63), (unsigned char)conversion,
                                       (uint32_t)(directive->precision < 0 ? 6 : directive->precision),
                                       directive->is_alternate, digits, sizeof digits);
    put_field(sink, directive, sign_of(directive, bits >> 63), text, (int)length, 0, (bits >> 52 & 0x7ff) != 0x7ff);
}

static int64_t signed_of(const struct directive *directive, va_list *arguments) {
    if (directive->longs > 0)
        return va_arg(*arguments, int64_t);
    int value = va_arg(*arguments, int);
    return directive->longs == -1 ? (short)value : directive->longs == -2 ? (signed char)value : value;
}

static uint64_t unsigned_of(const struct directive *directive, va_list *arguments) {
    if (directive->longs > 0)
        return va_arg(*arguments, uint64_t);
    unsigned value = va_arg(*arguments, unsigned);
    return directive->longs == -1 ? (unsigned short)value : directive->longs == -2 ? (unsigned char)value : value;
}

static const char *read_number(const char *format, int *number, va_list *arguments) {
    *number = 0;
    if (*format == '*') {
        *number = va_arg(*arguments, int);
        return format + 1;
    }
    while (*format >= '0' && *format <= '9')
        *number = *number * 10 + (*format++ - '0');
    return format;
}

/* Reads flags, width, precision and length behind a %. */
static const char *read_directive(const char *format, struct directive *directive, va_list *arguments) {
    for (;; format++) {
        if (*format == '-')
            directive->is_left = 1;
        else if (*format == '+')
            directive->has_plus = 1;
        else if (*format == ' ')
            directive->has_space = 1;
        else if (*format == '0')
            directive->has_zero = 1;
        else if (*format == '#')
            directive->is_alternate = 1;
        else
            break;
    }
    format = read_number(format, &directive->width, arguments);
    if (directive->width < 0) {
        directive->is_left = 1;
        directive->width = -directive->width;
    }
    directive->precision = -1;
    if (*format == '.')
        format = read_number(format + 1, &directive->precision, arguments);
    for (;; format++) {
        if (*format == 'l')
            directive->longs++;
        else if (*format == 'h')
            directive->longs--;
        else if (*format == 'z' || *format == 'j' || *format == 't')
            directive->longs = 1;
        else
            return format;
    }
}

static void put_conversion(struct sink *sink, const struct directive *directive, char conversion, va_list *arguments) {
    switch (conversion) {
    case 'd':
    case 'i': {
        int64_t value = signed_of(directive, arguments);
        uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
        put_integer(sink, directive, sign_of(directive, value < 0), size, 10, 0);
        break;
    }
    case 'u':
        put_integer(sink, directive, "", unsigned_of(directive, arguments), 10, 0);
        break;
    case 'o':
        put_integer(sink, directive, directive->is_alternate ? "0" : "", unsigned_of(directive, arguments), 8, 0);
        break;
    case 'x':
    case 'X': {
        uint64_t value = unsigned_of(directive, arguments);
        const char *prefix = !directive->is_alternate || !value ? "" : conversion == 'x' ? "0x" : "0X";
        put_integer(sink, directive, prefix, value, 16, conversion == 'X');
        break;
    }
    case 'p':
        put_integer(sink, directive, "0x", (uintptr_t)va_arg(*arguments, void *), 16, 0);
        break;
    case 'c': {
        char byte = (char)va_arg(*arguments, int);
        put_field(sink, directive, "", &byte, 1, 0, 0);
        break;
    }
    case 's': {
        const char *text = va_arg(*arguments, const char *);
        size_t length = 0, most = directive->precision < 0 ? SIZE_MAX : (size_t)directive->precision;
        text = text ? text : "(null)";
        while (length < most && text[length])
            length++;
        put_field(sink, directive, "", text, (int)length, 0, 0);
        break;
    }
    default:
        if (conversion && strchr("fFeEgG", conversion))
            put_double(sink, directive, conversion, va_arg(*arguments, double));
        else if (conversion)
            put(sink, conversion);
    }
}

static int format_into(struct sink *sink, const char *format, va_list given) {
    va_list arguments;
    va_copy(arguments, given);
    while (*format) {
        if (*format != '%') {
            put(sink, *format++);
            continue;
        }
        struct directive directive = {0};
        format = read_directive(format + 1, &directive, &arguments);
        put_conversion(sink, &directive, *format, &arguments);
        format += *format != 0;
    }
    va_end(arguments);
    if (!sink->memory)
        flush(sink);
    else if (sink->room)
        sink->memory[sink->total < sink->room ? sink->total : sink->room - 1] = 0;
    return (int)sink->total;
}

int vprintf(const char *format, va_list arguments) {
    struct sink sink = {.memory = NULL};
    return format_into(&sink, format, arguments);
}

int vfprintf(FILE *file, const char *format, va_list arguments) {
    (void)file;
    return vprintf(format, arguments);
}

int vsnprintf(char *memory, size_t room, const char *format, va_list arguments) {
    char nothing;
    struct sink sink = {.memory = memory ? memory : &nothing, .room = memory ? room : 0};
    return format_into(&sink, format, arguments);
}

#define WITH_ARGUMENTS(last, call)                                                                                     \
    va_list arguments;                                                                                                 \
    va_start(arguments, last);                                                                                         \
    int total = call;                                                                                                  \
    va_end(arguments);                                                                                                 \
    return total

int printf(const char *format, ...) { WITH_ARGUMENTS(format, vprintf(format, arguments)); }
int fprintf(FILE *file, const char *format, ...) { WITH_ARGUMENTS(format, vfprintf(file, format, arguments)); }
int snprintf(char *memory, size_t room, const char *format, ...) {
    WITH_ARGUMENTS(format, vsnprintf(memory, room, format, arguments));
}
int sprintf(char *memory, const char *format, ...) {
    WITH_ARGUMENTS(format, vsnprintf(memory, (size_t)1 << 30, format, arguments));
}

int fputs(const char *text, FILE *file) {
    (void)file;
    bare_write(text, strlen(text));
    return 0;
}

int fputc(int byte, FILE *file) {
    char text = (char)byte;
    (void)file;
    bare_write(&text, 1);
    return (unsigned char)byte;
}

int puts(const char *text) { return printf("%s\n", text); }
int putchar(int byte) { return fputc(byte, stdout); }

size_t fwrite(const void *data, size_t bytes, size_t count, FILE *file) {
    (void)file;
    bare_write(data, bytes * count);
    return count;
}

int fflush(FILE *file) {
    (void)file;
    return 0;
}

int setvbuf(FILE *file, char *memory, int mode, size_t bytes) {
    (void)file, (void)memory, (void)mode, (void)bytes;
    return 0;
}
