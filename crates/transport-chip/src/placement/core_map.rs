//! Which core each place of a run is on, and who is on each core of the chip.
//!
//! It does not know what was asked for. Invariant: each place has a core of its own, and that core is on the chip.

use isles_chip::topology::CoreId;
use isles_transport::PlaceId;

/// The core of each place of a run: none is there twice, and all of them are on one chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreMap {
    cores: Vec<CoreId>,
    /// Who is on each core of the chip.
    places: Vec<Option<PlaceId>>,
}

impl CoreMap {
    /// The places on these cores in their order, of a chip that has so many of them.
    pub(super) fn new(cores: Vec<CoreId>, all: u32) -> CoreMap {
        let mut places = vec![None; all as usize];
        for (place, core) in (0..).map(PlaceId).zip(&cores) {
            let before = places[core.0 as usize].replace(place);
            assert_eq!(before, None, "two places on core {core}");
        }
        CoreMap { cores, places }
    }

    /// The core of each place.
    pub fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    /// How many cores the chip has.
    pub fn chip_cores(&self) -> u32 {
        self.places.len() as u32
    }

    /// How many places there are.
    pub(crate) fn places(&self) -> u32 {
        self.cores.len() as u32
    }

    /// The number of the core of `place`.
    #[inline]
    pub(crate) fn core(&self, place: PlaceId) -> usize {
        self.cores[place.index()].0 as usize
    }

    /// The place on a core of that number, if there is one.
    #[inline]
    pub(crate) fn place(&self, core: usize) -> Option<PlaceId> {
        self.places[core]
    }
}
