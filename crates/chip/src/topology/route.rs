//! Routes: dimension by dimension, on a torus the shorter way round, through a crossbar by its switch.
//!
//! A route is an iterator of a few words; making one allocates nothing. Where both ways round a torus are equally
//! long, a packet goes towards larger coordinates, so that the same pair always takes the same links.

use super::{Link, Port, Shape, TileId, Topology};

/// The links between two tiles that are still to be crossed.
#[derive(Clone, Debug)]
pub struct Route {
    topology: Topology,
    /// The tile that the packet is at; on a crossbar, the one that it comes from.
    at: TileId,
    to: TileId,
    legs: Legs,
}

/// What remains to be crossed.
#[derive(Clone, Debug)]
enum Legs {
    /// On each axis: how many links, and whether towards larger coordinates.
    Axes([(u32, bool); 3]),
    /// How many of the two links by the switch.
    Switch(u32),
}

impl Route {
    pub(super) fn new(topology: &Topology, from: TileId, to: TileId) -> Self {
        let legs = match topology.shape() {
            Shape::Crossbar => Legs::Switch(if from == to { 0 } else { 2 }),
            Shape::Mesh | Shape::Torus => {
                let (start, end) = (topology.coordinates(from), topology.coordinates(to));
                Legs::Axes([0, 1, 2].map(|axis| leg(topology, axis, start[axis], end[axis])))
            }
        };
        Self { topology: *topology, at: from, to, legs }
    }

    /// How many links remain.
    pub(super) fn remaining(&self) -> u32 {
        match &self.legs {
            Legs::Axes(legs) => legs.iter().map(|(links, _)| links).sum(),
            Legs::Switch(links) => *links,
        }
    }
}

/// The way along one axis: how many links, and whether towards larger coordinates.
fn leg(topology: &Topology, axis: usize, start: u32, end: u32) -> (u32, bool) {
    if topology.shape() == Shape::Mesh {
        return (start.abs_diff(end), end > start);
    }
    let extent = topology.extent()[axis];
    let forward = (end + extent - start) % extent;
    let backward = (extent - forward) % extent;
    if forward <= backward { (forward, true) } else { (backward, false) }
}

impl Iterator for Route {
    type Item = Link;

    fn next(&mut self) -> Option<Link> {
        match &mut self.legs {
            Legs::Axes(legs) => {
                let axis = legs.iter().position(|(links, _)| *links > 0)?;
                let (links, forward) = &mut legs[axis];
                *links -= 1;
                let link = Link { tile: self.at, port: Port::along(axis, *forward) };
                self.at = self.topology.neighbour(link.tile, link.port)?;
                Some(link)
            }
            Legs::Switch(links) => {
                *links = links.checked_sub(1)?;
                let (tile, port) = if *links == 1 { (self.at, Port::Out) } else { (self.to, Port::In) };
                Some(Link { tile, port })
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let links = self.remaining() as usize;
        (links, Some(links))
    }
}

impl ExactSizeIterator for Route {}
