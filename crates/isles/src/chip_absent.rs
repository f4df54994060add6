//! What stands in the place of modelled chips in a program that was built without the feature `chip`.
//!
//! The names are those of the module `chip` that other modules use, so that there is one code that chooses a machine,
//! starts it and ends it. Invariant: no value of [`ModelledChip`] exists, so nothing here but the refusals is ever run.

use crate::launch::{Launch, LaunchError, Main};
use crate::machine::Machine;
use crate::output::{Claim, ExportRequest, Unwritten};
use crate::settings::{ConfigError, Environment, Flag};
use isles_runtime::{Result, RunReport};

/// What else a machine may be called beside those of every build, for a refusal.
pub(crate) const MACHINES: &str = "";

/// Why a setting is refused that chips alone have.
const ABSENT: &str = "this program was built without the feature `chip`";

/// A chip that places can run on: none, because this program was built without the feature `chip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelledChip {}

impl ModelledChip {
    pub(crate) fn of_machine(source: &str, machine: &str) -> std::result::Result<ModelledChip, ConfigError> {
        let allowed = format!("threads, processes, mpi, loopback; {ABSENT}");
        Err(ConfigError::new(source, machine, allowed))
    }

    pub(crate) fn machine(self) -> &'static str {
        match self {}
    }

    pub(crate) fn places_max(self) -> (u32, String) {
        match self {}
    }

    pub(crate) fn check_export(self, _: &Launch, _: &ExportRequest) -> std::result::Result<(), ConfigError> {
        match self {}
    }

    pub(crate) fn run(
        self,
        _: &Launch,
        _: Main<'_>,
        _: &mut Vec<Unwritten>,
    ) -> std::result::Result<(Result<()>, RunReport), LaunchError> {
        match self {}
    }

    pub(crate) fn run_silently(
        self,
        _: &Launch,
        _: Main<'_>,
    ) -> std::result::Result<(Result<()>, RunReport), LaunchError> {
        match self {}
    }
}

/// Reads `said`, which holds on every machine.
///
/// # Errors
/// It is what chips alone do.
pub(crate) fn read_work(
    _: &mut Environment,
    source: &str,
    value: &str,
) -> std::result::Result<(), ConfigError> {
    match value {
        "said" => Ok(()),
        _ => Err(ConfigError::new(source, value, format!("said; {ABSENT}"))),
    }
}

/// What a launch says of runs on modelled chips: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChipSettings {}

impl ChipSettings {
    pub(crate) fn note_arguments(&mut self, _: &[Flag<'_>]) {}

    pub(crate) fn of_test(self) -> ChipSettings {
        self
    }

    pub(crate) fn chosen(&self, machine: Machine) -> std::result::Result<Machine, ConfigError> {
        Ok(machine)
    }

    pub(crate) fn places_on(&self, chip: ModelledChip) -> u32 {
        match chip {}
    }

    pub(crate) fn check(&self, _: Machine, _: u32) -> std::result::Result<(), ConfigError> {
        Ok(())
    }

    pub(crate) fn reads(&self, _: Machine) -> impl Iterator<Item = Claim> {
        std::iter::empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SettingSources;

    /// How a launch is refused that says `value` by the flag `name` of `variable`.
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
        let line = r#"--heat is "t"; allowed: nothing with the machine threads, which is no modelled chip"#;
        assert_eq!(refused("ISLES_CHIP_HEAT", "--heat", "t").as_deref(), Some(line));
        let of_chips = |asked: &str| asked.starts_with("ISLES_CHIP_") && asked != "ISLES_CHIP_WORK";
        let set = |asked: &str| of_chips(asked).then(|| "anything".to_owned());
        assert_eq!(
            Environment::read_from(&SettingSources::new(&[], &set)).map(|read| read.chip),
            Ok(ChipSettings {})
        );
    }
}
