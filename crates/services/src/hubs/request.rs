//! A request under way, as a future of the task that has made it.

use super::kernel::{HubKernel, RequestOutcome, SubmittedRequest};
use super::table::{HubTable, done};
use crate::table::service::Service;
use isles_protocol::hub::{HubId, HubOperation, Status, Submission, TaskId};
use isles_runtime::{Local, Sleep, sleep};
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
    /// Until it synchronises or this time has passed (`_WT`), then with [`Status::TimedOut`]; it has one of both
    /// outcomes, never both.
    For(Duration),
}

/// A request to a hub, from its making to its return.
///
/// It is made when it is polled first, or at once by an asynchronous variant. Dropped earlier, it is withdrawn; a lock
/// or a block of memory that it has got meanwhile goes back.
#[must_use = "a request is made where it is awaited"]
pub struct HubRequest {
    kernel: Rc<HubKernel>,
    task: TaskId,
    hub: HubId,
    operation: HubOperation,
    state: RequestState,
    wait: Wait,
    timer: Option<Pin<Box<Sleep>>>,
}

enum RequestState {
    New(Vec<u8>),
    Made(SubmittedRequest),
    /// It has returned when it was made.
    Returned(RequestOutcome),
    /// It has returned, and its task gives way to a more urgent one.
    Back(RequestOutcome),
    Over,
}

impl HubRequest {
    pub(super) fn new(
        (kernel, task): (Rc<HubKernel>, TaskId),
        (hub, operation): (HubId, HubOperation),
        payload: Vec<u8>,
        wait: Wait,
    ) -> HubRequest {
        HubRequest { kernel, task, hub, operation, state: RequestState::New(payload), wait, timer: None }
    }

    /// Makes the request, if it is not made.
    fn make(&mut self) {
        let RequestState::New(payload) = std::mem::replace(&mut self.state, RequestState::Over) else {
            return;
        };
        if payload.len() > self.kernel.packet_bytes {
            let (status, payload) = (Status::TooLong, Vec::new());
            self.state = RequestState::Back(RequestOutcome { status, payload, grant: None });
            return;
        }
        let waits = self.wait != Wait::No && self.wait != Wait::For(Duration::ZERO);
        let HubRequest { task, hub, operation, .. } = *self;
        let submission = Submission { task, hub, operation, waits, payload, tag: 0 };
        self.state = match self.kernel.submit(submission) {
            Ok(outcome) => RequestState::Returned(outcome),
            Err(asked) => {
                if let Wait::For(limit) = self.wait {
                    self.timer = Some(Box::pin(sleep(limit)));
                }
                RequestState::Made(asked)
            }
        };
        // Others may get now what was given back; what has arrived meanwhile is looked at first.
        if self.kernel.has_work() {
            Local::with(|local| {
                if self.kernel.current.get().is_some() {
                    self.kernel.progress(local);
                } else {
                    HubTable::of(local).note_busy();
                }
            });
        }
    }

    /// Makes the request now and returns it, to be awaited later: the asynchronous variant (`_A`).
    ///
    /// The time of [`Wait::For`] begins now; the request is withdrawn at the first poll after it has passed.
    pub fn begin(mut self) -> HubRequest {
        if let RequestState::New(_) = self.state {
            self.make();
        }
        self
    }

    /// Withdraws the request once its time has passed. It returns all the same.
    fn poll_timer(&mut self, asked: SubmittedRequest, context: &mut Context<'_>) {
        let Some(timer) = &mut self.timer else { return };
        if timer.as_mut().poll(context).is_ready() {
            self.timer = None;
            self.kernel.time_out(asked);
            Local::with(|local| HubTable::of(local).note_busy());
        }
    }

    /// Returns what came back, unless a more urgent task is to run before the task that polls it.
    fn finish_request(
        &mut self,
        outcome: RequestOutcome,
        context: &mut Context<'_>,
    ) -> Poll<Result<Vec<u8>, Status>> {
        if self.kernel.is_polled_by(self.task, context.waker()) && self.kernel.is_preempted(self.task) {
            self.state = RequestState::Back(outcome);
            return Poll::Pending;
        }
        Poll::Ready(done(outcome.status).map(|()| outcome.payload))
    }
}

impl Future for HubRequest {
    type Output = Result<Vec<u8>, Status>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let RequestState::New(_) = self.state {
            self.make();
        }
        match std::mem::replace(&mut self.state, RequestState::Over) {
            RequestState::Returned(outcome) => self.finish_request(outcome, context),
            RequestState::Back(outcome) => Poll::Ready(done(outcome.status).map(|()| outcome.payload)),
            RequestState::Made(asked) => {
                let mut outcome = self.kernel.poll_outcome(asked, self.task, context.waker());
                if outcome.is_none() && self.timer.is_some() {
                    self.poll_timer(asked, context);
                    outcome = self.kernel.poll_outcome(asked, self.task, context.waker());
                }
                match outcome {
                    Some(outcome) => self.finish_request(outcome, context),
                    None => {
                        self.state = RequestState::Made(asked);
                        Poll::Pending
                    }
                }
            }
            RequestState::New(_) | RequestState::Over => {
                panic!("a request was polled after it had returned")
            }
        }
    }
}

impl Drop for HubRequest {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut self.state, RequestState::Over);
        if matches!(state, RequestState::New(_) | RequestState::Over) {
            return;
        }
        // The place may be gone.
        Local::try_with(|local| {
            let outcome = match state {
                RequestState::New(_) | RequestState::Over => None,
                RequestState::Made(asked) => self.kernel.give_up(asked),
                RequestState::Returned(outcome) | RequestState::Back(outcome) => Some(outcome),
            };
            if let (Some(outcome), HubOperation::Get) = (outcome, self.operation) {
                self.kernel.reject(self.task, self.hub, outcome);
            }
            HubTable::of(local).note_busy();
        });
    }
}
