//! Undirected weighted graphs: from the graph crate, from lists of named vertices, and stand-ins.
//!
//! Weights of edges between the same pair add up, in either direction. A stand-in is a random graph with the numbers
//! of vertices and edges of one that may not be redistributed.

use isles::Random;
use isles_graph::Graph;
use std::collections::BTreeMap;

/// A graph in compressed sparse rows, with the sum of the weights at each vertex.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightedGraph {
    /// Row `v` is `offsets[v]..offsets[v + 1]`.
    pub offsets: Vec<u32>,
    /// The neighbours, ascending within a row; a loop counts only in `degrees`.
    pub targets: Vec<u32>,
    /// Weights, parallel to `targets`.
    pub weights: Vec<f64>,
    /// The weight of all edges at each vertex; a loop counts twice.
    pub degrees: Vec<f64>,
    /// Twice the weight of all edges.
    pub total: f64,
    /// The number of edges or arcs in the input.
    pub lines: u64,
    /// The names of the vertices; empty if they only have numbers.
    pub names: Vec<String>,
}

impl WeightedGraph {
    /// Returns the graph of these weighted pairs. The weights of one pair add up.
    pub fn new(vertices: usize, pairs: impl IntoIterator<Item = (u32, u32, f64)>) -> WeightedGraph {
        let mut lines = 0;
        let mut arcs: Vec<(u32, u32, f64)> = Vec::new();
        let mut loops = vec![0.0; vertices];
        for (from, to, weight) in pairs {
            lines += 1;
            if from == to {
                loops[from as usize] += 2.0 * weight;
            } else if weight > 0.0 {
                arcs.extend([(from, to, weight), (to, from, weight)]);
            }
        }
        // Stable, so that weights of one pair are added in the given order.
        arcs.sort_by_key(|(from, to, _)| (*from, *to));
        let mut graph = WeightedGraph { offsets: vec![0], lines, ..WeightedGraph::default() };
        let mut arcs = arcs.into_iter().peekable();
        for (vertex, own) in loops.into_iter().enumerate() {
            let mut degree = own;
            while let Some((_, to, mut weight)) = arcs.next_if(|arc| arc.0 as usize == vertex) {
                while let Some(same) = arcs.next_if(|arc| arc.0 as usize == vertex && arc.1 == to) {
                    weight += same.2;
                }
                graph.targets.push(to);
                graph.weights.push(weight);
                degree += weight;
            }
            graph.offsets.push(graph.targets.len() as u32);
            graph.degrees.push(degree);
        }
        graph.total = graph.degrees.iter().sum();
        graph
    }

    /// Converts a graph of the graph crate. An unweighted edge weighs one.
    pub fn of(graph: &Graph) -> WeightedGraph {
        let rows = (0..graph.vertices() as u32).flat_map(|from| {
            let lengths = graph.lengths(from);
            let row = graph.neighbours(from).iter().enumerate();
            row.map(move |(index, to)| (from, *to, lengths.map_or(1.0, |lengths| lengths[index])))
        });
        let pairs = rows.filter(|(from, to, _)| graph.is_directed() || from <= to);
        WeightedGraph { lines: graph.edges(), ..WeightedGraph::new(graph.vertices() as usize, pairs) }
    }

    /// Returns the name of a vertex, or its number if it has none.
    pub fn name(&self, vertex: usize) -> String {
        self.names.get(vertex).cloned().unwrap_or_else(|| vertex.to_string())
    }

    /// Returns the number of vertices.
    pub fn vertices(&self) -> usize {
        self.degrees.len()
    }

    /// Returns the neighbours of a vertex with the weights of the edges.
    pub fn row(&self, vertex: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let row = self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize;
        self.targets[row.clone()].iter().copied().zip(self.weights[row].iter().copied())
    }
}

/// A line that does not have the form `from to weight`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The number of the line, from 1.
    pub line: usize,
    /// The text of the line.
    pub found: String,
}

/// Returns `true` if a text is a list of named vertices rather than a format of the graph crate: its first line begins
/// with a letter, and has three fields.
pub fn is_named_list(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let fields: Vec<&str> = first.split_whitespace().collect();
    let is_name = |field: &str| field.starts_with(|character: char| character.is_ascii_alphabetic());
    fields.len() == 3 && is_name(fields[0]) && is_name(fields[1]) && fields[2].parse::<f64>().is_ok()
}

/// Reads lines `from to weight` with named vertices, which are numbered in the order of their names.
///
/// # Errors
/// A line does not have this form.
pub fn read_named_list(text: &str) -> Result<WeightedGraph, BadLine> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad = || BadLine { line: index + 1, found: line.chars().take(60).collect() };
        let [from, to, weight] = line.split_whitespace().collect::<Vec<_>>()[..] else { return Err(bad()) };
        let weight: f64 = weight.parse().map_err(|_| bad())?;
        if !weight.is_finite() || weight <= 0.0 {
            return Err(bad());
        }
        lines.push((from, to, weight));
    }
    let names = lines.iter().flat_map(|(from, to, _)| [*from, *to]);
    let mut numbers: BTreeMap<&str, u32> = names.map(|name| (name, 0)).collect();
    numbers.values_mut().zip(0..).for_each(|(number, index)| *number = index);
    let pairs = lines.iter().map(|(from, to, weight)| (numbers[from], numbers[to], *weight));
    let graph = WeightedGraph::new(numbers.len(), pairs);
    Ok(WeightedGraph { names: numbers.into_keys().map(str::to_owned).collect(), ..graph })
}

/// The stand-ins: name and description.
pub const STAND_INS: [(&str, &str); 2] = [
    ("trade-66", "a stand-in for the world's trade of 1999: 66 vertices, 4,290 weighted arcs"),
    ("citations-240547", "a stand-in for citations of US patents: 240,547 vertices, 560,943 edges"),
];

/// Returns the stand-in with this name, or `None`.
pub fn stand_in(name: &str) -> Option<WeightedGraph> {
    match name {
        "trade-66" => Some(trade()),
        "citations-240547" => Some(citations()),
        _ => None,
    }
}

/// Returns countries on four continents, each of which sells to all others: in proportion to their sizes, over the
/// distance.
fn trade() -> WeightedGraph {
    const COUNTRIES: u32 = 66;
    let centres = [(0.0, 0.0), (9.0, 1.0), (4.0, 8.0), (-6.0, 7.0)];
    let mut random = Random::new(1999);
    // Only operations with identical rounding on every processor.
    let countries: Vec<(f64, f64, f64)> = (0..COUNTRIES)
        .map(|country| {
            let (x, y) = centres[country as usize % centres.len()];
            let size = 1.0 / (0.02 + random.unit());
            (x + 4.0 * random.unit(), y + 4.0 * random.unit(), size)
        })
        .collect();
    let pairs = (0..COUNTRIES).flat_map(|from| (0..COUNTRIES).map(move |to| (from, to)));
    let arcs: Vec<(u32, u32, f64)> = pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| {
            let ((x, y, size), (other_x, other_y, other)) =
                (countries[from as usize], countries[to as usize]);
            let square = (x - other_x) * (x - other_x) + (y - other_y) * (y - other_y);
            (from, to, size * other * (0.5 + random.unit()) / (12.0 + square))
        })
        .collect();
    WeightedGraph::new(COUNTRIES as usize, arcs)
}

/// Returns patents in fields: each cites earlier ones, mostly of its own field, with preference for often cited ones.
fn citations() -> WeightedGraph {
    const PATENTS: u32 = 240_547;
    const CITATIONS: usize = 560_943;
    const FIELDS: u64 = 400;
    let mut random = Random::new(1975);
    let mut fields: Vec<Vec<u32>> = vec![Vec::new(); FIELDS as usize];
    let mut pairs: Vec<(u32, u32, f64)> = Vec::with_capacity(CITATIONS);
    let mut before: Vec<u32> = Vec::with_capacity(2 * CITATIONS);
    for patent in 0..PATENTS {
        let field = random.below(FIELDS) as usize;
        // The number that keeps the running sum in proportion to the total.
        let wanted = (u64::from(patent) + 1) * CITATIONS as u64 / u64::from(PATENTS);
        while (pairs.len() as u64) < wanted && patent > 0 {
            let own = &fields[field];
            let cited = match random.chance(85) && !own.is_empty() {
                true => own[random.index(own.len())],
                false if before.is_empty() => random.below(u64::from(patent)) as u32,
                false => before[random.index(before.len())],
            };
            if cited < patent {
                pairs.push((patent, cited, 1.0));
                before.push(cited);
                fields[field].push(cited);
            }
        }
        fields[field].push(patent);
    }
    while pairs.len() < CITATIONS {
        let patent = 1 + random.below(u64::from(PATENTS) - 1) as u32;
        pairs.push((patent, random.below(u64::from(patent)) as u32, 1.0));
    }
    // Numbers are independent of age, so that equal parts of the vertices have about equal numbers of edges.
    let mut numbers: Vec<u32> = (0..PATENTS).collect();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, random.index(last + 1));
    }
    let renamed =
        |(from, to, weight): (u32, u32, f64)| (numbers[from as usize], numbers[to as usize], weight);
    WeightedGraph::new(PATENTS as usize, pairs.into_iter().map(renamed))
}
