//! How long a core waits at most for a lock by tickets.
//!
//! Once its ticket is written, each other participant goes first once at most, as those that come later draw larger
//! numbers. So the wait is `2 D + (n - 1)(hold + release + h) + h + (n - 1)(D + look)`:
//!
//! - `D` is the longest that taking a ticket takes: for the core itself, and for one that goes first and is still at
//!   it;
//! - `h` is a hand-over, from the moment at which nobody is before a core until it has seen that of all others: a look
//!   that was too early, then two at each;
//! - a participant that has had its turn may ask again. While it takes a ticket, once before the turn of the core, the
//!   others wait for it, and see that it has one a look too late.
//!
//! A core that spins on a test-and-set register may lose each round and has no bound.

use super::{AccessBounds, DataIn, Interference, LinkOrder, NoBound, Others, Platform, Terms};
use crate::bare::rcce::LibraryCosts;
use crate::topology::CoreId;

/// Bounds of a lock that `participants` cores, from 0 on, take and give back as often as they like.
#[derive(Clone, Debug)]
pub struct MutexBounds {
    accesses: AccessBounds,
    library: LibraryCosts,
    participants: u32,
}

impl MutexBounds {
    /// Beside what the other cores do.
    ///
    /// # Errors
    /// Why there is no bound on this chip.
    pub fn new(
        platform: Platform<'_>,
        participants: u32,
        library: LibraryCosts,
        others: Others,
        order: LinkOrder,
    ) -> Result<MutexBounds, NoBound> {
        let chip = platform.chip;
        let most = chip.topology().cores();
        if !(1..=most).contains(&participants) {
            return Err(NoBound::Participants { participants, most });
        }
        let mut interference = Interference::none(chip)?;
        for core in (0..participants).map(CoreId) {
            (0..participants).for_each(|of| interference.add_read(core, CoreId(of)));
            interference.add_write(core, core);
        }
        if others == Others::Anything {
            (participants..most).for_each(|core| interference.add_unrestricted(CoreId(core)));
        }
        let accesses = AccessBounds::new(platform, interference, order, DataIn::FirstCache)?;
        Ok(MutexBounds { accesses, library, participants })
    }

    /// The longest that any participant waits, from when it asks for the lock until it has it, if each holds the lock
    /// for `hold` cycles of its clock at most.
    pub fn wait(&self, hold: u64) -> Terms {
        let all = || (0..self.participants).map(CoreId);
        let longest = |of: &dyn Fn(CoreId) -> Terms| all().map(of).fold(Terms::default(), Terms::longer);
        let ticket = longest(&|core| self.take_ticket(core));
        let handoff = longest(&|core| self.handoff(core));
        let turn = self.accesses.work(hold) + longest(&|core| self.set_flag(core)) + handoff;
        let asks_again = ticket + longest(&|core| self.longest_look(core));
        let before = u64::from(self.participants) - 1;
        ticket.times(2) + (turn + asks_again).times(before) + handoff
    }

    fn set_flag(&self, core: CoreId) -> Terms {
        self.accesses.instructions(self.library.call) + self.accesses.write(core, core)
    }

    fn look(&self, core: CoreId, of: CoreId) -> Terms {
        self.accesses.read(core, of) + self.accesses.instructions(self.library.look)
    }

    fn others(&self, core: CoreId) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.participants).map(CoreId).filter(move |other| *other != core)
    }

    /// Three flags, and a look at the number of each other participant.
    fn take_ticket(&self, core: CoreId) -> Terms {
        let looks = self.others(core).map(|of| self.look(core, of));
        looks.fold(self.set_flag(core).times(3), |sum, look| sum + look)
    }

    fn longest_look(&self, core: CoreId) -> Terms {
        self.others(core).map(|of| self.look(core, of)).fold(Terms::default(), Terms::longer)
    }

    /// One look that was too early, then two at each other participant.
    fn handoff(&self, core: CoreId) -> Terms {
        let looks = self.others(core).map(|of| self.look(core, of).times(2));
        looks.fold(self.longest_look(core), |sum, looks| sum + looks)
    }
}
