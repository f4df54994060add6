//! The times of single operations, at clocks that are set.
//!
//! Of an operation whose cost the file does not give there is none. Who waits for whom is not known here. Invariant: a
//! time is an integer, and one too long to count is the longest there is.

use crate::cost::{Access, HopCost, Mode, TimingTable};
use crate::quantity::Picoseconds;

impl TimingTable<HopCost> {
    /// How long a read takes over so many hops, if there is such memory.
    pub fn read(&self, mode: Mode, hops: u32) -> Option<Picoseconds> {
        self.access(mode).map(|access| access.read.over(hops))
    }

    /// How long a write takes over so many hops until the next may be issued.
    pub fn write(&self, mode: Mode, hops: u32) -> Option<Picoseconds> {
        self.access(mode).map(|access: &Access<HopCost>| access.gap.over(hops))
    }

    /// How long a core is busy with beginning a write.
    pub fn issue(&self, mode: Mode) -> Option<Picoseconds> {
        self.access(mode).map(|access| access.issue.over(0))
    }

    /// How long the software flush of so many lines of the second cache takes: line by line, or all at once if that
    /// is shorter.
    pub fn flush(&self, lines: u32) -> Option<Picoseconds> {
        let each = self.flush_line?.over(0).0.saturating_mul(u64::from(lines));
        let by_line = self.flush_start?.over(0).saturating_add(Picoseconds(each));
        Some(self.flush_all.map_or(by_line, |all| by_line.min(all.over(0))))
    }
}
