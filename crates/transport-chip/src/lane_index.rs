//! The numbers of lanes: one for each ordered pair of places and class.
//!
//! Protocols keep what they know of a lane in a row by these numbers. Which place of a pair comes first is theirs to
//! choose: all lanes of one first place lie together. Invariant: `ends` undoes `lane`.

use isles_transport::{Class, PlaceId};

/// The pairs of so many places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneIndex {
    places: usize,
}

impl LaneIndex {
    pub(crate) fn of(places: usize) -> LaneIndex {
        LaneIndex { places }
    }

    /// How many lanes there are.
    pub(crate) fn lanes(self) -> usize {
        2 * self.places * self.places
    }

    /// The lane of a pair and a class.
    #[inline]
    pub(crate) fn lane(self, first: PlaceId, second: PlaceId, class: Class) -> usize {
        (first.index() * self.places + second.index()) * 2 + class as usize
    }

    /// Those of both classes.
    #[inline]
    pub(crate) fn both(self, first: PlaceId, second: PlaceId) -> [usize; 2] {
        [Class::Control, Class::Data].map(|class| self.lane(first, second, class))
    }

    /// The pair and the class of a lane.
    #[inline]
    pub(crate) fn ends(self, lane: usize) -> (PlaceId, PlaceId, Class) {
        let place = |index: usize| PlaceId((index % self.places) as u32);
        let class = if lane % 2 == Class::Control as usize { Class::Control } else { Class::Data };
        (place(lane / 2 / self.places), place(lane / 2), class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lane_has_its_own_ends() {
        let pairs = LaneIndex::of(3);
        for lane in 0..pairs.lanes() {
            let (first, second, class) = pairs.ends(lane);
            assert_eq!(pairs.lane(first, second, class), lane);
            assert_eq!(pairs.both(first, second)[class as usize], lane);
        }
    }
}
