//! Messages that arrive at a place, and their receivers.
//!
//! Each kind of message has a number, a fixed header, and a body that its receiver decodes. Headers have fixed widths:
//! the smallest travelling body fits one cache line together with the transport's own header.

use crate::call::image::Entry;
use crate::finish::Scope;
use crate::local::Local;
use crate::run::report;
use crate::wire::{DecodeError, Reader, Writer};
use crate::{call, finish, part};
use isles_protocol::PlaceId;
use isles_protocol::finish::{FinishId, TaskRefusal, Violation};
use isles_transport::{Arrival, Body, Death, HandlerId, Message, notice};
use std::fmt;
use std::rc::Rc;

/// The messages of the core of a place; services have other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Handler {
    /// `spawn_at!`: an entry and its captures.
    Spawn = 0,
    /// `at!`: the same, and the place to answer.
    Call = 1,
    /// The answer to a `Call`.
    Reply = 2,
    /// Control of finishes.
    Finish = 3,
    /// Counts of the handles to parts.
    Part = 4,
    /// Between the first place and the others: the end of the run, and reports.
    Run = 8,
    /// Nothing waits for the answer to a `Call` any more.
    Abandon = 9,
}

impl Handler {
    /// Returns the handler with the number `id` on the wire.
    #[inline]
    pub const fn of(id: HandlerId) -> Option<Handler> {
        Some(match id.0 {
            0 => Handler::Spawn,
            1 => Handler::Call,
            2 => Handler::Reply,
            3 => Handler::Finish,
            4 => Handler::Part,
            8 => Handler::Run,
            9 => Handler::Abandon,
            _ => return None,
        })
    }

    /// Returns its number on the wire.
    #[inline]
    pub const fn id(self) -> HandlerId {
        HandlerId(self as u16)
    }
}

/// Delivers a message of `source` to the receiver with the number `id` on the wire.
///
/// The message is refused: by its receiver, or because it has none.
fn dispatch(local: &Local, id: HandlerId, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    match Handler::of(id) {
        Some(Handler::Spawn) => call::receive_spawn(local, source, reader),
        Some(Handler::Call) => call::receive_call(local, source, reader),
        Some(Handler::Reply) => call::receive_reply(local, source, reader),
        Some(Handler::Finish) => finish::receive(local, source, reader),
        Some(Handler::Part) => part::receive(local, source, reader),
        Some(Handler::Run) => report::receive(local, source, reader),
        Some(Handler::Abandon) => call::receive_abandon(local, source, reader),
        None => local.services().receive(local, id, source, reader),
    }
}

/// The header of a travelling body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyHeader {
    /// Entry point of the body in the receiver's image.
    pub(crate) entry: Entry,
    /// The finish that counts it, or for a call the caller's; `None` if detached.
    pub(crate) finish: Option<FinishId>,
}

/// Bytes that mean no finish.
const NO_FINISH: [u8; FinishId::BYTES] = [0xff; FinishId::BYTES];

impl BodyHeader {
    /// Length on the wire: offset and hash of the entry, and the finish; written and read in one piece.
    pub(crate) const BYTES: usize = 8 + FinishId::BYTES;

    /// Writes the header.
    #[inline]
    pub fn encode(self, writer: &mut Writer<'_>) {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.entry.offset.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.entry.hash.to_le_bytes());
        bytes[8..].copy_from_slice(&self.finish.map_or(NO_FINISH, FinishId::to_bytes));
        writer.put_bytes(&bytes);
    }

    /// Reads a header.
    ///
    /// # Errors
    /// The message is too short.
    #[inline]
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [a, b, c, d, e, f, g, h, finish @ ..] = reader.take_pod::<[u8; Self::BYTES]>()?;
        let entry =
            Entry { offset: u32::from_le_bytes([a, b, c, d]), hash: u32::from_le_bytes([e, f, g, h]) };
        Ok(BodyHeader { entry, finish: (finish != NO_FINISH).then(|| FinishId::from_bytes(finish)) })
    }
}

/// A travelling body, as passed to the function of its descriptor.
pub(crate) struct Arrived<'r, 'a> {
    /// The captures.
    pub(crate) reader: &'r mut Reader<'a>,
    /// The scope of the task to start; a spawn is counted in it already.
    pub(crate) scope: Scope,
    /// Receiver of the answer; unused by a spawn.
    pub(crate) answer: call::ReplyTo,
}

/// Reason why a message was refused; it had no effect.
///
/// The sender is at fault, with one exception: a task of a finish whose home is dead may come from a valid place.
#[derive(Debug)]
pub enum Refused {
    /// Its bytes are malformed.
    Decode(DecodeError),
    /// It names a receiver that does not exist.
    UnknownHandler(u16),
    /// It answers a call that its sender did not get.
    UnknownCall,
    /// It says something about a part, or about the run, that only another place may say.
    NotItsHome,
    /// Its task cannot be accepted.
    TaskRefusal(TaskRefusal),
    /// It breaks the protocol of finishes.
    Violation(Violation),
    /// It breaks the protocol of a service, as the text says.
    ServiceViolation(Box<str>),
}

impl Refused {
    /// Returns the refusal of a message that breaks the protocol of a service; `violation` says how, of "it".
    #[cold]
    pub fn of_service(violation: impl fmt::Display) -> Refused {
        Refused::ServiceViolation(violation.to_string().into())
    }

    /// Returns `true` if a valid place may have sent the message: its task belongs to a finish whose home is dead, so
    /// nothing waits for it.
    fn is_sound(&self) -> bool {
        matches!(self, Refused::TaskRefusal(TaskRefusal::DeadPlace(_)))
    }
}

impl From<DecodeError> for Refused {
    fn from(fault: DecodeError) -> Self {
        Refused::Decode(fault)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Decode(fault) => fault.fmt(f),
            Refused::UnknownHandler(number) => write!(f, "there is no handler {number}"),
            Refused::UnknownCall => write!(f, "it answers a call that was not made"),
            Refused::NotItsHome => write!(f, "only another place may send that"),
            Refused::TaskRefusal(refusal) => refusal.fmt(f),
            Refused::Violation(violation) => violation.fmt(f),
            Refused::ServiceViolation(violation) => f.write_str(violation),
        }
    }
}

/// Receives one arrival of the endpoint.
#[inline]
pub(crate) fn deliver(local: &Local, arrival: Arrival<'_>) {
    // By reference: an arrival is large, and a small message should not be copied only to be matched.
    match &arrival {
        Arrival::Message(Message { source, handler, body: Body::Inline(bytes), .. }) => {
            local.backlog.note(bytes.len());
            note(local, *source, bytes.len(), dispatch_small(local, *handler, *source, bytes));
        }
        _ => deliver_slow(local, arrival),
    }
}

/// Receives an arrival other than a small message.
fn deliver_slow(local: &Local, arrival: Arrival<'_>) {
    match arrival {
        Arrival::Died { place, cause } => place_died(local, place, &cause),
        Arrival::Message(Message { source, handler, body, .. }) => {
            let len = body.bytes().len();
            local.backlog.note(len);
            let received = match body {
                Body::Inline(bytes) => dispatch(local, handler, source, &mut Reader::new(bytes)),
                Body::Block(block) => {
                    dispatch(local, handler, source, &mut Reader::from_block(&Rc::from(block)))
                }
            };
            note(local, source, len, received);
        }
    }
}

/// Counts a message of `bytes` bytes; if it was refused, blames its sender if that may be at fault.
#[inline]
fn note(local: &Local, source: PlaceId, bytes: usize, received: Result<(), Refused>) {
    local.tally.received(bytes);
    if let Err(fault) = received {
        refuse(local, source, &fault);
    }
}

/// Declares the sender of a refused message dead, unless it may be valid.
///
/// The sender may have counted what was refused, so a wait for that would never end; and nothing else that it sends can
/// be trusted.
#[cold]
pub fn refuse(local: &Local, source: PlaceId, fault: &Refused) {
    if !fault.is_sound() {
        notice(format_args!("isles: {}: a message from {source} was refused: {fault}", local.here()));
        local.endpoint().declare_dead(source);
    }
}

/// As [`dispatch`]; the compiler inlines the most frequent message.
#[inline]
fn dispatch_small(local: &Local, handler: HandlerId, source: PlaceId, bytes: &[u8]) -> Result<(), Refused> {
    let mut reader = Reader::new(bytes);
    if handler != Handler::Spawn.id() {
        return dispatch(local, handler, source, &mut reader);
    }
    call::receive_spawn(local, source, &mut reader)
}

fn place_died(local: &Local, place: PlaceId, cause: &Death) {
    if let Death::Corrupt(place_of_fault) = cause {
        notice(format_args!("isles: {}: {place} counts as dead: {place_of_fault}", local.here()));
    }
    local.deaths.borrow_mut().push(place);
    local.note_death(place, cause);
    call::place_died(local, place);
    local.services().place_died(local, place);
    part::place_died(local, place);
    finish::place_died(local, place);
    if place == PlaceId(0) {
        // No place is left to say when the run ends.
        local.run.is_shut_down.set(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::Clock;
    use isles_transport::loopback::{Plan, World};
    use isles_transport::{Class, Endpoint};

    #[test]
    fn each_message_of_the_core_keeps_its_number() {
        let all = (0..=u16::MAX).filter_map(|id| Some((id, Handler::of(HandlerId(id))?)));
        let handlers: Vec<(u16, Handler)> = all.collect();
        assert!(handlers.iter().all(|(number, handler)| handler.id().0 == *number));
        let names: Vec<String> =
            handlers.iter().map(|(number, handler)| format!("{handler:?} {number}")).collect();
        let wire = ["Spawn 0", "Call 1", "Reply 2", "Finish 3", "Part 4", "Run 8", "Abandon 9"];
        assert_eq!(names, wire);
    }

    #[test]
    fn a_message_without_a_receiver_is_refused_and_its_sender_counts_as_dead() {
        let world = World::new(2, Plan::calm(0));
        let local = Local::new(Box::new(world.endpoint(PlaceId(0))), Clock::host(), |_, _| Box::new(()));
        let unknown = HandlerId(999);
        local.enter(|| {
            let refused = dispatch(&local, unknown, PlaceId(1), &mut Reader::new(&[])).unwrap_err();
            assert!(matches!(refused, Refused::UnknownHandler(999)));
            assert_eq!(refused.to_string(), "there is no handler 999");
        });
        let sent = world.endpoint(PlaceId(1)).send(PlaceId(0), Class::Data, unknown, 0, &mut |_| Some(0));
        assert_eq!(sent, Ok(()));
        while !local.is_dead(PlaceId(1)) {
            assert!(world.advance(), "the message has arrived, and its sender lives");
            local.enter(|| local.progress_messages());
        }
    }
}
