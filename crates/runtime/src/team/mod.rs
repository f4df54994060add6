//! Teams: ordered sets of places that do collectives.

use crate::local::Local;
use crate::message::Refused;
use crate::wire::Reader;
use isles_protocol::PlaceId;

/// Steps of collectives that have arrived and are not yet taken.
#[derive(Default)]
pub(crate) struct Mailbox;

/// Receives one step of a collective.
pub(crate) fn receive(_local: &Local, _source: PlaceId, _reader: &mut Reader<'_>) -> Result<(), Refused> {
    Ok(())
}

/// Ends the waits for a place that died.
pub(crate) fn place_died(_local: &Local, _place: PlaceId) {}
