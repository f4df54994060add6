"""networkx in the graph of all waypoints at all minutes: `expanded.py EDGES REPETITIONS`.

EDGES is what the example `expanded` of isles-path writes. Making the graph and Dijkstra's algorithm in it are timed,
reading the file is not. Prints the least time in milliseconds and the arrival in seconds.
"""

import sys
import time

import networkx

with open(sys.argv[1], encoding="ascii") as file:
    start, goal, _ = map(int, file.readline().split())
    edges = [tuple(map(int, line.split())) for line in file]

least, arrival = float("inf"), None
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from(((a, t), (b, u), u - t) for a, b, t, u in edges)
    for minute in {u for _, b, _, u in edges if b == goal}:
        graph.add_edge((goal, minute), "goal", weight=0)
    arrival = networkx.dijkstra_path_length(graph, (start, 0), "goal")
    least = min(least, time.perf_counter() - began)

print(f"version networkx {networkx.__version__}")
print(f"measured search_ms {1e3 * least:.6f}")
print(f"measured arrival_s {60 * arrival}")
