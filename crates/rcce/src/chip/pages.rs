//! Maps addresses of a program to lines of a core's private memory.
//!
//! The caches of the model work on lines, and a run must be deterministic although the system places memory
//! differently each time. So an address is relative to the first used address near it, and distant addresses form
//! regions, numbered in the order of their first use.

use crate::interface::LINE_BYTES;

/// Largest distance of an address from the first one of its region, in pages.
const REACH: u64 = 1 << 17;
const PAGE_BYTES: u64 = 4_096;
const PAGE_LINES: u64 = PAGE_BYTES / LINE_BYTES as u64;

/// The memory regions of one rank.
#[derive(Debug, Default)]
pub struct Pages {
    /// The first used page of each region.
    regions: Vec<u64>,
}

impl Pages {
    /// Returns the line that contains `address`.
    pub fn line(&mut self, address: u64) -> u64 {
        let page = address / PAGE_BYTES;
        let known = self.regions.iter().position(|first| first.abs_diff(page) < REACH);
        let region = known.unwrap_or_else(|| {
            self.regions.push(page);
            self.regions.len() - 1
        });
        // The first page is page 0; those before it come last.
        let within = page.wrapping_sub(self.regions[region]) % (2 * REACH);
        (region as u64 * 2 * REACH + within) * PAGE_LINES + address % PAGE_BYTES / LINE_BYTES as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_do_not_depend_on_where_memory_begins(
            shift in 0_u64..1 << 30,
            offsets in proptest::collection::vec(0_u64..1 << 27, 1..50),
        ) {
            let (mut one, mut other) = (Pages::default(), Pages::default());
            for offset in offsets {
                let moved = 0x5555_0000_0000 + shift * PAGE_BYTES + offset;
                prop_assert_eq!(one.line(0x7fff_0000_0000 + offset), other.line(moved));
            }
        }

        #[test]
        fn neighbours_stay_neighbours(start in 0_u64..1 << 40, lines in 1_u64..10_000) {
            let mut pages = Pages::default();
            let first = pages.line(start);
            prop_assert!(first < PAGE_LINES);
            prop_assert_eq!(pages.line(start + lines * LINE_BYTES as u64), first + lines);
        }
    }
}
