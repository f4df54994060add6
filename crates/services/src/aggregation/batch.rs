//! A bucket in flight: a task of its finish at the next place, which hands its items on and then acknowledges it.

use super::aggregator::Aggregator;
use isles_protocol::PlaceId;
use isles_runtime::capture::Travel;
use isles_runtime::service::{InternalSite, OwnedCapture, PartId, PartRef, call};
use isles_runtime::wire::{DecodeError, EncodeError, Reader, Writer};
use isles_runtime::{Error, Local, Place, Result};
use isles_telemetry::CounterId;
use isles_transport::{Class, HandlerId};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Number of the message that acknowledges a bucket.
pub(crate) const ITEMS_DONE: HandlerId = HandlerId(13);

/// A bucket to send.
pub(super) struct ItemBatch<'a, T> {
    pub(super) share: &'a PartRef,
    pub(super) items: &'a [T],
    /// Destination of each item; empty if all are for the receiving place, or if the items name it.
    pub(super) to: &'a [PlaceId],
}

/// A bucket that has arrived.
pub(super) struct Arrived<T: 'static> {
    // Dropped before the handle, so that the source does not wait for what dropping the handle does.
    receipt: BatchReceipt,
    aggregator: Aggregator<T>,
    items: Vec<T>,
    to: Vec<PlaceId>,
}

/// Acknowledges a bucket to the place that sent it, when dropped.
struct BatchReceipt {
    id: PartId,
    source: PlaceId,
    /// Number of its items neither applied here nor stored for the next place.
    left: usize,
}

impl Drop for BatchReceipt {
    fn drop(&mut self) {
        // Outside of any place, the run is over. A dead place waits for nothing.
        let _ = Local::try_with(|local| {
            local.add_count(CounterId::ItemsLost, self.left as u64);
            local.send(self.source, Class::Control, ITEMS_DONE, |writer| writer.put_serde(&self.id))
        });
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Travel for &ItemBatch<'_, T> {
    type Decoded = OwnedCapture<Arrived<T>>;

    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let source = Local::with(Local::here);
        to.put_serde(&source)?;
        to.put_value(self.share)?;
        let places: Vec<u32> = self.to.iter().map(|place| place.0).collect();
        to.put_values(&places)?;
        to.put_values(self.items)
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self::Decoded, DecodeError> {
        let source: PlaceId = from.take_serde()?;
        let aggregator: Aggregator<T> = from.take_value()?;
        let mut receipt = BatchReceipt { id: aggregator.id(), source, left: 0 };
        let to: Vec<u32> = from.take_value()?;
        let to = to.into_iter().map(PlaceId).collect();
        let items: Vec<T> = from.take_value()?;
        receipt.left = items.len();
        Ok(OwnedCapture::from(Arrived { receipt, aggregator, items, to }))
    }
}

/// Sends a bucket to `peer`, in the current scope of the place; returns whether it was sent.
pub(super) fn send<T>(local: &Local, peer: PlaceId, batch: &ItemBatch<'_, T>) -> bool
where
    T: Serialize + DeserializeOwned + 'static,
{
    let captures = (batch, ());
    let lost = |error: Error| error.with(|| format!("the {} items of a bucket are lost", batch.items.len()));
    call::spawn_there(local, InternalSite, peer, &captures, &lost, move |mut decoded| async move {
        let (arrived, ()): (Arrived<T>, ()) = isles_runtime::capture::Bind::bind(&mut decoded);
        arrived.forward().await
    })
}

impl<T: Serialize + DeserializeOwned + 'static> Arrived<T> {
    /// Applies the items for this place, and stores the others for the next one, even if some of them fail.
    ///
    /// # Errors
    /// The first one: the next place of an item is dead, or the function that applies items panicked.
    async fn forward(self) -> Result<()> {
        let Arrived { mut receipt, aggregator, items, to } = self;
        let to = if to.is_empty() { aggregator.targets(&items) } else { to };
        let here = Local::with(Local::here);
        aggregator.charge(to.iter().filter(|to| **to != here).count());
        if to.is_empty() {
            receipt.left = 0;
            return aggregator.apply_here(items);
        }
        let (mut arrived, mut result) = (Vec::new(), Ok(()));
        for (item, to) in items.into_iter().zip(to) {
            if to == here {
                arrived.push(item);
                continue;
            }
            match aggregator.push(Place::of(to), item).await {
                Ok(()) => receipt.left -= 1,
                Err(error) => result = result.and(Err(error)),
            }
        }
        receipt.left -= arrived.len();
        if arrived.is_empty() { result } else { result.and(aggregator.apply_here(arrived)) }
    }
}
