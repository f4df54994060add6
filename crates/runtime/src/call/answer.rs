//! Answers: they carry the value of an `at!` body back to its caller.

use super::pending::CallId;
use crate::capture::Ship;
use crate::error::{Error, ErrorKind, Result, panic};
use crate::finish::{Scope, ScopeKind};
use crate::limits::ERROR_BYTES_MAX;
use crate::local::Local;
use crate::message::{Handler, Refused};
use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use isles_protocol::PlaceId;
use isles_protocol::finish::Key;
use isles_transport::{BlockMemory, Class};
use std::rc::Rc;

/// Receiver of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    caller: PlaceId,
    /// `None` for a body without a waiting caller.
    slot: Option<CallId>,
}

/// Flag of an answer: it is a value, not an error.
const VALUE: u32 = 1;
/// Flag of an answer: the body started something under the caller's finish.
const COUNTED: u32 = 2;

impl ReplyTo {
    /// No receiver.
    pub(crate) const NONE: ReplyTo = ReplyTo { caller: PlaceId(0), slot: None };

    pub(crate) fn decode(caller: PlaceId, reader: &mut Reader<'_>) -> std::result::Result<Self, DecodeError> {
        Ok(ReplyTo { caller, slot: Some(CallId::decode(reader)?) })
    }

    /// Returns the caller's id of the call; `None` if nothing waits.
    pub(super) fn slot(self) -> Option<CallId> {
        self.slot
    }

    /// Answers with an error a call whose body never started.
    pub(crate) fn refuse(self, local: &Local, scope: Scope, error: Error) {
        drop_borrowed(local, scope);
        self.send_error(local, false, &error);
    }

    fn send_error(self, local: &Local, counted: bool, error: &Error) {
        let wire = error.to_wire(ERROR_BYTES_MAX);
        // A dead caller needs no answer; an error is never too long.
        let _ = self.send(local, counted, 0, wire.len(), |writer| {
            writer.put_bytes(&wire);
            Ok(())
        });
    }

    fn send(
        self,
        local: &Local,
        counted: bool,
        value: u32,
        guess: usize,
        encode: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
    ) -> Result<()> {
        let Some(slot) = self.slot else { return Ok(()) };
        let flags = value | if counted { COUNTED } else { 0 };
        let guess = HEAD_BYTES + guess;
        local.send_with_size_hint(self.caller, Class::Control, Handler::Reply.id(), guess, |writer| {
            slot.encode(writer);
            writer.put_u32(flags);
            writer.align(8);
            debug_assert_eq!(writer.written(), HEAD_BYTES);
            encode(writer)
        })?;
        Ok(())
    }
}

/// The obligation to answer one call; dropped without an answer, it reports that the body was cancelled.
pub(super) struct ReplyGuard {
    address: ReplyTo,
    /// `None` once the answer is sent.
    scope: Option<Scope>,
}

impl ReplyGuard {
    pub(crate) fn new(address: ReplyTo, scope: Scope) -> Self {
        ReplyGuard { address, scope: Some(scope) }
    }

    /// Returns the place that waits.
    pub(super) fn caller(&self) -> PlaceId {
        self.address.caller
    }

    /// Sends the answer.
    pub(crate) fn send<R: Ship>(mut self, result: Result<R>) {
        Local::with(|local| self.conclude(local, result));
    }

    fn conclude<R: Ship>(&mut self, local: &Local, result: Result<R>) {
        let Some(scope) = self.scope.take() else { return };
        let (key, counted) = drop_borrowed(local, scope);
        let failed = match &result {
            Ok(value) => {
                self.address.send(local, counted, VALUE, R::ROOM, |writer| value.encode(writer)).err()
            }
            Err(error) => Some(error.clone()),
        };
        if let Some(error) = failed {
            // If the caller is dead, this is not sent either, and nothing waits.
            self.address.send_error(local, counted, &error.at(local.here(), None));
        }
        if let Some(key) = key {
            local.finishes.end(local, key, None);
        }
        if let Ok(value) = result {
            panic::drop_caught(value);
        }
    }
}

impl Drop for ReplyGuard {
    fn drop(&mut self) {
        if self.scope.is_none() {
            return;
        }
        let cancelled = Error::new(ErrorKind::Cancelled, "the body was dropped before it ended");
        Local::try_with(|local| self.conclude::<Never>(local, Err(cancelled)));
    }
}

/// A value that cannot exist.
enum Never {}

impl Ship for Never {
    type Value = ();

    fn encode(&self, _to: &mut Writer<'_>) -> std::result::Result<(), EncodeError> {
        match *self {}
    }

    fn decode(_from: &mut Reader<'_>) -> std::result::Result<(), DecodeError> {
        Err(DecodeError::Trailing { left: 0 })
    }
}

/// Takes back the borrowed scope of a body that has ended: its key, if it visited the finish, and whether it is
/// counted.
fn drop_borrowed(local: &Local, scope: Scope) -> (Option<Key>, bool) {
    match scope.kind() {
        ScopeKind::Remote(index) => {
            let borrowed = local.calls.borrowed.borrow_mut().remove(index as usize);
            (borrowed.key, borrowed.counted)
        }
        ScopeKind::Counted(_) | ScopeKind::Detached => (None, false),
    }
}

/// Length of an answer before its value: the slot, the flags, and padding to a multiple of 8.
const HEAD_BYTES: usize = 16;

/// The value of a call, as bytes, until its caller takes it.
pub(super) enum Answer {
    /// Bytes that came in a queue.
    Bytes(Vec<u8>),
    /// A block, and the byte at which the value starts.
    Block(Rc<dyn BlockMemory>, usize),
}

/// Longest memory of an answer that is reused, in bytes; then the number of those that are kept.
const SPARE_BYTES_MAX: usize = 256;
const SPARE_MAX: usize = 64;

/// Memory of taken answers, so that a short answer needs no allocation.
#[derive(Default)]
pub(super) struct AnswerMemory(Vec<Vec<u8>>);

impl AnswerMemory {
    /// Reads the rest of a message as an answer.
    fn read(&mut self, reader: &mut Reader<'_>) -> Answer {
        if let Some(block) = reader.block() {
            return Answer::Block(Rc::clone(block), reader.position());
        }
        let mut bytes = self.0.pop().unwrap_or_default();
        bytes.extend_from_slice(reader.rest());
        Answer::Bytes(bytes)
    }

    /// Keeps the memory of a decoded answer for reuse.
    #[inline]
    fn give_back(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= SPARE_BYTES_MAX && self.0.len() < SPARE_MAX {
            bytes.clear();
            self.0.push(bytes);
        }
    }
}

impl Answer {
    /// Decodes the value, at the place that asked.
    pub(crate) fn decode<R: Ship>(self) -> Result<R::Value> {
        let whole = |mut reader: Reader<'_>| {
            let value = R::decode(&mut reader)?;
            reader.finish()?;
            Ok(value)
        };
        let decoded = match self {
            Answer::Bytes(bytes) => {
                let decoded = whole(Reader::after(HEAD_BYTES, &bytes));
                Local::try_with(|local| local.calls.answer_memory.borrow_mut().give_back(bytes));
                decoded
            }
            Answer::Block(block, start) => {
                let mut reader = Reader::from_block(&block);
                reader.take_bytes(start).and_then(|_| whole(reader))
            }
        };
        decoded.map_err(|fault: DecodeError| Error::undecodable("the answer", fault))
    }
}

/// Receives an answer.
pub(super) fn receive(
    local: &Local,
    source: PlaceId,
    reader: &mut Reader<'_>,
) -> std::result::Result<(), Refused> {
    let slot = CallId::decode(reader)?;
    let flags = reader.take_u32()?;
    reader.align(8)?;
    let answer = match flags & VALUE {
        VALUE => Ok(local.calls.answer_memory.borrow_mut().read(reader)),
        _ => Err(Error::from_wire(reader.rest())),
    };
    // An answer to a call that was not made here is a peer's fault, which only the log can record.
    let conclusion =
        local.calls.pending.borrow_mut().answer(slot, source, answer).ok_or(Refused::UnknownCall)?;
    conclusion.report(local, flags & COUNTED != 0);
    Ok(())
}
