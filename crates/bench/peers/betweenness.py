"""What NetworKit needs for the betweenness of a graph on one thread, in the words of the bench.

Started by `isles-bench` as `python3 betweenness.py EDGES REPETITIONS`, where EDGES has one line `from to` per
undirected edge, vertices counted from 0. Prints `measured NAME VALUE` lines, the median over the repetitions.
Reading the file is not timed. It does not judge and knows no target.
"""

import statistics
import sys
import time

import networkit


def main():
    edges, repetitions = sys.argv[1], int(sys.argv[2])
    networkit.setNumberOfThreads(1)
    graph = networkit.readGraph(edges, networkit.Format.EdgeListSpaceZero)
    seconds = []
    for _ in range(repetitions):
        betweenness = networkit.centrality.Betweenness(graph)
        start = time.perf_counter()
        betweenness.run()
        seconds.append(time.perf_counter() - start)
    print("version", "NetworKit", networkit.__version__)
    print("measured vertices", graph.numberOfNodes())
    print("measured edges", graph.numberOfEdges())
    print("measured seconds", statistics.median(seconds))
    print("measured score_sum", repr(sum(betweenness.scores())))


main()
