//! Choice of the algorithm of a collective, and every bound of the teams.
//!
//! The one place to tune. Choices depend on what all members know (the size of the team, the length that all of them
//! pass), so all of them choose the same. No choice changes a result: every reduction folds along the tree of
//! [`isles_protocol::team::schedule::ReductionTree`].
//!
//! | collective | up to | algorithm | beyond |
//! |---|---|---|---|
//! | `barrier` | 2 members, on a modelled chip any | dissemination | all at the first; above [`FLAT_MAX`], a tree |
//! | `broadcast` | one chunk | binomial tree | pipelined chunks, down a chain if that is shorter |
//! | `reduce` | any length | binomial tree, pipelined chunks | |
//! | `all_reduce` | [`SWAP_BYTES_MAX`] | doubled distances, whole vectors | halved vectors, there and back |
//! | `scan` | any length | doubled distances, pipelined chunks | |
//! | `gather`, `scatter` | any length | flat: on one host a tree would copy everything several times | |
//! | `all_gather` | [`BRUCK_BYTES_MAX`] | doubled distances (Bruck) | ring of chunks |
//! | `all_to_all` | any length | pairwise | |
//!
//! If members are on several hosts and some of them together, collectives are hierarchical: the leader of a host
//! communicates with other hosts on its behalf ([`isles_protocol::team::schedule::TeamHosts`]):
//!
//! | collective | up to | algorithm | beyond |
//! |---|---|---|---|
//! | `barrier` | [`FLAT_LEADERS_MAX`] hosts | all at leaders, these at the first one | these by dissemination |
//! | `broadcast` | any length | from leader to leader as above, then within each host | |
//! | `all_reduce` of [`HIERARCHICAL_REDUCE_MIN`] | [`SWAP_BYTES_MAX`] | `reduce`, then `broadcast` | as above |
//!
//! Bound of the messages that wait in a place's memory, for one team and one other member, whether or not the handle
//! has arrived: at most `AHEAD_MAX` + 1 collectives of at most [`EAGER_BYTES_MAX`] each, or [`CHUNKS_IN_FLIGHT`] chunks
//! of one longer slice, or one longer value. A long transfer ends only when it was received, so there is never a second
//! one. In the `all_..` forms on slices the bound is the length of the slice that the task receives.

use super::header::EAGER_BYTES_MAX;
use super::ongoing::OngoingCollective;
use crate::table::service::Service;
use crate::team::service::Teams;
use isles_protocol::team::schedule::{Shape, Tree, TreeNode};
use isles_runtime::Local;
use std::rc::Rc;

/// Length of a chunk of an eager slice, in bytes: two chunks overlap; more cost more than they gain.
const EAGER_CHUNK_BYTES: usize = 32 << 10;

/// Length of a chunk of a longer slice, in bytes.
///
/// Measured with two places on two cores, 1 MiB: each chunk costs about 1 µs at each side, and the first and the
/// last one overlap with nothing. 128 KiB is best, 64 KiB and 256 KiB cost a tenth.
pub(super) const CHUNK_BYTES: usize = 128 << 10;

/// Number of chunks of one transfer that are sent before the receiver must have taken the first.
pub(super) const CHUNKS_IN_FLIGHT: usize = 4;

/// Longest vector that an `all_reduce` swaps whole, in bytes.
pub(super) const SWAP_BYTES_MAX: usize = 8 << 10;

/// Longest result that an `all_gather` collects by doubled distances, in bytes.
pub(super) const BRUCK_BYTES_MAX: usize = 32 << 10;

/// Number of times a waiting member polls for its message before its place waits: some 4 µs in all.
///
/// If places share processors it polls once, because each poll takes time from the member it waits for (40 polls made a
/// barrier of 8 places on two processors take twice as long).
pub(super) const LOOKS: u32 = 64;

/// Of these polls, one in this number looks for all messages to the place; the others only for the awaited one.
pub(super) const LOOKS_AROUND: u32 = 16;

/// Number of collectives after which a task yields to the other tasks of its place.
pub(super) const YIELD_EVERY: u32 = 64;

const _: () = assert!(BRUCK_BYTES_MAX <= EAGER_BYTES_MAX);
const _: () = assert!(SWAP_BYTES_MAX <= EAGER_BYTES_MAX);
/// Algorithm of a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BroadcastAlgorithm {
    /// Down a tree, with a slice cut into chunks.
    Tree {
        /// The tree.
        shape: Shape,
        /// The longest chunk of a slice, in bytes; at least 1.
        chunk_bytes: usize,
    },
    /// Parts of the slice go down a binomial tree, one to each member, and an all-gather follows. A single value has no
    /// parts and goes down the tree.
    ScatterAllGather,
}

/// Choices of algorithms by a machine, in place of the rules of this file, which are those of one host.
///
/// All members of a team must get the same choice. `bytes` is the length of the slice that all members pass, or `None`
/// for a single value, whose length only the member that has it knows.
pub trait Collectives {
    /// Returns the algorithm of a broadcast among `members` members, or `None` for the default rules.
    fn broadcast(&self, members: usize, bytes: Option<usize>) -> Option<BroadcastAlgorithm> {
        let _ = (members, bytes);
        None
    }

    /// Returns `true` if all members send their values to the root of a reduction, which alone folds them.
    fn reduces_serially(&self, members: usize, bytes: Option<usize>) -> bool {
        let _ = (members, bytes);
        false
    }

    /// Returns `true` if barriers disseminate (rounds of doubled distances), whatever the number of members.
    fn disseminates_barriers(&self) -> bool {
        false
    }

    /// Returns `true` if one member of each host communicates with other hosts on behalf of its host; called only for
    /// several hosts.
    fn is_hierarchical(&self) -> bool {
        true
    }
}

/// Sets the choices of algorithms for the collectives of `local`. Call at all places, before any collective.
pub fn set_collectives(local: &Local, collectives: Rc<dyn Collectives>) {
    let set = Teams::of(local).collectives.set(collectives);
    assert!(set.is_ok(), "the collectives of a place are said once");
}

/// Returns `true` if one member of each host communicates with other hosts on behalf of its host.
pub(super) fn are_hierarchical(local: &Local) -> bool {
    Teams::of(local).collectives.get().is_none_or(|collectives| collectives.is_hierarchical())
}

/// Returns the machine's choice for a broadcast.
#[inline]
pub(super) fn choose_broadcast(size: usize, bytes: Option<usize>) -> Option<BroadcastAlgorithm> {
    Local::with(|local| {
        Teams::of(local).collectives.get().and_then(|collectives| collectives.broadcast(size, bytes))
    })
}

/// Returns `true` if the root of a reduction folds alone.
#[inline]
pub(super) fn reduces_serially(size: usize, bytes: Option<usize>) -> bool {
    Local::with(|local| {
        Teams::of(local)
            .collectives
            .get()
            .is_some_and(|collectives| collectives.reduces_serially(size, bytes))
    })
}

/// Returns `true` if the machine asks for dissemination barriers.
fn disseminates_barriers() -> bool {
    Local::with(|local| {
        Teams::of(local).collectives.get().is_some_and(|collectives| collectives.disseminates_barriers())
    })
}

/// Returns the number of elements in each chunk of a slice of `len` elements of `element_bytes` bytes.
pub(super) fn chunk_len(len: usize, element_bytes: usize) -> usize {
    let is_eager = len.saturating_mul(element_bytes) <= EAGER_BYTES_MAX;
    let chunk_bytes = if is_eager { EAGER_CHUNK_BYTES } else { CHUNK_BYTES };
    (chunk_bytes / element_bytes.max(1)).max(1)
}

/// Largest number of members that all meet at the first one; with more, that one would have too much to do.
const FLAT_MAX: usize = 256;

/// Algorithm of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BarrierAlgorithm {
    /// Rounds of doubled distances.
    Dissemination,
    /// All members meet at the first one.
    AtFirst,
    /// Along a binomial tree, there and back.
    Tree,
}

/// Returns the barrier algorithm for a team of `size` members.
///
/// Meeting at the first member takes two messages for each member, and each member has to run only twice. If places
/// share processors (the usual case of many places) that is 2 to 3 times faster than dissemination, with 8 and with 48
/// places on two processors. If each has its own processor it should be as fast up to about 8, and half as fast at 48,
/// so modelled chips disseminate ([`Collectives::disseminates_barriers`]). A tree takes the same number of messages,
/// and each of its members waits only for a few others.
#[inline]
pub(super) fn barrier_algorithm(size: usize) -> BarrierAlgorithm {
    match size {
        0..=2 => BarrierAlgorithm::Dissemination,
        _ if disseminates_barriers() => BarrierAlgorithm::Dissemination,
        3..=FLAT_MAX => BarrierAlgorithm::AtFirst,
        _ => BarrierAlgorithm::Tree,
    }
}

/// Largest number of hosts whose leaders all meet at the first one; with more, it would have too much to do.
const FLAT_LEADERS_MAX: usize = 4;

/// Least number of members of a hierarchical `all_reduce`: with fewer, a tree up and down takes longer than twice the
/// messages of doubled distances. Measured on 2 and 3 hosts of 2 to 4 members on two cores.
const HIERARCHICAL_REDUCE_MIN: usize = 12;

/// Returns `true` if a short `all_reduce` is a reduction to the first member followed by a broadcast.
pub(super) fn reduces_hierarchically(ongoing: &OngoingCollective<'_>) -> bool {
    ongoing.size() >= HIERARCHICAL_REDUCE_MIN && ongoing.hosts().is_some()
}

/// Returns the barrier algorithm of the leaders of `hosts` hosts.
pub(super) fn leaders_barrier_algorithm(hosts: usize) -> BarrierAlgorithm {
    if hosts <= FLAT_LEADERS_MAX { BarrierAlgorithm::AtFirst } else { BarrierAlgorithm::Dissemination }
}

/// Returns this member's node in the tree that carries `chunks` chunks from `root` to all members.
pub(super) fn broadcast_tree(ongoing: &OngoingCollective<'_>, root: usize, chunks: usize) -> TreeNode {
    let (rank, size) = (ongoing.rank(), ongoing.size());
    match ongoing.hosts() {
        Some(hosts) => {
            let shape = broadcast_shape(hosts.leaders().len(), chunks);
            TreeNode::Hierarchical(hosts.tree(root, shape, broadcast_shape(hosts.own_size(), chunks)))
        }
        None => TreeNode::Flat(Tree::new(broadcast_shape(size, chunks), rank, root, size)),
    }
}

/// Returns the tree of a broadcast of `chunks` chunks in which the last member gets the last chunk earliest.
fn broadcast_shape(size: usize, chunks: usize) -> Shape {
    let depth = size.next_power_of_two().trailing_zeros() as usize;
    if chunks + size.saturating_sub(2) < chunks * depth { Shape::Chain } else { Shape::Binomial }
}
