//! The genetic algorithm of the SCC in Go: how much faster islands on many cores are than one island on one.
//!
//! Each row is a run of `isles run ga`, one island a core. The population is the same for any number of islands, so all
//! runs of so many generations compute the same number of children; what many islands change is how many generations
//! are needed, which stands in rows of its own. Times are of the evolution, the making of its channels included and the
//! collection of its result not.

use super::super::quantity::{Quantity, Title};
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::{document, seconds};
use isles_app::{Failure, runs};

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
    let speedup = Family { deck: "", unit: "", band: Band::Unpublished, basis: Basis::Predicted, source: "" };
    let generations = Family { unit: "generations", ..speedup };
    let of_equal_work = ISLANDS.map(|islands| (islands, format!("--generations-max {GENERATIONS}")));
    let to_text = ISLANDS
        .into_iter()
        .flat_map(|islands| SEEDS.map(move |seed| (islands, format!("--random-seed {seed}"))));
    let all: Vec<_> = of_equal_work.into_iter().chain(to_text).collect();
    let evolved = runs::all(all.len(), "runs", |number| evolved(all[number].0, &all[number].1))?;
    let (of_equal_work, to_text) = evolved.split_at(ISLANDS.len());
    let (to_text, needed): (Vec<f64>, Vec<f64>) = to_text.chunks(SEEDS.count()).map(sums).unzip();
    let ended = |run: &Evolved| run.generations == GENERATIONS;
    if !of_equal_work.iter().all(ended) {
        return Err(Failure::Ended(format!("a run found the text before generation {GENERATIONS}")));
    }
    let name = |what: &str, islands: u32| Title::from(what).over(Quantity::cores(islands));
    let equal = ISLANDS.iter().zip(of_equal_work).map(|(islands, run)| {
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

/// Seconds of all these runs, and the mean of their generations.
fn sums(runs: &[Evolved]) -> (f64, f64) {
    let (mut seconds, mut generations) = (0.0, 0.0);
    for run in runs {
        seconds += run.seconds;
        generations += f64::from(run.generations) / runs.len() as f64;
    }
    (seconds, generations)
}

/// Runs an evolution with a core for each island.
fn evolved(islands: u32, words: &str) -> Result<Evolved, Failure> {
    let words = format!("--islands {islands} --machine chip:scc --places {islands} {words}");
    let document = document("ga", &words)?;
    let generations = document["generations"].as_u64().and_then(|number| u32::try_from(number).ok());
    let generations =
        generations.ok_or_else(|| Failure::Ended("a run of ga has no generations".to_owned()))?;
    Ok(Evolved { seconds: seconds("ga", &document)?, generations })
}
