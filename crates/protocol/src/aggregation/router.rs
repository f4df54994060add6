//! The next place for an item on its way to another.
//!
//! A router numbers the *lanes* of its place: one for each place to which it sends, and one for the place itself. Along
//! a torus, items go by dimension, the first one first, so no two routes wait for each other in a circle. Invariant:
//! each hop brings an item nearer to its place, and lanes of one dimension never wait for those of a lower one.

use super::torus::Torus;
use crate::PlaceId;
use serde::{Deserialize, Serialize};

/// Route of items from place to place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ItemRoute {
    /// Direct: each place has a bucket for each other.
    Direct,
    /// Along the dimensions of a torus with one node for each place.
    Torus(Torus),
    /// Along the dimensions of a torus whose nodes are groups of consecutive places, one place more than dimensions.
    /// The first of a group makes items and sends them along the first dimension, the next along the second, and so on;
    /// the last applies them (Aggarwal, Sabharwal, Garg, Heidelberger 2009, section 4.3).
    Roles(Torus),
    /// As `Roles`, with groups of another size: consecutive dimensions are divided among the first `routers` places of
    /// a group, and the last `appliers` places apply items, each its own (section 6 of that paper).
    SharedRoles {
        /// The torus.
        shape: Torus,
        /// Number of places of a group that route items, at most one for each dimension.
        routers: u32,
        /// Number of places of a group that apply items.
        appliers: u32,
    },
}

/// Division of a group of places among dimensions and items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RoleSplit {
    dimensions: u32,
    routers: u32,
    appliers: u32,
}

impl RoleSplit {
    fn of(route: &ItemRoute) -> Option<(&Torus, RoleSplit)> {
        let dimensions = |shape: &Torus| shape.extents().len() as u32;
        match route {
            ItemRoute::Direct | ItemRoute::Torus(_) => None,
            ItemRoute::Roles(shape) => {
                let dimensions = dimensions(shape);
                Some((shape, RoleSplit { dimensions, routers: dimensions, appliers: 1 }))
            }
            ItemRoute::SharedRoles { shape, routers, appliers } => {
                let split =
                    RoleSplit { dimensions: dimensions(shape), routers: *routers, appliers: *appliers };
                Some((shape, split))
            }
        }
    }

    /// Returns the number of places of a group; a number that no run has if it does not fit.
    fn group(self) -> u32 {
        self.routers.saturating_add(self.appliers)
    }

    /// Returns the role that sends along `dimension`.
    fn router_of(self, dimension: usize) -> u32 {
        // Each has at least the dimensions that an even division gives it.
        (dimension as u32 * self.routers) / self.dimensions
    }

    fn is_last(self, dimension: usize) -> bool {
        dimension + 1 == self.dimensions as usize
    }

    /// Returns the first dimension of a role; the number of dimensions if the role applies items.
    fn first_dimension(self, role: u32) -> usize {
        let dimensions = self.dimensions as usize;
        (0..dimensions).find(|dimension| self.router_of(*dimension) >= role).unwrap_or(dimensions)
    }
}

/// A route that a run cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteFault {
    /// No dimension, too many dimensions, one of length zero, or too many nodes.
    Shape(Vec<u32>),
    /// A text that is not a shape.
    Text(String),
    /// A route for another number of places.
    Places {
        /// The shape.
        shape: Torus,
        /// Number of places that the route is for.
        needed: u64,
        /// Number of places of the run.
        places: u32,
    },
    /// No router, more routers than dimensions, or no place that applies items.
    Roles {
        /// Number of dimensions.
        dimensions: u32,
        /// Number of routers.
        routers: u32,
        /// Number of places that apply items.
        appliers: u32,
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
            RouteFault::Roles { dimensions, routers, appliers } => write!(
                f,
                "{routers} places of a group route {dimensions} dimensions and {appliers} apply items; \
                 allowed: 1 to {dimensions} routing places and at least 1 applying place"
            ),
        }
    }
}

impl std::error::Error for RouteFault {}

/// The next hop of an item.
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
    /// With roles, the division of a group.
    split: RoleSplit,
    /// Along a torus, the first lane of each dimension; the last entry follows all lanes.
    first_lanes: Vec<usize>,
}

impl Router {
    /// Makes the router of place `here` of `places`.
    ///
    /// # Errors
    /// [`RouteFault::Places`]: the shape is for another number of places. [`RouteFault::Roles`]: a group cannot be
    /// divided like that.
    pub fn new(route: ItemRoute, here: PlaceId, places: u32) -> Result<Router, RouteFault> {
        let split = RoleSplit::of(&route).map(|(_, split)| split);
        let split = split.unwrap_or(RoleSplit { dimensions: 1, routers: 1, appliers: 1 });
        let (shape, group) = match &route {
            ItemRoute::Direct => {
                return Ok(Router { here: here.0, places, route, split, first_lanes: Vec::new() });
            }
            ItemRoute::Torus(shape) => (shape, 1),
            ItemRoute::Roles(shape) | ItemRoute::SharedRoles { shape, .. } => (shape, split.group()),
        };
        let RoleSplit { dimensions, routers, appliers } = split;
        if !(1..=dimensions).contains(&routers) || appliers == 0 {
            return Err(RouteFault::Roles { dimensions, routers, appliers });
        }
        let needed = u64::from(shape.nodes()) * u64::from(group);
        if needed != u64::from(places) {
            return Err(RouteFault::Places { shape: shape.clone(), needed, places });
        }
        let mut first_lanes = vec![0];
        for (dimension, extent) in shape.extents().iter().enumerate() {
            // Along the last dimension each place that applies items has its own lanes.
            let each = if split.is_last(dimension) { appliers as usize } else { 1 };
            first_lanes.push(first_lanes.last().copied().unwrap_or(0) + *extent as usize * each);
        }
        Ok(Router { here: here.0, places, route, split, first_lanes })
    }

    /// Returns the place of the router.
    pub fn here(&self) -> PlaceId {
        PlaceId(self.here)
    }

    /// Returns the number of lanes, some of which lead nowhere.
    pub fn lanes(&self) -> usize {
        match &self.route {
            ItemRoute::Direct => self.places as usize,
            // After the lanes of the dimensions come those within the group, including the place's own.
            ItemRoute::Torus(_) => self.lanes_past_dimensions() + 1,
            ItemRoute::Roles(_) | ItemRoute::SharedRoles { .. } => {
                self.lanes_past_dimensions() + self.split.group() as usize
            }
        }
    }

    /// Returns the number of places to which this one sends, on which the number of its buckets depends.
    pub fn peers(&self) -> usize {
        match &self.route {
            ItemRoute::Direct => self.places as usize - 1,
            ItemRoute::Torus(shape) => shape.extents().iter().map(|extent| *extent as usize - 1).sum(),
            ItemRoute::Roles(shape) | ItemRoute::SharedRoles { shape, .. } => {
                let (role, RoleSplit { routers, appliers, .. }) = (self.role(), self.split);
                if role >= routers {
                    return 0;
                }
                let along = |(dimension, extent): (usize, &u32)| {
                    let each = if self.split.is_last(dimension) { appliers as usize } else { 1 };
                    (*extent as usize - 1) * each
                };
                let own = shape.extents().iter().enumerate();
                let own = own.filter(|(dimension, _)| self.split.router_of(*dimension) == role).map(along);
                own.sum::<usize>() + (self.split.group() - role - 1) as usize
            }
        }
    }

    /// Returns `true` if all items in `lane` are for the place to which it leads.
    pub fn is_last(&self, lane: usize) -> bool {
        match &self.route {
            ItemRoute::Direct => true,
            ItemRoute::Torus(shape) => lane >= self.first_lanes[shape.extents().len() - 1],
            ItemRoute::Roles(_) | ItemRoute::SharedRoles { .. } => {
                let (past, split) = (self.lanes_past_dimensions(), self.split);
                // Along the last dimension, or within the group to a place that applies items.
                let last = self.first_lanes[split.dimensions as usize - 1]..past;
                (self.role() + 1 == split.routers && last.contains(&lane))
                    || lane >= past + split.routers as usize
            }
        }
    }

    /// Returns the next hop of an item for `to`; `None` if there is no route from here: with roles, items go from the
    /// first places of groups to the last ones.
    #[inline]
    pub fn hop(&self, to: PlaceId) -> Option<Hop> {
        match &self.route {
            ItemRoute::Direct => (to.0 < self.places).then(|| Hop { lane: to.index(), peer: to }),
            _ if to.0 >= self.places => None,
            ItemRoute::Torus(shape) => Some(self.hop_in_torus(shape, to)),
            ItemRoute::Roles(shape) | ItemRoute::SharedRoles { shape, .. } => self.hop_by_role(shape, to),
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
        let (split, role) = (self.split, self.role());
        let (group, routers) = (split.group(), split.routers);
        let (node, target) = (self.here / group, to.0 / group);
        let within = |role: u32| Hop {
            lane: self.lanes_past_dimensions() + role as usize,
            peer: PlaceId(node * group + role),
        };
        let applier = (to.0 % group).checked_sub(routers)?;
        if role >= routers {
            return (to.0 == self.here).then(|| within(role));
        }
        // This place cannot send along dimensions of earlier roles, so an item that begins here must not need them.
        let first = split.first_dimension(role);
        let is_behind = |(dimension, _)| dimension < first;
        if first > 0 && shape.first_difference(node, target, 0).is_some_and(is_behind) {
            return None;
        }
        Some(match shape.first_difference(node, target, first) {
            None => within(routers + applier),
            Some((dimension, coordinate)) if split.router_of(dimension) == role => Hop {
                lane: self.lane_along(dimension, coordinate, applier),
                peer: PlaceId(
                    shape.with_coordinate(node, dimension, coordinate) * group
                        + self.receiver(dimension, applier),
                ),
            },
            Some((dimension, _)) => within(split.router_of(dimension)),
        })
    }

    /// Returns the lane that leads along `dimension` to a coordinate; along the last dimension, to the place there that
    /// applies the items of number `applier`.
    fn lane_along(&self, dimension: usize, coordinate: u32, applier: u32) -> usize {
        let first = self.first_lanes[dimension];
        match self.split.is_last(dimension) {
            true => first + (coordinate * self.split.appliers + applier) as usize,
            false => first + coordinate as usize,
        }
    }

    /// Returns the role that receives items from `dimension`: that of the next dimension, or one that applies items.
    fn receiver(&self, dimension: usize, applier: u32) -> u32 {
        match self.split.is_last(dimension) {
            true => self.split.routers + applier,
            false => self.split.router_of(dimension + 1),
        }
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
            ItemRoute::Roles(shape) | ItemRoute::SharedRoles { shape, .. } => {
                let group = self.split.group();
                let node = self.here / group;
                if let Some(role) = lane.checked_sub(self.lanes_past_dimensions()) {
                    return ((role as u32) < group).then(|| PlaceId(node * group + role as u32));
                }
                let dimension = dimension_of(lane)?;
                let along = (lane - self.first_lanes[dimension]) as u32;
                let (coordinate, applier) = match self.split.is_last(dimension) {
                    true => (along / self.split.appliers, along % self.split.appliers),
                    false => (along, 0),
                };
                let next = shape.with_coordinate(node, dimension, coordinate);
                let is_own = self.role() == self.split.router_of(dimension);
                is_own.then(|| PlaceId(next * group + self.receiver(dimension, applier)))
            }
        }
    }

    /// Returns the lane that leads to `peer`, if any.
    pub(crate) fn lane_to(&self, peer: PlaceId) -> Option<usize> {
        match &self.route {
            _ if peer.0 >= self.places => None,
            ItemRoute::Direct => Some(peer.index()),
            ItemRoute::Torus(shape) => {
                let hop = self.hop_in_torus(shape, peer);
                (hop.peer == peer).then_some(hop.lane)
            }
            ItemRoute::Roles(shape) | ItemRoute::SharedRoles { shape, .. } => {
                let group = self.split.group();
                let (own, node, role) = (self.here / group, peer.0 / group, peer.0 % group);
                if node == own {
                    return (role >= self.role()).then(|| self.lanes_past_dimensions() + role as usize);
                }
                let (dimension, coordinate) = shape.first_difference(own, node, 0)?;
                let applier = role.saturating_sub(self.split.routers);
                let is_next = self.split.router_of(dimension) == self.role()
                    && role == self.receiver(dimension, applier)
                    && shape.with_coordinate(own, dimension, coordinate) == node;
                is_next.then(|| self.lane_along(dimension, coordinate, applier))
            }
        }
    }

    /// Returns the role of this place in its group: routers come first, in the order of their dimensions.
    fn role(&self) -> u32 {
        match &self.route {
            ItemRoute::Roles(_) | ItemRoute::SharedRoles { .. } => self.here % self.split.group(),
            ItemRoute::Direct | ItemRoute::Torus(_) => 0,
        }
    }

    fn lanes_past_dimensions(&self) -> usize {
        self.first_lanes.last().copied().unwrap_or(0)
    }
}
