//! The registers: who has them, who waits for them in line, and who hears that they are free.
//!
//! It does not know what passes between those who have them. Invariant: who does not get both registers holds none,
//! and of those in line who want the same one the first has it first.

use super::Rcce;
use super::place_state::PlaceState;
use crate::cores::Cores;
use crate::energy::meter::NEVER;
use crate::protocol::Outgoing;
use crate::report::TimeCategory;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

impl Rcce {
    /// Whether both can meet now; if not, who asks is in line from now on and hears of it when they can.
    pub(super) fn can_begin_rendezvous(&mut self, cores: &mut Cores, out: &Outgoing) -> bool {
        let (present, Outgoing { from, to, .. }) = (cores.present(), *out);
        self.blocking_sends.of_mut(from).expire(present); // what it allowed is asked for now
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

    /// From when on `place` finds the register of `owner` free; [`NEVER`] while it is taken.
    fn free_for(&self, place: PlaceId, owner: PlaceId) -> Picoseconds {
        match &self.place_states[owner.index()] {
            PlaceState { taken: true, .. } => NEVER,
            PlaceState { free: (_, Some(giver)), .. } if *giver == place => Picoseconds::ZERO,
            PlaceState { free: (time, _), .. } => *time,
        }
    }

    /// The register of `owner` is given back; who is next, and the owner if it wants to send, hear of it by `teller`.
    pub(super) fn release(&mut self, owner: PlaceId, time: Picoseconds, teller: PlaceId) {
        (self.place_state(owner).taken, self.place_state(owner).free) = (false, (time, Some(teller)));
        let own = Some(owner).filter(|owner| self.line.holds(*owner));
        for other in self.line.first_for(owner).into_iter().chain(own) {
            self.blocking_sends.of_mut(other).may_try(time);
            self.blocking_sends.answer(teller, other, time);
        }
    }
}

/// How long who wants to send takes to look at both registers.
pub(super) fn look_at_registers(cores: &Cores, out: &Outgoing) -> Picoseconds {
    cores.register(out.from, out.from) + cores.register(out.from, out.to)
}
