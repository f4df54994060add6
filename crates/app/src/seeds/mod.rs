//! `isles run APP --seeds N`, `isles launch --seeds N`: the influence of the order of simultaneous events on a
//! prediction.
//!
//! The model orders simultaneous events by a seed; the chip defines no order. The same program runs with several seeds,
//! each in its own process, and the spread of its time and energy is printed. Invariant: nothing runs before the
//! arguments are checked.

mod report;

use crate::console;
use crate::frame::frame_arguments;
use crate::runs::{self, own_arguments, refusal};
use crate::{Failure, PlaceArguments};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};
use isles::{CodeTime, Destination, Flag, FlagGroup, Launch, Machine, SETTINGS, SettingRow, setting};
use report::{SeedOutcome, text, write_json};
use serde_json::{Map, Value};
use std::path::Path;

/// Most seeds: more would add no information.
const SEEDS_MAX: u32 = 10_000;

/// The argument of `isles run` and `isles launch` besides those of places and application.
#[derive(Args, Debug)]
pub struct SeedsArguments {
    /// Run with seeds 0 to N - 1 on a modelled chip, and print how much time and energy vary; --summary then covers
    /// all of these runs
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Settings of a modelled chip"
    )]
    pub seeds: Option<String>,
}

/// The one file that several runs can share.
const SUMMARY: &SettingRow = setting("summary");

/// The setting in which they differ.
const SEED: &SettingRow = setting("seed");

/// The setting that several runs can only take from the program itself.
const WORK: &SettingRow = setting("work");

/// Fields of a summary that are the same for all seeds, beside the settings that it keeps by name.
const FACTS: [&str; 5] = ["version", "chip", "clocks", "voltages", "places"];

/// Runs the application `app` once for each of `number` seeds, and prints the differences. `launch` is that of one run.
pub(crate) fn compare(
    number: &str,
    app: &Command,
    matches: &ArgMatches,
    places: &PlaceArguments,
    launch: &Launch,
) -> Result<(), Failure> {
    check(matches)?;
    let own = own_arguments(app, matches);
    compare_runs(number, places, launch, |_, flags| {
        runs::summary(app.get_name(), &own, flags.iter().flat_map(|flag| [flag.name, flag.value]))
    })
}

/// As `compare`, for a user's program and its arguments.
pub fn compare_program(
    number: &str,
    program: &str,
    own: &[String],
    places: &PlaceArguments,
    launch: &Launch,
) -> Result<(), Failure> {
    compare_runs(number, places, launch, |seed, flags| {
        let file = format!("isles-seeds-{}-{seed}.json", std::process::id());
        runs::program_summary(program, own, flags, &std::env::temp_dir().join(file))
    })
}

/// Runs a program with `number` seeds; `run` gets all settings of a run and returns its summary.
fn compare_runs(
    number: &str,
    places: &PlaceArguments,
    launch: &Launch,
    run: impl Fn(usize, &[Flag<'_>]) -> Result<Value, Failure> + Sync,
) -> Result<(), Failure> {
    let number = read(number)?;
    check_run(places, launch)?;
    let json = places.value_of(SUMMARY);
    let json =
        json.map(|path| Destination::check("--summary", Some(path), Path::new(path), &[])).transpose()?;
    let mut given = places.flags();
    given.retain(|flag| flag.variable != SUMMARY.variable);
    let ended = runs::all(number as usize, "seeds", |seed| {
        let number = seed.to_string();
        let mut flags = given.clone();
        flags.push(Flag { variable: SEED.variable, name: "--seed", value: &number });
        let summary = run(seed, &flags)?;
        let lacking = || Failure::Ended("the summary of a run lacks figures".to_owned());
        Ok((outcome(seed, &summary).ok_or_else(lacking)?, settings(&summary)))
    })?;
    let (outcomes, mut settings): (Vec<SeedOutcome>, Vec<Map<String, Value>>) = ended.into_iter().unzip();
    settings.truncate(1);
    print_outcomes(&outcomes, &settings.pop().unwrap_or_default(), json)
}

/// Prints the table and writes the document; the table goes to standard error if the document goes to standard output.
fn print_outcomes(
    outcomes: &[SeedOutcome],
    settings: &Map<String, Value>,
    json: Option<Destination>,
) -> Result<(), Failure> {
    let text = text(outcomes);
    let is_free = !json.as_ref().is_some_and(Destination::is_standard);
    let printed = console::print_report(is_free, &text).map_err(Failure::stdout);
    let write = |json: Destination| Ok(json.write(|out| write_json(out, outcomes, settings)).map(drop)?);
    Failure::first_of([printed, json.map_or(Ok(()), write)])
}

fn read(number: &str) -> Result<u32, Failure> {
    let good = number.parse().ok().filter(|number| (2..=SEEDS_MAX).contains(number));
    good.ok_or_else(|| refusal("--seeds", number, &format!("a whole number from 2 to {SEEDS_MAX}")))
}

/// Refuses output arguments.
fn check(matches: &ArgMatches) -> Result<(), Failure> {
    for argument in frame_arguments(Command::default()).get_arguments() {
        let name = argument.get_id().as_str();
        if matches.value_source(name) == Some(ValueSource::CommandLine) {
            let value = matches.get_raw(name).into_iter().flatten().next().unwrap_or_default();
            let allowed = "nothing with --seeds, because its runs show no results";
            return Err(refusal(&format!("--{name}"), &value.to_string_lossy(), allowed));
        }
    }
    Ok(())
}

/// Refuses settings that have no or another meaning for several runs.
fn check_run(places: &PlaceArguments, launch: &Launch) -> Result<(), Failure> {
    let machine = launch.chosen_machine();
    if !matches!(machine, Machine::Chip(_)) {
        return Err(refusal("--machine", machine.name(), "a modelled chip such as chip:scc with --seeds"));
    }
    let is_of_one_run = |row: &&SettingRow| {
        let is_file = row.flag.is_some_and(|flag| flag.group == FlagGroup::Files);
        ["seed", "report"].contains(&row.name) || is_file && row.name != SUMMARY.name
    };
    let mut refused = SETTINGS.iter().filter(is_of_one_run);
    let flags = places.flags();
    let given = refused.find_map(|row| flags.iter().find(|flag| flag.variable == row.variable));
    if let Some(flag) = given {
        return Err(refusal(flag.name, flag.value, "nothing with --seeds, because it makes several runs"));
    }
    if *launch.chosen_work() != CodeTime::Declared {
        let allowed = "said with --seeds, because measured work also varies with this host";
        return Err(refusal(places.source(WORK), &launch.chosen_work().to_string(), allowed));
    }
    Ok(())
}

fn outcome(seed: usize, summary: &Value) -> Option<SeedOutcome> {
    Some(SeedOutcome {
        seed,
        predicted_ps: summary["predicted_ps"].as_u64()?,
        energy_j: summary["energy"]["models"][0]["total_j"].as_f64(),
        digest: summary["digest"].as_str()?.to_owned(),
    })
}

/// Returns the settings that all runs have in common, under their names in the summary of one.
fn settings(summary: &Value) -> Map<String, Value> {
    let kept = SETTINGS.iter().filter(|row| row.is_in_summary()).map(|row| row.name);
    let known =
        FACTS.into_iter().chain(kept).filter_map(|name| Some((name.to_owned(), summary.get(name)?.clone())));
    known.collect()
}
