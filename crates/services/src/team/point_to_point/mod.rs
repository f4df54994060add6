//! Messages between two members of a team: send and receive by rank and tag, as MPI has them.
//!
//! `docs/design/messages.md` has the protocol. This file holds what programs call; [`sending`] and [`receiving`] are a
//! send and a receive under way, [`table`] the state of a place, [`header`] the bytes. Invariant: all messages of an
//! exchange go on together, so that long ones in a ring do not wait for each other.

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
/// message that it wants, so those of one sender with one tag are received in the order in which they were sent. Tasks
/// of one place may send and receive at the same time.
///
/// A message of up to 4 KiB is sent without waiting until somebody wants it; but a send waits while 256 messages of its
/// place, of any team and tag, lie unreceived at the other (128 at least can). A longer one waits until it has been
/// received, and goes straight into the memory of [`Tagged::recv_slice`]. A receive that is given up, by `select!` or
/// [`timeout`](isles_runtime::timeout), receives nothing: its message is the next one. A send that is given up has sent
/// its message or not.
///
/// # Errors
/// Of every function here:
/// - [`DeadPlace`](isles_runtime::ErrorKind::DeadPlace): the other place is dead, and nothing of it lies here. A
///   receive from any ends so when a member is dead and nothing that it wants lies here.
/// - [`Misused`](isles_runtime::ErrorKind::Misused): this place is no member; the other rank is none; the next message
///   is of another type, or a slice of another length. In these two cases it stays and is the next one.
/// - [`Undecodable`](isles_runtime::ErrorKind::Undecodable): a value refused to be written or read.
#[derive(Clone, Copy, Debug)]
pub struct Tagged<'t> {
    team: &'t Team,
    tag: u64,
}

impl Team {
    /// Messages between members that have this tag. Those of the functions of the team itself have tag 0.
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

    /// Receives a value of member `from`; see [`Tagged`].
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn recv<T: DeserializeOwned>(&self, from: usize) -> impl Future<Output = Result<T>> {
        self.tagged(0).recv(from)
    }

    /// Receives a value of any member, and its rank; see [`Tagged`].
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

    /// Receives a slice of member `from` into `into`, which is as long; see [`Tagged`].
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

    /// Sends `value` to member `to` and receives one of member `from`, both at once; see [`Tagged`].
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

    /// Sends each of the `values` to the member that `neighbors` names at the same position, and receives one of each.
    ///
    /// A collective between neighbours: who names another is named by it, as often. Two of the values are never
    /// mistaken for each other if every member calls its exchanges with each neighbour in the same order. Whom a member
    /// names is its own business: a line, a grid, a graph. As other collectives it ends with an error for all if a
    /// member gives up.
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
    /// whose slice comes into `received[i]`.
    ///
    /// # Errors
    /// As [`Tagged`] says; there are not as many slices as neighbours.
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

    /// Sends slices of plain elements to members and receives others into slices, all at once.
    ///
    /// As [`Team::neighbor_exchange_slices`], where a member may send to others than it receives of. What a member
    /// sends to another is received there by the other's exchanges, in the same order.
    ///
    /// # Errors
    /// As [`Tagged`] says, and as [`Team`] says of collectives: nobody waits for a member that has given up.
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

/// Bytes of a slice that goes in pieces, each of which needs no answer of its receiver; a longer one goes as one.
const IN_PIECES_MAX: usize = 16 * EAGER_BYTES_MAX;

/// Returns the number of elements of a slice sent at a time in an exchange; its receiver knows its length and so this,
/// too.
fn piece<T>(slice: &[T]) -> usize {
    let goes_in_pieces = (EAGER_BYTES_MAX + 1..=IN_PIECES_MAX).contains(&size_of_val(slice));
    let each = if goes_in_pieces { EAGER_BYTES_MAX / size_of::<T>() } else { slice.len() };
    each.max(1)
}

/// Groups the values by member, each group in the order given. The values of a group are sent one after the other: of
/// messages to one member that begin together, the first may give way to others of its place, and then the second
/// would overtake it.
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

    /// Receives a value of member `from`.
    ///
    /// # Errors
    /// As [`Tagged`] says.
    #[track_caller]
    pub fn recv<T: DeserializeOwned>(self, from: usize) -> impl Future<Output = Result<T>> + use<'t, T> {
        self.recv_to(from, Location::caller())
    }

    /// Receives a value of any member, and its rank.
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

    /// Receives a slice of member `from` into `into`, which is as long.
    ///
    /// # Errors
    /// As [`Tagged`] says. After an error, `into` may hold a chunk of what was sent.
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

    /// Receives a slice of any member into `into`, which is as long; gives its rank.
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

    /// Sends `value` to member `to` and receives one of member `from`, both at once.
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

    /// The member of this rank, as a member sees it.
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
