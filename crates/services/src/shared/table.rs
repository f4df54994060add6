//! The objects of a place, the guards that its tasks hold, and the service.

use super::memory::IncoherentMemory;
use super::message::{ObjectId, ObjectMessage};
use super::state::ObjectState;
use crate::table::service::Service;
use isles_protocol::PlaceId;
use isles_protocol::finish::Key;
use isles_protocol::ordered::OrderedMap;
use isles_protocol::shared::GuardMode;
use isles_runtime::service::{Inquiry, Refused, ScopeKind};
use isles_runtime::wire::{DecodeError, Reader};
use isles_runtime::{Error, ErrorKind, Local, Result};
use isles_telemetry::CounterId;
use std::cell::{Cell, OnceCell, RefCell};
use std::panic::Location;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// A line of the program.
pub(super) type Line = &'static Location<'static>;

/// An object with its value at this place, whatever its type.
pub(super) trait AnyObject {
    fn state(&self) -> &ObjectState;

    /// Returns the changes that a copy of this generation lacks.
    fn changes(&self, since: u64) -> Result<Vec<u8>>;

    /// Applies the changes of another place.
    fn apply(&self, changes: &[u8]) -> Result<(), ApplyFault>;

    /// Writes back what has been stored, before others may see it.
    fn write_back(&self);

    /// Grows a mapping to at least `len` elements, under a guard to write; `line` asks for it.
    fn grow(self: Rc<Self>, len: usize, line: Line) -> GrowFuture;
}

/// Reason why the changes of another place were not applied.
pub(super) enum ApplyFault {
    /// The program cannot read what it has written: its `Deserialize` failed or panicked.
    Unreadable(DecodeError),
    /// No valid place sends such changes.
    Malformed(DecodeError),
}

/// The wait of [`AnyObject::grow`].
pub(super) type GrowFuture = Pin<Box<dyn Future<Output = Result<()>>>>;

/// A guard that a task holds.
struct Held {
    number: u64,
    /// The task that took it. After its end no other task has the same number while a waker is kept.
    task: usize,
    /// The finish in which it was taken; `None` once that has ended.
    finish: Option<Key>,
    object: ObjectId,
    mode: GuardMode,
    line: Line,
}

/// Precedence of a task that asks for a guard.
pub(super) enum Precedence {
    /// It waits its turn.
    InTurn,
    /// It gets the guard at once, because it reads already.
    AtOnce,
}

/// The objects of one place.
#[derive(Default)]
pub(crate) struct ObjectTable {
    objects: RefCell<OrderedMap<ObjectId, Weak<dyn AnyObject>>>,
    last_serial: Cell<u64>,
    held: RefCell<Vec<Held>>,
    last_held: Cell<u64>,
    /// Memory that all places share and no hardware keeps coherent, if the machine models it.
    incoherent_memory: OnceCell<Rc<dyn IncoherentMemory>>,
}

impl ObjectTable {
    /// Returns an id for a new object.
    pub(super) fn next_id(&self, here: PlaceId) -> ObjectId {
        self.last_serial.set(self.last_serial.get() + 1);
        ObjectId { home: here, serial: self.last_serial.get() }
    }

    pub(super) fn insert(&self, object: &Rc<dyn AnyObject>) {
        self.objects.borrow_mut().insert(object.state().id, Rc::downgrade(object));
    }

    pub(super) fn remove(&self, id: ObjectId) {
        self.objects.borrow_mut().remove(id);
    }

    pub(super) fn find(&self, id: ObjectId) -> Option<Rc<dyn AnyObject>> {
        self.objects.borrow().get(id)?.upgrade()
    }

    fn all(&self) -> Vec<Rc<dyn AnyObject>> {
        self.objects.borrow().values().filter_map(Weak::upgrade).collect()
    }

    /// Checks that a task may ask for a guard.
    ///
    /// # Errors
    /// The task could wait for itself, or in a circle.
    #[inline]
    pub(super) fn check_order(&self, task: usize, object: ObjectId, mode: GuardMode) -> Result<Precedence> {
        let held = self.held.borrow();
        if held.is_empty() {
            return Ok(Precedence::InTurn);
        }
        let mut order = Precedence::InTurn;
        for other in held.iter().filter(|held| held.task == task) {
            if other.object == object && (mode, other.mode) != (GuardMode::Read, GuardMode::Read) {
                let line = other.line;
                let text = format!(
                    "the task already has a guard of this shared object, taken at {line}; it would wait \
                     for itself"
                );
                return Err(Error::new(ErrorKind::Misused, text));
            }
            if other.object == object {
                order = Precedence::AtOnce;
            } else if other.object > object {
                let line = other.line;
                let text = format!(
                    "a guard of a shared object that precedes the one whose guard was taken at {line}, \
                     so tasks could deadlock; take both with `acquire_all`"
                );
                return Err(Error::new(ErrorKind::Misused, text));
            }
        }
        Ok(order)
    }

    /// Records a guard; returns its number.
    #[inline]
    pub(super) fn add_guard(
        &self,
        local: &Local,
        task: usize,
        object: ObjectId,
        mode: GuardMode,
        line: Line,
    ) -> u64 {
        let number = self.last_held.get() + 1;
        self.last_held.set(number);
        local.add_count(
            match mode {
                GuardMode::Read => CounterId::ObjectReads,
                GuardMode::Write => CounterId::ObjectWrites,
            },
            1,
        );
        let finish = match local.scope().kind() {
            ScopeKind::Counted(key) => Some(key),
            ScopeKind::Remote(_) | ScopeKind::Detached => None,
        };
        self.held.borrow_mut().push(Held { number, task, finish, object, mode, line });
        number
    }

    /// Removes a guard.
    #[inline]
    pub(super) fn remove_guard(&self, number: u64) {
        let mut held = self.held.borrow_mut();
        if held.last().is_some_and(|last| last.number == number) {
            held.pop();
        } else if let Some(index) = held.iter().rposition(|held| held.number == number) {
            held.swap_remove(index);
        }
    }

    /// Handles the end of a finish at this place.
    ///
    /// # Errors
    /// A guard that was taken in the finish is still held.
    #[inline]
    pub(crate) fn finish_ended(&self, finish: Key) -> Result<()> {
        let mut held = self.held.borrow_mut();
        if held.is_empty() {
            return Ok(());
        }
        let mut left = held.iter_mut().filter(|held| held.finish == Some(finish));
        let Some(first) = left.next() else { return Ok(()) };
        first.finish = None;
        let line = first.line;
        left.for_each(|held| held.finish = None);
        let text = format!("a guard of a shared object, taken at {line}, outlived its finish");
        Err(Error::new(ErrorKind::Misused, text))
    }
}

/// Sets the memory that the machine of `local` models and no hardware keeps coherent. Call once.
pub fn set_incoherent_memory(local: &Local, memory: Rc<dyn IncoherentMemory>) {
    assert!(ObjectTable::of(local).incoherent_memory.set(memory).is_ok(), "the memory is known already");
}

/// Returns the memory that all places share and no hardware keeps coherent, if the machine of `local` models it.
pub(crate) fn incoherent_memory(local: &Local) -> Option<&Rc<dyn IncoherentMemory>> {
    ObjectTable::of(local).incoherent_memory.get()
}

impl Service for ObjectTable {
    const ROW: usize = 7;

    fn new(_here: PlaceId, _places: u32) -> Self {
        ObjectTable::default()
    }

    fn place_died(&self, local: &Local, place: PlaceId) {
        for object in self.all() {
            object.state().place_died(local, &*object, place);
        }
    }

    fn explain(&self, _inquiry: &Inquiry<'_>) -> Vec<String> {
        self.all().iter().filter_map(|object| object.state().explain()).collect()
    }

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn run_due(&self, _local: &Local) -> bool {
        false
    }
}

/// Receives a message about an object.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let (id, message): (ObjectId, ObjectMessage) = reader.take_serde()?;
    // An object that is gone has no handles left.
    let Some(object) = ObjectTable::of(local).find(id) else { return Ok(()) };
    object.state().receive(local, &*object, source, message, reader.rest())
}
