//! What copies of messages take in private memory, beyond what the times of a buffer's lines hold already.
//!
//! Those were measured with copies whose private lines are in the first cache. A message that does not fit there beside
//! the lines of the buffer comes out of the second cache or from behind a controller, and what is stored goes back
//! there ([`CopyMisses`]). Lines of memory take a share of the controller as those of work do. Lengths are counted in
//! steps of an eighth of a power of two. Invariant: a message that fits costs nothing here.

use super::Cores;
use crate::demand::{LineCosts, LineCount};
use crate::report::TimeCategory;
use isles_chip::Caches;
use isles_chip::cache::{CopyMisses, MissCounts, StorePolicy};
use isles_transport::PlaceId;

/// Steps of lengths between a power of two and the next.
const STEPS: u64 = 8;

/// Messages of so many second caches are found in memory as longer ones are.
const LONGEST: u64 = 4;

/// What messages go through on their way.
pub(super) struct CopyCosts {
    caches: Caches,
    /// Lines of a buffer.
    buffer: u64,
    /// Bytes of the longest message that costs nothing.
    free: usize,
}

/// A side of a copy.
#[derive(Clone, Copy)]
enum Side {
    Load,
    Store,
}

impl CopyCosts {
    pub(super) fn new(caches: &Caches, buffer_lines: u32) -> CopyCosts {
        let bytes = caches.first.map_or(0, |first| first.0);
        let buffer = u64::from(buffer_lines);
        // Up to the length of a buffer as many of its lines pass the cache.
        let free = (bytes / 2).max(bytes.saturating_sub(buffer * caches.line.0));
        CopyCosts { caches: *caches, buffer, free: free as usize }
    }

    /// What a line of a message of so many bytes meets on one side.
    fn found(&self, bytes: usize, copy: StorePolicy, side: Side) -> MissCounts {
        let most = self.caches.second.or(self.caches.first).map_or(0, |cache| cache.0 * LONGEST);
        let bytes = (bytes as u64).min(most).max(STEPS);
        let step = (1 << bytes.ilog2()) / STEPS;
        let lines = bytes.next_multiple_of(step) / self.caches.line.0;
        let CopyMisses { loaded, stored } = CopyMisses::of(&self.caches, lines, self.buffer, copy);
        match side {
            Side::Load => loaded,
            Side::Store => stored,
        }
    }
}

impl Cores {
    /// Lets `place` load `lines` lines of a message of `bytes` bytes, which it writes into a buffer.
    #[inline]
    pub(crate) fn load_private(&mut self, place: PlaceId, lines: u32, bytes: usize) {
        if bytes > self.rounds.free {
            self.copy_private(place, (lines, bytes), StorePolicy::Prefetching, Side::Load);
        }
    }

    /// Lets `place` store `lines` lines of a message of `bytes` bytes, which it reads from a buffer.
    #[inline]
    pub(crate) fn store_private(&mut self, place: PlaceId, lines: u32, bytes: usize, copy: StorePolicy) {
        if bytes > self.rounds.free {
            self.copy_private(place, (lines, bytes), copy, Side::Store);
        }
    }

    #[cold]
    fn copy_private(&mut self, place: PlaceId, (lines, bytes): (u32, usize), copy: StorePolicy, side: Side) {
        let Some(costs) = self.line_costs(place) else { return };
        let found = self.rounds.found(bytes, copy, side);
        let [second, memory, back] =
            [found.second, found.memory, found.back].map(|share| LineCount::part(lines, share));
        let hops = self.way_to_memory(place).len() as u32;
        let LineCosts { near, far, back: gap, .. } = costs;
        // Words that are stored one by one are the library's way, and no surer than its instructions.
        let (near, far, category) = match (copy, side) {
            (StorePolicy::Storing, Side::Store) => {
                (costs.store_near, costs.store_far.over(hops), TimeCategory::Handling)
            }
            _ => (near, far.over(hops), TimeCategory::Fetching),
        };
        let alone = second.times(near) + memory.times(far) + back.times(gap.over(hops));
        let busy = memory.times(costs.served) + back.times(costs.served);
        self.cores[place.index()].fetched.add(memory);
        self.share_controller(place, self.now(place), (alone, busy), category);
    }
}
