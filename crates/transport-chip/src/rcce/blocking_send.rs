//! What a place does that stands in a send until it has the registers.
//!
//! Why nobody waits for ever is in `docs/design/chip-protocols.md`. Invariant: a place keeps one message of each sender
//! and class at most, because senders ask before they send.

use super::Rcce;
use super::place_state::Chunk;
use super::rendezvous::set_flag;
use crate::cores::Cores;
use crate::message::{MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, ProtocolModel, Wakeups};
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

impl Rcce {
    /// Whether a chunk has come for a place.
    fn has_chunk(&self, place: PlaceId, present: Picoseconds) -> bool {
        self.place_states[place.index()].chunk.as_ref().is_some_and(|chunk| chunk.key.time() <= present)
    }

    /// Receives what has come for who wants to send, so that its register is free again; it is wanted later.
    fn clear_the_way(&mut self, cores: &mut Cores, place: PlaceId) {
        let present = cores.present();
        let Some(chunk) = self.place_state(place).chunk.take_if(|chunk| chunk.key.time() <= present) else {
            return;
        };
        self.take_in(cores, place, chunk);
    }

    /// Receives what is not wanted yet.
    pub(super) fn take_in(&mut self, cores: &mut Cores, place: PlaceId, chunk: Chunk) {
        let message = self.receive(cores, place, chunk);
        message.into_iter().for_each(|message| self.blocking_sends.kept.put(place, message));
    }

    /// Sends a message, or the place stands in its send from now on. Gives when the first chunk arrives.
    pub(super) fn post(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        load: MessageContent,
    ) -> Option<Picoseconds> {
        if !self.is_blocked_in_send(out.from) {
            self.clear_the_way(cores, out.from);
            if !self.place_state(out.from).receiving && self.can_begin_rendezvous(cores, out) {
                return Some(self.begin(cores, out, load));
            }
        }
        self.blocking_sends.of_mut(out.from).push(out, load);
        None
    }

    /// Looks, for who stands in a send, whether the next meeting can begin; receives before what has come for it.
    pub(super) fn stand(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        let next = self.blocking_sends.of(place).next();
        let Some(out) = next.filter(|_| !self.place_states[place.index()].is_in_rendezvous()) else { return };
        if self.has_chunk(place, cores.present()) {
            self.poll(cores, place);
            self.clear_the_way(cores, place);
        }
        if !self.place_states[place.index()].receiving
            && self.can_begin_rendezvous(cores, &out)
            && let Some((out, load)) = self.blocking_sends.of_mut(place).pop()
        {
            wakeups.push((out.to, self.begin(cores, &out, load)));
        }
    }

    /// A message that was kept and is wanted now; its sender hears that it may send another one.
    pub(super) fn take_deferred(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        control_only: bool,
    ) -> Option<ReceivedMessage> {
        self.blocking_sends.take_deferred(place, control_only, |source| {
            set_flag(cores, place, source);
            cores.now(place)
        })
    }
}
