//! Routes: the next hop from each place to each other, computed before the run.

use crate::PlaceId;
use std::collections::VecDeque;
use std::fmt;

/// The next hops from one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    next: Vec<PlaceId>,
}

/// A topology in which not all places reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteError {
    /// The place that starts.
    pub from: PlaceId,
    /// A place that it cannot reach.
    pub to: PlaceId,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no links lead from {} to {}; allowed: links that connect all places", self.from, self.to)
    }
}

impl std::error::Error for RouteError {}

impl Routes {
    /// A link from each place to each other.
    pub fn direct(places: u32) -> Routes {
        Routes { next: (0..places).map(PlaceId).collect() }
    }

    /// Shortest routes from `here` over links, which go both ways; among equal ones, over the least numbers of places.
    ///
    /// All places compute theirs by the same distances, so the next hop is nearer to the destination by one link, and
    /// no packet goes in a circle.
    ///
    /// # Errors
    /// A place cannot be reached.
    pub fn over_links(
        here: PlaceId,
        places: u32,
        links: &[(PlaceId, PlaceId)],
    ) -> Result<Routes, RouteError> {
        let neighbors = |of: PlaceId| {
            let mut all: Vec<PlaceId> = links
                .iter()
                .filter_map(|(one, other)| match () {
                    () if *one == of => Some(*other),
                    () if *other == of => Some(*one),
                    () => None,
                })
                .filter(|place| place.0 < places)
                .collect();
            all.sort_unstable();
            all
        };
        let mut next: Vec<Option<PlaceId>> = vec![None; places as usize];
        next[here.index()] = Some(here);
        let mut queue = VecDeque::from([here]);
        while let Some(place) = queue.pop_front() {
            for neighbor in neighbors(place) {
                if next[neighbor.index()].is_none() {
                    next[neighbor.index()] = if place == here { Some(neighbor) } else { next[place.index()] };
                    queue.push_back(neighbor);
                }
            }
        }
        let check =
            |(to, next): (u32, Option<PlaceId>)| next.ok_or(RouteError { from: here, to: PlaceId(to) });
        let next = (0..).zip(next).map(check).collect::<Result<_, _>>()?;
        Ok(Routes { next })
    }

    /// The place to which a packet for `to` goes next.
    #[inline]
    pub fn next_hop(&self, to: PlaceId) -> PlaceId {
        self.next[to.index()]
    }
}
