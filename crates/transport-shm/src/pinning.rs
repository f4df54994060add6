//! Which processor is kept for which place.
//!
//! A place is moved to its processor and stays free to leave it (`docs/decisions/0006-free-places.md`), so a
//! processor that is kept is a start and a place to return to, not a fence. Runs of one host keep out of each other's
//! way by claims: a claim is an abstract socket, which the kernel frees with the process however that ends, and which
//! places of all users see. It is a hint: where it cannot be made, the run starts all the same.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// On which processors the places of a run stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pinning {
    /// Each place on one of its own, apart from those of other runs while there are free ones. One place alone stays
    /// where the system puts it, and so do places that are more than the processors, once they were started evenly.
    #[default]
    Auto,
    /// Where the system puts them.
    No,
    /// Place `p` on the `p`-th of these.
    Processors(Vec<usize>),
}

/// The processors of one run.
#[derive(Debug, Default)]
pub(crate) struct CoreAssignment {
    /// By place; empty if none is kept for any.
    pub processors: Vec<usize>,
    claims: Vec<UnixDatagram>,
}

impl CoreAssignment {
    /// Chooses processors for `places` places among those that are `allowed`.
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

    /// The first `places` of `allowed` that no other run has claimed; if they are too few, claimed ones, too.
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
                // No sockets, or no descriptors: nobody is told.
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
}
