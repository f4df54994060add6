//! Registrations that travel with tasks.
//!
//! A capture is written without knowing its destination, and perhaps several times, but a registration must be counted
//! once and for one receiver. So a phaser refuses to be written, and the spawn that meets the refusal sends the
//! captures through this file. It collects the registrations, makes them depart, and puts their tickets ahead of the
//! captures, in which a phaser is only an index into that list. The receiver reads the tickets first. Spawns without a
//! phaser pay nothing for it.
//!
//! Invariant: each registration that arrives is taken by one handle or left at once, even if the task could not be
//! read.

use super::{Phaser, PhaserTable, Registration, refused};
use crate::table::service::Service;
use isles_protocol::PlaceId;
use isles_protocol::phaser::{Party, PhaserError, RegistrationTransfer};
use isles_runtime::service::{
    BodyHeader, Encode, FOREIGN, Refused, RefusedBody, Sent, call, roundtrip_check,
};
use isles_runtime::wire::{EncodeError, Reader, Writer};
use isles_runtime::{Error, ErrorKind, Local, Result};
use isles_transport::{Class, HandlerId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;

/// Number of the message of a `spawn_at!` with registrations.
pub(crate) const REGISTERED: HandlerId = HandlerId(7);

/// Registrations in transit at one place.
#[derive(Default)]
pub(super) struct TravellingRegistrations {
    /// The phasers met so far, while captures are written.
    being_written: RefCell<Option<Vec<Registration>>>,
    /// The registrations that have arrived and that nothing has taken yet, while captures are read.
    decoded: RefCell<Vec<Option<Registration>>>,
}

impl TravellingRegistrations {
    /// Returns the index of one more phaser among the captures, or `None` if it may not travel.
    fn add(&self, registration: Registration) -> Option<u32> {
        let mut being_written = self.being_written.borrow_mut();
        let registrations = being_written.as_mut()?;
        registrations.push(registration);
        Some(registrations.len() as u32 - 1)
    }

    /// Writes captures with their phasers; returns the phasers.
    fn write(
        &self,
        encode: &Encode<'_>,
        writer: &mut Writer<'_>,
    ) -> (std::result::Result<(), EncodeError>, Vec<Registration>) {
        let before = self.being_written.replace(Some(Vec::new()));
        let written = encode(writer);
        (written, self.being_written.replace(before).unwrap_or_default())
    }

    /// Offers `registrations` to the phasers that are read until the guard is dropped, which leaves those that nothing
    /// took.
    fn begin_landing(&self, registrations: impl Iterator<Item = Registration>) -> LandingGuard<'_> {
        LandingGuard { travelling: self, before: self.decoded.replace(registrations.map(Some).collect()) }
    }
}

/// Offers registrations to captures while these are read.
struct LandingGuard<'a> {
    travelling: &'a TravellingRegistrations,
    /// The registrations offered before: reading may be nested.
    before: Vec<Option<Registration>>,
}

impl Drop for LandingGuard<'_> {
    fn drop(&mut self) {
        let left = self.travelling.decoded.replace(std::mem::take(&mut self.before));
        left.into_iter().flatten().map(Phaser::from_registration).for_each(drop);
    }
}

/// Returns the parties of the phasers among the captures, and the length of the captures in bytes.
fn collect(local: &Local, encode: &Encode<'_>) -> Result<(Vec<Party>, usize)> {
    let mut measure = Writer::new(&mut []);
    let (written, registrations) = PhaserTable::of(local).travelling.write(encode, &mut measure);
    // Other handles among the captures are counted when the captures are written again to be sent.
    local.roll_back_handles();
    written.map_err(Error::unencodable)?;
    let parties: std::result::Result<Vec<Party>, PhaserError> = registrations.into_iter().collect();
    Ok((parties.map_err(refused)?, measure.written()))
}

/// Sends a body whose captures could not be sent without registrations; returns `unsent` if the reason was another.
pub(crate) fn send_with_registrations(local: &Local, body: &RefusedBody<'_>, unsent: Error) -> Result<Sent> {
    let RefusedBody { to, head, encode } = *body;
    let table = &PhaserTable::of(local);
    if !local.was_refused_alone() {
        return Err(unsent);
    }
    let (parties, _) = collect(local, encode)?;
    let tickets = table.depart(&parties, to).map_err(refused)?;
    let sent = local.send(to, Class::Data, REGISTERED, |writer| {
        writer.put_serde(&tickets)?;
        head.encode(writer);
        table.travelling.write(encode, writer).0
    });
    sent.map_err(|unsent| {
        table.undo_depart(&parties, to);
        unsent.into()
    })
}

/// Receives a `spawn_at!` with registrations.
pub(crate) fn receive_registered(
    local: &Local,
    source: PlaceId,
    reader: &mut Reader<'_>,
) -> std::result::Result<(), Refused> {
    let tickets: Vec<RegistrationTransfer> = reader.take_serde()?;
    let head = BodyHeader::decode(reader)?;
    let registrations =
        tickets.into_iter().map(|ticket| PhaserTable::of(local).arrive(local, ticket, source));
    let _landing = PhaserTable::of(local).travelling.begin_landing(registrations);
    call::start_spawned(local, source, head, reader)
}

/// Writes captures that could not be written without registrations, and has `decode` read them as if they had
/// travelled; returns `error` if the reason was another.
pub(crate) fn decode_here(
    local: &Local,
    encode: &Encode<'_>,
    error: Error,
    decode: &mut dyn FnMut(&[u8]),
) -> Result<()> {
    let (bytes, _landing) = write_here(local, encode, error)?;
    decode(&bytes);
    Ok(())
}

/// Returns the captures of [`decode_here`] as bytes, with the registrations that they take when they are read.
fn write_here<'a>(
    local: &'a Local,
    encode: &Encode<'_>,
    error: Error,
) -> Result<(Vec<u8>, LandingGuard<'a>)> {
    let table = &PhaserTable::of(local);
    if !local.was_refused_alone() {
        return Err(error);
    }
    let (parties, len) = collect(local, encode)?;
    let registered: std::result::Result<Vec<Phaser>, PhaserError> = parties
        .into_iter()
        .map(|party| table.register(party).map(|party| Phaser::from_registration(Ok(party))))
        .collect();
    let registered = registered.map_err(refused)?;
    let mut bytes = vec![0; len];
    let writing = local.begin_writing(local.here());
    let written = table.travelling.write(encode, &mut Writer::new(&mut bytes)).0;
    drop(writing);
    local.settle_sent(written)?;
    let registrations = registered.into_iter().map(Phaser::into_registration);
    Ok((bytes, table.travelling.begin_landing(registrations)))
}

/// Returns the error of a call that was not sent: `error`, unless the reason is a phaser, which no call carries.
pub(crate) fn not_in_calls(local: &Local, error: Error) -> Error {
    if local.was_refused_alone() { Error::new(ErrorKind::Misused, ONLY_WITH_TASKS) } else { error }
}

const ONLY_WITH_TASKS: &str = "a phaser goes to another place only with a task that spawn_at! starts";

impl Phaser {
    /// Gives up the handle but keeps the registration.
    fn into_registration(mut self) -> Registration {
        std::mem::replace(&mut self.registration, Err(PhaserError::NotRegistered))
    }
}

impl Serialize for Phaser {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if self.attachment.is_foreign() {
            return Err(serde::ser::Error::custom(FOREIGN));
        }
        if roundtrip_check::is_on() {
            return serializer.serialize_u32(0);
        }
        let position = Local::try_with(|local| {
            let position = PhaserTable::of(local).travelling.add(self.registration);
            if position.is_none() {
                local.refuse_alone();
            }
            position
        });
        let position = position.flatten().ok_or_else(|| serde::ser::Error::custom(ONLY_WITH_TASKS))?;
        serializer.serialize_u32(position)
    }
}

impl<'de> Deserialize<'de> for Phaser {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let position = u32::deserialize(deserializer)?;
        if roundtrip_check::is_on() {
            return Ok(Phaser::from_registration(Err(PhaserError::NotRegistered)));
        }
        let take = |local: &Local| {
            PhaserTable::of(local).travelling.decoded.borrow_mut().get_mut(position as usize)?.take()
        };
        let registration = Local::try_with(take).flatten();
        registration.map(Phaser::from_registration).ok_or_else(|| serde::de::Error::custom(ONLY_WITH_TASKS))
    }
}
