//! Records of a run: snapshots of the model, and sums over the grid.
//!
//! Sums are taken over a whole snapshot in one order, with compensated summation, so not all snapshots need to be
//! kept. Invariant: a sum depends on the snapshot only.

use crate::setup::Setup;
use serde::{Deserialize, Serialize};

/// The choice of records that a run makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Steps from one record to the next.
    pub every: u64,
    /// `true` if the velocities of all levels are kept.
    pub has_levels: bool,
    /// The first step from which the snapshot of each record is kept; the first and the last snapshot always are.
    pub kept_from: u64,
}

/// Records of a run, at the member of rank 0; empty at others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// The sums over the grid of each record.
    pub totals: Vec<Totals>,
    /// The snapshots that are kept.
    pub snapshots: Vec<Snapshot>,
}

/// The state of the model at one time; all fields have rows from the south, without halos.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub step: u64,
    pub surface: Vec<f64>,
    /// Mean velocities of columns through western and southern faces.
    pub east: Vec<f64>,
    pub north: Vec<f64>,
    /// The tracer content of a column, in its unit times metres, and the tracer at the surface.
    pub content: Vec<f64>,
    pub tracer: Vec<f64>,
    /// A hash of all values of the levels of a column.
    pub hashes: Vec<u64>,
    /// Velocities of all levels; empty unless requested.
    pub levels_east: Vec<f64>,
    pub levels_north: Vec<f64>,
}

/// Sums over the grid of one record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    pub step: u64,
    /// Cubic metres above the water at rest.
    pub volume: f64,
    /// The tracer in its unit times cubic metres.
    pub tracer: f64,
    /// Joules divided by the density of water.
    pub energy: f64,
    /// The highest surface and the fastest mean current of a column.
    pub surface_max: f64,
    pub speed_max: f64,
}

impl Totals {
    /// Returns the sums of a snapshot.
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

/// Returns the sum of numbers with compensated summation (Neumaier).
pub fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut total, mut rest) = (0.0_f64, 0.0);
    for number in numbers {
        let next = total + number;
        rest += if total.abs() >= number.abs() { (total - next) + number } else { (number - next) + total };
        total = next;
    }
    total + rest
}
