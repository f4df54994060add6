//! `isles run APP --seeds N`: how much of a prediction is the order of what happens at one time.
//!
//! The model takes things of one moment in an order that a seed permutes; the chip fixes none. The same program runs
//! with several seeds, each in a process of its own, and the spread of its time and energy is printed.
//! Invariant: nothing runs before the arguments are found good.

mod report;

use crate::runs::{self, own_arguments, refusal};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};
use isles::{CodeTime, Destination, Launch, Machine};
use isles_apps::console;
use isles_apps::registry::{App, Failure, FlagValue, PlaceArguments};
use report::{SeedOutcome, text, write_json};
use serde_json::{Map, Value};
use std::path::Path;

/// Seeds at most: more would say nothing new.
const SEEDS_MAX: u32 = 10_000;

/// The argument of `isles run` beside those of places and application.
#[derive(Args, Debug)]
pub struct SeedsArguments {
    /// Run with the seeds 0 to N - 1 on a modelled chip, and print how far time and energy move with them; --summary
    /// is then of all these runs
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Settings of a modelled chip"
    )]
    pub seeds: Option<String>,
}

/// The variable of the one file that several runs can have together.
const SUMMARY: &str = "ISLES_CHIP_SUMMARY";

/// What summaries say of the settings of a run, which are the same for all seeds.
const SETTINGS: [&str; 12] = [
    "version",
    "chip",
    "clocks",
    "voltages",
    "places",
    "protocol",
    "placement",
    "governor",
    "rest",
    "broadcast",
    "reduce",
    "work",
];

/// Runs `app` with so many seeds and prints what that comes to. `launch` is that of one of the runs.
pub fn compare(
    number: &str,
    (app, matches): (&dyn App, &ArgMatches),
    (places, launch): (&PlaceArguments, &Launch),
) -> Result<(), Failure> {
    let number = read(number)?;
    check(app, matches)?;
    check_run(places, launch)?;
    let json = places.exports.summary.as_deref();
    let json =
        json.map(|path| Destination::check("--summary", Some(path), Path::new(path), &[])).transpose()?;
    let own = own_arguments(app, matches);
    let said = places.flags().into_iter().filter_map(FlagValue::flag).filter(|flag| flag.variable != SUMMARY);
    let said: Vec<&str> = said.flat_map(|flag| [flag.name, flag.value]).collect();
    let ended = runs::all(number as usize, "seeds", |seed| {
        let number = seed.to_string();
        let told = said.iter().copied().chain(["--seed", number.as_str()]);
        let summary = runs::summary(app, &own, told)?;
        let lacking = || Failure::Ended("the summary of a run lacks figures".to_owned());
        Ok((outcome(seed, &summary).ok_or_else(lacking)?, settings(&summary)))
    })?;
    let (outcomes, mut settings): (Vec<SeedOutcome>, Vec<Map<String, Value>>) = ended.into_iter().unzip();
    settings.truncate(1);
    tell(&outcomes, &settings.pop().unwrap_or_default(), json)
}

/// Prints the table, and writes the document where it shall go; to standard error if that is standard output.
fn tell(
    outcomes: &[SeedOutcome],
    settings: &Map<String, Value>,
    json: Option<Destination>,
) -> Result<(), Failure> {
    let text = text(outcomes);
    if json.as_ref().is_some_and(Destination::is_standard) {
        console::notice(text.trim_end());
    } else {
        console::print(text).map_err(Failure::stdout)?;
    }
    if let Some(json) = json {
        json.write(|out| write_json(out, outcomes, settings))?;
    }
    Ok(())
}

fn read(number: &str) -> Result<u32, Failure> {
    let good = number.parse().ok().filter(|number| (2..=SEEDS_MAX).contains(number));
    good.ok_or_else(|| refusal("--seeds", number, &format!("a whole number from 2 to {SEEDS_MAX}")))
}

/// Refuses what is to become of a result.
fn check(app: &dyn App, matches: &ArgMatches) -> Result<(), Failure> {
    for argument in app.frame_arguments(Command::new(app.name())).get_arguments() {
        let name = argument.get_id().as_str();
        if matches.value_source(name) == Some(ValueSource::CommandLine) {
            let value = matches.get_raw(name).into_iter().flatten().next().unwrap_or_default();
            let allowed = "nothing with --seeds, whose runs show no results";
            return Err(refusal(&format!("--{name}"), &value.to_string_lossy(), allowed));
        }
    }
    Ok(())
}

/// Refuses what has no meaning, or another one, for several runs.
fn check_run(places: &PlaceArguments, launch: &Launch) -> Result<(), Failure> {
    let machine = launch.chosen_machine();
    if !matches!(machine, Machine::Chip(_)) {
        return Err(refusal("--machine", machine.name(), "a modelled chip such as chip:scc with --seeds"));
    }
    let own = [
        FlagValue("ISLES_SEED", "--seed", &places.chip.seed),
        FlagValue("ISLES_REPORT", "--report", &places.report),
    ];
    let files = places.exports.flags().into_iter().filter(|FlagValue(variable, ..)| *variable != SUMMARY);
    let refused = own.into_iter().chain(files).find_map(FlagValue::flag);
    if let Some(flag) = refused {
        return Err(refusal(flag.name, flag.value, "nothing with --seeds, which is of several runs"));
    }
    if *launch.chosen_work() != CodeTime::Said {
        let allowed = "said with --seeds, because what is measured moves with this host, too";
        let source = if places.chip.work.is_some() { "--work" } else { "ISLES_CHIP_WORK" };
        return Err(refusal(source, &launch.chosen_work().to_string(), allowed));
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

/// What all runs have in common, under the names that it has in the summary of one.
fn settings(summary: &Value) -> Map<String, Value> {
    let known = SETTINGS.into_iter().filter_map(|name| Some((name.to_owned(), summary.get(name)?.clone())));
    known.collect()
}
