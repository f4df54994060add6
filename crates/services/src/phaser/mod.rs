//! Phasers: barriers that tasks of several places join and leave (X10's clocks).
//!
//! The protocol is `isles_protocol::phaser`, a pure machine. [`table`] carries its messages and wakes waiting tasks,
//! [`travel`] sends registrations along with tasks, and this file is the handle. Invariant: one handle is one
//! registration, so dropping it deregisters, and nothing can be done with a phaser after leaving it.

pub(crate) mod table;
pub(crate) mod travel;

pub(crate) use table::{PhaserTable, receive};
pub(crate) use travel::{decode_here, not_in_calls, receive_registered, send_with_registrations};

use crate::table::service::Service;
use isles_protocol::phaser::{Advanced, Party, PhaserError};
use isles_runtime::capture::Handle;
use isles_runtime::service::Attachment;
use isles_runtime::service::coop::{OPERATION, cooperate};
use isles_runtime::{Error, ErrorKind, Local, Result};
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A task's registration with a barrier that tasks of all places join and leave (X10's `Clock`).
///
/// Registered tasks go from phase to phase together: no task is in phase *k* + 1 before every registered task has ended
/// phase *k*, by [`advance`](Phaser::advance) or [`resume`](Phaser::resume). Each handle is one registration. Dropping
/// it leaves the phaser, so a task that ends or is cancelled does not hold up the others.
///
/// **Joining.** [`Phaser::new`] registers the task that calls it. A registered task registers others: a task started by
/// `spawn_at!` whose body uses the phaser gets its own registration, which travels with it; for `spawn` there is
/// [`register`](Phaser::register). The phase cannot end before they have arrived. The body of an `at!` is part of a
/// task that is registered already, so a phaser does not travel with it to another place.
///
/// ```ignore
/// let phaser = Phaser::new();
/// finish(async {
///     for place in places() {
///         spawn_at!(place, {
///             step_one();
///             phaser.advance().await?; // no task is in step two before all have done step one
///             step_two();
///         });
///     }
///     drop(phaser); // this task is registered too, and would hold the others up
/// })
/// .await?;
/// ```
///
/// **Cost.** Each phase costs two control messages for each other place with registered tasks, however many tasks there
/// are; none for the place of `new`.
///
/// # Errors
/// Of every operation:
/// - [`DeadPlace`](ErrorKind::DeadPlace): a place died while tasks there, or on their way there, were registered;
///   nothing waits for them any more. Each remaining task gets this error once, from the [`advance`](Phaser::advance)
///   that ends the phase, and the phaser goes on. If the place made the phaser, every operation fails from then on.
/// - [`Misused`](ErrorKind::Misused): the text says how, as for a phaser of another run. Nothing was done.
pub struct Phaser {
    /// The party at this place, or the reason why a task that arrived too late has none.
    registration: Registration,
    /// Run and place at which the handle is registered.
    attachment: Attachment,
    /// True while an `advance` of this handle is in progress.
    advancing: Cell<bool>,
    /// The phase that an `advance_all` had reached with this handle when it was dropped before the other phases had
    /// ended.
    ahead: Cell<Option<u64>>,
    /// A handle belongs to its place.
    place: PhantomData<Rc<()>>,
}

/// A registration, or the reason why there is none.
type Registration = std::result::Result<Party, PhaserError>;

impl Phaser {
    /// Makes a phaser in phase 0 and registers the calling task.
    ///
    /// # Panics
    /// Outside of a place.
    #[expect(clippy::new_without_default, reason = "it registers the caller: no value is like another")]
    pub fn new() -> Phaser {
        Phaser::from_registration(Ok(Local::with(|local| PhaserTable::of(local).open())))
    }

    fn from_registration(registration: Registration) -> Phaser {
        let attachment = Local::with(Local::attachment);
        Phaser {
            registration,
            attachment,
            advancing: Cell::new(false),
            ahead: Cell::new(None),
            place: PhantomData,
        }
    }

    /// Applies `operation` to the party at this place.
    fn operate<R>(
        &self,
        operation: impl FnOnce(&Local, Party) -> std::result::Result<R, PhaserError>,
    ) -> Result<R> {
        self.attachment
            .with(|local| self.registration.and_then(|party| operation(local, party)).map_err(refused))?
    }

    /// Makes one more registration here, in the phase of this one: for a task that `spawn` starts.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): this registration has resumed, or waits; it registers others only while it
    /// holds up its phase. [`DeadPlace`](ErrorKind::DeadPlace) of the phaser's home.
    pub fn register(&self) -> Result<Phaser> {
        let party = self.operate(|local, party| PhaserTable::of(local).register(party))?;
        Ok(Phaser::from_registration(Ok(party)))
    }

    /// Ends the phase for this task, unless `resume` has done so, and waits until all have; returns the phase that
    /// begins.
    ///
    /// If the future is dropped, the phase stays ended for this task, and the next `advance` continues the wait.
    ///
    /// # Errors
    /// See [`Phaser`]. After [`DeadPlace`](ErrorKind::DeadPlace) of another place than the phaser's home the next phase
    /// has begun all the same.
    pub async fn advance(&self) -> Result<u64> {
        cooperate(OPERATION, self.advance_once()).await
    }

    async fn advance_once(&self) -> Result<u64> {
        self.operate(|_, _| Ok(()))?;
        let _turn = AdvanceGuard::begin(&self.advancing)?;
        if let Some(phase) = self.ahead.take() {
            return Ok(phase);
        }
        match self.operate(|local, party| PhaserTable::of(local).advance(local, party))? {
            Some(advanced) => entered(advanced),
            None => poll_fn(|context| self.poll_entered(context)).await,
        }
    }

    /// Waits for the next phase.
    fn poll_entered(&self, context: &mut Context<'_>) -> Poll<Result<u64>> {
        match self.operate(|local, party| Ok(PhaserTable::of(local).poll(party, context.waker()))) {
            Ok(None) => Poll::Pending,
            Ok(Some(advanced)) => Poll::Ready(entered(advanced)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Ends the phase for this task without waiting for the others; `advance` then waits. A second call in the same
    /// phase does nothing.
    ///
    /// # Errors
    /// See [`Phaser`]. [`Misused`](ErrorKind::Misused): an `advance` of this registration is in progress, or was
    /// dropped before it was over.
    pub fn resume(&self) -> Result<()> {
        if self.ahead.get().is_some() {
            return Err(refused(PhaserError::Waiting));
        }
        self.operate(|local, party| PhaserTable::of(local).resume(local, party))
    }

    /// As [`Phaser::resume`], unless a wait for the next phase was dropped and must be continued.
    fn end_phase(&self) -> Result<()> {
        let was_dropped = self.ahead.get().is_some()
            || !self.advancing.get()
                && self.operate(|local, party| Ok(PhaserTable::of(local).is_waiting(party)))?;
        if was_dropped { Ok(()) } else { self.resume() }
    }

    /// Returns the phase of this task, from 0. After `resume`, or a dropped `advance`, it is the phase that the task
    /// has ended, until the next `advance`.
    ///
    /// # Errors
    /// [`DeadPlace`](ErrorKind::DeadPlace): the phaser's home was dead before this task arrived here.
    pub fn phase(&self) -> Result<u64> {
        let phase = self.operate(|local, party| PhaserTable::of(local).phase(party))?;
        Ok(phase - u64::from(self.ahead.get().is_some()))
    }

    /// Advances several phasers as one step (X10's `Clock.advanceAll`): ends the phase of each before it waits for any,
    /// so that tasks which name the same phasers in different orders do not wait for each other for ever.
    ///
    /// If the future is dropped, the next `advance` of each, or the next `advance_all`, continues its wait.
    ///
    /// # Errors
    /// The first error of any of them; the others have advanced all the same, unless ending a phase failed.
    pub async fn advance_all<'a>(phasers: impl IntoIterator<Item = &'a Phaser>) -> Result<()> {
        let phasers: Vec<&Phaser> = phasers.into_iter().collect();
        phasers.iter().try_for_each(|phaser| phaser.end_phase())?;
        let (mut result, mut step) = (Ok(()), StepGuard::default());
        for phaser in phasers {
            let advanced = phaser.advance().await;
            step.advanced.extend(advanced.as_ref().ok().map(|phase| (phaser, *phase)));
            result = result.and(advanced.map(drop));
        }
        step.advanced.clear();
        result
    }
}

/// Returns the phase that was entered, or the error of a place that was lost on the way there.
fn entered(advanced: Advanced) -> Result<u64> {
    advanced.dead.map_or(Ok(advanced.phase), |place| Err(Error::dead(place)))
}

fn refused(error: PhaserError) -> Error {
    match error {
        PhaserError::DeadPlace(place) => Error::dead(place),
        misuse => Error::new(ErrorKind::Misused, misuse.to_string()),
    }
}

/// Marks an `advance` in progress.
struct AdvanceGuard<'a>(&'a Cell<bool>);

impl<'a> AdvanceGuard<'a> {
    fn begin(advancing: &'a Cell<bool>) -> Result<AdvanceGuard<'a>> {
        if advancing.replace(true) { Err(refused(PhaserError::Waiting)) } else { Ok(AdvanceGuard(advancing)) }
    }
}

impl Drop for AdvanceGuard<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// The phasers that an `advance_all` has advanced; if it is dropped before all are, their next `advance` continues.
#[derive(Default)]
struct StepGuard<'a> {
    advanced: Vec<(&'a Phaser, u64)>,
}

impl Drop for StepGuard<'_> {
    fn drop(&mut self) {
        self.advanced.iter().for_each(|(phaser, phase)| phaser.ahead.set(Some(*phase)));
    }
}

impl Drop for Phaser {
    fn drop(&mut self) {
        if let Ok(party) = self.registration {
            self.attachment.try_with(|local| PhaserTable::of(local).leave(local, party));
        }
    }
}

impl Handle for Phaser {}

impl fmt::Debug for Phaser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Phaser").field("seat", &self.registration).finish_non_exhaustive()
    }
}
