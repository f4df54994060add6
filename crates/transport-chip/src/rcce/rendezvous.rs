//! A meeting: from the registers taken, one chunk and its answer after the other, to the registers free.
//!
//! It does not know who may meet, nor when: that is in `register`. Invariant: a chunk is put only when the one before
//! it is answered.

use super::place_state::{Chunk, PartialSend};
use super::register::look_at_registers;
use super::{LIBRARY, Rcce};
use crate::cores::Cores;
use crate::message::{MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, Wakeups};
use crate::report::TimeCategory;
use isles_chip::cache::StorePolicy;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

impl Rcce {
    /// Takes both registers and sends the first chunk; gives when that arrives.
    pub(super) fn begin(&mut self, cores: &mut Cores, out: &Outgoing, load: MessageContent) -> Picoseconds {
        let Outgoing { from, to, class, handler } = *out;
        cores.spend(from, look_at_registers(cores, out), TimeCategory::Handling);
        for place in [from, to] {
            self.place_state(place).taken = true;
        }
        let lines = load.len().div_ceil(self.division.line_bytes as usize) as u32;
        cores.compute(from, self.tail(&load), TimeCategory::Handling);
        let sending = PartialSend { target: to, class, handler, load, left: lines };
        self.put(cores, from, sending)
    }

    /// Puts the next chunk of a message and sets the flag; gives when that arrives.
    fn put(&mut self, cores: &mut Cores, place: PlaceId, mut sending: PartialSend) -> Picoseconds {
        let lines = sending.left.min(self.division.chunk_lines);
        sending.left -= lines;
        copy(cores, place, lines);
        cores.load_private(place, lines, sending.load.len());
        cores.write_lines(place, place, lines);
        set_flag(cores, place, sending.target);
        let (arrival, target) = (cores.now(place), sending.target);
        let key = self.tie_break.key(arrival, EventClass::Arrival, place.0, 0);
        let (chunk, rest) = sending.split(key, place, lines);
        self.place_state(target).chunk = Some(chunk);
        self.place_state(place).sending = Some(rest);
        arrival
    }

    /// The sender's part of a meeting, if the answer had come when the turn began.
    pub(super) fn send_on(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        let Some(rest) = &self.place_states[place.index()].sending else { return };
        cores.compute(place, LIBRARY.look, TimeCategory::Polling);
        cores.read_own_lines(place, 1, TimeCategory::Polling);
        let seen = cores.present();
        if rest.answer.is_none_or(|answer| answer > seen) {
            return;
        }
        set_flag(cores, place, place); // clears it
        let Some(rest) = self.place_state(place).sending.take() else { return };
        if let Some(sending) = rest.going_on() {
            let target = sending.target;
            wakeups.push((target, self.put(cores, place, sending)));
        }
    }

    /// Takes a chunk in; the message, if it was the last of it.
    pub(super) fn receive(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        chunk: Chunk,
    ) -> Option<ReceivedMessage> {
        self.get(cores, place, &chunk);
        let Some(message) = chunk.open() else {
            self.place_state(place).receiving = true;
            return None;
        };
        cores.compute(place, self.tail(&message.load), TimeCategory::Handling);
        // Both: the sender has nothing more to wait for.
        for owner in [place, message.source] {
            cores.spend(place, cores.register(place, owner), TimeCategory::Handling);
            self.release(owner, cores.now(place), place);
        }
        Some(message)
    }

    /// Takes the chunk of a receiver and answers for it.
    fn get(&mut self, cores: &mut Cores, place: PlaceId, chunk: &Chunk) {
        set_flag(cores, place, place); // clears it
        copy(cores, place, chunk.lines);
        cores.read_lines(place, chunk.source, chunk.lines, TimeCategory::Copying);
        cores.store_private(place, chunk.lines, chunk.of, StorePolicy::Storing);
        set_flag(cores, place, chunk.source);
        let answer = cores.now(place);
        self.blocking_sends.answer(place, chunk.source, answer);
        if let Some(rest) = &mut self.place_state(chunk.source).sending {
            rest.answer = Some(answer);
        }
    }

    /// What the end of a message costs each side if it is no whole line.
    fn tail(&self, load: &MessageContent) -> u64 {
        if load.len().is_multiple_of(self.division.line_bytes as usize) { 0 } else { LIBRARY.tail }
    }

    /// The receiver's part of a meeting between the first chunk and the last one, which it takes in its own turn if it
    /// does not stand in a send.
    pub(super) fn receive_on(&mut self, cores: &mut Cores, place: PlaceId) {
        if !self.place_states[place.index()].receiving {
            return;
        }
        cores.compute(place, LIBRARY.look, TimeCategory::Polling);
        cores.read_own_lines(place, 1, TimeCategory::Polling);
        let seen = cores.present();
        let Some(chunk) = self.place_state(place).chunk.take_if(|chunk| chunk.key.time() <= seen) else {
            return;
        };
        if chunk.message.is_none() {
            self.get(cores, place, &chunk);
            return;
        }
        self.place_state(place).receiving = false;
        if self.blocking_sends.of(place).is_empty() {
            self.place_state(place).chunk = Some(chunk);
        } else {
            self.take_in(cores, place, chunk);
        }
    }

    /// Ends the meeting in which `place` sends to `gone`, if there is one.
    pub(super) fn abort_rendezvous(&mut self, place: PlaceId, gone: PlaceId) {
        let sending = &mut self.place_states[place.index()].sending;
        if sending.take_if(|rest| rest.target == gone && !rest.is_over()).is_none() {
            return;
        }
        (self.place_state(gone).chunk, self.place_state(gone).receiving) = (None, false);
        for owner in [place, gone] {
            self.release(owner, Picoseconds::ZERO, place);
        }
        self.blocking_sends.of_mut(place).may_try(Picoseconds::ZERO); // what it sends next
    }
}

/// The call that writes a flag, and its line.
pub(super) fn set_flag(cores: &mut Cores, place: PlaceId, of: PlaceId) {
    cores.compute(place, LIBRARY.call, TimeCategory::Handling);
    cores.write_lines(place, of, 1);
}

/// The call that puts or gets lines, beside their accesses; the published ones hold those to private lines in a cache.
fn copy(cores: &mut Cores, place: PlaceId, lines: u32) {
    cores.compute(place, LIBRARY.call + LIBRARY.line * u64::from(lines), TimeCategory::Handling);
}
