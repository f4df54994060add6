//! Clusters as an image: each is a ring of its vertices on a spiral of clusters, the largest in the middle.

use crate::graph::WeightedGraph;
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::io::{self, Write};

/// Most edges that are drawn, the heaviest; and vertices, of the largest clusters.
const EDGES_MAX: usize = 6_000;
const VERTICES_MAX: usize = 4_000;

/// The side of the picture, in its own unit.
const SIDE: f64 = 1000.0;

/// What a vertex takes on its ring.
const VERTEX: f64 = 9.0;

/// Colours of clusters that lie beside each other differ.
const COLOURS: [&str; 8] =
    ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb8844", "#777777"];

/// Writes the clusters of a graph as SVG.
///
/// # Errors
/// What `out` returns.
pub fn write_svg(graph: &WeightedGraph, clusters: &[u32], out: &mut dyn Write) -> io::Result<()> {
    let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    clusters.iter().zip(0..).for_each(|(cluster, vertex)| members.entry(*cluster).or_default().push(vertex));
    let mut rings: Vec<Vec<u32>> = members.into_values().collect();
    rings.sort_by_key(|ring| std::cmp::Reverse(ring.len()));
    let mut left = VERTICES_MAX;
    rings.retain(|ring| {
        let fits = ring.len() <= left;
        left -= if fits { ring.len() } else { 0 };
        fits
    });
    let places = places(&rings);
    let extent = places.values().map(|(x, y, _)| x.abs().max(y.abs())).fold(1.0, f64::max) + VERTEX;
    let scale = SIDE / 2.0 / extent;
    let at =
        |vertex: &u32| places.get(vertex).map(|(x, y, _)| (SIDE / 2.0 + x * scale, SIDE / 2.0 + y * scale));
    writeln!(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIDE} {SIDE}\">")?;
    writeln!(out, "<title>{} vertices in {} clusters</title>", places.len(), rings.len())?;
    writeln!(out, "<rect width=\"{SIDE}\" height=\"{SIDE}\" fill=\"#ffffff\"/>")?;
    let mut edges: Vec<(f64, u32, u32)> = (0..graph.vertices() as u32)
        .flat_map(|from| graph.row(from as usize).map(move |(to, weight)| (weight, from, to)))
        .filter(|(_, from, to)| from < to && places.contains_key(from) && places.contains_key(to))
        .collect();
    edges.sort_by(|one, other| other.0.total_cmp(&one.0).then((one.1, one.2).cmp(&(other.1, other.2))));
    writeln!(out, "<g stroke=\"#000000\" stroke-opacity=\"0.15\" stroke-width=\"0.7\">")?;
    for (_, from, to) in edges.iter().take(EDGES_MAX) {
        if let (Some((x1, y1)), Some((x2, y2))) = (at(from), at(to)) {
            writeln!(out, "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>")?;
        }
    }
    writeln!(out, "</g>")?;
    for (vertex, (_, _, ring)) in &places {
        if let Some((x, y)) = at(vertex) {
            let (radius, colour) = (VERTEX * 0.42 * scale, COLOURS[ring % COLOURS.len()]);
            writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.2}\" fill=\"{colour}\"/>")?;
        }
    }
    writeln!(out, "</svg>")
}

/// Where each vertex is drawn, and the number of its ring. Each ring goes as far in as it can along a spiral.
fn places(rings: &[Vec<u32>]) -> BTreeMap<u32, (f64, f64, usize)> {
    let radius = |ring: &[u32]| (ring.len() as f64 * VERTEX / TAU).max(VERTEX);
    let mut drawn: Vec<(f64, f64, f64)> = Vec::new();
    let mut places = BTreeMap::new();
    // Rings come by size, so where one found no room a later one of that size finds none further in.
    let mut turn = 0.0;
    for (number, ring) in rings.iter().enumerate() {
        let own = radius(ring);
        let (x, y) = loop {
            let (x, y) = (turn * f64::cos(turn) * VERTEX / 3.0, turn * f64::sin(turn) * VERTEX / 3.0);
            let is_free = |(other_x, other_y, other): &(f64, f64, f64)| {
                (x - other_x).hypot(y - other_y) > own + other + VERTEX
            };
            if drawn.iter().all(is_free) {
                break (x, y);
            }
            turn += 0.5 / (1.0 + turn / 8.0);
        };
        drawn.push((x, y, own));
        for (index, vertex) in ring.iter().enumerate() {
            let angle = TAU * index as f64 / ring.len() as f64;
            let at = if ring.len() == 1 { 0.0 } else { own };
            places.insert(*vertex, (x + at * angle.cos(), y + at * angle.sin(), number));
        }
    }
    places
}
