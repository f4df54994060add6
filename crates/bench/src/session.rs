//! One session: all requested contenders, run in turn.
//!
//! A separate file because the order of runs makes the ratios fair: A B C, A B C, so that a change of the machine's
//! speed affects all equally. It does not judge. Invariant: the figures of a contender come from all rounds, or the
//! contender is absent.

use crate::child::timing::Effort;
use crate::machine::{LOAD_DOUBTFUL, Machine};
use crate::measure::{Contender, Figures, Group, Row};
use crate::options::Options;
use crate::output::Output;
use crate::program::available::Missing;
use crate::samples::Samples;
use crate::suite::Suite;
use crate::work_folder::WorkFolder;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// All measurements of a session.
pub struct Session {
    /// Machine and time.
    pub machine: Machine,
    /// Suite that was measured.
    pub suite: Suite,
    /// Number of times that each program was started, except in slow groups.
    pub runs: usize,
    /// Work of each program in a run.
    pub effort: Effort,
    /// `true` if this was only a first look.
    pub quick: bool,
    /// Names of the slow groups that a quick run has left out.
    pub left_out: Vec<String>,
    /// The groups with at least one wanted row.
    pub groups: Vec<SessionOutcome>,
}

/// Results of one group.
pub struct SessionOutcome {
    /// The group.
    pub group: &'static Group,
    /// Its wanted rows.
    pub rows: Vec<&'static Row>,
    /// The values, over the rounds.
    pub figures: Figures,
    /// Version that each contender prints.
    pub versions: BTreeMap<String, String>,
    /// The contenders without figures.
    pub absences: BTreeMap<String, Missing>,
}

/// No run of a contender takes this long unless it hangs, as MPICH sometimes does in its `MPI_Finalize`; the slowest
/// known are MPICH with 48 ranks, about 20 s, and a cold `./run`, a minute or two.
const RUN_LIMIT: Duration = Duration::from_secs(240);

impl Session {
    /// Runs the requested measurements.
    ///
    /// # Errors
    /// The cache folder cannot be used; one line.
    pub fn run(options: &Options) -> Result<Session, String> {
        let folder = WorkFolder::open()?;
        let machine = Machine::here();
        if machine.load_average.is_some_and(|load| load > LOAD_DOUBTFUL) {
            eprintln!(
                "isles-bench: other programs are running (load {:.2}); the figures will be worse and \
                 less certain",
                machine.load_average.unwrap_or_default()
            );
        }
        let (mut wanted, mut left_out) = (Vec::new(), Vec::new());
        for group in options.suite.groups() {
            let rows: Vec<_> = group.rows.iter().filter(|row| options.selects(group, row)).collect();
            if !rows.is_empty() {
                wanted.push((group, rows));
            } else if options.only.is_empty() {
                left_out.push(group.name.to_owned());
            }
        }
        if options.install {
            install_peers(&wanted, options, &folder)?;
        }
        let of = |(group, rows)| SessionOutcome::of(group, rows, options, &folder);
        Ok(Session {
            machine,
            suite: options.suite,
            runs: options.runs,
            effort: options.effort,
            quick: options.quick,
            left_out,
            groups: wanted.into_iter().map(of).collect(),
        })
    }
}

impl Session {
    /// Joins both sessions, with the runs of `later` last.
    ///
    /// # Errors
    /// One line that names the property in which they differ.
    pub fn joined(mut self, later: Session) -> Result<Session, String> {
        let (own, other) = (&self.machine, &later.machine);
        for (property, is_same) in [
            ("suite", self.suite == later.suite),
            ("commit", own.commit == other.commit),
            ("processor", (&own.cpu, own.cores) == (&other.cpu, other.cores)),
            ("effort", (self.effort, self.quick) == (later.effort, later.quick)),
        ] {
            if !is_same {
                return Err(format!(
                    "the {property} differs from that of the previous file: a table has only one"
                ));
            }
        }
        self.machine.date = format!("{} and {}", self.machine.date, later.machine.date);
        self.runs += later.runs;
        for outcome in later.groups {
            match self.groups.iter_mut().find(|own| own.group.name == outcome.group.name) {
                Some(own) => own.join(outcome),
                None => self.groups.push(outcome),
            }
        }
        self.left_out.retain(|name| self.groups.iter().all(|outcome| outcome.group.name != name));
        Ok(self)
    }
}

/// Installs the missing packages of the requested contenders, each once, before anything is timed.
fn install_peers(
    wanted: &[(&'static Group, Vec<&'static Row>)],
    options: &Options,
    folder: &WorkFolder,
) -> Result<(), String> {
    let mut done = BTreeSet::new();
    for (group, rows) in wanted {
        for contender in group.contenders.iter().filter(|contender| is_wanted(contender, rows)) {
            let absence = contender.program.command(folder, options.effort).err();
            let package = absence.and_then(|absence| absence.package);
            if let Some(package) = package.filter(|package| done.insert(*package)) {
                eprintln!("isles-bench: installing {package}, for {}", contender.label);
                package.install(folder)?;
            }
        }
    }
    Ok(())
}

impl SessionOutcome {
    fn join(&mut self, later: SessionOutcome) {
        for row in later.rows {
            if self.rows.iter().all(|own| own.name != row.name) {
                self.rows.push(row);
            }
        }
        for (key, values) in later.figures {
            let all = match self.figures.remove(&key) {
                Some(own) => own.joined(values),
                None => values,
            };
            self.figures.insert(key, all);
        }
        self.versions.extend(later.versions);
        self.absences.extend(later.absences);
    }

    fn of(
        group: &'static Group,
        rows: Vec<&'static Row>,
        options: &Options,
        folder: &WorkFolder,
    ) -> SessionOutcome {
        let mut outcome = SessionOutcome {
            group,
            rows,
            figures: Figures::new(),
            versions: BTreeMap::new(),
            absences: BTreeMap::new(),
        };
        let mut values: BTreeMap<(&'static str, String), Vec<f64>> = BTreeMap::new();
        let rounds = options.rounds(group);
        for round in 1..=rounds {
            for contender in group.contenders.iter().filter(|contender| is_wanted(contender, &outcome.rows)) {
                if outcome.absences.contains_key(contender.label) {
                    continue;
                }
                announce(&format!("{}: round {round} of {rounds}: {}", group.name, contender.label));
                match run_once(contender, options, folder) {
                    Ok(output) => {
                        for (name, value) in output.figures {
                            values.entry((contender.label, name)).or_default().push(value);
                        }
                        let version = output.version.map(|version| (contender.label.to_owned(), version));
                        outcome.versions.extend(version);
                    }
                    Err(absence) => {
                        outcome.absences.insert(contender.label.to_owned(), absence);
                    }
                }
            }
        }
        announce("");
        values.retain(|(label, _), _| !outcome.absences.contains_key(*label));
        outcome.figures =
            values.into_iter().filter_map(|(key, values)| Some((key, Samples::new(values)?))).collect();
        outcome
    }
}

fn run_once(contender: &Contender, options: &Options, folder: &WorkFolder) -> Result<Output, Missing> {
    let mut command = contender.program.command(folder, options.effort)?;
    Output::of(&mut command, RUN_LIMIT)
        .and_then(|output| output.rated(contender.program.counted()))
        .map_err(|why| Missing::new(why, "its run failed; run it again or report it"))
}

fn is_wanted(contender: &Contender, rows: &[&Row]) -> bool {
    rows.iter().any(|row| row.figures().any(|figure| figure.contender == contender.label))
}

/// Shows the running program on a terminal, on one line that is overwritten; otherwise does nothing.
fn announce(line: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{line}"); // a terminal that is gone needs no progress
        let _ = err.flush();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a session of the suite's group of collectives: barriers of these microseconds, one MPI at 4, the other
    /// absent.
    pub fn example(commit: &str, microseconds: &[f64]) -> Session {
        let group = Suite::Core.groups().iter().find(|group| group.name == "collective").unwrap();
        let row = group.rows.iter().find(|row| row.name == "barrier").unwrap();
        let values = |values: Vec<f64>| Samples::new(values).unwrap();
        let name = || "barrier_us".to_owned();
        let four = values(vec![4.0; microseconds.len()]);
        Session {
            machine: Machine {
                cpu: "a processor".to_owned(),
                cores: 2,
                kernel: "6.1".to_owned(),
                load_average: None,
                date: "2026-01-01T00:00:00Z".to_owned(),
                commit: Some(commit.to_owned()),
            },
            suite: Suite::Core,
            runs: microseconds.len(),
            effort: Effort { batch: Duration::from_millis(20), repetitions: 11 },
            quick: false,
            left_out: vec!["cold".to_owned()],
            groups: vec![SessionOutcome {
                group,
                rows: vec![row],
                figures: [
                    ((row.ours.contender, name()), values(microseconds.to_vec())),
                    (("Open MPI", name()), four),
                ]
                .into(),
                versions: [("Open MPI".to_owned(), "Open MPI 4".to_owned())].into(),
                absences: [("MPICH".to_owned(), Missing::new("mpicc.mpich not found", "install it"))].into(),
            }],
        }
    }
}
