//! Modularity clustering over shared objects on the SCC: four mixes of memory, three controllers, two graphs.
//!
//! Each run is one of `isles run modularity`. The paper's graph of trade may not be redistributed, and its graph of
//! patents was not found: both are replaced by graphs with the same numbers of vertices and edges. The paper shows its
//! speed-ups as plots; the statements of its text about them are rows. Times are of the steps. All steps of the large
//! graph take the same time, so two of them represent the 500.

use crate::repro::access::FAST;
use crate::repro::programs::{CORES, SCC, document, seconds};
use crate::repro::quantity::{Quantity, Title};
use crate::repro::row::{Band, Basis, Family, Row};
use crate::repro::{Experiment, RowSource};
use isles::prelude::*;
use isles::shared_memory::{MemoryKind, SharedMemory};
use isles::{Launch, ModelledChip};
use isles_app::{Failure, runs};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

/// Figures 6 and 7 of the paper, and its remarks about its controllers.
pub(crate) const MODULARITY: Experiment = Experiment {
    name: "modularity",
    about: "clustering over shared objects, by memory: how many times faster than 1 core cached, at 800/1600/1066",
    source: "Rotta et al., Data sharing mechanisms for parallel graph algorithms, MARC 2012",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// Kinds of memory: the application's name and the paper's name.
const MEMORIES: [(&str, &str); 4] = [
    ("cached", "cached (DCM)"),
    ("uncached", "uncached (NCM)"),
    ("through", "write-through (WT)"),
    ("mixed", "mixed"),
];
const CACHED: usize = 0;
const UNCACHED: usize = 1;
const THROUGH: usize = 2;
const MIXED: usize = 3;

/// Numbers of cores of the small graph.
const FEW: [u32; 14] = [1, 2, 3, 4, 6, 8, 10, 12, 13, 14, 15, 20, 30, CORES];

/// Numbers of cores of the large graph, and the memories of its figure.
const MANY: [u32; 4] = [1, 8, 15, CORES];
const LARGE_MEMORIES: [usize; 2] = [CACHED, MIXED];

/// Steps of the paper with the large graph.
const LARGE_STEPS: f64 = 500.0;

/// Clock of a core, in cycles per microsecond.
const MEGAHERTZ: f64 = 800.0;

/// Lines flushed to find the cost of a modified one: a page.
const LINES: u32 = 128;

/// Family of the paper's remarks in words.
const SAID: Family = Family {
    deck: "",
    unit: "",
    band: Band::Within(15.0),
    basis: Basis::Derived,
    source: "004:815",
    reading: "",
};
const AT_MOST: Family = Family { band: Band::AtMost, ..SAID };
const UNPUBLISHED: Family = Family { band: Band::Unpublished, basis: Basis::Predicted, source: "", ..SAID };

/// One run of the application.
#[derive(Clone, Copy)]
struct Clustering {
    graph: &'static str,
    memory: usize,
    controller: &'static str,
    cores: u32,
    /// Maximum number of steps; if `None`, it runs until no move is good.
    steps: Option<u32>,
}

impl Clustering {
    /// Runs the application. Returns the seconds of the steps, and their number.
    fn run(self) -> Result<ClusteringRun, Failure> {
        let Clustering { graph, memory, controller, cores, steps } = self;
        let (memory, steps) =
            (MEMORIES[memory].0, steps.map_or(String::new(), |steps| format!(" --steps {steps}")));
        let words = format!(
            "--graph {graph} --search all --memory {memory} --controller {controller} --machine {SCC} --preset {FAST} \
             --places {cores}{steps}"
        );
        let document = document("modularity", &words)?;
        let steps = document["steps"].as_f64();
        let steps = steps.ok_or_else(|| Failure::Ended("a run of modularity has no steps".to_owned()))?;
        Ok(ClusteringRun { seconds: seconds("modularity", &document)?, steps })
    }
}

/// Result of a run.
#[derive(Clone, Copy)]
struct ClusteringRun {
    seconds: f64,
    steps: f64,
}

fn rows() -> Result<Vec<Row>, Failure> {
    let small = |memory: usize, cores: u32, controller: &'static str| Clustering {
        graph: "trade-66",
        memory,
        controller,
        cores,
        steps: None,
    };
    let curves: Vec<Clustering> =
        (0..MEMORIES.len()).flat_map(|memory| FEW.map(|cores| small(memory, cores, "broadcast"))).collect();
    let others: Vec<Clustering> = (0..MEMORIES.len())
        .flat_map(|memory| ["overlapped", "timestamp"].map(|controller| small(memory, 15, controller)))
        .collect();
    let large: Vec<Clustering> = LARGE_MEMORIES
        .into_iter()
        .flat_map(|memory| MANY.map(|cores| (memory, cores)))
        .flat_map(|(memory, cores)| {
            let (graph, controller) = ("citations-240547", "broadcast");
            [1, 2].map(|steps| Clustering { graph, memory, controller, cores, steps: Some(steps) })
        })
        .collect();
    let all: Vec<Clustering> = [&curves[..], &others, &large].concat();
    let ran = runs::all(all.len(), "runs", |number| all[number].run())?;
    let steps = ran[0].steps;
    let ran: Vec<f64> = ran.into_iter().map(|run| run.seconds).collect();
    let (times, rest) = ran.split_at(curves.len());
    let (others, large) = rest.split_at(others.len());
    let times: Vec<&[f64]> = times.chunks(FEW.len()).collect();
    let mut rows = figure(&times);
    rows.extend(shapes(&times));
    rows.push(Family { basis: Basis::Predicted, ..SAID }.at("004:813").row(
        "steps of the small graph",
        64.0,
        steps,
    ));
    rows.extend(controllers(&times, others));
    rows.extend(fits(&times));
    rows.extend(costs()?);
    rows.extend(large_graph(large));
    Ok(rows)
}

/// Returns the title of a speed-up, a point of the figure.
fn title(what: &str, cores: u32) -> Title {
    Title::from(what).over(Quantity::cores(cores))
}

/// Returns the title of a comparison of speed-ups, which is not a point of the figure.
fn comparison(what: &str, cores: u32) -> Title {
    Title::from(format!("{what}, {cores} {}", if cores == 1 { "core" } else { "cores" }))
}

fn index_of(cores: u32) -> usize {
    FEW.iter().position(|other| *other == cores).expect("it was run")
}

/// Returns the rows of the speed-ups of figure 6.
fn figure(times: &[&[f64]]) -> Vec<Row> {
    let alone = times[CACHED][0];
    let of = |memory: usize| {
        FEW.iter().zip(times[memory]).map(move |(cores, time)| (memory, *cores, alone / time))
    };
    let all = (0..MEMORIES.len()).flat_map(of);
    all.map(|(memory, cores, value)| UNPUBLISHED.row(title(MEMORIES[memory].1, cores), f64::NAN, value))
        .collect()
}

/// Returns the rows on the paper's remarks about figure 6.
fn shapes(times: &[&[f64]]) -> Vec<Row> {
    let speed = |memory: usize, cores: u32| times[CACHED][0] / times[memory][index_of(cores)];
    let best = |memory: usize| times[CACHED][0] / times[memory].iter().copied().fold(f64::INFINITY, f64::min);
    let poorly = AT_MOST.reading("≤ 2: “the local search scales really poorly”");
    let better = AT_MOST.reading("≤ 1: “With NCM maps better speedups are achieved”");
    let full = SAID.reading("1: “seems to utilize the memory bandwidth when reaching 12 cores”");
    let printed = Family { basis: Basis::Predicted, ..SAID };
    let mut rows = vec![
        // "Scales really poorly" is read as less than twice as fast as one core with any number of cores.
        poorly.row("cached, most at any number of cores", 2.0, best(CACHED)),
        // "With NCM maps better speedups are achieved."
        better.row(comparison("cached / uncached", 12), 1.0, speed(CACHED, 12) / speed(UNCACHED, 12)),
        // "Seems to utilize the memory bandwidth when reaching 12 cores": there is little gain beyond.
        full.row("uncached, most / 12 cores", 1.0, best(UNCACHED) / speed(UNCACHED, 12)),
        printed.row(title(MEMORIES[THROUGH].1, 13), 6.0, speed(THROUGH, 13)),
        printed.row(title(MEMORIES[THROUGH].1, 14), 6.0, speed(THROUGH, 14)),
        printed.row(title("mixed", 15), 7.0, speed(MIXED, 15)),
    ];
    // "For small core counts the speedup was consistently better than with the other variants."
    let best_of_all = AT_MOST.reading("≤ 1: “for small core counts the speedup was consistently better”");
    for cores in [1, 2, 3, 4, 6, 8] {
        let others = [CACHED, UNCACHED, THROUGH].map(|memory| speed(memory, cores));
        let most = others.into_iter().fold(0.0, f64::max);
        rows.push(best_of_all.row(comparison("best other / mixed", cores), 1.0, most / speed(MIXED, cores)));
    }
    rows
}

/// Returns the rows on "the differences between the three consistency controllers are negligible", which is taken as 5
/// %.
fn controllers(times: &[&[f64]], others: &[f64]) -> Vec<Row> {
    let comparable = Family { band: Band::Within(5.0), ..SAID }.at("004:809");
    let comparable = comparable.reading("1: “the differences between the three consistency controllers”");
    let pairs = others.chunks(2).enumerate();
    let rows = pairs.flat_map(|(memory, pair)| {
        let broadcast = times[memory][index_of(15)];
        ["overlapped", "timestamp"].into_iter().zip(pair).map(move |(controller, time)| {
            let text = format!("{}, {controller} / broadcast", MEMORIES[memory].0);
            comparable.row(comparison(&text, 15), 1.0, time / broadcast)
        })
    });
    rows.collect()
}

/// Number of terms of T(P); those that do not change with P count as one.
const TERMS: usize = 4;
const ALPHA: usize = 2;
const BETA: usize = 3;

fn terms(cores: u32) -> [f64; TERMS] {
    let cores = f64::from(cores);
    [1.0, 1.0 / cores, cores, cores.log2()]
}

/// Fits T(P) = T_s + T_wb + T_inv + T_p/P + αP + β log2 P, without the terms `left_out`.
///
/// No factor is negative: of the subsets of terms whose best factors are not negative, that with the smallest error is
/// taken.
fn fit(times: &[f64], left_out: &[usize]) -> ([f64; TERMS], f64) {
    let mut best = ([0.0; TERMS], f64::INFINITY);
    for subset in 1_u32..1 << TERMS {
        let chosen: Vec<usize> = (0..TERMS).filter(|term| subset >> term & 1 == 1).collect();
        if chosen.iter().any(|term| left_out.contains(term)) {
            continue;
        }
        let Some(factors) = least_squares(times, &chosen) else { continue };
        let error = |(cores, time): (&u32, &f64)| {
            let model: f64 = terms(*cores).iter().zip(factors).map(|(term, factor)| term * factor).sum();
            // Relative errors, because otherwise the time on one core would outweigh all others.
            ((model - time) / time).powi(2)
        };
        let error = (FEW.iter().zip(times).map(error).sum::<f64>() / times.len() as f64).sqrt();
        if factors.iter().all(|factor| *factor >= 0.0) && error < best.1 {
            best = (factors, error);
        }
    }
    best
}

/// Returns the factors of these terms by least squares of relative errors; `None` if they are not determined.
fn least_squares(times: &[f64], chosen: &[usize]) -> Option<[f64; TERMS]> {
    let size = chosen.len();
    let mut rows = vec![vec![0.0; size + 1]; size];
    for (cores, time) in FEW.iter().zip(times) {
        let all = terms(*cores).map(|term| term / time);
        for (row, one) in chosen.iter().enumerate() {
            for (column, other) in chosen.iter().enumerate() {
                rows[row][column] += all[*one] * all[*other];
            }
            rows[row][size] += all[*one];
        }
    }
    for pivot in 0..size {
        let largest = (pivot..size)
            .max_by(|one, other| rows[*one][pivot].abs().total_cmp(&rows[*other][pivot].abs()))?;
        rows.swap(pivot, largest);
        if rows[pivot][pivot] == 0.0 {
            return None;
        }
        let chosen_row = rows[pivot].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(row, _)| *row != pivot) {
            let factor = row[pivot] / chosen_row[pivot];
            row.iter_mut().zip(&chosen_row).for_each(|(value, other)| *value -= factor * other);
        }
    }
    let mut factors = [0.0; TERMS];
    chosen.iter().enumerate().for_each(|(row, term)| factors[*term] = rows[row][size] / rows[row][row]);
    Some(factors)
}

/// Returns the rows on "βlog2(P) is negligible, while αP is necessary"; uncached and write-through memory eliminate the
/// write-backs.
fn fits(times: &[&[f64]]) -> Vec<Row> {
    let said = AT_MOST.at("004:828");
    let negligible = said.reading("≤ 5 %: “log_2(P) is negligible”");
    let necessary = said.reading("≤ 1 / 2: “αP is necessary to explain the low slope”");
    let eliminated = said.reading("≤ 1: “The NCM, WT and Mix variants eliminate”");
    let reduced = said.reading("≤ 1: “WT and Mix reduce αP through caching”");
    let alone = Family { unit: "ms", ..UNPUBLISHED };
    let mut rows = Vec::new();
    let names = ["T_s + T_wb + T_inv", "T_p", "α", "β"];
    let all: Vec<_> = times.iter().map(|times| fit(times, &[])).collect();
    for (memory, (factors, error)) in all.iter().enumerate() {
        let name = MEMORIES[memory].0;
        for (text, factor) in names.iter().zip(factors) {
            rows.push(alone.row(format!("{name}, {text}"), f64::NAN, factor * 1e3));
        }
        // Negligible is taken as 5 % of the time on 15 cores, necessary as twice the error without it.
        let of_time = factors[BETA] * terms(15)[BETA] / times[memory][index_of(15)];
        rows.push(negligible.row(comparison(&format!("{name}, β log2 P of all time"), 15), 0.05, of_time));
        let (_, without) = fit(times[memory], &[ALPHA]);
        rows.push(necessary.row(format!("{name}, error of the fit with αP / without"), 0.5, error / without));
    }
    for (memory, name) in [(UNCACHED, "uncached"), (THROUGH, "write-through"), (MIXED, "mixed")] {
        let text = format!("T_s + T_wb + T_inv, {name} / cached");
        rows.push(eliminated.row(text, 1.0, all[memory].0[0] / all[CACHED].0[0]));
    }
    for (memory, name) in [(THROUGH, "write-through"), (MIXED, "mixed")] {
        rows.push(reduced.row(
            format!("α, {name} / uncached"),
            1.0,
            all[memory].0[ALPHA] / all[UNCACHED].0[ALPHA],
        ));
    }
    rows
}

/// Measures the costs of flushing a modified line and of a collective.
fn costs() -> Result<Vec<Row>, Failure> {
    let modified = cycles(1, modified_line)?;
    let collective = cycles(CORES, collective)?;
    let printed = Family { unit: "cycles", basis: Basis::Predicted, ..SAID };
    let longer = AT_MOST.at("004:809");
    let longer = longer.reading("≤ 1: “always takes much longer than the invalidation broadcasts”");
    let one_line = cycles(1, flush_of_a_line)?;
    Ok(vec![
        printed.at("004:801").row("to write back a modified line", 80.0, modified),
        Family { band: Band::AtMost, ..printed }.at("004:809").row(
            comparison("a collective: a broadcast and its answers", CORES),
            8_000.0,
            collective,
        ),
        longer.row("a collective of 48 cores / a flush of one line", 1.0, collective / one_line),
    ])
}

/// Runs `main` on the modelled SCC and converts its result from microseconds to cycles of a core.
fn cycles<F>(places: u32, main: impl FnOnce() -> F + 'static) -> Result<f64, Failure>
where
    F: Future<Output = isles::Result<f64>> + 'static,
{
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let launch = Launch::from_environment().map_err(|error| usage(&error))?.places(places);
    let chip =
        ModelledChip::new("scc").and_then(|chip| chip.with_preset(FAST)).map_err(|error| usage(&error))?;
    let found = Rc::new(RefCell::new(0.0));
    let place = Rc::clone(&found);
    let main = move || async move {
        *place.borrow_mut() = main().await?;
        Ok::<_, isles::Error>(())
    };
    let (result, ..) = launch.run_on_chip(chip, main).map_err(|error| usage(&error))?;
    result.map_err(Failure::Run)?;
    Ok(found.take() * MEGAHERTZ)
}

/// Returns the additional time per line to flush a page in which each line was modified.
async fn modified_line() -> isles::Result<f64> {
    let bytes = LINES as usize * 32;
    let Some(memory) = SharedMemory::new(bytes as u64, MemoryKind::Cached) else { return Ok(f64::NAN) };
    let mut page = vec![0; bytes];
    let mut flushes = [0.0; 2];
    for (is_modified, took) in [false, true].into_iter().zip(&mut flushes) {
        memory.read(0, &mut page);
        if is_modified {
            memory.write(0, &page);
        }
        let began = now();
        memory.flush();
        *took = (now() - began).as_nanos() as f64 / 1e3;
    }
    Ok((flushes[1] - flushes[0]) / f64::from(LINES))
}

/// Returns the time to flush a line that was read and not modified.
async fn flush_of_a_line() -> isles::Result<f64> {
    let Some(memory) = SharedMemory::new(32, MemoryKind::Cached) else { return Ok(f64::NAN) };
    memory.read(0, &mut [0; 32]);
    let began = now();
    memory.flush();
    Ok((now() - began).as_nanos() as f64 / 1e3)
}

/// Returns the mean time of a word from the first place to all, and one from all to the first.
async fn collective() -> isles::Result<f64> {
    const ROUNDS: u32 = 10;
    let took = PlaceLocal::new(|| 0.0).await?;
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let team = Team::world();
                team.barrier().await?;
                let began = now();
                for _ in 0..ROUNDS {
                    let word = team.broadcast(0, Some(1_u64)).await?;
                    team.reduce(0, word, |one, other| one + other).await?;
                }
                *took.lock() = (now() - began).as_nanos() as f64 / 1e3 / f64::from(ROUNDS);
            });
        }
    })
    .await?;
    Ok(*took.lock())
}

/// Returns the rows on "the task size was large enough to dominate even the flushing overheads of the DCM variant."
fn large_graph(times: &[f64]) -> Vec<Row> {
    // The first step, and 499 times the second step of each pair of runs.
    let whole: Vec<f64> =
        times.chunks(2).map(|pair| pair[0] + (pair[1] - pair[0]) * (LARGE_STEPS - 1.0)).collect();
    let curves: Vec<&[f64]> = whole.chunks(MANY.len()).collect();
    let mut rows = Vec::new();
    for (memory, curve) in LARGE_MEMORIES.into_iter().zip(&curves) {
        let of = MANY.iter().zip(*curve);
        rows.extend(of.map(|(cores, time)| {
            let text = format!("large graph, {}", MEMORIES[memory].1);
            UNPUBLISHED.row(title(&text, *cores), f64::NAN, curves[0][0] / time)
        }));
    }
    let large = Family { band: Band::Within(10.0), ..SAID }.at("004:830");
    let large = large.reading("1: “large enough to dominate even the flushing overheads of the DCM variant”");
    for (index, cores) in MANY.iter().enumerate().skip(1) {
        rows.push(large.row(
            comparison("large graph, cached / mixed", *cores),
            1.0,
            curves[0][index] / curves[1][index],
        ));
    }
    rows
}
