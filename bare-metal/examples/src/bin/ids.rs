//! Each core prints its number and waits at a barrier, round after round.

#![no_std]
#![no_main]

use bare_core::{chip, entry, println, program, timer};

/// Number of barriers after the first.
const ROUNDS: usize = 100;

entry!(main);

fn main() -> i32 {
    let (tile_mhz, mesh_mhz) = chip::rates_mhz();
    let (x, y) = bare_core::map::position_of(chip::tile());
    println!(
        "core {} is rank {} of {}, tile ({x}, {y}), {tile_mhz} and {mesh_mhz} MHz",
        chip::core(),
        program::rank(),
        program::ranks()
    );
    for round in 0..=ROUNDS {
        if let Err(stopped) = program::barrier() {
            println!("barrier {round}: {stopped}");
            return 1;
        }
    }
    println!("{} barriers, {} ms since boot", ROUNDS + 1, timer::nanoseconds() / 1_000_000);
    0
}
