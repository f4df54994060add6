//! Making a part at all places, or at those of a team, and folding its values into one.

use super::{PartId, PartRef};
use crate::call::function::Function;
use crate::call::site::{INTERNAL, Site, SiteCell};
use crate::capture::form::OwnedCapture;
use crate::capture::{Bind, Ship, Travel, roundtrip_check};
use crate::error::{Error, ErrorKind, Result};
use crate::join::join_all;
use crate::local::Local;
use crate::members::Members;
use crate::place::Place;
use crate::task::coop::{OPERATION, cooperate};
use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use crate::{call, finish};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;

/// The site of bodies that the runtime itself sends.
#[derive(Clone, Copy)]
pub struct InternalSite;

impl Site for InternalSite {
    const LOCATION: &'static str = "isles";
    fn cell() -> &'static SiteCell {
        &INTERNAL
    }
}

/// A capture of the runtime itself: any value that serde can encode.
pub struct SerdeCapture<'a, T>(pub &'a T);

impl<T: Serialize + DeserializeOwned> Travel for SerdeCapture<'_, T> {
    type Decoded = OwnedCapture<T>;

    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_value(self.0)
    }

    fn decode(from: &mut Reader<'_>) -> Result<OwnedCapture<T>, DecodeError> {
        Ok(OwnedCapture::from(from.take_value::<T>()?))
    }
}

/// A result of the runtime itself.
pub struct SerdeReturn<T>(pub T);

impl<T: Serialize + DeserializeOwned> Ship for SerdeReturn<T> {
    type Value = T;

    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_value(&self.0)
    }

    fn decode(from: &mut Reader<'_>) -> Result<T, DecodeError> {
        from.take_value()
    }
}

/// Makes a part at each of `members`: here with `value`, elsewhere with the result of `make` on a copy of `seed`.
///
/// Costs two messages a place; the seed goes down a binary tree of places. `make` captures nothing: a function of the
/// program travels in the seed, as a `Function`. `caller` is the line of the program that waits.
pub async fn replicate<A, T, M>(
    caller: &'static Location<'static>,
    members: Members,
    seed: &A,
    value: Rc<T>,
    make: M,
) -> Result<PartRef>
where
    A: Serialize + DeserializeOwned,
    T: 'static,
    M: Fn(A) -> T + Copy,
{
    if roundtrip_check::SHIPMENTS_MAX > 0 {
        roundtrip_check::value(seed)?;
    }
    let here = Local::with(Local::here);
    let root = members.rank_of(here).ok_or_else(|| {
        let text = format!(
            "{here} cannot make a part of a team of which it is not a member; only a \
             member can"
        );
        Error::new(ErrorKind::Misused, text)
    })?;
    let share = PartRef::make(value as Rc<dyn Any>, Some(members.clone()));
    let tree = ReplicationTree { id: share.id(), members, root: root as u32 };
    finish::finish_at(Some(caller), async {
        send_down(&tree, seed, 1..tree.members.len() as u32, make);
    })
    .await?;
    Ok(share)
}

/// A part on its way to its members, which are numbered from the maker, the root.
#[derive(Serialize, Deserialize)]
struct ReplicationTree {
    id: PartId,
    members: Members,
    /// The rank of the maker.
    root: u32,
}

impl ReplicationTree {
    fn place(&self, offset: u32) -> Place {
        Place::of(self.members.member((self.root + offset) as usize % self.members.len()))
    }
}

/// Sends the seed to the first place of each half of `range`, which sends it to the rest of that half.
fn send_down<A, T, M>(tree: &ReplicationTree, seed: &A, range: Range<u32>, make: M)
where
    A: Serialize + DeserializeOwned,
    T: 'static,
    M: Fn(A) -> T + Copy,
{
    for half in halves(range) {
        let to = tree.place(half.start);
        let rest = half.start + 1..half.end;
        call::spawn_at(
            InternalSite,
            to,
            (SerdeCapture(tree), (SerdeCapture(&rest), SerdeCapture(seed))),
            move |mut decoded| async move {
                let (tree, (rest, seed)): (ReplicationTree, _) = decoded.bind();
                if !tree.members.are_of(Local::with(Local::places)) {
                    return Err(Error::new(ErrorKind::Undecodable, "a part for places that are not there"));
                }
                send_down(&tree, &seed, rest, make);
                let value = Rc::new(make(seed));
                Local::with(|local| local.parts.borrow_mut().place(tree.id, value, tree.members));
                Ok(())
            },
        );
    }
}

fn halves(range: Range<u32>) -> impl Iterator<Item = Range<u32>> {
    let middle = range.start + range.len() as u32 / 2;
    [range.start..middle, middle..range.end].into_iter().filter(|half| !half.is_empty())
}

/// Folds the values of a part at all its members into one, in their order.
///
/// `read` returns a place's own value and captures nothing; `merge` combines two, the left one of the lower places. The
/// tree of merges depends only on the number of places.
pub async fn fold<T, V, R>(share: &PartRef, read: R, merge: fn(V, V) -> V) -> Result<V>
where
    T: 'static,
    V: Serialize + DeserializeOwned,
    R: Fn(&T) -> Result<V> + Copy,
{
    let members = share.members()?.ok_or_else(not_here)?;
    let all = 0..members.len() as u32;
    cooperate(OPERATION, fold_range::<T, V, R>(share.clone(), members, all, read, merge)).await
}

/// Folds the values of the members with these ranks at the first one.
async fn fold_range<T, V, R>(
    share: PartRef,
    members: Members,
    range: Range<u32>,
    read: R,
    merge: fn(V, V) -> V,
) -> Result<V>
where
    T: 'static,
    V: Serialize + DeserializeOwned,
    R: Fn(&T) -> Result<V> + Copy,
{
    let first = members.member(range.start as usize);
    if first != Local::with(Local::here) {
        let to = Place::of(first);
        let wanted = (share, range.start, range.end, Function(merge));
        return call::at_there(
            InternalSite,
            to,
            (SerdeCapture(&wanted), ()),
            move |mut decoded| async move {
                let ((share, first, end, Function(merge)), ()) = decoded.bind();
                let members = share.members()?.ok_or_else(not_here)?;
                Box::pin(fold_range::<T, V, R>(share, members, first..end, read, merge))
                    .await
                    .map(SerdeReturn)
            },
        )
        .await;
    }
    let mut value = read_here(&share, read)?;
    let below = halves(range.start + 1..range.end)
        .map(|half| Box::pin(fold_range::<T, V, R>(share.clone(), members.clone(), half, read, merge)));
    for other in join_all(below.collect()).await {
        value = merge(value, other?);
    }
    Ok(value)
}

fn not_here() -> Error {
    Error::new(ErrorKind::Misused, "the part is not at this place")
}

fn read_here<T: 'static, V: Serialize + DeserializeOwned>(
    share: &PartRef,
    read: impl Fn(&T) -> Result<V>,
) -> Result<V> {
    let value = share.value::<T>().ok_or_else(not_here)?;
    let value = read(&value)?;
    if roundtrip_check::SHIPMENTS_MAX > 0 {
        roundtrip_check::value(&value)?;
    }
    Ok(value)
}
