//! The four kinds of figures; each kind has its data and its drawing in one file.
//!
//! This module has the shared parts: intervals, and the check of values that can be drawn. A kind lays out its own
//! elements, and uses axes, marks, legends and the sheet of the other modules. Invariant: each point that is drawn is
//! one element of the class `mark` (or `bar`), so that a figure can be counted.

mod bars;
mod curve;
mod parity;
mod plane;

pub use bars::{Arrangement, BarSeries, Bars};
pub use curve::{Curve, CurvePoint, Origin, Series};
pub use parity::{Parity, ParityPoint};
pub use plane::{Plane, PlanePoint, PlaneSeries};

/// A picture of results.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Values over others: speed-up over places, time over length.
    Curve(Curve),
    /// Amounts by category: shares of time or energy.
    Bars(Bars),
    /// Published figures against ours.
    Parity(Parity),
    /// Two costs of the same runs, such as time and energy.
    Plane(Plane),
}

impl Figure {
    /// Returns the title for modification.
    pub fn title_mut(&mut self) -> &mut String {
        match self {
            Figure::Curve(curve) => &mut curve.title,
            Figure::Bars(bars) => &mut bars.title,
            Figure::Parity(parity) => &mut parity.title,
            Figure::Plane(plane) => &mut plane.title,
        }
    }
}

/// An interval of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The least.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Interval {
    /// Returns `true` if a value is within it, or at an end.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// A number with its noun.
fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
