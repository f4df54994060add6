//! The user's settings for runs on modelled chips: reading them, and checking them against a machine.
//!
//! It knows values and their sources; [`ModelledChip`] knows the limits of a chip. Invariant: an error names the flag
//! or variable that set the value.

use super::collectives::{Broadcast, Reduce};
use super::modelled::ModelledChip;
use super::work;
use super::work::CodeTime;
use crate::output::Claim;
use crate::print::notice;
use crate::settings::table::{SETTINGS, SettingDefault, SettingRow, Stored, ValueFormatter};
use crate::settings::{ConfigError, Environment, Flag, Setting};
use isles_chip::governor::Policy;
use isles_transport_chip::{CoreMap, Costs, IdlePolicy, Placement, PlacementError, Protocol};

/// Settings of a launch for runs on modelled chips.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChipSettings {
    /// Constants that override those of the chip file, as `KEY=VALUE; KEY=VALUE`.
    pub(crate) constants: Option<Setting<String>>,
    /// The preset of the clocks, the power model and the voltage table.
    pub(crate) preset: Option<Setting<String>>,
    pub(crate) power: Option<Setting<String>>,
    pub(crate) voltages: Option<Setting<String>>,
    /// The message protocol; `None` for the chip's own.
    pub(crate) protocol: Setting<Option<Protocol>>,
    /// Core of each place.
    pub(crate) placement: Setting<Placement>,
    /// Governor of the clocks.
    pub(crate) governor: Setting<Policy>,
    pub(crate) rest: IdlePolicy,
    pub(crate) broadcast: Setting<Broadcast>,
    pub(crate) reduce: Reduce,
    /// Lines of each message buffer reserved for windows.
    pub(crate) window_lines: Setting<u32>,
    /// Source of the time of the program's code.
    pub(crate) work: Setting<CodeTime>,
    /// Arguments of the process other than flags of the run, as a tape stores them.
    pub(crate) own_arguments: Vec<Vec<u8>>,
}

impl Default for ChipSettings {
    fn default() -> Self {
        ChipSettings {
            constants: None,
            preset: None,
            power: None,
            voltages: None,
            protocol: Setting::new("the protocol", None),
            placement: Setting::new("the placement", Placement::default()),
            governor: Setting::new("the governor", Policy::default()),
            rest: IdlePolicy::default(),
            broadcast: Setting::new("the broadcast", Broadcast::default()),
            reduce: Reduce::default(),
            window_lines: Setting::new("the window-lines", 0),
            work: Setting::new("the work", CodeTime::default()),
            own_arguments: Vec::new(),
        }
    }
}

impl ChipSettings {
    /// Stores the arguments of this process other than `flags`.
    pub(crate) fn note_arguments(&mut self, flags: &[Flag<'_>]) {
        self.own_arguments = work::own_arguments(flags);
    }

    /// Returns the settings that apply to tests: the protocol.
    pub(crate) fn of_test(self) -> ChipSettings {
        ChipSettings { protocol: self.protocol, ..ChipSettings::default() }
    }

    /// Returns `chip` with the constants, preset, power model and voltages of these settings.
    ///
    /// # Errors
    /// The chip has no such name, or a constant has an invalid value.
    pub(crate) fn chosen(&self, mut chip: ModelledChip) -> Result<ModelledChip, ConfigError> {
        if let Some(Setting { value, source }) = &self.constants {
            let preset = self.preset.as_ref().map(|preset| preset.value.as_str());
            chip = chip.choose_constants(source, value, preset)?;
        }
        if let Some(Setting { value, source }) = &self.preset {
            chip = chip.choose_preset(source, value)?;
        }
        if let Some(Setting { value, source }) = &self.power {
            chip = chip.choose_power_model(source, value)?;
        }
        if let Some(Setting { value, source }) = &self.voltages {
            chip = chip.choose_voltages(source, value)?;
        }
        Ok(chip)
    }

    /// Returns the default number of places of a run on `chip`.
    pub(crate) fn places_on(&self, chip: ModelledChip) -> u32 {
        chip.places_on(&self.placement.value)
    }

    /// Checks that `machine`, which is not a chip, is not asked to measure code or play a tape.
    ///
    /// # Errors
    /// The setting `work` is not `said`.
    pub(crate) fn refuse_measured_work(&self, machine: &str) -> Result<(), ConfigError> {
        if self.work.value != CodeTime::Declared {
            let Setting { value, source } = &self.work;
            let allowed = format!("said with machine {machine} (not a modelled chip)");
            return Err(ConfigError::new(source, &value.to_string(), allowed));
        }
        Ok(())
    }

    /// Checks that `chip` can run `places` places with these settings.
    ///
    /// # Errors
    /// The first setting that the chip does not support.
    pub(crate) fn check(&self, chip: ModelledChip, places: u32) -> Result<(), ConfigError> {
        let core_map = self.core_map(chip, places)?;
        let protocol = self.protocol_on(chip, places);
        chip.check_protocol(&self.protocol.source, protocol, places)?;
        let costs = self.costs(chip);
        self.check_window_lines(&costs, protocol, places)?;
        chip.check_broadcast(&self.broadcast, &costs, protocol, places)?;
        chip.check_policy(&self.governor, &core_map)
    }

    /// Returns the costs of a run on `chip`, with the buffer lines that are not reserved for windows.
    pub(crate) fn costs(&self, chip: ModelledChip) -> Costs {
        chip.costs().clone().with_window_lines(self.window_lines.value)
    }

    /// Checks that the lines reserved for windows leave enough for a protocol among `places` places; `costs` are those
    /// of the run.
    fn check_window_lines(&self, costs: &Costs, protocol: Protocol, places: u32) -> Result<(), ConfigError> {
        let Setting { value, source } = &self.window_lines;
        if *value == 0 {
            return Ok(());
        }
        costs.check_protocol(protocol, places).map_err(|error| {
            let allowed = format!("what {protocol} leaves of a buffer with {places} places ({error})");
            ConfigError::new(source, &value.to_string(), allowed)
        })
    }

    /// Assigns `places` places to the cores of `chip`.
    pub(crate) fn core_map(&self, chip: ModelledChip, places: u32) -> Result<CoreMap, ConfigError> {
        chip.core_map(&self.placement, places)
    }

    /// Returns the protocol for `places` places: the one that was set, or the default.
    pub(crate) fn protocol_on(&self, chip: ModelledChip, places: u32) -> Protocol {
        self.protocol.value.unwrap_or_else(|| chip.default_protocol(places))
    }

    /// Prints a notice if the default protocol is not the chip's own.
    pub(crate) fn notice_protocol(&self, chip: ModelledChip, places: u32) {
        let lack = chip.default_protocol_lack(places).filter(|_| self.protocol.value.is_none());
        if let Some(lack) = lack {
            let chosen = self.protocol_on(chip, places);
            notice(format_args!("{}: the protocol is {chosen}, because {lack}", chip.machine()));
        }
    }

    /// Returns the name and the value of each setting that `stored` selects, in the order of the table, for a run of
    /// `places` places on `chip`.
    pub(crate) fn stored_settings(
        &self,
        chip: ModelledChip,
        places: u32,
        stored: fn(&Stored) -> Option<ValueFormatter>,
    ) -> Vec<(&'static str, String)> {
        let formatted = |row: &SettingRow| Some((row.name, stored(&row.stored)?(self, chip, places)));
        SETTINGS.iter().filter_map(formatted).collect()
    }

    /// Returns the settings that differ from their defaults, as names with values, for a run of `places` places on
    /// `chip`.
    pub(crate) fn unusual(&self, chip: ModelledChip, places: u32) -> impl Iterator<Item = String> {
        let formatted = move |row: &SettingRow| {
            let SettingDefault::Value(default) = row.default else { return None };
            let value = row.stored.by_summary()?(self, chip, places);
            (value != default).then(|| format!("{} {value}", row.name))
        };
        SETTINGS.iter().filter_map(formatted)
    }

    /// Returns the files that a run on `chip` reads for these settings.
    pub(crate) fn reads(&self, chip: ModelledChip) -> impl Iterator<Item = Claim> {
        let file = chip.file();
        let tape = if let CodeTime::Tape(path) = &self.work.value { Some(path) } else { None };
        let file = file.map(|path| Claim::read(path, "the chip file"));
        file.into_iter().chain(tape.map(|path| Claim::read(path, "the tape")))
    }
}

/// Reads the name of a protocol.
pub(crate) fn read_protocol(source: &str, value: &str) -> Result<Setting<Option<Protocol>>, ConfigError> {
    let allowed = || ConfigError::new(source, value, Protocol::ALL.map(Protocol::name).join(", "));
    Protocol::named(value).map(|protocol| Setting::new(source, Some(protocol))).ok_or_else(allowed)
}

/// Reads a placement.
pub(crate) fn read_placement(source: &str, value: &str) -> Result<Setting<Placement>, ConfigError> {
    let refused = |fault: PlacementError| ConfigError::new(source, value, fault.to_string());
    Ok(Setting::new(source, value.parse().map_err(refused)?))
}

/// Reads a name that is looked up in the chip later.
pub(crate) fn read_name(source: &str, value: &str) -> Result<Option<Setting<String>>, ConfigError> {
    Ok(Some(Setting::new(source, value.to_owned())))
}

/// Reads the name of a governor.
pub(crate) fn read_governor(source: &str, value: &str) -> Result<Setting<Policy>, ConfigError> {
    let refused = |allowed: &str| ConfigError::new(source, value, allowed);
    Ok(Setting::new(source, value.parse().map_err(refused)?))
}

/// Reads the number of lines of each message buffer reserved for windows.
pub(crate) fn read_window_lines(source: &str, value: &str) -> Result<Setting<u32>, ConfigError> {
    let refused = |_| ConfigError::new(source, value, "a number of lines, such as 64");
    Ok(Setting::new(source, value.parse().map_err(refused)?))
}

/// Reads the idle policy.
pub(crate) fn read_rest(source: &str, value: &str) -> Result<IdlePolicy, ConfigError> {
    value.parse().map_err(|allowed: &str| ConfigError::new(source, value, allowed))
}

/// Reads the source of the time of the program's code.
pub(crate) fn read_work(environment: &mut Environment, source: &str, value: &str) -> Result<(), ConfigError> {
    environment.chip.work = CodeTime::read(source, value)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Launch;
    use crate::machine::Machine;
    use crate::settings::{FLAGS_VARIABLE, SettingSources};

    fn read(name: &str, value: &str) -> Result<ChipSettings, String> {
        let get = |asked: &str| (asked == name).then(|| value.to_owned());
        let read = Environment::read_from(&SettingSources::new(&[], &get));
        read.map(|environment| environment.chip).map_err(|error| error.to_string())
    }

    #[test]
    fn good_values_are_taken() {
        for protocol in Protocol::ALL {
            let settings = read("ISLES_CHIP_PROTOCOL", protocol.name()).unwrap();
            assert_eq!(settings.protocol, Setting::new("ISLES_CHIP_PROTOCOL", Some(protocol)));
        }
        let empty = read("ISLES_CHIP_PROTOCOL", "").unwrap();
        // These depend on how the tests are run.
        let own_arguments = empty.own_arguments.clone();
        assert_eq!(empty, ChipSettings { own_arguments, ..ChipSettings::default() });
    }

    #[test]
    fn bad_values_are_named_with_what_is_allowed() {
        let error = |name, value| read(name, value).unwrap_err();
        assert_eq!(
            error("ISLES_CHIP_PROTOCOL", "RCCE"),
            "ISLES_CHIP_PROTOCOL is \"RCCE\"; allowed: doorbell, rcce-x10, sections, sections-by-places, \
             sections-memory, sections-mixed, sockets, mpi-sock, rcce, ring, packets"
        );
        assert_eq!(
            error("ISLES_CHIP_PLACEMENT", "0,2,2"),
            r#"ISLES_CHIP_PLACEMENT is "0,2,2"; allowed: each core once (2 is repeated)"#
        );
        assert!(
            error("ISLES_CHIP_WINDOW_LINES", "-1").ends_with("allowed: a number of lines, such as 64"),
            "a negative number"
        );
        assert!(
            error("ISLES_CHIP_PLACEMENT", "near").ends_with("cores separated by commas, such as 0,2,10-13")
        );
    }

    #[test]
    fn a_machine_that_is_not_known_is_refused_with_those_that_are() {
        let flags = [Flag { variable: "ISLES_MACHINE", name: "--machine", value: "gpu" }];
        let error = Launch::from_environment_with(Machine::Threads, &flags).unwrap_err();
        assert_eq!(error.allowed, "threads, processes, mpi, loopback, chip:NAME, chip:FILE.toml");
    }

    #[test]
    fn a_setting_that_does_not_go_with_the_chip_is_named_by_the_flag_of_the_launcher() {
        let get = |asked: &str| match asked {
            FLAGS_VARIABLE => Some("ISLES_CHIP_PROTOCOL=--protocol".to_owned()),
            "ISLES_CHIP_PROTOCOL" => Some("packets".to_owned()),
            _ => None,
        };
        let settings = Environment::read_from(&SettingSources::new(&[], &get)).unwrap().chip;
        let chip = ModelledChip::new("scc").unwrap();
        let all_lines = read("ISLES_CHIP_WINDOW_LINES", "256").unwrap().check(chip, 48).unwrap_err();
        assert_eq!(all_lines.source, "ISLES_CHIP_WINDOW_LINES", "{all_lines}");
        read("ISLES_CHIP_WINDOW_LINES", "64").unwrap().check(chip, 48).unwrap();
        // There is room for the relays of the tree beside the messages, but not for windows as well.
        let mut tree = read("ISLES_CHIP_BROADCAST", "async:7").unwrap();
        tree.check(chip, 48).unwrap();
        tree.window_lines = Setting::new("ISLES_CHIP_WINDOW_LINES", 64);
        assert_eq!(tree.check(chip, 48).unwrap_err().source, "ISLES_CHIP_BROADCAST");
        assert_eq!(settings.check(chip, 2).unwrap_err().source, "--protocol");
        assert_eq!(ChipSettings::default().check(chip, 49).unwrap_err().source, "the placement");
    }
}
