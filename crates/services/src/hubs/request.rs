//! A request in progress, as a future of the task that made it.

use super::kernel::{HubKernel, RequestOutcome, SubmittedRequest};
use super::table::{HubTable, done};
use crate::table::service::Service;
use isles_protocol::hub::{HubId, HubOperation, Status, Submission, TaskId};
use isles_runtime::{Local, Sleep, sleep};
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Time a request waits if it cannot synchronise at once: the variants of the services of hubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all (`_NW`): it fails with [`Status::Failed`].
    No,
    /// Until it synchronises (`_W`).
    Forever,
    /// Until it synchronises or this time has passed (`_WT`), then with [`Status::TimedOut`]. Never both.
    For(Duration),
}

/// A request to a hub, from its start until it returns.
///
/// It is made at its first poll, or at once by [`HubRequest::begin`]. Dropped before it returns, it is withdrawn, and a
/// lock or block of memory that it has obtained goes back.
#[must_use = "a request is made where it is awaited"]
pub struct HubRequest {
    kernel: Rc<HubKernel>,
    submission: Submission,
    state: RequestState,
    wait: Wait,
    timer: Option<Pin<Box<Sleep>>>,
}

enum RequestState {
    New,
    Made(SubmittedRequest),
    /// It returned as soon as it was made.
    Returned(RequestOutcome),
    /// It has returned, and its task first yields to a more urgent one.
    Back(RequestOutcome),
    Over,
}

impl HubRequest {
    #[inline]
    pub(super) fn new(
        kernel: Rc<HubKernel>,
        task: TaskId,
        hub: HubId,
        operation: HubOperation,
        payload: Vec<u8>,
        wait: Wait,
    ) -> HubRequest {
        let waits = wait != Wait::No && wait != Wait::For(Duration::ZERO);
        let submission = Submission { task, hub, operation, waits, payload, tag: 0 };
        HubRequest { kernel, submission, state: RequestState::New, wait, timer: None }
    }

    /// Makes a new request; returns its result if it returns at once.
    fn make(&mut self) -> Option<RequestOutcome> {
        if self.submission.payload.len() > self.kernel.packet_bytes {
            return Some(RequestOutcome { status: Status::TooLong, payload: Vec::new(), grant: None });
        }
        let outcome = match self.kernel.submit(&mut self.submission) {
            Ok(outcome) => Some(outcome),
            Err(asked) => {
                if let Wait::For(limit) = self.wait {
                    self.timer = Some(Box::pin(sleep(limit)));
                }
                self.state = RequestState::Made(asked);
                None
            }
        };
        // Others may now get what this request gave back; packets that have arrived meanwhile are served first.
        if self.kernel.has_work() {
            Local::with(|local| {
                if self.kernel.current.get().is_some() {
                    self.kernel.progress(local);
                } else {
                    HubTable::of(local).note_busy();
                }
            });
        }
        outcome
    }

    /// Makes the request now and returns it, to be awaited later: the asynchronous variant (`_A`).
    ///
    /// The time of [`Wait::For`] begins now; the request is withdrawn at the first poll after it has passed.
    pub fn begin(mut self) -> HubRequest {
        if let RequestState::New = self.state
            && let Some(outcome) = self.make()
        {
            self.state = RequestState::Returned(outcome);
        }
        self
    }

    /// Returns the result of a request that was made, if it has returned. A request whose time has passed is withdrawn,
    /// which makes it return.
    fn poll_made(&mut self, asked: SubmittedRequest, context: &mut Context<'_>) -> Option<RequestOutcome> {
        let outcome = self.kernel.poll_outcome(asked, self.submission.task, context.waker());
        if outcome.is_some() {
            return outcome;
        }
        if self.timer.as_mut()?.as_mut().poll(context).is_pending() {
            return None;
        }
        self.timer = None;
        self.kernel.time_out(asked);
        Local::with(|local| HubTable::of(local).note_busy());
        self.kernel.poll_outcome(asked, self.submission.task, context.waker())
    }

    fn poll_returned(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<u8>, Status>> {
        match mem::replace(&mut self.state, RequestState::Over) {
            RequestState::Returned(outcome) => self.finish_request(outcome, context),
            RequestState::Back(outcome) => Poll::Ready(done(outcome.status).map(|()| outcome.payload)),
            RequestState::New | RequestState::Made(_) | RequestState::Over => {
                panic!("a request was polled after it had returned")
            }
        }
    }

    /// Returns the result, unless a more urgent task must run before the task that polls.
    #[inline(always)]
    fn finish_request(
        &mut self,
        outcome: RequestOutcome,
        context: &mut Context<'_>,
    ) -> Poll<Result<Vec<u8>, Status>> {
        if self.kernel.is_polled_by(self.submission.task, context.waker())
            && self.kernel.is_preempted(self.submission.task)
        {
            self.state = RequestState::Back(outcome);
            return Poll::Pending;
        }
        Poll::Ready(done(outcome.status).map(|()| outcome.payload))
    }
}

impl Future for HubRequest {
    type Output = Result<Vec<u8>, Status>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // An immediate result does not go through `state`: a wide load right after narrower stores stalls.
        let mut outcome = match self.state {
            RequestState::New => self.make(),
            RequestState::Made(_) => None,
            RequestState::Returned(_) | RequestState::Back(_) | RequestState::Over => {
                return self.poll_returned(context);
            }
        };
        if let RequestState::Made(asked) = self.state {
            outcome = self.poll_made(asked, context);
        }
        match outcome {
            Some(outcome) => {
                self.state = RequestState::Over;
                self.finish_request(outcome, context)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for HubRequest {
    fn drop(&mut self) {
        if let RequestState::New | RequestState::Over = self.state {
            return;
        }
        // The place may be gone.
        Local::try_with(|local| {
            let outcome = match mem::replace(&mut self.state, RequestState::Over) {
                RequestState::New | RequestState::Over => None,
                RequestState::Made(asked) => self.kernel.give_up(asked),
                RequestState::Returned(outcome) | RequestState::Back(outcome) => Some(outcome),
            };
            if let (Some(outcome), HubOperation::Get) = (outcome, self.submission.operation) {
                self.kernel.reject(self.submission.task, self.submission.hub, outcome);
            }
            HubTable::of(local).note_busy();
        });
    }
}
