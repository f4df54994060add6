//! Output formats of a run on a chip.
//!
//! Each format is a function from the results of a run to text: CSV of links and traffic and folded stacks for flame
//! graphs in this file, the JSON summary in a module. Nothing here opens a file. Invariant: the same run gives the same
//! text, except for times of the host.

mod summary;

pub use summary::{RegionFacts, RunFacts, summary};

use crate::energy::ModelEnergy;
use crate::report::{Flow, LinkLoad, Report, TIME_CATEGORIES};
use isles_chip::quantity::Attojoules;
use isles_chip::topology::{CoreId, LinkEnd, Topology};
use std::fmt::Write;

/// Returns a line `chip;tile N;core N;CATEGORY PICOSECONDS` for each core and category with time.
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

/// Returns a line `chip;tile N;core N;CATEGORY NANOJOULES` for each core and category with energy, and
/// `chip;uncore;WHAT NANOJOULES` for the rest of the chip. Energies are rounded down to nanojoules.
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

/// Replaces characters that would end a frame of a stack.
fn frame(name: &str) -> String {
    name.chars()
        .map(|character| if character == ';' || character.is_control() { '_' } else { character })
        .collect()
}

/// Returns a line for each directed link of the chip, including unused ones.
///
/// Ends are tiles with their coordinates, or the word `switch`. Utilisation is the fraction of the run in which flits
/// crossed the link, from 0 to 1.
pub fn links(topology: &Topology, loads: &[LinkLoad]) -> String {
    let mut text = "from,from_x,from_y,from_z,to,to_x,to_y,to_z,flits,busy_ps,utilisation\n".to_owned();
    for load in loads {
        let (from, to) = load.ends;
        let LinkLoad { flits, busy, utilisation, .. } = load;
        let (from, to) = (stop(topology, from), stop(topology, to));
        let _ = writeln!(text, "{from},{to},{flits},{},{utilisation:.9}", busy.0); // a string takes everything
    }
    text
}

fn stop(topology: &Topology, stop: LinkEnd) -> String {
    match stop {
        LinkEnd::Switch => "switch,,,".to_owned(),
        LinkEnd::Tile(tile) => {
            let [x, y, z] = topology.coordinates(tile);
            format!("{tile},{x},{y},{z}")
        }
    }
}

/// Returns a line for each pair of places that have exchanged messages, ordered by place.
pub fn traffic(flows: &[Flow]) -> String {
    let mut text = "source,target,messages,bytes\n".to_owned();
    for Flow { source, target, messages, bytes } in flows {
        let _ = writeln!(text, "{},{},{messages},{bytes}", source.0, target.0); // as above
    }
    text
}
