//! The layout of the file of counters.
//!
//! [`PlaceWriter`] and [`HeaderWriter`] write it, [`PagesReader`] reads it. Invariant: the words of a place begin at a
//! cache line of 64 bytes that no other place writes.

mod group;
#[cfg(all(test, loom))]
mod model;
mod output;
mod reader;
mod sync;
mod writer;

#[cfg(all(test, not(loom)))]
mod tests;

pub use reader::{CounterTable, PageError, PagesReader};
pub use writer::{HeaderWriter, PlaceWriter, WordMemory};

use crate::counter::COUNTERS;

/// The first word: "ISLESCTR".
const MAGIC: u64 = u64::from_be_bytes(*b"ISLESCTR");

/// The version of the layout.
const VERSION: u64 = 5;

/// Words of a line of the host's caches.
const LINE: u64 = 8;

/// Words of the header.
const HEADER_WORDS: u64 = 64;

/// Maximum number of places of a run whose messages are counted by pair, which takes 16 MiB, and whose output is kept,
/// which takes another 16 MiB if all print.
const PEERS_MAX: u32 = 1024;

/// Maximum number of places of an observed run, the same as of any run.
pub(crate) const PLACES_MAX: u32 = 32_768;

/// Maximum number of links of a chip whose load is shown.
const LINKS_MAX: u32 = 1 << 20;

/// Indices of the words of the header.
mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const NAMES: usize = 2;
    pub const PLACES: usize = 3;
    pub const LINKS: usize = 4;
    pub const STARTED: usize = 5;
    /// Word with the number of counters.
    pub const COUNTERS: usize = 6;
    pub const HEARTBEAT: usize = 8;
    pub const END: usize = 9;
    pub const LINKS_USED: usize = 10;
    pub const MODEL: usize = 11;
    pub const GROWS: usize = 12;
    pub const UNIT: usize = 16;
    /// A group: the energy of the chip, and the modelled time up to which it is known.
    pub const ENERGY: usize = 24;
    /// The name of the phase of the program.
    pub const PHASE: usize = 32;
    /// Done and total steps of all places at the start of the phase.
    pub const PHASE_BEGIN: usize = 44;
}

/// Words of a place before its counters: liveness, time, copies, process.
const STATE_WORDS: usize = 4;

/// Values of the group of the energy.
const ENERGY_VALUES: usize = 2;

/// Values of the group of a place.
const PLACE_VALUES: usize = STATE_WORDS + COUNTERS.len();

/// Words of a place after its group, each independent: done steps and total steps.
const PROGRESS_WORDS: usize = 2;

/// Words of a place's counters, with its sequence number and its progress.
const PLACE_WORDS: u64 = group_words(PLACE_VALUES + PROGRESS_WORDS);

/// Bytes of the name of the steps of a program.
const UNIT_BYTES: usize = 48;

/// Bytes of the name of a phase of a program.
const PHASE_BYTES: usize = 96;

const _: () = assert!(header::PHASE + PHASE_BYTES / 8 <= header::PHASE_BEGIN);
const _: () = assert!(header::PHASE_BEGIN + PROGRESS_WORDS <= HEADER_WORDS as usize);

/// Open finishes that a place lists; more are only counted.
const FINISHES: usize = 8;

/// Places that an open finish lists as awaited.
pub const WAITS: usize = 4;

/// Bytes of the source line that opened a finish; of a longer one, its end is kept.
const LABEL_BYTES: usize = 64;

/// Values of an open finish: number, parent, time, live tasks, awaited places, source line.
const FINISH_VALUES: usize = 4 + WAITS + LABEL_BYTES / 8;

/// Values of the group of finishes of a place: the number of finishes listed, then their values.
const FINISHES_VALUES: usize = 1 + FINISHES * FINISH_VALUES;

/// Positions of the parts of the file, all in words.
///
/// They follow each other: the header, the deaths, the links, then the groups of counters, the groups of finishes, the
/// rows of peers and the rings of output of all places. An untouched part takes no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    places: u32,
    links: u32,
}

/// Returns the words of a group of `values` values, with its sequence number, in whole lines.
const fn group_words(values: usize) -> u64 {
    (values as u64 + 1).next_multiple_of(LINE)
}

impl PageLayout {
    /// Returns the layout of the file of a run of `places` places, on a chip of `links` links.
    ///
    /// # Panics
    /// If there are no places, or more than any run can have.
    pub fn new(places: u32, links: u32) -> PageLayout {
        assert!((1..=PLACES_MAX).contains(&places), "{places} places");
        PageLayout { places, links: links.min(LINKS_MAX) }
    }

    /// Returns the number of places.
    pub fn places(self) -> u32 {
        self.places
    }

    /// Returns the number of words of the file.
    pub fn words(self) -> u64 {
        self.output_at(self.peers())
    }

    /// Returns `true` if the output of places is kept.
    pub fn keeps_output(self) -> bool {
        self.peers() > 0
    }

    /// Returns the number of places to which each place counts messages: all, or none in a large run.
    fn peers(self) -> u32 {
        if self.places <= PEERS_MAX { self.places } else { 0 }
    }

    fn deaths_at(self) -> u64 {
        HEADER_WORDS
    }

    fn links_at(self) -> u64 {
        self.deaths_at() + u64::from(self.places).next_multiple_of(LINE)
    }

    fn place_at(self, place: u32) -> u64 {
        let first = self.links_at() + (2 * u64::from(self.links)).next_multiple_of(LINE);
        first + u64::from(place) * PLACE_WORDS
    }

    fn finishes_at(self, place: u32) -> u64 {
        self.place_at(self.places) + u64::from(place) * group_words(FINISHES_VALUES)
    }

    fn peers_at(self, place: u32) -> u64 {
        self.finishes_at(self.places)
            + u64::from(place) * (2 * u64::from(self.peers())).next_multiple_of(LINE)
    }

    fn output_at(self, place: u32) -> u64 {
        self.peers_at(self.places) + u64::from(place) * (output::RING_HEADER + output::RING_WORDS)
    }
}
