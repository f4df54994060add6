//! Messages between two members of a team: send and receive by rank and tag, as MPI has them.
//!
//! `docs/design/messages.md` has the protocol. This file holds what programs call; [`sending`] and [`receiving`] are a
//! send and a receive in progress, [`table`] the state of a place, [`header`] the bytes. Invariant: all messages of an
//! exchange progress together, so that long ones in a ring do not wait for each other.

pub(crate) mod header;
mod receiving;
mod sending;
pub(crate) mod table;

pub(super) use table::forget_team;
pub(crate) use table::{MessageTable, receive};

use super::Team;
use super::ongoing::misused;
use bytemuck::NoUninit;
use header::TAG_BITS;
use isles_protocol::PlaceId;
use isles_runtime::capture::Element;
use isles_runtime::service::coop::FastPath;
use isles_runtime::service::try_join;
use isles_runtime::{Result, try_join_all};
use receiving::ReceiveRequest;
use sending::{Destination, EAGER_BYTES_MAX};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::panic::Location;

/// The tag of exchanges with neighbours, which no program can choose.
const NEIGHBOR_TAG: u64 = 1 << TAG_BITS;

/// Messages between the members of a team that have one tag; see [`Team::tagged`].
///
/// A message has a sender, a receiver and a tag. A receive names the sender, or takes from any; it gets the oldest
/// message that it wants, so those of one sender with one tag are received in the order of their sends. Tasks of one
/// place may send and receive at the same time.
///
/// A message of up to 4 KiB is sent without waiting for its receive; but a send waits while 256 messages of its place,
/// of any team and tag, lie unreceived at the other (128 can always be sent). The send of a longer one waits until it
/// is received, and the data go straight into the memory of [`Tagged::recv_slice`]. A receive that is given up, by
/// `select!` or [`timeout`](isles_runtime::timeout), receives nothing: the next receive gets its message. A send that
/// is given up may or may not have sent its message.
///
/// # Errors
/// Of every function here:
/// - [`DeadPlace`](isles_runtime::ErrorKind::DeadPlace): the other place is dead, and no message of it is left here. A
///   receive from any member ends with this error when a member is dead and no matching message is left here.
/// - [`Misused`](isles_runtime::ErrorKind::Misused): this place is not a member; the other rank does not exist; the
///   next message has another type, or is a slice of another length. In the last two cases the message stays next.
/// - [`Undecodable`](isles_runtime::ErrorKind::Undecodable): a value refused to be written or read.
#[derive(Clone, Copy, Debug)]
pub struct Tagged<'t> {
    team: &'t Team,
    tag: u64,
}

impl Team {
    /// Returns the messages between members that have this tag. The functions of the team itself use tag 0.
    ///
    /// ```ignore
    /// let (work, results) = (team.tagged(1), team.tagged(2));
    /// if team.rank() == 0 {
    ///     work.send(1, &unit).await?;
    ///     let (rank, result) = results.recv_any::<f64>().await?;
    /// }
    /// ```
    pub fn tagged(&self, tag: u32) -> Tagged<'_> {
        Tagged { team: self, tag: u64::from(tag) }
    }

    /// Sends `value` to member `to`; see [`Tagged`].
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn send<T: Serialize + ?Sized>(&self, to: usize, value: &T) -> impl Future<Output = Result<()>> {
        self.tagged(0).send(to, value)
    }

    /// Receives a value from member `from`; see [`Tagged`].
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn recv<T: DeserializeOwned>(&self, from: usize) -> impl Future<Output = Result<T>> {
        self.tagged(0).recv(from)
    }

    /// Receives a value from any member, and returns it with the sender's rank; see [`Tagged`].
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn recv_any<T: DeserializeOwned>(&self) -> impl Future<Output = Result<(usize, T)>> {
        self.tagged(0).recv_any()
    }

    /// Sends a slice of plain elements to member `to`; see [`Tagged`].
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn send_slice<T: Element>(&self, to: usize, slice: &[T]) -> impl Future<Output = Result<()>> {
        self.tagged(0).send_slice(to, slice)
    }

    /// Receives a slice from member `from` into `into`, which has the same length; see [`Tagged`].
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn recv_slice<'a, T: Element>(
        &'a self,
        from: usize,
        into: &'a mut [T],
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        self.tagged(0).recv_slice(from, into)
    }

    /// Sends `value` to member `to` and receives a value from member `from`, concurrently; see [`Tagged`].
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn send_recv<T: Serialize, R: DeserializeOwned>(
        &self,
        to: usize,
        value: &T,
        from: usize,
    ) -> impl Future<Output = Result<R>> {
        self.tagged(0).send_recv(to, value, from)
    }

    /// Sends each of the `values` to the member that `neighbors` names at the same position, and receives one from
    /// each.
    ///
    /// A collective between neighbours: if one member names another, that one names it, and as often. Values are never
    /// confused if every member calls its exchanges with each neighbour in the same order. Members choose their
    /// neighbours freely: a line, a grid, a graph. As other collectives it ends with an error at all members if one
    /// gives up.
    ///
    /// # Errors
    /// As [`Tagged`] says, and as [`Team`] says of collectives; the two slices differ in length.
    #[track_caller]
    pub fn neighbor_exchange<T: Serialize + DeserializeOwned>(
        &self,
        neighbors: &[usize],
        values: &[T],
    ) -> impl Future<Output = Result<Vec<T>>> {
        let tagged = Tagged { team: self, tag: NEIGHBOR_TAG };
        let caller = Location::caller();
        self.state.unless_broken(async move {
            check_len(neighbors, values.len())?;
            let to = by_member(neighbors.iter().copied().zip(values));
            let from = by_member(neighbors.iter().copied().zip(0..));
            let send = to.into_iter().map(async |(to, values)| {
                for value in values {
                    tagged.send_from(to, value, caller).await?;
                }
                Ok(())
            });
            let receive = from.into_iter().map(async |(from, positions)| {
                let mut received = Vec::with_capacity(positions.len());
                for position in positions {
                    received.push((position, tagged.recv_to(from, caller).await?));
                }
                Ok(received)
            });
            let received = try_join(try_join_all(send.collect()), try_join_all(receive.collect())).await?;
            let mut received: Vec<(usize, T)> = received.into_iter().flatten().collect();
            received.sort_unstable_by_key(|(position, _)| *position);
            Ok(received.into_iter().map(|(_, value)| value).collect())
        })
    }

    /// As [`Team::neighbor_exchange`], with slices of plain elements: `sent[i]` goes to the member `neighbors[i]`,
    /// whose slice is received into `received[i]`.
    ///
    /// # Errors
    /// As [`Tagged`] says; there is not one slice for each neighbour.
    #[track_caller]
    pub fn neighbor_exchange_slices<T: Element>(
        &self,
        neighbors: &[usize],
        sent: &[&[T]],
        received: &mut [&mut [T]],
    ) -> impl Future<Output = Result<()>> {
        let caller = Location::caller();
        self.state.unless_broken(async move {
            check_len(neighbors, sent.len())?;
            check_len(neighbors, received.len())?;
            let sent = neighbors.iter().copied().zip(sent.iter().copied());
            let received = neighbors.iter().copied().zip(received.iter_mut().map(|into| &mut **into));
            self.exchange_tagged_slices(sent, received, caller).await
        })
    }

    /// Sends slices of plain elements to members and receives slices from members, all concurrently.
    ///
    /// As [`Team::neighbor_exchange_slices`], but a member may send to others than it receives from. The exchanges of a
    /// member receive what others send to it, in the order of their sends.
    ///
    /// # Errors
    /// As [`Tagged`] says, and as [`Team`] says of collectives: no member waits for one that has given up.
    #[track_caller]
    pub fn exchange_slices<'a, T: Element>(
        &'a self,
        sent: impl IntoIterator<Item = (usize, &'a [T])> + 'a,
        received: impl IntoIterator<Item = (usize, &'a mut [T])> + 'a,
    ) -> impl Future<Output = Result<()>> + 'a {
        let sent =
            sent.into_iter().flat_map(|(to, slice)| slice.chunks(piece(slice)).map(move |part| (to, part)));
        let received = received.into_iter().flat_map(|(from, into)| {
            let each = piece(into);
            into.chunks_mut(each).map(move |part| (from, part))
        });
        self.state.unless_broken(self.exchange_tagged_slices(sent, received, Location::caller()))
    }

    async fn exchange_tagged_slices<'a, T: Element>(
        &self,
        sent: impl IntoIterator<Item = (usize, &'a [T])>,
        received: impl IntoIterator<Item = (usize, &'a mut [T])>,
        caller: &'static Location<'static>,
    ) -> Result<()> {
        let tagged = Tagged { team: self, tag: NEIGHBOR_TAG };
        let sent = by_member(sent).into_iter().map(async |(to, slices)| {
            for slice in slices {
                tagged.send_slice_from(to, slice, caller).await?;
            }
            Ok(())
        });
        let received = by_member(received).into_iter().map(async |(from, slices)| {
            for into in slices {
                tagged.recv_slice_to(from, into, caller).await?;
            }
            Ok(())
        });
        try_join(try_join_all(sent.collect()), try_join_all(received.collect())).await.map(drop)
    }
}

/// Length up to which a slice is sent in eager pieces, in bytes; a longer one is sent whole.
const IN_PIECES_MAX: usize = 16 * EAGER_BYTES_MAX;

/// Returns the number of elements that an exchange sends at a time; the receiver knows the length of the slice, and so
/// this number.
fn piece<T>(slice: &[T]) -> usize {
    let goes_in_pieces = (EAGER_BYTES_MAX + 1..=IN_PIECES_MAX).contains(&size_of_val(slice));
    let each = if goes_in_pieces { EAGER_BYTES_MAX / size_of::<T>() } else { slice.len() };
    each.max(1)
}

/// Groups the values by member, each group in the given order. The values of a group are sent one after the other: of
/// two sends to one member that start together, the first may yield to other tasks of its place, and the second
/// overtake it.
fn by_member<V>(all: impl IntoIterator<Item = (usize, V)>) -> Vec<(usize, Vec<V>)> {
    let mut grouped: Vec<(usize, Vec<V>)> = Vec::new();
    let mut all: Vec<(usize, V)> = all.into_iter().collect();
    all.sort_by_key(|(member, _)| *member);
    for (member, value) in all {
        match grouped.last_mut() {
            Some((last, values)) if *last == member => values.push(value),
            _ => grouped.push((member, vec![value])),
        }
    }
    grouped
}

fn check_len(neighbors: &[usize], len: usize) -> Result<()> {
    match len == neighbors.len() {
        true => Ok(()),
        false => Err(misused(format_args!("{len} values for {} neighbors", neighbors.len()))),
    }
}

impl<'t> Tagged<'t> {
    /// Sends `value` to member `to`.
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn send<T: Serialize + ?Sized>(
        self,
        to: usize,
        value: &T,
    ) -> impl Future<Output = Result<()>> + use<'_, 't, T> {
        self.send_from(to, value, Location::caller())
    }

    /// Receives a value from member `from`.
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn recv<T: DeserializeOwned>(self, from: usize) -> impl Future<Output = Result<T>> + use<'t, T> {
        self.recv_to(from, Location::caller())
    }

    /// Receives a value from any member, and returns it with the sender's rank.
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn recv_any<T: DeserializeOwned>(self) -> impl Future<Output = Result<(usize, T)>> + use<'t, T> {
        let caller = Location::caller();
        async move {
            let (source, value) = self.request(None, caller)?.value().await?;
            Ok((self.rank_of(source)?, value))
        }
    }

    /// Sends a slice of plain elements to member `to`.
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn send_slice<T: NoUninit>(
        self,
        to: usize,
        slice: &[T],
    ) -> impl Future<Output = Result<()>> + use<'_, 't, T> {
        self.send_slice_from(to, slice, Location::caller())
    }

    /// Receives a slice from member `from` into `into`, which has the same length.
    ///
    /// # Errors
    /// As [`Tagged`] says. After an error, `into` may hold a part of what was sent.
    #[track_caller]
    pub fn recv_slice<'a, T: Element>(
        self,
        from: usize,
        into: &'a mut [T],
    ) -> impl Future<Output = Result<()>> + use<'a, 't, T>
    where
        't: 'a,
    {
        self.recv_slice_to(from, into, Location::caller())
    }

    /// Receives a slice from any member into `into`, which has the same length; returns the sender's rank.
    ///
    /// # Errors
    /// As [`Tagged::recv_slice`] says.
    #[track_caller]
    pub fn recv_slice_any<'a, T: Element>(
        self,
        into: &'a mut [T],
    ) -> impl Future<Output = Result<usize>> + use<'a, 't, T>
    where
        't: 'a,
    {
        let (caller, mut into) = (Location::caller(), Some(into));
        FastPath::new(move || {
            let into = into.take().unwrap_or_default();
            self.request(None, caller)?.slice(into, move |source| self.rank_of(source))
        })
    }

    /// Sends `value` to member `to` and receives a value from member `from`, concurrently.
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn send_recv<T: Serialize, R: DeserializeOwned>(
        self,
        to: usize,
        value: &T,
        from: usize,
    ) -> impl Future<Output = Result<R>> + use<'_, 't, T, R> {
        let caller = Location::caller();
        try_join(self.send_from(to, value, caller), self.recv_to(from, caller))
    }

    async fn send_from<T: Serialize + ?Sized>(
        self,
        to: usize,
        value: &T,
        caller: &'static Location<'static>,
    ) -> Result<()> {
        self.destination(to, caller)?.send_value(value).await
    }

    async fn recv_to<T: DeserializeOwned>(
        self,
        from: usize,
        caller: &'static Location<'static>,
    ) -> Result<T> {
        Ok(self.request(Some(from), caller)?.value().await?.1)
    }

    #[inline]
    fn send_slice_from<'a, T: NoUninit>(
        self,
        to: usize,
        slice: &'a [T],
        caller: &'static Location<'static>,
    ) -> impl Future<Output = Result<()>> + use<'a, 't, T> {
        FastPath::new(move || self.destination(to, caller)?.send_slice(slice))
    }

    #[inline]
    fn recv_slice_to<'a, T: Element>(
        self,
        from: usize,
        into: &'a mut [T],
        caller: &'static Location<'static>,
    ) -> impl Future<Output = Result<()>> + use<'a, 't, T>
    where
        't: 'a,
    {
        let mut into = Some(into);
        FastPath::new(move || {
            self.request(Some(from), caller)?.slice(into.take().unwrap_or_default(), |_| Ok(()))
        })
    }

    #[inline]
    fn destination(&self, to: usize, caller: &'static Location<'static>) -> Result<Destination> {
        Ok(Destination { team: self.team.state.id, tag: self.tag, to: self.member(to)?, caller })
    }

    #[inline]
    fn request(&self, from: Option<usize>, caller: &'static Location<'static>) -> Result<ReceiveRequest<'t>> {
        let source = match from {
            Some(from) => Some(self.member(from)?),
            None => {
                self.team.state.check_membership()?;
                None
            }
        };
        Ok(ReceiveRequest { state: &self.team.state, tag: self.tag, source, caller })
    }

    /// Returns the member with this rank; fails if this place is no member or the rank does not exist.
    #[inline]
    fn member(&self, rank: usize) -> Result<PlaceId> {
        self.team.state.check_membership()?;
        let size = self.team.size();
        if rank >= size {
            return Err(misused(format_args!("rank {rank} of a team of {size}")));
        }
        Ok(self.team.state.members().member(rank))
    }

    fn rank_of(&self, source: PlaceId) -> Result<usize> {
        let rank = self.team.state.members().rank_of(source);
        rank.ok_or_else(|| misused(format_args!("{source} sent a message but is not a member of the team")))
    }
}
