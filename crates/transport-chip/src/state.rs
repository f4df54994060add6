//! What the world knows of its places: who is next, who waits for what, who is gone.
//!
//! A plain state machine behind the world and its endpoints. The queue holds at most one turn of each place: of a busy
//! one at its own clock, of a waiting one at its first poll after something has come.
//! Invariant: a turn is never before the present, so nothing that a turn does can have been missed by an earlier one.

use crate::clocks::{ClockChange, ClockError};
use crate::cores::{Cores, Costs};
use crate::demand::Demand;
use crate::govern::Governing;
use crate::parcel::{ChipBlock, Content, Load, Parcel};
use crate::placement::Seating;
use crate::record::Passage;
use crate::report::Report;
use crate::rest::Rest;
use crate::shared::Shared;
use crate::wire::{Division, Multicast, News, Outgoing, Wire};
use isles_chip::gear::GearId;
use isles_chip::governor::{Governor, Order};
use isles_chip::kernel::{Digest, EventClass, Key, Queue, Ties};
use isles_chip::quantity::Picoseconds;
use isles_transport::{AlignedBytes, Inbound, PlaceId, SendError, Work};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// How long after the death of a place the others know of it. No chip says: it stands for a watchdog.
const NOTICE: Picoseconds = Picoseconds(100_000_000);

/// Bytes of a message whose memory is kept for others, and how many such are kept at most.
const SPARE_BYTES: usize = 256;
const SPARES_MAX: usize = 1_024;

/// What happened, for the digest.
#[derive(Clone, Copy)]
enum Event {
    Turn = 1,
    Message,
    Piece,
    Death,
    Clocks,
}

/// What a place takes in.
pub(crate) enum Taken {
    Parcel(Parcel),
    Died(PlaceId),
    /// A part of something larger: look again.
    Piece,
}

/// A death on its way to one place that did not die.
struct Notice {
    known: Picoseconds,
    delivered: bool,
}

/// One place as the world sees it.
struct Site {
    alive: bool,
    left: bool,
    /// Whether it waits, so that what comes may move its turn.
    parked: bool,
    /// Whether a send of its last turn found no room.
    refused: bool,
    /// What is done when the call is over in which the place stands.
    postponed: Demand,
    /// Events of this place so far.
    sequence: u32,
    notices: BTreeMap<PlaceId, Notice>,
}

pub(crate) struct State {
    pub(crate) cores: Cores,
    pub(crate) wire: Box<dyn Wire>,
    /// Whether places ever stand in a call of `wire`.
    engages: bool,
    pub(crate) live_blocks: Rc<Cell<usize>>,
    sites: Vec<Site>,
    /// The next turn of each place that has one.
    turns: Queue,
    /// Whose turn it is. It stays in `turns` until its next one is known: so it moves once instead of twice.
    under_way: Option<PlaceId>,
    ties: Ties,
    digest: Digest,
    /// Empty between two calls; kept for its memory.
    news: News,
    /// Memory of short messages that were taken in, for others.
    spare: Vec<Content>,
    messages: u64,
    bytes: u64,
    governing: Option<Governing>,
    /// Memory that all cores share; nothing before it is asked for.
    pub(crate) shared: Option<Shared>,
}

impl State {
    pub(crate) fn new(costs: Costs, division: Division, seating: Seating, seed: u64) -> State {
        let places = seating.places();
        let site = |_| Site {
            alive: true,
            left: false,
            parked: false,
            refused: false,
            postponed: Demand::default(),
            sequence: 0,
            notices: BTreeMap::new(),
        };
        let ties = Ties::new(seed);
        let mut cores = Cores::new(costs, seating);
        let wire = division.open(&cores, places, ties);
        cores.is_called = wire.calls();
        let mut state = State {
            engages: wire.engages(),
            wire,
            cores,
            live_blocks: Rc::default(),
            sites: (0..places).map(site).collect(),
            turns: Queue::new(places as usize),
            under_way: None,
            ties,
            digest: Digest::default(),
            news: News::new(),
            spare: Vec::new(),
            messages: 0,
            bytes: 0,
            governing: None,
            shared: None,
        };
        (0..places).map(PlaceId).for_each(|place| state.schedule(place, Picoseconds::ZERO));
        state
    }

    #[inline]
    fn key(&mut self, time: Picoseconds, class: EventClass, place: PlaceId) -> Key {
        let site = &mut self.sites[place.index()];
        site.sequence = site.sequence.wrapping_add(1);
        self.ties.key(time, class, place.0, site.sequence)
    }

    fn schedule(&mut self, place: PlaceId, time: Picoseconds) {
        let key = self.key(time, EventClass::Ready, place);
        self.turns.set(place.0, key);
    }

    /// Begins the next turn: the place that has it, or none if nothing will ever happen again.
    ///
    /// A place that has left and still has blocks under way gets its turns here, and nobody sees them.
    pub(crate) fn next_turn(&mut self) -> Option<PlaceId> {
        loop {
            self.end_turn();
            let (key, place) = self.turns.first()?;
            let place = PlaceId(place);
            self.under_way = Some(place);
            self.cores.set_present(key.time());
            self.govern(key.time());
            if self.cores.rest != Rest::Poll && !self.cores.is_called && self.sites[place.index()].parked {
                let look = self.look(place);
                self.cores.halt(place, key.time(), look);
            }
            self.cores.wait_until(place, key.time());
            self.cores.sample_until(key.time());
            self.digest.record(key, Event::Turn as u32, 0);
            let site = &mut self.sites[place.index()];
            (site.parked, site.refused) = (false, false);
            if site.left {
                self.attend(place);
                if self.wire.has_streams(place) {
                    self.park(place, None);
                }
            } else if !self.stays(place) {
                return Some(place);
            }
        }
    }

    /// Whether `place` stays in the call in which it stands; then it waits on. If it leaves it, it computes what was
    /// postponed.
    fn stays(&mut self, place: PlaceId) -> bool {
        if self.is_engaged(place) {
            self.attend(place);
            if self.is_engaged(place) {
                self.park(place, None);
                return true;
            }
        }
        let postponed = std::mem::take(&mut self.sites[place.index()].postponed);
        if postponed != Demand::default() {
            self.cores.work(place, &postponed);
        }
        false
    }

    /// Lets `place` work for its program; once it stands in a call, when that is over.
    pub(crate) fn work(&mut self, place: PlaceId, work: &Work) {
        let demand = self.cores.demand(work);
        self.settle(place);
        if self.is_engaged(place) {
            self.sites[place.index()].postponed.add(&demand);
        } else {
            self.cores.work(place, &demand);
        }
    }

    /// Puts the run under a governor, before anything runs.
    pub(crate) fn set_governor(&mut self, governor: Governor, gears: &[GearId]) {
        self.cores.begin(gears);
        self.governing = Governing::new(governor, self.sites.len());
    }

    /// Asks the governor for all intervals until `present`.
    fn govern(&mut self, present: Picoseconds) {
        let Some(governing) = &mut self.governing else { return };
        let (digest, ties) = (&mut self.digest, self.ties);
        governing.until(&mut self.cores, present, |time, order| {
            let (domain, gear) = match order {
                Order::Shift { domain, gear } => (domain << 1 | 1, gear),
                Order::Divide { domain, gear } => (domain << 1, gear),
            };
            let key = ties.key(time, EventClass::Timer, domain as u32, 0);
            digest.record(key, Event::Clocks as u32, u64::from(gear.0));
        });
    }

    /// Ends a turn of a place that wants another one.
    pub(crate) fn go_on(&mut self, place: PlaceId) {
        if self.is_engaged(place) {
            self.park(place, None);
        } else if self.sites[place.index()].alive {
            let now = self.cores.now(place);
            self.schedule(place, now);
            self.under_way = None;
        }
    }

    /// Takes the turn under way out of the queue, unless its place has another one by now.
    fn end_turn(&mut self) {
        if let Some(place) = self.under_way.take() {
            self.turns.remove(place.0);
        }
    }

    /// Ends a turn of a place that waits, at the latest until `due`.
    pub(crate) fn park(&mut self, place: PlaceId, due: Option<Picoseconds>) {
        self.end_turn();
        let site = &mut self.sites[place.index()];
        if !site.alive {
            return;
        }
        site.parked = true;
        let deaths = site.notices.values().filter(|notice| !notice.delivered).map(|notice| notice.known);
        let (first, left) = (deaths.chain(due).min(), site.left);
        let first = first.filter(|_| !self.is_engaged(place));
        let mail = if left { None } else { self.wire.first_arrival(place) };
        let credit = if self.waits_for_credit(place) { self.wire.first_credit(place) } else { None };
        if let Some(time) = [first, mail, credit].into_iter().flatten().min() {
            self.wake(place, time);
        }
    }

    /// Whether `place` stands in a call of the protocol.
    #[inline]
    fn is_engaged(&self, place: PlaceId) -> bool {
        self.engages && self.wire.is_engaged(place)
    }

    fn waits_for_credit(&self, place: PlaceId) -> bool {
        self.sites[place.index()].refused || self.wire.has_streams(place) || self.is_engaged(place)
    }

    /// Something that a waiting place waits for comes at `time`: its turn is its first poll from then on.
    fn wake(&mut self, place: PlaceId, time: Picoseconds) {
        if !self.sites[place.index()].parked {
            return;
        }
        self.cores.settle(place);
        let mut now = self.cores.now(place);
        let mut look = self.look(place);
        if let Some(shift) = self.cores.shift_until(place, time) {
            // It is to come, so the clock of the place stays behind it; its polls begin anew there.
            let before = self.cores.pretend(place, shift.gear);
            (now, look) = (shift.time.max(now), self.look(place));
            self.cores.pretend(place, before);
        }
        // An interrupt that has come already calls nobody again.
        let is_called = self.cores.is_called && time > now;
        let turn = if is_called { time } else { self.cores.rest.first_look(now, time, look) };
        if self.turns.key_of(place.0).is_none_or(|before| turn < before.time()) {
            self.schedule(place, turn);
        }
    }

    /// How long a look of a waiting place takes.
    fn look(&self, place: PlaceId) -> Picoseconds {
        self.wire.poll_period(&self.cores, place, self.waits_for_credit(place))
    }

    fn is_closed(&self, here: PlaceId, place: PlaceId) -> bool {
        self.sites[place.index()].left || self.is_dead(here, place)
    }

    /// Whether `here` knows that `place` is dead; a dead place holds all others for dead.
    pub(crate) fn is_dead(&self, here: PlaceId, place: PlaceId) -> bool {
        let site = &self.sites[here.index()];
        if site.alive && site.notices.is_empty() {
            return false;
        }
        let known = site.notices.get(&place).is_some_and(|notice| notice.known <= self.cores.now(here));
        known || (!site.alive && here != place)
    }

    pub(crate) fn is_alive(&self, place: PlaceId) -> bool {
        self.sites[place.index()].alive
    }

    /// Whether a message could be sent now, if it is empty; notes a refusal. Gives whether it may also have any other
    /// length of up to `room` bytes.
    pub(crate) fn admit(&mut self, out: &Outgoing, room: usize) -> Result<bool, SendError> {
        self.check_open(out)?;
        if self.wire.has_room_up_to(out, room) {
            return Ok(true);
        }
        self.admit_length(out, 0).map(|()| false)
    }

    /// Whether an admitted message may be `len` bytes long; notes a refusal.
    pub(crate) fn admit_length(&mut self, out: &Outgoing, len: usize) -> Result<(), SendError> {
        if self.wire.has_room(&mut self.cores, out, len) { Ok(()) } else { Err(self.refuse(out.from)) }
    }

    /// As `admit`, for a block.
    pub(crate) fn admit_block(&mut self, out: &Outgoing) -> Result<(), SendError> {
        self.check_open(out)?;
        if self.wire.may_stream(&mut self.cores, out) { Ok(()) } else { Err(self.refuse(out.from)) }
    }

    /// As `admit`, for a message to several places.
    pub(crate) fn admit_multicast(&mut self, out: &Multicast<'_>) -> Result<(), SendError> {
        out.each().try_for_each(|out| self.check_open(&out))?;
        if self.wire.has_room_for_all(&mut self.cores, out) { Ok(()) } else { Err(self.refuse(out.from)) }
    }

    fn check_open(&self, out: &Outgoing) -> Result<(), SendError> {
        assert!(!self.sites[out.from.index()].left, "{} sends although it has left", out.from);
        if self.is_closed(out.from, out.to) { Err(SendError::DeadPlace(out.to)) } else { Ok(()) }
    }

    fn refuse(&mut self, place: PlaceId) -> SendError {
        self.sites[place.index()].refused = true;
        self.tell(place);
        SendError::Full
    }

    /// Memory for a message of up to `room` bytes.
    pub(crate) fn lend(&mut self, room: usize) -> Content {
        let spare = self.spare.pop().and_then(|mut spare| spare.renew(room).then_some(spare));
        spare.unwrap_or_else(|| Box::new(AlignedBytes::new(room.max(SPARE_BYTES))))
    }

    /// Takes back what `lend` gave.
    pub(crate) fn keep(&mut self, content: Content) {
        if self.spare.len() < SPARES_MAX {
            self.spare.push(content);
        }
    }

    /// Sends an admitted message.
    pub(crate) fn send(&mut self, out: &Outgoing, content: Content) {
        let bytes = content.bytes().len();
        self.begin_action(out.from);
        let arrival = self.wire.send(&mut self.cores, out, Load::Inline(content));
        self.end_sending(out, bytes, false);
        if let Some(arrival) = arrival {
            self.wake_target(out.to, arrival);
        }
        self.tell(out.from);
    }

    /// Wakes those for whom an attempt of `place` to send has made something arrive.
    #[inline]
    pub(crate) fn tell(&mut self, place: PlaceId) {
        if self.engages {
            self.wire.tell(place, &mut self.news);
            self.wake_targets();
        }
    }

    /// Sends an admitted message to several places.
    pub(crate) fn multicast(&mut self, out: &Multicast<'_>, content: &[u8]) {
        let mut slot = None;
        for one in out.each() {
            let mut copy = self.lend(content.len());
            copy.bytes_mut()[..content.len()].copy_from_slice(content);
            copy.shorten(content.len());
            self.begin_action(out.from);
            let slot = *slot.get_or_insert_with(|| self.wire.lay_out(&mut self.cores, out, content.len()));
            let arrival = self.wire.point(&mut self.cores, &one, slot, Load::Inline(copy));
            self.end_sending(&one, content.len(), false);
            self.wake_target(one.to, arrival);
        }
    }

    /// Sends an admitted block.
    pub(crate) fn send_block(&mut self, out: &Outgoing, content: AlignedBytes) {
        let bytes = content.bytes().len();
        let block = Load::Block(Box::new(ChipBlock::new(content, &self.live_blocks)));
        self.begin_action(out.from);
        self.wire.stream(&mut self.cores, out, block, &mut self.news);
        self.end_sending(out, bytes, true);
        self.tell(out.from);
        self.wake_targets();
    }

    /// Tells the recorder that `place` does something with a name.
    fn begin_action(&mut self, place: PlaceId) {
        if let Some(recorder) = &mut self.cores.recorder {
            recorder.begin(place);
        }
    }

    fn end_sending(&mut self, out: &Outgoing, bytes: usize, is_block: bool) {
        if let Some(recorder) = &mut self.cores.recorder {
            let (source, target, class) = (out.from, out.to, out.class);
            recorder.sent(Passage { source, target, class, bytes: bytes as u64 }, is_block);
        }
    }

    fn end_taking(&mut self, place: PlaceId, taken: Option<&Option<Parcel>>) {
        let Some(recorder) = &mut self.cores.recorder else { return };
        match taken {
            None => recorder.abandon(place),
            Some(None) => recorder.received_piece(place),
            Some(Some(parcel)) => {
                let (source, class, bytes) = (parcel.source, parcel.class, parcel.load.len() as u64);
                recorder.received(Passage { source, target: place, class, bytes });
            }
        }
    }

    fn wake_target(&mut self, target: PlaceId, arrival: Picoseconds) {
        if self.is_alive(target) {
            self.wake(target, arrival);
        } else {
            self.wire.cut(target);
        }
    }

    /// Looks for messages; gives the time until which it saw.
    pub(crate) fn poll(&mut self, place: PlaceId) -> Picoseconds {
        let seen = self.cores.now(place);
        if self.is_engaged(place) {
            return seen;
        }
        self.wire.poll(&mut self.cores, place);
        if self.wire.has_streams(place) {
            self.attend(place);
        }
        seen
    }

    fn attend(&mut self, place: PlaceId) {
        self.wire.attend(&mut self.cores, place, &mut self.news);
        self.wake_targets();
    }

    fn wake_targets(&mut self) {
        for index in 0..self.news.len() {
            let (target, arrival) = self.news[index];
            self.wake_target(target, arrival);
        }
        self.news.clear();
    }

    /// Takes one arrival that was there at `seen`.
    pub(crate) fn take(&mut self, place: PlaceId, seen: Picoseconds, inbound: Inbound) -> Option<Taken> {
        let site = &self.sites[place.index()];
        if !site.alive {
            return None;
        }
        if !site.notices.is_empty()
            && let Some(dead) = self.take_death(place)
        {
            return Some(Taken::Died(dead));
        }
        let before = self.cores.now(place);
        self.begin_action(place);
        let taken = self.wire.take(&mut self.cores, place, seen, inbound == Inbound::Control);
        self.end_taking(place, taken.as_ref());
        let Some(parcel) = taken? else {
            let key = self.key(before, EventClass::Arrival, place);
            self.digest.record(key, Event::Piece as u32, 0);
            return Some(Taken::Piece);
        };
        let key = self.key(parcel.arrival, EventClass::Arrival, place);
        let size = parcel.load.len() as u64;
        self.digest.record(
            key,
            Event::Message as u32,
            size << 33 | u64::from(parcel.source.0) << 1 | parcel.class as u64,
        );
        self.messages += 1;
        self.bytes += size;
        Some(Taken::Parcel(parcel))
    }

    /// A known death that was not delivered, and behind which no message of the dead place waits.
    #[cold]
    fn take_death(&mut self, place: PlaceId) -> Option<PlaceId> {
        let now = self.cores.now(place);
        let wire = &self.wire;
        let due = |(dead, notice): &(&PlaceId, &mut Notice)| {
            !notice.delivered && notice.known <= now && !wire.has_mail(**dead, place)
        };
        let (dead, notice) = self.sites[place.index()].notices.iter_mut().find(due)?;
        notice.delivered = true;
        let dead = *dead;
        self.wire.forget_receiver(place, dead);
        let key = self.key(now, EventClass::Arrival, place);
        self.digest.record(key, Event::Death as u32, u64::from(dead.0));
        Some(dead)
    }

    /// Ends a batch of arrivals.
    pub(crate) fn give_credits(&mut self, place: PlaceId) {
        self.wire.give_credits(&mut self.cores, place, &mut self.news);
        self.wake_credited();
    }

    /// Ends a turn of a place for the protocol; also what comes before it computes.
    pub(crate) fn settle(&mut self, place: PlaceId) {
        if !self.is_alive(place) {
            return;
        }
        self.wire.end_turn(&mut self.cores, place, &mut self.news);
        self.wake_credited();
    }

    /// Wakes those who wait for the credit that they get.
    #[inline]
    fn wake_credited(&mut self) {
        for index in 0..self.news.len() {
            let (source, arrival) = self.news[index];
            if self.sites[source.index()].parked && self.waits_for_credit(source) {
                self.wake(source, arrival);
            }
        }
        self.news.clear();
    }

    /// `place` asks for another rate: of its supply or of its tile.
    pub(crate) fn change_clocks(
        &mut self,
        place: PlaceId,
        divider: u32,
        whole_supply: bool,
    ) -> Result<Option<ClockChange>, ClockError> {
        if self.governing.as_ref().is_some_and(Governing::owns_clocks) {
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

    /// `place` sends nothing more; its blocks under way still arrive.
    pub(crate) fn leave(&mut self, place: PlaceId) {
        if std::mem::replace(&mut self.sites[place.index()].left, true) {
            return;
        }
        let others = (0..self.sites.len() as u32).map(PlaceId).filter(|other| *other != place);
        for other in others {
            let was_engaged = self.is_engaged(other);
            self.wire.forget_receiver(other, place);
            let now = self.cores.now(place);
            if was_engaged || self.waits_for_credit(other) {
                self.wake(other, now);
            }
        }
    }

    /// Takes `place` away. What it has written arrives; then the others are told, unless it had left.
    pub(crate) fn kill(&mut self, place: PlaceId) {
        let site = &mut self.sites[place.index()];
        if !std::mem::replace(&mut site.alive, false) {
            return;
        }
        // Credit may still come; nobody waits for it any more.
        site.parked = false;
        let left = site.left;
        self.turns.remove(place.0);
        let everyone = (0..self.sites.len() as u32).map(PlaceId);
        let engaged: Vec<_> = everyone.filter(|other| self.is_engaged(*other)).collect();
        self.wire.cut(place);
        if left {
            // Nobody is told; but who stands in a call on account of it looks again.
            let now = self.cores.now(place);
            engaged.into_iter().for_each(|other| self.wake(other, now));
        } else {
            self.tell_of_death(place);
        }
    }

    /// Lets all others know, after a while, that `place` is dead.
    fn tell_of_death(&mut self, place: PlaceId) {
        let known = self.cores.now(place) + NOTICE;
        for other in (0..self.sites.len() as u32).map(PlaceId) {
            if self.is_alive(other) {
                self.sites[other.index()].notices.insert(place, Notice { known, delivered: false });
                self.wake(other, known);
            }
        }
    }

    pub(crate) fn report(&self) -> Report {
        let places = (0..self.sites.len() as u32).map(PlaceId);
        Report {
            time: self.cores.now(PlaceId(0)),
            messages: self.messages,
            bytes: self.bytes,
            lines: self.cores.lines(),
            by_class: self.cores.by_class,
            fetched: self.cores.lines_fetched(),
            flit_hops: self.cores.flit_hops(),
            digest: self.digest,
            cores: self.cores.seating().cores().to_vec(),
            ledgers: places.map(|place| self.cores.ledger(place)).collect(),
            shifts: self.cores.shifts,
            stale: self.shared.as_ref().map(Shared::stale),
            energy: self.cores.energy(),
        }
    }
}
