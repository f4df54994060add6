//! The teams of a place as one of its services, and what those who drive the place ask of all of them.
//!
//! A run in which nothing happens any more may be one whose members wait for each other in different collectives. So
//! the places are asked to compare their waits; a fault that is found when no call could end with it is kept for the
//! end of the run. What a team waits for is known to `state`. Invariant: the table is not borrowed while a team breaks
//! up, because that wakes tasks.

use super::Collectives;
use super::state::{ProgressQuery, TeamTable, compare_waits};
use crate::error::{Error, Result};
use crate::local::{Inquiry, Local, Service};
use isles_protocol::PlaceId;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// The teams of one place.
#[derive(Default)]
pub(crate) struct Teams {
    pub(super) table: RefCell<TeamTable>,
    /// What the machine says of collectives, if it says anything.
    pub(super) collectives: OnceCell<Rc<dyn Collectives>>,
    /// Whether the place is to say in which collectives it waits.
    compares_waits: Cell<bool>,
    /// How often a member of a team has said in which collective it waits.
    waits_heard: Cell<usize>,
    /// The first fault of a team that no call of the program ended with; used at the first place only.
    unheard: RefCell<Option<Error>>,
}

impl Service for Teams {
    fn new(_here: PlaceId, _places: u32) -> Self {
        Teams::default()
    }

    /// Breaks up the teams of which the dead place is a member: they are of no use any more.
    fn place_died(&self, _local: &Local, place: PlaceId) {
        let states = self.table.borrow().of_member(place);
        states.into_iter().for_each(|state| state.break_up(Error::dead(place)));
    }

    fn explain(&self, inquiry: &Inquiry<'_>) -> Vec<String> {
        self.table.borrow().explain(inquiry)
    }

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn run_due(&self, _local: &Local) -> bool {
        false
    }
}

impl Teams {
    /// Returns what `place` is to be asked when this one explains what it waits for.
    pub(crate) fn queries(&self, place: PlaceId) -> Vec<ProgressQuery> {
        self.table.borrow().questions(place)
    }

    /// Says in which collectives this place waits, if it was asked to; returns whether any member was told.
    pub(crate) fn compare_waits_if_asked(&self, local: &Local) -> bool {
        self.compares_waits.take() && compare_waits(local) > 0
    }

    /// Counts a wait of which another member has said in which collective it is.
    pub(super) fn note_wait(&self) {
        self.waits_heard.set(self.waits_heard.get() + 1);
    }

    /// Returns how often another member has said in which collective it waits.
    pub(crate) fn waits_heard(&self) -> usize {
        self.waits_heard.get()
    }

    /// Keeps the fault of a team that no call of the program ended with; the first one counts.
    pub(crate) fn note_unheard(&self, fault: Option<Error>) {
        if let Some(fault) = fault {
            self.unheard.borrow_mut().get_or_insert(fault);
        }
    }
}

impl Local {
    /// The end of the run as far as teams have a say in it.
    ///
    /// # Errors
    /// The members of a team were in different collectives, and no call of the program has ended with that error.
    pub fn unheard(&self) -> Result<()> {
        let teams = &self.services.teams;
        let found = teams.table.borrow().unheard();
        teams.note_unheard(found);
        teams.unheard.take().map_or(Ok(()), Err)
    }

    /// Lets the place say, in its next turn, in which collectives it waits; false if it waits in none. Its unparker is
    /// told.
    pub fn compare_waits_soon(&self) -> bool {
        let waits = self.services.teams.table.borrow().waits();
        if waits {
            self.services.teams.compares_waits.set(true);
            self.endpoint().unparker().unpark();
        }
        waits
    }

    /// How many teams of this place are of no use any more.
    pub fn broken_teams(&self) -> usize {
        self.services.teams.table.borrow().broken()
    }

    /// Whether messages of collectives that are over here may still be under way.
    pub fn teams_may_be_apart(&self) -> bool {
        self.services.teams.table.borrow().may_be_apart()
    }
}
