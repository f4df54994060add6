//! Schedules of the collectives, as pure functions of ranks: each member's messages in each round.
//!
//! They can be tested over all ranks and sizes without a message. Nothing here sends, waits or knows what is sent.
//! Invariant: every member computes the same schedule, and the messages that one sends in a round are those that the
//! other expects.
//!
//! Sources: the dissemination barrier is by Hensgen, Finkel and Manber (1988); all-gather by doubled distances by Bruck
//! et al. (1997); reduction by halved vectors by Rabenseifner (2004), here with doubled distances, which keeps the
//! order of the ranks.

mod hosts;

pub use hosts::{HierarchicalTree, TeamHosts, TreeNode};
use std::ops::Range;

/// One round of a symmetric schedule: send to one member, receive from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Distance from this member to `to`, in ranks.
    pub distance: usize,
    /// Rank of the receiver.
    pub to: usize,
    /// Rank of the sender.
    pub from: usize,
}

impl Round {
    /// Returns the round at `distance`, which is below `size`, so a comparison replaces a division, which would take
    /// longer than a short collective.
    #[inline]
    fn at(distance: usize, rank: usize, size: usize) -> Round {
        let wrapped = |rank: usize| if rank < size { rank } else { rank - size };
        Round { distance, to: wrapped(rank + distance), from: wrapped(rank + size - distance) }
    }
}

/// Returns rounds with distances 1, 2, 4, ..: after the last one every member has heard from every other, directly or
/// not.
#[inline]
pub fn dissemination(rank: usize, size: usize) -> impl Iterator<Item = Round> {
    powers_of_two(size).map(move |distance| Round::at(distance, rank, size))
}

/// Returns rounds with distances 1, 2, 3, ..: every member meets every other once.
#[inline]
pub fn pairwise(rank: usize, size: usize) -> impl Iterator<Item = Round> {
    (1..size).map(move |distance| Round::at(distance, rank, size))
}

/// Returns the powers of two below `size`.
#[inline]
fn powers_of_two(size: usize) -> impl DoubleEndedIterator<Item = usize> {
    (0..size.next_power_of_two().trailing_zeros()).map(|round| 1 << round)
}

/// The form of a tree from a root to all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Depth log2 of the size; the root has that number of children. Best for a single message.
    Binomial,
    /// Each member has one child. Best for many chunks.
    Chain,
    /// All others are children of the root.
    Flat,
    /// Each member has this number of children, at least one; the last ones may have fewer.
    Fan(u32),
}

/// The position of one member in a tree.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    shape: Shape,
    root: usize,
    size: usize,
    /// The member's rank, counted from the root.
    relative: usize,
}

impl Tree {
    /// Returns the position of `rank` in the tree from `root`.
    #[inline]
    pub fn new(shape: Shape, rank: usize, root: usize, size: usize) -> Tree {
        Tree { shape, root, size, relative: (rank + size - root) % size }
    }

    fn absolute(&self, relative: usize) -> usize {
        (relative + self.root) % self.size
    }

    /// Returns the member from which this one receives; `None` for the root.
    #[inline]
    pub fn parent(&self) -> Option<usize> {
        let above = match self.shape {
            Shape::Binomial => self.relative & self.relative.wrapping_sub(1),
            Shape::Chain => self.relative.wrapping_sub(1),
            Shape::Flat => 0,
            Shape::Fan(children) => self.relative.wrapping_sub(1) / children.max(1) as usize,
        };
        (self.relative > 0).then(|| self.absolute(above))
    }

    /// Returns the number of members in this subtree of a binomial tree, which are consecutive from its rank on.
    #[inline]
    pub fn members(&self) -> usize {
        let below = if self.relative == 0 { self.size } else { 1 << self.relative.trailing_zeros() };
        below.min(self.size - self.relative)
    }

    /// Returns the members to which this one sends, those with the largest subtrees first.
    #[inline]
    pub fn children(&self) -> impl Iterator<Item = usize> {
        let Tree { shape, size, relative, .. } = *self;
        let lowest = if relative == 0 { size.next_power_of_two() } else { 1 << relative.trailing_zeros() };
        let below = move |distance: &usize| match shape {
            Shape::Binomial => *distance < lowest,
            Shape::Chain => *distance == 1,
            Shape::Flat | Shape::Fan(_) => false,
        };
        let fan = match shape {
            Shape::Flat if relative == 0 => 1..size,
            Shape::Fan(children) => {
                let children = children.max(1) as usize;
                let first = relative.saturating_mul(children).saturating_add(1).min(size);
                first..first.saturating_add(children).min(size)
            }
            _ => 0..0,
        };
        let tree = *self;
        powers_of_two(size)
            .rev()
            .filter(below)
            .map(move |distance| relative + distance)
            .filter(move |child| *child < size)
            .chain(fan)
            .map(move |child| tree.absolute(child))
    }
}

/// Side of a value beside another one: that of lower or of higher ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankSide {
    /// It belongs before: its ranks are lower.
    Before,
    /// It belongs after.
    After,
}

impl RankSide {
    /// Returns the side of `other`, as seen from `own`.
    fn of(other: usize, own: usize) -> RankSide {
        if other < own { RankSide::Before } else { RankSide::After }
    }
}

/// One step of a member in a reduction. "Its value" is what it has folded so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionStep {
    /// Send its value.
    Send {
        /// The receiver.
        to: usize,
    },
    /// Receive the value of another and fold it into its own, at that side.
    Merge {
        /// The sender.
        from: usize,
        /// Side of the value.
        side: RankSide,
    },
    /// Both: each sends its value to the other, and folds the other's into its own.
    Swap {
        /// The other member.
        with: usize,
        /// Side of the other's value.
        side: RankSide,
    },
    /// Receive the result.
    Receive {
        /// The sender.
        from: usize,
    },
}

/// The tree of a reduction: the bracketing of the ranks that all reductions of a team use.
///
/// The first `pairs` pairs of neighbours are folded first, which leaves `width` values, a power of two; those are
/// folded as a perfect binary tree. Only neighbours are combined, the lower ranks to the left, so the operator must be
/// associative but need not commute. The member that computes an inner node differs between schedules.
#[derive(Clone, Copy, Debug)]
pub struct ReductionTree {
    pairs: usize,
    width: usize,
    /// The member that represents its pair, even if its rank is odd.
    root: usize,
}

impl ReductionTree {
    /// Makes the tree of `size` members; `root` represents its pair.
    #[inline]
    pub fn new(size: usize, root: usize) -> ReductionTree {
        let width = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 };
        ReductionTree { pairs: size - width, width, root }
    }

    /// Returns the number of members that remain after the pairs are folded.
    #[cfg(test)]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the member that remains as number `leaf`.
    #[inline]
    pub fn member(&self, leaf: usize) -> usize {
        if leaf >= self.pairs {
            leaf + self.pairs
        } else if self.root / 2 == leaf {
            self.root
        } else {
            2 * leaf
        }
    }

    /// Returns the number of `rank` among those that remain, or of the one that represents its pair.
    #[inline]
    pub fn leaf(&self, rank: usize) -> usize {
        if rank < 2 * self.pairs { rank / 2 } else { rank - self.pairs }
    }

    /// Returns `true` if `rank` remains after the pairs are folded.
    #[inline]
    pub fn stays(&self, rank: usize) -> bool {
        self.member(self.leaf(rank)) == rank
    }

    /// Folds one value of each member, by rank, at one place, with the same bracketing.
    #[inline]
    pub fn fold<T>(&self, values: Vec<T>, operator: impl Fn(T, T) -> T) -> Option<T> {
        let pairs = self.pairs;
        let halve = |values: Vec<T>, up_to: usize| {
            let (mut values, mut folded) = (values.into_iter(), Vec::new());
            while let Some(first) = values.next() {
                let other = if folded.len() < up_to { values.next() } else { None };
                folded.push(match other {
                    Some(other) => operator(first, other),
                    None => first,
                });
            }
            folded
        };
        let mut values = halve(values, pairs);
        while values.len() > 1 {
            values = halve(values, usize::MAX);
        }
        values.pop()
    }

    /// Returns the first step of `rank`, if it belongs to a pair.
    #[inline]
    pub fn pair(&self, rank: usize) -> Option<ReductionStep> {
        if rank >= 2 * self.pairs {
            return None;
        }
        let other = rank ^ 1;
        Some(if self.stays(rank) {
            ReductionStep::Merge { from: other, side: RankSide::of(other, rank) }
        } else {
            ReductionStep::Send { to: other }
        })
    }

    /// Returns the last step of `rank` if all members get the result, and it belongs to a pair.
    #[inline]
    pub fn unpair(&self, rank: usize) -> Option<ReductionStep> {
        self.pair(rank).map(|step| match step {
            ReductionStep::Send { to } => ReductionStep::Receive { from: to },
            ReductionStep::Merge { from, .. } => ReductionStep::Send { to: from },
            other => other,
        })
    }

    /// Returns the steps of `rank` if the root gets the result: merges, then one send by all but the root.
    #[inline]
    pub fn to_root(self, rank: usize) -> impl Iterator<Item = ReductionStep> {
        let folding = self;
        let leaf = self.leaf(rank);
        // Counted such that the root is 0: then every member but 0 sends at its lowest bit.
        let relative = leaf ^ self.leaf(self.root);
        let core = powers_of_two(self.width).filter(move |bit| relative & (bit - 1) == 0).map(move |bit| {
            let other = folding.member(leaf ^ bit);
            if relative & bit != 0 {
                ReductionStep::Send { to: other }
            } else {
                ReductionStep::Merge { from: other, side: RankSide::of(other, rank) }
            }
        });
        let stays = self.stays(rank);
        self.pair(rank).into_iter().chain(core.filter(move |_| stays))
    }

    /// Returns the steps of `rank` if all members get the result, by doubled distances.
    #[inline]
    pub fn to_all(self, rank: usize) -> impl Iterator<Item = ReductionStep> {
        let folding = self;
        let leaf = self.leaf(rank);
        let core = powers_of_two(self.width).map(move |bit| {
            let other = folding.member(leaf ^ bit);
            ReductionStep::Swap { with: other, side: RankSide::of(other, rank) }
        });
        let stays = self.stays(rank);
        self.pair(rank).into_iter().chain(core.filter(move |_| stays)).chain(self.unpair(rank))
    }

    /// Returns the rounds of `rank`, which remains, in the reduction of a vector by halves: its partner, the range that
    /// it keeps, and the one that it sends. In reverse they gather the vector at all members.
    #[inline]
    pub fn halving(&self, rank: usize, len: usize) -> impl DoubleEndedIterator<Item = HalvingRound> + use<> {
        let folding = self;
        let leaf = self.leaf(rank);
        let mut range = 0..len;
        let rounds: Vec<HalvingRound> = powers_of_two(self.width)
            .map(|bit| {
                let with = folding.member(leaf ^ bit);
                let middle = range.start + range.len() / 2;
                let (low, high) = (range.start..middle, middle..range.end);
                let (kept, given) = if leaf & bit == 0 { (low, high) } else { (high, low) };
                range = kept.clone();
                HalvingRound { with, side: RankSide::of(with, rank), kept, given }
            })
            .collect();
        rounds.into_iter()
    }
}

/// One round of a reduction by halves, in elements of the vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalvingRound {
    /// The other member.
    pub with: usize,
    /// Side of its values.
    pub side: RankSide,
    /// Range that this member keeps and the other one sends.
    pub kept: Range<usize>,
    /// Range that the other member keeps.
    pub given: Range<usize>,
}

/// Division of a long slice into chunks of the same number of elements, the last one shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    len: usize,
    chunk_len: usize,
}

impl Chunks {
    /// Divides `len` elements into chunks of `chunk_len`, which is at least 1.
    #[inline]
    pub fn new(len: usize, chunk_len: usize) -> Chunks {
        Chunks { len, chunk_len }
    }

    /// Returns the number of elements.
    #[inline]
    pub fn elements(&self) -> usize {
        self.len
    }

    /// Returns the number of chunks; an empty slice is one empty chunk, so that its receiver gets a message.
    #[inline]
    pub fn count(&self) -> usize {
        self.len.div_ceil(self.chunk_len).max(1)
    }

    /// Returns the elements of chunk `index`, which is below the count.
    #[inline]
    pub fn range(&self, index: usize) -> Range<usize> {
        index * self.chunk_len..self.len.min((index + 1) * self.chunk_len)
    }
}

#[cfg(test)]
mod tests;
