//! The four programs of the paper's table II: the sum of a pass, and its cost to a core.
//!
//! A pass reads an array of a million numbers once, or increments a variable a million times. Only one pass is
//! actually summed; all others have the same cost and the same sum. Invariant: a sum wraps at 32 bits, as in C on that
//! chip, and equals its formula.

use clap::ValueEnum;
use isles::Work;
use serde::{Deserialize, Serialize};

/// Elements of the array, each of four bytes on the chip.
const ELEMENTS: u64 = 1_000_000;

/// Bytes of the array.
const BYTES: u64 = 4 * ELEMENTS;

/// Loops, as the paper numbers them (004:1867-1876).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoopProgram {
    /// 0: a variable is incremented by one
    #[default]
    Increment,
    /// 1: an array of zeros is added up in order
    Zeros,
    /// 2: an array of the greatest numbers is added up in order
    Most,
    /// 3: an array of its indices is added up with stride seven, from the rank of the core on
    Seventh,
}

/// Returns the element of the array at `index`.
fn element(program: LoopProgram, index: u64) -> i32 {
    match program {
        LoopProgram::Increment => 1,
        LoopProgram::Zeros => 0,
        LoopProgram::Most => i32::MAX,
        LoopProgram::Seventh => index as i32,
    }
}

/// Returns the sum of one pass of the core with this rank, element by element.
pub fn pass_sum(program: LoopProgram, rank: usize) -> i64 {
    let at = |step: u64| match program {
        LoopProgram::Seventh => (7 * step + rank as u64) % ELEMENTS,
        _ => step,
    };
    let sum = (0..ELEMENTS).fold(0_i32, |sum, step| sum.wrapping_add(element(program, at(step))));
    i64::from(sum)
}

/// Returns the same sum by a formula: seven and a million have no common factor, so each element occurs once.
pub fn sum_by_formula(program: LoopProgram) -> i64 {
    let whole = match program {
        LoopProgram::Increment => ELEMENTS as i128,
        LoopProgram::Zeros => 0,
        LoopProgram::Most => i128::from(i32::MAX) * i128::from(ELEMENTS),
        LoopProgram::Seventh => i128::from(ELEMENTS) * i128::from(ELEMENTS - 1) / 2,
    };
    i64::from(whole as i32)
}

/// Returns the cost of a pass.
pub fn pass_work(program: LoopProgram) -> Work {
    let steps = Work::new().branches(ELEMENTS);
    match program {
        // The variable stays in a register: an addition and the loop count.
        LoopProgram::Increment => steps.integers(2 * ELEMENTS),
        // A load, an addition, the loop count.
        LoopProgram::Zeros | LoopProgram::Most => steps.integers(3 * ELEMENTS).streamed(BYTES).of(BYTES),
        // Successive elements are in different lines; the index takes a multiplication and a division.
        LoopProgram::Seventh => steps.integers(5 * ELEMENTS).divisions(ELEMENTS).scattered(ELEMENTS, BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_pass_is_that_of_its_formula_at_any_rank() {
        for program in LoopProgram::value_variants() {
            for rank in [0, 1, 47] {
                assert_eq!(pass_sum(*program, rank), sum_by_formula(*program), "{program:?} {rank}");
            }
        }
        assert_eq!(pass_sum(LoopProgram::Increment, 0), 1_000_000);
        assert_eq!(pass_sum(LoopProgram::Most, 0), -1_000_000, "it has wrapped");
    }
}
