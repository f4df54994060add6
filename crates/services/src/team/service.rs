//! The teams of a place as one of its services, and what the drivers of places ask of all of them.
//!
//! In a run in which nothing happens any more, members may wait for each other in different collectives. So the places
//! are asked to compare their waits; an error that is found when no call could end with it is kept for the end of the
//! run. `state` knows what a team waits for. Invariant: the table is not borrowed while a team breaks, because that
//! wakes tasks.

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
    /// True if the place must report the collectives in which it waits.
    compares_waits: Cell<bool>,
    /// Number of times a member of a team has reported the collective in which it waits.
    wait_reports: Cell<usize>,
    /// The first error of a team that no call of the program ended with; used at the first place only.
    unreported: RefCell<Option<Error>>,
}

impl Service for Teams {
    const ROW: usize = 0;

    fn new(_here: PlaceId, _places: u32) -> Self {
        Teams::default()
    }

    /// Breaks the teams of which the dead place is a member.
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
    /// Returns the collectives in which this place waits for `place`, in the form of an inquiry.
    pub(crate) fn query(&self, place: PlaceId) -> Vec<u8> {
        postcard::to_allocvec(&self.table.borrow().questions(place)).expect("queries are numbers")
    }

    /// Reports the collectives in which this place waits, if it was asked to; returns whether any member got a report.
    pub(crate) fn compare_waits_if_asked(&self, local: &Local) -> bool {
        self.compares_waits.take() && compare_waits(local) > 0
    }

    /// Counts a report of another member's wait.
    pub(super) fn note_wait(&self) {
        self.wait_reports.set(self.wait_reports.get() + 1);
    }

    /// Returns the number of reports of other members' waits.
    pub(crate) fn wait_reports(&self) -> usize {
        self.wait_reports.get()
    }

    /// Keeps the error of a team that no call of the program ended with; the first one counts.
    pub(crate) fn keep_fault(&self, fault: Error) {
        self.unreported.borrow_mut().get_or_insert(fault);
    }

    /// Takes the error of a team that no call of the program ended with.
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

/// Returns the number of broken teams of `local`.
pub fn broken_teams(local: &Local) -> usize {
    Teams::of(local).table.borrow().broken()
}

/// Returns `true` if messages of collectives that are over at `local` may still be in flight.
pub fn teams_may_be_apart(local: &Local) -> bool {
    Teams::of(local).table.borrow().may_be_apart()
}
