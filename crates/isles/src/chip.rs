//! Places on the cores of a modelled chip, in one thread.
//!
//! The driver gives the next turn to the place whose core's clock is least; the world of `isles_transport_chip` says
//! which that is. The answers are those of any other machine, the time is the chip's.

use crate::clocks::OnChip;
use crate::collectives::{Broadcast, CHILDREN_MAX, Chosen, Ground, Reduce};
use crate::environment::ConfigError;
use crate::export::{self, ChipRun};
use crate::launch::{Launch, LaunchError};
use crate::loopback::stalled;
use crate::work::stopwatch::{Stopwatch, Watched};
use crate::work::{self, CodeTime};
use isles_chip::Chip;
use isles_chip::Preset;
use isles_chip::energy::{PowerModel, VoltageTable};
use isles_chip::file::{BUILT_IN, FindError, is_path};
use isles_chip::governor::{Policy, Unfit};
use isles_chip::quantity::{PICOSECONDS_PER_SECOND, Picoseconds, scaled};
use isles_runtime::capture::TaskOutcome;
use isles_runtime::limits::PLACES_MAX;
use isles_runtime::run::{self, Root};
use isles_runtime::{Clock, Collectives, Local, Result, RunReport, Step};
use isles_transport::PlaceId;
use isles_transport_chip::{
    Costs, Misfit, Placement, Protocol, Report, Rest, Seating, Turn, World, half_ping_pong,
};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

/// What the name of a machine that is a chip begins with.
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
            .unwrap_or_else(|| Err(ConfigError::new("the machine", name, names())))
    }

    /// The chip of a machine's name, for example `chip:scc`; none if that is no chip's. `source` is where it was
    /// written.
    pub(crate) fn of_machine(
        source: &str,
        machine: &str,
    ) -> Option<std::result::Result<ModelledChip, ConfigError>> {
        let name = machine.strip_prefix(PREFIX)?;
        let refused = |why| Err(ConfigError::new(source, machine, why));
        let chip = match Chip::find(name) {
            Ok(chip) => chip,
            Err(FindError::NoSuchChip(_)) => return Some(refused(names())),
            Err(FindError::Unreadable(_, cause)) => {
                return Some(refused(format!("a file that can be read ({cause})")));
            }
            Err(FindError::Faulty(faults)) => {
                let first = faults.first().map(ToString::to_string).unwrap_or_default();
                let more = match faults.len() {
                    0 | 1 => String::new(),
                    all => format!("; and {} more: isles chip check {name}", all - 1),
                };
                return Some(refused(format!("a chip file without faults ({first}{more})")));
            }
        };
        let modelled = ModelledChip::kept(String::leak(machine.to_owned()), chip);
        Some(modelled.map_err(|lack| {
            let allowed = format!("a chip that can send messages ({lack})");
            ConfigError::new(source, machine, allowed)
        }))
    }

    /// Keeps a chip for the rest of the process; or why no place can run on it.
    fn kept(machine: &'static str, chip: Chip) -> std::result::Result<ModelledChip, String> {
        let costs = Costs::of(&chip).ok_or_else(|| Costs::lack(&chip))?;
        Ok(ModelledChip { machine, costs: Box::leak(Box::new(costs)), chip: Box::leak(Box::new(chip)) })
    }

    /// How many places can run on `chip`, and the protocol by which: its own, or the first that carries any.
    ///
    /// # Errors
    /// None can; the text says what its file lacks.
    pub fn room(chip: &Chip) -> std::result::Result<(u32, Protocol), String> {
        let costs = Costs::of(chip).ok_or_else(|| Costs::lack(chip))?;
        let own = costs.default_protocol();
        let found = [own].into_iter().chain(Protocol::ALL).find_map(|protocol| {
            let fits = |places: &u32| costs.check_protocol(protocol, *places).is_ok();
            Some(((1..=costs.cores().min(PLACES_MAX)).rev().find(fits)?, protocol))
        });
        let why = || costs.check_protocol(own, 1).err().map(|misfit| misfit.to_string()).unwrap_or_default();
        found.ok_or_else(why)
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

    /// [`ModelledChip::with_voltages`]; `source` is where the name was written.
    pub(crate) fn choose_voltages(
        self,
        source: &str,
        name: &str,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let names = self.chip.voltages().iter().map(VoltageTable::name);
        self.choose(self.chip.clone().with_voltages(name), (source, name), names)
    }

    /// [`ModelledChip::with_preset`]; `source` is where the name was written.
    pub(crate) fn choose_preset(
        self,
        source: &str,
        name: &str,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let names = self.chip.presets().iter().map(Preset::name);
        self.choose(self.chip.clone().with_preset(name), (source, name), names)
    }

    /// [`ModelledChip::with_power_model`]; `source` is where the name was written.
    pub(crate) fn choose_power_model(
        self,
        source: &str,
        name: &str,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let names = self.chip.power_models().iter().map(PowerModel::name);
        self.choose(self.chip.clone().with_power_model(name), (source, name), names)
    }

    /// The chip that was `chosen` by a name out of its file, if there is one on which a message can be sent; else the
    /// names that there are.
    fn choose<'a>(
        self,
        chosen: Option<Chip>,
        (source, name): (&str, &str),
        names: impl Iterator<Item = &'a str>,
    ) -> std::result::Result<ModelledChip, ConfigError> {
        let chosen = chosen.and_then(|chip| ModelledChip::kept(self.machine, chip).ok());
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

    /// What its operations cost.
    pub(crate) fn costs(self) -> &'static Costs {
        self.costs
    }

    /// How messages cross it if nobody says how.
    pub(crate) fn default_protocol(self) -> Protocol {
        self.costs.default_protocol()
    }

    /// How many cores it has.
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
    pub(crate) fn places_max(self) -> (u32, String) {
        let most = self.cores().min(PLACES_MAX);
        let why = if most < self.cores() { "the most of a run; more are the cores" } else { "the cores" };
        (most, format!(", {why} of {}", self.machine))
    }

    /// What a message of `bytes` bytes takes from the first core to core `other` and through `protocol`, without a
    /// runtime: half of a ball's way there and back. The cores between wait.
    ///
    /// # Errors
    /// The chip cannot carry the protocol, or has no such core.
    pub fn half_ping_pong(
        self,
        protocol: Protocol,
        other: u32,
        bytes: usize,
    ) -> std::result::Result<Duration, ConfigError> {
        let (costs, ends) = (self.costs.clone(), (PlaceId(other), other + 1));
        half_ping_pong(costs, protocol, ends, bytes)
            .map_err(|misfit| ConfigError::new("the protocol", protocol.name(), misfit.to_string()))
    }

    /// Checks that the chip carries a protocol among so many places; `source` is where it was written.
    pub(crate) fn check_protocol(
        self,
        source: &str,
        protocol: Protocol,
        places: u32,
    ) -> std::result::Result<(), ConfigError> {
        let fits = |protocol: &Protocol| self.costs.check_protocol(*protocol, places).is_ok();
        self.costs.check_protocol(protocol, places).map_err(|misfit| {
            let names: Vec<&str> = Protocol::ALL.into_iter().filter(fits).map(Protocol::name).collect();
            let names = match (names.as_slice(), ModelledChip::room(self.chip)) {
                ([], Ok((most, protocol))) => format!("at most {most} places by {protocol}"),
                ([], Err(_)) => "none".to_owned(),
                _ => names.join(", "),
            };
            let allowed = format!("{names} on {} with {places} places ({misfit})", self.machine);
            ConfigError::new(source, protocol.name(), allowed)
        })
    }
}

impl ModelledChip {
    /// Checks that broadcasts can go as asked for among so many places; `source` is where it was written.
    pub(crate) fn check_broadcast(
        self,
        source: &str,
        broadcast: Broadcast,
        protocol: Protocol,
        places: u32,
    ) -> std::result::Result<(), ConfigError> {
        let check = |broadcast: Broadcast| self.costs.check_wiring(broadcast.wiring(protocol), places);
        check(broadcast).map_err(|misfit| {
            let fits = |children: &u32| check(Broadcast::Asynchronous(*children)).is_ok();
            let most = (1..=CHILDREN_MAX).rev().find(fits);
            let most = most.map_or("any but async".to_owned(), |most| format!("at most async:{most}"));
            let machine = self.machine;
            let allowed = format!("{most} on {machine} with {places} places and {protocol} ({misfit})");
            ConfigError::new(source, &broadcast.to_string(), allowed)
        })
    }

    /// Puts so many places on cores; `source` is where it was written how.
    pub(crate) fn seat(
        self,
        source: &str,
        placement: &Placement,
        places: u32,
    ) -> std::result::Result<Seating, ConfigError> {
        let seating = placement.seat(self.chip.topology(), places);
        seating.map_err(|fault| ConfigError::new(source, &placement.to_string(), fault.to_string()))
    }

    /// Checks that a governor can be had with places on these cores; `source` is where it was written.
    pub(crate) fn check_policy(
        self,
        source: &str,
        policy: Policy,
        seating: &Seating,
    ) -> std::result::Result<(), ConfigError> {
        let unfit = |unfit: Unfit| ConfigError::new(source, &policy.to_string(), unfit.to_string());
        self.costs.check_policy(policy, seating).map_err(unfit)
    }
}

/// What a machine that is a chip may be called.
fn names() -> String {
    let names = BUILT_IN.iter().map(|(name, _)| format!("{PREFIX}{name}"));
    format!("{}, {PREFIX}FILE.toml", names.collect::<Vec<_>>().join(", "))
}

/// Runs `main` over cores of `chip`; ties in time are ordered by the launch's seed.
pub(crate) fn run<M, F>(
    launch: &Launch,
    chip: ModelledChip,
    main: M,
) -> std::result::Result<(Result<()>, RunReport, ChipRun), LaunchError>
where
    M: FnOnce() -> F,
    F: Future + 'static,
    F::Output: TaskOutcome,
{
    let unable = |misfit| {
        let (Launch { places, .. }, protocol) = (launch, launch.protocol_on(chip));
        let machine = chip.machine;
        LaunchError::Machine(format!(
            "machine {machine} with {places} places and protocol {protocol}: {misfit}"
        ))
    };
    if launch.places > chip.cores() {
        return Err(unable(Misfit::Cores { cores: chip.cores() }));
    }
    let seating = launch.seating_on(chip)?;
    let (costs, protocol) = (chip.costs.clone(), launch.protocol_on(chip));
    let wiring = launch.broadcast.wiring(protocol);
    let world = World::seated(seating, costs, wiring, launch.seed).map_err(unable)?;
    let policy = launch.governor;
    world
        .govern(policy)
        .map_err(|unfit| ConfigError::new("the governor", &policy.to_string(), unfit.to_string()))?;
    world.rest(launch.rest);
    let stopwatch = work::stopwatch(launch, chip, &world)?;
    let draft = export::begin(launch, chip, &world)?;
    let _on_chip = OnChip::of(&stopwatch);
    let locals = all_locals(&stopwatch, launch.places);
    let ground = Ground { chip, wiring, placement: launch.placement.clone() };
    let chosen = Chosen::new(ground, (launch.broadcast, launch.reduce), &stopwatch);
    locals.iter().for_each(|local| local.set_collectives(Rc::clone(&chosen) as Rc<dyn Collectives>));
    let root = locals[0].enter(|| Root::start(&locals[0], main()));
    let driven = drive((&world, &stopwatch), &locals, || root.take());
    let measured = stopwatch.end();
    let result = driven.unwrap_or_else(|| Err(stalled(&locals)));
    let ended = measured.map(|measured| ChipRun::end(&world, draft, measured));
    let places = locals.iter().map(|local| Some(local.report())).collect();
    close_all(&stopwatch, &locals);
    let tape = launch.work.to_string();
    let ended = ended.map_err(|(played, all)| LaunchError::Departed { tape, played, all })?;
    Ok((result, RunReport { places }, ended))
}

pub(crate) fn all_locals(stopwatch: &Rc<Stopwatch>, places: u32) -> Vec<Rc<Local>> {
    (0..places).map(|place| local(stopwatch, PlaceId(place))).collect()
}

/// Lets all places drop what they hold, which the chip does not see any more.
pub(crate) fn close_all(stopwatch: &Stopwatch, locals: &[Rc<Local>]) {
    stopwatch.close();
    for local in locals {
        local.enter(|| run::close(local));
    }
}

fn local(stopwatch: &Rc<Stopwatch>, place: PlaceId) -> Rc<Local> {
    let clock = Rc::clone(stopwatch);
    let clock = Clock::Invented(Box::new(move || clock.now(place)));
    Local::new(Box::new(Watched::new(place, stopwatch)), clock)
}

/// Gives turns until `over` has a result; `None` if nothing will ever happen again, or the run has left its tape.
pub(crate) fn drive<R>(
    (world, stopwatch): (&World, &Stopwatch),
    locals: &[Rc<Local>],
    mut over: impl FnMut() -> Option<R>,
) -> Option<R> {
    loop {
        if let Some(result) = over() {
            return Some(result);
        }
        let place = world.next().filter(|_| !stopwatch.has_departed())?;
        let local = &locals[place.index()];
        stopwatch.begin_turn();
        let turn = match local.enter(|| local.step()) {
            Step::Busy => Turn::Busy,
            Step::Idle => Turn::Idle { due: local.next_due() },
        };
        stopwatch.end_turn(place);
        world.end_turn(place, turn);
    }
}

/// One line that says what the chip would have taken.
pub(crate) fn heading(chip: ModelledChip, launch: &Launch, report: &Report, host: Duration) -> String {
    let (predicted, host) = (predicted(report.time), host.as_secs_f64());
    let (Launch { places, .. }, protocol) = (launch, launch.protocol_on(chip));
    let cores = if *places == 1 { "core" } else { "cores" };
    let machine = chip.machine;
    let energies = report.energy.iter().flat_map(|energy| &energy.models);
    let energies =
        energies.map(|model| format!(", {} by {}", scaled(model.total().joules(), "J"), model.name));
    let mut energies: String = energies.collect();
    if *places < chip.cores() && !energies.is_empty() {
        energies += &format!(" for all {} cores", chip.cores());
    }
    let settings = settings(chip, launch);
    format!(
        "{machine}: {predicted} predicted on {places} {cores} with {protocol} at {settings}{energies} ({host:.3} s \
         on this host)"
    )
}

/// Milliseconds, to which runs compare at a glance; seconds if they are many.
pub(crate) fn predicted(time: Picoseconds) -> String {
    let seconds = time.0 as f64 / PICOSECONDS_PER_SECOND as f64;
    if seconds < 10.0 { format!("{:.3} ms", seconds * 1e3) } else { format!("{seconds:.3} s") }
}

/// The preset of the clocks, and what else a run was told that is not as without a word.
pub(crate) fn settings(chip: ModelledChip, launch: &Launch) -> String {
    let Launch { seed, placement, governor, rest, broadcast, reduce, work, .. } = launch;
    let preset = chip.chip.default_preset().name().to_owned();
    let said = [
        chip.chip.chosen_voltages().map(|name| format!("voltages {name}")),
        (*seed != 0).then(|| format!("seed {seed}")),
        (*placement != Placement::default()).then(|| format!("placement {placement}")),
        (*governor != Policy::default()).then(|| format!("governor {governor}")),
        (*rest != Rest::default()).then(|| format!("rest {rest}")),
        (*broadcast != Broadcast::Auto).then(|| format!("broadcast {broadcast}")),
        (*reduce != Reduce::Auto).then(|| format!("reduce {reduce}")),
        (*work != CodeTime::Said).then(|| format!("work {work}")),
    ];
    std::iter::once(preset).chain(said.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_said_in_milliseconds_until_they_are_too_many() {
        let said =
            [615_991_875, 9_999_999_000_000, 154_510_346_000_000].map(|time| predicted(Picoseconds(time)));
        assert_eq!(said, ["0.616 ms", "9999.999 ms", "154.510 s"]);
    }
}
