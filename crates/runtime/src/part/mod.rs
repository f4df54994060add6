//! Parts: values that handles refer to, at one place or at several, and the count of their handles.
//!
//! Handles are counted along the paths that they took (indirect reference counting: Piquer, PARLE 1991). A place counts
//! the handles that it lent to others. A place that received one owes it to the lender; the first lender is its parent.
//! When no handle lives at a place and none is lent from there, it returns what it owes. When that holds at the home,
//! no handle lives anywhere, and the part is freed at all places. Copying a handle sends no message, and sending one
//! needs no other message than its own.
//!
//! Owed returns are not sent at once but [`RETURN_WAIT`](crate::limits::RETURN_WAIT) later, or before the next control
//! message of a finish: a stream of tasks does not cost a message each, and a place that learns that tasks have ended
//! already knows that their handles are gone. `docs/decisions/0007-counting-handles.md` says why.
//!
//! A place that dies returns nothing; [`deaths`] settles what it had.

mod deaths;
mod replicate;
pub(crate) mod slots;
mod table;
#[cfg(test)]
mod tests;

use deaths::DeathStep;
use isles_protocol::ordered::OrderedSet;
pub use replicate::{InternalSite, SerdeCapture, SerdeReturn, fold, replicate};
use slots::SlotHint;
pub(crate) use table::PartTable;
use table::{NotLent, Settled};

use crate::attachment::{Attachment, FOREIGN};
use crate::capture::roundtrip_check;
use crate::error::{Result, panic};
use crate::limits::RETURNS_MAX;
use crate::local::Local;
use crate::members::Members;
use crate::message::{Handler, Refused};
use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use isles_protocol::PlaceId;
use isles_transport::Class;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::Any;
use std::rc::Rc;

/// Value of a part at one place, which its handles refer to.
pub type Value = Rc<dyn Any>;

/// The id of a part in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartId {
    /// The place that made it and counts it.
    pub(crate) home: PlaceId,
    /// Number of the part among those made at `home`; never reused.
    serial: u64,
}

/// Message between places about parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum PartMessage {
    /// To a lender: the number of handles of each part that are dropped.
    Return(Vec<(PartId, u64)>),
    /// From the home: no handle is left anywhere.
    Free(PartId),
    /// To a home: handles of its parts were lent to these places, which are dead.
    Inquire(Vec<PlaceId>),
    /// From a home, in this round: asks whether the place knows that these are dead.
    Ask(u64, Vec<PlaceId>),
    /// To the home: the place has these parts from a dead place.
    Adopt(Vec<PartId>),
    /// To the home: the place knows, and has named all such parts.
    Answer(u64),
    /// From a home: what was lent of its parts to these dead places is gone.
    Forget(Vec<PlaceId>),
}

/// One handle's share of a part, which lives at least as long. Outside of its place and run it counts nothing and
/// refers to nothing.
#[derive(Debug)]
pub struct PartRef {
    // The id of the part, in two fields: the slot fits between them.
    serial: u64,
    home: PlaceId,
    slot: SlotHint,
    attachment: Attachment,
}

impl PartRef {
    /// Returns the handle's share of a part at the place of `local`.
    #[inline]
    fn of(local: &Local, id: PartId, slot: SlotHint) -> PartRef {
        PartRef { serial: id.serial, home: id.home, slot, attachment: local.attachment() }
    }

    /// Makes a part here, whose handles refer to `value` at this place. `at` has the places with a value, if there are
    /// others.
    pub fn make(value: Value, at: Option<Members>) -> PartRef {
        Local::with(|local| {
            let (id, slot) = local.parts.borrow_mut().make(local.here(), value, at);
            PartRef::of(local, id, slot)
        })
    }

    /// Returns the run and place in which it may be used.
    pub fn attachment(&self) -> Attachment {
        self.attachment
    }

    /// Returns the id of the part.
    #[inline]
    pub fn id(&self) -> PartId {
        PartId { home: self.home, serial: self.serial }
    }

    /// Adopts a handle that has arrived, which `lender` counts, or nothing does. Returns it with the value of the part
    /// here; `None` if it belongs to no place of this run.
    // Not returned through memory, from where `take` would copy it.
    #[inline(always)]
    fn adopt(id: PartId, lender: Option<PlaceId>) -> Option<(PartRef, Option<Value>)> {
        Local::try_with(|local| {
            if id.home.0.max(lender.unwrap_or(id.home).0) >= local.places() {
                return None;
            }
            let (slot, value) = local.parts.borrow_mut().count_received(id, lender, local.here());
            Some((PartRef::of(local, id, slot), value))
        })?
    }

    /// Counts a handle that is written into the current message; returns the place that counts it, or `None` in a
    /// round-trip check, which sends nothing.
    ///
    /// # Errors
    /// Why the handle cannot be sent.
    #[inline]
    fn lend(&self) -> std::result::Result<Option<PlaceId>, &'static str> {
        Local::try_with(|local| {
            if local.attachment() != self.attachment {
                return Err(FOREIGN);
            }
            if roundtrip_check::is_on() {
                return Ok(None);
            }
            local.parts.borrow_mut().count_sent(self.id(), self.slot, local.written_to());
            Ok(Some(local.here()))
        })
        .unwrap_or(Err("a handle can be sent only from within a place"))
    }

    /// Returns the value of the part at this place, if it is there and a `T`.
    pub fn value<T: 'static>(&self) -> Option<Rc<T>> {
        self.attachment.try_with(|local| local.parts.borrow().value(self.id()))??.downcast().ok()
    }

    /// Returns the places that have a value, if that is more than the home; known where there is one.
    ///
    /// # Errors
    /// [`Misused`](crate::ErrorKind::Misused): the handle does not belong here.
    fn members(&self) -> Result<Option<Members>> {
        self.attachment.with(|local| local.parts.borrow().members(self.id()))
    }
}

impl Clone for PartRef {
    fn clone(&self) -> Self {
        let slot = self.attachment.try_with(|local| local.parts.borrow_mut().retain(self.id()));
        PartRef { slot: slot.unwrap_or(self.slot), ..*self }
    }
}

impl Drop for PartRef {
    fn drop(&mut self) {
        self.attachment.try_with(|local| {
            let freed = local.parts.borrow_mut().release(self.id(), self.slot, local.here());
            if let Some(id) = freed {
                free_part(local, id);
            }
        });
    }
}

/// Home and serial of the part, number of places that count the handle, and which: only numbers, so that they are
/// written and read in one go.
type Name = (u32, u64, u8, u32);

impl PartRef {
    /// Returns the name under which the handle is sent.
    ///
    /// # Errors
    /// Why the handle cannot be sent.
    #[inline]
    fn name(&self) -> std::result::Result<Name, &'static str> {
        let lender = self.lend()?;
        Ok((self.home.0, self.serial, u8::from(lender.is_some()), lender.unwrap_or(self.home).0))
    }

    /// Returns the handle that has arrived under a name; `None` if it belongs to no place of this run.
    #[inline(always)]
    fn named(home: u32, serial: u64, lenders: u8, lender: u32) -> Option<(PartRef, Option<Value>)> {
        let lender = match lenders {
            0 => None,
            1 => Some(PlaceId(lender)),
            _ => return None,
        };
        PartRef::adopt(PartId { home: PlaceId(home), serial }, lender)
    }

    /// Writes the handle, with the same bytes as its `Serialize`.
    ///
    /// # Errors
    /// As for `PartRef::name`.
    #[inline]
    pub fn put(&self, to: &mut Writer<'_>) -> std::result::Result<(), EncodeError> {
        let (home, serial, lenders, lender) = self.name().map_err(serde::ser::Error::custom)?;
        to.put_numbers([home.into(), serial, lenders.into(), lender.into()]);
        Ok(())
    }

    /// Reads what [`PartRef::put`] wrote; as [`PartRef::with_value`].
    ///
    /// # Errors
    /// [`DecodeError`]: the bytes are not that, or the handle belongs to no place of this run.
    #[inline]
    pub fn take(from: &mut Reader<'_>) -> std::result::Result<(PartRef, Option<Value>), DecodeError> {
        let [home, serial, lenders, lender] = from.take_numbers()?;
        let narrow = |number| u32::try_from(number).ok();
        let name = narrow(home).zip(u8::try_from(lenders).ok()).zip(narrow(lender));
        let arrived =
            name.and_then(|((home, lenders), lender)| PartRef::named(home, serial, lenders, lender));
        arrived.ok_or_else(|| serde::de::Error::custom(NO_PLACE))
    }
}

/// Message for the name of a handle that belongs to no place of the run.
const NO_PLACE: &str = "a handle of no place of this run";

impl Serialize for PartRef {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PartRef {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PartRef::with_value(deserializer).map(|(share, _)| share)
    }
}

impl PartRef {
    /// Reads a share that has arrived; returns it with the value of its part at this place, if there is one.
    #[inline]
    pub fn with_value<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<(PartRef, Option<Value>), D::Error> {
        let (home, serial, lenders, lender) = Name::deserialize(deserializer)?;
        let arrived = PartRef::named(home, serial, lenders, lender);
        arrived.ok_or_else(|| serde::de::Error::custom(NO_PLACE))
    }
}

/// Settles the handles of `place`, which has died.
pub(crate) fn place_died(local: &Local, place: PlaceId) {
    let others: Vec<PlaceId> = local.others().collect();
    let steps = {
        let mut parts = local.parts.borrow_mut();
        let homes = parts.homes_with_handles_at(&OrderedSet::from_iter([place]));
        parts.deaths.record_death(place, homes, local.here(), &others)
    };
    settle_deaths(local, steps);
}

/// Returns the handles that this place owes, if it is time to; returns whether it did.
#[inline]
pub(crate) fn run_due(local: &Local) -> bool {
    let is_due = local.parts.borrow().is_due();
    is_due && settle_if_due(local)
}

/// Returns the handles that this place owes, if it is time to; returns whether it did.
fn settle_if_due(local: &Local) -> bool {
    let is_return_due = local.parts.borrow_mut().is_return_due(local.clock().now());
    if is_return_due {
        settle(local);
    }
    is_return_due
}

/// Frees a part of this home that has no handles anywhere.
fn free_part(local: &Local, id: PartId) {
    let mut settled = Settled::default();
    local.parts.borrow_mut().free_part(id, &mut settled);
    execute_settled(local, settled);
}

/// Returns the handles that this place owes.
#[inline]
pub(crate) fn settle(local: &Local) {
    if local.parts.borrow().is_due() {
        let settled = local.parts.borrow_mut().settle(local.here());
        execute_settled(local, settled);
    }
}

fn execute_settled(local: &Local, settled: Settled) {
    // The values are dropped here, while nothing is borrowed: their drops may come back, or panic.
    settled.freed.into_iter().for_each(panic::drop_caught);
    for (to, message) in settled.messages {
        // The handles of a dead place no longer matter.
        let _ = local.send(to, Class::Control, Handler::Part.id(), |writer| writer.put_serde(&message));
    }
}

/// Receives a message about parts.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    match reader.take_serde()? {
        PartMessage::Return(counts) => counts.into_iter().try_for_each(|(id, count)| {
            let freed = local.parts.borrow_mut().given_back(id, source, count, local.here());
            if let Some(id) =
                freed.map_err(|NotLent| Refused::of_service("it gives back handles that were not lent"))?
            {
                free_part(local, id);
            }
            Ok(())
        }),
        PartMessage::Free(id) if id.home == source => {
            let freed = local.parts.borrow_mut().free(id);
            panic::drop_caught(freed);
            Ok(())
        }
        PartMessage::Free(_) => Err(Refused::NotItsHome),
        PartMessage::Adopt(ids) if ids.iter().all(|id| id.home == local.here()) => {
            ids.into_iter().for_each(|id| local.parts.borrow_mut().adopt(id, source));
            Ok(())
        }
        PartMessage::Adopt(_) => Err(Refused::NotItsHome),
        PartMessage::Forget(dead) => {
            forget_lent(local, source, &dead.into_iter().collect());
            Ok(())
        }
        PartMessage::Inquire(dead) => {
            let others: Vec<PlaceId> = local.others().collect();
            let steps = local.parts.borrow_mut().deaths.receive_inquiry(source, dead, &others);
            settle_deaths(local, steps);
            Ok(())
        }
        PartMessage::Ask(round, dead) => {
            let steps = local.parts.borrow_mut().deaths.asked(source, round, dead);
            settle_deaths(local, steps);
            Ok(())
        }
        PartMessage::Answer(round) => {
            let steps = local.parts.borrow_mut().deaths.answered(source, round);
            settle_deaths(local, steps);
            Ok(())
        }
    }
}

fn settle_deaths(local: &Local, steps: Vec<DeathStep>) {
    // If the place has died meanwhile, its death is handled later.
    let tell = |to: PlaceId, message: &PartMessage| {
        let _ = local.send(to, Class::Control, Handler::Part.id(), |writer| writer.put_serde(message));
    };
    for step in steps {
        match step {
            DeathStep::Ask(to, round, dead) => tell(to, &PartMessage::Ask(round, dead)),
            DeathStep::Inquire(home, dead) => tell(home, &PartMessage::Inquire(dead)),
            DeathStep::Tell(to, dead) => tell(to, &PartMessage::Forget(dead)),
            DeathStep::Forget(dead) => forget_lent(local, local.here(), &dead),
            DeathStep::Answer(home, round, dead) => {
                let orphans = local.parts.borrow_mut().leave_dead_parents(home, &dead);
                orphans.chunks(RETURNS_MAX).for_each(|ids| tell(home, &PartMessage::Adopt(ids.to_vec())));
                tell(home, &PartMessage::Answer(round));
            }
        }
    }
}

/// Subtracts the handles of parts of `home` that were lent from here to the dead.
fn forget_lent(local: &Local, home: PlaceId, dead: &OrderedSet<PlaceId>) {
    let unused = local.parts.borrow_mut().forget_lent(home, dead, local.here());
    unused.into_iter().for_each(|id| free_part(local, id));
}
