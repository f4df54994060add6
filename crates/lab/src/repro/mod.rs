//! `isles repro`: published experiments on the modelled chip, figure by figure.
//!
//! An experiment is a name and a function that returns rows; each row has the published figure and the model's. The
//! published figures are in the experiments, and no chip file reads them, so the model cannot agree with itself.
//! Nothing here asserts that a row is in its band: a row that is outside remains, and its verdict says so.

mod access;
mod bare;
mod bounds;
mod collective;
mod collective_scaling;
mod messages;
mod power;
mod programs;
mod quantity;
mod row;

use clap::Args;
use collective::RequestArguments;
use isles::{Claim, Destination};
use isles_app::Failure;
use isles_app::{console, picture};
use isles_chip::Chip;
use row::Row;
use std::path::Path;

/// Published figures beside those of the modelled chip.
#[derive(Args)]
pub struct ReproArguments {
    /// Experiments, in this order [default: all except those that run Isles itself]; `isles repro --list` names
    /// them
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    request: RequestArguments,
    /// Run all experiments, including those that run only by name
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// List the experiments and run none
    #[arg(long)]
    list: bool,
    /// Exit with code 1 if a figure that must be in its band is out of it; without this flag it is only reported
    #[arg(long)]
    strict: bool,
    /// Write the rows to this file, as CSV; - is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<String>,
    /// Write the rows to this file, as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<String>,
    /// Write the rows to this file, as the tables of docs/reproduction/; - is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<String>,
    /// Draw the rows to this file as SVG: all against the published figures, one experiment as a curve; - is
    /// standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,
}

/// One experiment.
pub struct Experiment {
    /// Its name on the command line.
    name: &'static str,
    /// One-line description.
    about: &'static str,
    /// Publication of its figures.
    source: &'static str,
    /// Instruction costs of its programs beside their accesses, and the reason for them; empty if they have none.
    instructions: &'static str,
    /// Source of the rows.
    rows: RowSource,
}

/// Source of the rows of an experiment.
enum RowSource {
    /// Computed from the chip file and programs on bare cores.
    Model(fn(&Chip) -> Vec<Row>),
    /// Computed from runs of Isles on the modelled chip: only if it is requested by name, because it may take minutes
    /// and changes with the runtime.
    Runs(fn() -> Result<Vec<Row>, Failure>),
}

impl Experiment {
    fn is_by_name(&self) -> bool {
        matches!(self.rows, RowSource::Runs(_))
    }

    fn run(&'static self, chip: &Chip) -> Result<ExperimentOutcome, Failure> {
        let rows = match self.rows {
            RowSource::Model(rows) => rows(chip),
            RowSource::Runs(rows) => rows()?,
        };
        Ok(ExperimentOutcome { experiment: self, rows })
    }
}

/// All experiments, in the order of the documentation page.
const EXPERIMENTS: &[Experiment] = &[
    access::LINES,
    access::BANDWIDTH,
    access::CYCLES,
    messages::bisection::BISECTION,
    access::CACHES,
    access::CONTROLLER,
    access::SHARED,
    access::FLUSH,
    messages::ping_pong::PING_PONG,
    messages::protocols::PROTOCOLS,
    bare::INTERRUPTS,
    collective::GAINS,
    collective::BROADCAST,
    collective::THROUGHPUT,
    power::MANYMAN,
    power::CICHOWSKI,
    power::MESH,
    access::C6678,
    access::GREEN,
    messages::protocols::ECHO,
    messages::rcce::RCCE_IN_C,
    messages::bare_metal::BARE_METAL,
    programs::teams::TEAMS,
    programs::rates::RATES,
    programs::power_loops::POWER_LOOPS,
    programs::manyman::MANYMAN,
    programs::betweenness::BETWEENNESS,
    programs::hartree_fock::HARTREE_FOCK,
    programs::ga::GENETIC_ALGORITHM,
    programs::pipeline::PIPELINE,
    programs::memory::gups::RANDOM_ACCESS,
    programs::memory::gups_table::ERRORS_OF_RACES,
    programs::memory::automaton::AUTOMATON,
    programs::memory::modularity::MODULARITY,
    programs::at_opt::AT_OPT,
    programs::auv::AUV,
    programs::rdf::RDF,
    programs::rtos::RTOS,
    programs::memory::svm::SVM,
    bounds::BOUNDS,
];

/// The rows of one experiment.
pub struct ExperimentOutcome {
    experiment: &'static Experiment,
    rows: Vec<Row>,
}

/// Function that formats the rows.
type Format = fn(&[ExperimentOutcome]) -> String;

/// Executes the command.
pub fn execute(arguments: &ReproArguments) -> Result<(), Failure> {
    if arguments.list {
        return console::print(list()).map_err(Failure::stdout);
    }
    let chosen = if arguments.all { EXPERIMENTS.iter().collect() } else { chosen(&arguments.names)? };
    let request = arguments.request.read(&arguments.names)?;
    let files = files(arguments)?;
    let chip = Chip::find("scc").map_err(|error| Failure::Usage(error.to_string()))?;
    let mut outcomes =
        chosen.into_iter().map(|experiment| experiment.run(&chip)).collect::<Result<Vec<_>, _>>()?;
    if let Some(request) = request {
        let own = |outcome: &&mut ExperimentOutcome| outcome.experiment.name == collective::BROADCAST.name;
        outcomes.iter_mut().filter(own).for_each(|outcome| outcome.rows.extend(request.rows(&chip)));
    }
    let left_out = left_out(&arguments.names).filter(|_| !arguments.all);
    let text = row::text(&outcomes, left_out.as_deref());
    let printed = console::print_report(files.leave_standard_output_free(), &text).map_err(Failure::stdout);
    let write = |(destination, format): (Destination, Format)| {
        Ok(destination.write(|out| out.write_all(format(&outcomes).as_bytes())).map(drop)?)
    };
    let texts: Vec<_> = files.texts.into_iter().map(write).collect();
    let drawn = files.svg.map(|svg| picture::draw("isles", &row::json(&outcomes), svg));
    let ended = ending(arguments.strict, row::missed(&outcomes));
    Failure::first_of([printed].into_iter().chain(texts).chain(drawn).chain([ended]))
}

/// Returns an error if `is_strict` is set and any figure is out of a band that it must be in; `missed` is their number.
fn ending(is_strict: bool, missed: usize) -> Result<(), Failure> {
    match missed {
        1.. if is_strict => {
            Err(Failure::Ended(format!("{missed} figures that must be in their bands are out of them")))
        }
        _ => Ok(()),
    }
}

/// Returns the experiments with these names in their order, each once; without names, all experiments that need not be
/// requested by name.
fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    if names.is_empty() {
        return Ok(EXPERIMENTS.iter().filter(|experiment| !experiment.is_by_name()).collect());
    }
    let (mut chosen, mut unknown) = (Vec::<&Experiment>::new(), Vec::new());
    for name in names {
        match EXPERIMENTS.iter().find(|experiment| experiment.name == name) {
            Some(known) if chosen.iter().any(|other| other.name == known.name) => {}
            Some(known) => chosen.push(known),
            None => unknown.push(format!("{name:?}")),
        }
    }
    if unknown.is_empty() {
        return Ok(chosen);
    }
    let are = if unknown.len() == 1 { "experiment is" } else { "experiments are" };
    let known: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
    Err(Failure::Usage(format!("the {are} {}; allowed: {}", unknown.join(", "), known.join(", "))))
}

/// Returns a line on the experiments that did not run because they were not named.
fn left_out(names: &[String]) -> Option<String> {
    let by_name: Vec<&str> = EXPERIMENTS
        .iter()
        .filter(|experiment| experiment.is_by_name())
        .map(|experiment| experiment.name)
        .collect();
    let line = || {
        format!(
            "Left out (they run Isles itself, bare, betweenness, hf, gups, gups-errors, modularity, at-opt and auv for minutes): isles repro {}",
            by_name.join(" ")
        )
    };
    names.is_empty().then(line)
}

/// Destinations of the rows, besides the table for people; each occurs once.
struct RowFiles {
    texts: Vec<(Destination, Format)>,
    svg: Option<Destination>,
}

impl RowFiles {
    fn leave_standard_output_free(&self) -> bool {
        let mut all = self.texts.iter().map(|(destination, _)| destination).chain(&self.svg);
        !all.any(Destination::is_standard)
    }
}

/// Checks all requested files.
fn files(arguments: &ReproArguments) -> Result<RowFiles, Failure> {
    let wanted: [(&str, &Option<String>, Format); 3] = [
        ("--csv", &arguments.csv, row::csv),
        ("--json", &arguments.json, row::json),
        ("--markdown", &arguments.markdown, row::markdown),
    ];
    let (mut texts, mut claims) = (Vec::new(), Vec::new());
    for (flag, path, format) in wanted {
        let Some(path) = path else { continue };
        let destination = Destination::check(flag, Some(path), Path::new(path), &claims)?;
        claims.push(Claim::written(&destination, flag));
        texts.push((destination, format));
    }
    let svg = arguments.svg.as_deref();
    let svg =
        svg.map(|path| Destination::check("--svg", Some(path), Path::new(path), &claims)).transpose()?;
    Ok(RowFiles { texts, svg })
}

fn list() -> String {
    let line = |experiment: &Experiment| {
        let by_name = if experiment.is_by_name() { "; only by name" } else { "" };
        format!("{:<14} {}{by_name}\n", experiment.name, experiment.about)
    };
    EXPERIMENTS.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::row::{Band, Basis, Family};
    use super::*;

    /// Returns the row of a figure of the deck number `deck`, twice the published one.
    fn doubled(deck: &'static str) -> Row {
        let (band, basis) = (Band::Within(5.0), Basis::Predicted);
        Family { deck, unit: "", band, basis, source: "000:293", reading: "" }.row("doubled", 1.0, 2.0)
    }

    #[test]
    fn figures_out_of_their_bands_are_counted_and_those_that_must_be_in_them_are_named() {
        let rows = vec![doubled("V3"), doubled("V5"), doubled("")];
        let outcomes = [ExperimentOutcome { experiment: &super::messages::bisection::BISECTION, rows }];
        assert_eq!(super::row::missed(&outcomes), 1);
        let page = super::row::markdown(&outcomes);
        let summary: Vec<&str> = page.lines().take(5).collect();
        let expected = [
            "0 figures have no published value.",
            "Out of band although they must not be:",
            "- V3 doubled (+100.0 %)",
            "3 of 3 published figures are OUT of their bands; of the 1 that must be in them, 1.",
            "By basis: 3 predicted (3 OUT).",
        ];
        assert_eq!(summary, expected);
    }

    #[test]
    fn only_a_strict_run_fails_and_only_for_figures_that_must_be_in_their_bands() {
        assert!(ending(false, 0).is_ok() && ending(false, 2).is_ok() && ending(true, 0).is_ok());
        let Err(failure) = ending(true, 2) else { panic!("a strict run fails") };
        assert_eq!(failure.exit_code(), 1);
        assert_eq!(failure.to_string(), "2 figures that must be in their bands are out of them");
    }
}
