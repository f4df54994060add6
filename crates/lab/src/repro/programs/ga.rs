//! The genetic algorithm of the SCC in Go: how much faster islands on many cores are than one island on one.
//!
//! Each row is a run of `isles run ga`, one island a core. The population is the same for any number of islands, so all
//! runs of so many generations compute the same number of children; what many islands change is how many generations
//! are needed, which stands in rows of its own. Times are of the evolution, the making of its channels included and the
//! collection of its result not.

use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use isles::{Launch, ModelledChip};
use isles_app::Failure;
use isles_app::console;
use isles_app::frame::{Application, Dealer, count};
use isles_ga::GeneticAlgorithm;
use isles_ga::evolution::Evolution;
use std::cell::Cell;
use std::rc::Rc;

/// Ours alone: the paper shows its speed-up as a picture.
pub const GENETIC_ALGORITHM: Experiment = Experiment {
    name: "ga",
    about: "a genetic algorithm on islands, one a core: how many times faster than one core, at 533/800/800",
    source: "Prell and Rauber, 6th MARC symposium (2012), pages 2 to 6; its figures were not at hand",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// Numbers of islands, and of cores.
const ISLANDS: [u32; 10] = [1, 2, 4, 8, 12, 16, 24, 32, 40, 48];

/// Generations of a row that compares times of equal work: none of these runs has found the text by then.
const GENERATIONS: u32 = 200;

/// Evolutions whose mean the time to the text is.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

fn rows() -> Result<Vec<Row>, Failure> {
    let speedup = Family { deck: "", unit: "", band: Band::Unpublished, basis: Basis::Predicted };
    let generations = Family { unit: "generations", ..speedup };
    let (mut of_equal_work, mut to_text, mut needed) = (Vec::new(), Vec::new(), Vec::new());
    for islands in ISLANDS {
        console::notice(count(u64::from(islands), "island", "islands"));
        of_equal_work
            .push(evolved(Evolution { generations_max: GENERATIONS, ..Evolution::published(islands) })?);
        let (mut seconds, mut generations) = (0.0, 0.0);
        for random_seed in SEEDS {
            let run = evolved(Evolution { random_seed, ..Evolution::published(islands) })?;
            seconds += run.seconds;
            generations += f64::from(run.generations) / SEEDS.count() as f64;
        }
        to_text.push(seconds);
        needed.push(generations);
    }
    let ended = |run: &Evolved| run.generations == GENERATIONS;
    if !of_equal_work.iter().all(ended) {
        return Err(Failure::Ended(format!("a run found the text before generation {GENERATIONS}")));
    }
    let name = |what: &str, islands: u32| {
        format!("{what}, {islands} {}", if islands == 1 { "core" } else { "cores" })
    };
    let equal = ISLANDS.iter().zip(&of_equal_work).map(|(islands, run)| {
        speedup.row(name("200 generations", *islands), f64::NAN, of_equal_work[0].seconds / run.seconds)
    });
    let text = ISLANDS
        .iter()
        .zip(&to_text)
        .map(|(islands, seconds)| speedup.row(name("to the text", *islands), f64::NAN, to_text[0] / seconds));
    let needed = ISLANDS
        .iter()
        .zip(needed)
        .map(|(islands, mean)| generations.row(name("generations to the text", *islands), f64::NAN, mean));
    Ok(equal.chain(text).chain(needed).collect())
}

/// What a run came to.
#[derive(Clone, Copy)]
struct Evolved {
    /// Of the chip.
    seconds: f64,
    generations: u32,
}

/// Runs an evolution with a core for each island.
fn evolved(evolution: Evolution) -> Result<Evolved, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let launch = Launch::from_environment().map_err(|error| usage(&error))?.places(evolution.islands);
    let chip = ModelledChip::new("scc").map_err(|error| usage(&error))?;
    let outcome = Rc::new(Cell::new(None));
    let place = Rc::clone(&outcome);
    let main = move || async move {
        let dealer = Dealer::plain::<GeneticAlgorithm>();
        let (found, done) = GeneticAlgorithm::compute(evolution, dealer).await?;
        place.set(Some(Evolved { seconds: done.seconds, generations: found.generations() }));
        Ok::<_, isles::Error>(())
    };
    let (result, ..) = launch.run_on_chip(chip, main).map_err(|error| usage(&error))?;
    result.map_err(Failure::Run)?;
    outcome.get().ok_or_else(|| Failure::Ended("the run ended without a result".to_owned()))
}
