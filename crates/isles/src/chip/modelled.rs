//! A chip that places can run on: how it is found by the name of a machine, and what it can carry.
//!
//! It knows chips and what is asked of them, and starts nothing. Invariant: a chip that is found has cores that can
//! send messages, and is kept for the rest of the process.

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

/// Places of a run that does not say how many, at most: a program that was not written for thousands would take long.
const UNASKED_PLACES_MAX: u32 = 256;

/// A chip that places can run on; kept for the rest of the process.
#[derive(Clone, Copy, Debug)]
pub struct ModelledChip {
    /// `chip:` and the name.
    machine: &'static str,
    costs: &'static Costs,
    chip: &'static Chip,
}

/// Number of places that can run on a chip by one protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolRoom {
    /// The protocol.
    pub protocol: Protocol,
    /// The most places; 0 if the chip does not carry it.
    pub places: u32,
    /// Reason for the limit; `None` if a run can have no more places, or the chip has no more cores.
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
    /// The chip `name`, for example `scc`, or of the chip file at the path `name`.
    ///
    /// # Errors
    /// There is no such chip, its file has faults, or it has neither message buffers nor packets.
    pub fn new(name: &str) -> std::result::Result<ModelledChip, ConfigError> {
        ModelledChip::of_machine("the machine", &format!("{PREFIX}{name}"))
    }

    /// The chip of a machine's name, for example `chip:scc`; `source` is where it was written.
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

    /// The chip that the text of a chip file describes, for example one that was just made; the machine's name is
    /// `chip:` and `name`. It stays for the rest of the process.
    ///
    /// # Errors
    /// The text has faults, or the chip has neither message buffers nor packets.
    pub fn parse(name: &str, text: &str) -> std::result::Result<ModelledChip, ConfigError> {
        let refused = |allowed| ConfigError::new("the chip", name, allowed);
        let chip = Chip::parse(name, text).map_err(|faults| {
            let first = faults.first().map(ToString::to_string).unwrap_or_default();
            refused(format!("a chip file without faults ({first})"))
        })?;
        ModelledChip::leaked(String::leak(format!("{PREFIX}{name}")), chip)
            .map_err(|lack| refused(format!("a chip that can send messages ({lack})")))
    }

    /// Keeps a chip for the rest of the process; or why no place can run on it.
    fn leaked(machine: &'static str, chip: Chip) -> std::result::Result<ModelledChip, String> {
        let costs = Costs::of(&chip).ok_or_else(|| Costs::lack(&chip))?;
        Ok(ModelledChip { machine, costs: Box::leak(Box::new(costs)), chip: Box::leak(Box::new(chip)) })
    }

    /// Returns the number of places that can run on `chip`, and the protocol used: its own, or the first that carries
    /// any.
    ///
    /// # Errors
    /// None can; the text says what its file lacks.
    pub fn room(chip: &Chip) -> std::result::Result<(u32, Protocol), String> {
        let rooms = ModelledChip::rooms(chip)?;
        let own = rooms.first().and_then(|room| room.limit.clone()).unwrap_or_default();
        let found = rooms.into_iter().find(|room| room.places > 0);
        found.map(|room| (room.places, room.protocol)).ok_or(own)
    }

    /// Returns the number of places that can run on `chip` by each protocol, its own first.
    ///
    /// # Errors
    /// It carries no messages at all; the text says what its file lacks.
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

    /// The same chip with another preset of its clocks, for example `800/1600/1066`.
    ///
    /// # Errors
    /// The chip's file has none of that name, or one at which no message can be sent.
    pub fn with_preset(self, name: &str) -> std::result::Result<ModelledChip, ConfigError> {
        self.choose_preset("the preset", name)
    }

    /// The same chip with another of its power models as the one by which caps are kept and peaks are reckoned.
    ///
    /// # Errors
    /// The chip's file has none of that name.
    pub fn with_power_model(self, name: &str) -> std::result::Result<ModelledChip, ConfigError> {
        self.choose_power_model("the power model", name)
    }

    /// The same chip with another of its voltage tables: which voltage a rate needs, for all its power models.
    ///
    /// # Errors
    /// The chip's file has none of that name.
    pub fn with_voltages(self, name: &str) -> std::result::Result<ModelledChip, ConfigError> {
        self.choose_voltages("the voltages", name)
    }

    /// The same chip with other constants, as `KEY=VALUE; KEY=VALUE`; keys of presets are of `preset` if they do not
    /// say which. `source` is where that was written.
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

    /// [`ModelledChip::with_voltages`]; `source` is where the name was written.
    pub(crate) fn choose_voltages(
        self,
        source: &str,
        name: &str,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let names = self.chip.voltages().iter().map(VoltageTable::name);
        self.choose(self.chip.clone().with_voltages(name), source, name, names)
    }

    /// [`ModelledChip::with_preset`]; `source` is where the name was written.
    pub(crate) fn choose_preset(
        self,
        source: &str,
        name: &str,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let names = self.chip.presets().iter().map(Preset::name);
        self.choose(self.chip.clone().with_preset(name), source, name, names)
    }

    /// [`ModelledChip::with_power_model`]; `source` is where the name was written.
    pub(crate) fn choose_power_model(
        self,
        source: &str,
        name: &str,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let names = self.chip.power_models().iter().map(PowerModel::name);
        self.choose(self.chip.clone().with_power_model(name), source, name, names)
    }

    /// The chip that was `chosen` by a name out of its file, if there is one on which a message can be sent; else the
    /// names that there are.
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

    /// The name of the machine.
    pub(crate) fn machine(self) -> &'static str {
        self.machine
    }

    /// The chip file, unless the chip is one that has a name.
    pub(crate) fn file(self) -> Option<&'static str> {
        self.machine.strip_prefix(PREFIX).filter(|name| is_path(name))
    }

    /// The chip itself, as its file and what was chosen of it say.
    pub fn chip(self) -> &'static Chip {
        self.chip
    }

    /// Returns the costs of its operations.
    pub(crate) fn costs(self) -> &'static Costs {
        self.costs
    }

    /// Returns the protocol between `places` places if none is set: the chip's own or, if that does not carry that
    /// many, the first that does.
    pub(crate) fn default_protocol(self, places: u32) -> Protocol {
        let own = self.costs.default_protocol();
        let fits = |protocol: &Protocol| self.costs.check_protocol(*protocol, places).is_ok();
        [own].into_iter().chain(Protocol::ALL).find(fits).unwrap_or(own)
    }

    /// Returns the reason why messages between `places` places do not cross it by its own protocol, if they do not.
    pub(crate) fn default_protocol_lack(self, places: u32) -> Option<String> {
        let own = self.costs.default_protocol();
        let lack = self.costs.check_protocol(own, places).err()?;
        Some(format!("{own} does not support {places} places ({lack})"))
    }

    /// Returns the number of cores.
    pub fn cores(self) -> u32 {
        self.costs.cores()
    }

    /// The places of a run that does not say how many: as many as cores, but not thousands of them unasked.
    pub fn places(self) -> u32 {
        self.places_on(&Placement::Linear)
    }

    /// The same of a run whose places are put on cores in another way: as many as that has cores for.
    pub fn places_on(self, placement: &Placement) -> u32 {
        placement.places_max(self.chip.topology()).min(self.cores()).min(UNASKED_PLACES_MAX)
    }

    /// The most places that can run on it, and why, for a sentence.
    pub(super) fn most_places(self) -> (u32, String) {
        let most = self.cores().min(PLACES_MAX);
        let why = if most < self.cores() { "the limit of a run, below the cores" } else { "the cores" };
        (most, format!(", {why} of {}", self.machine))
    }

    /// Returns the time of a message of `bytes` bytes from the first core to core `other` through `protocol`, without
    /// a runtime: half of a ball's way there and back. The cores between wait.
    ///
    /// # Errors
    /// The chip cannot carry the protocol, or has no such core.
    pub fn half_ping_pong(
        self,
        protocol: Protocol,
        other: u32,
        bytes: usize,
    ) -> std::result::Result<Duration, ConfigError> {
        half_ping_pong(self.costs.clone(), protocol, PlaceId(other), other + 1, bytes)
            .map_err(|error| ConfigError::new("the protocol", protocol.name(), error.to_string()))
    }

    /// Checks that the chip carries a protocol among `places` places, with all lines for messages; `source` is where it
    /// was written.
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
    /// Puts `places` places on cores.
    pub(crate) fn core_map(
        self,
        placement: &Setting<Placement>,
        places: u32,
    ) -> std::result::Result<CoreMap, ConfigError> {
        let Setting { value, source } = placement;
        let core_map = value.core_map(self.chip.topology(), places);
        core_map.map_err(|fault| ConfigError::new(source, &value.to_string(), fault.to_string()))
    }

    /// Checks that a governor can be had with places on these cores.
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

/// Returns the names of machines that are chips, for a refusal.
fn names() -> String {
    let names = BUILT_IN.iter().map(|(name, _)| format!("{PREFIX}{name}"));
    format!("{}, {PREFIX}FILE.toml", names.collect::<Vec<_>>().join(", "))
}
