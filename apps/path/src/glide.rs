//! The time of a glider along an edge: a saw-tooth dive through moving water.
//!
//! A glider moves at [`SPEED`] through the water and steers against the cross current to stay on its edge. A dive
//! profile sets the depth of the saw tooth. The edge is cut into pieces, time into slots; in a piece and a slot the
//! current is taken at their middles, so each part is integrated exactly. If the glider makes no headway, or an
//! obstacle is above it, it waits on the sea floor. Invariant: the speed along an edge is a non-negative function of
//! position and time, so a later departure never arrives earlier (first in, first out), as Dijkstra's algorithm
//! requires.

use crate::current::Moment;
use crate::sea::{Position, Sea, Waypoint};
use isles::Work;
use serde::{Deserialize, Serialize};

/// Speed through the water in metres per second: that of the Slocum glider (Graver et al., 2003), as in the paper.
pub const SPEED: f64 = 0.35;

/// The tangent of the dive and climb angle: 26 degrees.
const SLOPE: f64 = 0.487_7;

/// Depth that the deepest dive profile reaches, in metres.
pub const DEEPEST: f64 = 200.0;

/// Rounding tolerance of the integration: a time this many seconds above a whole second counts as that second.
const SLACK: f64 = 1e-6;

/// The step of the integration along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    /// Dive profiles of an edge.
    pub profiles: u32,
    /// Longest piece of an edge, in metres.
    pub piece: f64,
    /// Length of a slot, in seconds.
    pub slot: f64,
    /// Arrivals are rounded up to whole multiples of this number of seconds.
    pub quantum: u32,
    /// Latest accepted arrival, in seconds.
    pub horizon: u32,
}

/// A dive along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dive {
    /// Start of the edge.
    pub from: Waypoint,
    /// End of the edge.
    pub to: Waypoint,
    /// Seconds since the start of the mission.
    pub departure: u32,
    /// The number of the dive profile, the shallowest first.
    pub profile: u32,
}

/// The arrival time of an impossible edge.
pub const NEVER: u32 = u32::MAX;

/// The result of a dive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiveResult {
    /// Seconds since the start of the mission, or [`NEVER`].
    pub arrival: u32,
    /// The number of evaluations of the current.
    pub evaluations: u32,
}

/// Returns the depth that a profile reaches.
pub fn reached(profile: u32, profiles: u32) -> f64 {
    DEEPEST * f64::from(profile + 1) / f64::from(profiles)
}

/// Computes a dive along an edge.
pub fn glide(sea: &Sea, resolution: &Resolution, dive: Dive) -> DiveResult {
    let bottom = reached(dive.profile, resolution.profiles);
    if bottom > sea.floor {
        return DiveResult { arrival: NEVER, evaluations: 0 };
    }
    let (from, to) = (sea.position(dive.from), sea.position(dive.to));
    let length = from.distance(to);
    let course = Position { east: (to.east - from.east) / length, north: (to.north - from.north) / length };
    let pieces = (length / resolution.piece).ceil().max(1.0);
    let teeth = (length * SLOPE / (2.0 * bottom)).ceil();
    let (mut time, mut evaluations) = (f64::from(dive.departure), 0);
    // Counted up, because dividing a slot's start by the slot length may round down to the previous number.
    let mut slot = (time / resolution.slot).floor();
    for number in 0..pieces as u32 {
        let part = (f64::from(number) + 0.5) / pieces;
        let middle = Position {
            east: from.east + part * (to.east - from.east),
            north: from.north + part * (to.north - from.north),
        };
        let tooth = (part * teeth).fract();
        let depth = bottom * (1.0 - (2.0 * tooth - 1.0).abs());
        let mut left = length / pieces;
        while left > 0.0 {
            if time > f64::from(resolution.horizon) {
                return DiveResult { arrival: NEVER, evaluations };
            }
            let end = (slot + 1.0) * resolution.slot;
            if time >= end {
                slot += 1.0;
                continue;
            }
            let speed = speed(
                sea,
                resolution,
                Moment {
                    east: middle.east,
                    north: middle.north,
                    depth,
                    time: (slot + 0.5) * resolution.slot,
                },
                course,
            );
            evaluations += 1;
            if speed * (end - time) >= left {
                time += left / speed;
                left = 0.0;
            } else {
                left -= speed * (end - time);
                time = end;
            }
        }
    }
    let quantum = f64::from(resolution.quantum);
    let arrival = ((time - SLACK) / quantum).ceil() * quantum;
    let is_late = arrival > f64::from(resolution.horizon);
    DiveResult { arrival: if is_late { NEVER } else { arrival as u32 }, evaluations }
}

/// Returns the speed along `course` at `middle`, the middle of a piece and of a slot, in metres per second; 0 if the
/// glider waits on the sea floor.
fn speed(sea: &Sea, resolution: &Resolution, middle: Moment, course: Position) -> f64 {
    let position = Position { east: middle.east, north: middle.north };
    let half = resolution.piece / 2.0;
    let is_covered = sea.moving().any(|obstacle| {
        let wider = crate::sea::Obstacle { radius: obstacle.radius + half, ..*obstacle };
        wider.covers(position, middle.time, resolution.slot / 2.0)
    });
    if is_covered {
        return 0.0;
    }
    let water = sea.current(middle);
    let along = water.east * course.east + water.north * course.north;
    let across = water.north * course.east - water.east * course.north;
    let forward = SPEED * SPEED - across * across;
    debug_assert!(forward.is_finite() && along.is_finite(), "a current of {water:?} at {position:?}");
    if forward > 0.0 { (along + forward.sqrt()).max(0.0) } else { 0.0 }
}

/// Returns the cost of dives with `evaluations` evaluations of the current on a modelled core.
pub fn work_of(sea: &Sea, evaluations: u64) -> Work {
    let moving = sea.moving().count() as u64;
    // In addition to the current: the saw tooth, the velocity triangle with its root, and the end of the piece.
    sea.current
        .work(evaluations)
        .integers(30 * evaluations)
        .floats((26 + 12 * moving) * evaluations)
        .divisions((4 + moving) * evaluations)
        .branches((5 + moving) * evaluations)
}
