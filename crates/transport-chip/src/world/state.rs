//! What the world knows of its places: who is next, who waits for what, who is gone.
//!
//! A plain state machine behind the world and its endpoints. The queue holds at most one turn of each place: of a busy
//! one at its own clock, of a waiting one at its first poll after something has come. Here are also changes of clocks,
//! in the order of turns, as places ask for them and the governor orders them; the list of [`Wakeups`] that an
//! operation of the protocol leaves; and the memory of short messages, which saves the host an allocation each.
//!
//! Who has the next turn is decided in `scheduling`; what a place does in it is in `messages`, the end of places in
//! `death`. It does not know how a message crosses the chip: that is the protocol's. Invariants: a turn is never before
//! the present, so nothing that a turn does can have been missed by an earlier one; the list of wakeups is empty
//! between two calls of the world; the governor has been asked for every interval that had ended when the turn under
//! way began.

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

/// Event, for the digest.
#[derive(Clone, Copy)]
pub(super) enum Event {
    Turn = 1,
    Message,
    Fragment,
    Death,
    Clocks,
    Interrupt,
}

/// Lets the digest know what a governor wants at a time.
fn record_order(digest: &mut Digest, tie_break: TieBreak, time: Picoseconds, order: Order) {
    let (domain, gear) = match order {
        Order::Shift { domain, gear } => (domain << 1 | 1, gear),
        Order::Divide { domain, gear } => (domain << 1, gear),
    };
    let key = tie_break.key(time, EventClass::Timer, domain as u32, 0);
    digest.record(key, Event::Clocks as u32, u64::from(gear.0));
}

/// One place as the world sees it.
pub(super) struct PlaceStatus {
    pub(super) alive: bool,
    pub(super) left: bool,
    /// `true` if the place waits, so that an arrival may move its turn.
    pub(super) parked: bool,
    /// `true` if a send of its last turn found no room.
    pub(super) refused: bool,
    /// `true` if a send of its last turn was refused because a step before it goes on.
    pub(super) held: bool,
    /// Work to do after the place's current call.
    pub(super) postponed: Demand,
    /// Events of this place so far.
    sequence: u32,
    pub(super) notices: OrderedMap<PlaceId, DeathNotice>,
}

impl PlaceStatus {
    /// Of a place before its first turn.
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
    /// `true` if sends of `protocol` block; read often.
    pub(super) has_blocking_sends: bool,
    pub(crate) live_blocks: Rc<Cell<usize>>,
    pub(super) statuses: Vec<PlaceStatus>,
    /// The next turn of each place that has one.
    pub(super) turns: Queue,
    /// Place whose turn it is. It stays in `turns` until its next turn is known, so it moves once instead of twice.
    pub(super) under_way: Option<PlaceId>,
    tie_break: TieBreak,
    pub(super) digest: Digest,
    /// Empty between two calls; kept for its memory.
    pub(super) wakeups: Wakeups,
    /// Memory of short messages that were taken in, for others.
    spare: Vec<Content>,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// Policy of the governor, as requested.
    pub(crate) policy: Policy,
    /// Policies of single voltage domains that differ from it.
    own_policies: OrderedMap<usize, Policy>,
    /// That of all domains, or those of single ones.
    governing: Vec<GovernorState>,
    /// Memory that all cores share; nothing before it is asked for.
    pub(crate) shared: Option<SharedMemoryState>,
    /// Streams of which nobody knows what they are a part of.
    pub(super) undeclared: UndeclaredRegionDetector,
    /// By place; nothing before a program takes or raises one.
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

    /// Tells the recorder that `place` does something with a name.
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
    /// Puts the run under a governor, before anything runs.
    pub(crate) fn set_governor(&mut self, policy: Policy, governor: Governor, gears: &[GearId]) {
        self.policy = policy;
        self.cores.begin(gears);
        self.governing = GovernorState::new(governor, self.statuses.len()).into_iter().collect();
    }

    /// Puts the run, or `only` one voltage domain, under another governor, from the clock of `place` on.
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

    /// The policy that the supply of a place is under.
    pub(crate) fn policy_of(&self, place: PlaceId) -> Policy {
        self.own_policies.get(self.domain_of(place)).copied().unwrap_or(self.policy)
    }

    fn domain_of(&self, place: PlaceId) -> usize {
        self.cores.supply(place) as usize
    }

    /// Asks governors for all intervals until `present`, in the order of time.
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

    /// `place` asks for another voltage of its supply.
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

    /// `place` asks for another rate: of its supply or of its tile.
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
    /// Wakes those for whom an attempt of `place` to send has made something arrive.
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

    /// Ends a batch of arrivals.
    pub(crate) fn return_credits(&mut self, place: PlaceId) {
        self.protocol.return_credits(&mut self.cores, place, &mut self.wakeups);
        self.wake_credited();
    }

    /// Ends a turn of a place for the protocol; also what comes before it computes.
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

    /// Wakes those who wait for the credit that they get.
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

/// Bytes of a message whose memory is kept for others, and how many such are kept at most.
const SPARE_BYTES: usize = 256;
const SPARES_MAX: usize = 1_024;

impl WorldState {
    /// Memory for a message of up to `room` bytes.
    #[inline]
    pub(crate) fn take_buffer(&mut self, room: usize) -> Content {
        let spare = self.spare.pop().and_then(|mut spare| spare.renew(room).then_some(spare));
        spare.unwrap_or_else(|| Box::new(AlignedBytes::new(room.max(SPARE_BYTES))))
    }

    /// Takes back what `take_buffer` gave.
    #[inline]
    pub(crate) fn return_buffer(&mut self, content: Content) {
        if self.spare.len() < SPARES_MAX {
            self.spare.push(content);
        }
    }
}
