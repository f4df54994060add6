//! What crossed the chip, as CSV: by link, and by source and target.

use crate::traffic::{Flow, LinkLoad};
use isles_chip::topology::{Stop, Topology};
use std::fmt::Write;

/// A line for each directed link of the chip, also for those that nothing crossed.
///
/// Ends are tiles with their coordinates, or the word `switch`. Utilisation is the share of the run in which flits
/// passed the link, from 0 to 1.
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

fn stop(topology: &Topology, stop: Stop) -> String {
    match stop {
        Stop::Switch => "switch,,,".to_owned(),
        Stop::Tile(tile) => {
            let [x, y, z] = topology.coordinates(tile);
            format!("{tile},{x},{y},{z}")
        }
    }
}

/// A line for each place and each other one to which it has sent anything, by number of place.
pub fn traffic(flows: &[Flow]) -> String {
    let mut text = "source,target,messages,bytes\n".to_owned();
    for Flow { source, target, messages, bytes } in flows {
        let _ = writeln!(text, "{},{},{messages},{bytes}", source.0, target.0); // as above
    }
    text
}
