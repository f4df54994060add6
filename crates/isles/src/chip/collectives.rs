//! The algorithms of team collectives on a modelled chip: chosen by name, or as the model predicts to be fastest.
//!
//! Automatic choices come from trials: before the first broadcast of a length to a number of members, it is simulated
//! on the same chip and protocol configuration, once for each tree and chunk; the fastest is used from then on. Trials
//! are runs of their own, so they do not change the actual run. The members of a trial are on the cores of the run's
//! first places. Invariant: the choice depends only on chip, protocol configuration, placement, number of members and
//! length, so all members choose the same.

use super::drive::{all_locals, close_all, drive};
use super::modelled::ModelledChip;
use crate::chip::work::stopwatch::Stopwatch;
use crate::settings::{ConfigError, Setting};
use isles_protocol::ordered::OrderedMap;
use isles_runtime::run::MainTask;
use isles_runtime::{here, now};
use isles_services::{BroadcastAlgorithm, Collectives, Shape, Team};
use isles_transport::PlaceId;
use isles_transport_chip::{ChipWorld, Costs, Placement, Protocol, ProtocolConfig};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// Assumed size of a single value in bytes.
const VALUE_BYTES: usize = 32;

/// Longest slice of a trial in bytes; longer ones use its result.
const TRIED_BYTES_MAX: usize = 64 << 10;

/// Chunk sizes of the trials, in bytes.
const CHUNKS: [usize; 3] = [512, 4 << 10, 32 << 10];

/// Maximum number of members of a trial, because a trial takes as long as the collective itself. Larger teams use the
/// runtime's own rules.
const TRIED_MEMBERS_MAX: usize = 256;

/// Trees of the trials. The authors of OC-Bcast found a fan of seven to be best.
const SHAPES: [Shape; 7] =
    [Shape::Binomial, Shape::Flat, Shape::Chain, Shape::Fan(2), Shape::Fan(3), Shape::Fan(7), Shape::Fan(16)];

/// Maximum number of children of a member in a tree chosen by name.
const CHILDREN_MAX: u32 = 255;

/// Broadcast algorithm of teams on a modelled chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Broadcast {
    /// The fastest for the length and the number of members, by the model.
    #[default]
    Auto,
    /// Down this tree.
    By(Shape),
    /// A scatter of the slice, then an all-gather; a single value goes down a binomial tree.
    ScatterAllGather,
    /// Down a tree with this number of children, forwarded by interrupts even while places compute; a single value goes
    /// down that tree by messages. Only with the protocol `doorbell`, whose other messages then have fewer lines.
    Asynchronous(u32),
}

/// Algorithm that reduces to one member of a team on a modelled chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// The fastest, by the model.
    #[default]
    Auto,
    /// All members send to the root, which combines alone.
    Serial,
    /// Members combine along a binomial tree.
    Logarithmic,
}

impl Broadcast {
    /// Returns the configuration of `protocol` with the relays that the broadcast needs.
    pub(crate) fn protocol_config(self, protocol: Protocol) -> ProtocolConfig {
        let relays = if let Broadcast::Asynchronous(children) = self { Some(children) } else { None };
        ProtocolConfig { protocol, relays }
    }
}

impl fmt::Display for Broadcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broadcast::Auto => write!(f, "auto"),
            Broadcast::By(Shape::Flat) => write!(f, "flat"),
            Broadcast::By(Shape::Binomial) => write!(f, "binomial"),
            Broadcast::By(Shape::Chain) => write!(f, "chain"),
            Broadcast::By(Shape::Fan(children)) => write!(f, "fan:{children}"),
            Broadcast::ScatterAllGather => write!(f, "scatter-allgather"),
            Broadcast::Asynchronous(children) => write!(f, "async:{children}"),
        }
    }
}

impl fmt::Display for Reduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reduce::Auto => "auto",
            Reduce::Serial => "serial",
            Reduce::Logarithmic => "logarithmic",
        })
    }
}

impl Broadcast {
    /// Reads the setting from the flag or variable `source`.
    pub(crate) fn read(source: &str, value: &str) -> Result<Setting<Broadcast>, ConfigError> {
        let plain = [Broadcast::Auto, Broadcast::By(Shape::Flat), Broadcast::By(Shape::Binomial)];
        let plain = plain.into_iter().chain([Broadcast::By(Shape::Chain), Broadcast::ScatterAllGather]);
        let children = |name: &str| {
            let children = value.strip_prefix(name)?.parse().ok();
            children.filter(|children| (1..=CHILDREN_MAX).contains(children))
        };
        let fan = children("fan:").map(|children| Broadcast::By(Shape::Fan(children)));
        let trees = fan.or_else(|| children("async:").map(Broadcast::Asynchronous));
        let found = plain.into_iter().find(|one| one.to_string() == value).or(trees);
        let allowed = "auto, flat, binomial, chain, scatter-allgather, fan:CHILDREN or async:CHILDREN with 1 to 255 \
                       children such as fan:7";
        let found = found.map(|broadcast| Setting::new(source, broadcast));
        found.ok_or_else(|| ConfigError::new(source, value, allowed))
    }
}

impl Reduce {
    /// Reads the setting from the flag or variable `source`.
    pub(crate) fn read(source: &str, value: &str) -> Result<Reduce, ConfigError> {
        let all = [Reduce::Auto, Reduce::Serial, Reduce::Logarithmic];
        let found = all.into_iter().find(|one| one.to_string() == value);
        found.ok_or_else(|| ConfigError::new(source, value, "auto, serial, logarithmic"))
    }
}

impl ModelledChip {
    /// Checks that broadcasts among `places` places can use the chosen algorithm.
    pub(crate) fn check_broadcast(
        self,
        broadcast: &Setting<Broadcast>,
        costs: &Costs,
        protocol: Protocol,
        places: u32,
    ) -> Result<(), ConfigError> {
        let check =
            |broadcast: Broadcast| costs.check_protocol_config(broadcast.protocol_config(protocol), places);
        let Setting { value, source } = broadcast;
        check(*value).map_err(|error| {
            let fits = |children: &u32| check(Broadcast::Asynchronous(*children)).is_ok();
            let most = (1..=CHILDREN_MAX).rev().find(fits);
            let most = most.map_or("any but async".to_owned(), |most| format!("at most async:{most}"));
            let machine = self.machine();
            let allowed = format!("{most} on {machine} with {places} places and {protocol} ({error})");
            ConfigError::new(source, &value.to_string(), allowed)
        })
    }
}

/// Known choices, by number of members and length.
type ChoiceCache<T> = RefCell<OrderedMap<(usize, usize), T>>;

/// Settings of a run that its trials share.
#[derive(Clone)]
pub(crate) struct TrialContext {
    pub(crate) chip: ModelledChip,
    pub(crate) costs: Costs,
    pub(crate) protocol_config: ProtocolConfig,
    pub(crate) placement: Placement,
}

/// The chosen algorithms, and the cached results of trials.
pub(crate) struct CollectiveChoice {
    context: TrialContext,
    broadcast: Broadcast,
    reduce: Reduce,
    stopwatch: Rc<Stopwatch>,
    broadcasts: ChoiceCache<BroadcastAlgorithm>,
    serial: ChoiceCache<bool>,
}

impl CollectiveChoice {
    pub(crate) fn new(
        context: TrialContext,
        broadcast: Broadcast,
        reduce: Reduce,
        stopwatch: &Rc<Stopwatch>,
    ) -> Rc<CollectiveChoice> {
        let stopwatch = Rc::clone(stopwatch);
        Rc::new(CollectiveChoice {
            context,
            broadcast,
            reduce,
            stopwatch,
            broadcasts: ChoiceCache::default(),
            serial: ChoiceCache::default(),
        })
    }

    /// Returns the cached result, or runs a trial. The time of trials is not charged as code of the program.
    fn ask<T: Copy>(
        &self,
        known: &ChoiceCache<T>,
        members: usize,
        bytes: usize,
        answer: impl FnOnce(&Trial) -> T,
    ) -> T {
        let key = (members, bytes);
        let before = known.borrow().get(key).copied();
        before.unwrap_or_else(|| {
            let place = PlaceId(here().index() as u32);
            let trial = Trial { context: self.context.clone(), members, bytes };
            let answer = self.stopwatch.ask(place, |_, _| answer(&trial));
            known.borrow_mut().insert(key, answer);
            answer
        })
    }
}

/// Returns the length of the trial for a length: the next power of two.
fn class(bytes: Option<usize>) -> usize {
    bytes.unwrap_or(0).clamp(VALUE_BYTES, TRIED_BYTES_MAX).next_power_of_two()
}

impl Collectives for CollectiveChoice {
    fn broadcast(&self, members: usize, bytes: Option<usize>) -> Option<BroadcastAlgorithm> {
        match self.broadcast {
            Broadcast::Auto if !(2..=TRIED_MEMBERS_MAX).contains(&members) => None,
            Broadcast::By(shape) if members > TRIED_MEMBERS_MAX => {
                Some(BroadcastAlgorithm::Tree { shape, chunk_bytes: CHUNKS[1] })
            }
            // The root sends to all at once; the chip forwards along the tree.
            Broadcast::Asynchronous(children) => {
                let shape = if bytes.is_some() { Shape::Flat } else { Shape::Fan(children) };
                Some(BroadcastAlgorithm::Tree { shape, chunk_bytes: CHUNKS[0] })
            }
            broadcast => Some(
                self.ask(&self.broadcasts, members, class(bytes), |trial| trial.best_broadcast(broadcast)),
            ),
        }
    }

    fn reduces_serially(&self, members: usize, bytes: Option<usize>) -> bool {
        match self.reduce {
            Reduce::Serial => true,
            Reduce::Logarithmic => false,
            Reduce::Auto if !(3..=TRIED_MEMBERS_MAX).contains(&members) => false,
            Reduce::Auto => self.ask(&self.serial, members, class(bytes), Trial::is_serial_shorter),
        }
    }

    /// Each place has a core of its own, so a barrier in which the first member serves all others would be slowest.
    fn disseminates_barriers(&self) -> bool {
        true
    }
}

/// A trial of collectives of one length among `members` cores.
struct Trial {
    context: TrialContext,
    members: usize,
    bytes: usize,
}

/// The fixed algorithms of a trial.
#[derive(Clone, Copy)]
struct Fixed(Option<BroadcastAlgorithm>, bool);

impl Collectives for Fixed {
    fn broadcast(&self, _: usize, _: Option<usize>) -> Option<BroadcastAlgorithm> {
        self.0
    }

    fn reduces_serially(&self, _: usize, _: Option<usize>) -> bool {
        self.1
    }

    fn disseminates_barriers(&self) -> bool {
        true
    }
}

impl Trial {
    /// Returns the fastest algorithm that `broadcast` allows; the first of equals.
    fn best_broadcast(&self, broadcast: Broadcast) -> BroadcastAlgorithm {
        match self.broadcasts(broadcast)[..] {
            [only] => only,
            ref broadcasts => *broadcasts
                .iter()
                .min_by_key(|spread| self.time(Fixed(Some(**spread), false), false))
                .expect("there is a way"),
        }
    }

    /// Returns the algorithms to compare.
    fn broadcasts(&self, broadcast: Broadcast) -> Vec<BroadcastAlgorithm> {
        match broadcast {
            Broadcast::Auto => {
                let trees = SHAPES.into_iter().flat_map(|shape| self.trees(shape));
                trees.chain([BroadcastAlgorithm::ScatterAllGather]).collect()
            }
            Broadcast::By(shape) => self.trees(shape).collect(),
            Broadcast::ScatterAllGather => vec![BroadcastAlgorithm::ScatterAllGather],
            Broadcast::Asynchronous(_) => unreachable!("there is nothing to choose"),
        }
    }

    /// Returns a tree with each chunk size shorter than the slice; a slice no longer than the smallest chunk goes in
    /// one piece.
    fn trees(&self, shape: Shape) -> impl Iterator<Item = BroadcastAlgorithm> + use<> {
        let shorter = CHUNKS.into_iter().filter(|chunk| *chunk < self.bytes).count().max(1);
        CHUNKS
            .into_iter()
            .take(shorter)
            .map(move |chunk_bytes| BroadcastAlgorithm::Tree { shape, chunk_bytes })
    }

    fn is_serial_shorter(&self) -> bool {
        let [serial, logarithmic] = [true, false].map(|is_serial| self.time(Fixed(None, is_serial), true));
        serial < logarithmic
    }

    /// Returns the time from the first member's start to the last member's end; [`Duration::MAX`] if the trial fails.
    fn time(&self, fixed: Fixed, is_reduction: bool) -> Duration {
        let (places, bytes) = (self.members as u32, self.bytes);
        let TrialContext { chip, costs, protocol_config, placement } = &self.context;
        let Ok(core_map) = placement.core_map(chip.chip().topology(), places) else { return Duration::MAX };
        let world = ChipWorld::with_core_map(core_map, costs.clone(), *protocol_config, 0);
        let Ok(world) = world else { return Duration::MAX };
        world.disable_energy();
        let stopwatch = Stopwatch::idle(&world, chip.chip().default_preset().clocks().core);
        let locals = all_locals(&stopwatch, places);
        let span = Rc::new(Cell::new((Duration::MAX, Duration::ZERO)));
        let roots: Vec<MainTask> = locals
            .iter()
            .map(|local| {
                isles_services::set_collectives(local, Rc::new(fixed));
                let span = Rc::clone(&span);
                let main = async move {
                    let (team, mut slice) = (Team::world(), vec![0_u64; bytes / 8]);
                    team.barrier().await?;
                    let began = now();
                    if is_reduction {
                        team.reduce_slice(0, &mut slice, |left, right| left.wrapping_add(right)).await?;
                    } else {
                        team.broadcast_slice(0, &mut slice).await?;
                    }
                    let (first, last) = span.get();
                    span.set((first.min(began), last.max(now())));
                    Ok::<_, isles_runtime::Error>(())
                };
                local.enter(|| MainTask::start(local, main))
            })
            .collect();
        let over = || roots.iter().all(MainTask::is_over).then_some(());
        let all_ended = drive(&world, &stopwatch, &locals, None, over).is_some();
        close_all(&stopwatch, &locals);
        let good = all_ended && roots.iter().all(|root| matches!(root.take(), Some(Ok(()))));
        let (first, last) = span.get();
        if good { last - first } else { Duration::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(members: usize, bytes: usize) -> Trial {
        let chip = ModelledChip::new("scc").unwrap();
        let protocol_config = Protocol::Doorbell.into();
        let context =
            TrialContext { chip, costs: chip.costs().clone(), protocol_config, placement: Placement::Linear };
        Trial { context, members, bytes }
    }

    #[test]
    fn settings_are_read_as_they_are_told_and_others_are_refused() {
        let trees = ["fan:1", "fan:7", "fan:255", "async:1", "async:47"];
        for name in ["auto", "flat", "binomial", "chain", "scatter-allgather"].into_iter().chain(trees) {
            assert_eq!(Broadcast::read("--broadcast", name).unwrap().value.to_string(), name);
        }
        for name in ["", "fan", "fan:0", "fan:256", "async", "async:0", "async:256", "oc", "Flat"] {
            let error = Broadcast::read("--broadcast", name).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--broadcast is {name:?}; allowed: auto, flat")), "{error}");
        }
        for name in ["auto", "serial", "logarithmic"] {
            assert_eq!(Reduce::read("--reduce", name).unwrap().to_string(), name);
        }
        assert!(Reduce::read("--reduce", "log").is_err());
    }

    #[test]
    fn lengths_fall_into_few_classes() {
        let classes =
            [None, Some(0), Some(32), Some(33), Some(1_024), Some(60_000), Some(1 << 30)].map(class);
        assert_eq!(classes, [32, 32, 32, 64, 1_024, 65_536, 65_536]);
    }

    #[test]
    fn what_is_chosen_takes_no_longer_than_any_tree_by_name() {
        for (members, bytes) in [(2, 64), (12, 64), (12, 4_096)] {
            let trial = trial(members, bytes);
            let time = |spread| trial.time(Fixed(Some(spread), false), false);
            let best = time(trial.best_broadcast(Broadcast::Auto));
            assert!(best > Duration::ZERO && best < Duration::MAX);
            for way in SHAPES.map(Broadcast::By).into_iter().chain([Broadcast::ScatterAllGather]) {
                let named = time(trial.best_broadcast(way));
                assert!(best <= named && named < Duration::MAX, "{way}: {named:?}, chosen {best:?}");
            }
        }
    }

    #[test]
    fn a_flat_tree_of_many_members_takes_longer_than_a_binomial_one() {
        let trial = trial(24, 64);
        let [flat, binomial] = [Shape::Flat, Shape::Binomial]
            .map(|shape| trial.time(Fixed(Some(trial.best_broadcast(Broadcast::By(shape))), false), false));
        assert!(flat > binomial, "{flat:?} {binomial:?}");
    }

    #[test]
    fn trials_are_on_the_cores_of_the_run() {
        let near = trial(4, 64);
        let mut far = trial(4, 64);
        far.context.placement = "0,10,36,47".parse().unwrap();
        let [near, far] = [near, far].map(|trial| {
            let spread = trial.best_broadcast(Broadcast::By(Shape::Flat));
            trial.time(Fixed(Some(spread), false), false)
        });
        assert!(near < far && far < Duration::MAX, "{near:?} {far:?}");
    }
}
