//! `isles run APP --seeds N`: how much of a prediction is the order of what happens at one time.
//!
//! The model takes things of one moment in an order that a seed permutes; the chip fixes none. The same program runs
//! with several seeds, each in a process of its own, and the spread of its time and energy is printed.
//! Invariant: nothing runs before the arguments are found good.

use crate::runs::{self, own_arguments, refusal};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use isles::{CodeTime, Launch, Machine};
use isles_apps::console;
use isles_apps::registry::{App, Failure, PlaceArguments, Said};
use serde_json::Value;
use std::fmt::Write;

/// Seeds at most: more would say nothing new.
const SEEDS_MAX: u32 = 10_000;

/// The argument of `isles run` beside those of places and application.
#[derive(Args, Debug)]
pub struct SeedsArguments {
    /// Run with the seeds 0 to N - 1 on a modelled chip, and print how far time and energy move with them
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seeds: Option<String>,
}

/// What a run with one seed came to.
struct Outcome {
    seconds: f64,
    /// By the first power model of the chip, if its file has one.
    joules: Option<f64>,
    digest: String,
}

/// Runs `app` with so many seeds and prints what that comes to. `launch` is that of one of the runs.
pub fn compare(
    number: &str,
    (app, matches): (&dyn App, &ArgMatches),
    (places, launch): (&PlaceArguments, &Launch),
) -> Result<(), Failure> {
    let number = read(number)?;
    check(app, matches)?;
    check_run(places, launch)?;
    let own = own_arguments(app, matches);
    let said: Vec<&str> =
        places.said().into_iter().filter_map(Said::flag).flat_map(|flag| [flag.name, flag.value]).collect();
    let outcomes = runs::all(number as usize, "seeds", |seed| {
        let seed = seed.to_string();
        let told = said.iter().copied().chain(["--seed", seed.as_str()]);
        let summary = runs::summary(app, &own, told)?;
        outcome(&summary).ok_or_else(|| Failure::Ended("the summary of a run lacks figures".to_owned()))
    })?;
    console::print(text(&outcomes)).map_err(Failure::stdout)
}

fn read(number: &str) -> Result<u32, Failure> {
    let good = number.parse().ok().filter(|number| (2..=SEEDS_MAX).contains(number));
    good.ok_or_else(|| refusal("--seeds", number, &format!("a whole number from 2 to {SEEDS_MAX}")))
}

/// Refuses what the application would write.
fn check(app: &dyn App, matches: &ArgMatches) -> Result<(), Failure> {
    for (name, _) in app.silent() {
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
    let own =
        [Said("ISLES_SEED", "--seed", &places.chip.seed), Said("ISLES_REPORT", "--report", &places.report)];
    let refused = own.into_iter().chain(places.exports.said()).find_map(Said::flag);
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

fn outcome(summary: &Value) -> Option<Outcome> {
    Some(Outcome {
        seconds: summary["predicted_ps"].as_u64()? as f64 / 1e12,
        joules: summary["energy"]["models"][0]["total_j"].as_f64(),
        digest: summary["digest"].as_str()?.to_owned(),
    })
}

/// A row for each seed, then least, median and most of time and energy, and what that means.
fn text(outcomes: &[Outcome]) -> String {
    let mut text = String::from("seed            time          energy  digest\n");
    for (seed, Outcome { seconds, joules, digest }) in outcomes.iter().enumerate() {
        let energy = joules.map_or("-".to_owned(), |joules| told(joules, "J"));
        let _ = writeln!(text, "{seed:>4}  {:>14}  {energy:>14}  {digest}", told(*seconds, "s")); // a string takes all
    }
    let times = outcomes.iter().map(|outcome| outcome.seconds).collect();
    let energies: Option<Vec<f64>> = outcomes.iter().map(|outcome| outcome.joules).collect();
    let _ = writeln!(text, "                 least          median            most  spread"); // as above
    for (name, values, unit) in [("time", Some(times), "s"), ("energy", energies, "J")] {
        let Some(values) = values else { continue };
        let [least, median, most] = order(values);
        let spread = (most - least) / median * 100.0;
        let [least, median, most] = [least, median, most].map(|value| told(value, unit));
        let _ = writeln!(text, "{name:<6}  {least:>14}  {median:>14}  {most:>14}  {spread:.4} %"); // as above
    }
    text + "What moves with the seed depends on an order that the chip does not fix: two runs that differ by less than \
            this spread do not differ.\n"
}

/// Least, median and most of some numbers.
fn order(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    // The two in the middle, which are one if there is an odd number.
    let median = (values[last / 2] + values[values.len() / 2]) / 2.0;
    [values[0], median, values[last]]
}

/// A time or an energy in thousandths, with as many digits as a small spread needs.
fn told(value: f64, unit: &str) -> String {
    format!("{:.6} m{unit}", value * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_median_and_most_are_those_of_the_sorted_numbers() {
        assert_eq!(order(vec![3.0, 1.0, 2.0]), [1.0, 2.0, 3.0]);
        assert_eq!(order(vec![4.0, 1.0, 10.0, 2.0]), [1.0, 3.0, 10.0]);
        assert_eq!(order(vec![5.0, 5.0]), [5.0, 5.0, 5.0]);
    }

    #[test]
    fn a_table_has_a_row_a_seed_and_the_spread_of_each_figure_that_is_known() {
        let outcome = |seconds, joules| Outcome { seconds, joules, digest: "d".to_owned() };
        let text = |joules: [Option<f64>; 2]| text(&[outcome(0.001, joules[0]), outcome(0.003, joules[1])]);
        let both = text([Some(1.0), Some(1.5)]);
        assert!(both.contains("\n   1     3.000000 ms  1500.000000 mJ  d\n"), "{both}");
        assert!(
            both.contains("\ntime       1.000000 ms     2.000000 ms     3.000000 ms  100.0000 %\n"),
            "{both}"
        );
        assert!(
            both.contains("\nenergy  1000.000000 mJ  1250.000000 mJ  1500.000000 mJ  40.0000 %\n"),
            "{both}"
        );
        assert!(!text([None, None]).contains("\nenergy "));
    }
}
