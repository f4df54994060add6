//! Registrations that travel with tasks.
//!
//! A capture is written without knowing where it goes, and perhaps several times; a registration must be counted once
//! and for one receiver. So a phaser refuses to be written until the spawn that meets the refusal sends the captures by
//! the way of this file: it looks which registrations there are, lets them depart, and puts their tickets ahead of the
//! captures, in which a phaser is only its position in that list. The receiver takes in the tickets first. Spawns
//! without a phaser pay nothing for it.
//!
//! The invariant: each ticket that arrives is taken by one handle, or left at once; also if the task could not be read.

use super::{Phaser, Seat, refused};
use crate::call;
use crate::capture::{Travel, trial};
use crate::error::{Error, ErrorKind, Result};
use crate::local::{Local, Sent};
use crate::message::{Handler, Head, Refused};
use crate::wire::{EncodeError, Reader, Writer};
use isles_protocol::PlaceId;
use isles_protocol::phaser::{Party, PhaserError, Ticket};
use isles_transport::Class;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;

/// What is under way at one place.
#[derive(Default)]
pub(super) struct Passage {
    /// The phasers met so far, while captures are written.
    aboard: RefCell<Option<Vec<Seat>>>,
    /// The registrations that have arrived and nobody took yet, while captures are read.
    landed: RefCell<Vec<Option<Seat>>>,
}

impl Passage {
    /// The position of one more phaser among the captures; none if it may not travel.
    fn board(&self, seat: Seat) -> Option<u32> {
        let mut aboard = self.aboard.borrow_mut();
        let seats = aboard.as_mut()?;
        seats.push(seat);
        Some(seats.len() as u32 - 1)
    }

    /// Writes captures with their phasers; gives the phasers.
    fn write<C: Travel>(
        &self,
        captures: &C,
        writer: &mut Writer<'_>,
    ) -> (std::result::Result<(), EncodeError>, Vec<Seat>) {
        let before = self.aboard.replace(Some(Vec::new()));
        let written = captures.encode(writer);
        (written, self.aboard.replace(before).unwrap_or_default())
    }

    /// Lets `read` take `seats`; gives those that it left.
    fn read<R>(
        &self,
        seats: impl Iterator<Item = Seat>,
        read: impl FnOnce() -> R,
    ) -> (R, impl Iterator<Item = Seat>) {
        let before = self.landed.replace(seats.map(Some).collect());
        let result = read();
        (result, self.landed.replace(before).into_iter().flatten())
    }
}

/// Whether `error` is that of a phaser which refused to be written.
fn is_refusal(error: &Error) -> bool {
    *error.kind() == ErrorKind::Undecodable && error.text().contains(ONLY_WITH_TASKS)
}

/// The phasers among the captures, and how long the captures are.
fn collect<C: Travel>(local: &Local, captures: &C) -> Result<(Vec<Party>, usize)> {
    let mut measure = Writer::new(&mut []);
    let (written, seats) = local.phasers.passage.write(captures, &mut measure);
    // Other handles among the captures are counted when these are written to be sent.
    local.parts.borrow_mut().take_back();
    written.map_err(Error::unencodable)?;
    let parties: std::result::Result<Vec<Party>, PhaserError> = seats.into_iter().collect();
    Ok((parties.map_err(refused)?, measure.written()))
}

/// Sends a body whose captures could not be sent without registrations; `unsent` is why, if it was not that.
pub(crate) fn send_along<C: Travel>(
    local: &Local,
    to: PlaceId,
    head: Head,
    captures: &C,
    unsent: Error,
) -> Result<Sent> {
    let table = &local.phasers;
    if !is_refusal(&unsent) {
        return Err(unsent);
    }
    let (parties, _) = collect(local, captures)?;
    let tickets = table.depart(&parties, to).map_err(refused)?;
    let sent = local.send(to, Class::Data, Handler::Registered.id(), |writer| {
        writer.put_serde(&tickets)?;
        head.encode(writer);
        table.passage.write(captures, writer).0
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
    let tickets: Vec<Ticket> = reader.take_serde()?;
    let head = Head::decode(reader)?;
    let seats = tickets.into_iter().map(|ticket| local.phasers.arrive(local, ticket, source));
    let (received, left) =
        local.phasers.passage.read(seats, || call::receive_spawn(local, source, head, reader));
    left.map(Phaser::sit).for_each(drop);
    received
}

/// Writes captures that could not be written without registrations, and reads them again as if they had travelled;
/// `error` is why, if it was not that.
pub(crate) fn land_here<C: Travel>(local: &Local, captures: &C, error: Error) -> Result<C::Landed> {
    let table = &local.phasers;
    if !is_refusal(&error) {
        return Err(error);
    }
    let (parties, len) = collect(local, captures)?;
    let registered: std::result::Result<Vec<Phaser>, PhaserError> =
        parties.into_iter().map(|party| table.register(party).map(|party| Phaser::sit(Ok(party)))).collect();
    let registered = registered.map_err(refused)?;
    let mut bytes = vec![0; len];
    let written = table.passage.write(captures, &mut Writer::new(&mut bytes)).0;
    local.keep_books(written)?;
    let seats = registered.into_iter().map(Phaser::rise);
    let (landed, left) = table.passage.read(seats, || C::decode(&mut Reader::new(&bytes)));
    left.map(Phaser::sit).for_each(drop);
    landed.map_err(call::undecodable)
}

/// The error of a call that was not sent: `error`, unless it was a phaser that refused to go along.
pub(crate) fn not_in_calls(error: Error) -> Error {
    if is_refusal(&error) {
        return Error::new(ErrorKind::Misused, ONLY_WITH_TASKS);
    }
    error
}

const ONLY_WITH_TASKS: &str = "a phaser goes to another place only with a task that spawn_at! starts";

impl Phaser {
    /// Gives up the handle, not the registration.
    fn rise(mut self) -> Seat {
        std::mem::replace(&mut self.seat, Err(PhaserError::NotRegistered))
    }
}

impl Serialize for Phaser {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if trial::is_on() {
            return serializer.serialize_u32(0);
        }
        let position = Local::try_with(|local| local.phasers.passage.board(self.seat)).flatten();
        let position = position.ok_or_else(|| serde::ser::Error::custom(ONLY_WITH_TASKS))?;
        serializer.serialize_u32(position)
    }
}

impl<'de> Deserialize<'de> for Phaser {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let position = u32::deserialize(deserializer)?;
        if trial::is_on() {
            return Ok(Phaser::sit(Err(PhaserError::NotRegistered)));
        }
        let take =
            |local: &Local| local.phasers.passage.landed.borrow_mut().get_mut(position as usize)?.take();
        let seat = Local::try_with(take).flatten();
        seat.map(Phaser::sit).ok_or_else(|| serde::de::Error::custom(ONLY_WITH_TASKS))
    }
}
