//! Names in traces that both writers and the reader must know.
//!
//! One list, so that a trace of the host and one of a chip can be read by the same program. Invariant: a name here is
//! part of the format, and `isles trace stats` knows it.

use isles_transport::PlaceId;

/// A place sends a small message.
pub const SEND: &str = "send";
/// A place sends a large message.
pub const SEND_BLOCK: &str = "send block";
/// A place receives a message.
pub const RECEIVE: &str = "receive";
/// A place runs tasks or the runtime.
pub const WORKING: &str = "working";
/// A place is idle.
pub const WAITING: &str = "waiting";
/// The span of a finish.
pub const FINISH: &str = "finish";
/// The note with the place that sent a message.
pub const SOURCE: &str = "source";
/// The note with the place that a message goes to.
pub const TARGET: &str = "target";
/// The note with the length of a message.
pub const BYTES: &str = "bytes";
/// Name of the note that holds the run of the trace.
pub const RUN: &str = "run";
/// The event of a place that dropped events for lack of memory.
pub const DROPPED: &str = "dropped";
/// The event of a place whose part of the trace is missing.
pub const MISSING: &str = "missing";
/// The note with the number of the place that is missing, or that has dropped events.
pub const PLACE: &str = "place";
/// The note with the number of dropped events.
pub const COUNT: &str = "count";
/// The event that declares picoseconds as the unit of time. The default is nanoseconds.
pub const PICOSECONDS: &str = "1 ns in this file is 1 ps of the chip";
/// Name of the event with which a trace of the host names its run.
pub const HOST_RUN: &str = "a run on the host";

/// Returns the ending of the name of the track of a place's activities; on the host, all of it.
#[must_use]
pub fn of_activities(place: PlaceId) -> String {
    format!("place {}", place.0)
}

/// Prefix of the name of each track of a place's calls.
const CALLS_OF: &str = "calls of place ";

/// The number of the place in the name of a track of calls.
#[must_use]
pub(crate) fn place_of_calls(track: &str) -> Option<u32> {
    let digits = track.strip_prefix(CALLS_OF)?;
    digits.split(',').next()?.parse().ok()
}

/// The number of the place in the name of a thread: `place 3`, or on a chip `core 5, place 3`.
#[must_use]
pub(crate) fn place_of_thread(thread: &str) -> Option<u32> {
    let (_, number) = thread.rsplit_once("place ")?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_the_names_of_their_tracks() {
        assert_eq!(place_of_thread(&of_activities(PlaceId(7))), Some(7));
        assert_eq!(place_of_thread("core 5, place 3"), Some(3));
        assert_eq!(place_of_calls("calls of place 12, 1 ns is 1 ps"), Some(12));
        assert_eq!(place_of_calls("calls of place 12"), Some(12));
        for other in ["", "tile 3", "place", "place x", "calls of place "] {
            assert_eq!((place_of_thread(other), place_of_calls(other)), (None, None), "{other}");
        }
    }
}
