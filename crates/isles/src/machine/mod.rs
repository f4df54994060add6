//! The machines, and the stated bound on the memory of a place under load.
//!
//! One file a machine, and the table of all in `driver`; modelled chips are a folder of their own. Here is also what
//! machines whose places share a thread do about teams when nothing happens any more, and at the end of a run. The
//! bound is here because only this crate knows both halves: what the transport keeps in the segment, and what the
//! runtime keeps on the heap. It computes from the constants that the code uses and holds no figure of its own but that
//! of an idle place. `docs/memory.md` says what is bounded, what is the program's own, and why.

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

/// Stack of the thread of a place in bytes: as much as the first thread of a process usually has.
pub(crate) const STACK_BYTES: usize = 8 << 20;

/// Kind of the places of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// Threads of this process.
    Threads,
    /// Processes of this host that share memory; the first one starts the others from the same program.
    Processes,
    /// As [`Machine::Processes`], and the code of each runs as the guest of a small hypervisor. Needs `/dev/kvm` and
    /// the feature `guests`.
    Guests,
    /// Ranks that an MPI launcher has started, a place each, of one host or several. Needs the feature `mpi`.
    Mpi,
    /// Invented places in one thread, in an order that a seed fixes; for tests.
    Loopback,
    /// The cores of a modelled chip, in one thread: the same answers, and a predicted time. Without the feature `chip`
    /// there is no such chip.
    Chip(ModelledChip),
}

/// A chip that places can run on: none, because this program was built without the feature `chip`.
#[cfg(not(feature = "chip"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelledChip {}

impl Machine {
    /// Its name on the command line and in `ISLES_MACHINE`.
    pub fn name(self) -> &'static str {
        self.driver().name()
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Comparisons so far of the collectives in which the places of one thread wait.
///
/// When nothing will ever happen again, members of a team may wait for each other in different collectives. Then they
/// say so to each other, and their calls end with an error; only if that changes nothing, the run stands still.
#[derive(Default)]
pub(crate) struct CollectiveMismatchCheck {
    is_compared: bool,
    broken: usize,
}

impl CollectiveMismatchCheck {
    /// Asks places to compare where they wait, and returns `true` if that may let something happen.
    ///
    /// They are asked the first time, and again only after another team was broken up.
    ///
    /// `wake` lets a place have a turn.
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

/// The end of a run of places in one thread as far as teams have a say in it.
///
/// # Errors
/// Members of a team were in different collectives, and no call of the program has ended with that error.
pub(crate) fn check_collectives(locals: &[Rc<Local>]) -> isles_runtime::Result<()> {
    locals.iter().try_for_each(|local| local.enter(|| local.check_unreported_faults()))
}

/// Memory of a place besides its messages, in bytes: tables, stacks, pages of the program that it touches.
const IDLE_BYTES: u64 = 2 << 20;

/// Bytes of a task that captures a few words.
pub const SMALL_TASK_BYTES: usize = 128;

/// Most bytes that one of `places` places accounts for: in the segment, and on its own heap.
fn place_bytes_max(places: u32, task_bytes: usize) -> [u64; 2] {
    let geometry = Geometry::for_places(places);
    let turn = geometry.turn_max();
    let heap = backlog_bytes_max(turn.messages, turn.bytes, task_bytes);
    [geometry.place_bytes_max(READY_BYTES_MAX as u64), IDLE_BYTES + heap]
}

impl Launch {
    /// Most bytes that messages make resident in the process of one place, whatever the places send each other. None
    /// of ranks, where the library has memory of its own, nor on the loopback machine and on modelled chips, which have
    /// none.
    ///
    /// `task_bytes` is the size of a task that arrives; [`SMALL_TASK_BYTES`] if it captures a few words. A process may
    /// have touched the shared memory of all places, so all of it is in the bound. What is the program's own is not:
    /// values and tasks that have begun, and what one poll sends while place and receiver are both full.
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
