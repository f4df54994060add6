//! Interface of a service to the table: its state at a place, and its reactions to events.

use isles_protocol::PlaceId;
use isles_runtime::Local;
use isles_runtime::service::Inquiry;
use std::time::Duration;

/// The state of one service at one place.
///
/// No method has a default, so a service that never waits, or has nothing to do by the clock, says so.
pub(crate) trait Service: Sized + 'static {
    /// Its row in the table, from 0.
    const ROW: usize;

    /// Returns the state at `local`.
    #[inline]
    fn of(local: &Local) -> &Self {
        local.service(Self::ROW)
    }

    /// Returns the state at place `here` of a run of `places` places, before anything happens.
    fn new(here: PlaceId, places: u32) -> Self;

    /// Ends all waits for `place`, which has died; everything that it sent has arrived.
    fn place_died(&self, local: &Local, place: PlaceId);

    /// Returns the waits of this place in answer to `inquiry`, one line each.
    fn explain(&self, inquiry: &Inquiry<'_>) -> Vec<String>;

    /// Returns the time by the place's clock at which [`Service::run_due`] next has something to do, if nothing happens
    /// before.
    fn next_due(&self) -> Option<Duration>;

    /// Does what is due by now; returns whether there was anything. Called after each step of the worker.
    fn run_due(&self, local: &Local) -> bool;
}
