//! The units of work of a Fock build: ordered pairs of shells.
//!
//! A molecule of n shells has n^2 units, the decomposition of the X10 program in the SCC experiments: 576 for benzene
//! in STO-3G. No integral is computed twice. Of two different unordered pairs, the one that owns their quartet is
//! chosen like the fields of a chessboard, so that each has about half of them; the two orders of a pair take its
//! quartets alternately. Invariant: each unordered pair of unordered pairs belongs to exactly one unit.

/// A unit, with its share of quartets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkUnit {
    /// The number of its unordered pair, the bra of its quartets.
    pub bra: usize,
    /// Share of the bra's quartets, 0 or 1; `None` if the unit has all of them, because the pair has only one order.
    share: Option<usize>,
    /// Number of pairs of shells.
    pairs: usize,
}

/// Returns the number of units of a molecule with `shells` shells.
pub fn units(shells: usize) -> u64 {
    (shells as u64).pow(2)
}

/// Returns the number of the unordered pair of two shells.
pub fn pair_number(one: usize, other: usize) -> usize {
    let (high, low) = (one.max(other), one.min(other));
    high * (high + 1) / 2 + low
}

impl WorkUnit {
    /// Returns the unit with a number.
    pub fn new(number: u64, shells: usize) -> WorkUnit {
        let (one, other) = (number as usize / shells, number as usize % shells);
        let share = (one != other).then_some(usize::from(one < other));
        WorkUnit { bra: pair_number(one, other), share, pairs: shells * (shells + 1) / 2 }
    }

    /// Returns the pairs that are the kets of its quartets, ascending.
    pub fn kets(self) -> UnitKets {
        let WorkUnit { bra, share, pairs } = self;
        let mut kets = UnitKets { bra, next: (bra + 1) % 2, pairs, step: 1 + usize::from(share.is_some()) };
        // A bra of an even number has none below it with an odd number less.
        if kets.next > bra {
            kets.next = bra;
        }
        kets.pass(share.unwrap_or(0));
        kets
    }
}

/// The kets of a unit: below the bra every other one, the bra itself, and above it the others; all of these, or every
/// second one.
#[derive(Clone, Debug)]
pub struct UnitKets {
    bra: usize,
    next: usize,
    pairs: usize,
    step: usize,
}

impl UnitKets {
    /// Skips the next `count` kets.
    fn pass(&mut self, count: usize) {
        for _ in 0..count {
            let is_last_below = self.next < self.bra && self.next + 2 > self.bra;
            self.next = if is_last_below { self.bra } else { self.next + 2 };
        }
    }
}

impl Iterator for UnitKets {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let ket = self.next;
        (ket < self.pairs).then(|| {
            self.pass(self.step);
            ket
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_quartet_belongs_to_one_unit() {
        for shells in 1..8 {
            let mut quartets = BTreeSet::new();
            for number in 0..units(shells) {
                let unit = WorkUnit::new(number, shells);
                for ket in unit.kets() {
                    assert!(quartets.insert((unit.bra.max(ket), unit.bra.min(ket))), "{unit:?} {ket}");
                }
            }
            let pairs = shells * (shells + 1) / 2;
            assert_eq!(quartets.len(), pairs * (pairs + 1) / 2);
        }
    }

    #[test]
    fn benzene_has_576_units_of_nearly_equal_numbers_of_quartets() {
        let count = |number| WorkUnit::new(number, 24).kets().count();
        assert_eq!(units(24), 576);
        let counts: BTreeSet<usize> = (0..576).filter(|number| number % 25 != 0).map(count).collect();
        assert_eq!(counts, BTreeSet::from([75, 76]));
    }
}
