//! Assignment of processors to places, and moving a thread to one.
//!
//! A place is moved to its processor but stays free to leave it (`docs/decisions/0006-free-places.md`): an assigned
//! processor is where the place starts and returns to, not a restriction. Threads that the place starts inherit the
//! processors that the program was given. That set is read when the segment is created. Runs of one host avoid each
//! other's processors by claims: a claim is an abstract socket, which the kernel frees with the process however that
//! ends, and which is visible to all users. It is a hint: a run that cannot make claims starts all the same.

use crate::layout::PROCESSORS_MAX;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Assignment of processors to the places of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pinning {
    /// Each place on a processor of its own that no other run has claimed, as far as there are free ones. A single
    /// place stays where the system puts it; so do more places than processors, after an even start.
    #[default]
    Auto,
    /// The system chooses.
    No,
    /// Place `p` on the `p`-th of these.
    Processors(Vec<usize>),
}

/// The processors of one run.
#[derive(Debug, Default)]
pub(crate) struct CoreAssignment {
    /// Processors by place; empty if no place has one.
    pub processors: Vec<usize>,
    claims: Vec<UnixDatagram>,
}

impl CoreAssignment {
    /// Chooses processors for `places` places among `allowed`.
    pub fn choose(pinning: &Pinning, places: usize, allowed: &[usize]) -> CoreAssignment {
        match pinning {
            Pinning::Auto if places < 2 => CoreAssignment::default(),
            Pinning::Auto if places > allowed.len() => CoreAssignment {
                processors: allowed.iter().copied().cycle().take(places).collect(),
                claims: Vec::new(),
            },
            Pinning::Auto => CoreAssignment::claim(places, allowed, "isles-processor"),
            Pinning::No => CoreAssignment::default(),
            Pinning::Processors(list) => {
                CoreAssignment { processors: list.iter().copied().take(places).collect(), claims: Vec::new() }
            }
        }
    }

    /// Claims the first `places` processors of `allowed` that no other run has claimed, and takes claimed ones if those
    /// are too few.
    fn claim(places: usize, allowed: &[usize], prefix: &str) -> CoreAssignment {
        let mut homes = CoreAssignment::default();
        let mut taken = Vec::new();
        for processor in allowed.iter().copied() {
            if homes.processors.len() == places {
                break;
            }
            let name = format!("{prefix}-{processor}");
            match SocketAddr::from_abstract_name(name).and_then(|name| UnixDatagram::bind_addr(&name)) {
                Ok(claim) => homes.claims.push(claim),
                Err(cause) if cause.kind() == ErrorKind::AddrInUse => {
                    taken.push(processor);
                    continue;
                }
                // No sockets, or no descriptors: the processor is used without a claim.
                Err(_) => {}
            }
            homes.processors.push(processor);
        }
        let missing = places - homes.processors.len();
        homes.processors.extend(taken.into_iter().take(missing));
        homes.processors.sort_unstable();
        homes
    }
}

/// Returns the processors that the calling thread may use, in order; never empty.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return vec![0] };
    let limit = PROCESSORS_MAX.min(CpuSet::MAX_CPU);
    (0..limit).filter(|processor| set.is_set(*processor)).collect()
}

/// Binds the calling thread to one processor. Returns `false` if the system refused.
fn bind(processor: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).is_ok()
}

/// Moves the calling thread to one processor and leaves it free to go elsewhere.
pub(crate) fn start_on(processor: usize) {
    // If a call is refused, the thread is not moved, or stays bound; it runs in either case.
    if let Ok(free) = sched_getaffinity(None)
        && bind(processor)
    {
        let _ = sched_setaffinity(None, &free);
    }
}

/// Encodes the set as bits, for the header of a segment.
pub(crate) fn encode(processors: &[usize]) -> [u8; PROCESSORS_MAX / 8] {
    let mut bits = [0; PROCESSORS_MAX / 8];
    for processor in processors {
        bits[processor / 8] |= 1 << (processor % 8);
    }
    bits
}

/// Returns the processors of the set bits.
pub(crate) fn decode(bits: &[u8; PROCESSORS_MAX / 8]) -> Vec<usize> {
    (0..PROCESSORS_MAX).filter(|processor| bits[processor / 8] >> (processor % 8) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_at_one_time_start_on_different_cores_while_there_are_free_ones() {
        let prefix = format!("isles-test-{}", std::process::id());
        let allowed: Vec<usize> = (0..8).collect();
        let claim = |places| CoreAssignment::claim(places, &allowed, &prefix);
        let (first, second) = (claim(3), claim(3));
        assert_eq!((&first.processors[..], &second.processors[..]), (&[0, 1, 2][..], &[3, 4, 5][..]));
        let third = claim(4);
        assert_eq!(third.processors, [0, 1, 6, 7], "two that are claimed, because two are missing");
        drop(first);
        assert_eq!(claim(2).processors, [0, 1], "a run that is over has no claims");
        assert_eq!((second.claims.len(), third.claims.len()), (3, 2));
    }

    #[test]
    fn one_place_has_no_core_of_its_own_and_many_share_all() {
        let of = |pinning: &Pinning, places| CoreAssignment::choose(pinning, places, &[2, 5]).processors;
        assert_eq!(of(&Pinning::Auto, 1), []);
        assert_eq!(of(&Pinning::Auto, 3), [2, 5, 2]);
        assert_eq!(of(&Pinning::No, 2), []);
        let list = Pinning::Processors(vec![5, 2]);
        assert_eq!(of(&list, 2), [5, 2]);
        assert_eq!(of(&list, 1), [5], "a list is what the user wants, also for one");
    }

    #[test]
    fn what_starts_somewhere_may_leave_it() {
        let before = allowed();
        start_on(*before.last().unwrap());
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_set_of_processors_comes_back_from_its_bits() {
        let set = vec![0, 1, 7, 8, 63, 64, 1023];
        assert_eq!(decode(&encode(&set)), set);
    }
}
