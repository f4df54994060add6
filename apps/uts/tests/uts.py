#!/usr/bin/env python3
"""The trees of the Unbalanced Tree Search once more, written apart: prints what tests of isles-uts expect.

The rules are those of the C program `uts.c`. `--all` walks the whole sample trees of 4 million nodes, in minutes.
"""
import hashlib
import math
import sys

TREES = {
    "T1": ("fixed", 10, 4, 19, 0, 0),
    "T2": ("cyclic", 16, 6, 502, 0, 0),
    "T3": ("binomial", 0, 2000, 42, 0.124875, 8),
    "T4": ("hybrid", 16, 6, 1, 0.234375, 4),
    "T5": ("linear", 20, 4, 34, 0, 0),
}


def children(state, height, kind, depth, b0, q, m):
    """As uts_numChildren of uts.c."""
    uniform = (int.from_bytes(state[16:], "big") & 0x7FFFFFFF) / 2147483648.0
    if kind == "binomial" and height == 0:
        return b0
    if kind == "binomial" or (kind == "hybrid" and not height < 0.5 * depth):
        return m if uniform < q else 0
    b = float(b0)
    if height > 0:
        if kind == "cyclic":
            b = 0.0 if height > 5 * depth else math.pow(b0, math.sin(2.0 * 3.141592653589793 * height / depth))
        elif kind == "fixed":
            b = float(b0) if height < depth else 0.0
        else:
            b = b0 * (1.0 - height / depth)
    p = 1.0 / (1.0 + b)
    if p >= 1.0:
        return 0
    return min(100, int(math.floor(math.log(1.0 - uniform) / math.log(1.0 - p))))


def size(name, depth=None):
    """Nodes, leaves and depth of a tree."""
    kind, published, b0, seed, q, m = TREES[name]
    depth = depth or published
    stack = [(root(seed), 0)]
    nodes = leaves = deepest = 0
    while stack:
        state, height = stack.pop()
        count = children(state, height, kind, depth, b0, q, m)
        nodes += 1
        leaves += count == 0
        deepest = max(deepest, height)
        stack.extend((child(state, number), height + 1) for number in range(count))
    return nodes, leaves, deepest


def root(seed):
    """As rng_init."""
    return hashlib.sha1(bytes(16) + seed.to_bytes(4, "big")).digest()


def child(state, number):
    """As rng_spawn."""
    return hashlib.sha1(state + number.to_bytes(4, "big")).digest()


def words(state):
    """The digest as the tests write it."""
    return [f"0x{int.from_bytes(state[at:at + 4], 'big'):08x}" for at in range(0, 20, 4)]


first = root(19)
print("ROOT_19", words(first))
print("CHILD_0", words(child(first, 0)))
print("CHILD_3_70000", words(child(child(first, 3), 70000)))
for tree, shallow in [("T1", 6), ("T1", 7), ("T2", 2), ("T2", 3), ("T4", 8), ("T4", 10), ("T5", 5), ("T5", 10)]:
    print(tree, shallow, size(tree, shallow))
if "--all" in sys.argv:
    for tree in TREES:
        print(tree, size(tree))
