//! The teams of a place as one of its services, and what those who drive the place ask of all of them.
//!
//! A run in which nothing happens any more may be one whose members wait for each other in different collectives. So
//! the places are asked to compare their waits; a fault that is found when no call could end with it is kept for the
//! end of the run. What a team waits for is known to `state`. Invariant: the table is not borrowed while a team breaks
//! up, because that wakes tasks.

use super::Collectives;
use super::state::{TeamTable, compare_waits};
use crate::table::service::Service;
use isles_protocol::PlaceId;
use isles_runtime::service::Inquiry;
use isles_runtime::{Error, Local};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// The teams of one place.
#[derive(Default)]
pub(crate) struct Teams {
    pub(super) table: RefCell<TeamTable>,
    /// The machine's choices for collectives, if it makes any.
    pub(super) collectives: OnceCell<Rc<dyn Collectives>>,
    /// True if the place has to say in which collectives it waits.
    compares_waits: Cell<bool>,
    /// Number of times a member of a team has said in which collective it waits.
    wait_reports: Cell<usize>,
    /// The first fault of a team that no call of the program ended with; used at the first place only.
    unreported: RefCell<Option<Error>>,
}

impl Service for Teams {
    const ROW: usize = 0;

    fn new(_here: PlaceId, _places: u32) -> Self {
        Teams::default()
    }

    /// Breaks up the teams of which the dead place is a member: they are of no use any more.
    fn place_died(&self, _local: &Local, place: PlaceId) {
        let states = self.table.borrow().of_member(place);
        states.into_iter().for_each(|state| state.mark_broken(Error::dead(place)));
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
    /// Returns the collectives in which this place waits for `place`, as an inquiry has them.
    pub(crate) fn query(&self, place: PlaceId) -> Vec<u8> {
        postcard::to_allocvec(&self.table.borrow().questions(place)).expect("queries are numbers")
    }

    /// Says in which collectives this place waits, if it was asked to; returns whether any member was told.
    pub(crate) fn compare_waits_if_asked(&self, local: &Local) -> bool {
        self.compares_waits.take() && compare_waits(local) > 0
    }

    /// Counts a wait of which another member has said in which collective it is.
    pub(super) fn note_wait(&self) {
        self.wait_reports.set(self.wait_reports.get() + 1);
    }

    /// Returns how often another member has said in which collective it waits.
    pub(crate) fn wait_reports(&self) -> usize {
        self.wait_reports.get()
    }

    /// Keeps the fault of a team that no call of the program ended with; the first one counts.
    pub(crate) fn keep_fault(&self, fault: Error) {
        self.unreported.borrow_mut().get_or_insert(fault);
    }

    /// Takes the fault of a team that no call of the program ended with.
    pub(crate) fn take_fault(&self) -> Option<Error> {
        let found = self.table.borrow().unreported();
        found.into_iter().for_each(|fault| self.keep_fault(fault));
        self.unreported.take()
    }
}

/// Makes `local` report, in its next turn, in which collectives it waits, and wakes it; returns `false` if it waits in
/// none.
pub fn compare_waits_soon(local: &Local) -> bool {
    let teams = &Teams::of(local);
    let waits = teams.table.borrow().waits();
    if waits {
        teams.compares_waits.set(true);
        local.endpoint().unparker().unpark();
    }
    waits
}

/// Returns how many teams of `local` are of no use any more.
pub fn broken_teams(local: &Local) -> usize {
    Teams::of(local).table.borrow().broken()
}

/// Returns `true` if messages of collectives that are over at `local` may still be under way.
pub fn teams_may_be_apart(local: &Local) -> bool {
    Teams::of(local).table.borrow().may_be_apart()
}
