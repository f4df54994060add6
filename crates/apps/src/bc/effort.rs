//! What one source takes, counted, and what that would cost on the cores of a modelled chip.
//!
//! The kernels count what they do; the sum is charged once a source, so a real machine does not notice. The cycles of
//! each operation are estimates for an in-order core of the nineties (P54C: two integer pipelines, 39 cycles a
//! division, 16 KB of first cache, 18 cycles to the second, which holds the arrays of graphs up to some ten thousand
//! vertices). Nobody has measured this program on such a core, so the shape over places is worth more than the
//! seconds.

use isles::Cycles;

/// One adjacency entry, in both passes: four loads, two of which miss the first cache, a comparison, two stores, and an
/// addition of floating point on the way back.
const EDGE_CYCLES: u64 = 60;

/// One vertex: taken from and put into the order, one division, the scaling and the 128-bit sum, cleared for the next.
const VERTEX_CYCLES: u64 = 160;

/// One entry put into a binary heap and taken out again: about a dozen levels of a comparison and a swap each.
const REMOVAL_CYCLES: u64 = 260;

/// What there was to do for one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effort {
    /// Adjacency entries looked at on the way forward; the way back looks again.
    pub(super) edges: u64,
    /// Vertices reached, the source included.
    pub(super) vertices: u64,
    /// Entries taken out of the heap.
    pub(super) removals: u64,
}

impl Effort {
    /// What it costs on a modelled core.
    pub(super) fn cycles(&self) -> Cycles {
        let Effort { edges, vertices, removals } = self;
        Cycles(edges * EDGE_CYCLES + vertices * VERTEX_CYCLES + removals * REMOVAL_CYCLES)
    }
}
