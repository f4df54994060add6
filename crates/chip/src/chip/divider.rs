//! The clock source of the cores, and the rates that its dividers give.
//!
//! Exact fractions. Which cores share a divider, and what voltage a rate needs, is not known here. Invariant: no rate
//! comes out that is not allowed.

use crate::quantity::Rate;
use std::ops::RangeInclusive;

/// The clock source of the cores, and what it can be divided by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dividers {
    /// What is divided.
    pub source: Rate,
    /// By what.
    pub allowed: RangeInclusive<u32>,
}

impl Dividers {
    /// The rate with this divider, if it is allowed.
    pub fn rate(&self, divider: u32) -> Option<Rate> {
        if self.allowed.contains(&divider) { self.source.divided_by(divider) } else { None }
    }

    /// The divider that gives this rate, if one does.
    pub fn divider(&self, rate: Rate) -> Option<u32> {
        let cycles = |hertz: u64, divider: u32| u128::from(hertz) * u128::from(divider);
        let of = cycles(self.source.hertz(), rate.divider());
        let by = cycles(rate.hertz(), self.source.divider());
        let divider = u32::try_from(of / by).ok().filter(|_| of.is_multiple_of(by))?;
        self.allowed.contains(&divider).then_some(divider)
    }

    /// All rates, fastest first.
    pub fn rates(&self) -> impl Iterator<Item = Rate> {
        self.allowed.clone().filter_map(|divider| self.rate(divider))
    }
}
