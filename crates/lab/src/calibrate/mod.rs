//! `isles calibrate`: measures messages between the available places, and writes a chip file that reproduces their
//! times.
//!
//! The program that measured the places also runs on the chip, and its figures correct the constants. Invariant: the
//! written constants were checked in this way, and the remaining errors are in the file and in the table.

mod file;
mod fit;
mod measure;

use clap::Args;
use file::{ClusterShape, Origin};
use fit::Constants;
use isles::prelude::*;
use isles::{Destination, Launch, Machine, ModelledChip};
use isles_app::console;
use isles_app::console::cpu_info;
use isles_app::{Failure, PlaceArguments, ended};
use measure::{FiguresByDistance, Rounds};
use serde_json::json;
use std::path::Path;
use std::sync::mpsc;

/// Number of batches, of which the median is taken.
const BATCHES: usize = 9;

/// Number of rounds of measuring.
const ROUNDS: usize = 5;

/// Rounds in which a figure differs by more than this factor are useless, because the host was busy.
const SPREAD_MAX: f64 = 2.0;

/// Number of batches on a chip, where all are the same.
const CHIP_BATCHES: usize = 1;

/// Number of corrections of the constants.
const CORRECTIONS: usize = 4;

/// Default number of places of a chip if all measured places are on one host.
const PLACES_OF_ONE_HOST: u32 = 64;

/// The arguments of `isles calibrate`.
#[derive(Args)]
pub struct CalibrateArguments {
    /// Write the chip file to FILE (- for standard output)
    #[arg(long, value_name = "FILE")]
    out: Option<String>,

    /// Number of hosts of the chip [default: the number found]
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,

    /// Places on each of its hosts [default: the number found; 64 if there is one host]
    #[arg(long, value_name = "N")]
    places_per_host: Option<u32>,

    /// Continue even if the host was busy, so that measuring rounds differ by more than a factor of 2
    #[arg(long)]
    force: bool,

    /// Print everything as JSON instead of the table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    places: PlaceArguments,
}

/// Result of the run over the places.
struct Found {
    rounds: Rounds,
    /// Places of the first host.
    per_host: u32,
}

/// Executes the command: measures, fits, checks and writes.
pub fn execute(arguments: &CalibrateArguments) -> Result<(), Failure> {
    let launch = arguments.places.launch(Vec::new())?;
    let (machine, places) = (launch.chosen_machine(), launch.chosen_places());
    if !matches!(machine, Machine::Threads | Machine::Processes | Machine::Mpi) {
        let text = format!("--machine is {:?}; allowed: threads, processes, mpi", machine.name());
        return Err(Failure::Usage(text));
    }
    if places < 2 {
        return Err(Failure::Usage(format!(
            "--places is {places}; allowed: 2 or more, for a message between two"
        )));
    }
    let out = arguments.out.as_deref();
    let out = out.map(|path| Destination::check("--out", Some(path), Path::new(path), &[])).transpose()?;
    let (found, unwritten) = on_places(launch.clone())?;
    let shape = shape(arguments, places, &found)?;
    if let Some(warning) = worth(&found.rounds, arguments.force)? {
        console::notice(format_args!("warning: {warning}"));
    }
    let origin = origin(machine, places, shape);
    let (constants, shown) = fitted(&launch, &origin, &found.rounds.median)?;
    let text = file::text(&origin, &constants, Some((&found.rounds, &shown)));
    let takes_output = matches!(out, Some(Destination::Standard));
    let written = out.map_or(Ok(()), |out| {
        out.write(|out| out.write_all(text.as_bytes())).map(drop).map_err(Failure::from)
    });
    let printed = match (takes_output, arguments.json) {
        (true, _) => Ok(()),
        (_, true) => {
            console::print(format!("{:#}\n", as_json(&found.rounds, &shown))).map_err(Failure::stdout)
        }
        _ => console::print_report(true, &file::table(&found.rounds, &shown)).map_err(Failure::stdout),
    };
    Failure::first_of([written, printed].into_iter().chain(unwritten.into_iter().map(Err)))
}

/// Returns a warning if the rounds differ much.
///
/// # Errors
/// The rounds differ much, and the measurement is not forced.
fn worth(rounds: &Rounds, is_forced: bool) -> Result<Option<String>, Failure> {
    let spread = rounds.spread();
    if spread <= SPREAD_MAX {
        return Ok(None);
    }
    let text = format!(
        "{ROUNDS} rounds of measuring differ by up to a factor of {spread:.1}; above {SPREAD_MAX} a chip \
         file is worthless"
    );
    match is_forced {
        true => Ok(Some(text)),
        false => Err(Failure::Ended(format!(
            "{text}; the host is busy: try again when it is quiet, or add --force"
        ))),
    }
}

/// Measures between the first place and a partner at each distance. Returns the figures and the failures of writing the
/// run's output.
fn on_places(launch: Launch) -> Result<(Found, Vec<Failure>), Failure> {
    let (result, figures) = mpsc::channel();
    let run = launch.run(move || async move {
        let partners = measure::partners();
        let near = isles::places().filter(|place| *place == here() || place.shares_memory()).count();
        let mut rounds = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            rounds.push(measure::measure(partners, BATCHES).await?);
        }
        let rounds = Rounds::of(&rounds);
        // The receiver exists until the run ends.
        let _ = result.send(Found { rounds, per_host: near as u32 });
        Ok::<(), isles::Error>(())
    });
    let ((outcome, _), unwritten) = ended(run)?;
    outcome.map_err(Failure::Run)?;
    let found = figures.recv().map_err(|_| Failure::Ended("the run ended without figures".to_owned()))?;
    Ok((found, unwritten))
}

/// Returns the number of hosts of the chip and of places on each.
fn shape(arguments: &CalibrateArguments, places: u32, found: &Found) -> Result<ClusterShape, Failure> {
    let is_one_host = found.rounds.median.far.is_none();
    let hosts = arguments.hosts.unwrap_or(if is_one_host { 1 } else { places.div_ceil(found.per_host) });
    let per_host =
        arguments.places_per_host.unwrap_or(if is_one_host { PLACES_OF_ONE_HOST } else { found.per_host });
    let refused =
        |flag, value, allowed: &str| Err(Failure::Usage(format!("{flag} is {value}; allowed: {allowed}")));
    match (hosts, per_host) {
        (0, _) => refused("--hosts", hosts, "1 or more"),
        (_, 0) => refused("--places-per-host", per_host, "1 or more"),
        (2.., _) if is_one_host => {
            refused("--hosts", hosts, "1, because all measured places are on one host")
        }
        (_, 2..) if found.rounds.median.near.is_none() => {
            refused("--places-per-host", per_host, "1, because no two measured places are on one host")
        }
        (hosts, per_host) => Ok(ClusterShape { hosts, per_host }),
    }
}

fn origin(machine: Machine, places: u32, shape: ClusterShape) -> Origin {
    let megahertz = cpu_info("cpu MHz").and_then(|text| text.parse::<f64>().ok());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Origin {
        measured: format!("{places} places of the machine {}, {processors} processors", machine.name()),
        processor: cpu_info("model name").unwrap_or_else(|| "unknown".to_owned()),
        megahertz: megahertz.map_or(2000, |rate| rate.round().max(1.0) as u32),
        shape,
    }
}

/// Fits the constants to the measured figures. Returns them with the figures of a chip that has them.
fn fitted(
    launch: &Launch,
    origin: &Origin,
    measured: &FiguresByDistance,
) -> Result<(Constants, FiguresByDistance), Failure> {
    let guess = Constants::guess(measured);
    let mut constants = guess.ok_or_else(|| Failure::Ended("the places measured nothing".to_owned()))?;
    let mut shown = on_chip(launch, origin, &constants, measured)?;
    for _ in 0..CORRECTIONS {
        constants = constants.corrected(measured, &shown);
        shown = on_chip(launch, origin, &constants, measured)?;
    }
    Ok((constants, shown))
}

/// Measures the same figures on the chip.
fn on_chip(
    launch: &Launch,
    origin: &Origin,
    constants: &Constants,
    measured: &FiguresByDistance,
) -> Result<FiguresByDistance, Failure> {
    let chip = ModelledChip::parse("calibrated", &file::text(origin, constants, None))?;
    let ClusterShape { hosts, per_host } = origin.shape;
    let near = measured.near.is_some() && per_host > 1;
    let far = measured.far.is_some() && hosts > 1;
    let places = if far { per_host + 1 } else { per_host.min(2) };
    let (result, ended) = mpsc::channel();
    let launch = launch.clone().places(places);
    let run = launch.run_on_chip(chip, move || async move {
        let place = |wanted: bool, number: u32| isles::places().nth(number as usize).filter(|_| wanted);
        let ways = measure::measure([place(near, 1), place(far, per_host)], CHIP_BATCHES).await?;
        let _ = result.send(ways);
        Ok::<(), isles::Error>(())
    });
    let (outcome, ..) = run.map_err(|error| Failure::Usage(error.to_string()))?;
    outcome.map_err(Failure::Run)?;
    ended.recv().map_err(|_| Failure::Ended("the model ended without figures".to_owned()))
}

fn as_json(rounds: &Rounds, shown: &FiguresByDistance) -> serde_json::Value {
    let row = |row: file::TableRow| {
        let way = if row.is_near { "near" } else { "far" };
        let [measured, least, most, chip] = [row.measured, row.least, row.most, row.shown];
        json!({
            "way": way, "figure": row.figure, "measured_ns": measured, "least_ns": least, "most_ns": most,
            "chip_ns": chip,
        })
    };
    serde_json::Value::Array(file::rows(rounds, shown).into_iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::measure::{Figures, SIZES};
    use super::*;

    #[test]
    fn rounds_that_differ_by_more_than_the_limit_are_refused_unless_forced() {
        let round = |latency| FiguresByDistance {
            near: Some(Figures { latency, gap: 1.0, sizes: [9.0; SIZES.len()] }),
            far: None,
        };
        let good = Rounds::of(&[10.0, 12.0, 20.0].map(round));
        assert!(worth(&good, false).unwrap().is_none());
        let bad = Rounds::of(&[500.0, 819.0, 122_700.0].map(round));
        let refused = worth(&bad, false).unwrap_err();
        assert_eq!(refused.exit_code(), 1);
        assert!(refused.to_string().contains("differ by up to a factor of 245.4"), "{refused}");
        assert!(worth(&bad, true).unwrap().unwrap().contains("factor of 245.4"));
    }
}
