//! Programs on the bare cores of the SCC, for the experiments.

use super::access::preset;
use isles_chip::Chip;
use isles_chip::bare::{BareChip, BareCore};
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::CoreId;
use std::future::Future;

/// The SCC at a setting of its clocks, with nothing under way.
pub fn bare(chip: &Chip, clocks: &str) -> BareChip {
    BareChip::new(chip, preset(chip, clocks)).expect("the chip file of the SCC has all that bare cores need")
}

/// Runs a program on the first `cores` cores; how long until the last one has ended.
pub fn run<F: Future<Output = ()> + 'static>(
    bare: &BareChip,
    cores: impl IntoIterator<Item = u32>,
    program: impl Fn(BareCore) -> F,
) -> Picoseconds {
    let took = bare.run(cores.into_iter().map(CoreId), program);
    took.unwrap_or_else(|standstill| panic!("an experiment: {standstill}"))
}

/// Bytes that differ from line to line.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}
