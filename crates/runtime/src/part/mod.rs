//! Parts: values that a handle stands for, on one place or on all, and how many handles there are anywhere.
//!
//! Handles are counted by weight (weighted reference counting: Bevan, PARLE 1987; Watson and Watson, same volume). The
//! home of a part starts with a fixed weight; a handle that travels takes some of its place's weight along, a
//! place whose last handle is gone sends its weight home. When all weight is home and no handle lives there,
//! none lives anywhere, and the part is freed on all places. No message is sent when a handle is copied, and
//! none but the handle itself when it travels. A place whose weight is down to one pins the part instead: it
//! then lives until the program ends.
//!
//! What is lost: the weight of a handle on its way to a place that dies. Such a part is not freed before the end.

mod book;
mod spread;

pub(crate) use book::Parts;
pub(crate) use spread::{Carried, Internal, fold, spread};

use crate::capture::trial;
use crate::local::Local;
use crate::message::{Handler, Refused};
use crate::wire::Reader;
use isles_protocol::PlaceId;
use isles_transport::Class;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::Any;
use std::rc::Rc;

/// The name of a part in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct PartId {
    /// The place that made it and counts it.
    pub(crate) home: PlaceId,
    /// Counts the parts made at `home`; never reused.
    serial: u64,
}

/// What places say to each other about parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum PartMessage {
    /// To the home: the last handle at the sender is gone; this is its weight.
    Return { id: PartId, weight: u64 },
    /// To the home: a handle travels without weight; never free the part.
    Pin { id: PartId },
    /// From the home: no handle is left anywhere.
    Free { id: PartId },
}

/// What the handles to a part stand for at one place, if it is there.
pub(crate) type Value = Option<Rc<dyn Any>>;

/// One handle's share of a part: as long as it lives, the part does.
#[derive(Debug)]
pub(crate) struct Share {
    id: PartId,
}

impl Share {
    /// Makes a part here, with `value` as what the handle stands for on this place.
    pub(crate) fn make(value: Rc<dyn Any>, everywhere: bool) -> Share {
        let id = Local::with(|local| local.parts.borrow_mut().make(local.here(), value, everywhere));
        Share { id }
    }

    /// The name of the part.
    pub(crate) fn id(&self) -> PartId {
        self.id
    }

    /// What the handle stands for on this place, if it is there and a `T`.
    pub(crate) fn value<T: 'static>(&self) -> Option<Rc<T>> {
        Local::with(|local| local.parts.borrow().value(self.id))?.downcast().ok()
    }
}

impl Clone for Share {
    fn clone(&self) -> Self {
        Local::with(|local| local.parts.borrow_mut().retain(self.id));
        Share { id: self.id }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        Local::try_with(|local| {
            let message = local.parts.borrow_mut().release(self.id, local.here());
            tell(local, message);
        });
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // On trial the handle goes nowhere.
        let lend = |local: &Local| if trial::is_on() { 0 } else { local.parts.borrow_mut().lend(self.id) };
        let weight = Local::try_with(lend)
            .ok_or_else(|| serde::ser::Error::custom("a handle can be sent only from within a place"))?;
        (self.id, weight).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Share::with_value(deserializer).map(|(share, _)| share)
    }
}

impl Share {
    /// A share that has arrived, with what the handle stands for on this place, if it is there.
    pub(crate) fn with_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(Share, Value), D::Error> {
        let (id, weight) = <(PartId, u64)>::deserialize(deserializer)?;
        let adopted = Local::try_with(|local| {
            let known = id.home.0 < local.places();
            known.then(|| local.parts.borrow_mut().adopt(id, weight))
        });
        match adopted.flatten() {
            Some(value) => Ok((Share { id }, value)),
            None => Err(serde::de::Error::custom("a handle of no place of this run")),
        }
    }
}

/// Carries out what the book says must be told to other places.
fn tell(local: &Local, messages: Vec<(PlaceId, PartMessage)>) {
    for (to, message) in messages {
        if to == local.here() {
            // Only `Return` and `Pin` go to the home, and the home itself settles them at once.
            let _ = take(local, local.here(), message);
        } else {
            // A dead place holds no handles that matter any more.
            let _ = local.send(to, Class::Control, Handler::Part.id(), |writer| writer.put_serde(&message));
        }
    }
}

/// Receives a message about parts.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    take(local, source, reader.take_serde()?)
}

fn take(local: &Local, source: PlaceId, message: PartMessage) -> Result<(), Refused> {
    let here = local.here();
    let id = match message {
        PartMessage::Return { id, .. } | PartMessage::Pin { id } | PartMessage::Free { id } => id,
    };
    let from_home = matches!(message, PartMessage::Free { .. });
    if (from_home && id.home != source) || (!from_home && id.home != here) {
        return Err(Refused::NotItsHome);
    }
    let (freed, messages) = {
        let mut parts = local.parts.borrow_mut();
        match message {
            PartMessage::Return { weight, .. } => parts.take_home(id, weight, here, local.places()),
            PartMessage::Pin { .. } => (parts.pin(id), Vec::new()),
            PartMessage::Free { .. } => (parts.free(id), Vec::new()),
        }
    };
    // The value is dropped here, when nothing is borrowed: its own drop may come back.
    drop(freed);
    tell(local, messages);
    Ok(())
}
