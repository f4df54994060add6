//! The futures of sends and receives.
//!
//! An operation begins in its first poll, when the place allows it, and ends with the answer of the channel. Invariant:
//! an operation that is dropped before its end is given up.

use super::error::{RecvError, SendError, SendErrorKind};
use super::local_channel::{LocalChannel, ReceiveOptions, SendOptions};
use super::waits::{Begun, Caller, ChannelAnswer};
use crate::channel::control_block::ChannelTable;
use isles_protocol::PlaceId;
use isles_protocol::channel::Choice;
use isles_runtime::capture::CanSend;
use isles_runtime::service::coop::{CALL, must_yield, poll_until_sent, spend_budget_of};
use isles_runtime::service::span;
use isles_runtime::service::span::OpenSpan;
use isles_runtime::{Local, Sleep, sleep};
use isles_telemetry::CounterId;
use isles_transport::Source;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Progress of an operation.
#[derive(Clone, Copy)]
enum Progress {
    New,
    /// Waits for the answer to this number.
    Waiting(u64),
    Over,
}

/// An operation under way.
struct ChannelOperation<'a, T: CanSend> {
    end: &'a LocalChannel<T>,
    caller: Caller,
    progress: Progress,
    /// Number of the operation, once it has waited.
    number: Option<u64>,
    /// Name of the span that covers the wait.
    name: &'static str,
    span: OpenSpan,
}

impl<'a, T: CanSend> ChannelOperation<'a, T> {
    fn new(end: &'a LocalChannel<T>, name: &'static str, caller: Caller) -> ChannelOperation<'a, T> {
        ChannelOperation { end, caller, progress: Progress::New, number: None, name, span: OpenSpan::NONE }
    }

    /// Begins a new operation by `begin`, when the place allows it. Returns its answer, or `None` if it waits now. The
    /// fast path of a stream runs in one access to `Local`.
    #[inline]
    fn poll_begin(
        &mut self,
        context: &mut Context<'_>,
        begin: impl FnOnce(&Local, &LocalChannel<T>, Caller) -> Begun,
    ) -> Poll<Option<ChannelAnswer>> {
        Local::with(|local| {
            if must_yield(local) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            match begin(local, self.end, self.caller) {
                Ok(answer) => {
                    spend_budget_of(local, CALL);
                    self.progress = Progress::Over;
                    Poll::Ready(Some(answer))
                }
                Err(number) => {
                    self.note_begun(local, number);
                    Poll::Ready(None)
                }
            }
        })
    }

    fn note_begun(&mut self, local: &Local, number: u64) {
        self.progress = Progress::Waiting(number);
        self.number = Some(number);
        local.add_count(CounterId::ChannelWaits, 1);
        let source = || Some(Source::of_caller(self.caller));
        self.span = local.span(self.name, Some(self.end.control().id.home), source);
    }

    /// Polls the answer to an operation that waits.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<ChannelAnswer> {
        let Progress::Waiting(number) = self.progress else { return Poll::Ready(ChannelAnswer::Ended) };
        let answer = ready!(self.end.control().waits.poll(number, context.waker()));
        self.progress = Progress::Over;
        self.span = OpenSpan::NONE;
        Poll::Ready(answer)
    }

    /// Notes that the operation waits with the `select!` whose branch polls it, if any.
    fn note_waiting(&self) {
        if let Progress::Waiting(number) = self.progress {
            let end = || self.end.any();
            Local::with(|local| ChannelTable::of(local).borrow_mut().note_waiting(&end, number));
        }
    }

    /// Resets the operation, so that it begins anew when polled again. Returns its number, if it waited.
    fn give_up(&mut self) -> Option<u64> {
        self.span = OpenSpan::NONE;
        match std::mem::replace(&mut self.progress, Progress::New) {
            Progress::Waiting(number) => Some(number),
            Progress::New | Progress::Over => None,
        }
    }

    /// Returns `true` if the operation waits and must be given up.
    #[inline]
    fn has_begun(&self) -> bool {
        matches!(self.progress, Progress::Waiting(_))
    }

    /// Returns the error of a receive that has no value.
    #[cold]
    fn failed(&self, answer: ChannelAnswer) -> RecvError {
        match answer {
            ChannelAnswer::Empty => RecvError::Empty,
            ChannelAnswer::Dead => RecvError::DeadPlace(self.home()),
            ChannelAnswer::Faulty(fault) => RecvError::Faulty(fault.text().to_owned()),
            ChannelAnswer::Foreign => RecvError::Foreign,
            _ => RecvError::Closed,
        }
    }

    fn home(&self) -> PlaceId {
        self.end.control().id.home
    }
}

/// Future of [`Sender::send`](super::Sender::send) and [`Sender::try_send`](super::Sender::try_send).
///
/// A send that is dropped before its end may or may not have sent its value; in a `select!` it has not.
#[must_use = "a send does nothing unless it is awaited"]
pub struct SendFuture<'a, T: CanSend> {
    operation: ChannelOperation<'a, T>,
    value: Option<T>,
    options: SendOptions,
    stage: Stage,
    /// Number of times the value was declined.
    declined: u32,
}

/// Progress of a send that asks before it sends.
enum Stage {
    /// The value is here.
    Undecided,
    /// Room is granted, after a decline; the send waits before it tries again.
    Granted(u64, Pin<Box<Sleep>>),
    /// The value was sent over a rendezvous; it is not known yet whether it is taken.
    Chosen,
    /// The value was accepted but its message has not left yet.
    Leaving,
}

impl<T: CanSend> Unpin for SendFuture<'_, T> {}

impl<'a, T: CanSend> SendFuture<'a, T> {
    pub(super) fn new(end: &'a LocalChannel<T>, value: T, waits: bool, caller: Caller) -> SendFuture<'a, T> {
        let operation = ChannelOperation::new(end, span::SEND, caller);
        let options = SendOptions { reserves: false, blocking: waits, choice: None };
        let (value, stage) = (Some(value), Stage::Undecided);
        SendFuture { operation, value, options, stage, declined: 0 }
    }

    /// Keeps the value here until room is granted: a send that is dropped before it has [been
    /// chosen](SendFuture::is_chosen) sends nothing.
    pub(super) fn ask(mut self) -> SendFuture<'a, T> {
        self.options.reserves = true;
        self
    }

    /// Makes the send a branch of the `select!` `choice`; it waits for room only if `waits`.
    pub(super) fn select(&mut self, choice: Choice, waits: bool) {
        self.options = SendOptions { reserves: true, blocking: waits && self.options.blocking, choice };
    }

    /// Returns `true` if the value was sent over a rendezvous and its outcome is unknown: no other branch may be
    /// chosen.
    pub(super) fn is_chosen(&self) -> bool {
        matches!(self.stage, Stage::Chosen)
    }

    /// Gives up the send, which begins anew when polled again. In a `select!`, only for a send that is not chosen.
    pub(super) fn suspend(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Undecided);
        let number = self.operation.give_up();
        match stage {
            Stage::Granted(number, _) => self.operation.end.give_up_room(number),
            Stage::Undecided | Stage::Chosen | Stage::Leaving => {
                number.into_iter().for_each(|of| self.operation.end.give_up_send(of))
            }
        }
    }

    /// Gives up the send at a deadline. Returns the error, unless the value may have been sent.
    pub(super) fn give_up(mut self) -> Result<(), SendError<T>> {
        self.suspend();
        self.refused(SendErrorKind::DeadlinePassed)
    }

    fn refused(&mut self, kind: SendErrorKind) -> Result<(), SendError<T>> {
        match self.value.take() {
            Some(value) => {
                Local::try_with(|local| local.add_count(CounterId::ChannelReturned, 1));
                Err(SendError { value, kind })
            }
            None => Ok(()),
        }
    }

    /// Returns the outcome of a send whose value was not accepted.
    #[cold]
    fn ended(&mut self, answer: ChannelAnswer) -> Result<(), SendError<T>> {
        match answer {
            ChannelAnswer::Full => self.refused(SendErrorKind::Full),
            ChannelAnswer::Dead => {
                let home = self.operation.home();
                self.refused(SendErrorKind::DeadPlace(home))
            }
            ChannelAnswer::Faulty(fault) => self.refused(SendErrorKind::Faulty(fault.text().to_owned())),
            ChannelAnswer::Foreign => self.refused(SendErrorKind::Foreign),
            _ => self.refused(SendErrorKind::Closed),
        }
    }

    /// Returns the pause before a declined value is sent again. The pause differs between two senders, which therefore
    /// do not decline each other for ever.
    fn retry_delay(&self, number: u64) -> Duration {
        let here = u64::from(self.operation.end.control().here.0);
        let mixed =
            (number ^ (here << 32) ^ (u64::from(self.declined) << 56)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Duration::from_nanos((mixed >> 40) % (1000 << self.declined.min(10)))
    }

    /// Sends the value for which room was granted. Returns the answer, if it is known at once.
    fn choose(&mut self, number: u64) -> Option<ChannelAnswer> {
        let answer = self.operation.end.choose(number, &mut self.value, self.operation.caller);
        if answer.is_none() {
            self.stage = Stage::Chosen;
            self.operation.progress = Progress::Waiting(number);
        }
        answer
    }

    /// Polls a send whose value was accepted; ready when its message has left. A branch of a `select!` is ready at
    /// once, because it may be dropped only if nothing was sent.
    #[inline]
    fn poll_accepted(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        self.value = None;
        if !self.options.reserves && poll_until_sent(context).is_pending() {
            self.stage = Stage::Leaving;
            return Poll::Pending;
        }
        self.stage = Stage::Undecided;
        Poll::Ready(Ok(()))
    }

    /// Polls the answer to a send that has begun.
    #[inline(never)]
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<ChannelAnswer> {
        loop {
            if let Stage::Granted(number, wait) = &mut self.stage {
                ready!(wait.as_mut().poll(context));
                let number = *number;
                self.stage = Stage::Undecided;
                if let Some(answer) = self.choose(number) {
                    return Poll::Ready(answer);
                }
            }
            let answer = ready!(self.operation.poll_answer(context));
            let Some(number) = self.operation.number else { return Poll::Ready(answer) };
            if let Some(back) = self.operation.end.parts().take_returned(number) {
                self.value = Some(back);
            }
            match answer {
                ChannelAnswer::Granted if self.declined > 0 => {
                    self.stage = Stage::Granted(number, Box::pin(sleep(self.retry_delay(number))));
                    self.operation.progress = Progress::Waiting(number);
                }
                ChannelAnswer::Granted => {
                    if let Some(answer) = self.choose(number) {
                        return Poll::Ready(answer);
                    }
                }
                ChannelAnswer::Declined => {
                    self.declined += 1;
                    self.stage = Stage::Undecided;
                    self.operation.progress = Progress::Waiting(number);
                    self.operation.end.wait_again(number, self.operation.caller);
                }
                answer => return Poll::Ready(answer),
            }
        }
    }
}

impl<T: CanSend> Drop for SendFuture<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.operation.has_begun() {
            self.suspend();
        }
    }
}

impl<T: CanSend> Future for SendFuture<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Progress::New = this.operation.progress {
            let (value, options) = (&mut this.value, &this.options);
            let begun = this.operation.poll_begin(context, |local, end, caller| {
                let begun = end.send(local, value, options, caller);
                if let Ok(ChannelAnswer::Accepted) = begun {
                    local.add_count(CounterId::ChannelSent, 1);
                }
                begun
            });
            match ready!(begun) {
                Some(ChannelAnswer::Accepted) => return this.poll_accepted(context),
                Some(answer) => return Poll::Ready(this.ended(answer)),
                None => {}
            }
        }
        if let Stage::Leaving = this.stage {
            return this.poll_accepted(context);
        }
        let answer = ready!(this.poll_send(context));
        this.stage = Stage::Undecided;
        if let ChannelAnswer::Accepted = answer {
            Local::with(|local| local.add_count(CounterId::ChannelSent, 1));
            return this.poll_accepted(context);
        }
        Poll::Ready(this.ended(answer))
    }
}

/// Future of [`Receiver::recv`](super::Receiver::recv) and [`Receiver::try_recv`](super::Receiver::try_recv).
///
/// A receive that is dropped before its end has received nothing: a value that arrives for it goes to the next receive.
#[must_use = "nothing is received unless it is awaited"]
pub struct RecvFuture<'a, T: CanSend> {
    operation: ChannelOperation<'a, T>,
    options: ReceiveOptions,
}

impl<'a, T: CanSend> RecvFuture<'a, T> {
    pub(super) fn new(end: &'a LocalChannel<T>, waits: bool, caller: Caller) -> RecvFuture<'a, T> {
        let operation = ChannelOperation::new(end, span::RECEIVE, caller);
        RecvFuture { operation, options: ReceiveOptions { blocking: waits, choice: None } }
    }

    /// Makes the receive a branch of the `select!` `choice`; it waits for a value only if `waits`.
    pub(super) fn select(&mut self, choice: Choice, waits: bool) {
        self.options.blocking &= waits;
        self.options.choice = choice;
    }

    /// Prepares a receive that is over for the next value.
    #[inline]
    pub(super) fn renew(&mut self) {
        self.operation.progress = Progress::New;
    }

    /// Polls a receive that has begun; ready with `None` if it must begin anew.
    #[inline(never)]
    fn poll_arrival(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, RecvError>>> {
        let Poll::Ready(answer) = self.operation.poll_answer(context) else {
            self.operation.note_waiting();
            return Poll::Pending;
        };
        Poll::Ready(match answer {
            ChannelAnswer::Suspended => None,
            ChannelAnswer::Ready => Some(match self.operation.end.take_arrived() {
                Some(value) => {
                    Local::with(|local| local.add_count(CounterId::ChannelReceived, 1));
                    Ok(value)
                }
                None => Err(RecvError::Closed),
            }),
            answer => Some(Err(self.operation.failed(answer))),
        })
    }

    /// Gives up the receive, which begins anew when polled again.
    pub(super) fn suspend(&mut self) {
        if let Some(number) = self.operation.give_up() {
            self.operation.end.give_up_receive(number);
        }
    }
}

impl<T: CanSend> Drop for RecvFuture<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.operation.has_begun() {
            self.suspend();
        }
    }
}

impl<T: CanSend> Future for RecvFuture<'_, T> {
    type Output = Result<T, RecvError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (this, mut now) = (&mut *self, None);
        loop {
            if let Progress::New = this.operation.progress {
                if this.operation.end.control().is_watchful() {
                    Local::with(Local::measure_shared_turn);
                }
                let options = &this.options;
                let begun = this.operation.poll_begin(context, |local, end, caller| {
                    let begun = end.receive_value(local, &mut now, options, caller);
                    if now.is_some() {
                        local.add_count(CounterId::ChannelReceived, 1);
                    }
                    begun
                });
                if let Some(answer) = ready!(begun) {
                    return Poll::Ready(now.take().ok_or_else(|| this.operation.failed(answer)));
                }
            }
            match this.poll_arrival(context) {
                Poll::Ready(None) => this.operation.progress = Progress::New,
                Poll::Ready(Some(received)) => return Poll::Ready(received),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
