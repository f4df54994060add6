//! The units of work of a Fock build: ordered pairs of shells.
//!
//! A molecule of n shells has n^2 units, which is how X10's program of the SCC experiments cut its work: 576 for
//! benzene in STO-3G. No integral is computed twice: of two different unordered pairs the one that takes their
//! quartet is chosen like the fields of a chessboard, so that each has about half of them; and the two orders of a
//! pair take its quartets in turn. Invariant: each unordered pair of unordered pairs belongs to exactly one unit.

/// A unit, and which quartets are its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkUnit {
    /// The number of its unordered pair, which is the bra of its quartets.
    pub bra: usize,
    /// Which of two shares of the bra's quartets it has; none if it has all, because the pair has only one order.
    share: Option<usize>,
    /// Pairs that there are.
    pairs: usize,
}

/// How many units there are for so many shells.
pub fn units(shells: usize) -> u64 {
    (shells as u64).pow(2)
}

/// The number of the unordered pair of two shells.
pub fn pair_number(one: usize, other: usize) -> usize {
    let (high, low) = (one.max(other), one.min(other));
    high * (high + 1) / 2 + low
}

impl WorkUnit {
    /// The unit of a number.
    pub fn new(number: u64, shells: usize) -> WorkUnit {
        let (one, other) = (number as usize / shells, number as usize % shells);
        let share = (one != other).then_some(usize::from(one < other));
        WorkUnit { bra: pair_number(one, other), share, pairs: shells * (shells + 1) / 2 }
    }

    /// The pairs that are the kets of its quartets, ascending.
    pub fn kets(self) -> impl Iterator<Item = usize> {
        let WorkUnit { bra, share, pairs } = self;
        // Below the bra every other one, itself, above the others.
        let below = ((bra + 1) % 2..bra).step_by(2);
        let above = (bra + 2..pairs).step_by(2);
        let all = below.chain(std::iter::once(bra)).chain(above);
        let step = if share.is_some() { 2 } else { 1 };
        all.skip(share.unwrap_or(0)).step_by(step)
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
