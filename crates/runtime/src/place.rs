//! Places as a program sees them.

use crate::local::Local;
use isles_protocol::PlaceId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One place of the run: an address space with tasks.
///
/// A value proves that its number is below the number of places of the run that made it, but not that the place is
/// alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place(PlaceId);

impl Place {
    /// Returns the place with number `index`, if the run has it.
    #[inline]
    #[track_caller]
    pub fn new(index: usize) -> Option<Place> {
        Local::with(|local| (index < local.places() as usize).then_some(Place(PlaceId(index as u32))))
    }

    /// Returns the place of an id that is known to be in range.
    pub fn of(id: PlaceId) -> Place {
        Place(id)
    }

    /// Returns its number on the wire.
    pub fn id(self) -> PlaceId {
        self.0
    }

    /// Returns its number, from 0.
    pub fn index(self) -> usize {
        self.0.index()
    }

    /// Returns the next place; the first one follows the last.
    #[track_caller]
    pub fn next(self) -> Place {
        Local::with(|local| Place(PlaceId((self.0.0 + 1) % local.places())))
    }

    /// Returns the previous place; the last one precedes the first.
    #[track_caller]
    pub fn prev(self) -> Place {
        Local::with(|local| Place(PlaceId((self.0.0 + local.places() - 1) % local.places())))
    }

    /// Returns `true` if messages from the calling place go there through memory that both map, as they do to itself.
    ///
    /// `false` between hosts, and between places of an invented world that offers no such memory.
    #[track_caller]
    pub fn shares_memory(self) -> bool {
        Local::with(|local| {
            let memory = local.endpoint().shared_memory();
            self.0 == local.here() || memory.is_some_and(|memory| memory.word(self.0, 0).is_some())
        })
    }

    /// Returns `true` if the calling place has learnt that the other is dead.
    #[track_caller]
    pub fn is_dead(self) -> bool {
        Local::with(|local| local.is_dead(self.0))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Value that `at!` and `spawn_at!` take as their place.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a place",
    label = "expected a `Place`",
    note = "`Place::new(number)` is the place with that number, if the run has it",
    note = "`here()`, `places()`, `place.next()` and `team.place_of(rank)` give places too"
)]
pub trait ToPlace {
    /// Returns the place.
    fn to_place(self) -> Place;
}

#[diagnostic::do_not_recommend]
impl<T: Into<Place>> ToPlace for T {
    #[inline]
    fn to_place(self) -> Place {
        self.into()
    }
}

/// Returns the place that a macro was given.
#[inline]
pub fn place_of(place: impl ToPlace) -> Place {
    place.to_place()
}

impl From<&Place> for Place {
    fn from(place: &Place) -> Place {
        *place
    }
}

/// Returns the place of the calling task.
///
/// # Panics
/// Outside of a place: before `#[isles::main]` has started, or on a thread of the program's own.
#[track_caller]
pub fn here() -> Place {
    Local::with(|local| Place(local.here()))
}

/// Returns all places of the run, in order.
///
/// # Panics
/// As [`here`].
#[track_caller]
pub fn places() -> impl DoubleEndedIterator<Item = Place> + ExactSizeIterator + Clone {
    (0..Local::with(|local| local.places())).map(|number| Place(PlaceId(number)))
}

/// Returns the number of places of the run.
///
/// # Panics
/// As [`here`].
#[track_caller]
pub fn place_count() -> usize {
    Local::with(|local| local.places() as usize)
}
