//! Routes: the next hop from each place to each other, computed before the run.

use crate::PlaceId;
use std::collections::VecDeque;
use std::fmt;

/// The next hops from one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    here: PlaceId,
    next: Vec<PlaceId>,
    /// Links of all places; empty if every two places are linked.
    links: Vec<(PlaceId, PlaceId)>,
}

/// Links that do not form a topology of the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteError {
    /// No links lead from one place to another.
    NoRoute {
        /// The first place.
        from: PlaceId,
        /// A place that it cannot reach.
        to: PlaceId,
    },
    /// A link to a place that does not exist.
    NoPlace {
        /// The place.
        place: PlaceId,
        /// The number of places.
        places: u32,
    },
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteError::NoRoute { from, to } => {
                write!(f, "no links lead from {from} to {to}; allowed: links that connect all places")
            }
            RouteError::NoPlace { place, places } => {
                write!(f, "a link is of place {}; allowed: 0 to {}", place.0, places.saturating_sub(1))
            }
        }
    }
}

impl std::error::Error for RouteError {}

impl Routes {
    /// Makes routes over a link from each place to each other.
    pub fn direct(here: PlaceId, places: u32) -> Routes {
        Routes { here, next: (0..places).map(PlaceId).collect(), links: Vec::new() }
    }

    /// Makes the shortest routes from `here` over links, which go both ways; among equal ones, through places of the
    /// least numbers.
    ///
    /// All places compute theirs from the same distances, so the next hop is one link nearer to the destination, and no
    /// packet goes in a circle.
    ///
    /// # Errors
    /// A place cannot be reached, or a link names a place that does not exist.
    pub fn over_links(
        here: PlaceId,
        places: u32,
        links: &[(PlaceId, PlaceId)],
    ) -> Result<Routes, RouteError> {
        let ends = || links.iter().flat_map(|(one, other)| [*one, *other]);
        if let Some(place) = ends().find(|place| place.0 >= places) {
            return Err(RouteError::NoPlace { place, places });
        }
        let neighbors = |of: PlaceId| {
            let mut all: Vec<PlaceId> = links
                .iter()
                .filter_map(|(one, other)| match () {
                    () if *one == of => Some(*other),
                    () if *other == of => Some(*one),
                    () => None,
                })
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
        let check = |(to, next): (u32, Option<PlaceId>)| {
            next.ok_or(RouteError::NoRoute { from: here, to: PlaceId(to) })
        };
        let next = (0..).zip(next).map(check).collect::<Result<_, _>>()?;
        Ok(Routes { here, next, links: links.to_vec() })
    }

    /// Returns the next place on the route to `to`.
    #[inline]
    pub fn next_hop(&self, to: PlaceId) -> PlaceId {
        self.next[to.index()]
    }

    /// Returns the places that this one cannot exchange packets with once `dead` is dead: `dead` itself, and each place
    /// whose packets come or go through it. Both places of each such pair agree on it.
    pub fn lost_with(&self, dead: PlaceId) -> Vec<PlaceId> {
        if self.links.is_empty() {
            return vec![dead];
        }
        let places = self.next.len() as u32;
        let all = (0..places).map(|here| Routes::over_links(PlaceId(here), places, &self.links));
        let Ok(all) = all.collect::<Result<Vec<_>, _>>() else { return vec![dead] };
        let leads_over = |from: PlaceId, to: PlaceId| {
            let mut at = from;
            while at != to && at != dead {
                at = all[at.index()].next_hop(to);
            }
            at == dead
        };
        let others = (0..places).map(PlaceId).filter(|place| *place != self.here);
        others.filter(|place| leads_over(self.here, *place) || leads_over(*place, self.here)).collect()
    }
}
