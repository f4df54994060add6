#!/usr/bin/env python3
"""The genetic algorithm of `isles run ga` once more, written apart: prints what tests of isles-ga expect.

It follows the description only: streams of xoshiro256** by SplitMix64, tournaments, one point of crossover, one mutated
character, the best one unchanged, and exchanges along a line. Each line is: islands, population, seed, generations,
best fitness, island.
"""
import sys

MASK = (1 << 64) - 1
TEXT = rb'#include <stdio.h> int main(void) { printf("Hello SCC!\n"); return 0; }'


def scramble(bits):
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & MASK
    return bits ^ (bits >> 31)


class Stream:
    GOLDEN = 0x9E3779B97F4A7C15

    def __init__(self, seed, stream):
        counter = (scramble(seed + self.GOLDEN & MASK) + stream) & MASK
        counter = scramble(counter)
        self.state = []
        for _ in range(4):
            counter = counter + self.GOLDEN & MASK
            self.state.append(scramble(counter))

    def bits(self):
        a, b, c, d = self.state
        result = rotated(b * 5 & MASK, 7) * 9 & MASK
        shifted = b << 17 & MASK
        c, d = c ^ a, d ^ b
        b, a = b ^ c, a ^ d
        self.state = [a, b, c ^ shifted, rotated(d, 45)]
        return result

    def below(self, bound):
        while True:
            product = self.bits() * bound
            if product & MASK >= (1 << 64) % bound:
                return product >> 64


def rotated(bits, by):
    return (bits << by | bits >> (64 - by)) & MASK


def evolve(text, islands, population, seed, generations_max, tournament=3, mutation=50, migrants=2, interval=10):
    def fitness(genes):
        return sum((one - other) ** 2 for one, other in zip(genes, text))

    def parent(random, island):
        drawn = [random.below(len(island)) for _ in range(tournament)]
        return island[min(drawn, key=lambda index: island[index][0])][1]

    def child(random, island):
        one, other = parent(random, island), parent(random, island)
        point = 1 + random.below(len(text) - 1)
        genes = bytearray(one[:point] + other[point:])
        if random.below(100) < mutation:
            index = random.below(len(text))
            genes[index] = 32 + random.below(95)
        return fitness(genes), bytes(genes)

    streams = [Stream(seed, number) for number in range(islands)]
    all_islands = []
    for number, random in enumerate(streams):
        size = (number + 1) * population // islands - number * population // islands
        genes = [bytes(32 + random.below(95) for _ in text) for _ in range(size)]
        all_islands.append([(fitness(one), one) for one in genes])
    for generation in range(generations_max + 1):
        best = [min(one[0] for one in island) for island in all_islands]
        if 0 in best or generation == generations_max:
            return generation, min(best), best.index(min(best))
        if generation > 0 and generation % interval == 0:
            # Sorting is stable: of equal ones the first is the better.
            ranked = [sorted(island, key=lambda one: one[0]) for island in all_islands]
            for number, island in enumerate(all_islands):
                arrivals = ranked[number - 1][:migrants] if number > 0 else []
                arrivals = arrivals + (ranked[number + 1][:migrants] if number + 1 < islands else [])
                order = sorted(range(len(island)), key=lambda index: island[index][0])
                for index, arrival in zip(reversed(order), arrivals):
                    island[index] = arrival
        for number, (random, island) in enumerate(zip(streams, all_islands)):
            elite = min(island, key=lambda one: one[0])
            all_islands[number] = [elite] + [child(random, island) for _ in range(len(island) - 1)]


if __name__ == "__main__":
    for islands, population, seed in [(1, 300, 1), (4, 400, 1), (5, 300, 2), (24, 480, 3)]:
        print(islands, population, seed, *evolve(TEXT, islands, population, seed, 2000))
    print(4, 400, 1, *evolve(TEXT, 4, 400, 1, 77))
    sys.stdout.flush()
