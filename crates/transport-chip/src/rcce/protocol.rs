//! What the world asks of this protocol: who may send, who looks, what is taken, what ends with a place.
//!
//! What passes in a meeting is in `rendezvous`, what a place does that waits for one in `blocking_send`; here is which
//! of them has its turn. Invariant: a place that stands in a call takes nothing for itself.

use super::register::look_at_registers;
use super::{LIBRARY, Rcce};
use crate::cores::Cores;
use crate::message::{MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, ProtocolModel, Wakeups};
use crate::report::TimeCategory;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

impl ProtocolModel for Rcce {
    fn message_bytes_max(&self, _class: Class) -> usize {
        (self.division.chunk_lines * self.division.line_bytes) as usize
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, _len: usize) -> bool {
        let sending = self.place_states[out.from.index()].sending.as_ref();
        let is_under_way = sending.is_some_and(|rest| (rest.target, rest.class) == (out.to, out.class));
        self.blocking_sends.admits(out, cores.present()) && !is_under_way
    }

    fn can_begin_block(&mut self, cores: &mut Cores, out: &Outgoing) -> bool {
        self.has_room(cores, out, 0)
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: MessageContent) -> Option<Picoseconds> {
        self.post(cores, out, load)
    }

    fn begin_block(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        block: MessageContent,
        wakeups: &mut Wakeups,
    ) {
        wakeups.extend(self.post(cores, out, block).map(|arrival| (out.to, arrival)));
    }

    fn has_blocking_sends(&self) -> bool {
        true
    }

    fn is_blocked_in_send(&self, place: PlaceId) -> bool {
        self.place_states[place.index()].is_in_rendezvous() || !self.blocking_sends.of(place).is_empty()
    }

    fn has_pending_blocks(&self, place: PlaceId) -> bool {
        self.place_states[place.index()].sending.is_some() || !self.blocking_sends.of(place).is_empty()
    }

    fn make_progress(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.send_on(cores, place, wakeups);
        self.receive_on(cores, place);
        self.stand(cores, place, wakeups);
        self.blocking_sends.drain_wakeups(place, wakeups);
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        let present = cores.present();
        self.blocking_sends.of_mut(place).expire(present);
        cores.read_own_lines(place, self.flag_lines(), TimeCategory::Polling);
        cores.compute(place, self.poll_cycles, TimeCategory::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds {
        if self.place_states[place.index()].is_in_rendezvous() {
            return cores.own_read(place, 1) + cores.cycles(place, LIBRARY.look);
        }
        if let Some(out) = self.blocking_sends.of(place).next() {
            return look_at_registers(cores, &out);
        }
        let registers = if with_credits { cores.register(place, place) * 2 } else { Picoseconds::ZERO };
        cores.own_read(place, self.flag_lines()) + cores.cycles(place, self.poll_cycles) + registers
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        let place_state = &self.place_states[place.index()];
        if place_state.sending.is_some() {
            return None;
        }
        let kept = self.blocking_sends.kept.first_arrival(place).filter(|_| !self.is_blocked_in_send(place));
        place_state.chunk.as_ref().map(|chunk| chunk.key.time()).into_iter().chain(kept).min()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        let place_state = &self.place_states[place.index()];
        match &place_state.sending {
            Some(rest) => rest.answer,
            None => self.blocking_sends.of(place).due().filter(|_| !place_state.receiving),
        }
    }

    fn has_pending_from(&self, source: PlaceId, place: PlaceId) -> bool {
        let place_state = &self.place_states[place.index()];
        let has_chunk = place_state.chunk.as_ref().is_some_and(|chunk| chunk.source == source);
        has_chunk || self.blocking_sends.kept.has_from(source, place)
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
        let chunk = self.place_state(place).chunk.take_if(|chunk| chunk.key.time() <= until)?;
        let message = self.receive(cores, place, chunk);
        Some(message.and_then(|message| self.blocking_sends.accept_or_defer(place, message, control_only)))
    }

    fn drain_wakeups(&mut self, place: PlaceId, wakeups: &mut Wakeups) {
        self.blocking_sends.drain_wakeups(place, wakeups);
    }

    fn return_credits(&mut self, _cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.blocking_sends.drain_wakeups(place, wakeups);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        self.abort_rendezvous(place, gone);
        if self.blocking_sends.of(place).next().is_some_and(|out| out.to == gone) {
            self.line.leave(place);
        }
        self.blocking_sends.of_mut(place).forget(gone);
        for place in [place, gone] {
            self.blocking_sends.of_mut(place).may_try(Picoseconds::ZERO); // what stood before it may be dropped
        }
        self.blocking_sends.kept.forget_receiver(place, gone);
    }

    /// Who wants to meet `gone` finds its register free, and is let go as soon as it has written.
    fn abort_place(&mut self, gone: PlaceId) {
        let sending = self.place_state(gone).sending.take().filter(|rest| !rest.is_over());
        // What it has written arrives if it is the last of its message; else the receiver is let go.
        if let Some(target) = sending.map(|rest| rest.target)
            && !self.place_state(target).holds_end_from(gone)
        {
            self.place_state(target).chunk = None;
            self.place_state(target).receiving = false;
            self.release(target, Picoseconds::ZERO, target);
        }
        let senders = (0..self.place_states.len() as u32).map(PlaceId);
        for place in senders.filter(|place| *place != gone) {
            self.abort_rendezvous(place, gone);
            self.blocking_sends.kept.forget_receiver(place, gone);
        }
        self.blocking_sends.of_mut(gone).clear();
        if self.line.leave(gone) {
            let behind: Vec<_> = self.line.places().collect();
            behind.into_iter().for_each(|place| self.blocking_sends.of_mut(place).may_try(Picoseconds::ZERO));
        }
        self.blocking_sends.kept.clear(gone);
        self.release(gone, Picoseconds::ZERO, gone);
    }
}
