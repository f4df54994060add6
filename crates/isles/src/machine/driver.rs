//! The table of machines: how each is called, what runs it, and what a program lacks that cannot have it.
//!
//! A machine that is compiled in by a feature has its row in any case; without the feature what runs it refuses, and
//! says which feature is missing. Invariant: to choose, start and end a machine, other modules need not know which of
//! them this program was built with.

use super::launcher::{Launcher, warn_of_single_tasks};
#[cfg(feature = "mpi")]
use super::mpi;
use super::{Machine, loopback, processes, threads};
#[cfg(feature = "chip")]
use crate::chip::ModelledChip;
use crate::init;
use crate::launch::{Launch, LaunchError, Main};
use crate::output::{Claim, Export, ExportRequest, WriteError};
use crate::settings::{ConfigError, Environment, MachineName, Setting};
use crate::test::TestBody;
use crate::trace::Collector;
#[cfg(not(feature = "mpi"))]
use crate::{launch::EXIT_USAGE, print::notice};
use isles_runtime::{Result, RunReport};
use isles_transport_shm::PLACES_MAX;
use isles_transport_shm::processes::JOIN_VARIABLE;
use std::sync::OnceLock;

/// Outcome of a run: the result of `main` and the report of the places, or the reason why it could not be started.
pub(crate) type LaunchResult = std::result::Result<(Result<()>, RunReport), LaunchError>;

/// Driver of a machine: runs programs on it and tells its capabilities.
pub(crate) trait MachineDriver {
    /// The name of the machine on the command line and in `ISLES_MACHINE`.
    fn name(&self) -> &'static str;

    /// Returns the largest number of places, and the origin of that limit for a sentence.
    ///
    /// For threads and processes the limit is the bitmaps of their shared memory. The loopback, whose driver looks at
    /// all places at each step, has the same limit.
    fn places_max(&self) -> (u32, String) {
        (PLACES_MAX, String::new())
    }

    /// Returns the default number of places of a run.
    fn places(&self, environment: &Environment) -> u32;

    /// Checks that the machine can run `places` places as `environment` asks.
    ///
    /// # Errors
    /// The first setting that does not go with the machine.
    fn check(&self, environment: &Environment, places: u32) -> std::result::Result<(), ConfigError> {
        let _ = (environment, places);
        #[cfg(feature = "chip")]
        environment.chip.refuse_measured_work(self.name())?;
        Ok(())
    }

    /// Returns `true` if the places record themselves for a trace.
    fn is_traced(&self) -> bool {
        false
    }

    /// Checks that a run of `launch` can write `wanted` of itself.
    ///
    /// # Errors
    /// It cannot.
    fn check_export(&self, launch: &Launch, wanted: &ExportRequest) -> std::result::Result<(), ConfigError> {
        let _ = launch;
        let why = match wanted.export {
            Export::Trace if self.is_traced() => return Ok(()),
            Export::Trace => "it records none",
            _ => "not a modelled chip",
        };
        Err(wanted.refusal(format!("nothing with machine {} ({why})", self.name())))
    }

    /// Returns the files that a run of `launch` reads because of the machine.
    fn reads(&self, launch: &Launch) -> Vec<Claim> {
        let _ = launch;
        Vec::new()
    }

    /// Runs `main` at the first place. What places do is recorded for `collector`, if there is one; what cannot be
    /// written is added to `unwritten`.
    fn run(
        &self,
        launch: &Launch,
        collector: Option<Collector>,
        main: Main<'_>,
        unwritten: &mut Vec<WriteError>,
    ) -> LaunchResult;

    /// Runs the test `name`, whose other processes start with that name, as often as it is to be run here.
    ///
    /// # Errors
    /// In words: it cannot be started, or it has failed.
    fn run_test(
        &self,
        launch: &Launch,
        name: &'static str,
        body: TestBody<'_>,
    ) -> std::result::Result<(), String> {
        let _ = name;
        test_outcome(self.run(launch, None, Box::new(body), &mut Vec::new()))
    }
}

/// The outcome of one run of a test, in words if it is a bad one.
pub(crate) fn test_outcome(ended: LaunchResult) -> std::result::Result<(), String> {
    let (result, _) = ended.map_err(|error| error.to_string())?;
    result.map_err(|error| error.to_string())
}

/// A kind of machine.
pub(crate) struct MachineRow {
    /// The names that a refusal lists: none, where this program does not offer it.
    names: &'static [&'static str],
    /// Returns what a name says of the machine, if it is one of this kind.
    read: fn(name: &str) -> Option<MachineName>,
}

/// All kinds of machines, in the order in which they are listed.
pub(crate) const MACHINES: [MachineRow; 6] = [
    MachineRow { names: &["threads"], read: |name| known(Machine::Threads, name) },
    MachineRow { names: &["processes"], read: |name| known(Machine::Processes, name) },
    MachineRow {
        names: if cfg!(feature = "guests") { &["guests"] } else { &[] },
        read: |name| known(Machine::Guests, name),
    },
    MachineRow { names: &["mpi"], read: |name| known(Machine::Mpi, name) },
    MachineRow { names: &["loopback"], read: |name| known(Machine::Loopback, name) },
    MachineRow {
        names: if cfg!(feature = "chip") { &["chip:NAME", "chip:FILE.toml"] } else { &[] },
        read: |name| name.starts_with("chip:").then(|| MachineName::Chip(name.to_owned())),
    },
];

/// `machine`, if that is its name.
fn known(machine: Machine, name: &str) -> Option<MachineName> {
    (machine.name() == name).then_some(MachineName::Known(machine))
}

/// The names of all machines that this program offers, with commas.
fn names() -> String {
    MACHINES.iter().flat_map(|row| row.names).copied().collect::<Vec<_>>().join(", ")
}

/// Reads the name of a machine. Whether there is a chip of the name is not asked.
///
/// # Errors
/// No machine is called so; the refusal lists those that this program offers.
pub(crate) fn read_name(source: &str, value: &str) -> std::result::Result<MachineName, ConfigError> {
    let read = MACHINES.iter().find_map(|row| (row.read)(value));
    read.ok_or_else(|| ConfigError::new(source, value, names()))
}

impl Machine {
    /// The machine of a name.
    ///
    /// # Errors
    /// There is no such chip, or this program knows no chips.
    pub(crate) fn find(name: &Setting<MachineName>) -> std::result::Result<Machine, ConfigError> {
        match &name.value {
            MachineName::Known(machine) => Ok(*machine),
            #[cfg(feature = "chip")]
            MachineName::Chip(chip) => Ok(Machine::Chip(ModelledChip::of_machine(&name.source, chip)?)),
            #[cfg(not(feature = "chip"))]
            MachineName::Chip(chip) => {
                Err(ConfigError::new(&name.source, chip, format!("{}; {LACKS_CHIPS}", names())))
            }
        }
    }

    /// The machine as its settings in `environment` say it is to be.
    ///
    /// # Errors
    /// It has not what is said of it.
    pub(crate) fn with_settings(
        self,
        environment: &Environment,
    ) -> std::result::Result<Machine, ConfigError> {
        let _ = environment;
        match self {
            #[cfg(feature = "chip")]
            Machine::Chip(chip) => environment.chip.chosen(chip).map(Machine::Chip),
            machine => Ok(machine),
        }
    }

    /// Returns the driver of the machine, or one that reports what this program lacks for it.
    pub(crate) fn driver(&self) -> &dyn MachineDriver {
        match self {
            Machine::Threads => &threads::Driver,
            Machine::Processes => &processes::PROCESSES,
            Machine::Guests => &processes::GUESTS,
            #[cfg(feature = "mpi")]
            Machine::Mpi => &mpi::Driver,
            #[cfg(not(feature = "mpi"))]
            Machine::Mpi => &MpiUnavailable,
            Machine::Loopback => &loopback::Driver,
            #[cfg(feature = "chip")]
            Machine::Chip(chip) => chip,
            #[cfg(not(feature = "chip"))]
            Machine::Chip(chip) => match *chip {},
        }
    }
}

/// Reason for which a chip, and a setting that only chips have, is refused.
#[cfg(not(feature = "chip"))]
pub(crate) const LACKS_CHIPS: &str = "this program was built without the feature `chip`";

/// The package of this program, for what is said of how to build it.
static PACKAGE: OnceLock<String> = OnceLock::new();

/// Names the package that this program is built of, before anything else of Isles is used.
#[doc(hidden)]
pub fn name_package(package: &str) {
    PACKAGE.get_or_init(|| package.to_owned());
}

/// Says that this program was built without `what`, and how it is built with the feature.
#[cfg(not(all(feature = "mpi", feature = "guests")))]
pub(crate) fn lacks_feature(what: &str, feature: &str) -> String {
    let own = std::env::current_exe().ok();
    let own =
        own.as_deref().and_then(std::path::Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let package = PACKAGE.get().map(|package| format!(" -p {package}")).unwrap_or_default();
    format!(
        "{} was built without {what}; build it with: cargo build --release{package} --features {feature}",
        own.as_deref().unwrap_or("this program")
    )
}

/// Returns the error text for a request for ranks in a program that was built without MPI.
#[cfg(not(feature = "mpi"))]
fn lacks_mpi() -> String {
    let lack = lacks_feature("MPI", "mpi");
    format!("{lack}; or set ISLES_MACHINE to another machine, and each rank runs alone")
}

/// Ranks in a program that was built without MPI.
#[cfg(not(feature = "mpi"))]
struct MpiUnavailable;

#[cfg(not(feature = "mpi"))]
impl MachineDriver for MpiUnavailable {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn places_max(&self) -> (u32, String) {
        (isles_runtime::limits::PLACES_MAX, String::new())
    }

    fn places(&self, _: &Environment) -> u32 {
        1
    }

    fn is_traced(&self) -> bool {
        true
    }

    fn run(&self, _: &Launch, _: Option<Collector>, _: Main<'_>, _: &mut Vec<WriteError>) -> LaunchResult {
        Err(LaunchError::Machine(format!("machine mpi: {}", lacks_mpi())))
    }
}

/// Serves as a place, and ends the process, if an MPI launcher has started it as a rank but the first; in the first
/// one, gets ready for a run. A program without MPI that is one of several ranks ends with a line that says how to
/// build it, instead of doing everything once for each.
pub(crate) fn serve_if_rank() {
    if std::env::var_os(JOIN_VARIABLE).is_some() || init::is_running() {
        return;
    }
    let Some(launcher) = Launcher::of_environment() else { return warn_of_single_tasks() };
    #[cfg(feature = "mpi")]
    mpi::serve_as_rank(&launcher);
    #[cfg(not(feature = "mpi"))]
    if launcher.has_several() {
        if launcher.is_first() {
            notice(format_args!("error: machine mpi: {}", lacks_mpi()));
        }
        std::process::exit(EXIT_USAGE.into());
    }
}

/// Returns `true` if this process is the first of several ranks that an MPI launcher has started.
pub(crate) fn is_first_rank() -> bool {
    #[cfg(feature = "mpi")]
    return mpi::is_first_rank();
    #[cfg(not(feature = "mpi"))]
    false
}

/// The name and version of the MPI library that this program was built with, if it was with one.
pub fn mpi_library() -> Option<String> {
    #[cfg(feature = "mpi")]
    return Some(mpi::library_version());
    #[cfg(not(feature = "mpi"))]
    None
}

#[cfg(all(test, not(feature = "mpi")))]
#[test]
fn ranks_are_refused_in_one_line_that_names_the_feature() {
    let launch = Launch::from_environment().unwrap().machine(Machine::Mpi).places(1);
    let error = launch.run(async || Ok::<(), isles_runtime::Error>(())).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("machine mpi: isles-") && text.contains(" was built without MPI; "), "{text}");
    assert!(text.contains("build it with: cargo build --release --features mpi; or"), "{text}");
}

#[cfg(all(test, not(feature = "chip")))]
mod tests {
    use super::*;
    use crate::settings::{Flag, SettingSources};

    /// Returns the error of a launch that has `value` for the flag `name` of `variable`, if it is refused.
    fn refused(variable: &str, name: &str, value: &str) -> Option<String> {
        let flags = [Flag { variable, name, value }];
        let launched = Launch::from_environment_with(Machine::Threads, &flags);
        launched.and_then(|launch| launch.check_outputs()).err().map(|error| error.to_string())
    }

    #[test]
    fn a_chip_is_refused_in_one_line_that_names_the_feature() {
        for chip in ["chip:scc", "chip:my.toml", "chip:"] {
            let line = format!(
                "--machine is {chip:?}; allowed: threads, processes, mpi, loopback; this program was built without the \
                 feature `chip`"
            );
            assert_eq!(refused("ISLES_MACHINE", "--machine", chip), Some(line));
        }
        let line = r#"--machine is "gpu"; allowed: threads, processes, mpi, loopback"#;
        assert_eq!(refused("ISLES_MACHINE", "--machine", "gpu").as_deref(), Some(line));
    }

    #[test]
    fn what_only_chips_do_is_refused_and_their_variables_are_passed_over() {
        let line = r#"--work is "host:20"; allowed: said; this program was built without the feature `chip`"#;
        assert_eq!(refused("ISLES_CHIP_WORK", "--work", "host:20").as_deref(), Some(line));
        assert_eq!(refused("ISLES_CHIP_WORK", "--work", "said"), None);
        let line = r#"--heat is "t"; allowed: nothing with machine threads (not a modelled chip)"#;
        assert_eq!(refused("ISLES_CHIP_HEAT", "--heat", "t").as_deref(), Some(line));
        let of_chips = |asked: &str| asked.starts_with("ISLES_CHIP_") && asked != "ISLES_CHIP_WORK";
        let set = |asked: &str| of_chips(asked).then(|| "anything".to_owned());
        assert!(Environment::read_from(&SettingSources::new(&[], &set)).is_ok());
    }
}
