//! Errors of access to a region, or to a page of it.

use isles_protocol::PlaceId;
use std::fmt;
use std::io;

/// Error of access to a region, or to a range of one.
#[derive(Debug)]
pub enum RegionError {
    /// A place of the region has died. The region is lost: every later access ends with this.
    DeadPlace(PlaceId),
    /// A place has dropped its part of the region. The region is lost: every later access ends with this.
    Left(PlaceId),
    /// A place of the region is on another host or in another PID namespace, and the places do not listen.
    OtherHost(PlaceId),
    /// The kernel refuses a call that a region needs.
    System {
        /// The call that failed.
        call: &'static str,
        /// The kernel's answer.
        error: io::Error,
        /// The remedy.
        remedy: &'static str,
    },
    /// A range ends beyond the region, or begins after its end.
    Outside {
        /// The first element of the range.
        start: usize,
        /// One past the last element of the range.
        end: usize,
        /// The number of elements of the region.
        len: usize,
    },
    /// A guard was requested for pages at or below those of a guard that the place holds, or for writing a page that a
    /// guard holds for reading and another place has read. Ascending order prevents a deadlock of two places.
    NotAscending {
        /// The first requested page.
        page: u32,
        /// The last page of the held guards.
        held: u32,
    },
    /// The region is empty or has more than 2³² pages.
    Size {
        /// The requested bytes.
        bytes: usize,
    },
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionError::DeadPlace(place) => {
                write!(f, "{place} died, and with it the region of shared memory")
            }
            RegionError::Left(place) => {
                write!(f, "{place} has dropped its part of the region of shared memory")
            }
            RegionError::OtherHost(place) => {
                write!(f, "{place} is on another host; allowed: a region of places of one host")
            }
            RegionError::System { call, error, remedy } => write!(f, "{call}: {error}; {remedy}"),
            RegionError::Outside { start, end, len } => {
                write!(f, "elements {start}..{end} of a region; allowed: ranges of 0..{len}")
            }
            RegionError::NotAscending { page, held } => write!(
                f,
                "page {page} of a region is requested while page {held} is held; allowed: guards in \
                 ascending order"
            ),
            RegionError::Size { bytes } => {
                write!(f, "a region of {bytes} bytes; allowed: 1 byte to 2^32 - 1 pages")
            }
        }
    }
}

impl std::error::Error for RegionError {}
