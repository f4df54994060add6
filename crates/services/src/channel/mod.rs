//! Channels: values sent from tasks to tasks at any places.
//!
//! `docs/design/channels.md` describes the protocol, and `isles_protocol::channel` implements it. `home` is a channel
//! at its home, `remote` one at another place, `local_channel` either of them; `control_block` is the part that does
//! not depend on the type of the values, `operation` has the futures; this file has the handles. Invariant: the senders
//! and the receivers of a channel are counted separately over all places, so that dropping the last handle of one kind
//! closes the channel.

mod arrival;
pub(crate) mod control_block;
mod error;
mod home;
mod local_channel;
pub(crate) mod message;
mod operation;
mod remote;
mod ring;
pub mod select;
mod waits;

pub(crate) use arrival::receive;
pub(crate) use control_block::{ChannelTable, poll_rings};
pub use error::{RecvError, SendError, SendErrorKind};
pub use operation::{RecvFuture, SendFuture};

use futures_core::Stream;
use home::HomeChannel;
use isles_protocol::channel::CAPACITY_MAX;
use isles_runtime::capture::{CanSend, Handle};
use isles_runtime::service::{InternalSite, PartRef, SerdeCapture, SerdeReturn, call};
use isles_runtime::{Error, ErrorKind, Local, Place, Result, sleep};
use local_channel::LocalChannel;
use message::ChannelId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::future::poll_fn;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Creates a channel with a buffer here of at most `capacity` values. With capacity 0 it is a rendezvous: a send ends
/// when its value has been taken.
///
/// Create it where its values are received, so that a value travels once. Both handles can be cloned, captured by
/// bodies for other places, and sent over other channels. The channel is closed by [`Sender::close`], or when the last
/// sender at any place is dropped; when the last receiver is dropped, sends are refused.
///
/// ```ignore
/// let (sender, receiver) = channel::<u64>(16);
/// finish(async {
///     spawn_at!(place, sender.send(7).await?);
///     assert_eq!(receiver.recv().await?, 7);
/// })
/// ```
///
/// # Panics
/// Outside of a place, or if `capacity` is more than 2^20.
#[track_caller]
pub fn channel<T: CanSend>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    match Local::with(|local| make(local, capacity)) {
        Ok(ends) => ends,
        Err(error) => panic!("{error}"),
    }
}

/// As [`channel`], with the buffer at `home`.
///
/// # Errors
/// `home` is dead; [`Misused`](ErrorKind::Misused): `capacity` is more than 2^20.
#[track_caller]
pub fn channel_at<T: CanSend>(
    home: Place,
    capacity: usize,
) -> impl Future<Output = Result<(Sender<T>, Receiver<T>)>> {
    call::called_at(Location::caller(), async move {
        if home.id() == Local::with(Local::here) {
            return Local::with(|local| make(local, capacity));
        }
        call::at_there(InternalSite, home, (SerdeCapture(&capacity), ()), |mut decoded| async move {
            let (capacity, ()) = isles_runtime::capture::Bind::bind(&mut decoded);
            Local::with(|local| make::<T>(local, capacity)).map(SerdeReturn)
        })
        .await
    })
}

fn make<T: CanSend>(local: &Local, capacity: usize) -> Result<(Sender<T>, Receiver<T>)> {
    let allowed = u32::try_from(capacity).ok().filter(|capacity| *capacity <= CAPACITY_MAX);
    let capacity = allowed.ok_or_else(|| {
        let text = format!("the capacity of a channel is {capacity}; allowed: 0 to {CAPACITY_MAX}");
        Error::new(ErrorKind::Misused, text)
    })?;
    let end = HomeChannel::make(local, capacity);
    let side = |is_receiver| {
        let part = Rc::new(Side { end: Rc::clone(&end), is_receiver });
        Handles { end: LocalChannel::Home(Rc::clone(&end)), share: PartRef::make(part, None) }
    };
    Ok((Sender(side(false)), Receiver(side(true))))
}

/// State at the home of all senders, or of all receivers.
struct Side<T: CanSend> {
    end: Rc<HomeChannel<T>>,
    is_receiver: bool,
}

impl<T: CanSend> Drop for Side<T> {
    fn drop(&mut self) {
        self.end.close_side(self.is_receiver);
    }
}

/// A counted handle.
struct Handles<T> {
    // Dropped first, so that values and slots return to the home before the handle is released.
    end: LocalChannel<T>,
    share: PartRef,
}

impl<T> Clone for Handles<T> {
    fn clone(&self) -> Self {
        self.end.control().retain();
        Handles { end: self.end.clone(), share: self.share.clone() }
    }
}

impl<T> Drop for Handles<T> {
    fn drop(&mut self) {
        self.end.control().release();
    }
}

impl<T: CanSend> Serialize for Handles<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        (&self.share, self.end.control().id, self.end.control().kind.capacity()).serialize(serializer)
    }
}

impl<'de, T: CanSend> Deserialize<'de> for Handles<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let (share, id, capacity) = <(PartRef, ChannelId, u32)>::deserialize(deserializer)?;
        let end = Local::try_with(|local| LocalChannel::of(local, id, capacity)).flatten();
        let end = end.ok_or_else(|| serde::de::Error::custom("a handle of a channel of another run"))?;
        Ok(Handles { end, share })
    }
}

/// The sending half of a [`channel`].
#[derive(Serialize, Deserialize)]
#[serde(bound = "T: CanSend")]
pub struct Sender<T>(Handles<T>);

/// The receiving half of a [`channel`].
#[derive(Deserialize)]
#[serde(bound = "T: CanSend")]
pub struct Receiver<T>(Handles<T>);

// Not derived, because a handle can be cloned whatever the type of its values.
impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender(self.0.clone())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Receiver(self.0.clone())
    }
}

impl<T: CanSend> Serialize for Receiver<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.end.control().note_remote_receiver();
        self.0.serialize(serializer)
    }
}

impl<T: CanSend> Handle for Sender<T> {}
impl<T: CanSend> Handle for Receiver<T> {}

impl<T: CanSend> Sender<T> {
    /// Sends `value`; waits for room.
    ///
    /// # Errors
    /// [`SendError`] has the value and the reason: the channel is closed, or its place is dead.
    #[track_caller]
    pub fn send(&self, value: T) -> SendFuture<'_, T> {
        SendFuture::new(&self.0.end, value, true, Location::caller())
    }

    /// Sends `value` if there is room. At a place other than that of the buffer, this takes a round trip.
    ///
    /// # Errors
    /// As [`Sender::send`]; [`SendErrorKind::Full`].
    #[track_caller]
    pub fn try_send(&self, value: T) -> SendFuture<'_, T> {
        SendFuture::new(&self.0.end, value, false, Location::caller())
    }

    /// Sends `value`; waits for room for at most `limit`. A rendezvous that met a receiver in time may wait longer,
    /// until the receiver has taken the value or left.
    ///
    /// # Errors
    /// As [`Sender::send`]; [`SendErrorKind::DeadlinePassed`].
    #[track_caller]
    pub fn send_timeout(
        &self,
        value: T,
        limit: Duration,
    ) -> impl Future<Output = std::result::Result<(), SendError<T>>> {
        let mut send = self.send(value).ask();
        async move {
            let (mut sleep, mut is_late) = (pin!(sleep(limit)), false);
            let sent = poll_fn(|context| {
                if let Poll::Ready(sent) = Pin::new(&mut send).poll(context) {
                    return Poll::Ready(Some(sent));
                }
                is_late = is_late || sleep.as_mut().poll(context).is_ready();
                if is_late && !send.is_chosen() { Poll::Ready(None) } else { Poll::Pending }
            })
            .await;
            sent.unwrap_or_else(|| send.give_up())
        }
    }

    /// Closes the channel: no more values can be sent, but those already sent can still be received.
    pub fn close(&self) {
        self.0.end.close();
    }

    /// Returns the capacity in values, without the slots that places hold in advance (`docs/channels.md`).
    pub fn capacity(&self) -> usize {
        self.0.end.control().kind.capacity() as usize
    }

    /// Returns the place of the buffer, which other libraries call its owner.
    pub fn home(&self) -> Place {
        Place::of(self.0.end.control().id.home)
    }
}

impl<T: CanSend> Receiver<T> {
    /// Receives a value; waits for one.
    ///
    /// # Errors
    /// [`RecvError::Closed`]: no more values will come. [`RecvError::DeadPlace`]: the place of the buffer is dead.
    #[track_caller]
    pub fn recv(&self) -> RecvFuture<'_, T> {
        RecvFuture::new(&self.0.end, true, Location::caller())
    }

    /// Receives a value if there is one. At a place other than that of the buffer, this takes a round trip.
    ///
    /// # Errors
    /// As [`Receiver::recv`]; [`RecvError::Empty`].
    #[track_caller]
    pub fn try_recv(&self) -> RecvFuture<'_, T> {
        RecvFuture::new(&self.0.end, false, Location::caller())
    }

    /// Receives a value; waits for at most `limit`.
    ///
    /// # Errors
    /// As [`Receiver::recv`]; [`RecvError::DeadlinePassed`].
    #[track_caller]
    pub fn recv_timeout(&self, limit: Duration) -> impl Future<Output = std::result::Result<T, RecvError>> {
        let recv = self.recv();
        async move { isles_runtime::timeout(limit, recv).await.unwrap_or(Err(RecvError::DeadlinePassed)) }
    }

    /// Returns the stream of the next values, until the channel is closed.
    #[track_caller]
    pub fn stream(&self) -> Values<'_, T> {
        Values { next: self.recv() }
    }

    /// Returns the number of values in the buffer, or of senders that wait at a rendezvous; `None` at a place other
    /// than that of the buffer. A task elsewhere can use `at!(receiver.home(), receiver.buffered()).await?`.
    pub fn buffered(&self) -> Option<usize> {
        let LocalChannel::Home(end) = &self.0.end else { return None };
        let pending = end.home.borrow().pending();
        Some(pending)
    }

    /// Closes the channel, as [`Sender::close`].
    pub fn close(&self) {
        self.0.end.close();
    }

    /// Returns the capacity in values, without the slots that places hold in advance (`docs/channels.md`).
    pub fn capacity(&self) -> usize {
        self.0.end.control().kind.capacity() as usize
    }

    /// Returns the place of the buffer, which other libraries call its owner.
    pub fn home(&self) -> Place {
        Place::of(self.0.end.control().id.home)
    }
}

/// Stream of the values of a channel. It ends when the channel is closed and empty.
pub struct Values<'a, T: CanSend> {
    next: RecvFuture<'a, T>,
}

impl<T: CanSend> Values<'_, T> {
    /// Returns the next value; `None` when the channel is closed and empty.
    ///
    /// # Errors
    /// The place of the buffer is dead, or a value could not be read.
    pub async fn next(&mut self) -> Result<Option<T>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose().map_err(Error::from)
    }
}

impl<T: CanSend> Stream for Values<'_, T> {
    type Item = std::result::Result<T, RecvError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let received = ready!(Pin::new(&mut self.next).poll(context));
        self.next.renew();
        Poll::Ready(match received {
            Err(RecvError::Closed) => None,
            received => Some(received),
        })
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("home", &self.0.end.control().id.home).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("home", &self.0.end.control().id.home).finish_non_exhaustive()
    }
}
