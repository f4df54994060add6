//! Making a part on all places, and folding it back into one value.

use super::{PartId, PartRef};
use crate::call::function::Function;
use crate::call::site::{INTERNAL, Site, SiteCell};
use crate::capture::form::OwnedCapture;
use crate::capture::{Land, Ship, Travel, roundtrip_check};
use crate::error::{Error, ErrorKind, Result};
use crate::join::join_all;
use crate::local::Local;
use crate::place::Place;
use crate::task::coop::{OPERATION, cooperate};
use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use crate::{call, finish};
use isles_protocol::PlaceId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;

/// The site of bodies that the runtime sends itself.
#[derive(Clone, Copy)]
pub(crate) struct InternalSite;

impl Site for InternalSite {
    const LOCATION: &'static str = "isles";
    fn cell() -> &'static SiteCell {
        &INTERNAL
    }
}

/// A capture of the runtime itself: any value that serde can carry.
pub(crate) struct SerdeCapture<'a, T>(pub(crate) &'a T);

impl<T: Serialize + DeserializeOwned> Travel for SerdeCapture<'_, T> {
    type Landed = OwnedCapture<T>;

    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_value(self.0)
    }

    fn decode(from: &mut Reader<'_>) -> Result<OwnedCapture<T>, DecodeError> {
        Ok(OwnedCapture::from(from.take_value::<T>()?))
    }
}

/// A result of the runtime itself.
pub(crate) struct SerdeReturn<T>(pub(crate) T);

impl<T: Serialize + DeserializeOwned> Ship for SerdeReturn<T> {
    type Value = T;

    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_value(&self.0)
    }

    fn decode(from: &mut Reader<'_>) -> Result<T, DecodeError> {
        from.take_value()
    }
}

/// Makes a part on every place: here of `value`, elsewhere of what `make` makes of a copy of `seed`.
///
/// Costs two messages a place; the seed goes down a binary tree of places. `make` captures nothing: what a program
/// hands over travels in the seed, as a [`Function`]. `caller` is the line of the program that waits for it.
pub(crate) async fn replicate<A, T, M>(
    caller: &'static Location<'static>,
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
    let share = PartRef::make(value as Rc<dyn Any>, true);
    let (places, here) = Local::with(|local| (local.places(), local.here().0));
    finish::finish_at(Some(caller), async {
        // Places are numbered from here, so that the maker is the root of the tree.
        send_down(share.id(), seed, here, 1..places, make);
    })
    .await?;
    Ok(share)
}

/// Sends the seed to the first place of each half of `range`, which sends it on to the rest of that half.
fn send_down<A, T, M>(id: PartId, seed: &A, root: u32, range: Range<u32>, make: M)
where
    A: Serialize + DeserializeOwned,
    T: 'static,
    M: Fn(A) -> T + Copy,
{
    for half in halves(range) {
        let to = place_from(root, half.start);
        let rest = (id, root, half.start + 1, half.end);
        call::spawn_at(
            InternalSite,
            to,
            (SerdeCapture(&rest), SerdeCapture(seed)),
            move |mut landed| async move {
                let ((id, root, first, end), seed) = landed.bind();
                send_down(id, &seed, root, first..end, make);
                let value = Rc::new(make(seed));
                Local::with(|local| local.parts.borrow_mut().place(id, value));
                Ok(())
            },
        );
    }
}

fn place_from(root: u32, offset: u32) -> Place {
    Place::of(PlaceId((root + offset) % Local::with(Local::places)))
}

fn halves(range: Range<u32>) -> impl Iterator<Item = Range<u32>> {
    let middle = range.start + range.len() as u32 / 2;
    [range.start..middle, middle..range.end].into_iter().filter(|half| !half.is_empty())
}

/// Folds the values of a part on all places into one, in the order of the places.
///
/// `read` gives a place's own value and captures nothing; `merge` puts two together, the left one of the lower
/// places. The tree of merges depends on the number of places only, whoever asks.
pub(crate) async fn fold<T, V, R>(share: &PartRef, read: R, merge: fn(V, V) -> V) -> Result<V>
where
    T: 'static,
    V: Serialize + DeserializeOwned,
    R: Fn(&T) -> Result<V> + Copy,
{
    let places = Local::with(Local::places);
    cooperate(OPERATION, fold_range::<T, V, R>(share.clone(), 0..places, read, merge)).await
}

/// Folds the values of the places of `range` at its first one.
async fn fold_range<T, V, R>(share: PartRef, range: Range<u32>, read: R, merge: fn(V, V) -> V) -> Result<V>
where
    T: 'static,
    V: Serialize + DeserializeOwned,
    R: Fn(&T) -> Result<V> + Copy,
{
    if range.start != Local::with(Local::here).0 {
        let to = Place::of(PlaceId(range.start));
        let wanted = (share, range.start, range.end, Function(merge));
        return call::at_there(InternalSite, to, (SerdeCapture(&wanted), ()), move |mut landed| async move {
            let ((share, first, end, Function(merge)), ()) = landed.bind();
            Box::pin(fold_range::<T, V, R>(share, first..end, read, merge)).await.map(SerdeReturn)
        })
        .await;
    }
    let mut value = read_here(&share, read)?;
    let below = halves(range.start + 1..range.end)
        .map(|half| Box::pin(fold_range::<T, V, R>(share.clone(), half, read, merge)));
    for other in join_all(below.collect()).await {
        value = merge(value, other?);
    }
    Ok(value)
}

fn read_here<T: 'static, V: Serialize + DeserializeOwned>(
    share: &PartRef,
    read: impl Fn(&T) -> Result<V>,
) -> Result<V> {
    let value =
        share.value::<T>().ok_or_else(|| Error::new(ErrorKind::Misused, "the part is not at this place"))?;
    let value = read(&value)?;
    if roundtrip_check::SHIPMENTS_MAX > 0 {
        roundtrip_check::value(&value)?;
    }
    Ok(value)
}
