"""What a graph library needs for the betweenness of a graph on one thread, in the words of the bench.

Started by `isles-bench` as `python3 betweenness.py MODULE EDGES`, where MODULE is `networkit` or `igraph` and EDGES has
one line `from to` per undirected edge, vertices counted from 0. Both are libraries in C and C++; Python only calls them
once. Prints `measured NAME VALUE` lines. Reading the file is not timed; nothing is computed before, as it is not by the
other contenders. It does not judge and knows no target.
"""

import sys
import time


def with_networkit(edges):
    import networkit

    networkit.setNumberOfThreads(1)
    graph = networkit.readGraph(edges, networkit.Format.EdgeListSpaceZero)

    def scores():
        betweenness = networkit.centrality.Betweenness(graph)
        betweenness.run()
        return betweenness.scores()

    return "NetworKit " + networkit.__version__, graph.numberOfNodes(), graph.numberOfEdges(), scores


def with_igraph(edges):
    import igraph

    graph = igraph.Graph.Read_Edgelist(edges, directed=False)  # its betweenness uses one thread
    return "igraph " + igraph.__version__, graph.vcount(), graph.ecount(), graph.betweenness


def main():
    module, edges = sys.argv[1], sys.argv[2]
    version, vertices, edge_count, scores = {"networkit": with_networkit, "igraph": with_igraph}[module](edges)
    start = time.perf_counter()
    values = scores()
    seconds = time.perf_counter() - start
    print("version", version)
    print("measured vertices", vertices)
    print("measured edges", edge_count)
    print("measured seconds", seconds)
    print("measured score_sum", repr(sum(values)))


main()
