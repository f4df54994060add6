//! Records of a run: snapshots of the model, and sums over the grid.
//!
//! Sums are taken over a whole snapshot in one order, with compensated rounding, so not all snapshots need to be kept.
//! Invariant: a sum depends on the snapshot only.

use crate::setup::Setup;
use serde::{Deserialize, Serialize};

/// The records of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Steps from one record to the next.
    pub every: u64,
    /// `true` if the velocities of all levels are kept.
    pub has_levels: bool,
    /// The step from which on the snapshot of each record is kept, beside the first and the last one.
    pub kept_from: u64,
}

/// Records of a run, at the member of rank 0; elsewhere there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// The sums over the grid of each record.
    pub totals: Vec<Totals>,
    /// The snapshots that are kept.
    pub snapshots: Vec<Snapshot>,
}

/// The model at a time; all fields have rows from the south, without halos.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub step: u64,
    pub surface: Vec<f64>,
    /// Mean velocities of columns through western and southern faces.
    pub east: Vec<f64>,
    pub north: Vec<f64>,
    /// The tracer in a column, in its unit times metres; and at the surface.
    pub content: Vec<f64>,
    pub tracer: Vec<f64>,
    /// A hash of all values of the levels of a column.
    pub hashes: Vec<u64>,
    /// Velocities of all levels; empty unless requested.
    pub levels_east: Vec<f64>,
    pub levels_north: Vec<f64>,
}

/// A record of the sums over the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    pub step: u64,
    /// Cubic metres above the water at rest.
    pub volume: f64,
    /// The tracer in its unit times cubic metres.
    pub tracer: f64,
    /// Joules over the density of water.
    pub energy: f64,
    /// The highest surface and the fastest mean current of a column.
    pub surface_max: f64,
    pub speed_max: f64,
}

impl Totals {
    /// The sums of a snapshot.
    pub fn of(setup: &Setup, snapshot: &Snapshot) -> Totals {
        let area = setup.grid.dx * setup.grid.dy;
        let columns = setup.grid.columns;
        let depth = |number: usize| setup.depth(number / columns, number % columns);
        let Snapshot { surface, east, north, content, .. } = snapshot;
        let speed = |number: usize| east[number].hypot(north[number]);
        let energy = |number: usize| {
            let height: f64 = surface[number];
            0.5 * (setup.physics.gravity * height * height + (depth(number) + height) * speed(number).powi(2))
        };
        Totals {
            step: snapshot.step,
            volume: area * sum(surface.iter().copied()),
            tracer: area * sum(content.iter().copied()),
            energy: area * sum((0..surface.len()).map(energy)),
            surface_max: surface.iter().fold(0.0, |most, height| f64::max(most, height.abs())),
            speed_max: (0..surface.len()).map(speed).fold(0.0, f64::max),
        }
    }
}

/// Returns the sum of numbers with compensated rounding (Neumaier).
pub fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut total, mut rest) = (0.0_f64, 0.0);
    for number in numbers {
        let next = total + number;
        rest += if total.abs() >= number.abs() { (total - next) + number } else { (number - next) + total };
        total = next;
    }
    total + rest
}
