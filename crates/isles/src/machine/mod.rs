//! The machines, and the stated bound on the memory of a place under load.
//!
//! Each machine has a file, and `driver` has the table of all; modelled chips have a folder of their own. This file
//! also checks the collectives of places that share a thread, when a run stalls and when it ends. The memory bound is
//! here because only this crate knows both halves: the transport's part in the segment and the runtime's part on the
//! heap. It is computed from the constants of the code; the only figure of its own is that of an idle place.
//! `docs/memory.md` explains the bound.

pub(crate) mod driver;
pub(crate) mod guests;
pub(crate) mod image;
#[path = "mpi/launcher.rs"]
pub(crate) mod launcher;
pub(crate) mod loopback;
#[cfg(feature = "mpi")]
mod mpi;
pub(crate) mod processes;
#[cfg(feature = "mpi")]
mod section;
pub(crate) mod supervisor;
pub(crate) mod threads;

#[cfg(feature = "chip")]
use crate::chip::ModelledChip;
use crate::launch::Launch;
use isles_runtime::Local;
use isles_runtime::limits::{READY_BYTES_MAX, backlog_bytes_max};
use isles_transport::PlaceId;
use isles_transport_shm::Geometry;
use std::fmt;
use std::rc::Rc;

/// Stack of the thread of a place in bytes: the usual size for the first thread of a process.
pub(crate) const STACK_BYTES: usize = 8 << 20;

/// Kind of the places of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// Threads of this process.
    Threads,
    /// Processes of this host with shared memory; the first one starts the others from the same program.
    Processes,
    /// As [`Machine::Processes`], with the code of each as the guest of a small hypervisor. Needs `/dev/kvm` and the
    /// feature `guests`.
    Guests,
    /// Ranks started by an MPI launcher on one host or several, one place each. Needs the feature `mpi`.
    Mpi,
    /// Simulated places in one thread, in an order fixed by a seed; for tests.
    Loopback,
    /// The cores of a modelled chip, in one thread: the same results, and a predicted time. Needs the feature `chip`.
    Chip(ModelledChip),
}

/// A modelled chip; has no values, because this program was built without the feature `chip`.
#[cfg(not(feature = "chip"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelledChip {}

impl Machine {
    /// Returns its name on the command line and in `ISLES_MACHINE`.
    pub fn name(self) -> &'static str {
        self.driver().name()
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// State of the check for mismatched collectives among places that share a thread.
///
/// When a run stalls, members of a team may be waiting for each other in different collectives. They then compare their
/// collectives, and mismatched calls end with an error. Only if that changes nothing has the run stalled for good.
#[derive(Default)]
pub(crate) struct CollectiveMismatchCheck {
    is_compared: bool,
    broken: usize,
}

impl CollectiveMismatchCheck {
    /// Makes the places compare the collectives in which they wait; returns `true` if that may unblock the run.
    ///
    /// They compare at the first call, and again only after another team has failed.
    ///
    /// `wake` schedules a turn for a place.
    pub(crate) fn may_continue(&mut self, locals: &[Rc<Local>], wake: impl Fn(PlaceId)) -> bool {
        let broken = locals.iter().map(|local| isles_services::broken_teams(local)).sum();
        if std::mem::replace(&mut self.is_compared, true) && broken == self.broken {
            return false;
        }
        self.broken = broken;
        let asked = locals.iter().filter(|local| isles_services::compare_waits_soon(local));
        asked.map(|local| wake(local.here())).count() > 0
    }
}

/// Checks at the end of a run that all members of each team called the same collectives.
///
/// # Errors
/// Members of a team called different collectives, and no call of the program has returned that error.
pub(crate) fn check_collectives(locals: &[Rc<Local>]) -> isles_runtime::Result<()> {
    locals.iter().try_for_each(|local| local.enter(|| local.check_unreported_faults()))
}

/// Memory of a place besides its messages, in bytes: tables, stacks, touched pages of the program.
const IDLE_BYTES: u64 = 2 << 20;

/// Size in bytes of a task that captures a few words.
pub const SMALL_TASK_BYTES: usize = 128;

/// Returns the maximum bytes that each of `places` places uses: in the segment, and on its own heap.
fn place_bytes_max(places: u32, task_bytes: usize) -> [u64; 2] {
    let geometry = Geometry::for_places(places);
    let turn = geometry.turn_max();
    let heap = backlog_bytes_max(turn.messages, turn.bytes, task_bytes);
    [geometry.place_bytes_max(READY_BYTES_MAX as u64), IDLE_BYTES + heap]
}

impl Launch {
    /// Returns the maximum bytes that messages make resident in the process of one place. `None` for MPI, whose library
    /// has memory of its own, for the loopback machine and for modelled chips.
    ///
    /// `task_bytes` is the size of an arriving task; [`SMALL_TASK_BYTES`] if it captures a few words. A process may
    /// touch the shared memory of all places, so the bound includes all of it. It excludes the program's own memory:
    /// values, running tasks, and messages that one poll sends while the place and the receiver are both full.
    pub fn resident_bytes_max(&self, task_bytes: usize) -> Option<u64> {
        let places = u64::from(self.places);
        let [shared, heap] = place_bytes_max(self.places, task_bytes);
        match self.machine {
            Machine::Processes | Machine::Guests => Some(places * shared + heap),
            Machine::Threads => Some(places * (shared + heap)),
            Machine::Mpi | Machine::Loopback | Machine::Chip(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_the_memory_page_are_those_of_the_code() {
        let document = include_str!("../../../../docs/memory.md");
        for places in [2, 8, 48, 256] {
            let mib = |bytes: u64| bytes.div_ceil(1 << 20);
            let [shared, heap] = place_bytes_max(places, SMALL_TASK_BYTES);
            let row = format!("| {places} | {} | {} |", mib(shared), mib(heap));
            assert!(document.contains(&row), "docs/memory.md has no row {row}");
        }
    }

    #[test]
    fn an_invented_world_states_no_bound() {
        let launch = Launch::from_environment().unwrap().places(2);
        assert!(launch.clone().machine(Machine::Loopback).resident_bytes_max(SMALL_TASK_BYTES).is_none());
        let of = |machine| launch.clone().machine(machine).resident_bytes_max(SMALL_TASK_BYTES).unwrap();
        assert!(of(Machine::Processes) < of(Machine::Threads), "one process has the heaps of all threads");
    }
}
