//! The call sites of `at!` and `spawn_at!` in the program's text, and counts of their messages.
//!
//! Each site has one static [`SiteCell`]. Each place keeps its own counts, in a table indexed by the cell's number, so
//! that places that are threads share no counters.

use crate::capture::roundtrip_check::SHIPMENTS_MAX;
use crate::error::RUNTIME_SITE;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Description of a macro's call site; implemented by the macros only.
pub trait Site {
    /// `file:line:column` of the call.
    const LOCATION: &'static str;
    /// A hash of the location; part of the check of travelling code.
    const HASH: u64 = fnv(Self::LOCATION);
    /// The static cell of the site.
    fn cell() -> &'static SiteCell;
}

/// The 64-bit FNV-1a hash (Fowler, Noll and Vo; constants of draft-eastlake-fnv).
const fn fnv(text: &str) -> u64 {
    let (bytes, mut hash, mut index) = (text.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0100_0000_01b3);
        index += 1;
    }
    hash
}

/// A call site in this process.
pub struct SiteCell {
    location: &'static str,
    /// The number of the site plus one; 0 until it is first used. Written once, under the lock of `SITES`.
    number: AtomicU32,
}

/// The direction in which a site ships something.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    /// Captures.
    Request,
    /// Values.
    Reply,
}

/// Number of a site that was used: half the size of a reference to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SiteNumber(u32);

static SITES: Mutex<Vec<&'static SiteCell>> = Mutex::new(Vec::new());

/// The site of everything that the runtime itself starts.
pub(crate) static INTERNAL: SiteCell = SiteCell::new(RUNTIME_SITE);

impl SiteCell {
    /// Returns the cell of the site at `location`.
    pub const fn new(location: &'static str) -> Self {
        SiteCell { location, number: AtomicU32::new(0) }
    }

    /// `file:line:column`.
    pub fn location(&self) -> &'static str {
        self.location
    }

    /// Returns the number of the site in this process, from 0 in the order of first use.
    #[inline]
    pub(crate) fn number(&'static self) -> SiteNumber {
        // PAIR site.number: observe
        match self.number.load(Ordering::Acquire) {
            0 => self.register(),
            number => SiteNumber(number - 1),
        }
    }

    #[cold]
    fn register(&'static self) -> SiteNumber {
        let mut sites = SITES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let known = self.number.load(Ordering::Relaxed); // Relaxed is enough: written under this lock.
        if known != 0 {
            return SiteNumber(known - 1);
        }
        sites.push(self);
        let number =
            u32::try_from(sites.len()).expect("a program has fewer than 2³² places where it starts tasks");
        // PAIR site.number: publish
        self.number.store(number, Ordering::Release);
        SiteNumber(number - 1)
    }
}

impl SiteNumber {
    /// `file:line:column`.
    pub(crate) fn location(self) -> &'static str {
        SITES.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[self.0 as usize].location
    }
}

/// Counters of what one place sent from one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteCount {
    /// Messages sent.
    pub(crate) calls: u64,
    /// Total bytes of their bodies.
    pub(crate) bytes: u64,
}

/// The counts of one place, by site number.
#[derive(Default)]
pub(crate) struct SiteCounts {
    sent: Vec<SiteCount>,
    /// Number of shipments checked, by [`Direction`].
    tried: Vec<[u32; 2]>,
}

impl SiteCounts {
    /// Counts one message of `bytes` bytes.
    #[inline]
    pub(crate) fn add(&mut self, site: &'static SiteCell, bytes: usize) {
        let count = entry(&mut self.sent, site);
        count.calls += 1;
        count.bytes += bytes as u64;
    }

    /// Returns `true` if the next shipment is one of the first of its site, which are checked.
    #[inline]
    pub(crate) fn is_on_trial(&mut self, site: &'static SiteCell, direction: Direction) -> bool {
        let tried = &mut entry(&mut self.tried, site)[direction as usize];
        let is_first = *tried < SHIPMENTS_MAX;
        *tried += u32::from(is_first);
        is_first
    }

    /// Returns all sites with at least one message, by location.
    pub(crate) fn list(&self) -> Vec<(String, SiteCount)> {
        let sites = SITES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let used = self.sent.iter().enumerate().filter(|(_, count)| count.calls > 0);
        used.map(|(number, count)| (sites[number].location.to_owned(), *count)).collect()
    }
}

/// Returns the entry of `table` for `site`.
#[inline]
fn entry<'a, T: Clone + Default>(table: &'a mut Vec<T>, site: &'static SiteCell) -> &'a mut T {
    let number = site.number().0 as usize;
    if table.len() <= number {
        table.resize(number + 1, T::default());
    }
    &mut table[number]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_by_location() {
        static HERE: SiteCell = SiteCell::new("here.rs:1:1");
        let mut counts = SiteCounts::default();
        counts.add(&HERE, 10);
        counts.add(&HERE, 5);
        assert_eq!(counts.list(), vec![("here.rs:1:1".to_owned(), SiteCount { calls: 2, bytes: 15 })]);
    }
}
