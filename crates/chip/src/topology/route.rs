//! Routes: dimension by dimension, the shorter way round on a torus, through the switch of a crossbar.
//!
//! A route is an iterator of a few words, made without allocation. If both ways round a torus are equally long, a
//! packet goes towards larger coordinates, so that a pair of tiles always uses the same links.

use super::{Link, Port, Shape, TileId, Topology};

/// The remaining links of a way between two tiles.
#[derive(Clone, Debug)]
pub struct Route {
    /// The tile that the packet is at; on a crossbar, its source.
    at: TileId,
    to: TileId,
    legs: Legs,
}

/// Links that remain to be crossed.
#[derive(Clone, Debug)]
enum Legs {
    /// The way along each axis.
    Axes([Leg; 3]),
    /// Number of remaining links of the two through the switch.
    Switch(u32),
}

/// The way along one axis.
#[derive(Clone, Copy, Debug)]
struct Leg {
    /// Number of links.
    links: u32,
    /// The port of these links.
    port: Port,
    /// Number of links before the wraparound link of a torus, if there is one.
    before_round: u32,
    /// Addend to the number of a tile for each link, modulo 2^32.
    step: u32,
    /// Addend for the wraparound link.
    round: u32,
}

impl Route {
    #[inline]
    pub(super) fn new(topology: &Topology, from: TileId, to: TileId) -> Self {
        let legs = match topology.shape() {
            Shape::Crossbar => Legs::Switch(if from == to { 0 } else { 2 }),
            Shape::Mesh | Shape::Torus => {
                let (start, end) = (topology.coordinates(from), topology.coordinates(to));
                let [columns, rows, _] = topology.extent();
                let along = |axis: usize, stride| leg(topology, axis, start[axis], end[axis], stride);
                Legs::Axes([along(0, 1), along(1, columns), along(2, columns * rows)])
            }
        };
        Self { at: from, to, legs }
    }

    /// Returns the number of remaining links.
    #[inline]
    pub(crate) fn remaining(&self) -> u32 {
        match &self.legs {
            Legs::Axes(legs) => legs.iter().map(|leg| leg.links).sum(),
            Legs::Switch(links) => *links,
        }
    }
}

/// The way along one axis, on which the numbers of neighbours differ by `stride`.
#[inline]
fn leg(topology: &Topology, axis: usize, start: u32, end: u32, stride: u32) -> Leg {
    let extent = topology.extent()[axis];
    let straight = start.abs_diff(end);
    let (mut links, mut forward) = (straight, end > start);
    let around = extent - straight;
    if topology.shape() == Shape::Torus && (around < straight || around == straight && !forward) {
        (links, forward) = (around, !forward);
    }
    let (step, all) = (stride, stride * (extent - 1));
    let (before_round, step, round) = if forward {
        (extent - 1 - start, step, all.wrapping_neg())
    } else {
        (start, step.wrapping_neg(), all)
    };
    Leg { links, port: Port::along(axis, forward), before_round, step, round }
}

impl Iterator for Route {
    type Item = Link;

    #[inline]
    fn next(&mut self) -> Option<Link> {
        match &mut self.legs {
            Legs::Axes(legs) => {
                let leg = legs.iter_mut().find(|leg| leg.links > 0)?;
                leg.links -= 1;
                let link = Link { tile: self.at, port: leg.port };
                let step = if leg.before_round == 0 { leg.round } else { leg.step };
                leg.before_round = leg.before_round.wrapping_sub(1);
                self.at = TileId(self.at.0.wrapping_add(step));
                Some(link)
            }
            Legs::Switch(links) => {
                *links = links.checked_sub(1)?;
                let (tile, port) = if *links == 1 { (self.at, Port::Out) } else { (self.to, Port::In) };
                Some(Link { tile, port })
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let links = self.remaining() as usize;
        (links, Some(links))
    }
}

impl ExactSizeIterator for Route {}
