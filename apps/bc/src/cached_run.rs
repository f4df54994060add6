//! Runs of one graph on a modelled chip, one after the other, whose sources are computed only once.
//!
//! What a source takes of a core depends on the graph alone, and nearly all of a run's time on this host is the
//! computing of sources. So a cached run computes them all, keeps what each took, and every run after that says so
//! again instead of doing it. Its places send what those of a real run send; only of the scores that they fold together
//! at the end each place has an equal part instead of its own, so that these messages are a few bytes in a hundred
//! longer or shorter. Its scores mean nothing and are not shown. Invariant: a run without the cache never sees it.

use super::effort::Effort;
use super::run::{BcInput, Betweenness, Lengths};
use super::scores::Scores;
use isles::{ChipReport, Launch, ModelledChip};
use isles_app::Failure;
use isles_app::console::Progress;
use isles_app::frame::{Application, Balance, Dealer};
use isles_graph as graph;
use isles_graph::{Graph, ReadOptions};
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    /// What is known of the graph of the run under way, whose places all live in this thread.
    static KNOWN: RefCell<Option<Rc<CachedEfforts>>> = const { RefCell::new(None) };
}

/// What the sources of a graph came to.
struct CachedEfforts {
    efforts: Vec<Effort>,
    scores: Scores,
}

/// Forgets what is known when a run is over, however it ends.
struct ClearCache;

impl Drop for ClearCache {
    fn drop(&mut self) {
        KNOWN.set(None);
    }
}

/// A graph whose sources have been computed.
pub struct CachedRun {
    graph: Graph,
    known: Rc<CachedEfforts>,
}

impl CachedRun {
    /// Computes all sources of a graph, by a name or a file as `--graph` takes it.
    ///
    /// # Errors
    /// [`Failure::Usage`]: there is no such graph.
    pub fn new(name: &str) -> Result<CachedRun, Failure> {
        let graph = graph::open(name, &ReadOptions::default());
        let graph = graph.map_err(|error| Failure::Usage(error.to_string()))?;
        let (mut scores, mut efforts) = (Scores::zero(), Vec::new());
        let mut progress = Progress::new(graph.vertices(), "sources");
        for source in 0..graph.vertices() {
            efforts.push(scores.count_source(&graph, source));
            if progress.is_due() {
                progress.tell(source + 1);
            }
        }
        drop(progress);
        Ok(CachedRun { graph, known: Rc::new(CachedEfforts { efforts, scores }) })
    }

    /// The same with `--weights unit`, without computing anything anew.
    ///
    /// Where all edges are of length one, Dijkstra's kernel finds the same scores, looks at the same edges and takes
    /// each vertex out of its heap once. The heap is as long as the queue of the breadth-first kernel, but for the
    /// order of vertices at one distance, which is by number here and by discovery there.
    pub fn with_unit_lengths(&self) -> CachedRun {
        let graph = self.graph.clone().with_weights(|_, _| 1.0).expect("one is a length");
        CachedRun { graph, known: Rc::clone(&self.known) }
    }

    /// What a run of `isles run bc --balance static` comes to.
    ///
    /// # Errors
    /// [`Failure`]: as that of the command.
    pub fn run(&self, launch: &Launch, chip: ModelledChip) -> Result<ChipReport, Failure> {
        let (_forget, graph) = (ClearCache, self.graph.clone());
        KNOWN.set(Some(Rc::clone(&self.known)));
        let (result, _, report) = launch.run_on_chip(chip, move || plain_run(graph))?;
        result.map_err(Failure::Run)?;
        Ok(report)
    }
}

/// The scores of a run with the sources assigned beforehand.
async fn plain_run(graph: Graph) -> isles::Result<Scores> {
    let weights = if graph.is_weighted() { Lengths::Unit } else { Lengths::Ignore };
    let input = BcInput::new("", graph, weights, Balance::Static);
    Ok(Betweenness::compute(input, Dealer::plain::<Betweenness>()).await?.0.scores)
}

/// Adds `source` to the scores of a place, or says only what it takes if that is known.
pub(super) fn add_source(scores: &mut Scores, graph: &Graph, source: u64) {
    match KNOWN.with_borrow(Option::clone) {
        Some(known) => scores.recall_source(graph, &known.efforts[source as usize], &known.scores),
        None => scores.add_source(graph, source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles::{Machine, Protocol};

    fn launch(places: u32) -> Launch {
        Launch::from_environment().unwrap().places(places).protocol(Protocol::RcceX10)
    }

    #[test]
    fn a_rehearsed_run_is_as_long_as_the_run_itself() {
        let by_breadth = CachedRun::new("karate").unwrap();
        compare(&by_breadth);
        compare(&by_breadth.with_unit_lengths());
    }

    fn compare(rehearsal: &CachedRun) {
        let chip = || ModelledChip::new("scc").unwrap();
        let rehearsed = rehearsal.run(&launch(6), chip()).unwrap();
        let graph = rehearsal.graph.clone();
        let main = move || async move {
            let scores = plain_run(graph).await?;
            assert_eq!(scores.sources(), 34, "this run knows of no rehearsal");
            assert!((scores.values().next().unwrap() - 231.071_428_571_4).abs() < 1e-9);
            Ok::<_, isles::Error>(())
        };
        let (result, _, real) = launch(6).run_on_chip(chip(), main).unwrap();
        result.unwrap();
        assert_eq!(real.messages, rehearsed.messages);
        let worked = |report: &ChipReport| -> Vec<u64> {
            report.ledgers.iter().map(|ledger| ledger.time(isles::TimeCategory::Working).0).collect()
        };
        for (real, rehearsed) in worked(&real).into_iter().zip(worked(&rehearsed)) {
            let allowed = if rehearsal.graph.is_weighted() { real / 50 } else { 0 };
            assert!(rehearsed.abs_diff(real) <= allowed, "{rehearsed} and {real}");
        }
        assert!(rehearsed.time.0.abs_diff(real.time.0) < real.time.0 / 100, "{real}\n{rehearsed}");
    }

    #[test]
    fn lengths_of_one_take_what_the_breadth_first_kernel_counts() {
        let plain = graph::open("rmat-11", &ReadOptions::default()).unwrap();
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
    fn a_graph_that_is_none_is_refused_and_nothing_is_known_after_a_run() {
        assert!(matches!(CachedRun::new("nowhere"), Err(Failure::Usage(_))));
        let rehearsal = CachedRun::new("karate").unwrap();
        rehearsal.run(&launch(2).machine(Machine::Threads), ModelledChip::new("scc").unwrap()).unwrap();
        assert!(KNOWN.with_borrow(Option::is_none));
    }
}
