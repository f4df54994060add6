//! The world's state of its places: their turns, what they wait for, and their ends.
//!
//! A state machine behind the world and its endpoints. The queue holds at most one turn of each place: a busy one at
//! its own clock, a waiting one at its first poll after an arrival. This file also has clock changes requested by
//! places and the governor, in the order of turns; the list of [`Wakeups`] that operations of the protocol produce; and
//! a pool of buffers for short messages, which saves allocations.
//!
//! `scheduling` chooses the next turn, `messages` has the operations of a turn, and `death` the end of places. The
//! protocol carries the messages. Invariants: a turn is never before the present, so no earlier turn can have missed
//! its effects; the list of wakeups is empty between two calls of the world; the governor has been asked for every
//! interval that ended before the current turn.

use super::death::DeathNotice;
use super::interrupts::PendingInterrupts;
use crate::clocks::{ClockChange, ClockError};
use crate::cores::{Cores, Costs};
use crate::demand::Demand;
use crate::demand::undeclared::UndeclaredRegionDetector;
use crate::governor::GovernorState;
use crate::placement::CoreMap;
use crate::protocol::inbox::Content;
use crate::protocol::{BufferLayout, ProtocolModel, Wakeups};
use crate::report::Report;
use crate::shared::SharedMemoryState;
use isles_chip::gear::GearId;
use isles_chip::governor::{Governor, Order, Policy};
use isles_chip::kernel::{Digest, EventClass, Key, Queue, TieBreak};
use isles_chip::quantity::{Microvolts, Picoseconds};
use isles_transport::ordered::OrderedMap;
use isles_transport::{AlignedBytes, PlaceId};
use std::cell::Cell;
use std::rc::Rc;

/// Kind of an event in the digest.
#[derive(Clone, Copy)]
pub(super) enum Event {
    Turn = 1,
    Message,
    Fragment,
    Death,
    Clocks,
    Interrupt,
}

/// Adds an order of a governor to the digest.
fn record_order(digest: &mut Digest, tie_break: TieBreak, time: Picoseconds, order: Order) {
    let (domain, gear) = match order {
        Order::Shift { domain, gear } => (domain << 1 | 1, gear),
        Order::Divide { domain, gear } => (domain << 1, gear),
    };
    let key = tie_break.key(time, EventClass::Timer, domain as u32, 0);
    digest.record(key, Event::Clocks as u32, u64::from(gear.0));
}

/// The world's state of one place.
pub(super) struct PlaceStatus {
    pub(super) alive: bool,
    pub(super) left: bool,
    /// `true` if the place waits, so that an arrival may reschedule it.
    pub(super) parked: bool,
    /// `true` if a send of its last turn found no room.
    pub(super) refused: bool,
    /// `true` if a send of its last turn was refused because an earlier step continues.
    pub(super) held: bool,
    /// Work to do after the current call of the protocol.
    pub(super) postponed: Demand,
    /// Number of events of this place.
    sequence: u32,
    pub(super) notices: OrderedMap<PlaceId, DeathNotice>,
}

impl PlaceStatus {
    /// Makes the status of a place before its first turn.
    fn new() -> PlaceStatus {
        PlaceStatus {
            alive: true,
            left: false,
            parked: false,
            refused: false,
            held: false,
            postponed: Demand::default(),
            sequence: 0,
            notices: OrderedMap::new(),
        }
    }
}

/// State of the world's places.
pub(crate) struct WorldState {
    pub(crate) cores: Cores,
    pub(crate) protocol: Box<dyn ProtocolModel>,
    /// `true` if sends of `protocol` block; cached because it is read often.
    pub(super) has_blocking_sends: bool,
    pub(crate) live_blocks: Rc<Cell<usize>>,
    pub(super) statuses: Vec<PlaceStatus>,
    /// The next turn of each place that has one.
    pub(super) turns: Queue,
    /// Place of the current turn. It stays in `turns` until its next turn is known, so it is moved only once.
    pub(super) under_way: Option<PlaceId>,
    tie_break: TieBreak,
    pub(super) digest: Digest,
    /// Empty between two calls; kept to reuse its memory.
    pub(super) wakeups: Wakeups,
    /// Pool of buffers of received short messages.
    spare: Vec<Content>,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// Policy of the governor, as requested.
    pub(crate) policy: Policy,
    /// Policies of single voltage domains.
    own_policies: OrderedMap<usize, Policy>,
    /// The governor of all domains, or those of single ones.
    governing: Vec<GovernorState>,
    /// Shared memory of all cores; `None` until it is first used.
    pub(crate) shared: Option<SharedMemoryState>,
    /// Detects streams without a declared region.
    pub(super) undeclared: UndeclaredRegionDetector,
    /// Pending interrupts by place; empty until a program takes or raises one.
    pub(super) interrupts: Vec<PendingInterrupts>,
}

impl WorldState {
    pub(crate) fn new(costs: Costs, layout: BufferLayout, core_map: CoreMap, seed: u64) -> WorldState {
        let places = core_map.places();
        let tie_break = TieBreak::new(seed);
        let undeclared = UndeclaredRegionDetector::new(costs.work(), places);
        let mut cores = Cores::new(costs, core_map);
        let protocol = layout.open(&cores, places, tie_break);
        cores.is_interrupt_driven = protocol.is_interrupt_driven();
        let mut state = WorldState {
            has_blocking_sends: protocol.blocking_sends().is_some(),
            protocol,
            cores,
            live_blocks: Rc::default(),
            statuses: (0..places).map(|_| PlaceStatus::new()).collect(),
            turns: Queue::new(places as usize),
            under_way: None,
            tie_break,
            digest: Digest::default(),
            wakeups: Wakeups::new(),
            spare: Vec::new(),
            messages: 0,
            bytes: 0,
            policy: Policy::default(),
            own_policies: OrderedMap::new(),
            governing: Vec::new(),
            shared: None,
            undeclared,
            interrupts: Vec::new(),
        };
        (0..places).map(PlaceId).for_each(|place| state.schedule(place, Picoseconds::ZERO));
        state
    }

    #[inline]
    pub(super) fn key(&mut self, time: Picoseconds, class: EventClass, place: PlaceId) -> Key {
        let status = &mut self.statuses[place.index()];
        status.sequence = status.sequence.wrapping_add(1);
        self.tie_break.key(time, class, place.0, status.sequence)
    }

    /// Tells the recorder that `place` starts an action.
    pub(super) fn begin_action(&mut self, place: PlaceId) {
        if let Some(recorder) = &mut self.cores.recorder {
            recorder.begin(place);
        }
    }

    pub(crate) fn report(&self) -> Report {
        let places = (0..self.statuses.len() as u32).map(PlaceId);
        Report {
            time: self.cores.now(PlaceId(0)),
            messages: self.messages,
            bytes: self.bytes,
            lines: self.cores.lines(),
            by_class: self.cores.by_class,
            fetched: self.cores.lines_fetched(),
            controllers: self.cores.controllers_busy(),
            files: self.cores.file_traffic(),
            is_memory_crowded: self.cores.is_memory_crowded(),
            flit_hops: self.cores.flit_hops(),
            digest: self.digest,
            cores: self.cores.core_map().cores().to_vec(),
            ledgers: places.map(|place| self.cores.ledger(place)).collect(),
            shifts: self.cores.shifts,
            stale: self.shared.as_ref().map(SharedMemoryState::stale),
            undeclared_region: self.undeclared.first(),
            energy: self.cores.energy(),
        }
    }
}

impl WorldState {
    /// Sets the governor before anything runs.
    pub(crate) fn set_governor(&mut self, policy: Policy, governor: Governor, gears: &[GearId]) {
        self.policy = policy;
        self.cores.begin(gears);
        self.governing = GovernorState::new(governor, self.statuses.len()).into_iter().collect();
    }

    /// Changes the governor of the run, or of `only` one voltage domain, from the clock of `place` on.
    pub(crate) fn change_governor(
        &mut self,
        place: PlaceId,
        policy: Policy,
        only: Option<usize>,
    ) -> Result<(), ClockError> {
        let is_meant = |domain: usize| only.is_none_or(|only| only == domain);
        if only.is_some() && self.governing.iter().any(|governing| governing.only().is_none()) {
            return Err(ClockError::ChipGoverned { policy: self.policy });
        }
        let (governor, gears) = self.cores.governor(policy, only).map_err(ClockError::Governor)?;
        let now = self.cores.now(place);
        let meant = (0..self.cores.supply_count()).filter(|domain| is_meant(*domain));
        let until = meant.map(|domain| self.cores.settled(domain)).max();
        if let Some(until) = until.filter(|until| *until > now) {
            return Err(ClockError::under_way(until));
        }
        match only {
            None => {
                self.policy = policy;
                self.own_policies.clear();
            }
            Some(domain) => _ = self.own_policies.insert(domain, policy),
        }
        self.governing.retain(|governing| only.is_some() && governing.only() != only);
        self.governing.extend(GovernorState::begun_at(governor, only, &self.cores, now));
        for (domain, gear) in gears.into_iter().enumerate().filter(|(domain, _)| is_meant(*domain)) {
            let order = Order::Shift { domain, gear };
            self.cores.apply_order(now, order);
            record_order(&mut self.digest, self.tie_break, now, order);
        }
        Ok(())
    }

    /// Returns the policy for the supply of a place.
    pub(crate) fn policy_of(&self, place: PlaceId) -> Policy {
        self.own_policies.get(self.domain_of(place)).copied().unwrap_or(self.policy)
    }

    fn domain_of(&self, place: PlaceId) -> usize {
        self.cores.supply(place) as usize
    }

    /// Asks the governors for all intervals until `present`, in the order of time.
    pub(super) fn govern(&mut self, present: Picoseconds) {
        loop {
            let due = self.governing.iter_mut().filter(|governing| governing.due() <= present);
            let Some(next) = due.min_by_key(|governing| governing.due()) else { return };
            let (digest, tie_break) = (&mut self.digest, self.tie_break);
            next.ask(&mut self.cores, |time, order| record_order(digest, tie_break, time, order));
        }
    }

    /// Returns `true` if a governor caps the supply of a place.
    fn is_capped(&self, place: PlaceId) -> bool {
        let domain = self.domain_of(place);
        self.governing.iter().any(|governing| governing.owns_clocks(domain))
    }

    /// Sets the voltage of the supply of `place`.
    pub(crate) fn set_supply_voltage(
        &mut self,
        place: PlaceId,
        voltage: Microvolts,
    ) -> Result<Option<ClockChange>, ClockError> {
        if self.is_capped(place) {
            return Ok(None);
        }
        let now = self.cores.now(place);
        let changed = self.cores.set_supply_voltage(place, voltage)?;
        let key = self.key(now, EventClass::Timer, place);
        self.digest.record(key, Event::Clocks as u32, u64::from(voltage.0) << 8);
        Ok(changed)
    }

    /// Sets the clock divider of the supply or of the tile of `place`.
    pub(crate) fn change_clocks(
        &mut self,
        place: PlaceId,
        divider: u32,
        whole_supply: bool,
    ) -> Result<Option<ClockChange>, ClockError> {
        if self.is_capped(place) {
            return self.cores.gear_of(divider).map(|_| None);
        }
        let now = self.cores.now(place);
        let changed = if whole_supply {
            self.cores.shift_supply(place, divider)
        } else {
            self.cores.divide_tile(place, divider)
        }?;
        let key = self.key(now, EventClass::Timer, place);
        self.digest.record(key, Event::Clocks as u32, u64::from(divider) << 1 | u64::from(whole_supply));
        Ok(changed)
    }
}

impl WorldState {
    /// Wakes the places at which a send attempt of `place` has caused arrivals.
    #[inline]
    pub(crate) fn drain_wakeups(&mut self, place: PlaceId) {
        if self.has_blocking_sends
            && let Some(sends) = self.protocol.blocking_sends_mut()
        {
            sends.drain_wakeups(place, &mut self.wakeups);
            self.wake_targets();
        }
    }

    pub(super) fn make_progress(&mut self, place: PlaceId) {
        self.protocol.make_progress(&mut self.cores, place, &mut self.wakeups);
        self.wake_targets();
    }

    /// Returns credits after a batch of arrivals.
    pub(crate) fn return_credits(&mut self, place: PlaceId) {
        self.protocol.return_credits(&mut self.cores, place, &mut self.wakeups);
        self.wake_credited();
    }

    /// Ends a turn of a place for the protocol; also called before it computes.
    pub(crate) fn settle(&mut self, place: PlaceId) {
        if !self.is_alive(place) {
            return;
        }
        self.protocol.end_turn(&mut self.cores, place, &mut self.wakeups);
        self.wake_credited();
    }

    pub(super) fn wake_target(&mut self, target: PlaceId, arrival: Picoseconds) {
        if self.is_alive(target) {
            self.wake(target, arrival);
        } else {
            self.protocol.abort_place(target);
        }
    }

    pub(super) fn wake_targets(&mut self) {
        for index in 0..self.wakeups.len() {
            let (target, arrival) = self.wakeups[index];
            self.wake_target(target, arrival);
        }
        self.wakeups.clear();
    }

    /// Wakes the places that wait for the returned credit.
    #[inline]
    fn wake_credited(&mut self) {
        for index in 0..self.wakeups.len() {
            let (source, arrival) = self.wakeups[index];
            if self.statuses[source.index()].parked && self.waits_for_credit(source) {
                self.wake(source, arrival);
            }
        }
        self.wakeups.clear();
    }
}

/// Size of a pooled buffer in bytes, and maximum number of pooled buffers.
const SPARE_BYTES: usize = 256;
const SPARES_MAX: usize = 1_024;

impl WorldState {
    /// Returns a buffer for a message of up to `room` bytes.
    #[inline]
    pub(crate) fn take_buffer(&mut self, room: usize) -> Content {
        let spare = self.spare.pop().and_then(|mut spare| spare.renew(room).then_some(spare));
        spare.unwrap_or_else(|| Box::new(AlignedBytes::new(room.max(SPARE_BYTES))))
    }

    /// Returns a buffer of `take_buffer` to the pool.
    #[inline]
    pub(crate) fn return_buffer(&mut self, content: Content) {
        if self.spare.len() < SPARES_MAX {
            self.spare.push(content);
        }
    }
}
