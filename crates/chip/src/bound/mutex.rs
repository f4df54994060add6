//! Upper bound of a core's wait for a ticket lock.
//!
//! Once its ticket is written, each other participant goes first at most once, because later ones draw larger numbers.
//! So the wait is `2 D + (n - 1)(hold + release + h) + h + (n - 1)(D + look)`:
//!
//! - `D` is the maximum time for taking a ticket: by the core itself, and by one that goes first and is still taking
//!   it;
//! - `h` is a hand-over, from the time at which no participant is before a core until it has seen that of all others: a
//!   poll that was too early, then two of each;
//! - a participant that has had the lock may ask again. While it takes a ticket, once before the turn of the core, the
//!   others wait for it, and see its ticket a poll too late.
//!
//! A core that spins on a test-and-set register may lose each round and has no bound.

use super::{AccessBounds, DataIn, Interference, LinkOrder, NoBound, Others, Platform, Terms};
use crate::bare::rcce::LibraryCosts;
use crate::topology::CoreId;

/// Bounds of a lock that `participants` cores, from 0 on, acquire and release any number of times.
#[derive(Clone, Debug)]
pub struct MutexBounds {
    accesses: AccessBounds,
    library: LibraryCosts,
    participants: u32,
}

impl MutexBounds {
    /// Returns the bounds under a behaviour of the other cores.
    ///
    /// # Errors
    /// [`NoBound`]: there is no bound on this chip.
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

    /// Returns the maximum wait of any participant from its request of the lock until it has it, if each holds the lock
    /// for at most `hold` cycles of its clock.
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

    /// Returns the bound of taking a ticket: three flags, and a poll of the number of each other participant.
    fn take_ticket(&self, core: CoreId) -> Terms {
        let looks = self.others(core).map(|of| self.look(core, of));
        looks.fold(self.set_flag(core).times(3), |sum, look| sum + look)
    }

    fn longest_look(&self, core: CoreId) -> Terms {
        self.others(core).map(|of| self.look(core, of)).fold(Terms::default(), Terms::longer)
    }

    /// Returns the bound of a hand-over: one poll that was too early, then two of each other participant.
    fn handoff(&self, core: CoreId) -> Terms {
        let looks = self.others(core).map(|of| self.look(core, of).times(2));
        looks.fold(self.longest_look(core), |sum, looks| sum + looks)
    }
}
