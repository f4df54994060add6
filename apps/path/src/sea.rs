//! The sea of a mission: a grid of waypoints, edges between them, currents, land, and fixed or moving obstacles.
//!
//! Waypoints are numbered by rows from south to north, each from west to east. An edge leads to a waypoint at most
//! [`Sea::reach`] columns and rows away; each direction has one edge. Invariant: an edge is open in both directions or
//! in neither, because land and fixed obstacles do not depend on time.

use crate::current::{Current, Moment, Velocity};
use serde::{Deserialize, Serialize};

/// A position in metres east and north.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// Metres east of the first waypoint.
    pub east: f64,
    /// Metres north of it.
    pub north: f64,
}

impl Position {
    /// Returns the distance to `other`, in metres.
    pub fn distance(self, other: Position) -> f64 {
        (self.east - other.east).hypot(self.north - other.north)
    }
}

/// A forbidden disc, which may move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Obstacle {
    /// Middle at the start of the mission.
    pub middle: Position,
    /// Radius in metres.
    pub radius: f64,
    /// Velocity; zero if the obstacle does not move.
    pub velocity: Velocity,
}

impl Obstacle {
    /// Returns `true` if the obstacle moves.
    pub fn moves(&self) -> bool {
        self.velocity != Velocity::default()
    }

    /// Returns `true` if the obstacle covers a position at some time from `time - margin` to `time + margin`.
    pub fn covers(&self, position: Position, time: f64, margin: f64) -> bool {
        let middle = Position {
            east: self.middle.east + self.velocity.east * time,
            north: self.middle.north + self.velocity.north * time,
        };
        let slack = self.velocity.east.hypot(self.velocity.north) * margin;
        middle.distance(position) < self.radius + slack
    }
}

/// A waypoint by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Waypoint(pub u32);

/// The sea in which a route is planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sea {
    /// Waypoints from west to east.
    pub columns: u32,
    /// Waypoints from south to north.
    pub rows: u32,
    /// Metres between neighbours of a row and of a column.
    pub spacing: f64,
    /// The longest edge, in columns and rows.
    pub reach: u32,
    /// The current.
    pub current: Current,
    /// Land as discs, in addition to that of sampled currents.
    pub islands: Vec<Obstacle>,
    /// Forbidden discs, fixed or moving.
    pub obstacles: Vec<Obstacle>,
    /// Depth of the water in metres, away from land.
    pub floor: f64,
    /// Longitude and latitude of the first waypoint, degrees.
    pub origin: [f64; 2],
}

/// Distance between the checks for land along an edge, in metres.
const SAMPLE_SPACING: f64 = 100.0;

/// Metres per degree of latitude, on a sphere of radius 6,371 km.
const DEGREE: f64 = 111_194.93;

impl Sea {
    /// Returns the number of waypoints.
    pub fn waypoints(&self) -> u32 {
        self.columns * self.rows
    }

    /// Returns the position of a waypoint.
    pub fn position(&self, Waypoint(number): Waypoint) -> Position {
        let (row, column) = (number / self.columns, number % self.columns);
        Position { east: f64::from(column) * self.spacing, north: f64::from(row) * self.spacing }
    }

    /// Returns the waypoint nearest to a position; `None` beyond the grid.
    pub fn nearest(&self, position: Position) -> Option<Waypoint> {
        let index = |metres: f64, number: u32| {
            let index = (metres / self.spacing).round();
            (index >= 0.0 && index < f64::from(number)).then_some(index as u32)
        };
        let (column, row) = (index(position.east, self.columns)?, index(position.north, self.rows)?);
        Some(Waypoint(row * self.columns + column))
    }

    /// Returns the longitude and latitude of a position in degrees, on the plane tangent to the sphere at the origin.
    pub fn longitude_latitude(&self, position: Position) -> [f64; 2] {
        let [longitude, latitude] = self.origin;
        let across = DEGREE * latitude.to_radians().cos();
        [longitude + position.east / across, latitude + position.north / DEGREE]
    }

    /// Returns the velocity of the water.
    pub fn current(&self, moment: Moment) -> Velocity {
        self.current.at(moment)
    }

    /// Returns `true` if a position is over land, or in a fixed obstacle.
    pub fn is_closed(&self, position: Position) -> bool {
        let resting = self.obstacles.iter().filter(|obstacle| !obstacle.moves());
        let is_covered = self.islands.iter().chain(resting).any(|disc| disc.covers(position, 0.0, 0.0));
        let is_sampled_land = match &self.current {
            Current::Sampled(samples) => samples.is_land(position.east, position.north),
            _ => false,
        };
        is_covered || is_sampled_land
    }

    /// Returns the waypoints to which open edges lead from `from`, in order.
    pub fn neighbours(&self, from: Waypoint) -> Vec<Waypoint> {
        let reach = i64::from(self.reach);
        let (row, column) = (i64::from(from.0 / self.columns), i64::from(from.0 % self.columns));
        let mut found = Vec::new();
        for (up, right) in (-reach..=reach).flat_map(|up| (-reach..=reach).map(move |right| (up, right))) {
            let (row, column) = (row + up, column + right);
            let is_inside =
                (0..i64::from(self.rows)).contains(&row) && (0..i64::from(self.columns)).contains(&column);
            // Only the nearest waypoint in each direction: the others are reached through it.
            if is_inside && gcd(up.unsigned_abs(), right.unsigned_abs()) == 1 {
                let to = Waypoint((row * i64::from(self.columns) + column) as u32);
                if self.is_open(from, to) {
                    found.push(to);
                }
            }
        }
        found
    }

    /// Returns `true` if an edge touches neither land nor a fixed obstacle.
    fn is_open(&self, from: Waypoint, to: Waypoint) -> bool {
        let (from, to) = (self.position(from), self.position(to));
        let samples = (from.distance(to) / SAMPLE_SPACING).ceil().max(1.0) as u32;
        (0..=samples).all(|sample| {
            let part = f64::from(sample) / f64::from(samples);
            let between = |one: f64, other: f64| one + part * (other - one);
            !self.is_closed(Position {
                east: between(from.east, to.east),
                north: between(from.north, to.north),
            })
        })
    }

    /// Returns the moving obstacles.
    pub fn moving(&self) -> impl Iterator<Item = &Obstacle> {
        self.obstacles.iter().filter(|obstacle| obstacle.moves())
    }
}

/// Returns the greatest common divisor; if one number is zero, the other one.
fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}
