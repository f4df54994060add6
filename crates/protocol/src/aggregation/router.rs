//! The next place for an item on its way to another.
//!
//! A router numbers the *lanes* of its place: one for each place to which it sends, and one for the place itself. Along
//! a torus, items go by dimension, the first one first; so no two routes wait for each other in a circle. Invariant:
//! each hop brings an item nearer to its place, and lanes of one dimension never wait for those of a lower one.

use super::torus::Torus;
use crate::PlaceId;
use serde::{Deserialize, Serialize};

/// Route of items from place to place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ItemRoute {
    /// Straight: each place has a bucket for each other.
    Direct,
    /// Along the dimensions of a torus, one node a place.
    Torus(Torus),
    /// Along the dimensions of a torus whose nodes are groups of consecutive places, one more than it has dimensions.
    /// The first of a group makes items and sends them along the first dimension, the next along the second, and so on;
    /// the last applies them (Aggarwal, Sabharwal, Garg, Heidelberger 2009, section 4.3).
    Roles(Torus),
}

/// A route that a run cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteFault {
    /// No dimension, too many, one of length zero, or too many nodes.
    Shape(Vec<u32>),
    /// A text that is no shape.
    Text(String),
    /// A route for another number of places.
    Places {
        /// The shape.
        shape: Torus,
        /// Number of places that the route is for.
        needed: u64,
        /// Number of places there are.
        places: u32,
    },
}

impl std::fmt::Display for RouteFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RouteFault::Shape(extents) => {
                write!(
                    f,
                    "{extents:?} is not a shape; allowed: 1 to 15 extents of at least 1, below 2^32 nodes"
                )
            }
            RouteFault::Text(text) => {
                write!(f, "{text:?} is not a shape; allowed: extents separated by x, such as 4x4x2")
            }
            RouteFault::Places { shape, needed, places } => {
                write!(f, "the shape {shape} is for {needed} places, but the run has {places}")
            }
        }
    }
}

impl std::error::Error for RouteFault {}

/// The next step of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The lane that it takes.
    pub lane: usize,
    /// Place to which the lane leads; the place itself if the item has arrived.
    pub peer: PlaceId,
}

/// The lanes of one place.
#[derive(Clone, Debug)]
pub struct Router {
    here: u32,
    places: u32,
    route: ItemRoute,
    /// Along a torus, the first lane of each dimension; the last is behind all.
    first_lanes: Vec<usize>,
}

impl Router {
    /// The router of place `here` of `places`.
    ///
    /// # Errors
    /// [`RouteFault::Places`]: the shape is one of another number of places.
    pub fn new(route: ItemRoute, here: PlaceId, places: u32) -> Result<Router, RouteFault> {
        let (shape, group) = match &route {
            ItemRoute::Direct => return Ok(Router { here: here.0, places, route, first_lanes: Vec::new() }),
            ItemRoute::Torus(shape) => (shape, 1),
            ItemRoute::Roles(shape) => (shape, shape.extents().len() as u64 + 1),
        };
        let needed = u64::from(shape.nodes()) * group;
        if needed != u64::from(places) {
            return Err(RouteFault::Places { shape: shape.clone(), needed, places });
        }
        let mut first_lanes = vec![0];
        for extent in shape.extents() {
            first_lanes.push(first_lanes.last().copied().unwrap_or(0) + *extent as usize);
        }
        Ok(Router { here: here.0, places, route, first_lanes })
    }

    /// The place itself.
    pub fn here(&self) -> PlaceId {
        PlaceId(self.here)
    }

    /// Returns the number of lanes, some of which lead nowhere.
    pub fn lanes(&self) -> usize {
        match &self.route {
            ItemRoute::Direct => self.places as usize,
            // Behind the lanes of the dimensions stand those within the group, the place's own among them.
            ItemRoute::Torus(_) => self.lanes_past_dimensions() + 1,
            ItemRoute::Roles(shape) => self.lanes_past_dimensions() + shape.extents().len() + 1,
        }
    }

    /// Returns the number of places to which this one sends: the number its buckets are counted by.
    pub fn peers(&self) -> usize {
        match &self.route {
            ItemRoute::Direct => self.places as usize - 1,
            ItemRoute::Torus(shape) => shape.extents().iter().map(|extent| *extent as usize - 1).sum(),
            ItemRoute::Roles(shape) => {
                let role = self.role();
                let along = shape.extents().get(role).map_or(0, |extent| *extent as usize - 1);
                along + shape.extents().len() - role
            }
        }
    }

    /// Returns `true` if everything in `lane` is for the place to which it leads.
    pub fn is_last(&self, lane: usize) -> bool {
        match &self.route {
            ItemRoute::Direct => true,
            ItemRoute::Torus(shape) => lane >= self.first_lanes[shape.extents().len() - 1],
            ItemRoute::Roles(shape) => {
                let last = shape.extents().len();
                // Along the last dimension, or within the group to the one that applies.
                (self.role() + 1 == last && lane < self.lanes_past_dimensions())
                    || lane == self.lanes_past_dimensions() + last
            }
        }
    }

    /// The next step of an item for `to`; none if nothing can get there from here: with roles, items go from the first
    /// places of groups to the last ones.
    #[inline]
    pub fn hop(&self, to: PlaceId) -> Option<Hop> {
        match &self.route {
            ItemRoute::Direct => (to.0 < self.places).then(|| Hop { lane: to.index(), peer: to }),
            _ if to.0 >= self.places => None,
            ItemRoute::Torus(shape) => Some(self.hop_in_torus(shape, to)),
            ItemRoute::Roles(shape) => self.hop_by_role(shape, to),
        }
    }

    fn hop_in_torus(&self, shape: &Torus, to: PlaceId) -> Hop {
        match shape.first_difference(self.here, to.0, 0) {
            None => Hop { lane: self.lanes_past_dimensions(), peer: self.here() },
            Some((dimension, coordinate)) => Hop {
                lane: self.first_lanes[dimension] + coordinate as usize,
                peer: PlaceId(shape.with_coordinate(self.here, dimension, coordinate)),
            },
        }
    }

    fn hop_by_role(&self, shape: &Torus, to: PlaceId) -> Option<Hop> {
        let dimensions = shape.extents().len();
        let (group, role) = (dimensions as u32 + 1, self.role());
        let (node, target) = (self.here / group, to.0 / group);
        let within = |role: usize| Hop {
            lane: self.lanes_past_dimensions() + role,
            peer: PlaceId(node * group + role as u32),
        };
        if to.0 % group != group - 1 || (role == dimensions && node != target) {
            return None;
        }
        Some(match shape.first_difference(node, target, role) {
            None => within(dimensions),
            Some((dimension, coordinate)) if dimension == role => Hop {
                lane: self.first_lanes[dimension] + coordinate as usize,
                peer: PlaceId(
                    shape.with_coordinate(node, dimension, coordinate) * group + dimension as u32 + 1,
                ),
            },
            Some((dimension, _)) => within(dimension),
        })
    }

    /// Returns the place to which a lane leads, if any.
    pub(crate) fn peer_of(&self, lane: usize) -> Option<PlaceId> {
        let dimension_of = |lane: usize| self.first_lanes.iter().rposition(|first| *first <= lane);
        match &self.route {
            ItemRoute::Direct => (lane < self.places as usize).then_some(PlaceId(lane as u32)),
            ItemRoute::Torus(_) if lane == self.lanes_past_dimensions() => Some(self.here()),
            ItemRoute::Torus(shape) => {
                let dimension = dimension_of(lane).filter(|dimension| *dimension < shape.extents().len())?;
                let coordinate = (lane - self.first_lanes[dimension]) as u32;
                Some(PlaceId(shape.with_coordinate(self.here, dimension, coordinate)))
            }
            ItemRoute::Roles(shape) => {
                let group = shape.extents().len() as u32 + 1;
                let node = self.here / group;
                if let Some(role) = lane.checked_sub(self.lanes_past_dimensions()) {
                    return ((role as u32) < group).then(|| PlaceId(node * group + role as u32));
                }
                let dimension = dimension_of(lane)?;
                let coordinate = (lane - self.first_lanes[dimension]) as u32;
                let next = shape.with_coordinate(node, dimension, coordinate);
                (dimension == self.role()).then(|| PlaceId(next * group + dimension as u32 + 1))
            }
        }
    }

    /// The lane that leads to `peer`, if one does.
    pub(crate) fn lane_to(&self, peer: PlaceId) -> Option<usize> {
        match &self.route {
            _ if peer.0 >= self.places => None,
            ItemRoute::Direct => Some(peer.index()),
            ItemRoute::Torus(shape) => {
                let hop = self.hop_in_torus(shape, peer);
                (hop.peer == peer).then_some(hop.lane)
            }
            ItemRoute::Roles(shape) => {
                let group = shape.extents().len() as u32 + 1;
                let (node, role) = (peer.0 / group, (peer.0 % group) as usize);
                if node == self.here / group {
                    return (role >= self.role()).then(|| self.lanes_past_dimensions() + role);
                }
                let (dimension, coordinate) = shape.first_difference(self.here / group, node, 0)?;
                let is_next = dimension == self.role()
                    && role == dimension + 1
                    && shape.with_coordinate(self.here / group, dimension, coordinate) == node;
                is_next.then(|| self.first_lanes[dimension] + shape.coordinate(node, dimension) as usize)
            }
        }
    }

    /// Returns the role of this place in its group, along the dimensions of the shape: the last one applies.
    fn role(&self) -> usize {
        match &self.route {
            ItemRoute::Roles(shape) => (self.here % (shape.extents().len() as u32 + 1)) as usize,
            _ => 0,
        }
    }

    fn lanes_past_dimensions(&self) -> usize {
        self.first_lanes.last().copied().unwrap_or(0)
    }
}
