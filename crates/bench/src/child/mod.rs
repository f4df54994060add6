//! What runs in the processes that are timed: one child for each contender that is part of this binary.
//!
//! A process each, so that no peer warms, fragments or pins anything for the next. They print the lines of
//! [`crate::output`] and know no target. The invariant: a child that returns has printed all of its figures.

pub mod batch;
mod betweenness;
mod channels;
mod cold;
mod copy;
mod exchange;
mod ours;
mod pin;
mod raw;
mod ring;
mod side_by_side;
mod tasks;
mod twin;
mod wake;

use crate::options::Effort;

/// Measures and prints.
type Body = fn(Effort);

const CHILDREN: &[(&str, Body)] = &[
    ("isles-raw", raw::run),
    ("isles-message", ours::message::measure),
    ("isles-sleeping", ours::sleeping::measure),
    ("isles-spawn", ours::tasks::measure),
    ("isles-large", ours::large::measure),
    ("isles-generic", ours::generic_code::generic),
    ("isles-sizes", ours::generic_code::sizes),
    ("isles-handle", ours::generic_code::handle),
    ("side-by-side", side_by_side::run),
    ("isles-collective", ours::collective::measure),
    ("isles-crowd", ours::oversubscribed::measure),
    ("isles-memory", ours::memory::measure),
    ("isles-betweenness-power", ours::betweenness::power),
    ("isles-betweenness-hep-th", ours::betweenness::hep_th),
    ("bare", ours::memory::bare),
    ("cache-line", exchange::run),
    ("plain-ring", ring::index),
    ("marked-ring", ring::marked),
    ("futex", wake::run),
    ("memcpy", copy::run),
    ("crossbeam", channels::run),
    ("rayon", tasks::rayon),
    ("tokio-one", tasks::tokio_one),
    ("tokio-many", tasks::tokio_many),
    ("smol", tasks::smol),
    ("sequential-power", betweenness::sequential_power),
    ("sequential-hep-th", betweenness::sequential_hep_th),
    ("cold-run", cold::run),
    ("twin-ping-pong", twin::ping_pong),
    ("twin-mesh", twin::mesh),
    ("twin-mesh-long", twin::mesh_long),
    ("twin-mesh-packets", twin::mesh_packets),
    ("twin-mesh-packets-long", twin::mesh_packets_long),
    ("twin-mesh-traced", twin::mesh_traced),
    ("twin-torus", twin::torus),
    ("twin-machine", twin::machine),
    ("twin-machine-program", twin::machine_program),
    ("twin-program", twin::program),
];

/// Whether there is a child of this name.
pub fn exists(name: &str) -> bool {
    CHILDREN.iter().any(|(known, _)| *known == name)
}

/// Runs the child that `words` name: `NAME BATCH_MILLISECONDS REPETITIONS`.
///
/// # Errors
/// One line that names the word.
pub fn run(words: &[String]) -> Result<(), String> {
    let [name, batch, repetitions] = words else {
        return Err("child wants NAME BATCH_MILLISECONDS REPETITIONS".to_owned());
    };
    let effort = Effort::read(batch, repetitions)?;
    let (_, body) = CHILDREN.iter().find(|(known, _)| known == name).ok_or(format!("no child {name:?}"))?;
    pin::prepare();
    body(effort);
    Ok(())
}

/// Prints one figure.
fn say(name: &str, value: f64) {
    println!("measured {name} {value}");
}

/// Prints the version of a library from the lock file that this binary was built with.
fn say_version(library: &str) {
    let lock = include_str!("../../../../Cargo.lock");
    let entry = format!("name = \"{library}\"\nversion = \"");
    let version = lock.split_once(&entry).and_then(|(_, rest)| rest.split('"').next());
    println!("version {library} {}", version.unwrap_or("of unknown version"));
}
