//! Mutual exclusion by tickets, with reads and writes of message buffers only: Lamport's bakery (1974).
//!
//! A participant that wants the lock takes a number larger than all that it sees, and waits for all with smaller
//! numbers. The SCC has test-and-set registers, but a core that spins on one may lose every round; only tickets bound
//! how often others go first. The flags are a participant's flags for messages to itself.

use super::rcce::{Participant, flag_value};
use crate::topology::CoreId;

/// A participant's handle of one lock shared by all participants.
pub struct TicketLock<'a> {
    here: &'a Participant,
}

impl<'a> TicketLock<'a> {
    /// Makes the handle of `here`.
    pub fn new(here: &'a Participant) -> TicketLock<'a> {
        TicketLock { here }
    }

    /// Returns the line of the flag that a core is taking a number.
    fn choosing(core: CoreId) -> u32 {
        core.0
    }

    /// Returns the line with the number of a core; the number is 0 if it does not want the lock.
    fn number(&self, core: CoreId) -> u32 {
        self.here.participants + core.0
    }

    fn others(&self) -> impl Iterator<Item = CoreId> + use<> {
        let me = self.here.core.id();
        (0..self.here.participants).map(CoreId).filter(move |core| *core != me)
    }

    /// Polls a flag of another core once.
    async fn look(&self, of: CoreId, line: u32) -> u32 {
        let content = self.here.core.read_line(of, line).await;
        self.here.core.compute(self.here.library.look).await;
        flag_value(&content)
    }

    /// Waits until no other participant has the lock or is first in line.
    pub async fn lock(&self) {
        let me = self.here.core.id();
        self.here.set_flag(me, Self::choosing(me), 1).await;
        let mut most = 0;
        for core in self.others() {
            most = self.look(core, self.number(core)).await.max(most);
        }
        let ticket = most + 1;
        self.here.set_flag(me, self.number(me), ticket).await;
        self.here.set_flag(me, Self::choosing(me), 0).await;
        for core in self.others() {
            while self.look(core, Self::choosing(core)).await != 0 {}
            loop {
                let other = self.look(core, self.number(core)).await;
                if other == 0 || (other, core) > (ticket, me) {
                    break;
                }
            }
        }
    }

    /// Releases the lock.
    pub async fn unlock(&self) {
        let me = self.here.core.id();
        self.here.set_flag(me, self.number(me), 0).await;
    }
}
