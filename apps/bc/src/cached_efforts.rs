//! Efforts of the sources of a graph on a core, kept in a file between runs on a modelled chip.
//!
//! They depend on the graph alone, and computing the sources takes nearly all of a run's time on this host. So a run
//! with the name of a missing file computes all sources before its places start, and writes their efforts. This run
//! and later ones charge these efforts instead of computing. Their places send the messages of a plain run, except
//! that in the final reduction of the scores each place has an equal part instead of its own, so these messages are a
//! few percent longer or shorter. Invariants: a run without the flag uses no file; a file in use matches the graph of
//! the run.

use super::effort::Effort;
use super::scores::Scores;
use isles::Destination;
use isles_app::Failure;
use isles_app::console::Progress;
use isles_graph::Graph;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::OnceLock;
use std::{fs, io};

/// The flag that names the file.
pub(super) const FLAG: &str = "--known-efforts";

/// The format of the file.
const SCHEMA: &str = "isles.efforts.1";

/// The efforts of the run of this process, which contains all its places.
static KNOWN: OnceLock<CachedEfforts> = OnceLock::new();

/// The efforts and the scores of all sources of a graph.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CachedEfforts {
    schema: String,
    graph_digest: u64,
    efforts: Vec<Effort>,
    scores: Scores,
}

impl CachedEfforts {
    /// Reads the efforts of `graph` from the file at `path`. If there is no such file, computes the efforts and writes
    /// it.
    ///
    /// # Errors
    /// [`Failure::Usage`]: the file belongs to another graph or has another format. [`Failure::Output`]: it cannot be
    /// written.
    pub(super) fn open(path: &Path, graph: &Graph) -> Result<CachedEfforts, Failure> {
        let refused = |why: &dyn std::fmt::Display| {
            let path = path.display();
            Failure::Usage(format!(
                "{FLAG} is {path:?}, which {why}; allowed: a file written by a run with this graph, or \
                 one that does not exist"
            ))
        };
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                return CachedEfforts::write_new(path, graph);
            }
            Err(cause) => return Err(refused(&format_args!("cannot be read ({cause})"))),
        };
        let known: CachedEfforts = serde_json::from_slice(&text)
            .map_err(|fault| refused(&format_args!("has no efforts of sources ({fault})")))?;
        if known.schema != SCHEMA {
            return Err(refused(&format_args!("has the format {:?}", known.schema)));
        }
        if known.is_of(graph) { Ok(known) } else { Err(refused(&"is of another graph")) }
    }

    /// Computes all sources of `graph`, and writes the file.
    fn write_new(path: &Path, graph: &Graph) -> Result<CachedEfforts, Failure> {
        let path_text = path.display().to_string();
        let destination = Destination::check(FLAG, Some(&path_text), path, &[])?;
        let known = CachedEfforts::of(graph);
        destination.write(|out| serde_json::to_writer(out, &known).map_err(io::Error::from))?;
        Ok(known)
    }

    /// Computes all sources of `graph`.
    fn of(graph: &Graph) -> CachedEfforts {
        let (mut scores, mut efforts) = (Scores::zero(), Vec::new());
        let mut progress = Progress::new(graph.vertices(), "sources");
        for source in 0..graph.vertices() {
            efforts.push(scores.count_source(graph, source));
            if progress.is_due() {
                progress.report(source + 1);
            }
        }
        CachedEfforts { schema: SCHEMA.to_owned(), graph_digest: digest(graph), efforts, scores }
    }

    /// Returns `true` if these are the efforts of `graph`.
    fn is_of(&self, graph: &Graph) -> bool {
        let number = graph.vertices();
        self.graph_digest == digest(graph)
            && self.efforts.len() as u64 == number
            && self.scores.are_complete(graph)
            && self.efforts.iter().all(|effort| effort.is_possible(graph))
    }

    /// Makes all places of this process use these efforts.
    pub(super) fn use_in_this_process(self) {
        // There is one run per process.
        let _ = KNOWN.set(self);
    }
}

/// Adds `source` to the scores of a place, or only charges its effort if it is known.
pub(super) fn add_source(scores: &mut Scores, graph: &Graph, source: u64) {
    match KNOWN.get() {
        Some(known) => scores.reuse_source(graph, &known.efforts[source as usize], &known.scores),
        None => scores.add_source(graph, source),
    }
}

/// Returns a digest of the arcs of `graph` and of their lengths, if any (FNV-1a of 64 bits over whole numbers).
fn digest(graph: &Graph) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut digest = OFFSET;
    let mut add = |number: u64| digest = (digest ^ number).wrapping_mul(PRIME);
    add(u64::from(graph.is_directed()));
    add(graph.vertices());
    for vertex in 0..graph.vertices() as u32 {
        add(graph.neighbours(vertex).len() as u64);
        graph.neighbours(vertex).iter().for_each(|target| add(u64::from(*target)));
        graph.lengths(vertex).into_iter().flatten().for_each(|length| add(length.to_bits()));
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_graph::{self as graph, ReadOptions};

    /// Checks that, if all edges have length one, Dijkstra's kernel finds the same scores, reads the same edges and
    /// removes each vertex from its heap once. The heap is as long as the queue of the breadth-first kernel, except
    /// for the order of vertices at one distance, which is by number here and by discovery there.
    #[test]
    fn lengths_of_one_take_what_the_breadth_first_kernel_counts() {
        let plain = graph::open("rmat-small", &ReadOptions::default()).unwrap();
        let unit = plain.clone().with_weights(|_, _| 1.0).unwrap();
        let count = |graph: &Graph, source| Scores::zero().count_source(graph, source);
        for source in (0..plain.vertices()).step_by(50) {
            let (breadth, distance) = (count(&plain, source), count(&unit, source));
            let queue = breadth.queue.abs_diff(distance.queue);
            assert!(queue <= distance.queue / 5, "{breadth:?} and {distance:?}");
            let heap = Effort { successors: 0, queue: distance.queue, ..breadth };
            assert_eq!(heap, distance);
        }
    }

    #[test]
    fn efforts_are_of_the_graph_that_they_were_computed_of_and_of_no_other() {
        let karate = graph::open("karate", &ReadOptions::default()).unwrap();
        let unit = karate.clone().with_weights(|_, _| 1.0).unwrap();
        for (one, other) in [(&karate, &unit), (&unit, &karate)] {
            let known = CachedEfforts::of(one);
            let read: CachedEfforts = serde_json::from_str(&serde_json::to_string(&known).unwrap()).unwrap();
            assert!(read.is_of(one) && !read.is_of(other));
            let mut short = known;
            short.efforts.pop();
            assert!(!short.is_of(one));
        }
    }
}
