//! Distribution of an array over the members of a team, axis by axis, in integer arithmetic.
//!
//! A [`Distribution`] cuts an axis into parts, and the parts of all axes form a grid of members. Nothing here moves an
//! element. An owner is computed by a multiplication and a correction instead of a division, because each remote access
//! needs it. Internally every array has three axes; missing ones come first and have one index. Invariants: each index
//! has one owner and one position there; the parts of an axis differ in length by at most one block.

use super::ArrayError;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Distribution of one axis of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Distribution {
    /// The axis is not cut.
    Whole,
    /// Each part is one range; the lengths differ by at most one.
    Block,
    /// As [`Distribution::Block`], into exactly this many parts.
    Parts(usize),
    /// Indices are dealt out round-robin.
    Cyclic,
    /// Blocks of this length are dealt out round-robin.
    BlockCyclic(usize),
}

/// Largest extent: its product with a number of places must fit into 64 bits.
const EXTENT_MAX: u64 = 1 << 44;

/// Division by a fixed number, computed by multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Divisor {
    by: u64,
    reciprocal: u64,
}

impl Divisor {
    /// # Panics
    /// If `by` is 0.
    pub(super) fn new(by: u64) -> Divisor {
        let reciprocal = if by == 1 { u64::MAX } else { ((1_u128 << 64) / u128::from(by)) as u64 };
        Divisor { by, reciprocal }
    }

    /// Returns the quotient and the remainder.
    ///
    /// The reciprocal is rounded down by less than one, so the estimate is the quotient or one less.
    #[inline]
    pub(super) fn divide(self, number: u64) -> (u64, u64) {
        let estimate = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = number - estimate * self.by;
        if rest < self.by { (estimate, rest) } else { (estimate + 1, rest - self.by) }
    }
}

/// The indices 0 to *n*, cut into *p* ranges whose lengths differ by at most one: part *k* begins at *k n / p*, rounded
/// down. Only [`Blocks::new`] divides.
///
/// It is for programs that distribute a table of their own over places. A [`DistArray`](super::DistArray) uses it
/// internally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    size: u64,
    parts: u64,
    by_size: Divisor,
    by_parts: Divisor,
}

impl Blocks {
    /// Cuts `size` indices into `parts` ranges. Returns `None` if there are fewer indices than parts, or no parts, or
    /// if the product of both does not fit into 64 bits.
    pub fn new(size: u64, parts: u64) -> Option<Blocks> {
        let is_possible = parts > 0 && parts <= size && size.checked_mul(parts).is_some();
        is_possible.then(|| Blocks::fitting(size, parts))
    }

    /// Cuts `size` indices into `parts` ranges, where the product fits into 64 bits; some are empty if there are more
    /// parts than indices.
    fn fitting(size: u64, parts: u64) -> Blocks {
        Blocks { size, parts, by_size: Divisor::new(size), by_parts: Divisor::new(parts) }
    }

    /// Returns the number of indices.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the part with `index`, which must be below the size.
    #[inline]
    pub fn owner(&self, index: u64) -> u64 {
        self.by_size.divide((index + 1) * self.parts - 1).0
    }

    /// Returns the first index of `part`; if `part` is the number of parts, the size.
    #[inline]
    pub fn first(&self, part: u64) -> u64 {
        self.by_parts.divide(part * self.size).0
    }

    /// Returns the range of indices of `part`.
    #[inline]
    pub fn range(&self, part: u64) -> Range<u64> {
        self.first(part)..self.first(part + 1)
    }
}

/// One axis with its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Axis {
    pub(super) extent: usize,
    pub(super) parts: usize,
    cut: Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Cut {
    /// Each part is a range.
    Block(Blocks),
    /// Blocks are dealt out round-robin.
    Cyclic { block: Divisor, by_parts: Divisor },
}

/// Indices that are contiguous both in the array and in their part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) global: usize,
    pub(super) local: usize,
    pub(super) len: usize,
}

impl Axis {
    fn new(extent: usize, parts: usize, distribution: Distribution) -> Axis {
        let by_parts = Divisor::new(parts as u64);
        let cyclic = |block: usize| Cut::Cyclic { block: Divisor::new(block as u64), by_parts };
        let cut = match distribution {
            Distribution::Whole | Distribution::Block | Distribution::Parts(_) => {
                Cut::Block(Blocks::fitting(extent as u64, parts as u64))
            }
            Distribution::Cyclic => cyclic(1),
            Distribution::BlockCyclic(block) => cyclic(block),
        };
        Axis { extent, parts, cut }
    }

    pub(super) fn is_block(&self) -> bool {
        matches!(self.cut, Cut::Block(_))
    }

    /// Returns the part with `index`, and the position in that part.
    #[inline]
    pub(super) fn locate(&self, index: usize) -> (usize, usize) {
        let index = index as u64;
        let (part, local) = match self.cut {
            Cut::Block(blocks) => {
                let part = blocks.owner(index);
                (part, index - blocks.first(part))
            }
            Cut::Cyclic { block, by_parts } => {
                let (number, within) = block.divide(index);
                let (round, part) = by_parts.divide(number);
                (part, round * block.by + within)
            }
        };
        (part as usize, local as usize)
    }

    /// Returns the number of indices from `index` on that are contiguous in its part.
    #[inline]
    pub(super) fn run_from(&self, index: usize) -> usize {
        match self.cut {
            Cut::Block(blocks) => blocks.first(blocks.owner(index as u64) + 1) as usize - index,
            Cut::Cyclic { block, .. } => {
                (block.by - block.divide(index as u64).1).min((self.extent - index) as u64) as usize
            }
        }
    }

    /// Returns the index at position `local` of `part`.
    #[inline]
    pub(super) fn global(&self, part: usize, local: usize) -> usize {
        match self.cut {
            Cut::Block(blocks) => blocks.first(part as u64) as usize + local,
            Cut::Cyclic { block, .. } => {
                let (round, within) = block.divide(local as u64);
                ((round * self.parts as u64 + part as u64) * block.by + within) as usize
            }
        }
    }

    /// Returns the number of indices of `part`.
    pub(super) fn len(&self, part: usize) -> usize {
        match self.cut {
            Cut::Block(blocks) => {
                let range = blocks.range(part as u64);
                (range.end - range.start) as usize
            }
            Cut::Cyclic { block, .. } => {
                let block = block.by as usize;
                let round = block * self.parts;
                let rest = (self.extent % round).saturating_sub(part * block).min(block);
                self.extent / round * block + rest
            }
        }
    }

    /// Returns the indices of a part as runs, in ascending order.
    pub(super) fn runs(&self, part: usize) -> Vec<Run> {
        let len = self.len(part);
        let each = match self.cut {
            Cut::Block(_) => len,
            Cut::Cyclic { block, .. } => block.by as usize,
        };
        let starts = (0..len).step_by(each.max(1));
        starts
            .map(|local| Run { global: self.global(part, local), local, len: each.min(len - local) })
            .collect()
    }
}

/// An array of three axes on a grid of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ArrayLayout {
    pub(super) axes: [Axis; 3],
}

impl ArrayLayout {
    /// Makes the layout of an array with these `N` axes on `members` members.
    pub(super) fn new<const N: usize>(
        extents: [usize; N],
        distributions: [Distribution; N],
        members: usize,
    ) -> Result<ArrayLayout, ArrayError> {
        const { assert!(N >= 1 && N <= 3, "an array has one to three axes") };
        for (axis, (&extent, &distribution)) in extents.iter().zip(&distributions).enumerate() {
            if extent == 0 || extent as u64 > EXTENT_MAX {
                return Err(ArrayError::Extent { axis, extent });
            }
            if distribution == Distribution::BlockCyclic(0) {
                return Err(ArrayError::EmptyBlock { axis });
            }
        }
        let is_cut = distributions.map(|distribution| distribution != Distribution::Whole);
        if members > 1 && !is_cut.contains(&true) {
            return Err(ArrayError::NotCut { members });
        }
        let parts = grid(extents, distributions, members).ok_or(ArrayError::Grid { members })?;
        let mut axes = [Axis::new(1, 1, Distribution::Whole); 3];
        for axis in 0..N {
            axes[3 - N + axis] = Axis::new(extents[axis], parts[axis], distributions[axis]);
        }
        Ok(ArrayLayout { axes })
    }

    /// Returns the part of each axis that a member has.
    pub(super) fn parts_of(&self, rank: usize) -> [usize; 3] {
        let [_, middle, last] = self.axes.map(|axis| axis.parts);
        [rank / (middle * last), rank / last % middle, rank % last]
    }

    /// Returns the member that has these parts.
    pub(super) fn rank_of(&self, parts: [usize; 3]) -> usize {
        (parts[0] * self.axes[1].parts + parts[1]) * self.axes[2].parts + parts[2]
    }

    /// Returns the member that has an element, and the coordinates in its part.
    #[inline]
    pub(super) fn locate(&self, index: [usize; 3]) -> (usize, [usize; 3]) {
        let [first, middle, last] = [0, 1, 2].map(|axis| self.axes[axis].locate(index[axis]));
        (self.rank_of([first.0, middle.0, last.0]), [first.1, middle.1, last.1])
    }

    /// Returns the length of a member's part along each axis.
    pub(super) fn lengths(&self, rank: usize) -> [usize; 3] {
        let parts = self.parts_of(rank);
        [0, 1, 2].map(|axis| self.axes[axis].len(parts[axis]))
    }

    /// Returns the runs of a member in each axis.
    pub(super) fn runs(&self, rank: usize) -> [Vec<Run>; 3] {
        let parts = self.parts_of(rank);
        [0, 1, 2].map(|axis| self.axes[axis].runs(parts[axis]))
    }

    pub(super) fn extents(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.extent)
    }
}

/// Returns the number of parts of each axis, with one part of the grid for each member. Axes with
/// [`Distribution::Parts`] get that number; the remaining prime factors of `members`, largest first, each go to the
/// free axis with the longest parts. `None` if there is no such grid.
fn grid<const N: usize>(
    extents: [usize; N],
    distributions: [Distribution; N],
    members: usize,
) -> Option<[usize; N]> {
    let said = |distribution| match distribution {
        Distribution::Parts(parts) => parts,
        _ => 1,
    };
    let mut parts = distributions.map(said);
    let fixed = parts.iter().try_fold(1_usize, |product, parts| product.checked_mul(*parts))?;
    if fixed == 0 || !members.is_multiple_of(fixed) {
        return None;
    }
    let mut factors = Vec::new();
    let (mut rest, mut factor) = (members / fixed, 2);
    while rest > 1 {
        while rest.is_multiple_of(factor) {
            factors.push(factor);
            rest /= factor;
        }
        factor += 1;
    }
    let is_free =
        |axis: &usize| !matches!(distributions[*axis], Distribution::Whole | Distribution::Parts(_));
    for factor in factors.into_iter().rev() {
        // Reversed, so that the first of equal axes is chosen.
        let longest = (0..N).filter(is_free).rev().max_by_key(|axis| extents[*axis] / parts[*axis])?;
        parts[longest] *= factor;
    }
    Some(parts)
}
