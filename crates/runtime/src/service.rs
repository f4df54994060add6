//! The interface between the core of a place and the services above it.
//!
//! A service lets tasks of several places work together: it has messages of its own, state at each place, and waits
//! that end when a place dies. The core knows none of them; it reports events to the one [`ServiceTable`] of a place,
//! and services find their state in it by its type. Invariant: nothing of the place is borrowed while the table is
//! called.
//!
//! The interface of the core for services is re-exported here, besides what programs use:
//!
//! - messages: [`Local::send`] with an [`Encode`] writes one, [`ServiceTable::receive`] gets it and may
//!   [refuse](Refused) it; [`OutputQueue`] keeps the outputs of a state machine in order;
//! - handles: a [`PartRef`] is a counted share of a value that each place has, made by [`replicate`]; [`Attachment`]
//!   refuses a handle of another run;
//! - operations: [`coop`] lets a task yield, [`span`] shows what it waits for, [`called_at`](call::called_at) adds the
//!   program's line to an error.

pub use crate::attachment::{Attachment, FOREIGN};
pub use crate::capture::form::OwnedCapture;
pub use crate::capture::roundtrip_check;
pub use crate::error::panic::drop_caught;
pub use crate::finish::output_queue::OutputQueue;
pub use crate::finish::{Scope, ScopeKind};
pub use crate::handle::{NO_VALUE, travels_by_share};
pub use crate::join::try_join;
pub use crate::local::{Encode, Sent, Unsent};
pub use crate::members::{Members, PlaceGroup};
pub use crate::message::{BodyHeader, Handler, Refused, refuse};
pub use crate::part::slots::NumberHasherBuilder;
pub use crate::part::{InternalSite, PartId, PartRef, SerdeCapture, SerdeReturn, Value, fold, replicate};
pub use crate::time::earlier;

/// Operations that yield.
pub mod coop {
    pub use crate::task::coop::{
        Attempt, CALL, FastPath, LOOK, OPERATION, PIECE, cooperate, must_yield, poll_proceed,
        poll_until_sent, slow_path, spend_budget, spend_budget_of, spin_until, wait_until_sent,
    };
}

/// Spans that observers see.
pub mod span {
    pub use crate::call::span::*;
}

/// Bodies that services start at other places.
pub mod call {
    pub use crate::call::{CallFuture, ask, at_there, called_at, spawn, spawn_there, start_spawned};
}

use crate::error::{Error, Result};
use crate::local::Local;
use crate::wire::Reader;
use isles_protocol::PlaceId;
use isles_protocol::finish::Key;
use isles_telemetry::{CounterId, CounterValues};
use isles_transport::HandlerId;
use std::any::{Any, TypeId};
use std::cell::Ref;
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::Duration;

/// A place's question, when nothing happens any more, what this place waits for.
pub struct Inquiry<'a> {
    /// The place that asks; it may be this one.
    pub asker: PlaceId,
    /// Queries about what the services of `asker` wait for from this place, see [`ServiceTable::query`].
    pub query: &'a [u8],
}

/// A body that a [`ServiceTable`] sends in place of the core.
pub struct RefusedBody<'a> {
    /// The place that it goes to.
    pub to: PlaceId,
    /// Its entry and its finish.
    pub head: BodyHeader,
    /// Writes its captures.
    pub encode: &'a Encode<'a>,
}

/// The services of one place.
///
/// No method has a default: a table that has nothing to do for one of them says so.
pub trait ServiceTable {
    /// Returns the states of the services, in the order of their rows; called once.
    fn states(&self) -> Vec<&dyn Any>;

    /// Receives the message `id` of `source`, which is none of the core's.
    ///
    /// # Errors
    /// The message is refused: by its receiver, or because it has none. Its sender is then declared dead.
    fn receive(
        &self,
        local: &Local,
        id: HandlerId,
        source: PlaceId,
        reader: &mut Reader<'_>,
    ) -> std::result::Result<(), Refused>;

    /// Ends all waits for `place`, which has died; everything that it sent has arrived.
    fn place_died(&self, local: &Local, place: PlaceId);

    /// Returns the time by the place's clock at which [`run_due`](Self::run_due) next has something to do, if nothing
    /// happens before.
    fn next_due(&self) -> Option<Duration>;

    /// Does what is due by now; returns whether there was anything. Called after each step of the worker.
    fn run_due(&self, local: &Local) -> bool;

    /// Does work that was left until the place has nothing else to do; returns whether there was any.
    fn run_idle(&self, local: &Local) -> bool;

    /// Takes in values that have arrived without a message; returns their number. Called only while
    /// [`Local::set_watching`] asks for it.
    fn poll_values(&self, local: &Local) -> usize;

    /// Returns `true` if [`poll_values`](Self::poll_values) has something to take in.
    fn has_arrivals(&self) -> bool;

    /// Handles the end of the finish `key` at this place.
    ///
    /// # Errors
    /// A service still holds something that had to be given back before; the finish ends with the error.
    fn finish_ended(&self, key: Key) -> Result<()>;

    /// Adds the counters that services keep themselves.
    fn count(&self, counters: &mut CounterValues);

    /// Returns the waits of this place in answer to `inquiry`, one line each.
    fn explain(&self, inquiry: &Inquiry<'_>) -> Vec<String>;

    /// Returns what the tables of this place and of `place` compare, in the form that an [`Inquiry`] carries.
    fn query(&self, place: PlaceId) -> Vec<u8>;

    /// Reports to other places what tasks here wait for, so that waits which cannot end are found; returns the number
    /// of reports.
    fn compare_waits(&self, local: &Local) -> usize;

    /// Returns the number of reports of other places' waits.
    fn wait_reports(&self) -> usize;

    /// Keeps `fault`, of another place, that no call of the program ended with, for the end of the run.
    fn keep_fault(&self, fault: Error);

    /// Takes the fault that no call of the program ended with.
    fn take_fault(&self) -> Option<Error>;

    /// Sends the body of a `spawn_at!` whose captures could not be written with `error`, if the only reason is that
    /// they may not travel alone.
    ///
    /// # Errors
    /// `error`, if the reason is another; the errors of the send.
    fn send_refused(&self, local: &Local, body: &RefusedBody<'_>, error: Error) -> Result<Sent>;

    /// Writes the captures of a `spawn_at!` to this place, which could not be written with `error`, and has `decode`
    /// read them.
    ///
    /// # Errors
    /// As for [`send_refused`](Self::send_refused).
    fn decode_refused(
        &self,
        local: &Local,
        encode: &Encode<'_>,
        error: Error,
        decode: &mut dyn FnMut(&[u8]),
    ) -> Result<()>;

    /// Returns the error of an `at!` whose captures could not be written with `error`.
    fn refused_call(&self, local: &Local, error: Error) -> Error;
}

/// The table of a place, and the addresses of the states of its services.
pub(crate) struct Services {
    table: Rc<dyn ServiceTable>,
    /// The type of each state, and its address in `table`, which lives as long and never changes.
    states: Box<[(TypeId, NonNull<()>)]>,
}

impl Services {
    pub(crate) fn new(table: Box<dyn ServiceTable>) -> Services {
        let table: Rc<dyn ServiceTable> = Rc::from(table);
        let states = table.states().into_iter().map(|state| (state.type_id(), NonNull::from(state).cast()));
        Services { states: states.collect(), table }
    }
}

impl Local {
    /// Returns the services of this place.
    #[inline]
    pub(crate) fn services(&self) -> &dyn ServiceTable {
        &*self.services.table
    }

    /// Returns the state of the service in `row` of the table, from 0.
    ///
    /// # Panics
    /// If the row belongs to another service.
    #[inline]
    pub fn service<T: 'static>(&self, row: usize) -> &T {
        let (type_id, state) = self.services.states[row];
        assert!(type_id == TypeId::of::<T>(), "the row of the table is of another service");
        // NEED: a cast without a virtual call; services look for their state in each operation.
        // SOUND: the pointer is to a state of type `T` in the table, which is kept as long as `self`, and not changed.
        unsafe { state.cast::<T>().as_ref() }
    }

    /// Adds `by` to a counter of this place.
    #[inline]
    pub fn add_count(&self, counter: CounterId, by: u64) {
        self.tally.add(counter, by);
    }

    /// Returns the places that are known here to be dead.
    pub fn deaths(&self) -> Ref<'_, Vec<PlaceId>> {
        self.deaths.borrow()
    }

    /// Returns `true` if places share processors, so that a waiting place yields at once.
    #[inline]
    pub fn shares_processors(&self) -> bool {
        self.shares_processors
    }

    /// Returns `true` if the machine can send one message to several places at once.
    #[inline]
    pub fn offers_multicast(&self) -> bool {
        self.offers_multicast
    }

    /// Returns the number of tasks of the finish `key` at this place.
    pub fn live_tasks(&self, key: Key) -> u64 {
        self.finishes.live(key)
    }

    /// Returns the value of the part `id` at this place, if it has one.
    pub fn part_value(&self, id: PartId) -> Option<Value> {
        self.parts.borrow().value(id)
    }

    /// Makes `value` the value of the part `id` at this place; `members` have such a value.
    pub fn place_part(&self, id: PartId, value: Value, members: Members) {
        self.parts.borrow_mut().place(id, value, members);
    }

    /// Undoes the counting of handles while captures were written that are not sent.
    pub fn roll_back_handles(&self) {
        self.parts.borrow_mut().roll_back_sent();
    }

    /// Marks the message that is being written as one that may not travel alone; its `Serialize` then fails.
    pub fn refuse_alone(&self) {
        self.has_refused.set(true);
    }

    /// Returns `true` if the message written last was refused by [`Local::refuse_alone`].
    pub fn was_refused_alone(&self) -> bool {
        self.has_refused.get()
    }

    /// Sets whether [`ServiceTable::poll_values`] is called whenever the place looks for messages.
    pub fn set_watching(&self, is_watching: bool) {
        self.is_watching.set(is_watching);
    }
}

/// No services: a place with nothing but its core.
impl ServiceTable for () {
    fn states(&self) -> Vec<&dyn Any> {
        Vec::new()
    }

    fn receive(
        &self,
        _local: &Local,
        id: HandlerId,
        _source: PlaceId,
        _reader: &mut Reader<'_>,
    ) -> std::result::Result<(), Refused> {
        Err(Refused::UnknownHandler(id.0))
    }

    fn place_died(&self, _local: &Local, _place: PlaceId) {}

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn run_due(&self, _local: &Local) -> bool {
        false
    }

    fn run_idle(&self, _local: &Local) -> bool {
        false
    }

    fn poll_values(&self, _local: &Local) -> usize {
        0
    }

    fn has_arrivals(&self) -> bool {
        false
    }

    fn finish_ended(&self, _key: Key) -> Result<()> {
        Ok(())
    }

    fn count(&self, _counters: &mut CounterValues) {}

    fn explain(&self, _inquiry: &Inquiry<'_>) -> Vec<String> {
        Vec::new()
    }

    fn query(&self, _place: PlaceId) -> Vec<u8> {
        Vec::new()
    }

    fn compare_waits(&self, _local: &Local) -> usize {
        0
    }

    fn wait_reports(&self) -> usize {
        0
    }

    fn keep_fault(&self, _fault: Error) {}

    fn take_fault(&self) -> Option<Error> {
        None
    }

    fn send_refused(&self, _local: &Local, _body: &RefusedBody<'_>, error: Error) -> Result<Sent> {
        Err(error)
    }

    fn decode_refused(
        &self,
        _local: &Local,
        _encode: &Encode<'_>,
        error: Error,
        _land: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        Err(error)
    }

    fn refused_call(&self, _local: &Local, error: Error) -> Error {
        error
    }
}
