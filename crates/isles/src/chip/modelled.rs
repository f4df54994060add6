//! A chip that places can run on: found by the name of a machine, with its limits.
//!
//! This module knows chips and their settings, and starts nothing. Invariant: a chip that is found can send messages,
//! and is kept for the rest of the process.

use crate::settings::{ConfigError, Setting};
use isles_chip::energy::{PowerModel, VoltageTable};
use isles_chip::file::{BUILT_IN, ChangeError, FindError, is_path};
use isles_chip::governor::{GovernorError, Policy};
use isles_chip::{Chip, Preset};
use isles_runtime::limits::PLACES_MAX;
use isles_transport::PlaceId;
use isles_transport_chip::{CoreMap, Costs, Placement, Protocol, half_ping_pong};
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// Prefix of the name of a machine that is a chip.
const PREFIX: &str = "chip:";

/// Maximum default number of places: programs not written for thousands of places would take long.
const UNASKED_PLACES_MAX: u32 = 256;

/// A modelled chip that places can run on; kept for the rest of the process.
#[derive(Clone, Copy, Debug)]
pub struct ModelledChip {
    /// Name of the machine: `chip:` and the name of the chip.
    machine: &'static str,
    costs: &'static Costs,
    chip: &'static Chip,
}

/// Number of places that can run on a chip with one protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolRoom {
    /// The protocol.
    pub protocol: Protocol,
    /// Maximum number of places; 0 if the chip does not support the protocol.
    pub places: u32,
    /// Reason for the limit; `None` if it is the limit of a run or the number of cores.
    pub limit: Option<String>,
}

impl PartialEq for ModelledChip {
    fn eq(&self, other: &Self) -> bool {
        (self.machine, self.chip.fingerprint()) == (other.machine, other.chip.fingerprint())
    }
}

impl Eq for ModelledChip {}

impl Hash for ModelledChip {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.machine, self.chip.fingerprint()).hash(state);
    }
}

impl ModelledChip {
    /// Finds the chip `name`, for example `scc`, or reads the chip file at the path `name`.
    ///
    /// # Errors
    /// The chip does not exist, its file has errors, or it has neither message buffers nor packets.
    pub fn new(name: &str) -> std::result::Result<ModelledChip, ConfigError> {
        ModelledChip::of_machine("the machine", &format!("{PREFIX}{name}"))
    }

    /// Finds the chip of a machine's name, for example `chip:scc`, set by the flag or variable `source`.
    ///
    /// # Errors
    /// As [`ModelledChip::new`].
    pub(crate) fn of_machine(source: &str, machine: &str) -> std::result::Result<ModelledChip, ConfigError> {
        let refused = |why| Err(ConfigError::new(source, machine, why));
        let Some(name) = machine.strip_prefix(PREFIX) else { return refused(names()) };
        let chip = match Chip::find(name) {
            Ok(chip) => chip,
            Err(FindError::NoSuchChip(_)) => return refused(names()),
            Err(FindError::Unreadable(_, cause)) => {
                return refused(format!("a file that can be read ({cause})"));
            }
            Err(FindError::Faulty(faults)) => {
                let first = faults.first().map(ToString::to_string).unwrap_or_default();
                let more = match faults.len() {
                    0 | 1 => String::new(),
                    all => format!("; and {} more: isles chip check {name}", all - 1),
                };
                return refused(format!("a chip file without faults ({first}{more})"));
            }
        };
        let modelled = ModelledChip::leaked(String::leak(machine.to_owned()), chip);
        modelled.map_err(|lack| {
            let allowed = format!("a chip that can send messages ({lack})");
            ConfigError::new(source, machine, allowed)
        })
    }

    /// Parses the text of a chip file, for example a generated one; the machine is named `chip:` and `name`. The chip
    /// is kept for the rest of the process.
    ///
    /// # Errors
    /// The text has errors, or the chip has neither message buffers nor packets.
    pub fn parse(name: &str, text: &str) -> std::result::Result<ModelledChip, ConfigError> {
        let refused = |allowed| ConfigError::new("the chip", name, allowed);
        let chip = Chip::parse(name, text).map_err(|faults| {
            let first = faults.first().map(ToString::to_string).unwrap_or_default();
            refused(format!("a chip file without faults ({first})"))
        })?;
        ModelledChip::leaked(String::leak(format!("{PREFIX}{name}")), chip)
            .map_err(|lack| refused(format!("a chip that can send messages ({lack})")))
    }

    /// Leaks a chip for the rest of the process; the error says why no place can run on it.
    fn leaked(machine: &'static str, chip: Chip) -> std::result::Result<ModelledChip, String> {
        let costs = Costs::of(&chip).ok_or_else(|| Costs::lack(&chip))?;
        Ok(ModelledChip { machine, costs: Box::leak(Box::new(costs)), chip: Box::leak(Box::new(chip)) })
    }

    /// Returns the number of places that can run on `chip`, with the protocol: its own, or the first that supports any
    /// places.
    ///
    /// # Errors
    /// No place can run; the text says what the chip file lacks.
    pub fn room(chip: &Chip) -> std::result::Result<(u32, Protocol), String> {
        let rooms = ModelledChip::rooms(chip)?;
        let own = rooms.first().and_then(|room| room.limit.clone()).unwrap_or_default();
        let found = rooms.into_iter().find(|room| room.places > 0);
        found.map(|room| (room.places, room.protocol)).ok_or(own)
    }

    /// Returns the number of places that can run on `chip` with each protocol, its own first.
    ///
    /// # Errors
    /// The chip cannot send messages; the text says what its file lacks.
    pub fn rooms(chip: &Chip) -> std::result::Result<Vec<ProtocolRoom>, String> {
        let costs = Costs::of(chip).ok_or_else(|| Costs::lack(chip))?;
        let own = costs.default_protocol();
        let others = Protocol::ALL.into_iter().filter(|protocol| *protocol != own);
        let most = costs.cores().min(PLACES_MAX);
        let room = |protocol| {
            let fits = |places: &u32| costs.check_protocol(protocol, *places).is_ok();
            let places = (1..=most).rev().find(fits).unwrap_or(0);
            let more = (places < most).then(|| costs.check_protocol(protocol, places + 1).err()).flatten();
            ProtocolRoom { protocol, places, limit: more.map(|error| error.to_string()) }
        };
        Ok([own].into_iter().chain(others).map(room).collect())
    }

    /// Returns the chip with another preset of its clocks, for example `800/1600/1066`.
    ///
    /// # Errors
    /// The chip file has no preset of that name, or no message can be sent with it.
    pub fn with_preset(self, name: &str) -> std::result::Result<ModelledChip, ConfigError> {
        self.choose_preset("the preset", name)
    }

    /// Returns the chip with another of its power models as the basis of caps and peaks.
    ///
    /// # Errors
    /// The chip file has no power model of that name.
    pub fn with_power_model(self, name: &str) -> std::result::Result<ModelledChip, ConfigError> {
        self.choose_power_model("the power model", name)
    }

    /// Returns the chip with another of its voltage tables, for all its power models.
    ///
    /// # Errors
    /// The chip file has no voltage table of that name.
    pub fn with_voltages(self, name: &str) -> std::result::Result<ModelledChip, ConfigError> {
        self.choose_voltages("the voltages", name)
    }

    /// Returns the chip with other constants, given as `KEY=VALUE; KEY=VALUE`; keys of presets apply to `preset` unless
    /// they name one. `source` is the flag or variable.
    pub(crate) fn choose_constants(
        self,
        source: &str,
        changes: &str,
        preset: Option<&str>,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let refused = |ChangeError { asked, allowed }| ConfigError::new(source, &asked, allowed);
        let chip = self.chip.with_constants(changes, preset).map_err(refused)?;
        ModelledChip::leaked(self.machine, chip).map_err(|lack| {
            ConfigError::new(source, changes, format!("a chip that can send messages ({lack})"))
        })
    }

    /// As [`ModelledChip::with_voltages`], set by the flag or variable `source`.
    pub(crate) fn choose_voltages(
        self,
        source: &str,
        name: &str,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let names = self.chip.voltages().iter().map(VoltageTable::name);
        self.choose(self.chip.clone().with_voltages(name), source, name, names)
    }

    /// As [`ModelledChip::with_preset`], set by the flag or variable `source`.
    pub(crate) fn choose_preset(
        self,
        source: &str,
        name: &str,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let names = self.chip.presets().iter().map(Preset::name);
        self.choose(self.chip.clone().with_preset(name), source, name, names)
    }

    /// As [`ModelledChip::with_power_model`], set by the flag or variable `source`.
    pub(crate) fn choose_power_model(
        self,
        source: &str,
        name: &str,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let names = self.chip.power_models().iter().map(PowerModel::name);
        self.choose(self.chip.clone().with_power_model(name), source, name, names)
    }

    /// Returns the `chosen` variant of the chip, if it exists and can send messages; the error lists the available
    /// names.
    fn choose<'a>(
        self,
        chosen: Option<Chip>,
        source: &str,
        name: &str,
        names: impl Iterator<Item = &'a str>,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let chosen = chosen.and_then(|chip| ModelledChip::leaked(self.machine, chip).ok());
        chosen.ok_or_else(|| {
            let names: Vec<&str> = names.collect();
            let nothing = "nothing: its file has none".to_owned();
            ConfigError::new(source, name, if names.is_empty() { nothing } else { names.join(", ") })
        })
    }

    /// Returns the name of the machine.
    pub(crate) fn machine(self) -> &'static str {
        self.machine
    }

    /// Returns the path of the chip file, or `None` for a built-in chip.
    pub(crate) fn file(self) -> Option<&'static str> {
        self.machine.strip_prefix(PREFIX).filter(|name| is_path(name))
    }

    /// Returns the chip, with the chosen settings.
    pub fn chip(self) -> &'static Chip {
        self.chip
    }

    /// Returns the costs of its operations.
    pub(crate) fn costs(self) -> &'static Costs {
        self.costs
    }

    /// Returns the default protocol for `places` places: the chip's own, or the first other one that supports that
    /// many.
    pub(crate) fn default_protocol(self, places: u32) -> Protocol {
        let own = self.costs.default_protocol();
        let fits = |protocol: &Protocol| self.costs.check_protocol(*protocol, places).is_ok();
        [own].into_iter().chain(Protocol::ALL).find(fits).unwrap_or(own)
    }

    /// Returns the reason why the chip's own protocol does not support `places` places, if so.
    pub(crate) fn default_protocol_lack(self, places: u32) -> Option<String> {
        let own = self.costs.default_protocol();
        let lack = self.costs.check_protocol(own, places).err()?;
        Some(format!("{own} does not support {places} places ({lack})"))
    }

    /// Returns the number of cores.
    pub fn cores(self) -> u32 {
        self.costs.cores()
    }

    /// Returns the default number of places of a run: one for each core, up to 256.
    pub fn places(self) -> u32 {
        self.places_on(&Placement::Linear)
    }

    /// As [`ModelledChip::places`], with the cores that `placement` can use.
    pub fn places_on(self, placement: &Placement) -> u32 {
        placement.places_max(self.chip.topology()).min(self.cores()).min(UNASKED_PLACES_MAX)
    }

    /// Returns the maximum number of places, with its reason for error texts.
    pub(super) fn most_places(self) -> (u32, String) {
        let most = self.cores().min(PLACES_MAX);
        let why = if most < self.cores() { "the limit of a run, below the cores" } else { "the cores" };
        (most, format!(", {why} of {}", self.machine))
    }

    /// Returns the time of a message of `bytes` bytes from the first core to core `other` with `protocol`, without a
    /// runtime: half of a ping-pong's round trip. The cores between them wait.
    ///
    /// # Errors
    /// The chip does not support the protocol, or has no such core.
    pub fn half_ping_pong(
        self,
        protocol: Protocol,
        other: u32,
        bytes: usize,
    ) -> std::result::Result<Duration, ConfigError> {
        half_ping_pong(self.costs.clone(), protocol, PlaceId(other), other + 1, bytes)
            .map_err(|error| ConfigError::new("the protocol", protocol.name(), error.to_string()))
    }

    /// Checks that the chip supports a protocol for `places` places, with all lines used for messages; `source` is the
    /// flag or variable.
    pub(crate) fn check_protocol(
        self,
        source: &str,
        protocol: Protocol,
        places: u32,
    ) -> std::result::Result<(), ConfigError> {
        let fits = |protocol: &Protocol| self.costs.check_protocol(*protocol, places).is_ok();
        self.costs.check_protocol(protocol, places).map_err(|error| {
            let names: Vec<&str> = Protocol::ALL.into_iter().filter(fits).map(Protocol::name).collect();
            let names = match (names.as_slice(), ModelledChip::room(self.chip)) {
                ([], Ok((most, protocol))) => format!("at most {most} places by {protocol}"),
                ([], Err(_)) => "none".to_owned(),
                _ => names.join(", "),
            };
            let allowed = format!("{names} on {} with {places} places ({error})", self.machine);
            ConfigError::new(source, protocol.name(), allowed)
        })
    }
}

impl ModelledChip {
    /// Assigns `places` places to cores.
    pub(crate) fn core_map(
        self,
        placement: &Setting<Placement>,
        places: u32,
    ) -> std::result::Result<CoreMap, ConfigError> {
        let Setting { value, source } = placement;
        let core_map = value.core_map(self.chip.topology(), places);
        core_map.map_err(|fault| ConfigError::new(source, &value.to_string(), fault.to_string()))
    }

    /// Checks that a governor is possible with places on these cores.
    pub(crate) fn check_policy(
        self,
        governor: &Setting<Policy>,
        core_map: &CoreMap,
    ) -> std::result::Result<(), ConfigError> {
        let Setting { value, source } = governor;
        let error = |error: GovernorError| ConfigError::new(source, &value.to_string(), error.to_string());
        self.costs.check_policy(*value, core_map).map_err(error)
    }
}

/// Returns the names of machines that are chips, for error texts.
fn names() -> String {
    let names = BUILT_IN.iter().map(|(name, _)| format!("{PREFIX}{name}"));
    format!("{}, {PREFIX}FILE.toml", names.collect::<Vec<_>>().join(", "))
}
