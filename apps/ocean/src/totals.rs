//! Sums over the grid at a time: water, tracer and energy, and the extremes of surface and current.
//!
//! Sums are taken over a whole snapshot in one order, with the rounding of each addition carried along. Invariant: a sum
//! depends on the snapshot only.

use crate::model::Snapshot;
use crate::setup::Setup;
use serde::{Deserialize, Serialize};

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

/// The sum of numbers with the rounding of each addition carried along (Neumaier).
pub fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut total, mut rest) = (0.0_f64, 0.0);
    for number in numbers {
        let next = total + number;
        rest += if total.abs() >= number.abs() { (total - next) + number } else { (number - next) + total };
        total = next;
    }
    total + rest
}
