/* The case `channel` of `isles run ocean` as a plain loop on one core: the same scheme, no places, no messages.
 *
 * Every expression is that of apps/ocean/src, so all bits are the same, which the hash shows. Arguments: steps, and how
 * often they are run; prints millions of cells a second in the fastest of them, and the hash of the last step. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 64, COLUMNS = 512, LEVELS = 30, HALO = 2, SUBSTEPS = 20 };
enum { STRIDE = COLUMNS + 2 * HALO, PLANE = (ROWS + 2 * HALO) * STRIDE };

static const double DX = 2e4, DY = 2e4, GRAVITY = 9.81, CORIOLIS = -1.2e-4, BETA = 1.3e-11, VISCOSITY = 400.0;
static const double VERTICAL_VISCOSITY = 0.02, DIFFUSIVITY = 100.0, VERTICAL_DIFFUSIVITY = 1e-4, DRAG = 5e-4;
static const double WIND = 2e-4, STEP = 200.0, AHEAD = 1.6;

typedef double *restrict field;
typedef const double *restrict seen;

static double *depth, *mask[2], *coriolis, *wind, *surface, *before, *mean[2], *slow[2], *flow[2], *sum[2];
static double *velocity[2], *tendency[2], *ahead[2], *tracer, *next, *rise;
static double *wet[2], *courant[2], *layer_flow[2], *carried[2], *inverse, *below, *above;

static double *planes(size_t number) {
    double *values = calloc(number * PLANE, sizeof *values);
    if (!values) exit(1);
    return values;
}

static size_t at(int row, int column) { return (size_t)(row + HALO) * STRIDE + (size_t)(column + HALO); }

static double wrapped_row(int row) { return (row + ROWS) % ROWS; }

static double depth_of(int row, int column) {
    double along = ((column + COLUMNS) % COLUMNS + 0.5) / COLUMNS;
    double off = (along - 0.4) / 0.05;
    (void)row;
    return 4000.0 - 1500.0 * exp(-(off * off));
}

/* Copies the halos of some planes: periodic in both directions. */
static void wrap(double *values, size_t number) {
    for (size_t level = 0; level < number; level++, values += PLANE) {
        for (int row = -HALO; row < 0; row++) {
            memcpy(values + at(row, 0), values + at(row + ROWS, 0), COLUMNS * sizeof *values);
            memcpy(values + at(row + ROWS + HALO, 0), values + at(row + HALO, 0), COLUMNS * sizeof *values);
        }
        for (int row = -HALO; row < ROWS + HALO; row++)
            for (int column = -HALO; column < 0; column++) {
                values[at(row, column)] = values[at(row, column + COLUMNS)];
                values[at(row, column + COLUMNS + HALO)] = values[at(row, column + HALO)];
            }
    }
}

static void tend_faces(field now, seen own, seen own_under, seen own_over, seen other, seen even, seen lifts,
                       seen turns, seen open, seen thin, long along, long across, double sign, int n) {
    double by_along = 0.5 / DX, by_across = 0.5 / DY;
    double spread_along = VISCOSITY / (DX * DX), spread_across = VISCOSITY / (DY * DY), turn_by = 0.5 * sign;
    for (int i = 0; i < n; i++) {
        double side = 0.25 * ((other[i] + other[i - along]) + (other[i + across] + other[i + across - along]));
        double mean_side = 0.25 * ((even[i] + even[i - along]) + (even[i + across] + even[i + across - along]));
        double here = own[i], forward = own[i + along], behind = own[i - along];
        double left = own[i - across], right = own[i + across];
        double advected = here * by_along * (forward - behind) + side * by_across * (right - left);
        double spread = spread_along * ((forward - here) - (here - behind)) +
                        spread_across * ((right - here) - (here - left));
        double up = own_over[i] - here, down = here - own_under[i];
        double lifted = 0.25 * thin[i] * ((lifts[i + PLANE] + lifts[i + PLANE - along]) * up +
                                          (lifts[i] + lifts[i - along]) * down);
        double mixed = VERTICAL_VISCOSITY * thin[i] * thin[i] * (up - down);
        double turned = turn_by * (turns[i] + turns[i - along]) * (side - mean_side);
        now[i] = (spread + mixed + turned - advected - lifted) * open[i];
    }
}

static void tend(int direction, int is_first) {
    long along = direction ? STRIDE : 1, across = direction ? 1 : STRIDE;
    double part = 1.0 / LEVELS, ahead_by = is_first ? 1.0 : AHEAD, back_by = is_first ? 0.0 : AHEAD - 1.0;
    double thin[COLUMNS];
    for (int row = 0; row < ROWS; row++) {
        size_t flat = at(row, 0);
        for (int i = 0; i < COLUMNS; i++) {
            size_t one = flat + i, two = one - along;
            double both = (surface[one] + depth[one]) + (surface[two] + depth[two]);
            thin[i] = mask[direction][one] > 0.0 ? 2.0 * LEVELS / both : 0.0;
            slow[direction][one] = 0.0;
        }
        for (int level = 0; level < LEVELS; level++) {
            size_t start = (size_t)level * PLANE + flat;
            size_t under = level > 0 ? start - PLANE : start, over = level + 1 < LEVELS ? start + PLANE : start;
            double *own = velocity[direction], *now = ahead[direction] + start;
            tend_faces(now, own + start, own + under, own + over, velocity[!direction] + start,
                       mean[!direction] + flat, rise + start, coriolis + flat, mask[direction] + flat, thin, along,
                       across, direction ? -1.0 : 1.0, COLUMNS);
            if (level + 1 == LEVELS && direction == 0)
                for (int i = 0; i < COLUMNS; i++) now[i] += wind[flat + i] * thin[i];
            if (level == 0)
                for (int i = 0; i < COLUMNS; i++) now[i] -= DRAG * own[start + i] * thin[i];
            double *old = tendency[direction] + start, *all = slow[direction] + flat;
            for (int i = 0; i < COLUMNS; i++) {
                double new = ahead_by * now[i] - back_by * old[i];
                old[i] = now[i];
                now[i] = new;
                all[i] += part * new;
            }
        }
    }
}

static void transport(int direction, seen height, seen ground, seen speed, field flows, field sums) {
    long along = direction ? STRIDE : 1;
    for (int row = -1; row < ROWS + 2; row++)
        for (size_t i = at(row, -1); i < at(row, COLUMNS + 2); i++) {
            flows[i] = 0.5 * ((height[i] + ground[i]) + (height[i - along] + ground[i - along])) * speed[i];
            sums[i] += flows[i];
        }
}

static void push_mean(int direction, int low, int high, seen height, seen other, seen turns, seen pushed, seen open,
                      field own) {
    long along = direction ? STRIDE : 1, across = direction ? 1 : STRIDE;
    double step = STEP / SUBSTEPS, by = step * GRAVITY / (direction ? DY : DX);
    int first_row = direction ? 0 : -low, last_row = direction ? ROWS + high : ROWS;
    int first_column = direction ? -low : 0, last_column = direction ? COLUMNS : COLUMNS + high;
    for (int row = first_row; row < last_row; row++)
        for (size_t i = at(row, first_column); i < at(row, last_column); i++) {
            /* The faces of the nearer row or column are added first. */
            double near = direction ? other[i] + other[i + across] : other[i - along] + other[i];
            double far = direction ? other[i - along] + other[i - along + across]
                                   : other[i + across - along] + other[i + across];
            double side = 0.25 * (near + far);
            double turned = 0.5 * (turns[i] + turns[i - along]) * side;
            double push = direction ? pushed[i] - turned : turned + pushed[i];
            own[i] = (own[i] + step * push - by * (height[i] - height[i - along])) * open[i];
        }
}

static void external(int is_u_first) {
    double by_x = STEP / SUBSTEPS / DX, by_y = STEP / SUBSTEPS / DY;
    for (int direction = 0; direction < 2; direction++)
        transport(direction, surface, depth, mean[direction], flow[direction], sum[direction]);
    for (int row = -1; row < ROWS + 1; row++) {
        seen u = flow[0], v = flow[1];
        field height = surface;
        for (size_t i = at(row, -1); i < at(row, COLUMNS + 1); i++)
            height[i] -= by_x * (u[i + 1] - u[i]) + by_y * (v[i + STRIDE] - v[i]);
    }
    int first = is_u_first ? 0 : 1;
    push_mean(first, 1, 1, surface, mean[!first], coriolis, slow[first], mask[first], mean[first]);
    push_mean(!first, 0, 0, surface, mean[first], coriolis, slow[!first], mask[!first], mean[!first]);
    wrap(surface, 1);
    wrap(mean[0], 1);
    wrap(mean[1], 1);
}

static void push(int direction) {
    double part = 1.0 / LEVELS, all[COLUMNS];
    for (int row = 0; row < ROWS; row++) {
        size_t flat = at(row, 0);
        memset(all, 0, sizeof all);
        for (int level = 0; level < LEVELS; level++) {
            field own = velocity[direction] + (size_t)level * PLANE + flat;
            seen more = ahead[direction] + (size_t)level * PLANE + flat;
            for (int i = 0; i < COLUMNS; i++) {
                own[i] += STEP * more[i];
                all[i] += part * own[i];
            }
        }
        seen wanted = mean[direction] + flat, open = mask[direction] + flat;
        for (int level = 0; level < LEVELS; level++) {
            field own = velocity[direction] + (size_t)level * PLANE + flat;
            for (int i = 0; i < COLUMNS; i++) own[i] = (own[i] + (wanted[i] - all[i])) * open[i];
        }
    }
    wrap(velocity[direction], LEVELS);
}

static inline double at_face(double upstream, double back, double forward, double passes) {
    double one = 2.0 * fabs(back), two = 2.0 * fabs(forward), least = one < two ? one : two;
    double middle = 0.5 * fabs(back + forward), size = middle < least ? middle : least;
    double slope = back * forward > 0.0 ? copysign(size, forward) : 0.0;
    return upstream + 0.5 * (1.0 - passes) * slope;
}

static void carry_faces(field out, seen values, seen open, seen flows, seen rates, seen thick, long along,
                        double spread,
                        int n) {
    for (int i = 0; i < n; i++) {
        double up = values[i] - values[i - along];
        int is_forward = flows[i] >= 0.0;
        double west = (values[i - along] - values[i - 2 * along]) * open[i - along];
        double east = (values[i] - values[i + along]) * open[i + along];
        double upstream = is_forward ? values[i - along] : values[i], back = is_forward ? west : east;
        double face = at_face(upstream, back, is_forward ? up : -up, fabs(flows[i]) * rates[i]);
        out[i] = flows[i] * face - spread * thick[i] * up * open[i];
    }
}

static void carry_tops(field out, seen second, seen first, seen here, seen beyond, seen thin, seen lifts, int n) {
    for (int i = 0; i < n; i++) {
        double up = here[i] - first[i];
        int is_upward = lifts[i] >= 0.0;
        double low = first[i] - second[i], high = here[i] - beyond[i];
        double face = at_face(is_upward ? first[i] : here[i], is_upward ? low : high, is_upward ? up : -up,
                              fabs(lifts[i]) * STEP * thin[i]);
        out[i] = lifts[i] * face - VERTICAL_DIFFUSIVITY * thin[i] * up;
    }
}

static void mix_flow(field out, seen speed, seen sums, seen even, seen thick, size_t n) {
    double part = 1.0 / LEVELS, share = 1.0 / SUBSTEPS;
    for (size_t i = 0; i < n; i++) out[i] = part * (share * sums[i] + thick[i] * (speed[i] - even[i]));
}

static void lift(field over, seen under, seen u, seen v, seen old, seen new, size_t n) {
    double by_x = 1.0 / DX, by_y = 1.0 / DY, part = 1.0 / (LEVELS * STEP);
    for (size_t i = 0; i < n; i++) {
        double flows_out = by_x * (u[i + 1] - u[i]) + by_y * (v[i + STRIDE] - v[i]);
        over[i] = under[i] - (flows_out + part * (new[i] - old[i]));
    }
}

static void collect(field out, seen values, seen u, seen v, seen under, seen over, seen ground, seen old,
                    seen thin, int n) {
    double by_x = STEP / DX, by_y = STEP / DY, part = 1.0 / LEVELS;
    for (int i = 0; i < n; i++) {
        double left = by_x * (u[i + 1] - u[i]) + by_y * (v[i + STRIDE] - v[i]) + STEP * (over[i] - under[i]);
        out[i] = (values[i] * (part * (ground[i] + old[i])) - left) * thin[i];
    }
}

static void carry(void) {
    for (int direction = 0; direction < 2; direction++) {
        long along = direction ? STRIDE : 1;
        double by = STEP * LEVELS / (direction ? DY : DX);
        for (int row = -1; row < ROWS + 2; row++)
            for (size_t i = at(row, -1); i < at(row, COLUMNS + 2); i++) {
                wet[direction][i] = 0.5 * ((surface[i] + depth[i]) + (surface[i - along] + depth[i - along]));
                courant[direction][i] = mask[direction][i] > 0.0 ? by / wet[direction][i] : 0.0;
            }
    }
    for (int row = 0; row < ROWS; row++)
        for (size_t i = at(row, 0); i < at(row, COLUMNS); i++) inverse[i] = LEVELS / (depth[i] + surface[i]);
    memset(rise, 0, PLANE * sizeof *rise);
    memset(below, 0, PLANE * sizeof *below);
    for (int level = 0; level < LEVELS; level++) {
        size_t here = (size_t)level * PLANE;
        for (int direction = 0; direction < 2; direction++)
            for (int row = -1; row < ROWS + 2; row++) {
                size_t i = at(row, -1);
                mix_flow(layer_flow[direction] + i, velocity[direction] + here + i, sum[direction] + i,
                         mean[direction] + i, wet[direction] + i, COLUMNS + 3);
            }
        for (int row = -1; row < ROWS + 1; row++) {
            size_t i = at(row, -1);
            lift(rise + here + PLANE + i, rise + here + i, layer_flow[0] + i, layer_flow[1] + i, before + i,
                surface + i,
                 COLUMNS + 2);
        }
        for (int direction = 0; direction < 2; direction++) {
            double spread = DIFFUSIVITY / ((direction ? DY : DX) * LEVELS);
            for (int row = 0; row < ROWS + direction; row++) {
                size_t i = at(row, 0);
                carry_faces(carried[direction] + i, tracer + here + i, mask[direction] + i, layer_flow[direction] + i,
                            courant[direction] + i, wet[direction] + i, direction ? STRIDE : 1, spread,
                            COLUMNS + 1 - direction);
            }
        }
        int is_top = level + 1 == LEVELS;
        if (is_top) memset(above, 0, PLANE * sizeof *above);
        size_t second = level > 0 ? here - PLANE : here, beyond = level + 2 < LEVELS ? here + 2 * PLANE : here + PLANE;
        for (int row = 0; row < ROWS && !is_top; row++) {
            size_t i = at(row, 0);
            carry_tops(above + i, tracer + second + i, tracer + here + i, tracer + here + PLANE + i,
                tracer + beyond + i,
                       inverse + i, rise + here + PLANE + i, COLUMNS);
        }
        for (int row = 0; row < ROWS; row++) {
            size_t i = at(row, 0);
            collect(next + here + i, tracer + here + i, carried[0] + i, carried[1] + i, below + i, above + i, depth + i,
                    before + i, inverse + i, COLUMNS);
        }
        double *swapped = below;
        below = above;
        above = swapped;
    }
    double *swapped = tracer;
    tracer = next;
    next = swapped;
    wrap(tracer, LEVELS);
}

static void start(void) {
    memset(velocity[0], 0, (size_t)LEVELS * PLANE * sizeof(double));
    memset(velocity[1], 0, (size_t)LEVELS * PLANE * sizeof(double));
    memset(surface, 0, PLANE * sizeof *surface);
    memset(mean[0], 0, PLANE * sizeof(double));
    memset(mean[1], 0, PLANE * sizeof(double));
    memset(rise, 0, (size_t)(LEVELS + 1) * PLANE * sizeof *rise);
    for (int row = -HALO; row < ROWS + HALO; row++)
        for (int column = -HALO; column < COLUMNS + HALO; column++) {
            size_t i = at(row, column);
            double y = wrapped_row(row), x = (column + COLUMNS) % COLUMNS;
            depth[i] = depth_of(row, column);
            mask[0][i] = 1.0;
            mask[1][i] = y == 0 ? 0.0 : 1.0;
            coriolis[i] = CORIOLIS + BETA * ((y + 0.5 - ROWS / 2.0) * DY);
            wind[i] = WIND * sin(M_PI * ((y + 0.5) / ROWS));
            double across = y / ROWS, along = x / COLUMNS;
            double patch = exp(-((across - 0.5) * (across - 0.5) + (along - 0.5) * (along - 0.5)) / 0.01);
            for (int level = 0; level < LEVELS; level++) {
                double up = (level + 0.5) / LEVELS;
                tracer[(size_t)level * PLANE + i] = 4.0 + 12.0 * up * up + 4.0 * across + 2.0 * patch;
            }
        }
}

static uint64_t mixed(uint64_t hash, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * UINT64_C(0x100000001b3);
    return hash << 29 | hash >> 35;
}

static uint64_t hash(void) {
    uint64_t all = UINT64_C(0xcbf29ce484222325);
    double *flat[3] = {surface, mean[0], mean[1]};
    for (int field_number = 0; field_number < 3; field_number++)
        for (int row = 0; row < ROWS; row++)
            for (int column = 0; column < COLUMNS; column++) all = mixed(all, flat[field_number][at(row, column)]);
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++) {
            uint64_t one = UINT64_C(0xcbf29ce484222325);
            for (int level = 0; level < LEVELS; level++) {
                size_t i = (size_t)level * PLANE + at(row, column);
                one = mixed(mixed(mixed(one, tracer[i]), velocity[0][i]), velocity[1][i]);
            }
            all = (all ^ one) * UINT64_C(0x100000001b3);
            all = all << 29 | all >> 35;
        }
    return all;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(int count, char **words) {
    int steps = count > 1 ? atoi(words[1]) : 20, repetitions = count > 2 ? atoi(words[2]) : 1;
    double **flat[] = {&depth, &coriolis, &wind, &surface, &before, &inverse, &below, &above};
    for (size_t i = 0; i < sizeof flat / sizeof *flat; i++) *flat[i] = planes(1);
    for (int direction = 0; direction < 2; direction++) {
        double **pair[] = {&mask[direction], &mean[direction], &slow[direction], &flow[direction], &sum[direction],
                           &wet[direction], &courant[direction], &layer_flow[direction], &carried[direction]};
        for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) *pair[i] = planes(1);
        velocity[direction] = planes(LEVELS);
        tendency[direction] = planes(LEVELS);
        ahead[direction] = planes(LEVELS);
    }
    tracer = planes(LEVELS);
    next = planes(LEVELS);
    rise = planes(LEVELS + 1);
    double least = INFINITY;
    for (int repetition = 0; repetition < repetitions; repetition++) {
        start();
        double began = now();
        for (int step = 0; step < steps; step++) {
            memcpy(before, surface, PLANE * sizeof *before);
            tend(0, step == 0);
            tend(1, step == 0);
            wrap(slow[0], 1);
            wrap(slow[1], 1);
            memset(sum[0], 0, PLANE * sizeof(double));
            memset(sum[1], 0, PLANE * sizeof(double));
            for (int substep = 0; substep < SUBSTEPS; substep++) external((step * SUBSTEPS + substep) % 2 == 0);
            push(0);
            push(1);
            carry();
        }
        double seconds = now() - began;
        least = seconds < least ? seconds : least;
    }
    printf("measured rate %.6f\n", 1e-6 * steps * ROWS * COLUMNS * LEVELS / least);
    printf("hash %016llx\n", (unsigned long long)hash());
    return 0;
}
