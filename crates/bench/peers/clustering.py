"""What a graph library needs to cluster a graph by modularity on one thread, in the words of the bench.

Started by `isles-bench` as `python3 clustering.py MODULE EDGES METHOD`, where MODULE is `networkit` or `igraph` and
EDGES has one line `from to` per undirected edge, vertices counted from 0. METHOD of NetworKit is `plm`, the parallel
Louvain method without refinement; of igraph `multilevel`, the Louvain method, or `fastgreedy`, the greedy agglomeration
of Clauset, Newman and Moore. Both are libraries in C and C++; Python only calls them once. Prints `measured NAME VALUE`
lines. Reading the file is not timed. It does not judge and knows no target.
"""

import sys
import time


def with_networkit(edges, method):
    import networkit

    assert method == "plm"

    networkit.setNumberOfThreads(1)
    graph = networkit.readGraph(edges, networkit.Format.EdgeListSpaceZero)

    def cluster():
        louvain = networkit.community.PLM(graph, False)
        louvain.run()
        return louvain.getPartition()

    def quality(partition):
        return networkit.community.Modularity().getQuality(partition, graph)

    return "NetworKit " + networkit.__version__, cluster, quality


def with_igraph(edges, method):
    import igraph

    graph = igraph.Graph.Read_Edgelist(edges, directed=False).simplify()
    cluster, quality = {
        "multilevel": (graph.community_multilevel, lambda clusters: clusters.modularity),
        "fastgreedy": (graph.community_fastgreedy, lambda merges: merges.as_clustering().modularity),
    }[method]
    return "igraph " + igraph.__version__, cluster, quality


def main():
    module, edges, method = sys.argv[1:]
    version, cluster, quality = {"networkit": with_networkit, "igraph": with_igraph}[module](edges, method)
    start = time.perf_counter()
    clusters = cluster()
    seconds = time.perf_counter() - start
    print("version", version)
    print("measured seconds", seconds)
    print("measured modularity", quality(clusters))


main()
