//! The buckets of one aggregator at one place, and how they leave.

use super::Held;
use super::batch::{self, ItemBatch};
use crate::aggregation::Aggregations;
use crate::table::service::Service;
use isles_protocol::PlaceId;
use isles_protocol::aggregation::{Buckets, OutgoingBucket};
use isles_runtime::service::{PartRef, Scope, call};
use isles_runtime::{Error, ErrorKind, Local, Place, Result};
use isles_telemetry::CounterId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

/// Applies items, all of which are for this place. If it panics, the number says how many are not applied.
pub(super) type ApplyItems<T> = dyn Fn(Vec<T>, &mut usize);

/// Returns the place of each item.
pub(super) type TargetItems<T> = dyn Fn(&[T]) -> Vec<PlaceId>;

/// Functions of the program over items.
pub(super) struct ItemFunctions<T> {
    pub(super) apply: Box<ApplyItems<T>>,
    /// `None` if buckets carry the places of their items.
    pub(super) targets: Option<Box<TargetItems<T>>>,
}

/// The buckets of one aggregator at one place.
pub(super) struct LocalAggregator<T> {
    buckets: RefCell<Buckets<T, Scope>>,
    functions: ItemFunctions<T>,
    /// Tasks that wait for room.
    waiting: RefCell<Vec<Waker>>,
    /// Keeps the part alive while there are items.
    keep: RefCell<Option<PartRef>>,
    itself: Weak<LocalAggregator<T>>,
    /// Modelled cost of handing on an arrived item, in core cycles.
    pub(super) forward_cycles: u64,
    /// Number of items that have left for other places, and of the buckets that carried them.
    pub(super) counts: Cell<(u64, u64)>,
}

impl<T: Serialize + DeserializeOwned + 'static> LocalAggregator<T> {
    pub(super) fn new(
        buckets: Buckets<T, Scope>,
        functions: ItemFunctions<T>,
        forward_cycles: u64,
    ) -> Rc<LocalAggregator<T>> {
        Rc::new_cyclic(|itself| LocalAggregator {
            buckets: RefCell::new(buckets),
            functions,
            waiting: RefCell::default(),
            keep: RefCell::default(),
            itself: itself.clone(),
            forward_cycles,
            counts: Cell::new((0, 0)),
        })
    }

    /// Returns the largest number of items in a bucket.
    pub(super) fn capacity(&self) -> usize {
        self.buckets.borrow().capacity()
    }

    /// Applies items, all of which are for this place.
    ///
    /// # Errors
    /// [`Panicked`](ErrorKind::Panicked): the function that applies them did; the text says how many are lost.
    pub(super) fn apply(&self, items: Vec<T>) -> Result<()> {
        let (count, mut left) = (items.len(), items.len());
        let applied = catch_unwind(AssertUnwindSafe(|| (self.functions.apply)(items, &mut left)));
        if applied.is_ok() {
            left = 0;
        }
        Local::with(|local| {
            local.add_count(CounterId::ItemsApplied, (count - left) as u64);
            local.add_count(CounterId::ItemsLost, left as u64);
        });
        let lost = || format!("{left} of {count} items of a bucket were not applied, or only in part");
        applied.map_err(|payload| Error::panicked(payload).with(lost))
    }

    /// Returns the places of items, or nothing unless the items name them.
    pub(super) fn targets(&self, items: &[T]) -> Vec<PlaceId> {
        self.functions.targets.as_ref().map_or_else(Vec::new, |targets| targets(items))
    }

    /// Stores an item if its bucket has begun and this does not fill it; otherwise returns the item.
    #[inline]
    pub(super) fn store_within(&self, to: PlaceId, item: T) -> Result<(), T> {
        let scope = Local::with(Local::scope);
        self.buckets.borrow_mut().store_within(scope, to, item)
    }

    /// Stores items while each goes into a bucket that has begun; returns the first that does not.
    #[inline]
    pub(super) fn store_while(&self, items: &mut impl Iterator<Item = (Place, T)>) -> Option<(Place, T)> {
        items.find_map(|(to, item)| self.store_within(to.id(), item).err().map(|item| (to, item)))
    }

    /// Stores the item in `item` once there is room.
    ///
    /// # Errors
    /// There is no way to `to` from here, or its next place is dead.
    pub(super) fn poll_store(
        &self,
        share: &PartRef,
        to: PlaceId,
        item: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let Some(stored) = item.take() else { return Poll::Ready(Ok(())) };
        Local::with(|local| {
            let scope = local.counting_key(local.scope()).map_or(Scope::DETACHED, Scope::counted);
            let Some(hop) = self.buckets.borrow().router().hop(to) else {
                return Poll::Ready(Err(no_route(local.here(), to)));
            };
            if local.is_dead(hop.peer) {
                return Poll::Ready(Err(Error::dead(hop.peer)));
            }
            Aggregations::of(local).is_active.set(true);
            let result = self.buckets.borrow_mut().store(scope, to, stored);
            match result {
                Ok(stored) => {
                    if stored.has_begun {
                        local.begin_in(scope);
                        Aggregations::of(local).begin(scope);
                        self.keep.borrow_mut().get_or_insert_with(|| share.clone());
                    }
                    self.send_buckets(local, stored.outgoing);
                    Poll::Ready(Ok(()))
                }
                Err(refused) => {
                    local.add_count(CounterId::AggregatorWaits, 1);
                    *item = Some(refused);
                    self.waiting.borrow_mut().push(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    /// Sends buckets, and then those that may leave after one that cannot be sent.
    fn send_buckets(&self, local: &Local, outgoing: impl IntoIterator<Item = OutgoingBucket<T, Scope>>) {
        // Sending may deliver messages, which can make the last bucket leave.
        let Some(share) = self.keep.borrow().clone() else { return };
        for outgoing_bucket in outgoing {
            let mut next = Some(outgoing_bucket);
            while let Some(outgoing_bucket) = next.take() {
                let (scope, peer) = (outgoing_bucket.key, outgoing_bucket.peer);
                let before = local.set_scope(scope);
                let sent = self.send(local, &share, outgoing_bucket);
                local.set_scope(before);
                // The bucket no longer counts as a task of its finish: its message does.
                Aggregations::of(local).end(scope);
                local.finish_task(scope, Ok(()));
                if !sent {
                    next = self.buckets.borrow_mut().acknowledged(peer).ok().flatten();
                    self.wake();
                }
            }
        }
        self.rest();
    }

    /// Sends a bucket, or spawns a task that applies it if it is for this place; `false` if it could not be sent.
    fn send(&self, local: &Local, share: &PartRef, outgoing_bucket: OutgoingBucket<T, Scope>) -> bool {
        let OutgoingBucket { peer, items, to, .. } = outgoing_bucket;
        local.add_count(CounterId::ItemsPushed, items.len() as u64);
        if peer == local.here() {
            // The handle keeps the part until all items are applied.
            let (share, here) = (share.clone(), self.itself.upgrade());
            call::spawn(async move {
                let applied = here.map_or(Ok(()), |here| here.apply(items));
                drop(share);
                applied
            });
            return true;
        }
        let (sent, left) = self.counts.get();
        self.counts.set((sent + items.len() as u64, left + 1));
        local.add_count(CounterId::BucketsSent, 1);
        let said = if self.functions.targets.is_some() { &[] } else { &to[..] };
        let is_sent = batch::send(local, peer, &ItemBatch { share, items: &items, to: said });
        if !is_sent {
            local.add_count(CounterId::ItemsLost, items.len() as u64);
        }
        self.buckets.borrow_mut().recycle(peer, items);
        is_sent
    }

    /// Releases the part if its buckets are empty.
    fn rest(&self) {
        let kept = if self.buckets.borrow().is_empty() { self.keep.borrow_mut().take() } else { None };
        drop(kept);
    }

    fn wake(&self) {
        let waiting = self.waiting.take();
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Held for LocalAggregator<T> {
    fn flush(&self, local: &Local, due: &dyn Fn(Scope) -> bool) {
        let outgoing = self.buckets.borrow_mut().flush(due);
        self.send_buckets(local, outgoing);
    }

    fn acknowledged(&self, local: &Local, peer: PlaceId) -> bool {
        let acknowledged = self.buckets.borrow_mut().acknowledged(peer);
        let Ok(outgoing_bucket) = acknowledged else { return false };
        self.wake();
        self.send_buckets(local, outgoing_bucket);
        true
    }

    fn place_died(&self, local: &Local, place: PlaceId) {
        let outgoing_bucket = self.buckets.borrow_mut().died(place);
        self.wake();
        self.send_buckets(local, outgoing_bucket);
    }

    fn waiting(&self) -> usize {
        self.waiting.borrow().len()
    }
}

/// Returns the error of an item that has no route.
fn no_route(here: PlaceId, to: PlaceId) -> Error {
    let text = format!(
        "an item at {here} for {to}: with roles, items go from the first place of a group to the last ones of a group"
    );
    Error::new(ErrorKind::Misused, text)
}
