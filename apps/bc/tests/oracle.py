"""Compares betweenness on random graphs with networkx; part of `./test --long`.

Usage: python3 apps/bc/tests/oracle.py PROGRAM [ROUNDS [SEED]]

PROGRAM is the example `oracle_scores`: it reads `GRAPH FLAGS` lines and answers one line of scores each.
Each round makes a random graph (directed or not, with or without lengths, with parallel edges, self-loops and
separate parts), writes it as an edge list, and compares every score. Exit code 0: all equal; 1: a difference,
with the graph kept; 77: networkx is not installed (`pip install networkx`), nothing was compared.
"""

import os
import random
import subprocess
import sys
import tempfile

TOLERANCE = 1e-9


def random_edges(rng):
    """Vertices, and edges (from, to, length); lengths are multiples of 1/4: their sums are exact in floats."""
    vertices = rng.randint(1, 60)
    count = rng.randint(1, 4 * vertices)
    edges = [(rng.randrange(vertices), rng.randrange(vertices), rng.randint(1, 12) / 4) for _ in range(count)]
    # The reader takes the largest vertex for the last, so the last must occur.
    return vertices, edges + [(vertices - 1, rng.randrange(vertices), 1.0)]


def expected(networkx, vertices, edges, directed, weighted):
    """Scores by networkx, conventions as in apps/bc/src/mod.rs."""
    graph = networkx.DiGraph() if directed else networkx.Graph()
    graph.add_nodes_from(range(vertices))
    for source, target, length in edges:
        known = graph.get_edge_data(source, target, {"length": length})["length"]
        graph.add_edge(source, target, length=min(known, length))
    weight = "length" if weighted else None
    scores = networkx.betweenness_centrality(graph, normalized=False, weight=weight)
    return [scores[vertex] for vertex in range(vertices)]


def main():
    try:
        import networkx
    except ImportError:
        print("networkx is not installed, nothing compared (pip install networkx)")
        return 77
    program = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().getrandbits(32)
    print(f"seed {seed}, {rounds} graphs, networkx {networkx.__version__}")
    rng = random.Random(seed)
    child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for number in range(rounds):
        vertices, edges = random_edges(rng)
        directed, weighted = rng.random() < 0.5, rng.random() < 0.5
        with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
            file.writelines(f"{source} {target} {length}\n" for source, target, length in edges)
        flags = f"{'directed' if directed else 'undirected'} {'weighted' if weighted else 'unweighted'}"
        child.stdin.write(f"{file.name} {flags}\n")
        child.stdin.flush()
        answer = child.stdout.readline()
        found = [float(score) for score in answer.split()]
        wanted = expected(networkx, vertices, edges, directed, weighted)
        close = (abs(ours - theirs) <= TOLERANCE * max(1, theirs) for ours, theirs in zip(found, wanted))
        if len(found) != len(wanted) or not all(close):
            print(f"graph {number} ({file.name}, {flags}) differs:\n  found  {found}\n  wanted {wanted}")
            return 1
        os.unlink(file.name)
    child.stdin.close()
    print("all scores agree")
    return child.wait()


if __name__ == "__main__":
    sys.exit(main())
