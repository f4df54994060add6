//! What the world asks of these protocols: who may send, who looks, what is taken, what ends with a place.
//!
//! How a chunk passes is in `transfer`, what a place does that stands in a send in `blocking_send`; here is which of
//! them has its turn. Invariant: a place that stands in a send takes nothing for itself.

use super::{Chunks, Handshake};
use crate::cores::Cores;
use crate::message::{MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, ProtocolModel, Wakeups};
use crate::report::TimeCategory;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

impl<H: Handshake> ProtocolModel for Chunks<H> {
    fn message_bytes_max(&self, class: Class) -> usize {
        self.handshake.message_bytes_max(class)
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, _len: usize) -> bool {
        let lane = self.lane_out(out);
        if !H::WAITS {
            return self.becomes_free(cores, lane);
        }
        let is_under_way = self.own_parts(out.from).any(|held| held.lane == lane);
        self.blocking_sends.admits(out, cores.present()) && !is_under_way
    }

    fn can_begin_block(&mut self, cores: &mut Cores, out: &Outgoing) -> bool {
        self.has_room(cores, out, 0)
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: MessageContent) -> Option<Picoseconds> {
        if self.is_blocked_in_send(out.from) {
            self.blocking_sends.of_mut(out.from).push(out, load);
            return None;
        }
        Some(self.begin(cores, out, load))
    }

    fn begin_block(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        block: MessageContent,
        wakeups: &mut Wakeups,
    ) {
        wakeups.extend(self.send(cores, out, block).map(|arrival| (out.to, arrival)));
    }

    fn has_blocking_sends(&self) -> bool {
        H::WAITS
    }

    fn is_blocked_in_send(&self, place: PlaceId) -> bool {
        H::WAITS && (self.own_parts(place).next().is_some() || !self.blocking_sends.of(place).is_empty())
    }

    fn has_pending_blocks(&self, place: PlaceId) -> bool {
        !self.place_states[place.index()].streams.is_empty() || !self.blocking_sends.of(place).is_empty()
    }

    fn make_progress(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        if self.is_blocked_in_send(place) {
            self.serve(cores, place, wakeups);
        }
        self.read_answers(cores, place, self.awaited(place));
        for lane in self.place_states[place.index()].streams.clone() {
            let target = self.route_of(lane).target;
            wakeups.extend(self.push(cores, lane).map(|arrival| (target, arrival)));
        }
        self.send_next(cores, place, wakeups);
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        if H::POLL_SEES_ANSWERS {
            self.read_answers(cores, place, self.flag_lines());
        } else {
            cores.read_own_lines(place, self.flag_lines(), TimeCategory::Polling);
        }
        cores.compute(place, self.poll_cycles, TimeCategory::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds {
        let answers = if with_credits { self.awaited(place) } else { 0 };
        cores.own_read(place, self.flag_lines() + answers) + cores.cycles(place, self.poll_cycles)
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        let kept = self.blocking_sends.kept.first_arrival(place).filter(|_| !self.is_blocked_in_send(place));
        let heads = &self.place_states[place.index()].heads;
        heads.first().map(|(key, _)| key.time()).into_iter().chain(kept).min()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        let answers = &self.place_states[place.index()].answers;
        let due = if self.is_blocked_in_send(place) {
            self.resumes(place)
        } else {
            self.blocking_sends.of(place).due()
        };
        answers.iter().map(|(arrival, _)| *arrival).chain(due).min()
    }

    fn has_pending_from(&self, source: PlaceId, place: PlaceId) -> bool {
        self.blocking_sends.kept.has_from(source, place)
            || self.pairs.both(source, place).into_iter().any(|lane| self.lanes[lane].arriving.is_some())
    }

    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<ReceivedMessage>> {
        if self.is_blocked_in_send(place) {
            return None;
        }
        if let Some(message) = self.take_deferred(cores, place, control_only) {
            return Some(Some(message));
        }
        let fetched = self.fetch(cores, place, until, control_only && !H::WAITS)?;
        Some(fetched.and_then(|message| self.blocking_sends.accept_or_defer(place, message, control_only)))
    }

    /// All is answered already, chunk by chunk.
    fn return_credits(&mut self, _cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.blocking_sends.drain_wakeups(place, wakeups);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        self.blocking_sends.of_mut(place).forget(gone);
        self.blocking_sends.kept.forget_receiver(place, gone);
        for lane in self.pairs.both(place, gone) {
            self.lanes[lane].rest = None;
            let part = self.part_of(lane);
            if self.held[part].is_some_and(|held| held.lane == lane) {
                self.held[part] = None;
            }
            let place_state = &mut self.place_states[place.index()];
            place_state.streams.retain(|other| *other != lane);
            place_state.answers.retain(|(_, other)| *other != lane);
            // A place that stands in its last send would answer for it.
            self.lanes[lane].arriving = None;
            self.place_states[gone.index()].heads.retain(|(_, other)| *other != lane);
        }
    }

    fn abort_place(&mut self, gone: PlaceId) {
        for lane in std::mem::take(&mut self.place_states[gone.index()].streams) {
            self.lanes[lane].rest = None;
        }
        self.blocking_sends.kept.clear(gone);
        self.blocking_sends.of_mut(gone).clear();
        for (_, lane) in std::mem::take(&mut self.place_states[gone.index()].heads) {
            self.lanes[lane].arriving = None;
        }
        if H::WAITS {
            // Who stands in a send to it is let go.
            let senders = (0..self.place_states.len() as u32).map(PlaceId);
            senders.filter(|place| *place != gone).for_each(|place| self.forget_receiver(place, gone));
        }
    }
}
