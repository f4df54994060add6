//! A counter shared by all places.

use crate::call;
use crate::call::CallFuture;
use crate::capture::form::OwnedCapture;
use crate::capture::{Bind, Handle, Ship};
use crate::error::{Error, Result};
use crate::local::Local;
use crate::part::{InternalSite, PartRef, SerdeCapture};
use crate::place::Place;
use crate::task::coop::{OPERATION, cooperate};
use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use isles_protocol::PlaceId;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that lives at the place that made it, and that all places can use.
///
/// If places share memory, an operation is one atomic instruction; otherwise it is one round trip to the home.
///
/// # Errors
/// Of every operation: [`DeadPlace`](crate::ErrorKind::DeadPlace): the home is dead;
/// [`Misused`](crate::ErrorKind::Misused): the handle is of another run.
#[derive(Clone, Serialize, Deserialize)]
pub struct Counter {
    share: PartRef,
    /// The shared word that holds the number; `None` if memory is not shared, or no word was free.
    word: Option<u32>,
}

impl Handle for Counter {}

/// The number at its home.
struct CounterCell {
    /// Used if there is no shared word.
    number: AtomicU64,
    word: Option<u32>,
}

impl CounterCell {
    /// Applies the operation of a place that shares no memory with this one: to the word, if others have it mapped.
    fn apply(&self, operation: Operation) -> Option<u64> {
        Local::with(|local| {
            let shared = self.word.and_then(|word| local.shared_word(local.here(), word));
            operation.apply(shared.unwrap_or(&self.number))
        })
    }
}

impl Drop for CounterCell {
    fn drop(&mut self) {
        if let Some(word) = self.word {
            Local::try_with(|local| local.words.borrow_mut().give_back(word));
        }
    }
}

/// Integers that a counter returns: all of Rust's of up to 64 bits, so that a bare literal is one, too.
pub trait CounterNumber: Copy + sealed::Sealed {
    /// Returns the number in the counter's type; 0 for a negative one, as no count is below 0.
    fn to_count(self) -> u64;
    /// Returns the count in this type, which has room for it.
    fn of_count(count: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! counter_numbers {
    ($($number:ty),*) => {$(
        impl sealed::Sealed for $number {}
        impl CounterNumber for $number {
            fn to_count(self) -> u64 {
                u64::try_from(self).unwrap_or(0)
            }
            fn of_count(count: u64) -> Self {
                count as $number
            }
        }
    )*};
}
counter_numbers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

/// Operation on a counter.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Operation {
    Add(u64),
    /// Takes up to the second number of counts below the first, or those that are left.
    TakeBelow(u64, u64),
    Set(u64),
}

impl Operation {
    /// Applies the operation; returns the previous number if it was applied.
    fn apply(self, number: &AtomicU64) -> Option<u64> {
        match self {
            // PAIR counter: publish, observe
            Operation::Add(count) => Some(number.fetch_add(count, Ordering::AcqRel)),
            // PAIR counter: publish, observe
            Operation::Set(count) => Some(number.swap(count, Ordering::AcqRel)),
            Operation::TakeBelow(limit, most) => {
                let next = |before: u64| (before < limit).then(|| before.saturating_add(most).min(limit));
                // PAIR counter: publish, observe
                number.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()
            }
        }
    }
}

impl Default for Counter {
    fn default() -> Self {
        Counter::new()
    }
}

impl Counter {
    /// Makes a counter at zero whose home is here.
    pub fn new() -> Self {
        let word = Local::with(|local| {
            let word = local.words.borrow_mut().take(local.endpoint().shared_memory()?.words())?;
            // A reused word holds an old number.
            local.shared_word(local.here(), word)?.store(0, Ordering::Release); // PAIR counter: publish
            Some(word)
        });
        let cell = CounterCell { number: AtomicU64::new(0), word };
        Counter { share: PartRef::make(Rc::new(cell), None), word }
    }

    /// Returns the place of the number.
    pub fn home(&self) -> Place {
        Place::of(self.share.id().home)
    }

    /// Returns `true` if this place counts without a message: it is the home, or shares memory with it.
    pub fn is_near(&self) -> bool {
        let home = self.share.id().home;
        let is_near = self.share.attachment().with(|local| match self.word {
            Some(word) => local.shared_word(home, word).is_some(),
            None => local.here() == home,
        });
        is_near.unwrap_or(false)
    }

    /// Takes the next number below `limit`, each number once over all places; `None` when they are used up.
    ///
    /// # Errors
    /// As [`Counter`] says.
    #[track_caller]
    pub fn take_below<N: CounterNumber>(&self, limit: N) -> impl Future<Output = Result<Option<N>>> {
        let done = self.operate(Operation::TakeBelow(limit.to_count(), 1));
        async { Ok(done.await?.map(N::of_count)) }
    }

    /// Takes the next `most` numbers below `limit`, or those that are left, each number once over all places; empty
    /// when they are used up. If a message is needed, sends it before it returns, so the caller can do something else
    /// until the answer arrives.
    ///
    /// # Errors
    /// As [`Counter`] says.
    #[track_caller]
    pub fn ask_below<N: CounterNumber>(
        &self,
        limit: N,
        most: u32,
    ) -> impl Future<Output = Result<Range<N>>> + use<N> {
        let (below, most) = (limit.to_count(), u64::from(most));
        let operation = Operation::TakeBelow(below, most);
        let begun = match self.done_here(operation) {
            Some(result) => Err(result),
            None => Ok(self.ask(operation)),
        };
        call::called_at(Location::caller(), async move {
            let taken = match begun {
                Err(result) => result,
                Ok(asked) => asked.answer::<PreviousValue>().await,
            };
            let taken = taken?.map_or(below..below, |first| first..first.saturating_add(most).min(below));
            Ok(N::of_count(taken.start)..N::of_count(taken.end))
        })
    }

    /// Adds `count`; returns the previous number. Wraps around at 2⁶⁴.
    ///
    /// # Errors
    /// As [`Counter`] says.
    #[track_caller]
    pub fn add(&self, count: u64) -> impl Future<Output = Result<u64>> {
        let done = self.operate(Operation::Add(count));
        async { Ok(done.await?.unwrap_or_default()) }
    }

    /// Returns the number.
    ///
    /// # Errors
    /// As [`Counter`] says.
    #[track_caller]
    pub fn get(&self) -> impl Future<Output = Result<u64>> {
        self.add(0)
    }

    /// Sets the number; returns the previous one.
    ///
    /// # Errors
    /// As [`Counter`] says.
    #[track_caller]
    pub fn set(&self, count: u64) -> impl Future<Output = Result<u64>> {
        let done = self.operate(Operation::Set(count));
        async { Ok(done.await?.unwrap_or_default()) }
    }

    #[track_caller]
    fn operate(&self, operation: Operation) -> impl Future<Output = Result<Option<u64>>> {
        call::called_at(Location::caller(), cooperate(OPERATION, self.operate_once(operation)))
    }

    async fn operate_once(&self, operation: Operation) -> Result<Option<u64>> {
        match self.done_here(operation) {
            Some(result) => result,
            None => self.ask(operation).answer::<PreviousValue>().await,
        }
    }

    /// Applies the operation if it needs no message.
    fn done_here(&self, operation: Operation) -> Option<Result<Option<u64>>> {
        match self.share.attachment().with(|local| local.is_dead(self.share.id().home)) {
            Err(foreign) => Some(Err(foreign)),
            Ok(true) => Some(Err(Error::dead(self.share.id().home))),
            Ok(false) => self.operate_here(operation).map(Ok),
        }
    }

    /// Sends the operation to the home before it returns.
    fn ask(&self, operation: Operation) -> CallFuture {
        let wanted = (self.share.clone(), operation);
        let captures = (SerdeCapture(&wanted), ());
        let body = |mut decoded: (OwnedCapture<(PartRef, Operation)>, ())| async move {
            let ((share, operation), ()) = decoded.bind();
            let cell = share.value::<CounterCell>();
            Ok(PreviousValue(cell.and_then(|cell| cell.apply(operation))))
        };
        call::ask(InternalSite, self.home(), captures, body)
    }

    /// Applies the operation from here, if that is possible.
    fn operate_here(&self, operation: Operation) -> Option<Option<u64>> {
        let home = self.share.id().home;
        Local::with(|local| match self.word {
            Some(word) => local.shared_word(home, word).map(|number| operation.apply(number)),
            None => self.share.value::<CounterCell>().map(|cell| cell.apply(operation)),
        })
    }
}

/// The previous number, as a returned value.
struct PreviousValue(Option<u64>);

impl Ship for PreviousValue {
    type Value = Option<u64>;

    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_value(&self.0)
    }

    fn decode(from: &mut Reader<'_>) -> Result<Option<u64>, DecodeError> {
        from.take_value()
    }
}

impl Local {
    /// Returns a shared word of `place`, if this place shares memory with it and it lives.
    fn shared_word(&self, place: PlaceId, word: u32) -> Option<&AtomicU64> {
        self.endpoint().shared_memory()?.word(place, word)
    }
}
