//! Dijkstra's algorithm for edges whose travel time depends on the departure: TVE.
//!
//! The search is a state machine: it returns the next edge, and receives the arrival with the best dive profile. So
//! the same search runs alone and with workers, and examines the same edges in the same order. It is exact because
//! edges are first in, first out (see [`crate::glide`]). Invariant: a waypoint is settled once, at its earliest
//! arrival; ties go to the lower number.

use crate::glide::NEVER;
use crate::sea::{Sea, Waypoint};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An edge whose arrival the search requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Start of the edge.
    pub from: Waypoint,
    /// End of the edge.
    pub to: Waypoint,
    /// Seconds since the start of the mission.
    pub departure: u32,
}

/// The last step to a waypoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Seconds since the start of the mission.
    pub arrival: u32,
    /// The previous waypoint; the waypoint itself at the start.
    pub from: Waypoint,
    /// The dive profile of the edge that leads there.
    pub profile: u32,
}

/// A search in progress.
pub struct RouteSearch<'s> {
    sea: &'s Sea,
    goal: Waypoint,
    reached: Vec<Option<Reached>>,
    settled: Vec<bool>,
    queue: BinaryHeap<Reverse<(u32, Waypoint)>>,
    /// The remaining edges of the waypoint settled last, and that waypoint.
    edges: Vec<Waypoint>,
    from: Waypoint,
    examined: u64,
}

impl<'s> RouteSearch<'s> {
    /// Starts a search at `start`, at time 0.
    pub fn new(sea: &'s Sea, start: Waypoint, goal: Waypoint) -> RouteSearch<'s> {
        let number = sea.waypoints() as usize;
        let mut search = RouteSearch {
            sea,
            goal,
            reached: vec![None; number],
            settled: vec![false; number],
            queue: BinaryHeap::from([Reverse((0, start))]),
            edges: Vec::new(),
            from: start,
            examined: 0,
        };
        search.reached[start.0 as usize] = Some(Reached { arrival: 0, from: start, profile: 0 });
        search
    }

    /// Returns the next edge to examine; `None` if the goal is settled, or cannot be reached.
    pub fn next_edge(&mut self) -> Option<Edge> {
        loop {
            while let Some(to) = self.edges.pop() {
                if !self.settled[to.0 as usize] {
                    self.examined += 1;
                    let departure = self.arrival(self.from)?;
                    return Some(Edge { from: self.from, to, departure });
                }
            }
            let Reverse((_, next)) = self.queue.pop()?;
            if std::mem::replace(&mut self.settled[next.0 as usize], true) {
                continue;
            }
            if next == self.goal {
                self.queue.clear();
                return None;
            }
            self.from = next;
            self.edges = self.sea.neighbours(next);
            self.edges.reverse();
        }
    }

    /// Records the arrival along `edge` with its best dive profile.
    pub fn record_arrival(&mut self, edge: Edge, arrival: u32, profile: u32) {
        let known = &mut self.reached[edge.to.0 as usize];
        if arrival != NEVER && known.is_none_or(|known| arrival < known.arrival) {
            *known = Some(Reached { arrival, from: edge.from, profile });
            self.queue.push(Reverse((arrival, edge.to)));
        }
    }

    /// Returns the earliest arrival at a waypoint known so far.
    pub fn arrival(&self, waypoint: Waypoint) -> Option<u32> {
        self.reached[waypoint.0 as usize].map(|reached| reached.arrival)
    }

    /// Returns the number of edges examined so far.
    pub fn examined(&self) -> u64 {
        self.examined
    }

    /// Returns the waypoints of the route from the start to the goal, each with its last step; empty if there is none.
    pub fn route(&self) -> Vec<(Waypoint, Reached)> {
        let mut route = Vec::new();
        let mut at = self.goal;
        while let Some(reached) = self.reached[at.0 as usize] {
            route.push((at, reached));
            if reached.from == at {
                break;
            }
            at = reached.from;
        }
        route.reverse();
        route
    }
}

/// Returns the earliest of the arrivals by profile, and its profile; ties go to the shallowest.
pub fn best(arrivals: impl IntoIterator<Item = u32>) -> (u32, u32) {
    let numbered = arrivals.into_iter().zip(0_u32..);
    numbered.min().unwrap_or((NEVER, 0))
}
