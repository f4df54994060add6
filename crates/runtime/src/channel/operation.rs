//! Operations on channels, as futures: to send, to receive, to count.
//!
//! Each begins in its first poll, when the place allows it, and ends with the answer of the channel. Invariant: one
//! that is dropped before its end is cancelled, and what its answer brings is put back.

use super::control_block::Answer;
use super::end::End;
use super::error::{RecvError, SendError, SendErrorKind};
use crate::call::span;
use crate::call::span::OpenSpan;
use crate::capture::CanSend;
use crate::local::Local;
use crate::task::coop::{CALL, poll_proceed, spend};
use isles_protocol::PlaceId;
use isles_transport::Source;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// How far an operation is.
#[derive(Clone, Copy)]
enum Progress {
    New,
    /// It waits for the answer to this number.
    Waiting(u64),
    Over,
}

/// An operation under way; cancels it when it is dropped.
struct Operation<T: CanSend> {
    end: Rc<End<T>>,
    caller: &'static Location<'static>,
    progress: Progress,
    /// What its span is called, if it waits; and that span.
    name: &'static str,
    span: OpenSpan,
}

impl<T: CanSend> Operation<T> {
    fn new(end: &Rc<End<T>>, name: &'static str, caller: &'static Location<'static>) -> Operation<T> {
        Operation { end: Rc::clone(end), caller, progress: Progress::New, name, span: OpenSpan::NONE }
    }

    /// The answer; `begin` begins the operation.
    fn poll_answer(
        &mut self,
        context: &mut Context<'_>,
        begin: impl FnOnce(&Rc<End<T>>, &'static Location<'static>) -> Result<Answer<T>, u64>,
    ) -> Poll<Answer<T>> {
        if let Progress::New = self.progress {
            ready!(poll_proceed(context));
            match begin(&self.end, self.caller) {
                Ok(answer) => {
                    spend(CALL);
                    self.progress = Progress::Over;
                    return Poll::Ready(answer);
                }
                Err(number) => {
                    self.progress = Progress::Waiting(number);
                    Local::with(|local| {
                        local.tally.count_message(|counts| counts.channel_waits += 1);
                        let source = || Some(Source::of_caller(self.caller));
                        self.span = local.span(self.name, Some(self.end.control.id.home), source);
                    });
                }
            }
        }
        let Progress::Waiting(number) = self.progress else { return Poll::Ready(Answer::Ended) };
        let answer = ready!(self.end.poll(number, context.waker()));
        self.progress = Progress::Over;
        self.span = OpenSpan::NONE;
        Poll::Ready(answer)
    }

    fn home(&self) -> PlaceId {
        self.end.control.id.home
    }
}

impl<T: CanSend> Drop for Operation<T> {
    fn drop(&mut self) {
        if let Progress::Waiting(number) = self.progress {
            self.end.cancel(number, false);
        }
    }
}

/// What [`Sender::send`](super::Sender::send) and [`Sender::try_send`](super::Sender::try_send) return.
///
/// A send that is dropped before its end may have sent its value or not; in a `select!` it has not.
#[must_use = "a send does nothing unless it is awaited"]
pub struct SendFuture<'a, T: CanSend> {
    operation: Operation<T>,
    value: Option<T>,
    /// Whether the value stays here until there is a slot for it.
    asks: bool,
    waits: bool,
    sender: PhantomData<&'a ()>,
}

impl<T: CanSend> Unpin for SendFuture<'_, T> {}

impl<'a, T: CanSend> SendFuture<'a, T> {
    pub(super) fn new(
        end: &Rc<End<T>>,
        value: T,
        waits: bool,
        caller: &'static Location<'static>,
    ) -> SendFuture<'a, T> {
        let operation = Operation::new(end, span::SEND, caller);
        SendFuture { operation, value: Some(value), asks: false, waits, sender: PhantomData }
    }

    /// Lets it be one of several, of which one happens: nothing is sent before this one is chosen. It waits if it
    /// `waits`.
    pub(super) fn select(&mut self, waits: bool) {
        (self.asks, self.waits) = (true, waits && self.waits);
    }

    /// Ends the wait; the answer, which comes soon, says what became of the value.
    pub(super) fn cancel(&mut self) {
        if let Progress::Waiting(number) = self.operation.progress {
            self.operation.end.cancel(number, true);
        }
    }

    fn refused(&mut self, back: Option<T>, kind: SendErrorKind) -> Result<(), SendError<T>> {
        match back.or_else(|| self.value.take()) {
            Some(value) => {
                Local::try_with(|local| local.tally.count_message(|counts| counts.channel_returned += 1));
                Err(SendError { value, kind })
            }
            None => Ok(()),
        }
    }
}

impl<T: CanSend> Future for SendFuture<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (value, how) = (&mut this.value, (this.asks, this.waits));
        let mut answer =
            ready!(this.operation.poll_answer(context, |end, caller| end.send(value, how, caller)));
        if let Answer::Granted = answer {
            answer = this.operation.end.commit(&mut this.value);
        }
        Poll::Ready(match answer {
            Answer::Accepted => {
                Local::with(|local| local.tally.count_message(|counts| counts.channel_sent += 1));
                Ok(())
            }
            Answer::Full => this.refused(None, SendErrorKind::Full),
            Answer::Cancelled(back) => this.refused(back, SendErrorKind::DeadlinePassed),
            Answer::Dead => {
                let home = this.operation.home();
                this.refused(None, SendErrorKind::DeadPlace(home))
            }
            Answer::Faulty(text) => this.refused(None, SendErrorKind::Faulty(text)),
            Answer::Refused(back) => this.refused(back, SendErrorKind::Closed),
            _ => this.refused(None, SendErrorKind::Closed),
        })
    }
}

/// What [`Receiver::recv`](super::Receiver::recv) and [`Receiver::try_recv`](super::Receiver::try_recv) return.
///
/// One that is dropped before its end has received nothing: a value that arrives for it is the next that is received.
#[must_use = "nothing is received unless it is awaited"]
pub struct RecvFuture<'a, T: CanSend> {
    operation: Operation<T>,
    waits: bool,
    receiver: PhantomData<&'a ()>,
}

impl<'a, T: CanSend> RecvFuture<'a, T> {
    pub(super) fn new(
        end: &Rc<End<T>>,
        waits: bool,
        caller: &'static Location<'static>,
    ) -> RecvFuture<'a, T> {
        RecvFuture { operation: Operation::new(end, span::RECEIVE, caller), waits, receiver: PhantomData }
    }

    /// Lets it be one of several; it waits if it `waits`.
    pub(super) fn select(&mut self, waits: bool) {
        self.waits &= waits;
    }
}

impl<T: CanSend> Future for RecvFuture<'_, T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waits = self.waits;
        let begin = |end: &Rc<End<T>>, caller| end.receive_value(waits, caller);
        let answer = ready!(self.operation.poll_answer(context, begin));
        Poll::Ready(match answer {
            Answer::Value(value) => {
                Local::with(|local| local.tally.count_message(|counts| counts.channel_received += 1));
                Ok(value)
            }
            Answer::Empty => Err(RecvError::Empty),
            Answer::Dead => Err(RecvError::DeadPlace(self.operation.home())),
            Answer::Faulty(text) => Err(RecvError::Faulty(text)),
            _ => Err(RecvError::Closed),
        })
    }
}

/// How many values a channel holds, as a future.
pub(super) struct Count<T: CanSend>(Operation<T>);

impl<T: CanSend> Count<T> {
    pub(super) fn new(end: &Rc<End<T>>, caller: &'static Location<'static>) -> Count<T> {
        Count(Operation::new(end, span::LENGTH, caller))
    }
}

impl<T: CanSend> Future for Count<T> {
    type Output = crate::Result<usize>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.0.poll_answer(context, |end, caller| end.count(caller)));
        Poll::Ready(match answer {
            Answer::Counted(count) => Ok(count as usize),
            _ => Err(crate::Error::dead(self.0.home())),
        })
    }
}
