//! The place that is entered on a thread, by its number.
//!
//! For what is below the state of a place: errors and caught panics say where they were.

use isles_protocol::PlaceId;
use std::cell::Cell;

thread_local! {
    static ENTERED: Cell<Option<PlaceId>> = const { Cell::new(None) };
}

/// Returns the place that is entered on this thread; none on a thread that is no place, or is past its end.
pub(crate) fn entered() -> Option<PlaceId> {
    ENTERED.try_with(Cell::get).unwrap_or_default()
}

/// Says which place is entered from now on; returns the one before.
pub(crate) fn enter(place: Option<PlaceId>) -> Option<PlaceId> {
    ENTERED.try_with(|entered| entered.replace(place)).unwrap_or_default()
}
