//! The timed processes: one child for each contender in this binary.
//!
//! Each has its own process, so that no peer warms, fragments or pins anything for the next. They print the lines of
//! [`crate::output`] and know no target. Steps are repeated in batches long enough for the resolution of the clock;
//! the first batches, which find the size, also warm up and are not counted. Invariants: a child that returns has
//! printed all of its figures; side 0 and side 1 never share a core if the process may use two.

mod balance;
mod jobs;
mod kernels;
mod ours;
mod pool;
mod raw;
mod rcce;
mod rdf;
mod tasks;
pub mod timing;
mod twin;
mod two_cores;
pub mod watched;
mod whole_runs;

use ours::{betweenness, calls, channels, hubs, members, pipelines, places, transfers, wavefront, windows};
use rcce::bare_cores;
use timing::{Effort, prepare};

/// Measures and prints figures.
type Body = fn(Effort);

const CHILDREN: &[(&str, Body)] = &[
    ("isles-raw", raw::run),
    ("isles-message", calls::messages),
    ("isles-sleeping", calls::sleeping),
    ("isles-after-sleep", calls::after_sleep),
    ("isles-crowded", calls::crowded),
    ("isles-spawn", calls::spawns),
    ("isles-large", transfers::large),
    ("isles-generic", calls::generic),
    ("isles-sizes", calls::sizes),
    ("isles-handle", calls::handle),
    ("side-by-side", whole_runs::side_by_side),
    ("isles-collective", transfers::collectives),
    ("isles-crowd", places::oversubscribed),
    ("isles-memory", places::memory),
    ("isles-channels", channels::between_places),
    ("isles-channels-local", channels::within_a_place),
    ("isles-pool", pool::of_places),
    ("crossbeam-pool", pool::of_threads),
    ("isles-wavefront", wavefront::of_members),
    ("isles-wavefront-channels", wavefront::of_channels),
    ("isles-windows", windows::accesses),
    ("isles-shared", windows::guards),
    ("isles-members", members::short),
    ("isles-members-large", members::long),
    ("isles-members-sizes", members::sizes),
    ("isles-start", places::start),
    ("isles-idle", places::idle),
    ("isles-betweenness-power-often", betweenness::power_often),
    ("isles-betweenness-hep-th-often", betweenness::hep_th_often),
    ("isles-imsuite-minimal", kernels::minimal),
    ("isles-imsuite-reachable", kernels::reachable),
    ("rcce", rcce::rcce),
    ("rcce-bits", rcce::rcce_bits),
    ("ircce", rcce::ircce),
    ("rcce-chip", rcce::chip),
    ("rcce-lengths", rcce::rcce_lengths),
    ("ircce-lengths", rcce::ircce_lengths),
    ("bare-rcce", bare_cores::rcce),
    ("bare-ircce", bare_cores::ircce),
    ("bare-xipx", bare_cores::xipx),
    ("bare-xipx-user", bare_cores::xipx_user),
    ("bare-boot", bare_cores::boot),
    ("isles-rdf-lubm", rdf::lubm),
    ("isles-rdf-large", rdf::large),
    ("isles-rdf-snapshot", rdf::snapshot),
    ("isles-rdf-tasks", rdf::tasks),
    ("oxigraph", rdf::oxigraph),
    ("path-planner", whole_runs::path_planner),
    ("path-petgraph", whole_runs::path_petgraph),
    ("path-networkx", whole_runs::path_networkx),
    ("svm-bare", whole_runs::svm_bare),
    ("svm-faults", whole_runs::svm_faults),
    ("guest-start", whole_runs::guest_start),
    ("isles-flood", calls::flood),
    ("isles-flood-once", calls::flood_once),
    ("isles-flood-short", calls::flood_short),
    ("watched-flood", watched::flood),
    ("watched-power", watched::power),
    ("watched-hep-th", watched::hep_th),
    ("recorded-flood", watched::recorded_flood),
    ("traced-flood", watched::traced_flood),
    ("traced-short", watched::traced_short),
    ("jobs-cost", jobs::cost),
    ("jobs-in-memory", jobs::in_memory),
    ("jobs-on-disk", jobs::on_disk),
    ("isles-steal", balance::steals),
    ("isles-pipeline-short", pipelines::short),
    ("isles-pipeline-long", pipelines::long),
    ("isles-pipeline-resizes", pipelines::resizes),
    ("isles-pipeline-slow", pipelines::slow),
    ("isles-hub-loop", hubs::semaphore_loop),
    ("tokio-semaphore-loop", tasks::tokio_semaphore_loop),
    ("loop-pipeline-long", tasks::loop_pipeline),
    ("tokio-pipeline", tasks::tokio_pipeline),
    ("loop-uts-t1", balance::loop_t1),
    ("loop-uts-t1l", balance::loop_t1l),
    ("loops-uts-t1l", balance::loops_t1l),
    ("loop-queens-14", balance::loop_queens),
    ("bare", places::bare),
    ("cache-line", two_cores::cache_line),
    ("plain-ring", raw::ring::index),
    ("marked-ring", raw::ring::marked),
    ("futex", two_cores::futex),
    ("memcpy", two_cores::memcpy),
    ("crossbeam", two_cores::crossbeam),
    ("rayon", tasks::rayon),
    ("tokio-one", tasks::tokio_one),
    ("tokio-many", tasks::tokio_many),
    ("smol", tasks::smol),
    ("tokio-channel", tasks::tokio_channel),
    ("sequential-power", whole_runs::sequential_power),
    ("sequential-hep-th", whole_runs::sequential_hep_th),
    ("cold-run", whole_runs::cold_run),
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

/// Returns `true` if there is a child of this name.
pub fn exists(name: &str) -> bool {
    CHILDREN.iter().any(|(known, _)| *known == name)
}

/// Runs the child named by `words`: `NAME BATCH_MILLISECONDS REPETITIONS`.
///
/// # Errors
/// One line that names the word.
pub fn run(words: &[String]) -> Result<(), String> {
    let [name, batch, repetitions] = words else {
        return Err("child wants NAME BATCH_MILLISECONDS REPETITIONS".to_owned());
    };
    let effort = Effort::read(batch, repetitions)?;
    let (_, body) = CHILDREN.iter().find(|(known, _)| known == name).ok_or(format!("no child {name:?}"))?;
    prepare();
    body(effort);
    Ok(())
}
