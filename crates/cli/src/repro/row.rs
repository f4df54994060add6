//! One published figure beside the model's.
//!
//! A plain value; how it is written is the matter of `table`. Invariant: a row without a published figure has no
//! error and no verdict, so that it can never count as reproduced.

/// The numbers of the validation deck whose rows must be in their bands.
const REQUIRED: [&str; 10] = ["V1", "V2", "V3", "V4", "V7", "V8", "V9", "V10", "V16", "V17"];

/// Whether the model was made with the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The chip file or a library was fitted to it, or a choice of the model made with it in view: no evidence.
    Calibrated,
    /// It comes out of other figures.
    Predicted,
}

impl Basis {
    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Calibrated => "calibrated",
            Basis::Predicted => "predicted",
        }
    }
}

/// How near the model must come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Band {
    /// Within so many per cent of the published figure.
    Within(f64),
    /// Not above it.
    AtMost,
    /// Nobody has published the figure: ours stands alone.
    Unpublished,
}

/// What a row comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In its band.
    In,
    /// Out of its band.
    Out,
    /// There is nothing to compare with.
    Alone,
}

impl Verdict {
    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::In => "in",
            Verdict::Out => "OUT",
            Verdict::Alone => "-",
        }
    }
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number in the validation deck, or nothing.
    pub deck: &'static str,
    /// What it is.
    pub figure: String,
    /// Its unit, or nothing for a plain ratio.
    pub unit: &'static str,
    /// What was published; of no meaning if the band says so.
    pub published: f64,
    /// What the model says.
    pub ours: f64,
    /// How near they must be.
    pub band: Band,
    /// Whether it is evidence.
    pub basis: Basis,
}

impl Row {
    /// The published figure, if there is one.
    pub fn published(&self) -> Option<f64> {
        (self.band != Band::Unpublished).then_some(self.published)
    }

    /// How far ours is off, in per cent of the published figure.
    pub fn error(&self) -> Option<f64> {
        self.published().map(|published| (self.ours - published) * 100.0 / published)
    }

    /// Whether it is in its band.
    pub fn verdict(&self) -> Verdict {
        let is_in = match (self.band, self.error()) {
            (Band::Unpublished, _) | (_, None) => return Verdict::Alone,
            (Band::Within(percent), Some(error)) => error.abs() <= percent,
            (Band::AtMost, Some(error)) => error <= 0.0,
        };
        if is_in { Verdict::In } else { Verdict::Out }
    }

    /// Whether it must be in its band.
    pub fn is_required(&self) -> bool {
        REQUIRED.contains(&self.deck) && self.verdict() != Verdict::Alone
    }

    /// Whether it is out of its band and must not be.
    pub fn is_missed(&self) -> bool {
        self.verdict() == Verdict::Out && self.is_required()
    }
}

/// A family of rows that share all but their figure: what an experiment makes its rows with.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// As in [`Row`].
    pub deck: &'static str,
    /// As in [`Row`].
    pub unit: &'static str,
    /// As in [`Row`].
    pub band: Band,
    /// As in [`Row`].
    pub basis: Basis,
}

impl Family {
    /// One row of the family.
    pub fn row(&self, figure: impl Into<String>, published: f64, ours: f64) -> Row {
        let Family { deck, unit, band, basis } = *self;
        Row { deck, figure: figure.into(), unit, published, ours, band, basis }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(band: Band, deck: &'static str, published: f64, ours: f64) -> Row {
        Family { deck, unit: "ns", band, basis: Basis::Predicted }.row("figure", published, ours)
    }

    #[test]
    fn the_band_counts_on_both_sides_and_its_edge_is_in() {
        let verdict = |ours| row(Band::Within(10.0), "V5", 200.0, ours).verdict();
        assert_eq!([180.0, 220.0].map(verdict), [Verdict::In; 2]);
        assert_eq!([179.0, 221.0].map(verdict), [Verdict::Out; 2]);
        let verdict = |ours| row(Band::AtMost, "V5", 5.0, ours).verdict();
        assert_eq!([0.0, 5.0, 5.1].map(verdict), [Verdict::In, Verdict::In, Verdict::Out]);
    }

    #[test]
    fn only_a_required_row_out_of_its_band_is_missed() {
        assert!(row(Band::Within(5.0), "V1", 100.0, 106.0).is_missed());
        assert!(!row(Band::Within(5.0), "V1", 100.0, 104.0).is_missed());
        assert!(!row(Band::Within(5.0), "V5", 100.0, 106.0).is_missed());
        assert!(!row(Band::Within(5.0), "", 100.0, 106.0).is_missed());
    }

    #[test]
    fn a_figure_that_nobody_published_has_neither_error_nor_verdict() {
        let row = row(Band::Unpublished, "V10", f64::NAN, 7.0);
        assert_eq!((row.published(), row.error(), row.verdict()), (None, None, Verdict::Alone));
        assert!(!row.is_missed());
    }
}
