/* What printf writes for each conversion; the same program runs on a bare core and on the host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }

int main(void) {
    static const double values[] = {0.0,  -0.0, 1.0,       0.1,   -2.5,   123456.0, 1234567.0,
                                    1e-4, 1e-5, 9.9999995, 1e300, 5e-324, 2.0 / 3,  153812.67955014895};
    for (size_t at = 0; at < sizeof values / sizeof *values; at++) {
        double value = values[at];
        printf("%g %.17g %e %.3f %10.2e|%-12g|%+g|% .1f|%08.3f|%#g %G %.0f %.0e\n", value, value, value, value, value,
               value, value, value, value, value, value, value, value);
    }
    static const long integers[] = {0, 1, -1, 42, -123456789, 2147483647, -2147483648L, 9223372036854775807L};
    for (size_t at = 0; at < sizeof integers / sizeof *integers; at++) {
        long value = integers[at];
        printf("%d %ld %u %lu %x %lX %#lx %o|%8d|%-8d|%08d|%+d|% d|%.5d|%8.3d|%hd %hhd\n", (int)value, value,
               (unsigned)value, (unsigned long)value, (unsigned)value, value, value, (unsigned)value, (int)value,
               (int)value, (int)value, (int)value, (int)value, (int)value, (int)value, (int)value, (int)value);
    }
    printf("%s|%10s|%-10s|%.2s|%c|%%|%*d|%-*d|%.*f\n", "text", "text", "text", "text", 'c', 6, 7, 6, 7, 2, 1.0);
    printf("%f %F %e %g\n", 1.0 / 0.0, -1.0 / 0.0, 1.0 / 0.0, 1.0 / 0.0);
    printf("%zu %lld %5s|%.0d|\n", sizeof(int), -1LL, "", 0);

    char text[8];
    int length = snprintf(text, sizeof text, "%d-%s", 12345, "abcdef");
    printf("%d %s %d\n", length, text, (int)strlen(text));
    printf("%d %ld %lu %ld\n", atoi(" -17x"), strtol("0x1f", NULL, 0), strtoul("777", NULL, 8),
           strtol("-12", NULL, 10));
    int items[] = {5, 3, 9, -1, 7, 7, 0, 2};
    qsort(items, 8, sizeof *items, by_value);
    for (int at = 0; at < 8; at++)
        printf("%d%c", items[at], at == 7 ? '\n' : ' ');
    for (int seed = 1; seed <= 20; seed++) {
        char *memory = calloc((size_t)seed * 100, 1), *larger;
        memory[seed] = (char)seed;
        larger = realloc(memory, (size_t)seed * 1000);
        printf("%d %d %d\n", larger[seed], larger[seed - 1], strcmp("abc", "abd") < 0);
        if (seed % 3)
            free(larger);
    }
    return 0;
}
