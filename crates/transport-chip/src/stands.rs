//! Places that stand in sends: what each sends next, what it takes meanwhile, and whom it answers.
//!
//! It has no costs and does not know when a message may go: that is the protocol's, which spends the time and says when
//! a flag is there. Invariant: who is told that a message was wanted may send the next one of that class from then on.

use crate::kept::Kept;
use crate::parcel::Parcel;
use crate::stand::Stand;
use crate::wire::{News, Outgoing};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

/// See the file header.
pub(crate) struct Stands {
    /// By place.
    stands: Vec<Stand>,
    /// What places have taken and did not want yet.
    pub(crate) kept: Kept,
    /// By place: who is to be told of an answer, a register or a flag, and when that is there.
    answered: Vec<News>,
}

impl Stands {
    /// Of so many places, none of which stands.
    pub(crate) fn new(places: usize) -> Stands {
        Stands {
            stands: std::iter::repeat_with(Stand::default).take(places).collect(),
            kept: Kept::new(places),
            answered: vec![News::new(); places],
        }
    }

    /// What `place` has to send.
    pub(crate) fn of(&self, place: PlaceId) -> &Stand {
        &self.stands[place.index()]
    }

    /// The same, to change it.
    pub(crate) fn of_mut(&mut self, place: PlaceId) -> &mut Stand {
        &mut self.stands[place.index()]
    }

    /// Whether `out` may be sent or added; see [`Stand::admits`].
    pub(crate) fn admits(&mut self, out: &Outgoing, present: Picoseconds) -> bool {
        self.stands[out.from.index()].admits(&self.kept, out, present)
    }

    /// `place` has answered `other`, who is to be told that it is there at `time`.
    pub(crate) fn answer(&mut self, place: PlaceId, other: PlaceId, time: Picoseconds) {
        self.answered[place.index()].push((other, time));
    }

    /// Tells whom `place` has answered, each time once.
    pub(crate) fn tell(&mut self, place: PlaceId, news: &mut News) {
        news.append(&mut self.answered[place.index()]);
    }

    /// A message that was kept and is wanted now; `flag` tells its sender, and gives when that is there.
    pub(crate) fn unpack(
        &mut self,
        place: PlaceId,
        control_only: bool,
        flag: impl FnOnce(PlaceId) -> Picoseconds,
    ) -> Option<Parcel> {
        let parcel = self.kept.take(place, control_only)?;
        let time = flag(parcel.source);
        self.kept.release(place, &parcel, time);
        self.of_mut(parcel.source).may_try(time);
        self.answer(place, parcel.source, time);
        Some(parcel)
    }

    /// What `place` has just taken, if that is wanted now; else it is kept.
    pub(crate) fn sift(&mut self, place: PlaceId, parcel: Parcel, control_only: bool) -> Option<Parcel> {
        if control_only && parcel.class == Class::Data {
            self.kept.put(place, parcel);
            return None;
        }
        Some(parcel)
    }
}
