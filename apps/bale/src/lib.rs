//! Kernels with many tiny messages: `gups` (HPCC RandomAccess), `histogram` and `index-gather` of the bale suite.
//!
//! Each has a table distributed over all places, and accesses random entries through an aggregator or a window.
//! Invariant: every kernel checks its whole result in each run.

#![forbid(unsafe_code)]

mod gups;
mod histogram;
mod index_gather;

pub use gups::Gups;
pub use histogram::Histogram;
pub use index_gather::IndexGather;

use isles::memory;
use isles_app::Failure;

/// A stream of random numbers, determined by the place: SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
struct Stream(u64);

impl Stream {
    /// Returns the stream of place `index`.
    fn of_place(index: usize) -> Stream {
        let mut stream = Stream((index as u64).wrapping_mul(0xd134_2543_de82_ef95));
        Stream(stream.next())
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Draws a random entry of a table with `entries` entries at each place: its place, and its index there.
    #[inline]
    fn entry(&mut self, places: usize, entries: u64) -> (usize, u32) {
        // The high half of the product is the place, the low half determines the index.
        let wide = u128::from(self.next()) * places as u128;
        let at = (u128::from(wide as u64) * u128::from(entries)) >> 64;
        ((wide >> 64) as usize, at as u32)
    }
}

/// Checks that `bytes` bytes fit into the free memory of the host; `source` names the requester.
///
/// # Errors
/// They do not fit. If the system does not report its free memory, nothing is refused.
fn check_room(source: &str, bytes: u128) -> Result<(), Failure> {
    let free = memory::free_bytes();
    match free {
        Some(free) if bytes > u128::from(free) => Err(Failure::Usage(format!(
            "{source} takes {:.1} GiB; allowed: at most {:.1} GiB, the free memory of this host",
            bytes as f64 / f64::from(1 << 30),
            free as f64 / f64::from(1 << 30),
        ))),
        _ => Ok(()),
    }
}
