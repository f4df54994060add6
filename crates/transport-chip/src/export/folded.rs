//! Where modelled time and energy went, as folded stacks: what draws flame graphs reads them.

use crate::energy::ModelEnergy;
use crate::report::{Report, TIME_CATEGORIES};
use isles_chip::quantity::Attojoules;
use isles_chip::topology::{CoreId, Topology};
use std::fmt::Write;

/// A line `chip;tile N;core N;SPENDING PICOSECONDS` for everything that took time.
pub fn folded(name: &str, topology: &Topology, report: &Report) -> String {
    let name = frame(name);
    let mut text = String::new();
    for (core, ledger) in report.cores.iter().zip(&report.ledgers) {
        let tile = topology.tile_of(*core);
        for (category, what) in TIME_CATEGORIES {
            let time = ledger.time(category).0;
            if time > 0 {
                let _ = writeln!(text, "{name};tile {tile};core {core};{what} {time}"); // a string takes everything
            }
        }
    }
    text
}

/// A line `chip;tile N;core N;SPENDING NANOJOULES` for everything that drew energy, and `chip;uncore;WHAT NANOJOULES`
/// for what drew it besides the cores. Each line is cut to a nanojoule.
pub fn folded_joules(name: &str, topology: &Topology, energy: &ModelEnergy) -> String {
    let name = frame(name);
    let mut text = String::new();
    let mut line = |stack: &str, drawn: Attojoules| {
        let nanojoules = drawn.0 / 1_000_000_000;
        if nanojoules > 0 {
            let _ = writeln!(text, "{name};{stack} {nanojoules}"); // as above
        }
    };
    for (core, drawn) in (0..).map(CoreId).zip(&energy.cores) {
        let tile = topology.tile_of(core);
        for ((_, what), drawn) in TIME_CATEGORIES.into_iter().zip(drawn) {
            line(&format!("tile {tile};core {core};{what}"), *drawn);
        }
    }
    let mesh = energy.mesh_at_rest.unwrap_or_default();
    line("uncore;mesh at rest", mesh);
    line("uncore;mesh, flits", energy.flits);
    line("uncore;all else", Attojoules(energy.constant.0 - mesh.0));
    text
}

/// A blank ends a stack, and a semicolon a frame of it.
fn frame(name: &str) -> String {
    name.chars().map(|queued| if queued == ';' || queued.is_control() { '_' } else { queued }).collect()
}
