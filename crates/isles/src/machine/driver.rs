//! The table of machines: the name and the driver of each, and the error for one that this program was built without.
//!
//! A machine behind a feature has its row in any case; without the feature, its driver returns an error that names the
//! feature. Invariant: other modules choose, start and end machines without knowing which features this program has.

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

/// Outcome of a run: the result of `main` and the report of the places, or the error that prevented the run or its
/// output.
pub(crate) type LaunchResult = std::result::Result<(Result<()>, RunReport), LaunchError>;

/// Driver of a machine: runs programs on it and reports its capabilities.
pub(crate) trait MachineDriver {
    /// Returns the name of the machine on the command line and in `ISLES_MACHINE`.
    fn name(&self) -> &'static str;

    /// Returns the largest number of places, and the origin of that limit for use in error texts.
    ///
    /// For threads and processes the limit comes from the bitmaps in shared memory. The loopback, whose driver visits
    /// all places at each step, has the same limit.
    fn places_max(&self) -> (u32, String) {
        (PLACES_MAX, String::new())
    }

    /// Returns the default number of places of a run.
    fn places(&self, environment: &Environment) -> u32;

    /// Checks that the machine can run `places` places as `environment` asks.
    ///
    /// # Errors
    /// The first setting that the machine does not support.
    fn check(&self, environment: &Environment, places: u32) -> std::result::Result<(), ConfigError> {
        let _ = (environment, places);
        #[cfg(feature = "chip")]
        environment.chip.refuse_measured_work(self.name())?;
        Ok(())
    }

    /// Returns `true` if the places of this machine can record a trace.
    fn is_traced(&self) -> bool {
        false
    }

    /// Checks that a run of `launch` can produce the output `wanted`.
    ///
    /// # Errors
    /// The machine does not produce it.
    fn check_export(&self, launch: &Launch, wanted: &ExportRequest) -> std::result::Result<(), ConfigError> {
        let _ = launch;
        let why = match wanted.export {
            Export::Trace if self.is_traced() => return Ok(()),
            Export::Trace => "it records none",
            _ => "not a modelled chip",
        };
        Err(wanted.refusal(format!("nothing with machine {} ({why})", self.name())))
    }

    /// Returns claims for the files that the machine reads in a run of `launch`.
    fn reads(&self, launch: &Launch) -> Vec<Claim> {
        let _ = launch;
        Vec::new()
    }

    /// Runs `main` at the first place. Places record their activity for `collector`, if given; failed outputs are added
    /// to `unwritten`.
    fn run(
        &self,
        launch: &Launch,
        collector: Option<Collector>,
        main: Main<'_>,
        unwritten: &mut Vec<WriteError>,
    ) -> LaunchResult;

    /// Runs the test `name`, once or for each seed. Other processes of the test are started with that name.
    ///
    /// # Errors
    /// The text of the error that prevented the test or made it fail.
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

/// Converts the outcome of one run of a test; errors become text.
pub(crate) fn test_outcome(ended: LaunchResult) -> std::result::Result<(), String> {
    let (result, _) = ended.map_err(|error| error.to_string())?;
    result.map_err(|error| error.to_string())
}

/// A row of the table of machines.
pub(crate) struct MachineRow {
    /// The names that errors list; none if this program was built without the machine.
    names: &'static [&'static str],
    /// Parses a name of this kind of machine.
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

/// Returns `machine` if `name` is its name.
fn known(machine: Machine, name: &str) -> Option<MachineName> {
    (machine.name() == name).then_some(MachineName::Known(machine))
}

/// Returns the names of all machines that this program offers, separated by commas.
fn names() -> String {
    MACHINES.iter().flat_map(|row| row.names).copied().collect::<Vec<_>>().join(", ")
}

/// Parses the name of a machine. It does not look for the chip of a chip's name.
///
/// # Errors
/// No machine has this name; the error lists those that this program offers.
pub(crate) fn read_name(source: &str, value: &str) -> std::result::Result<MachineName, ConfigError> {
    let read = MACHINES.iter().find_map(|row| (row.read)(value));
    read.ok_or_else(|| ConfigError::new(source, value, names()))
}

impl Machine {
    /// Returns the machine of a name.
    ///
    /// # Errors
    /// The chip does not exist, or this program was built without chips.
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

    /// Applies the settings of `environment` to the machine.
    ///
    /// # Errors
    /// The machine lacks what a setting selects.
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

    /// Returns the driver of the machine, or one that reports the missing feature.
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

/// Error text for a chip, or a setting of chips, in a program without the feature `chip`.
#[cfg(not(feature = "chip"))]
pub(crate) const LACKS_CHIPS: &str = "this program was built without the feature `chip`";

/// The package of this program, named in the command that rebuilds it.
static PACKAGE: OnceLock<String> = OnceLock::new();

/// Names the package of this program. Call it before anything else of Isles.
#[doc(hidden)]
pub fn name_package(package: &str) {
    PACKAGE.get_or_init(|| package.to_owned());
}

/// Returns the text that this program was built without `what`, with the command that builds it with `feature`.
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

/// Driver of the machine `mpi` in a program that was built without MPI.
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

/// In a process that an MPI launcher has started as a rank: prepares a run in the first rank; in the others serves as a
/// place and ends the process. If this program was built without MPI and is one of several ranks, it exits with a line
/// that says how to build it, instead of running once in each rank.
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

/// Returns the name and version of the MPI library that this program was built with, if any.
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
