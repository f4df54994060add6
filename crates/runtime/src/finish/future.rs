//! The future behind `finish(..)`, its deadline, and cancellation.

use crate::attachment::{Attachment, FOREIGN};
use crate::call::span;
use crate::call::span::OpenSpan;
use crate::error::foreign::BodyError;
use crate::error::{Error, ErrorKind, Result};
use crate::finish::Scope;
use crate::local::{Clock, Local};
use crate::task::coop;
use isles_protocol::finish::{Key, Reason};
use isles_transport::Source;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Result that the body of a finish may end with: nothing, or a `Result`.
#[diagnostic::on_unimplemented(
    message = "the body of a finish ends with `()` or a `Result`, not with `{Self}`",
    note = "to bring a value out of it, end the body with `Ok::<_, isles::Error>(value)`"
)]
pub trait Outcome {
    /// Value of the finish if it succeeds.
    type Value;
    /// Returns the outcome as a result.
    fn into_outcome(self) -> Result<Self::Value>;
}

impl Outcome for () {
    type Value = ();
    fn into_outcome(self) -> Result<()> {
        Ok(())
    }
}

impl<T, E: Into<BodyError>> Outcome for std::result::Result<T, E> {
    type Value = T;
    fn into_outcome(self) -> Result<T> {
        self.map_err(|error| error.into().into())
    }
}

/// Runs `body` and waits until every task started inside, at any place, directly or not, has ended.
///
/// Finishes nest. Costs no message if all tasks stay here, one round trip for one remote task, and otherwise a number
/// of control messages proportional to the number of places reached.
///
/// # Errors
/// The failures of the body and of the tasks: a single error is returned as it is, several as a list
/// ([`ErrorKind::Several`](crate::ErrorKind::Several)) with the place of each. A place that died with tasks of this
/// finish is one of them ([`ErrorKind::DeadPlace`](crate::ErrorKind::DeadPlace)), even if only the body of an `at!` ran
/// there and its caller has handled the error: what that body had started is lost, or lives elsewhere, and no place can
/// know. To go on without the place, give the call its own finish.
#[track_caller]
pub fn finish<F>(body: F) -> Finish<F>
where
    F: Future,
    F::Output: Outcome,
{
    finish_at(Some(Location::caller()), body)
}

/// As [`finish`], with its line in the program; `None` for the whole run.
pub(crate) fn finish_at<F>(site: Option<&'static Location<'static>>, body: F) -> Finish<F>
where
    F: Future,
    F::Output: Outcome,
{
    let (key, span) = (Rc::new(Cell::new(None)), OpenSpan::NONE);
    Finish { body: Some(body), key, site, deadline: None, opened: None, result: None, span }
}

/// The key of a finish while it is open, and its place.
type OpenKey = Rc<Cell<Option<(Key, Attachment)>>>;

/// The wait of one [`finish`]. Dropping it early cancels its tasks.
#[must_use = "a finish starts nothing and waits for nothing until it is awaited"]
pub struct Finish<F: Future>
where
    F::Output: Outcome,
{
    body: Option<F>,
    /// The key while the finish is open; shared with its cancellers.
    key: OpenKey,
    /// Location of the call in the program; `None` for the whole run.
    site: Option<&'static Location<'static>>,
    deadline: Option<Duration>,
    /// Time of its opening, by the clock of a modelled core.
    opened: Option<Duration>,
    /// Result of the body.
    result: Option<Result<<F::Output as Outcome>::Value>>,
    span: OpenSpan,
}

/// Cancels one finish, from any task of its place.
#[derive(Clone)]
pub struct Canceller(OpenKey);

impl Canceller {
    /// Drops the tasks of the finish, at all places, each at its next `await`; the finish then ends with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled). Does nothing unless the finish is in progress.
    pub fn cancel(&self, reason: &str) {
        if let Some((key, attachment)) = self.0.get() {
            attachment.try_with(|local| local.finishes.cancel(local, key, Reason::Requested(reason.into())));
        }
    }
}

/// Cancels the finish that counts the calling task: drops its tasks at all places, each at its next `await`. The
/// calling task goes on until its own next `await`.
#[track_caller]
pub fn cancel(reason: &str) {
    Local::with(|local| {
        if let Some(key) = local.counting_key(local.scope()) {
            local.finishes.cancel(local, key, Reason::Requested(reason.into()));
        }
    });
}

impl<F: Future> Finish<F>
where
    F::Output: Outcome,
{
    /// Cancels the tasks that have not ended `limit` after the finish has started; it then ends with
    /// [`ErrorKind::DeadlinePassed`](crate::ErrorKind::DeadlinePassed).
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = Some(limit);
        self
    }

    /// Returns a handle that cancels this finish.
    pub fn canceller(&self) -> Canceller {
        Canceller(Rc::clone(&self.key))
    }

    fn open(&mut self, local: &Local) -> Key {
        self.opened = modelled_time(local);
        let key = local.finishes.open(self.site, local.observed_parent());
        self.key.set(Some((key, local.attachment())));
        let name = if self.site.is_some() { span::FINISH } else { span::RUN };
        self.span = local.span(name, None, || self.site.map(Source::of_caller));
        if let Some(limit) = self.deadline {
            local.finishes.set_deadline(local, key, local.clock().now().saturating_add(limit));
        }
        key
    }
}

impl<F: Future> Future for Finish<F>
where
    F::Output: Outcome,
{
    type Output = Result<<F::Output as Outcome>::Value>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // NEED: pin projection to the body.
        // SOUND: `body` is the only structurally pinned field: it is never moved, only dropped in place by `set`;
        // the other fields are not pinned. `Finish` has no other `Drop` use of `body` and is not packed.
        let this = unsafe { self.get_unchecked_mut() };
        let (key, is_first) = match this.key.get() {
            Some((_, attachment)) if attachment.is_foreign() => {
                return Poll::Ready(Err(Error::new(ErrorKind::Misused, FOREIGN)));
            }
            Some((key, _)) => (key, false),
            None => {
                ready!(coop::poll_proceed(context));
                (Local::with(|local| this.open(local)), true)
            }
        };
        if this.body.is_some() {
            // NEED: pin projection to the body.
            // SOUND: as above.
            let mut body = unsafe { Pin::new_unchecked(&mut this.body) };
            match poll_body(key, body.as_mut().as_pin_mut(), context) {
                Poll::Pending if !Local::with(|local| local.finishes.is_cancelled(Scope::counted(key))) => {
                    return Poll::Pending;
                }
                Poll::Pending => this.result = Some(Err(dropped())),
                Poll::Ready(result) => this.result = Some(result),
            }
            // NEED: pin projection to the body.
            // SOUND: as above; `set` drops the body where it stands.
            let drop_body = || unsafe { Pin::new_unchecked(&mut this.body) }.set(None);
            if let Err(error) = catch_unwind(AssertUnwindSafe(drop_body)).map_err(Error::panicked)
                && let Some(Ok(_)) = &this.result
            {
                this.result = Some(Err(error));
            }
            Local::with(|local| local.finishes.end(local, key, None));
        }
        let Some(released) = Local::with(|local| local.finishes.poll(local, key, context.waker())) else {
            return Poll::Pending;
        };
        // Tasks of one place may all run in one turn, during which a modelled core's clock does not move.
        if is_first || this.opened.is_some() && this.opened == Local::with(modelled_time) {
            coop::spend_budget(coop::OPERATION);
        }
        this.key.set(None);
        this.span = OpenSpan::NONE;
        let result = this.result.take().expect("a finish is polled until it is ready, not longer");
        let left = Local::with(|local| local.services().finish_ended(key));
        Poll::Ready(join(result, released).and_then(|value| left.map(|()| value)))
    }
}

/// Returns the time of a place whose clock is that of a modelled core.
fn modelled_time(local: &Local) -> Option<Duration> {
    matches!(local.clock(), Clock::Modelled(_)).then(|| local.clock().now())
}

/// Returns the error of a body that was dropped because its finish was cancelled; the finish's own outcome says why.
fn dropped() -> Error {
    Error::new(ErrorKind::Cancelled, "")
}

/// Joins the result of the body and that of the tasks.
fn join<V>(body: Result<V>, tasks: Result<()>) -> Result<V> {
    match (body, tasks) {
        (body, Ok(())) => body,
        (Ok(_), Err(error)) => Err(error),
        (Err(body), Err(tasks)) if body.is_cancellation() => {
            drop(body);
            Err(tasks)
        }
        // The body has got the death as the error of a call; the finish has nothing to add.
        (Err(body), Err(tasks)) if tasks.is_death() && body.kind() == tasks.kind() => Err(body),
        (Err(body), Err(tasks)) => Err(body.merged_with(tasks)),
    }
}

/// Polls the body in the scope of its finish.
fn poll_body<F: Future>(
    key: Key,
    body: Option<Pin<&mut F>>,
    context: &mut Context<'_>,
) -> Poll<Result<<F::Output as Outcome>::Value>>
where
    F::Output: Outcome,
{
    let Some(body) = body else { return Poll::Pending };
    let before = Local::with(|local| local.set_scope(Scope::counted(key)));
    let polled = catch_unwind(AssertUnwindSafe(|| body.poll(context)));
    Local::with(|local| local.set_scope(before));
    match polled {
        Ok(polled) => polled.map(Outcome::into_outcome),
        Err(payload) => Poll::Ready(Err(Error::panicked(payload).at(Local::with(Local::here), None))),
    }
}

impl<F: Future> Drop for Finish<F>
where
    F::Output: Outcome,
{
    fn drop(&mut self) {
        let Some((key, attachment)) = self.key.take() else { return };
        let _abandoned = AbandonGuard { key, attachment, running: self.body.is_some() };
        // NEED: the body must be dropped while its finish is open: what it holds may still count there.
        // SOUND: the body is pinned; `set` drops it where it stands.
        unsafe { Pin::new_unchecked(&mut self.body) }.set(None);
    }
}

/// Abandons a finish when its body is dropped, even if that panics.
struct AbandonGuard {
    key: Key,
    attachment: Attachment,
    running: bool,
}

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        self.attachment.try_with(|local| abandon(local, self.key, self.running));
    }
}

/// Cancels the tasks of a finish that nothing waits for any more; the enclosing task counts as live until they have
/// ended.
fn abandon(local: &Local, key: Key, running: bool) {
    if local.finishes.forget(local, key) {
        return;
    }
    local.finishes.detach(local, key, local.begin());
    local.finishes.cancel(local, key, Reason::Requested("nobody waits for it any more".into()));
    if running {
        local.finishes.end(local, key, None);
    }
}
