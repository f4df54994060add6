//! Whole programs at other rates of the cores, for which shapes but no figures were published.
//!
//! A planner that deals out equal items, a stencil whose strips exchange their borders, and loops over memory, each a
//! run of Isles on the modelled chip. The papers do not give the cost of an item or a cell, so the amounts of `work` in
//! these programs are ours, and the rows are ratios of runs. Invariant: every row could come out on the wrong side.

use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::QUADRANT;
use isles::prelude::*;
use isles::{GovernorPolicy, IdlePolicy, Launch, ModelledChip, Placement, Work, place_count};
use isles_app::Failure;
use isles_chip::quantity::Picoseconds;
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

/// V20 to V22 of the validation deck.
pub const RATES: Experiment = Experiment {
    name: "rates",
    about: "a planner, a stencil and loops over memory by cores and rate, power model `manyman`, at 533/800/800",
    source: "V20, V21: battery-operated CPS, MARC 2012, paper 7; V22: Gschwandtner et al., in paper 9",
    instructions: "",
    rows: RowSource::Runs(rates),
};

/// Number of all cores.
const CORES: u32 = 48;

/// Dividers of 1,600 MHz.
const DIVIDERS: std::ops::RangeInclusive<u32> = 2..=16;

fn rates() -> Result<Vec<Row>, Failure> {
    let mut rows = planner()?;
    rows.extend(stencil()?);
    rows.extend(loops()?);
    Ok(rows)
}

/// Result of a run.
#[derive(Clone, Copy)]
struct RunResult {
    seconds: f64,
    joules: f64,
}

impl RunResult {
    fn watts(self) -> f64 {
        self.joules / self.seconds
    }
}

/// Runs a program on the first `places` cores, at 1,600 MHz divided by `divider`.
fn run<F>(places: u32, divider: u32, rest: IdlePolicy, main: impl FnOnce() -> F) -> Result<RunResult, Failure>
where
    F: Future<Output = isles::Result<()>> + 'static,
{
    let cores = Cores { places, placement: Placement::Linear, preset: None };
    run_on(cores, divider, rest, main)
}

/// Cores, and the preset to model them with; `None` for the chip's default.
struct Cores {
    places: u32,
    placement: Placement,
    preset: Option<&'static str>,
}

/// Runs a program on any cores, at 1,600 MHz divided by `divider`.
fn run_on<F>(
    Cores { places, placement, preset }: Cores,
    divider: u32,
    rest: IdlePolicy,
    main: impl FnOnce() -> F,
) -> Result<RunResult, Failure>
where
    F: Future<Output = isles::Result<()>> + 'static,
{
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let launch = Launch::from_environment().map_err(|error| usage(&error))?;
    let launch =
        launch.places(places).governor(GovernorPolicy::FixedAt(divider)).rest(rest).placement(placement);
    let chip = ModelledChip::new("scc").map_err(|error| usage(&error))?;
    let chip = preset.map_or(Ok(chip), |preset| chip.with_preset(preset)).map_err(|error| usage(&error))?;
    let (result, _, report) = launch.run_on_chip(chip, main).map_err(|error| usage(&error))?;
    result.map_err(Failure::Run)?;
    let energy = report.energy.expect("the chip file of the SCC has models of power");
    let seconds = energy.span.0 as f64 / 1e12;
    Ok(RunResult { seconds, joules: energy.models[0].total().joules() })
}

/// Items of a search of the planner, and the cycles of one.
const ITEMS: u32 = 20;
const ITEM: u64 = 5_000_000;

/// Sleep time of an idle place, if it sleeps.
const NAP: Picoseconds = Picoseconds(100_000_000);

fn planner() -> Result<Vec<Row>, Failure> {
    // 20 items, one at a time for each worker.
    let (band, source) = (Band::Within(10.0), "004:1473");
    let reading = "20 / ceil(20 / workers): “20 distinct depth range calculations”";
    let shape = Family { deck: "V20", unit: "", band, basis: Basis::Derived, source, reading };
    let search = |cores, rest| run(cores, 3, rest, deal);
    let polled: Vec<RunResult> =
        (2..=CORES).map(|cores| search(cores, IdlePolicy::Poll)).collect::<Result<_, Failure>>()?;
    let with = |workers: u32| polled[workers as usize - 1];
    let mut rows = Vec::new();
    for workers in [4, 5, 6, 7, 9, 10, 19, 20, 21, 47] {
        let published = f64::from(ITEMS) / f64::from(ITEMS.div_ceil(workers));
        let name = format!("planner, speed-up of {workers} workers");
        rows.push(shape.row(name, published, with(1).seconds / with(workers).seconds));
    }
    let best = polled.iter().map(|came| came.seconds).fold(f64::INFINITY, f64::min);
    let near = polled.iter().position(|came| came.seconds <= 1.01 * best);
    let fewest = near.map_or(0, |at| at + 2) as f64;
    let exact = Family { band: Band::Within(0.0), basis: Basis::Predicted, ..shape }.at(source);
    rows.push(exact.row("planner, fewest cores within 1 % of the shortest time", 21.0, fewest));
    let (awake, asleep) = (with(CORES - 1), search(CORES, IdlePolicy::Nap(NAP))?);
    let least = Family { band: Band::AtMost, basis: Basis::Predicted, ..shape }.at("004:1482-1487");
    let less = least.reading("≤ 1: “greatly reduces the overall energy used by the slave”");
    let longer = least.reading("≤ 1: “introduces latency for the first receive”");
    let name = "planner, 48 cores, energy, napping / polling";
    rows.push(less.row(name, 1.0, asleep.joules / awake.joules));
    let name = "planner, 48 cores, time, polling / napping";
    rows.push(longer.row(name, 1.0, awake.seconds / asleep.seconds));
    Ok(rows)
}

/// Deals the items out from the first place to the others, one at a time.
async fn deal() -> isles::Result<()> {
    let left = Rc::new(Cell::new(ITEMS));
    finish(async {
        for worker in places().skip(1) {
            let left = Rc::clone(&left);
            spawn(async move {
                while let Some(rest) = left.get().checked_sub(1) {
                    left.set(rest);
                    at!(worker, work(Cycles(ITEM))).await?;
                }
                Ok::<_, isles::Error>(())
            });
        }
    })
    .await
}

/// The grid of the ocean model, cut into strips along its first side.
const GRID: [u64; 3] = [512, 64, 30];

/// Number of steps of the stencil, and of passes over all cells in a step, one for each quantity as in an ocean model.
const STEPS: u32 = 4;
const PASSES: u32 = 16;

/// Memory that holds the cells.
#[derive(Clone, Copy)]
enum CellMemory {
    Memory,
    Caches,
}

fn stencil() -> Result<Vec<Row>, Failure> {
    let (band, source) = (Band::Within(15.0), "004:1503");
    let ratio = Family { deck: "V21", unit: "", band, basis: Basis::Predicted, source, reading: "" };
    let ratio =
        ratio.reading("1: “nearly the same runtime and energy profiles as the best setting for 24 nodes”");
    let least = Family { band: Band::AtMost, ..ratio };
    let power = least.reading("≤ 1: “greatly reduces the required power”");
    let energy = least.reading("≤ 1: “more runtime and energy efficient”");
    let mut rows = Vec::new();
    // The first 24 cores are near two of the four controllers; one core of each tile is near all of them.
    for (whence, cells, placement, which, preset) in [
        ("out of memory", CellMemory::Memory, Placement::Spread, "24 spread", None),
        ("out of memory", CellMemory::Memory, Placement::Linear, "24", None),
        ("out of memory", CellMemory::Memory, Placement::Spread, "24 spread", Some(QUADRANT)),
        ("out of memory", CellMemory::Memory, Placement::Linear, "24", Some(QUADRANT)),
        ("out of the caches", CellMemory::Caches, Placement::Linear, "24", None),
    ] {
        let of = |places, placement, divider| {
            let cores = Cores { places, placement, preset };
            run_on(cores, divider, IdlePolicy::Poll, move || steps(cells))
        };
        let (wide, narrow) = (of(48, Placement::Linear, 4)?, of(24, placement, 2)?);
        let by = preset.map_or(String::new(), |preset| format!(", {preset}"));
        let name = |what| format!("stencil {whence}, {what} of 48 cores at 400 MHz / {which} at 800{by}");
        rows.push(ratio.row(name("time"), 1.0, wide.seconds / narrow.seconds));
        rows.push(power.row(name("power"), 1.0, wide.watts() / narrow.watts()));
        rows.push(energy.row(name("energy"), 1.0, wide.joules / narrow.joules));
    }
    Ok(rows)
}

/// Computes the strip of every place, exchanges its borders with its neighbours and synchronizes with all places, step
/// by step.
async fn steps(cells: CellMemory) -> isles::Result<()> {
    let borders = PlaceLocal::new(Vec::<Vec<f64>>::new).await?;
    let [long, wide, deep] = GRID;
    let is_memory = matches!(cells, CellMemory::Memory);
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let team = Team::world();
                let neighbours = || places().filter(|other| other.index().abs_diff(here().index()) == 1);
                for _ in 0..STEPS {
                    for _ in 0..PASSES {
                        work(strip(long * wide * deep / place_count() as u64, is_memory));
                        isles::yield_now().await;
                    }
                    for neighbour in neighbours() {
                        let border = vec![0.0; (wide * deep) as usize];
                        at!(neighbour, {
                            borders.lock().push(border);
                        })
                        .await?;
                    }
                    team.barrier().await?;
                    assert_eq!(borders.lock().drain(..).count(), neighbours().count(), "each gave its own");
                }
            });
        }
    })
    .await
}

/// Returns the work of a pass over `cells` cells, with a value of each of five arrays.
fn strip(cells: u64, is_memory: bool) -> Work {
    let work = Work::new().integers(40 * cells).floats(40 * cells).branches(2 * cells);
    if is_memory { work.streamed(40 * cells).of(40 * cells) } else { work }
}

/// Words of each place that a loop walks through, more than its second-level cache holds, and the number of walks.
const WORDS: u64 = 128 << 10;
const ROUNDS: u32 = 32;

/// All cores, with the other rate of a memory controller.
const QUADRANTS: Cores = Cores { places: CORES, placement: Placement::Linear, preset: Some(QUADRANT) };

/// A program on all cores, as a function of the divider.
type Program = fn(u32) -> Result<RunResult, Failure>;

fn loops() -> Result<Vec<Row>, Failure> {
    let (band, source) = (Band::Unpublished, "004:1912");
    let alone = Family { deck: "V22", unit: "MHz", band, basis: Basis::Predicted, source, reading: "" };
    // From 320 to 400 MHz, according to the powers to which the model was fitted.
    let flops =
        Family { deck: "", band: Band::Within(11.2), basis: Basis::Calibrated, source: "004:1720", ..alone };
    let flops = flops.reading("the middle of “320-400 MHz”");
    let programs: [(&str, Family, Program); 5] = [
        ("stencil out of memory", alone, |divider| {
            run(CORES, divider, IdlePolicy::Poll, || steps(CellMemory::Memory))
        }),
        ("a loop that streams", alone, |divider| {
            run(CORES, divider, IdlePolicy::Poll, || walk(CellMemory::Memory))
        }),
        ("stencil out of memory, 533/800/800 quadrant", alone, |divider| {
            run_on(QUADRANTS, divider, IdlePolicy::Poll, || steps(CellMemory::Memory))
        }),
        ("a loop that streams, 533/800/800 quadrant", alone, |divider| {
            run_on(QUADRANTS, divider, IdlePolicy::Poll, || walk(CellMemory::Memory))
        }),
        ("a loop that computes", flops, |divider| {
            run(CORES, divider, IdlePolicy::Poll, || walk(CellMemory::Caches))
        }),
    ];
    let mut rows = Vec::new();
    for (name, family, program) in programs {
        let joules = |divider| program(divider).map(|came| came.joules);
        let joules: Vec<f64> = DIVIDERS.map(joules).collect::<Result<_, Failure>>()?;
        let [fastest, within @ .., slowest] = &joules[..] else { unreachable!("there are fifteen") };
        let least = within.iter().copied().fold(f64::INFINITY, f64::min);
        let at = within.iter().position(|joules| *joules == least).unwrap_or_default() as u32 + 3;
        let inside =
            Family { unit: "", band: Band::AtMost, basis: Basis::Predicted, ..family }.at("004:1912");
        let below = inside.reading("≤ 1: “lower than the maximum possible frequency”");
        let above = inside.reading("≤ 1: “higher than the minimum possible frequency”");
        let what = format!("{name}, least energy between the ends");
        rows.push(below.row(format!("{what} / at 800 MHz"), 1.0, least / fastest));
        rows.push(above.row(format!("{what} / at 100 MHz"), 1.0, least / slowest));
        // The middle of 320 to 400 MHz, for another program.
        let middle = Family { basis: Basis::Derived, ..family };
        rows.push(middle.row(format!("{what} at"), 360.0, 1_600.0 / f64::from(at)));
    }
    Ok(rows)
}

/// Walks through the words of all places, with two operations per word; with [`CellMemory::Caches`] the words are in
/// the cache.
async fn walk(cells: CellMemory) -> isles::Result<()> {
    let is_memory = matches!(cells, CellMemory::Memory);
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let round = Work::new().integers(WORDS).floats(WORDS).branches(WORDS);
                for _ in 0..ROUNDS {
                    work(if is_memory { round.streamed(8 * WORDS).of(8 * WORDS) } else { round });
                    isles::yield_now().await;
                }
            });
        }
    })
    .await
}
