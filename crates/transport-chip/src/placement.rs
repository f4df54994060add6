//! Placement of places on cores: the request, and the resulting map.
//!
//! A [`Placement`] is a request, as written on a command line; a [`CoreMap`] is its result for a number of places on
//! one chip; a [`PlacementError`] says in one line what is allowed. Invariants: parsing the text of a placement returns
//! the same placement; each place has a core of its own on the chip.

use isles_chip::topology::{CoreId, Topology};
use isles_transport::{CoreList, CoreListError, PlaceId};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Requested assignment of places to cores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Place `p` on core `p`, so that one tile after the other is full.
    #[default]
    Linear,
    /// On one core of each tile, in the order of tiles; then on the second core of each, and so on.
    Spread,
    /// On these cores, in their order.
    Listed(CoreList),
}

impl FromStr for Placement {
    type Err = PlacementError;

    fn from_str(text: &str) -> Result<Placement, PlacementError> {
        match text {
            "linear" => Ok(Placement::Linear),
            "spread" => Ok(Placement::Spread),
            _ => Ok(Placement::Listed(text.parse()?)),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Linear => f.write_str("linear"),
            Placement::Spread => f.write_str("spread"),
            Placement::Listed(list) => list.fmt(f),
        }
    }
}

impl Placement {
    /// Makes a placement on the cores of these ranges, in order. An empty range has no cores.
    ///
    /// # Errors
    /// A core is repeated, or there is no core at all.
    pub fn on(ranges: impl IntoIterator<Item = RangeInclusive<u32>>) -> Result<Placement, PlacementError> {
        Ok(Placement::Listed(CoreList::of(ranges)?))
    }

    /// Returns the maximum number of places on a chip with these cores.
    pub fn places_max(&self, topology: &Topology) -> u32 {
        match self {
            Placement::Linear | Placement::Spread => topology.cores(),
            Placement::Listed(list) => list.len(),
        }
    }

    /// Returns the core map of `places` places on a chip.
    ///
    /// # Errors
    /// [`PlacementError`]: a listed core does not exist, even if no place needs it, or there are too few.
    pub fn core_map(&self, topology: &Topology, places: u32) -> Result<CoreMap, PlacementError> {
        let cores = topology.cores();
        if let Placement::Listed(list) = self
            && let Some(core) = list.missing(cores)
        {
            return Err(PlacementError::NoCore { core, cores });
        }
        let there_are = self.places_max(topology);
        if places > there_are {
            return Err(PlacementError::TooFew { cores: there_are, places });
        }
        let tiles = topology.tiles();
        let spread = |place: u32| place % tiles * topology.cores_per_tile() + place / tiles;
        let seats: Vec<CoreId> = match self {
            Placement::Linear => (0..places).map(CoreId).collect(),
            Placement::Spread => (0..places).map(spread).map(CoreId).collect(),
            Placement::Listed(list) => list.cores().map(CoreId).take(places as usize).collect(),
        };
        Ok(CoreMap::new(seats, cores))
    }
}

/// Error of a placement; its text says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementError {
    /// The text is neither a known name nor a list.
    Unreadable,
    /// A core is listed more than once.
    Duplicate {
        /// Number of the core.
        core: u32,
    },
    /// A listed core does not exist on the chip.
    NoCore {
        /// Number of the core.
        core: u32,
        /// Number of cores of the chip.
        cores: u32,
    },
    /// There are more places than cores.
    TooFew {
        /// Number of cores.
        cores: u32,
        /// Number of places.
        places: u32,
    },
}

impl From<CoreListError> for PlacementError {
    fn from(fault: CoreListError) -> PlacementError {
        match fault {
            CoreListError::Unreadable => PlacementError::Unreadable,
            CoreListError::Duplicate { core } => PlacementError::Duplicate { core },
        }
    }
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementError::Unreadable => write!(f, "linear, spread, or {}", CoreListError::Unreadable),
            PlacementError::Duplicate { core } => CoreListError::Duplicate { core: *core }.fmt(f),
            PlacementError::NoCore { core, cores } => {
                write!(f, "cores from 0 to {} of the chip ({core} is not one)", cores - 1)
            }
            PlacementError::TooFew { cores, places } => {
                write!(f, "at least {places} cores, one for each place (this list has {cores})")
            }
        }
    }
}

impl std::error::Error for PlacementError {}

/// The core of each place of a run: distinct cores of one chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreMap {
    cores: Vec<CoreId>,
    /// Place on each core of the chip, if any.
    places: Vec<Option<PlaceId>>,
}

impl CoreMap {
    /// Returns the map that puts places on these cores in their order, on a chip with `all` cores.
    fn new(cores: Vec<CoreId>, all: u32) -> CoreMap {
        let mut places = vec![None; all as usize];
        for (place, core) in (0..).map(PlaceId).zip(&cores) {
            let before = places[core.0 as usize].replace(place);
            assert_eq!(before, None, "two places on core {core}");
        }
        CoreMap { cores, places }
    }

    /// Returns the core of each place.
    pub fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    /// Returns the number of cores of the chip.
    pub(crate) fn chip_cores(&self) -> u32 {
        self.places.len() as u32
    }

    /// Returns the number of places.
    pub(crate) fn places(&self) -> u32 {
        self.cores.len() as u32
    }

    /// Returns the number of the core of `place`.
    #[inline]
    pub(crate) fn core(&self, place: PlaceId) -> usize {
        self.cores[place.index()].0 as usize
    }

    /// Returns the place on core number `core`, if there is one.
    #[inline]
    pub(crate) fn place(&self, core: usize) -> Option<PlaceId> {
        self.places[core]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_chip::topology::Shape;
    use isles_transport::PlaceId;

    /// Three columns and two rows of tiles with two cores each.
    fn mesh() -> Topology {
        Topology::new(Shape::Mesh, [3, 2, 1], 2).unwrap()
    }

    fn read(text: &str) -> Placement {
        text.parse().unwrap_or_else(|fault| panic!("{text}: {fault}"))
    }

    fn positions(text: &str, places: u32) -> Vec<u32> {
        let core_map = read(text).core_map(&mesh(), places).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        core_map.cores().iter().map(|core| core.0).collect()
    }

    #[test]
    fn linear_fills_one_tile_after_the_other_and_spread_takes_one_core_of_each_first() {
        assert_eq!(positions("linear", 5), [0, 1, 2, 3, 4]);
        assert_eq!(positions("spread", 5), [0, 2, 4, 6, 8]);
        assert_eq!(positions("spread", 12), [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]);
    }

    #[test]
    fn a_list_is_taken_in_its_order_as_far_as_there_are_places() {
        assert_eq!(positions("9,2,4-6", 5), [9, 2, 4, 5, 6]);
        assert_eq!(positions("9,2,4-6", 3), [9, 2, 4]);
        assert_eq!(positions("3", 1), [3]);
        let core_map = read("9,2").core_map(&mesh(), 2).unwrap();
        assert_eq!([9, 2, 0].map(|core| core_map.place(core)), [Some(PlaceId(0)), Some(PlaceId(1)), None]);
        assert_eq!((core_map.core(PlaceId(1)), core_map.chip_cores()), (2, 12));
    }

    #[test]
    fn it_is_told_as_it_is_read_and_equal_lists_are_told_the_same() {
        for text in ["linear", "spread", "0,2,10-13", "5", "3,2,1", "7-8"] {
            assert_eq!(read(text).to_string(), text);
        }
        for text in ["4,5,6", "4-5,6", "4,5-6", " 4 , 5-6", "4-4,5-5,6"] {
            assert_eq!(read(text).to_string(), "4-6");
            assert_eq!(read(text), read("4-6"));
        }
        assert_eq!(Placement::on([0..=0, 2..=2]).unwrap(), read("0,2"));
        assert_eq!(
            read("4294967295,0").to_string(),
            "4294967295,0",
            "the last number is no neighbour of the first"
        );
    }

    #[test]
    fn what_is_no_placement_says_what_one_is() {
        for text in
            ["", ",", "0,", "Linear", "-1", "1-", "-", "3-1", "0x1", "+1", "1.5", "4294967296", "0;1", "a"]
        {
            let fault = text.parse::<Placement>().unwrap_err();
            assert_eq!(fault, PlacementError::Unreadable, "{text}");
        }
        for (text, core) in [("1,1", 1), ("0-5,3", 3), ("3,0-5", 3), ("0-4294967295,7", 7)] {
            assert_eq!(text.parse::<Placement>().unwrap_err(), PlacementError::Duplicate { core }, "{text}");
        }
        assert_eq!(
            "x".parse::<Placement>().unwrap_err().to_string(),
            "linear, spread, or cores and ranges of cores separated by commas, such as 0,2,10-13"
        );
    }

    #[test]
    fn cores_that_are_not_there_and_too_few_are_refused() {
        let fault = |text: &str, places| read(text).core_map(&mesh(), places).unwrap_err();
        assert_eq!(fault("0,12", 1), PlacementError::NoCore { core: 12, cores: 12 });
        assert_eq!(fault("14-20", 1), PlacementError::NoCore { core: 14, cores: 12 });
        assert_eq!(fault("0-4294967295", 1), PlacementError::NoCore { core: u32::MAX, cores: 12 });
        assert_eq!(fault("0,2,4-6", 6), PlacementError::TooFew { cores: 5, places: 6 });
        assert_eq!(fault("spread", 13), PlacementError::TooFew { cores: 12, places: 13 });
        assert_eq!(fault("0,99", 1).to_string(), "cores from 0 to 11 of the chip (99 is not one)");
        assert_eq!(fault("0,2,4-6", 6).to_string(), "at least 6 cores, one for each place (this list has 5)");
    }
}
