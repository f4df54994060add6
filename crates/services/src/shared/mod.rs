//! Shared objects: values that tasks of all places read and write under guards.
//!
//! Here are the handle, and how objects are made. [`guard`] has what a program holds, [`acquire`] several guards at
//! once, [`state`] one object at one place, [`table`] all of them with their service, [`message`] what places send.
//! [`value`] has the values of objects, [`mapping`] arrays that grow, [`space`] indices that several of them share,
//! [`memory`] the memory of modelled chips, and [`policy`] the choice among its kinds. `docs/design/shared.md` has the
//! proof.

mod acquire;
mod guard;
mod mapping;
mod memory;
pub(crate) mod message;
mod policy;
mod space;
mod state;
pub(crate) mod table;
mod value;

pub use acquire::{AcquireAll, Composed, acquire_all};
pub use guard::{ReadFuture, ReadGuard, WriteFuture, WriteGuard};
pub use mapping::{CHUNK_BYTES, Mapping};
pub use memory::{IncoherentMemory, MemoryRange, ObjectMemory};
pub use space::{IndexRange, IndexSpace};
pub use table::set_incoherent_memory;
pub(crate) use table::{ObjectTable, receive};
pub use value::SharedValue;

use crate::table::service::Service;
use crate::team::Team;
pub use isles_protocol::shared::{Controller, MemoryKind};
use isles_runtime::service::{Members, PartRef, PlaceGroup, call, replicate, travels_by_share};
use isles_runtime::wire::DecodeError;
use isles_runtime::{Local, Place, Result};
use memory::LINE_BYTES;
use message::ObjectId;
use serde::{Deserialize, Serialize};
use state::ObjectState;
use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;
pub(crate) use table::incoherent_memory;
use table::{AnyObject, ApplyFault, GrowFuture, Line};
use value::ValueLines;

/// A value that tasks of all places read and write under guards: many readers, or one writer. The handle can be sent to
/// any place.
///
/// ```ignore
/// let total = Shared::new(0u64).await?;
/// everywhere!(*total.write().await? += 1).await?;
/// assert_eq!(*total.read().await?, place_count() as u64);
/// ```
///
/// A guard sends no message if its place had the last one. On a modelled chip the value lies in memory that no hardware
/// keeps coherent, and guards flush what may be stale ([`SharedOptions`]).
pub struct Shared<T: 'static> {
    // Dropped before `share`, as in `PlaceLocal`.
    value: Rc<ObjectPart<T>>,
    share: PartRef,
}

travels_by_share!(Shared, ObjectPart<T>);

/// Length of a counter of generations.
const COUNTER_BYTES: u64 = 8;

/// Means that keep guards apart which exclude each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Exclusion {
    /// The runtime: guards wait for each other.
    #[default]
    Guards,
    /// The program, which keeps conflicting guards apart itself. On modelled chips guards then wait for nothing, and
    /// only a conflict between guards of one place is an error; elsewhere this is the same as [`Exclusion::Guards`].
    Program,
}

/// Options of a shared object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SharedOptions {
    /// Way in which places learn that their copies are stale.
    pub controller: Controller,
    /// On modelled chips, how cores see the memory of the value.
    pub memory: MemoryKind,
    /// Means of keeping guards apart.
    pub exclusion: Exclusion,
    /// True if guards flush caches on modelled chips; otherwise the run reports the stale reads. For tests of a
    /// program.
    pub flushes: bool,
}

impl Default for SharedOptions {
    fn default() -> SharedOptions {
        SharedOptions {
            controller: Controller::default(),
            memory: MemoryKind::default(),
            exclusion: Exclusion::default(),
            flushes: true,
        }
    }
}

impl SharedOptions {
    /// Returns these options with another controller.
    pub fn controller(self, controller: Controller) -> SharedOptions {
        SharedOptions { controller, ..self }
    }

    /// Returns these options with another kind of memory.
    pub fn memory(self, memory: MemoryKind) -> SharedOptions {
        SharedOptions { memory, ..self }
    }

    /// Returns these options for a program that itself keeps guards apart.
    pub fn exclusive_by_program(self) -> SharedOptions {
        SharedOptions { exclusion: Exclusion::Program, ..self }
    }

    /// Returns these options without any flush.
    pub fn without_flushes(self) -> SharedOptions {
        SharedOptions { flushes: false, ..self }
    }
}

/// The part of an object at one place.
struct ObjectPart<T: 'static> {
    object: Rc<Object<T>>,
}

impl<T> Drop for ObjectPart<T> {
    fn drop(&mut self) {
        let state = &self.object.state;
        state.attachment.try_with(|local| ObjectTable::of(local).remove(state.id));
        state.abandon();
    }
}

/// An object at one place.
struct Object<T> {
    state: ObjectState,
    value: RefCell<T>,
    /// Lines of the value, if it lies in memory that no hardware keeps coherent.
    lines: RefCell<Option<ValueLines>>,
}

/// Description from which the parts of an object are made.
#[derive(Clone, Serialize, Deserialize)]
struct Seed {
    id: ObjectId,
    team: Team,
    options: SharedOptions,
    /// The value, unless it lies in shared memory.
    #[serde(with = "isles_runtime::plain")]
    value: Vec<u8>,
    /// On modelled chips: positions of the value and of the counter of generations.
    ranges: Option<[(u64, u32); 2]>,
}

impl<T: SharedValue> Shared<T> {
    /// Shares `value` with all places; returns once all of them know it.
    ///
    /// # Errors
    /// A place is dead, or the value cannot be carried.
    #[track_caller]
    pub fn new(value: T) -> impl Future<Output = Result<Shared<T>>> {
        Shared::with(value, SharedOptions::default())
    }

    /// As [`Shared::new`], with `options`.
    ///
    /// # Errors
    /// As [`Shared::new`].
    #[track_caller]
    pub fn with(value: T, options: SharedOptions) -> impl Future<Output = Result<Shared<T>>> {
        let members = Members::All(Local::with(Local::places));
        Shared::make(Location::caller(), Ok(members), value, options)
    }

    /// As [`Shared::with`], for the members of `team`; one of them makes it.
    ///
    /// # Errors
    /// As [`Shared::new`]; [`Misused`](isles_runtime::ErrorKind::Misused): this place is no member, or the team belongs
    /// to another run.
    #[track_caller]
    pub fn with_on(team: &Team, value: T, options: SharedOptions) -> impl Future<Output = Result<Shared<T>>> {
        Shared::make(Location::caller(), team.members(), value, options)
    }

    fn make(
        line: Line,
        members: Result<Members>,
        mut value: T,
        options: SharedOptions,
    ) -> impl Future<Output = Result<Shared<T>>> {
        call::called_at(line, async move {
            let members = members?;
            let id = Local::with(|local| ObjectTable::of(local).next_id(local.here()));
            // Before the value lies in memory, so that one that cannot be encoded is refused on every machine.
            let changes = value.changes(None)?;
            let placed = Local::with(|local| place_in_memory(local, &mut value, options));
            let ranges = placed.as_ref().map(|(lines, counter)| {
                [lines.0.head(), *counter].map(|range| (range.start, range.controller))
            });
            let team = Team::of_members(members.clone());
            let seed = Seed { id, team, options, value: changes, ranges };
            let part = Rc::new(ObjectPart::new(&seed, value, placed.map(|(lines, _)| lines)));
            let share =
                replicate(line, members, &seed, Rc::clone(&part), |seed| ObjectPart::copy(&seed)).await?;
            Ok(Shared { value: part, share })
        })
    }
}

/// Puts a value and a counter of generations into the machine's memory, if the machine has such memory.
fn place_in_memory<T: SharedValue>(
    local: &Local,
    value: &mut T,
    options: SharedOptions,
) -> Option<(ValueLines, MemoryRange)> {
    let memory = object_memory(local, options)?;
    let counter = memory.memory.take(MemoryKind::Uncached, COUNTER_BYTES)?;
    // All places read all counters, so counters go round the controllers.
    let lines = counter.start / LINE_BYTES;
    let controller = (lines % u64::from(memory.memory.controllers().max(1))) as u32;
    Some((value.place(&memory)?, MemoryRange { controller, ..counter }))
}

fn object_memory(local: &Local, options: SharedOptions) -> Option<ObjectMemory> {
    let memory = Rc::clone(incoherent_memory(local)?);
    Some(ObjectMemory { memory, kind: options.memory, flushes: options.flushes })
}

impl<T: SharedValue> ObjectPart<T> {
    /// Makes the part of this place, with the value.
    fn new(seed: &Seed, value: T, lines: Option<ValueLines>) -> ObjectPart<T> {
        Local::with(|local| {
            let members = seed.team.members().unwrap_or(Members::All(local.places()));
            let counter = seed.ranges.map(|[_, (start, controller)]| MemoryRange {
                start,
                bytes: COUNTER_BYTES,
                kind: MemoryKind::Uncached,
                controller,
            });
            let memory = lines.as_ref().and_then(|_| object_memory(local, seed.options));
            let state = ObjectState::new(local, seed.id, members, seed.options, memory, counter);
            let object = Rc::new(Object { state, value: RefCell::new(value), lines: RefCell::new(lines) });
            let known: Rc<dyn AnyObject> = Rc::<Object<T>>::clone(&object);
            ObjectTable::of(local).insert(&known);
            ObjectPart { object }
        })
    }

    /// Makes the part of a place that did not make the object.
    fn copy(seed: &Seed) -> ObjectPart<T> {
        let value = T::from_changes(&seed.value);
        // Panics only in the task that makes the part, which ends with the message.
        let mut value = value.unwrap_or_else(|fault| panic!("a shared value cannot be read: {fault}"));
        let lines = Local::with(|local| {
            let [(start, controller), _] = seed.ranges?;
            let memory = object_memory(local, seed.options)?;
            Some(value.find(&memory, start, controller))
        });
        ObjectPart::new(seed, value, lines)
    }
}

impl<T: SharedValue> AnyObject for Object<T> {
    fn state(&self) -> &ObjectState {
        &self.state
    }

    fn changes(&self, since: u64) -> Result<Vec<u8>> {
        if self.state.memory.is_some() {
            return Ok(Vec::new());
        }
        self.value.borrow().changes(Some(since))
    }

    fn apply(&self, changes: &[u8]) -> Result<(), ApplyFault> {
        if changes.is_empty() {
            return Ok(());
        }
        let in_use = |_| ApplyFault::Malformed(DecodeError::Refused("it is in use here".into()));
        let applied = self.value.try_borrow_mut().map_err(in_use)?.apply(changes);
        applied.map_err(if T::IS_READ_BY_PROGRAM { ApplyFault::Unreadable } else { ApplyFault::Malformed })
    }

    fn grow(self: Rc<Self>, len: usize, line: Line) -> GrowFuture {
        Box::pin(async move {
            match self.write(line).await {
                Ok(mut guard) => {
                    guard.grow_to(len);
                    guard.release().await;
                    Ok(())
                }
                // No handle of it is left.
                Err(_) if self.state.is_abandoned() => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    fn write_back(&self) {
        if let (Some(memory), Some(lines)) = (&self.state.memory, &*self.lines.borrow())
            && self.state.is_unwritten.replace(false)
        {
            self.value.borrow_mut().write_back(memory, lines);
        }
    }
}

impl<T: SharedValue> Shared<T> {
    #[inline]
    fn object(&self) -> &Object<T> {
        &self.value.object
    }

    /// Returns the id of the object in the whole run.
    fn id(&self) -> ObjectId {
        self.object().state.id
    }

    /// Returns the place that made the object, which grants its guards.
    pub fn home(&self) -> Place {
        Place::of(self.object().state.id.home)
    }

    /// Returns `true` if the value lies in memory of a modelled chip that no hardware keeps coherent.
    pub fn is_incoherent(&self) -> bool {
        self.object().state.memory.is_some()
    }

    /// Returns the options of the object.
    pub fn options(&self) -> SharedOptions {
        self.object().state.options
    }
}
