//! The genetic algorithm of the SCC in Go: the speed-up of islands on many cores over one island on one core.
//!
//! Each row is a run of `isles run ga`, with a core for each island up to all cores; more islands share them. The
//! population is the same for any number of islands, so all runs with the same number of generations compute the same
//! number of children. More islands change the number of generations that are needed, which has rows of its own. Times
//! are those of the evolution with the creation of its channels and without the collection of its result. The paper
//! shows its speed-ups as a plot and makes three remarks about them, which are rows.

use super::super::quantity::{Quantity, Title};
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::{CORES, document, seconds};
use isles_app::{Failure, runs};

/// The speed-ups of the paper's figure 5.
pub(crate) const GENETIC_ALGORITHM: Experiment = Experiment {
    name: "ga",
    about: "a genetic algorithm on 1 to 96 islands and 48 cores: how many times faster than one island, at 533/800/800",
    source: "Prell and Rauber, Go's concurrency constructs on the SCC, MARC 2012, paper 1",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// Numbers of islands; the last two exceed the number of cores.
const ISLANDS: [u32; 12] = [1, 2, 4, 8, 12, 16, 24, 32, 40, CORES, 64, 96];

/// Generations of a row that compares times of equal work; none of these runs has found the text by then.
const GENERATIONS: u32 = 200;

/// Seeds of the evolutions over which the time to the text is averaged.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

/// Arguments of a run without migrants, which has the same number of meetings.
const ALONE: &str = "--migrants 0";

const SHAPE: Family = Family {
    deck: "",
    unit: "",
    band: Band::AtMost,
    basis: Basis::Predicted,
    source: "004:344",
    reading: "",
};
const UNPUBLISHED: Family = Family { band: Band::Unpublished, source: "", ..SHAPE };

fn rows() -> Result<Vec<Row>, Failure> {
    let equal = format!("--generations-max {GENERATIONS}");
    let of_equal_work = ISLANDS.map(|islands| (islands, equal.clone()));
    let without = ISLANDS.map(|islands| (islands, format!("{equal} {ALONE}")));
    let to_text = ISLANDS
        .into_iter()
        .flat_map(|islands| SEEDS.map(move |seed| (islands, format!("--random-seed {seed}"))));
    let all: Vec<_> = of_equal_work.into_iter().chain(without).chain(to_text).collect();
    let evolved = runs::all(all.len(), "runs", |number| evolved(all[number].0, &all[number].1))?;
    let (of_equal_work, others) = evolved.split_at(ISLANDS.len());
    let (without, to_text) = others.split_at(ISLANDS.len());
    let (to_text, needed): (Vec<f64>, Vec<f64>) = to_text.chunks(SEEDS.count()).map(sums).unzip();
    let ended = |run: &GaResult| run.generations == GENERATIONS;
    if !of_equal_work.iter().chain(without).all(ended) {
        return Err(Failure::Ended(format!("a run found the text before generation {GENERATIONS}")));
    }
    let one = of_equal_work[0].seconds;
    let migrating = of_equal_work.iter().map(|run| one / run.seconds).collect::<Vec<_>>();
    let resting = without.iter().map(|run| without[0].seconds / run.seconds).collect::<Vec<_>>();
    let to_text = to_text.iter().map(|seconds| to_text[0] / seconds).collect::<Vec<_>>();
    let generations = Family { unit: "generations", ..UNPUBLISHED };
    let mut rows = Vec::new();
    for (what, family, values) in [
        ("200 generations", UNPUBLISHED, &migrating),
        ("200 generations without migration", UNPUBLISHED, &resting),
        ("to the text", UNPUBLISHED, &to_text),
        ("generations to the text", generations, &needed),
    ] {
        let rows_of = ISLANDS.iter().zip(values);
        rows.extend(rows_of.map(|(islands, value)| family.row(title(what, *islands), f64::NAN, *value)));
    }
    rows.extend(shapes(&migrating, &resting));
    Ok(rows)
}

fn title(what: &str, islands: u32) -> Title {
    Title::from(what).over(Quantity::islands(islands))
}

/// Returns the rows on the paper's remarks about its figure.
fn shapes(migrating: &[f64], resting: &[f64]) -> Vec<Row> {
    let of = |islands: u32| ISLANDS.iter().position(|other| *other == islands).expect("it was run");
    // "That can utilize all the cores of the SCC."
    let mut rows = vec![SHAPE.at("004:289").reading("≤ 1: “can utilize all the cores of the SCC”").row(
        "200 generations, 40 islands / 48",
        1.0,
        migrating[of(40)] / migrating[of(CORES)],
    )];
    // "Creating more goroutines than we have cores is no problem" is read as not slower than on half of the cores.
    let more = Family { basis: Basis::Derived, ..SHAPE };
    let more = more.reading("≤ 1: “Creating more goroutines than we have cores is no problem”");
    for islands in [64, 96] {
        let ratio = migrating[of(24)] / migrating[of(islands)];
        let title = format!("200 generations, 24 islands / {islands}");
        rows.push(more.row(title, 1.0, ratio));
    }
    // "Leaving out migration .. achieves even higher speedups."
    let higher = SHAPE.at("004:346").reading("≤ 1: “achieves even higher speedups”");
    for islands in ISLANDS.into_iter().filter(|islands| *islands > 1) {
        let ratio = migrating[of(islands)] / resting[of(islands)];
        rows.push(higher.row(title("with migration / without", islands), 1.0, ratio));
    }
    rows
}

/// Result of a run.
#[derive(Clone, Copy)]
struct GaResult {
    /// Seconds on the chip.
    seconds: f64,
    generations: u32,
}

/// Returns the total seconds of these runs, and the mean of their generations.
fn sums(runs: &[GaResult]) -> (f64, f64) {
    let (mut seconds, mut generations) = (0.0, 0.0);
    for run in runs {
        seconds += run.seconds;
        generations += f64::from(run.generations) / runs.len() as f64;
    }
    (seconds, generations)
}

/// Runs an evolution with a core for each island, up to the number of cores.
fn evolved(islands: u32, words: &str) -> Result<GaResult, Failure> {
    let places = islands.min(CORES);
    let words = format!("--islands {islands} --machine chip:scc --places {places} {words}");
    let document = document("ga", &words)?;
    let generations = document["generations"].as_u64().and_then(|number| u32::try_from(number).ok());
    let generations =
        generations.ok_or_else(|| Failure::Ended("a run of ga has no generations".to_owned()))?;
    Ok(GaResult { seconds: seconds("ga", &document)?, generations })
}
