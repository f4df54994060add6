//! Where modelled time went, as folded stacks: what draws flame graphs reads them.

use crate::report::{Report, SPENDINGS};
use isles_chip::topology::{CoreId, Topology};
use std::fmt::Write;

/// A line `chip;tile N;core N;SPENDING PICOSECONDS` for everything that took time.
pub fn folded(name: &str, topology: &Topology, report: &Report) -> String {
    // A blank ends a stack, and a semicolon a frame of it.
    let name: String =
        name.chars().map(|letter| if letter == ';' || letter.is_control() { '_' } else { letter }).collect();
    let mut text = String::new();
    for (core, ledger) in (0..).map(CoreId).zip(&report.ledgers) {
        let tile = topology.tile_of(core);
        for (spending, what) in SPENDINGS {
            let time = ledger.time(spending).0;
            if time > 0 {
                let _ = writeln!(text, "{name};tile {tile};core {core};{what} {time}"); // a string takes everything
            }
        }
    }
    text
}
