"""Draws the R-MAT graph of a workload a second time, and prints the SHA-256 of its sorted edges.

    python3 crates/graph/tests/rmat.py        the golden value of crates/graph/src/tests.rs

Shares no code with the program: SplitMix64 as published (Steele, Lea, Flood, OOPSLA 2014), one number a level, which
chooses among the quadrants as Chakrabarti, Zhan and Faloutsos say (SDM 2004). Duplicates are dropped, loops stay.
"""

import hashlib

SCALE, QUADRANTS, SEED = 11, ((0, 0, 0.2), (0, 1, 0.15), (1, 0, 0.25), (1, 1, 0.4)), 1
EDGES_A_VERTEX = 8
MASK = (1 << 64) - 1


def shares(state):
    """Uniform numbers in [0, 1) with 53 bits."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        yield ((mixed ^ (mixed >> 31)) >> 11) / 2.0**53


def quadrant(share):
    """The bits of source and target that a number stands for."""
    for source, target, part in QUADRANTS[:-1]:
        if share < part:
            return source, target
        share -= part
    return QUADRANTS[-1][:2]


def edges():
    random = shares(SEED)
    for _ in range(EDGES_A_VERTEX << SCALE):
        ends = 0, 0
        for _ in range(SCALE):
            bits = quadrant(next(random))
            ends = ends[0] << 1 | bits[0], ends[1] << 1 | bits[1]
        yield ends


print(hashlib.sha256("".join("%d %d\n" % ends for ends in sorted(set(edges()))).encode()).hexdigest())
