//! The user's settings for runs on modelled chips: how they are read, and whether they go with a machine.
//!
//! It knows words and where they were written; what a chip can do, [`ModelledChip`] says. Invariant: what is refused is
//! named by the flag or variable that said so.

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
    /// Constants in the place of those of the chip's file, as `KEY=VALUE; KEY=VALUE`.
    pub(crate) constants: Option<Setting<String>>,
    /// The preset of the clocks, the power model and the voltage table.
    pub(crate) preset: Option<Setting<String>>,
    pub(crate) power: Option<Setting<String>>,
    pub(crate) voltages: Option<Setting<String>>,
    /// The chip's own, if none is said.
    pub(crate) protocol: Setting<Option<Protocol>>,
    /// Core of each place.
    pub(crate) placement: Setting<Placement>,
    /// Policy that chooses the rates of cores.
    pub(crate) governor: Setting<Policy>,
    pub(crate) rest: IdlePolicy,
    pub(crate) broadcast: Setting<Broadcast>,
    pub(crate) reduce: Reduce,
    /// Lines of each message buffer that are kept for windows.
    pub(crate) window_lines: Setting<u32>,
    /// Source of the time of the program's code.
    pub(crate) work: Setting<CodeTime>,
    /// Arguments of the process that are no flags of the run, as a tape keeps them.
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
    /// Keeps the arguments of this process that are none of `flags`.
    pub(crate) fn note_arguments(&mut self, flags: &[Flag<'_>]) {
        self.own_arguments = work::own_arguments(flags);
    }

    /// Returns the settings that tests keep to: the protocol.
    pub(crate) fn of_test(self) -> ChipSettings {
        ChipSettings { protocol: self.protocol, ..ChipSettings::default() }
    }

    /// `chip` with the constants, the preset, the power model and the voltages that were asked for.
    ///
    /// # Errors
    /// The chip has none of that name, or a constant cannot have that value.
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

    /// The places of a run on `chip` that does not say how many.
    pub(crate) fn places_on(&self, chip: ModelledChip) -> u32 {
        chip.places_on(&self.placement.value)
    }

    /// Checks that nothing is asked for on `machine`, which is no chip, that would change its run if it were one.
    ///
    /// # Errors
    /// The time of the program's code is not what it says.
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
    /// The first setting that does not go with the chip.
    pub(crate) fn check(&self, chip: ModelledChip, places: u32) -> Result<(), ConfigError> {
        let core_map = self.core_map(chip, places)?;
        let protocol = self.protocol_on(chip, places);
        chip.check_protocol(&self.protocol.source, protocol, places)?;
        let costs = self.costs(chip);
        self.check_window_lines(&costs, protocol, places)?;
        chip.check_broadcast(&self.broadcast, &costs, protocol, places)?;
        chip.check_policy(&self.governor, &core_map)
    }

    /// Returns the costs of a run on `chip`, whose messages have the buffer lines that are not kept for windows.
    pub(crate) fn costs(&self, chip: ModelledChip) -> Costs {
        chip.costs().clone().with_window_lines(self.window_lines.value)
    }

    /// Checks that `costs`, those of a run, carry a protocol among `places` places beside the lines kept for windows.
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

    /// Puts `places` places on the cores of `chip`.
    pub(crate) fn core_map(&self, chip: ModelledChip, places: u32) -> Result<CoreMap, ConfigError> {
        chip.core_map(&self.placement, places)
    }

    /// Returns the protocol between `places` places: the one that was set, or the chip's own, or one that carries
    /// that many.
    pub(crate) fn protocol_on(&self, chip: ModelledChip, places: u32) -> Protocol {
        self.protocol.value.unwrap_or_else(|| chip.default_protocol(places))
    }

    /// Says that a protocol was chosen which is not the chip's own, if one was.
    pub(crate) fn notice_protocol(&self, chip: ModelledChip, places: u32) {
        let lack = chip.default_protocol_lack(places).filter(|_| self.protocol.value.is_none());
        if let Some(lack) = lack {
            let chosen = self.protocol_on(chip, places);
            notice(format_args!("{}: the protocol is {chosen}, because {lack}", chip.machine()));
        }
    }

    /// The name and the value of each setting that `stored` selects, in the order of the table, for a run of `places`
    /// places on `chip`.
    pub(crate) fn stored_settings(
        &self,
        chip: ModelledChip,
        places: u32,
        stored: fn(&Stored) -> Option<ValueFormatter>,
    ) -> Vec<(&'static str, String)> {
        let formatted = |row: &SettingRow| Some((row.name, stored(&row.stored)?(self, chip, places)));
        SETTINGS.iter().filter_map(formatted).collect()
    }

    /// The settings whose values are not the defaults, each with its name, for a run of `places` places on `chip`.
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

/// Reads which place runs on which core.
pub(crate) fn read_placement(source: &str, value: &str) -> Result<Setting<Placement>, ConfigError> {
    let refused = |fault: PlacementError| ConfigError::new(source, value, fault.to_string());
    Ok(Setting::new(source, value.parse().map_err(refused)?))
}

/// Reads a name that only the chip knows.
pub(crate) fn read_name(source: &str, value: &str) -> Result<Option<Setting<String>>, ConfigError> {
    Ok(Some(Setting::new(source, value.to_owned())))
}

/// Reads the name of a governor.
pub(crate) fn read_governor(source: &str, value: &str) -> Result<Setting<Policy>, ConfigError> {
    let refused = |allowed: &str| ConfigError::new(source, value, allowed);
    Ok(Setting::new(source, value.parse().map_err(refused)?))
}

/// Reads how many lines of each message buffer are kept for windows.
pub(crate) fn read_window_lines(source: &str, value: &str) -> Result<Setting<u32>, ConfigError> {
    let refused = |_| ConfigError::new(source, value, "a number of lines, such as 64");
    Ok(Setting::new(source, value.parse().map_err(refused)?))
}

/// Reads what places do while they wait.
pub(crate) fn read_rest(source: &str, value: &str) -> Result<IdlePolicy, ConfigError> {
    value.parse().map_err(|allowed: &str| ConfigError::new(source, value, allowed))
}

/// Reads where the time of the program's code comes from.
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
        // They are those of whoever runs the tests.
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
        // The tree has room beside the messages, but not beside windows too.
        let mut tree = read("ISLES_CHIP_BROADCAST", "async:7").unwrap();
        tree.check(chip, 48).unwrap();
        tree.window_lines = Setting::new("ISLES_CHIP_WINDOW_LINES", 64);
        assert_eq!(tree.check(chip, 48).unwrap_err().source, "ISLES_CHIP_BROADCAST");
        assert_eq!(settings.check(chip, 2).unwrap_err().source, "--protocol");
        assert_eq!(ChipSettings::default().check(chip, 49).unwrap_err().source, "the placement");
    }
}
