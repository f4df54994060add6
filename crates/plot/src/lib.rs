//! Pictures of results as SVG: curves, bars, published figures against ours, time against energy.
//!
//! A [`Figure`] is data: values with units. A [`Drawing`] lays it out and draws it. It knows neither the files of Isles
//! nor its commands; callers make figures of their results. The style follows three rules. Text has at least 11 pixels
//! at a width of 600. Series differ by shape and dash, not only by colour. The background is part of the picture, light
//! or dark as the reader's screen prefers. Invariant: the same figure gives the same bytes, and no figure fails: values
//! that cannot be drawn are left out, and the picture says how many.

#![forbid(unsafe_code)]

mod axis;
mod canvas;
mod figure;
mod labels;
mod page;
mod panel;
mod text;

pub use axis::{Axis, Scale};
pub use figure::{
    Arrangement, BarSeries, Bars, Curve, CurvePoint, Figure, Interval, Origin, Parity, ParityPoint, Plane,
    PlanePoint, PlaneSeries, Series,
};
pub use page::Provenance;

use page::Page;
use std::io::{self, Write};

/// A figure that is laid out.
pub struct Drawing(Page);

impl Drawing {
    /// Lays the figure out.
    pub fn of(figure: &Figure) -> Drawing {
        Drawing(match figure {
            Figure::Curve(curve) => curve.draw(),
            Figure::Bars(bars) => bars.draw(),
            Figure::Parity(parity) => parity.draw(),
            Figure::Plane(plane) => plane.draw(),
        })
    }

    /// Returns the number of values that it shows.
    pub fn drawn(&self) -> usize {
        self.0.drawn
    }

    /// Returns the number of values that it does not show, and the reason, in the words of the picture; `None` if it
    /// shows all.
    pub fn left_out(&self) -> Option<&str> {
        self.0.left_out.as_deref()
    }

    /// Writes it as one SVG document, with its provenance as metadata and as a line of small text.
    ///
    /// # Errors
    /// `out` returns an error.
    pub fn write(self, provenance: &Provenance, out: &mut dyn Write) -> io::Result<()> {
        Page::write(self.0, provenance, out)
    }
}
