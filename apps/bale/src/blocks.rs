//! Tables: who has which of 2^k entries, for any number of owners, without a division; whether they fit into memory.
//!
//! The first owners have an entry more than the others. The owner is predicted as g · n / 2^k, which is right or one
//! too high (Aggarwal, Sabharwal, Garg, Heidelberger 2009, theorem 4.1, 003:204), and corrected by one comparison.

use isles::memory;
use isles_app::Failure;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A table of 2^bits entries in blocks, one an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    bits: u32,
    owners: u64,
    /// Entries of an owner; the first `larger` have one more.
    entries: u64,
    larger: u64,
}

impl Blocks {
    /// The blocks of `owners` owners; none if they are none, or more than entries, or if the theorem's condition does
    /// not hold: each owner has more entries than there are owners.
    pub fn new(bits: u32, owners: u32) -> Option<Blocks> {
        let owners = u64::from(owners);
        let size = 1_u64.checked_shl(bits).filter(|_| bits < 64)?;
        let entries = size.checked_div(owners)?;
        let holds = owners == 1 || owners.is_power_of_two() && owners <= size || owners < entries;
        holds.then(|| Blocks { bits, owners, entries, larger: size - entries * owners })
    }

    /// How many entries the table has.
    pub fn size(&self) -> u64 {
        1 << self.bits
    }

    /// The owner of entry `index`, below the size.
    #[inline]
    pub fn owner(&self, index: u64) -> u64 {
        let predicted = ((u128::from(index) * u128::from(self.owners)) >> self.bits) as u64;
        predicted - u64::from(index < self.first(predicted))
    }

    /// The owner of entry `index`, as the rules compute it, with a division.
    #[inline]
    pub fn owner_by_division(&self, index: u64) -> u64 {
        let top = self.larger * (self.entries + 1);
        if index < top { index / (self.entries + 1) } else { (index - self.larger) / self.entries }
    }

    /// The first entry of an owner.
    #[inline]
    pub fn first(&self, owner: u64) -> u64 {
        owner * self.entries + owner.min(self.larger)
    }

    /// The entries of an owner.
    pub fn range(&self, owner: u64) -> Range<u64> {
        self.first(owner)..self.first(owner + 1)
    }
}

/// Checks that `bytes` bytes fit into what the host has free; `source` is what asks for them.
///
/// # Errors
/// They do not. Where the system does not say what is free, nothing is refused.
pub(crate) fn check_room(source: &str, bytes: u128) -> Result<(), Failure> {
    let free = memory::free_bytes();
    match free {
        Some(free) if bytes > u128::from(free) => Err(Failure::Usage(format!(
            "{source} takes {:.1} GiB; allowed: at most {:.1} GiB, which this host has free",
            bytes as f64 / f64::from(1 << 30),
            free as f64 / f64::from(1 << 30),
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The theorem: the prediction is right or one too high, so one comparison corrects it.
        #[test]
        fn the_owner_without_a_division_is_that_of_the_division(
            bits in 1_u32..50,
            owners in 1_u32..100_000,
            index in any::<u64>(),
        ) {
            if let Some(blocks) = Blocks::new(bits, owners) {
                let around = blocks.first(u64::from(owners) / 2).min(blocks.size() - 1);
                for index in [index % blocks.size(), 0, blocks.size() - 1, around, around.saturating_sub(1)] {
                    let owner = blocks.owner(index);
                    prop_assert_eq!(owner, blocks.owner_by_division(index));
                    prop_assert!(blocks.range(owner).contains(&index));
                }
            }
        }
    }

    #[test]
    fn all_entries_are_owned_once() {
        for owners in [1, 2, 3, 5, 7, 8, 12, 30] {
            let blocks = Blocks::new(10, owners).unwrap();
            let owned: u64 = (0..u64::from(owners)).map(|owner| blocks.range(owner).count() as u64).sum();
            assert_eq!(owned, 1024);
            assert!((0..1024).all(|index| blocks.range(blocks.owner(index)).contains(&index)));
        }
        assert_eq!(Blocks::new(4, 5), None, "an owner has three entries, fewer than there are owners");
        assert_eq!(Blocks::new(10, 0), None);
        assert_eq!(Blocks::new(64, 2), None);
    }
}
