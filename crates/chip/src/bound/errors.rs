//! Constants at their worst errors.
//!
//! The rule is that of predictions (`docs/chip/validation.md`): an unknown error counts as a factor of two.

use crate::cost::HopCost;
use crate::file::Band;
use crate::quantity::Picoseconds;
use crate::{Chip, Preset};

/// Values of a chip's constants with which a bound is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constants {
    /// The values of the chip file, which the model uses.
    AsWritten,
    /// Each at its longest within its error.
    WorstCase,
}

/// A chip at one of its presets, with values of its constants.
#[derive(Clone, Copy, Debug)]
pub struct Platform<'a> {
    /// The chip.
    pub chip: &'a Chip,
    /// Its preset.
    pub preset: &'a Preset,
    /// Values of its constants.
    pub constants: Constants,
}

/// The costs of one preset, increased by their errors if requested.
pub(super) struct ErrorBounds<'a> {
    chip: &'a Chip,
    preset: &'a str,
    constants: Constants,
}

impl<'a> ErrorBounds<'a> {
    pub fn new(chip: &'a Chip, preset: &'a Preset, constants: Constants) -> ErrorBounds<'a> {
        ErrorBounds { chip, preset: preset.name(), constants }
    }

    /// Returns the cost of the preset under this key.
    pub fn of_preset(&self, key: &str, cost: HopCost) -> HopCost {
        self.of(&format!("preset.{:?}.{key}", self.preset), cost)
    }

    /// Returns the cost derived from the constant with this full name.
    pub fn of(&self, path: &str, cost: HopCost) -> HopCost {
        if self.constants == Constants::AsWritten {
            return cost;
        }
        let constant = self.chip.constants().iter().find(|constant| constant.path == path);
        match constant.map_or(Band::Unknown, |constant| constant.band) {
            Band::Exact => cost,
            Band::Percent(percent) => cost.thousandths((1_000.0 + percent * 10.0).ceil() as u64),
            Band::Factor(factor) => cost.thousandths((factor * 1_000.0).ceil() as u64),
            Band::Absolute(more) => cost.plus(Picoseconds(more)),
            Band::Unknown => cost.times(2),
        }
    }
}
