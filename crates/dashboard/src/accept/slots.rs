//! Admission of connections: newcomers, readers and managers have slots of their own.
//!
//! A pure decision, independent of sockets, so that any order of events can be tested. A connection begins as a
//! newcomer and moves to the slots of the role whose token it shows. Invariants: no kind exceeds its limit; a newcomer
//! is evicted only for a newer one, and a connection with a role never; so neither clients without a token nor
//! read-only ones can lock out a manager.

use crate::guard::Role;
use std::collections::BTreeMap;

/// Maximum number of connections that have shown no token; for the next, the oldest is closed.
const NEWCOMERS_MAX: usize = 256;

/// Maximum number of read-only connections; of all connections with a token if there is no manager role.
const VIEWERS_MAX: usize = 256;

/// Maximum number of connections of managers: a browser opens six for a page.
const MANAGERS_MAX: usize = 64;

/// Returns the maximum number of connections with the token of this role.
const fn limit(role: Role) -> usize {
    match role {
        Role::View => VIEWERS_MAX,
        Role::Control => MANAGERS_MAX,
    }
}

/// The open connections by number, the oldest first: the role of each that has shown a token.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    next: u64,
    open: BTreeMap<u64, Option<Role>>,
}

/// An admitted newcomer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    /// Its number.
    pub(crate) number: u64,
    /// The newcomer to close for it.
    pub(crate) evicted: Option<u64>,
}

impl Slots {
    /// Admits a newcomer.
    pub(crate) fn admit(&mut self) -> Admission {
        let is_full = self.count(None) >= NEWCOMERS_MAX;
        let oldest = self.open.iter().find(|(_, role)| role.is_none()).map(|(number, _)| *number);
        let evicted = oldest.filter(|_| is_full);
        evicted.iter().for_each(|oldest| _ = self.open.remove(oldest));
        self.next += 1;
        self.open.insert(self.next, None);
        Admission { number: self.next, evicted }
    }

    /// Records that the connection has shown the token of `role`; returns `true` if it may stay open. A manager keeps
    /// its slot.
    pub(crate) fn show(&mut self, number: u64, role: Role) -> bool {
        let is_full = self.count(Some(role)) >= limit(role);
        match self.open.get_mut(&number) {
            Some(own) if *own >= Some(role) => true,
            Some(own) if !is_full => {
                *own = Some(role);
                true
            }
            _ => false,
        }
    }

    /// Records that the connection is closed.
    pub(crate) fn leave(&mut self, number: u64) {
        self.open.remove(&number); // one that had to give way is gone already
    }

    fn count(&self, role: Option<Role>) -> usize {
        self.open.values().filter(|own| **own == role).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Admits connections that show the token of `role` at once. Returns the numbers of those that may stay.
    fn fill(slots: &mut Slots, role: Role, count: usize) -> Vec<u64> {
        let admit = |_| {
            let number = slots.admit().number;
            let stays = slots.show(number, role);
            if !stays {
                slots.leave(number);
            }
            stays.then_some(number)
        };
        (0..count).filter_map(admit).collect()
    }

    #[test]
    fn readers_that_fill_all_their_slots_leave_those_of_managers_free() {
        let mut slots = Slots::default();
        assert_eq!(fill(&mut slots, Role::View, 1000).len(), VIEWERS_MAX);
        assert_eq!(fill(&mut slots, Role::Control, 1000).len(), MANAGERS_MAX);
    }

    #[test]
    fn a_newcomer_is_closed_only_for_one_that_comes_a_whole_set_of_slots_later() {
        let mut slots = Slots::default();
        let readers = fill(&mut slots, Role::View, VIEWERS_MAX);
        let manager = slots.admit();
        let later: Vec<Admission> = (1..NEWCOMERS_MAX).map(|_| slots.admit()).collect();
        assert!(later.iter().all(|admission| admission.evicted.is_none()));
        assert_eq!(slots.admit().evicted, Some(manager.number));
        assert!(!slots.show(manager.number, Role::Control), "its connection is closed");
        assert!(readers.iter().all(|number| slots.show(*number, Role::View)), "a reader had to give way");
    }

    #[test]
    fn a_connection_moves_to_the_slots_of_the_higher_role_and_frees_its_own() {
        let mut slots = Slots::default();
        let readers = fill(&mut slots, Role::View, VIEWERS_MAX);
        assert_eq!(fill(&mut slots, Role::View, 1), [0; 0]);
        assert!(slots.show(readers[0], Role::Control));
        assert!(slots.show(readers[0], Role::View), "it manages, and may look as well");
        assert_eq!(fill(&mut slots, Role::View, 2).len(), 1);
    }

    #[test]
    fn a_closed_connection_frees_its_slot_once() {
        let mut slots = Slots::default();
        let managers = fill(&mut slots, Role::Control, MANAGERS_MAX);
        slots.leave(managers[5]);
        slots.leave(managers[5]);
        assert_eq!(fill(&mut slots, Role::Control, 2).len(), 1);
    }
}
