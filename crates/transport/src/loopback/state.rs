//! Messages in flight in a simulated world, and the state of each place.
//!
//! A plain state machine, shared by the world and its endpoints; it calls no one. Each place has one lane for each
//! other place and class; only the head of a lane can be delivered, which keeps the order. Invariant: `heads` of a site
//! holds exactly the heads of its lanes that are not empty.

use super::memory::{AlignedBytes, LoopbackBlock};
use super::plan::Plan;
use crate::random::{Random, scramble};
use crate::{Class, Death, HandlerId, Inbound, PlaceId, SendError};
use isles_protocol::ordered::{OrderedMap, OrderedSet};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The bytes of a message in flight.
pub(super) enum MessageContent {
    Inline(AlignedBytes),
    Block(LoopbackBlock),
}

impl MessageContent {
    fn bytes(&self) -> &[u8] {
        match self {
            MessageContent::Inline(content) => content.bytes(),
            MessageContent::Block(block) => crate::BlockMemory::bytes(block),
        }
    }
}

/// One message in flight.
pub(super) struct InFlightMessage {
    pub(super) source: PlaceId,
    pub(super) class: Class,
    pub(super) handler: HandlerId,
    pub(super) content: MessageContent,
    ready_step: u64,
}

/// A delivery to a place.
pub(super) enum Delivery {
    InFlightMessage(InFlightMessage),
    Died(PlaceId),
}

/// Inverse of the probability, in each draw, that a send gives up waiting.
const WAITS: usize = 8;

/// The sender and the class of a lane.
type LaneKey = (PlaceId, u8);

/// Notice of a death for one other place.
struct DeathNotice {
    known_step: u64,
    delivered: bool,
}

/// One place as the world sees it.
struct PlaceStatus {
    alive: bool,
    /// True if it has left: its end loses nothing and is not reported.
    left: bool,
    /// Place that declared it dead, if it did not die by itself.
    condemned_by: Option<PlaceId>,
    lanes: OrderedMap<LaneKey, VecDeque<InFlightMessage>>,
    heads: OrderedSet<(u64, LaneKey)>,
    notices: OrderedMap<PlaceId, DeathNotice>,
    /// Receivers and classes of sends since its last turn that found no room.
    refused: OrderedSet<LaneKey>,
    /// True if a block of it was refused for lack of memory since its last turn.
    blocks_refused: bool,
    /// Number of blocks that it sent and that are not dropped yet, by receiver.
    live_blocks: OrderedMap<PlaceId, Rc<Cell<usize>>>,
}

/// Event for the digest; the numbers are part of it.
#[derive(Clone, Copy)]
pub(super) enum Event {
    Chosen = 1,
    Advanced,
    Sent,
    Refused,
    Delivery,
    Killed,
    DeathDelivered,
}

pub(super) struct State {
    pub(super) plan: Plan,
    pub(super) step: u64,
    pub(super) digest: u64,
    pub(super) random: Random,
    sites: Vec<PlaceStatus>,
    /// Places that wait in the middle of a turn; none of them is killed before its turn continues.
    waiting: Vec<PlaceId>,
}

fn lane_key(source: PlaceId, class: Class) -> LaneKey {
    (source, class as u8)
}

impl State {
    pub(super) fn new(places: u32, plan: Plan) -> State {
        let site = |_| PlaceStatus {
            alive: true,
            left: false,
            condemned_by: None,
            lanes: OrderedMap::new(),
            heads: OrderedSet::new(),
            notices: OrderedMap::new(),
            refused: OrderedSet::new(),
            blocks_refused: false,
            live_blocks: OrderedMap::new(),
        };
        let random = Random::new(plan.seed);
        let sites = (0..places).map(site).collect();
        State { step: 0, digest: plan.seed, random, sites, plan, waiting: Vec::new() }
    }

    pub(super) fn record(&mut self, event: Event, who: PlaceId, what: u64) {
        let head = (event as u64) << 32 | u64::from(who.0);
        self.digest = scramble(scramble(self.digest ^ head).wrapping_add(self.step) ^ scramble(what));
    }

    pub(super) fn is_alive(&self, place: PlaceId) -> bool {
        self.sites[place.index()].alive
    }

    /// Returns `true` if `here` knows that `place` is dead; to a dead place all others are dead.
    pub(super) fn is_dead(&self, here: PlaceId, place: PlaceId) -> bool {
        let site = &self.sites[here.index()];
        let known = site.notices.get(place).is_some_and(|notice| notice.known_step <= self.step);
        known || (!site.alive && here != place)
    }

    /// Returns `true` if `place` receives no more messages, as far as `here` knows.
    fn is_closed(&self, here: PlaceId, place: PlaceId) -> bool {
        self.is_dead(here, place) || self.sites[place.index()].left
    }

    pub(super) fn leave(&mut self, here: PlaceId) {
        self.sites[here.index()].left = true;
    }

    /// Checks that a message from `here` to `to` can be sent now; notes a refusal.
    pub(super) fn admit(&mut self, here: PlaceId, to: PlaceId, class: Class) -> Result<(), SendError> {
        assert!(!self.sites[here.index()].left, "{here} sends although it has left");
        if self.is_closed(here, to) {
            return Err(SendError::DeadPlace(to));
        }
        if !self.has_room(here, to, class as u8) {
            self.sites[here.index()].refused.insert(lane_key(to, class));
            self.record(Event::Refused, here, u64::from(to.0));
            return Err(SendError::Full);
        }
        Ok(())
    }

    /// As `admit`, for a block.
    pub(super) fn admit_block(&mut self, here: PlaceId, to: PlaceId, class: Class) -> Result<(), SendError> {
        self.admit(here, to, class)?;
        if self.live_blocks(here) >= self.plan.blocks_max {
            self.sites[here.index()].blocks_refused = true;
            self.record(Event::Refused, here, u64::from(to.0));
            return Err(SendError::Full);
        }
        Ok(())
    }

    /// Returns the number of blocks that `place` sent and that are not dropped yet.
    pub(super) fn live_blocks(&self, place: PlaceId) -> usize {
        self.sites[place.index()].live_blocks.values().map(|live| live.get()).sum()
    }

    /// Returns the count of the blocks that `place` sent to `to` and that are not dropped yet.
    pub(super) fn live_blocks_to(&mut self, place: PlaceId, to: PlaceId) -> &Rc<Cell<usize>> {
        self.sites[place.index()].live_blocks.get_or_default(to)
    }

    /// Puts an admitted message in flight.
    pub(super) fn post(
        &mut self,
        here: PlaceId,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        content: MessageContent,
    ) {
        let content_digest = content.bytes().chunks(8).fold(u64::from(handler.0), |sum, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            sum.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from_le_bytes(word)
        });
        self.record(
            Event::Sent,
            here,
            u64::from(to.0) ^ scramble(content_digest ^ content.bytes().len() as u64),
        );
        let delay = self.random.within(&self.plan.lane(class).delay_steps);
        let message =
            InFlightMessage { source: here, class, handler, content, ready_step: self.step + delay };
        let (site, key) = (&mut self.sites[to.index()], lane_key(here, class));
        let lane = site.lanes.get_or_default(key);
        if lane.is_empty() {
            site.heads.insert((message.ready_step, key));
        }
        lane.push_back(message);
    }

    /// Returns the number of arrivals this call of `progress` may deliver.
    pub(super) fn batch(&mut self) -> usize {
        let max = self.plan.batch_max;
        if self.plan.reorder { 1 + self.random.index(max) } else { max }
    }

    /// Takes one arrival for `here`.
    pub(super) fn take(&mut self, here: PlaceId, inbound: Inbound) -> Option<Delivery> {
        let site = &self.sites[here.index()];
        if !site.alive {
            return None;
        }
        if let Some(dead) = site.deliverable_death(self.step) {
            self.sites[here.index()].notices.get_mut(dead)?.delivered = true;
            self.record(Event::DeathDelivered, here, u64::from(dead.0));
            return Some(Delivery::Died(dead));
        }
        let wanted =
            |(_, (_, class)): &(u64, LaneKey)| inbound == Inbound::All || *class == Class::Control as u8;
        let ready = || site.heads.up_to((self.step, (PlaceId(u32::MAX), u8::MAX))).filter(wanted);
        let count = ready().count();
        if count == 0 {
            return None;
        }
        let index = if self.plan.reorder { self.random.index(count) } else { 0 };
        let (ready_step, key) = ready().nth(index)?;
        let message = self.sites[here.index()].pop(ready_step, key)?;
        self.record(Event::Delivery, here, u64::from(message.source.0) << 1 | message.class as u64);
        Some(Delivery::InFlightMessage(message))
    }

    /// Returns the oldest message of a lane, if it has arrived.
    pub(super) fn first(&self, here: PlaceId, source: PlaceId, class: Class) -> Option<&InFlightMessage> {
        let site = &self.sites[here.index()];
        let first = site.lanes.get(lane_key(source, class)).filter(|_| site.alive)?.front()?;
        (first.ready_step <= self.step).then_some(first)
    }

    /// Takes the message that [`State::first`] returns.
    pub(super) fn take_first(&mut self, here: PlaceId, source: PlaceId, class: Class) {
        if let Some(ready_step) = self.first(here, source, class).map(|first| first.ready_step) {
            self.sites[here.index()].pop(ready_step, lane_key(source, class));
            self.record(Event::Delivery, here, u64::from(source.0) << 1 | class as u64);
        }
    }

    /// Cuts `place` off: of its messages in flight, a drawn prefix of each lane still arrives.
    pub(super) fn kill(&mut self, place: PlaceId) {
        if !self.is_alive(place) {
            return;
        }
        self.record(Event::Killed, place, 0);
        self.sites[place.index()].alive = false;
        if !self.sites[place.index()].left {
            self.drop_messages_from(place);
            self.announce_death_of(place);
        }
        self.drop_messages_to_dead();
    }

    /// Cuts `place` off because of a message to `here`, which knows of the death at once and receives nothing more from
    /// it.
    pub(super) fn declare_dead(&mut self, here: PlaceId, place: PlaceId) {
        if !self.is_alive(place) {
            return;
        }
        self.sites[place.index()].condemned_by = Some(here);
        self.kill(place);
        let (step, site) = (self.step, &mut self.sites[here.index()]);
        site.shorten(lane_key(place, Class::Control), 0);
        site.shorten(lane_key(place, Class::Data), 0);
        if let Some(notice) = site.notices.get_mut(place) {
            notice.known_step = step;
        }
    }

    /// Returns the cause of death of `place`, which is dead.
    pub(super) fn cause(&self, place: PlaceId) -> Death {
        match self.sites[place.index()].condemned_by {
            Some(witness) => {
                Death::Corrupt(format!("a message that no sound place sends, seen by {witness}"))
            }
            None => Death::Ended,
        }
    }

    fn drop_messages_from(&mut self, place: PlaceId) {
        for site in &mut self.sites {
            for key in [lane_key(place, Class::Control), lane_key(place, Class::Data)] {
                let len = site.lanes.get(key).map_or(0, VecDeque::len);
                site.shorten(key, self.random.index(len + 1));
            }
        }
    }

    fn announce_death_of(&mut self, place: PlaceId) {
        for site in self.sites.iter_mut().filter(|site| site.alive) {
            let known_step = self.step + self.random.within(&self.plan.notice_steps);
            site.notices.insert(place, DeathNotice { known_step, delivered: false });
        }
    }

    /// Advances the world to `step`: planned deaths happen, and known deaths free the messages sent to the dead.
    pub(super) fn move_to(&mut self, step: u64) {
        self.step = step;
        let is_due = |loss: &super::PlannedDeath| loss.step <= step && !self.waiting.contains(&loss.place);
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.plan.losses).into_iter().partition(is_due);
        self.plan.losses = later;
        due.iter().for_each(|loss| self.kill(loss.place));
        self.drop_messages_to_dead();
    }

    /// Draws whether a send that found no room waits, or continues to wait.
    pub(super) fn waits_on(&mut self) -> bool {
        self.plan.sends_wait && self.random.index(WAITS) > 0
    }

    /// Suspends the turn of `place` until [`State::resume`].
    pub(super) fn suspend(&mut self, place: PlaceId) {
        self.waiting.push(place);
    }

    /// Resumes the turn that was suspended last.
    pub(super) fn resume(&mut self) {
        self.waiting.pop();
    }

    /// Starts a turn of `place`: earlier refusals are forgotten.
    pub(super) fn start_turn(&mut self, place: PlaceId) {
        let site = &mut self.sites[place.index()];
        site.refused = OrderedSet::new();
        site.blocks_refused = false;
    }

    /// Returns `true` if something can be delivered to `place` now.
    pub(super) fn has_arrival(&self, place: PlaceId) -> bool {
        let site = &self.sites[place.index()];
        let ready = site.heads.first().is_some_and(|(ready_step, _)| ready_step <= self.step);
        site.alive && (ready || site.deliverable_death(self.step).is_some())
    }

    /// Returns `true` if a send that was refused since the last turn of `place` would now have another result.
    pub(super) fn has_new_send_result(&self, place: PlaceId) -> bool {
        let site = &self.sites[place.index()];
        let changed = |(to, class): LaneKey| self.is_closed(place, to) || self.has_room(place, to, class);
        let block = site.blocks_refused && self.live_blocks(place) < self.plan.blocks_max;
        block || site.refused.iter().any(changed)
    }

    /// Returns the number of messages and death notices that living places have not taken yet.
    pub(super) fn in_flight(&self) -> usize {
        let count = |site: &PlaceStatus| {
            let messages: usize = site.lanes.values().map(VecDeque::len).sum();
            messages + site.notices.values().filter(|notice| !notice.delivered).count()
        };
        self.sites.iter().filter(|site| site.alive).map(count).sum()
    }

    /// Returns the next step, after the present one, at which something happens by itself.
    pub(super) fn next_change(&self) -> Option<u64> {
        let living = || self.sites.iter().filter(|site| site.alive);
        let messages = living().flat_map(|site| site.heads.iter().map(|(ready_step, _)| ready_step));
        let deaths = living().flat_map(|site| site.notices.values().map(|notice| notice.known_step));
        let losses = self.plan.losses.iter().map(|loss| loss.step);
        let stops = self.plan.stops.iter().filter(|stop| stop.steps.contains(&self.step));
        let stops = stops
            .filter(|stop| self.sites.get(stop.place.index()).is_some_and(|site| site.alive))
            .map(|stop| stop.steps.end);
        messages.chain(deaths).chain(losses).chain(stops).filter(|step| *step > self.step).min()
    }

    /// Returns `true` if `place` gets no turn now.
    pub(super) fn is_stopped(&self, place: PlaceId) -> bool {
        self.plan.stops.iter().any(|stop| stop.place == place && stop.steps.contains(&self.step))
    }

    fn has_room(&self, here: PlaceId, to: PlaceId, class: u8) -> bool {
        let lane = if class == Class::Control as u8 { &self.plan.control } else { &self.plan.data };
        self.sites[to.index()].lanes.get((here, class)).map_or(0, VecDeque::len) < lane.capacity
    }

    /// Drops the messages to dead places of senders that know of the death, and restores the credit of blocks that the
    /// dead had taken, which nobody will drop. Until then the messages fill the lane as if nothing had happened.
    fn drop_messages_to_dead(&mut self) {
        let dead: Vec<usize> = (0..self.sites.len()).filter(|&index| !self.sites[index].alive).collect();
        for index in dead {
            for source in (0..self.sites.len() as u32).map(PlaceId) {
                if self.is_closed(source, PlaceId(index as u32)) {
                    self.sites[index].shorten(lane_key(source, Class::Control), 0);
                    self.sites[index].shorten(lane_key(source, Class::Data), 0);
                    self.sites[source.index()].live_blocks.remove(PlaceId(index as u32));
                }
            }
        }
    }
}

impl PlaceStatus {
    fn pop(&mut self, ready_step: u64, key: LaneKey) -> Option<InFlightMessage> {
        self.heads.remove((ready_step, key));
        let lane = self.lanes.get_mut(key)?;
        let message = lane.pop_front();
        if let Some(next) = lane.front() {
            self.heads.insert((next.ready_step, key));
        }
        message
    }

    /// Drops all but the first `kept` messages of a lane.
    fn shorten(&mut self, key: LaneKey, kept: usize) {
        let Some(lane) = self.lanes.get_mut(key) else { return };
        if let (Some(first), 0) = (lane.front(), kept) {
            self.heads.remove((first.ready_step, key));
        }
        lane.truncate(kept);
    }

    /// Returns a known death that is not delivered yet, once no message of the dead place is left.
    fn deliverable_death(&self, step: u64) -> Option<PlaceId> {
        let drained = |place: PlaceId| {
            [Class::Control, Class::Data]
                .iter()
                .all(|class| self.lanes.get(lane_key(place, *class)).is_none_or(VecDeque::is_empty))
        };
        let due = |(place, notice): &(PlaceId, &DeathNotice)| {
            !notice.delivered && notice.known_step <= step && drained(*place)
        };
        self.notices.iter().find(due).map(|(place, _)| place)
    }
}
