//! Clusters as an image: each is a ring of its vertices on a spiral of clusters, the largest in the middle.

use crate::graph::WeightedGraph;
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::io::{self, Write};

/// Limits: the heaviest edges drawn, and the vertices drawn, of the largest clusters.
const EDGES_MAX: usize = 6_000;
const VERTICES_MAX: usize = 4_000;

/// Most vertices drawn with their names.
const NAMED_MAX: usize = 200;

/// Width of the picture in its own unit, and the height of the caption.
const WIDTH: f64 = 1000.0;
const CAPTION: f64 = 64.0;
const HEIGHT: f64 = WIDTH + CAPTION;

/// Space of a vertex along its ring.
const VERTEX: f64 = 9.0;

/// Adjacent clusters have different colours; names are readable on all of them.
const COLOURS: [&str; 8] =
    ["#77aadd", "#ee8866", "#66bb77", "#eedd88", "#99ddff", "#dd88bb", "#ccaa77", "#bbbbbb"];

/// A vertex or the middle of a ring, in the unit of the picture.
type Point = (f64, f64);

/// Positions of the elements of the picture.
struct RingLayout {
    /// Position of each vertex that is drawn, and the number of its ring.
    vertices: BTreeMap<u32, (Point, usize)>,
    /// Middle of each ring, and number of its vertices.
    rings: Vec<(Point, usize)>,
    /// The radius of a vertex.
    radius: f64,
}

/// Writes the clusters of a graph as SVG, under this caption.
///
/// # Errors
/// Errors of `out`.
pub fn write_svg(
    graph: &WeightedGraph,
    clusters: &[u32],
    caption: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    clusters.iter().zip(0..).for_each(|(cluster, vertex)| members.entry(*cluster).or_default().push(vertex));
    let mut rings: Vec<Vec<u32>> = members.into_values().collect();
    rings.sort_by_key(|ring| std::cmp::Reverse(ring.len()));
    let all = rings.len();
    let mut left = VERTICES_MAX;
    rings.retain(|ring| {
        let fits = ring.len() <= left;
        left -= if fits { ring.len() } else { 0 };
        fits
    });
    let layout = RingLayout::new(&rings);
    let (drawn, count) = (layout.vertices.len(), rings.len());
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\">"
    )?;
    writeln!(out, "<title>{drawn} vertices in {count} clusters</title>")?;
    writeln!(out, "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>")?;
    // A letter is at most as wide as six tenths of its height.
    let size = (0.96 * WIDTH / (0.6 * caption.chars().count() as f64)).min(22.0);
    let caption = escaped(caption);
    writeln!(out, "<text x=\"20\" y=\"32\" font-size=\"{size:.1}\">{caption}</text>")?;
    if count < all {
        let rest = format!("the largest are drawn, {count} of {all} clusters");
        writeln!(out, "<text x=\"20\" y=\"56\" font-size=\"16\">{rest}</text>")?;
    }
    layout.write_edges(graph, out)?;
    layout.write_vertices(graph, out)?;
    writeln!(out, "</svg>")
}

impl RingLayout {
    /// Scales the rings to fill the picture.
    fn new(rings: &[Vec<u32>]) -> RingLayout {
        let places = places(rings);
        let bound = |of: &dyn Fn(&(f64, f64, usize)) -> f64, start: f64, fold: fn(f64, f64) -> f64| {
            places.values().map(of).fold(start, fold)
        };
        let (left, right) =
            (bound(&|at| at.0, f64::INFINITY, f64::min), bound(&|at| at.0, f64::NEG_INFINITY, f64::max));
        let (top, bottom) =
            (bound(&|at| at.1, f64::INFINITY, f64::min), bound(&|at| at.1, f64::NEG_INFINITY, f64::max));
        let scale = WIDTH / ((right - left).max(bottom - top) + 2.0 * VERTEX);
        let at = |x: f64, y: f64| {
            let (x, y) = (x - (left + right) / 2.0, y - (top + bottom) / 2.0);
            (WIDTH / 2.0 + x * scale, CAPTION + WIDTH / 2.0 + y * scale)
        };
        let middle = |ring: &Vec<u32>| {
            let of = |part: fn(&(f64, f64, usize)) -> f64| {
                ring.iter().map(|vertex| part(&places[vertex])).sum::<f64>() / ring.len() as f64
            };
            (at(of(|place| place.0), of(|place| place.1)), ring.len())
        };
        let rings = rings.iter().map(middle).collect();
        let vertices = places.iter().map(|(vertex, (x, y, ring))| (*vertex, (at(*x, *y), *ring)));
        RingLayout { vertices: vertices.collect(), rings, radius: VERTEX * 0.42 * scale }
    }

    /// Writes the heaviest edges; those within a cluster have its colour.
    fn write_edges(&self, graph: &WeightedGraph, out: &mut dyn Write) -> io::Result<()> {
        let mut edges: Vec<(f64, u32, u32)> = (0..graph.vertices() as u32)
            .flat_map(|from| graph.row(from as usize).map(move |(to, weight)| (weight, from, to)))
            .filter(|(_, from, to)| from < to)
            .filter(|(_, from, to)| self.vertices.contains_key(from) && self.vertices.contains_key(to))
            .collect();
        edges.sort_by(|one, other| other.0.total_cmp(&one.0).then((one.1, one.2).cmp(&(other.1, other.2))));
        writeln!(out, "<g stroke-width=\"1\">")?;
        for (_, from, to) in edges.iter().take(EDGES_MAX) {
            let (((x1, y1), ring), ((x2, y2), other)) = (self.vertices[from], self.vertices[to]);
            let (colour, opacity) = if ring == other { (colour(ring), 0.5) } else { ("#000000", 0.12) };
            writeln!(
                out,
                "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{colour}\" stroke-opacity=\"{opacity}\"/>"
            )?;
        }
        writeln!(out, "</g>")
    }

    /// Writes the vertices, with their names if there are few; otherwise with the number of vertices in the middle of
    /// each ring.
    fn write_vertices(&self, graph: &WeightedGraph, out: &mut dyn Write) -> io::Result<()> {
        let radius = self.radius;
        for ((x, y), ring) in self.vertices.values() {
            let colour = colour(*ring);
            writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.2}\" fill=\"{colour}\"/>")?;
        }
        writeln!(out, "<g text-anchor=\"middle\">")?;
        if self.vertices.len() <= NAMED_MAX {
            for (vertex, ((x, y), _)) in &self.vertices {
                let name: String = graph.name(*vertex as usize).chars().take(4).collect();
                let name = escaped(&name);
                let (y, size) = (y + radius * 0.25, radius * 0.75);
                writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size:.1}\">{name}</text>")?;
            }
        } else {
            // In a smaller ring the number would cover its neighbours.
            let of_many = self.rings.iter().filter(|(_, vertices)| *vertices >= 40);
            for ((x, y), vertices) in of_many {
                let y = y + 7.0;
                writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"20\" stroke=\"#ffffff\" stroke-width=\"5\" \
                     paint-order=\"stroke\">{vertices}</text>"
                )?;
            }
        }
        writeln!(out, "</g>")
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn colour(ring: usize) -> &'static str {
    COLOURS[ring % COLOURS.len()]
}

/// Returns the position of each drawn vertex, and the number of its ring. Each ring is placed as far in as possible
/// along a spiral.
fn places(rings: &[Vec<u32>]) -> BTreeMap<u32, (f64, f64, usize)> {
    let radius = |ring: &[u32]| (ring.len() as f64 * VERTEX / TAU).max(VERTEX);
    let mut drawn: Vec<(f64, f64, f64)> = Vec::new();
    let mut places = BTreeMap::new();
    // Rings come by size, so a later ring does not fit further in than an earlier one of that size.
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
