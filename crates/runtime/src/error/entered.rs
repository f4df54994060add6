//! The id of the place that is entered on a thread.
//!
//! For code below the state of a place: errors and caught panics name their place.

use isles_protocol::PlaceId;
use std::cell::Cell;

thread_local! {
    static ENTERED: Cell<Option<PlaceId>> = const { Cell::new(None) };
}

/// Returns the place that is entered on this thread; `None` if the thread is no place, or is ending.
pub(crate) fn entered() -> Option<PlaceId> {
    ENTERED.try_with(Cell::get).unwrap_or_default()
}

/// Sets the entered place; returns the previous one.
pub(crate) fn enter(place: Option<PlaceId>) -> Option<PlaceId> {
    ENTERED.try_with(|entered| entered.replace(place)).unwrap_or_default()
}
