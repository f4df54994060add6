//! Counted work of the steps of a calculation on one core, for modelled chips.
//!
//! The integrals count their own additions and multiplications (see [`Operations`]); the rest was counted by hand in
//! the code, as compiled for a core with eight floating-point registers and one operand in memory. The chip file has
//! the cost of an operation: on the SCC's P54C cores 3 cycles for a float, 39 for a division, 1 for an integer.
//! Nothing was fitted: no measured time of a Hartree-Fock program on that chip was available, so the scaling over
//! places is more reliable than the seconds. Invariant: the work of a unit depends on the molecule and the density
//! only.

use super::fock::UnitEffort;
use super::integrals::Operations;
use isles::Work;

/// Bytes of a number, and of an element of the sums of the Fock matrix.
const NUMBER: u64 = 8;

/// Returns the work of a unit in a molecule with `functions` functions.
pub(super) fn of_unit(effort: &UnitEffort, functions: usize) -> Work {
    let UnitEffort { candidates, quartets, operations, integrals, pair_bytes, elements } = *effort;
    let matrix = (functions * functions) as u64 * NUMBER;
    // A candidate: four look-ups of the density's largest elements and their comparisons. A quartet: its loops over
    // groups and cells. An integral: its factor, and six products with their sums. An element: conversion to a whole
    // number of two words.
    of_integrals(&operations)
        .floats(2 * candidates + 13 * integrals + 2 * elements)
        .integers(24 * candidates + 200 * quartets + 14 * integrals + 8 * elements)
        .branches(4 * candidates + 40 * quartets + elements)
        .streamed(pair_bytes)
        .of(pair_bytes)
        .pieces(quartets)
        .scattered(candidates, matrix / 8)
        .scattered(12 * quartets, 2 * matrix)
}

/// Returns the work of integrals alone.
pub(super) fn of_integrals(operations: &Operations) -> Work {
    let Operations { quartets, floats } = *operations;
    // Each addition with its multiplication loads two numbers that are not in registers, and stores one. A quartet of
    // primitives looks up a row of the table of Boys functions, which has 1,025 rows of 15 numbers.
    Work::new()
        .floats(floats)
        .integers(3 * floats / 2 + 30 * quartets)
        .divisions(2 * quartets)
        .branches(6 * quartets)
        .scattered(4 * quartets, 1025 * 15 * NUMBER)
}

/// Returns the work of packing or unpacking a symmetric matrix: each element is read, compared or added, and written
/// twice.
pub(super) fn of_matrix(functions: usize) -> Work {
    let elements = (functions * functions) as u64;
    let bytes = 2 * elements * NUMBER;
    Work::new().integers(6 * elements).floats(elements).branches(elements).streamed(bytes).of(bytes)
}

/// Returns the work of the linear algebra of an iteration, which only the first place does.
pub(super) fn of_iteration(functions: usize, pairs_of_electrons: usize) -> Work {
    let square = (functions * functions) as u64;
    let cube = functions as u64 * square;
    // Seven matrix products, for the commutator, the Fock matrix among orthonormal functions, and back; the
    // tridiagonal form and its transformation, 4/3 n^3 each; the rotations of the QL steps, 6 n^3; the products and
    // sums of eight earlier matrices; the density.
    let floats = 14 * cube + 9 * cube + 100 * square + 2 * square * pairs_of_electrons as u64;
    let bytes = 30 * square * NUMBER;
    Work::new().floats(floats).integers(3 * floats / 2).branches(floats / 8).streamed(bytes).of(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_quartets_are_more_work_of_each_kind() {
        let one = UnitEffort {
            candidates: 3,
            quartets: 2,
            operations: Operations { quartets: 10, floats: 1000 },
            integrals: 18,
            pair_bytes: 640,
            elements: 12,
        };
        let work = of_unit(&one, 7);
        assert_eq!((work.floats, work.divisions, work.streamed_bytes), (1000 + 6 + 234 + 24, 20, 640));
        assert_eq!(work.tables[1], isles::Table { accesses: 3, bytes: 49 });
        assert_eq!(of_iteration(10, 4).floats, 23_000 + 10_000 + 800);
    }
}
