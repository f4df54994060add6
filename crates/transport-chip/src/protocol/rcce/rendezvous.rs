//! A rendezvous: acquiring the registers, sending and answering chunks, and releasing the registers.
//!
//! [`WaitQueue`] has the places that are blocked in a send without the registers, in the order of arrival. Invariants:
//! a chunk is written only after the previous one is answered; a place that does not get both registers holds none;
//! waiters for the same register get it in order.

use super::{Chunk, LIBRARY, PartialSend, PlaceState, Rcce};
use crate::cores::Cores;
use crate::energy::meter::NEVER;
use crate::protocol::inbox::{MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, Wakeups};
use crate::report::TimeCategory;
use isles_chip::cache::StorePolicy;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

impl Rcce {
    /// Acquires both registers and sends the first chunk; returns its arrival time.
    pub(super) fn begin(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        content: MessageContent,
    ) -> Picoseconds {
        let Outgoing { from, to, class, handler } = *out;
        cores.spend(from, look_at_registers(cores, out), TimeCategory::Handling);
        for place in [from, to] {
            self.place_state(place).taken = true;
        }
        let lines = content.len().div_ceil(self.layout.line_bytes as usize) as u32;
        cores.compute(from, self.tail(&content), TimeCategory::Handling);
        let sending = PartialSend { target: to, class, handler, content, left: lines };
        self.put(cores, from, sending)
    }

    /// Writes the next chunk of a message and sets the flag; returns the arrival time.
    fn put(&mut self, cores: &mut Cores, place: PlaceId, mut sending: PartialSend) -> Picoseconds {
        let lines = sending.left.min(self.layout.chunk_lines);
        sending.left -= lines;
        copy(cores, place, lines);
        cores.load_private(place, lines, sending.content.len());
        cores.write_lines(place, place, lines);
        set_flag(cores, place, sending.target);
        let (arrival, target) = (cores.now(place), sending.target);
        let key = self.tie_break.key(arrival, EventClass::Arrival, place.0, 0);
        let (chunk, rest) = sending.split(key, place, lines);
        self.place_state(target).chunk = Some(chunk);
        self.place_state(place).sending = Some(rest);
        arrival
    }

    /// Continues the sender's part of a rendezvous, if the answer had arrived at the start of the turn.
    pub(super) fn continue_send(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        let Some(rest) = &self.place_states[place.index()].sending else { return };
        cores.compute(place, LIBRARY.look, TimeCategory::Polling);
        cores.read_own_lines(place, 1, TimeCategory::Polling);
        let seen = cores.present();
        if rest.answer.is_none_or(|answer| answer > seen) {
            return;
        }
        set_flag(cores, place, place); // clears it
        let Some(rest) = self.place_state(place).sending.take() else { return };
        if let Some(sending) = rest.remainder() {
            let target = sending.target;
            wakeups.push((target, self.put(cores, place, sending)));
        }
    }

    /// Receives a chunk; returns the message if it was its last chunk.
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
        cores.compute(place, self.tail(&message.content), TimeCategory::Handling);
        // Both registers are released, because the sender has nothing more to wait for.
        for owner in [place, message.source] {
            cores.spend(place, cores.register(place, owner), TimeCategory::Handling);
            self.release(owner, cores.now(place), place);
        }
        Some(message)
    }

    /// Copies the chunk and answers.
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

    /// Returns the cost for each side of a partial last line.
    fn tail(&self, content: &MessageContent) -> u64 {
        if content.len().is_multiple_of(self.layout.line_bytes as usize) { 0 } else { LIBRARY.tail }
    }

    /// Continues the receiver's part of a rendezvous between the first and the last chunk; the last is taken in the
    /// place's own turn unless it is blocked in a send.
    pub(super) fn continue_receive(&mut self, cores: &mut Cores, place: PlaceId) {
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
            self.receive_early(cores, place, chunk);
        }
    }

    /// Aborts the rendezvous in which `place` sends to `gone`, if there is one.
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

/// Charges the library call that writes a flag, and the write of its line.
pub(super) fn set_flag(cores: &mut Cores, place: PlaceId, of: PlaceId) {
    cores.compute(place, LIBRARY.call, TimeCategory::Handling);
    cores.write_lines(place, of, 1);
}

/// Charges the library call that puts or gets lines, without their accesses; the published costs include accesses to
/// private lines in a cache.
fn copy(cores: &mut Cores, place: PlaceId, lines: u32) {
    cores.compute(place, LIBRARY.call + LIBRARY.line * u64::from(lines), TimeCategory::Handling);
}

impl Rcce {
    /// Returns `true` if the rendezvous can start now; otherwise the sender is queued and notified when it can.
    pub(super) fn can_begin_rendezvous(&mut self, cores: &mut Cores, out: &Outgoing) -> bool {
        let (present, Outgoing { from, to, .. }) = (cores.present(), *out);
        self.blocking_sends.of_mut(from).expire(present); // the attempt that it allowed is made now
        let is_behind = self.line.is_behind(from, to);
        let free = self.free_for(from, from).max(self.free_for(from, to));
        if !is_behind && free <= present {
            self.line.leave(from);
            return true;
        }
        self.line.join(from, to);
        cores.spend(from, look_at_registers(cores, out), TimeCategory::Polling);
        if !is_behind && free != NEVER {
            self.blocking_sends.of_mut(from).may_try(free);
        }
        false
    }

    /// Returns the time from which `place` sees the register of `owner` free; [`NEVER`] while it is held.
    fn free_for(&self, place: PlaceId, owner: PlaceId) -> Picoseconds {
        match &self.place_states[owner.index()] {
            PlaceState { taken: true, .. } => NEVER,
            PlaceState { free: (_, Some(giver)), .. } if *giver == place => Picoseconds::ZERO,
            PlaceState { free: (time, _), .. } => *time,
        }
    }

    /// Releases the register of `owner`; `teller` notifies the next waiter, and the owner if it wants to send.
    pub(super) fn release(&mut self, owner: PlaceId, time: Picoseconds, teller: PlaceId) {
        (self.place_state(owner).taken, self.place_state(owner).free) = (false, (time, Some(teller)));
        let own = Some(owner).filter(|owner| self.line.holds(*owner));
        for other in self.line.first_for(owner).into_iter().chain(own) {
            self.blocking_sends.of_mut(other).may_try(time);
            self.blocking_sends.answer(teller, other, time);
        }
    }
}

/// Returns the time of a sender for testing both registers.
pub(super) fn look_at_registers(cores: &Cores, out: &Outgoing) -> Picoseconds {
    cores.register(out.from, out.from) + cores.register(out.from, out.to)
}

/// Places that are blocked in a send without registers, in the order of arrival.
#[derive(Default)]
pub(super) struct WaitQueue {
    /// Waiting places, each with its receiver.
    waiters: Vec<(PlaceId, PlaceId)>,
}

impl WaitQueue {
    /// Adds `from`, which wants to send to `to`, unless it is already waiting.
    pub(super) fn join(&mut self, from: PlaceId, to: PlaceId) {
        if !self.holds(from) {
            self.waiters.push((from, to));
        }
    }

    /// Removes `from`; returns `true` if it was waiting.
    pub(super) fn leave(&mut self, from: PlaceId) -> bool {
        let index = self.waiters.iter().position(|(place, _)| *place == from);
        index.map(|index| self.waiters.remove(index)).is_some()
    }

    pub(super) fn holds(&self, from: PlaceId) -> bool {
        self.waiters.iter().any(|(place, _)| *place == from)
    }

    /// Returns `true` if an earlier waiter wants to send to `from` or `to`.
    pub(super) fn is_behind(&self, from: PlaceId, to: PlaceId) -> bool {
        let before = self.waiters.iter().take_while(|(place, _)| *place != from);
        before.into_iter().any(|(_, wanted)| *wanted == from || *wanted == to)
    }

    /// Returns the first place that wants to send to `to`.
    pub(super) fn first_for(&self, to: PlaceId) -> Option<PlaceId> {
        self.waiters.iter().find(|(_, wanted)| *wanted == to).map(|(place, _)| *place)
    }

    /// Returns all waiting places.
    pub(super) fn places(&self) -> impl Iterator<Item = PlaceId> {
        self.waiters.iter().map(|(place, _)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PlaceId = PlaceId(0);
    const B: PlaceId = PlaceId(1);
    const C: PlaceId = PlaceId(2);
    const D: PlaceId = PlaceId(3);

    #[test]
    fn who_came_before_goes_before_if_both_want_to_meet_the_same_or_one_wants_to_meet_the_other() {
        let mut line = WaitQueue::default();
        line.join(A, C);
        line.join(B, C);
        line.join(A, D); // it waits already
        assert_eq!([line.first_for(C), line.first_for(D)], [Some(A), None]);
        assert!(line.is_behind(B, C) && !line.is_behind(A, C), "the same");
        assert!(line.is_behind(C, D) && line.is_behind(D, C), "the other");
        assert!(!line.is_behind(D, A), "who waits may be met meanwhile");
        assert!(line.leave(A) && !line.leave(A) && !line.holds(A));
        assert_eq!(line.first_for(C), Some(B));
    }

    #[test]
    fn of_two_who_want_to_meet_each_other_the_first_one_goes() {
        let mut line = WaitQueue::default();
        line.join(A, B);
        line.join(B, A);
        assert!(!line.is_behind(A, B) && line.is_behind(B, A));
    }
}
