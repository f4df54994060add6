//! How fast one core copies 2 MB: the bound on a message that is copied once.
//!
//! Its own file for the sake of the list. It crosses no core.
//! The invariant: the copy is not optimised away.

use super::batch::seconds_per_step;
use super::pin::pin;
use super::say;
use crate::options::Effort;
use std::hint::black_box;

const BYTES: usize = 2 << 20;

/// Prints `copy_gb` in 10⁹ bytes a second.
pub fn run(effort: Effort) {
    pin(0);
    let (from, mut to) = (vec![1_u8; BYTES], vec![2_u8; BYTES]);
    let seconds = seconds_per_step(effort, |count| {
        for _ in 0..count {
            black_box(&mut to).copy_from_slice(black_box(&from));
        }
    });
    say("copy_gb", BYTES as f64 / seconds / 1e9);
}
