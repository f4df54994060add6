//! A request under way, as a future of the task that has made it.

use super::kernel::{HubKernel, Outcome, SubmittedRequest};
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
    state: RequestState,
    wait: Wait,
    timer: Option<Pin<Box<Sleep>>>,
}

enum RequestState {
    New {
        hub: HubId,
        operation: HubOperation,
        payload: Vec<u8>,
    },
    Made(SubmittedRequest),
    /// It has returned when it was made.
    Returned(Outcome),
    /// It has returned, and its task gives way to a more urgent one.
    Back(Outcome),
    Over,
}

impl HubRequest {
    pub(super) fn new(
        (kernel, task): (Rc<HubKernel>, TaskId),
        (hub, operation): (HubId, HubOperation),
        payload: Vec<u8>,
        wait: Wait,
    ) -> HubRequest {
        HubRequest { kernel, task, state: RequestState::New { hub, operation, payload }, wait, timer: None }
    }

    /// Makes the request, if it is not made.
    fn make(&mut self) {
        let RequestState::New { hub, operation, payload } =
            std::mem::replace(&mut self.state, RequestState::Over)
        else {
            return;
        };
        if payload.len() > self.kernel.packet_bytes {
            self.state = RequestState::Back((Status::TooLong, Vec::new()));
            return;
        }
        let waits = self.wait != Wait::No && self.wait != Wait::For(Duration::ZERO);
        let submission = Submission { task: self.task, hub, operation, waits, payload, tag: 0 };
        self.state = match self.kernel.submit(submission) {
            Ok(outcome) => RequestState::Returned(outcome),
            Err(asked) => RequestState::Made(asked),
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
    pub fn begin(mut self) -> HubRequest {
        if let RequestState::New { .. } = self.state {
            self.make();
        }
        self
    }

    fn poll_timer(&mut self, asked: SubmittedRequest, context: &mut Context<'_>) {
        let Wait::For(limit) = self.wait else { return };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if timer.as_mut().poll(context).is_ready() {
            // It returns all the same; no more time is asked for.
            (self.wait, self.timer) = (Wait::Forever, None);
            self.kernel.time_out(asked);
            Local::with(|local| HubTable::of(local).note_busy());
        }
    }
}

impl Future for HubRequest {
    type Output = Result<Vec<u8>, Status>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let RequestState::New { .. } = self.state {
            self.make();
        }
        match std::mem::replace(&mut self.state, RequestState::Over) {
            RequestState::Returned(outcome) => self.finish_request(outcome),
            RequestState::Back((status, payload)) => Poll::Ready(done(status).map(|()| payload)),
            RequestState::Made(asked) => {
                if let Some(outcome) = self.kernel.take_outcome(asked) {
                    return self.finish_request(outcome);
                }
                self.state = RequestState::Made(asked);
                if !matches!(self.wait, Wait::For(_)) {
                    return Poll::Pending;
                }
                self.poll_timer(asked, context);
                match self.kernel.take_outcome(asked) {
                    Some(outcome) => self.finish_request(outcome),
                    None => Poll::Pending,
                }
            }
            RequestState::New { .. } | RequestState::Over => {
                panic!("a request was polled after it had returned")
            }
        }
    }
}

impl HubRequest {
    /// Returns what came back, unless a more urgent task is to run first.
    fn finish_request(&mut self, outcome: Outcome) -> Poll<Result<Vec<u8>, Status>> {
        if self.kernel.current.get() == Some(self.task) && self.kernel.is_preempted(self.task) {
            self.state = RequestState::Back(outcome);
            return Poll::Pending;
        }
        self.state = RequestState::Over;
        let (status, payload) = outcome;
        Poll::Ready(done(status).map(|()| payload))
    }
}

impl Drop for HubRequest {
    fn drop(&mut self) {
        if let RequestState::Made(asked) = self.state {
            // The place may be gone.
            Local::try_with(|local| {
                self.kernel.give_up(asked);
                HubTable::of(local).note_busy();
            });
        }
    }
}
