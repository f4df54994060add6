//! Choice of the algorithm of a collective, and every bound of the teams.
//!
//! The one place to tune. Choices depend on what all members know (the size of the team, the length that all of them
//! pass), so that all of them choose the same. None changes a result: every reduction folds by the one tree of
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
//! If members are on several hosts and some of them together, collectives are hierarchical: the leader of a host talks
//! to other hosts for all of it ([`isles_protocol::team::schedule::TeamHosts`]):
//!
//! | collective | up to | algorithm | beyond |
//! |---|---|---|---|
//! | `barrier` | [`FLAT_LEADERS_MAX`] hosts | all at leaders, these at the first one | these by dissemination |
//! | `broadcast` | any length | from leader to leader as above, then within each host | |
//! | `all_reduce` of [`HIERARCHICAL_REDUCE_MIN`] | [`SWAP_BYTES_MAX`] | `reduce`, then `broadcast` | as above |
//!
//! Bound of the messages that wait in a place's memory, for one team and one other member, whether or not the handle
//! has arrived: at most `AHEAD_MAX` + 1 collectives of at most [`EAGER_BYTES_MAX`] each, or [`CHUNKS_IN_FLIGHT`]
//! chunks of one longer slice, or one longer value. A long transfer ends only when it was taken, so there is never a
//! second one. In the `all_..` forms on slices it may be as much as the slice that its task takes there.

use super::header::EAGER_BYTES_MAX;
use super::ongoing::OngoingCollective;
use crate::table::service::Service;
use crate::team::service::Teams;
use isles_protocol::team::schedule::{Shape, Tree, TreeNode};
use isles_runtime::Local;
use std::rc::Rc;

/// Length of a chunk of a slice that is sent so, in bytes: two overlap, more cost more than they gain.
const EAGER_CHUNK_BYTES: usize = 32 << 10;

/// Length of a chunk of what is longer, in bytes.
///
/// Measured with two places on two cores, 1 MiB: each chunk costs about 1 µs at each side, and the first and the
/// last one overlap with nothing. 128 KiB is best, 64 KiB and 256 KiB cost a tenth.
pub(super) const CHUNK_BYTES: usize = 128 << 10;

/// Number of chunks of one transfer that are sent before the first has to be taken.
pub(super) const CHUNKS_IN_FLIGHT: usize = 4;

/// Longest vector that an `all_reduce` swaps whole, in bytes.
pub(super) const SWAP_BYTES_MAX: usize = 8 << 10;

/// Longest result that an `all_gather` collects by doubled distances, in bytes.
pub(super) const BRUCK_BYTES_MAX: usize = 32 << 10;

/// Number of times a waiting member looks for its message itself before it lets its place wait: some 4 µs in all.
///
/// If places share processors it looks once: each look takes time from the member it waits for (40 looks made a barrier
/// of 8 places on two processors twice as long).
pub(super) const LOOKS: u32 = 64;

/// Each how many-th of these looks is at all that may have come to the place; the others at the awaited message only.
pub(super) const LOOKS_AROUND: u32 = 16;

/// Number of collectives a task does before it yields to the other tasks of its place.
pub(super) const YIELD_EVERY: u32 = 64;

const _: () = assert!(BRUCK_BYTES_MAX <= EAGER_BYTES_MAX);
const _: () = assert!(SWAP_BYTES_MAX <= EAGER_BYTES_MAX);
/// Algorithm of a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BroadcastAlgorithm {
    /// Down a tree, a slice in chunks.
    Tree {
        /// The tree.
        shape: Shape,
        /// The longest chunk of a slice, in bytes; at least 1.
        chunk_bytes: usize,
    },
    /// Each member gets a part of a slice, down a binomial tree, and all get all parts as in an all-gather. A single
    /// value has no parts and goes down the tree.
    ScatterAllGather,
}

/// Choices of algorithms by a machine that knows better than the rules of this file, which are those of one host.
///
/// All members of a team must be told the same. `bytes` is the length of the slice that all members pass, none for a
/// single value, whose length only its owner knows.
pub trait Collectives {
    /// Returns the algorithm of a broadcast among `members` members, or `None` for the default rules.
    fn broadcast(&self, members: usize, bytes: Option<usize>) -> Option<BroadcastAlgorithm> {
        let _ = (members, bytes);
        None
    }

    /// Returns `true` if all members send their values to the root of a reduction, and it alone folds.
    fn reduces_serially(&self, members: usize, bytes: Option<usize>) -> bool {
        let _ = (members, bytes);
        false
    }

    /// Returns `true` if a barrier goes by rounds of doubled distances, whatever the number of members.
    fn disseminates_barriers(&self) -> bool {
        false
    }

    /// Returns `true` if one member of each host talks to other hosts for all of its host; asked only for several
    /// hosts.
    fn is_hierarchical(&self) -> bool {
        true
    }
}

/// Asks `collectives` from now on how the collectives of `local` go. To be said before any, at all places.
pub fn set_collectives(local: &Local, collectives: Rc<dyn Collectives>) {
    let set = Teams::of(local).collectives.set(collectives);
    assert!(set.is_ok(), "the collectives of a place are said once");
}

/// Returns `true` if one member of each host talks to other hosts for all of its host.
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

/// Returns `true` if the machine asks for barriers by rounds of doubled distances.
fn disseminates_barriers() -> bool {
    Local::with(|local| {
        Teams::of(local).collectives.get().is_some_and(|collectives| collectives.disseminates_barriers())
    })
}

/// Elements of each chunk of a slice of `len` elements of `element_bytes` bytes.
pub(super) fn chunk_len(len: usize, element_bytes: usize) -> usize {
    let is_eager = len.saturating_mul(element_bytes) <= EAGER_BYTES_MAX;
    let chunk_bytes = if is_eager { EAGER_CHUNK_BYTES } else { CHUNK_BYTES };
    (chunk_bytes / element_bytes.max(1)).max(1)
}

/// Most members that all meet at the first one; of more, that one would have too much to do.
const FLAT_MAX: usize = 256;

/// Algorithm of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BarrierAlgorithm {
    /// By rounds of doubled distances.
    Dissemination,
    /// All at the first one.
    AtFirst,
    /// Along a binomial tree, there and back.
    Tree,
}

/// Returns the barrier algorithm for a team of `size` members.
///
/// At the first one it is two messages for each member, and each has to run twice only. Where places share processors
/// (the usual case of many places) that is 2 to 3 times faster than dissemination, with 8 and with 48 places on two
/// processors; where each has a processor of its own it should be as fast up to about 8, and half as fast at 48. So
/// modelled chips disseminate ([`Collectives::disseminates_barriers`]). A tree has as many messages, and its members
/// wait for a few others each.
#[inline]
pub(super) fn barrier_algorithm(size: usize) -> BarrierAlgorithm {
    match size {
        0..=2 => BarrierAlgorithm::Dissemination,
        _ if disseminates_barriers() => BarrierAlgorithm::Dissemination,
        3..=FLAT_MAX => BarrierAlgorithm::AtFirst,
        _ => BarrierAlgorithm::Tree,
    }
}

/// The largest number of hosts whose leaders all meet at the first one; it would have too much to do with more.
const FLAT_LEADERS_MAX: usize = 4;

/// The least number of members for a hierarchical `all_reduce`: among fewer, a tree up and down takes longer than twice
/// the messages of doubled distances. Measured on 2 and 3 hosts of 2 to 4 members on two cores.
const HIERARCHICAL_REDUCE_MIN: usize = 12;

/// Returns `true` if a short `all_reduce` is a reduction to the first member followed by a broadcast.
pub(super) fn reduces_hierarchically(ongoing: &OngoingCollective<'_>) -> bool {
    ongoing.size() >= HIERARCHICAL_REDUCE_MIN && ongoing.hosts().is_some()
}

/// Returns the algorithm by which the leaders of `hosts` hosts meet.
pub(super) fn leaders_barrier_algorithm(hosts: usize) -> BarrierAlgorithm {
    if hosts <= FLAT_LEADERS_MAX { BarrierAlgorithm::AtFirst } else { BarrierAlgorithm::Dissemination }
}

/// Returns the node of this member in the tree by which `chunks` chunks go from `root` to all, by the rules.
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

/// The tree of a broadcast of `chunks` chunks: the one in which the last member has the last chunk first.
fn broadcast_shape(size: usize, chunks: usize) -> Shape {
    let depth = size.next_power_of_two().trailing_zeros() as usize;
    if chunks + size.saturating_sub(2) < chunks * depth { Shape::Chain } else { Shape::Binomial }
}
