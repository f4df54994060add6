//! A setting of the clocks, with what was measured at it.
//!
//! How it stands in a file is in `file::preset`. Invariant: its costs are as the file has them; times come of them and
//! of clocks.

use crate::cost::{Clocks, Cost, HopCost, TimingTable};
use crate::quantity::Rate;

/// A setting of the clocks, with what was measured at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    pub(crate) name: String,
    pub(crate) clocks: Clocks,
    pub(crate) costs: TimingTable<Cost>,
}

impl Preset {
    /// The name in the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The clocks.
    pub const fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// The costs as the file has them.
    pub const fn costs(&self) -> &TimingTable<Cost> {
        &self.costs
    }

    /// The times at this preset's clocks.
    pub fn times(&self) -> TimingTable<HopCost> {
        self.costs.at(&self.clocks)
    }

    /// The times with the acting core at another rate; mesh and memory stay.
    pub fn times_at(&self, core: Rate) -> TimingTable<HopCost> {
        self.costs.at(&self.clocks.with_core(core))
    }
}
