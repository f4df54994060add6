//! One session: every wanted contender, run in turn.
//!
//! Its own file because the order of runs is what makes ratios fair: A B C, A B C, so that a change of the
//! machine's mood falls on all alike. It does not judge. The invariant: the figures of a contender come
//! from all rounds or the contender is absent.

use crate::machine::{LOAD_DOUBTFUL, Machine};
use crate::measure::{Contender, Figures, Group, Row};
use crate::options::Options;
use crate::output::Output;
use crate::program::Absence;
use crate::samples::Samples;
use crate::workshop::Workshop;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Everything that was measured.
pub struct Session {
    /// Where and when.
    pub machine: Machine,
    /// What was asked for.
    pub options: Options,
    /// The groups with at least one wanted row.
    pub groups: Vec<Outcome>,
}

/// What came out of one group.
pub struct Outcome {
    /// The group.
    pub group: &'static Group,
    /// Its wanted rows.
    pub rows: Vec<&'static Row>,
    /// The values, over the rounds.
    pub figures: Figures,
    /// What each contender says that it is.
    pub versions: BTreeMap<&'static str, String>,
    /// The contenders without figures.
    pub absences: BTreeMap<&'static str, Absence>,
}

/// No run of a contender takes this long unless it hangs; the slowest known is MPICH with 48 ranks, about 20 s.
const RUN_LIMIT: Duration = Duration::from_secs(240);

impl Session {
    /// Measures what was asked for.
    ///
    /// # Errors
    /// The cache folder cannot be used; one line.
    pub fn run(options: &Options) -> Result<Session, String> {
        let workshop = Workshop::open()?;
        let machine = Machine::here();
        if machine.load_average.is_some_and(|load| load > LOAD_DOUBTFUL) {
            eprintln!(
                "isles-bench: other programs are running (load {:.2}); the figures will be worse and less sure",
                machine.load_average.unwrap_or_default()
            );
        }
        let mut groups = Vec::new();
        for group in options.suite.groups() {
            let rows: Vec<_> = group.rows.iter().filter(|row| options.wants(group, row)).collect();
            if !rows.is_empty() {
                groups.push(Outcome::of(group, rows, options, &workshop));
            }
        }
        Ok(Session { machine, options: options.clone(), groups })
    }
}

impl Outcome {
    fn of(group: &'static Group, rows: Vec<&'static Row>, options: &Options, workshop: &Workshop) -> Outcome {
        let mut outcome = Outcome {
            group,
            rows,
            figures: Figures::new(),
            versions: BTreeMap::new(),
            absences: BTreeMap::new(),
        };
        let mut values: BTreeMap<(&'static str, String), Vec<f64>> = BTreeMap::new();
        let rounds = options.rounds(group);
        for round in 1..=rounds {
            for contender in group.contenders.iter().filter(|contender| wanted(contender, &outcome.rows)) {
                if outcome.absences.contains_key(contender.label) {
                    continue;
                }
                announce(&format!("{}: round {round} of {rounds}: {}", group.name, contender.label));
                match run_once(contender, options, workshop) {
                    Ok(output) => {
                        for (name, value) in output.figures {
                            values.entry((contender.label, name)).or_default().push(value);
                        }
                        outcome.versions.extend(output.version.map(|version| (contender.label, version)));
                    }
                    Err(absence) => {
                        outcome.absences.insert(contender.label, absence);
                    }
                }
            }
        }
        announce("");
        values.retain(|(label, _), _| !outcome.absences.contains_key(label));
        outcome.figures =
            values.into_iter().filter_map(|(key, values)| Some((key, Samples::new(values)?))).collect();
        outcome
    }
}

fn run_once(contender: &Contender, options: &Options, workshop: &Workshop) -> Result<Output, Absence> {
    let mut command = contender.program.command(workshop, options.effort)?;
    Output::of(&mut command, RUN_LIMIT)
        .map_err(|why| Absence::new(why, "its run failed; run it again or report it"))
}

fn wanted(contender: &Contender, rows: &[&Row]) -> bool {
    rows.iter().any(|row| {
        row.ours.contender == contender.label
            || row.peers.iter().any(|peer| peer.contender == contender.label)
    })
}

/// Says on a terminal what runs now, on one line that is written over; elsewhere nothing.
fn announce(line: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{line}"); // a terminal that is gone needs no progress
        let _ = err.flush();
    }
}
