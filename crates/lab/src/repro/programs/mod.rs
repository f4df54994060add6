//! Experiments that run whole programs of Isles on the modelled chip, as other languages and systems ran theirs.
//!
//! Each takes long or changes with the runtime, so it runs only if it is requested by name. An application is run as a
//! user runs it, with its program and arguments, in a process of its own. Invariants: nothing here reads the chip file;
//! the figure of a row is the time or the energy of a run.

pub mod at_opt;
pub mod auv;
pub mod betweenness;
pub mod ga;
pub mod hartree_fock;
pub mod manyman;
pub mod memory;
pub mod pipeline;
pub mod power_loops;
pub mod rates;
pub mod rdf;
pub mod rtos;
pub mod teams;

use isles::Protocol;
use isles_app::Failure;
use isles_app::runs;
use serde_json::Value;
use std::time::Duration;

/// The chip and the cluster on which X10 was measured, as machines.
const SCC: &str = "chip:scc";
const CLUSTER: &str = "chip:opteron-cluster";

/// The preset with the other of the two contradictory rates of a memory controller.
const QUADRANT: &str = "533/800/800 quadrant";

/// Number of all cores, of the chip as of the cluster.
const CORES: u32 = 48;

/// Numbers of cores at which the X10 paper's remarks about its figures are evaluated.
const X10_CORES: [u32; 5] = [8, 16, 24, 36, CORES];

/// The transports of the X10 paper, its own first.
const TRANSPORTS: [Protocol; 4] =
    [Protocol::RcceX10, Protocol::Sections, Protocol::MpiSockets, Protocol::Sockets];

/// Returns the X10 paper's name for a transport.
fn transport(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Sections => "mpi-mpb",
        other => other.name(),
    }
}

/// Runs the application `app` with these arguments, separated by blanks. Returns its JSON document.
fn document(app: &str, words: &str) -> Result<Value, Failure> {
    runs::result(app, words.split(' ').chain(["--json", "-", "--csv", "/dev/null"]))
}

/// Returns the seconds of the computation of a run, to the nanosecond, which is the resolution of a place's clock.
fn seconds(app: &str, document: &Value) -> Result<f64, Failure> {
    let seconds =
        document["run"]["seconds"].as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let seconds = seconds.filter(|seconds| !seconds.is_zero());
    Ok(seconds.ok_or_else(|| Failure::Ended(format!("a run of {app} took no time")))?.as_secs_f64())
}
