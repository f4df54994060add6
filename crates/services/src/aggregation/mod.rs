//! Aggregation: many small items for unpredictable places travel together.
//!
//! The contents of a place's buckets, and the routes of items, are in `isles_protocol::aggregation`; here are the
//! handles of a program ([`Aggregator`], [`Gatherer`]), the tasks that carry buckets, and the service that sends
//! buckets which nothing fills any more. A bucket with items counts as a live task of its finish, so the finish does
//! not end before it; once only buckets of the finish live at this place, they are sent. `docs/design/aggregation.md`
//! has the protocol. Invariant: an item is counted by its finish from its push until it is applied.

mod aggregator;
pub(crate) mod batch;
mod gatherer;
mod local_aggregator;
mod options;

pub use aggregator::Aggregator;
pub use gatherer::Gatherer;
pub use options::AggregatorOptions;

use crate::table::service::Service;
use isles_protocol::PlaceId;
use isles_protocol::finish::Key;
use isles_protocol::ordered::OrderedMap;
use isles_runtime::Local;
use isles_runtime::limits::{GAP_MAX, QUIET_GAPS, REST};
use isles_runtime::service::{Inquiry, PartId, Refused, Scope, ScopeKind};
use isles_runtime::wire::Reader;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

/// Operations that the service needs on the buckets of one aggregator at its place, whatever the type of their items.
trait Held {
    /// Sends the buckets whose scope is `due`.
    fn flush(&self, local: &Local, due: &dyn Fn(Scope) -> bool);

    /// Handles the acknowledgement of a bucket by `peer`; `false` if none was in flight.
    fn acknowledged(&self, local: &Local, peer: PlaceId) -> bool;

    /// Handles the death of `place`.
    fn place_died(&self, local: &Local, place: PlaceId);

    /// Returns the number of tasks that wait for room here.
    fn waiting(&self) -> usize;
}

/// The part of an aggregator at one place.
struct AggregatorPart {
    held: Rc<dyn Held>,
    /// The same object, by its type.
    here: Rc<dyn Any>,
}

/// The aggregators of one place.
pub(crate) struct Aggregations {
    all: RefCell<Vec<Weak<dyn Held>>>,
    /// Number of non-empty buckets of each finish here.
    buckets: RefCell<OrderedMap<Key, u64>>,
    /// Number of non-empty buckets.
    held: Cell<usize>,
    /// True if a bucket began, left or arrived since [`Service::run_due`] last looked.
    is_active: Cell<bool>,
    /// Time at which [`Service::run_due`] saw the last such event.
    active_at: Cell<Duration>,
    /// Moving average of the time between two such events.
    usual_gap: Cell<Duration>,
    /// Time at which buckets are sent, if nothing happens before.
    next_flush: Cell<Option<Duration>>,
}

impl Aggregations {
    fn register(&self, held: &Rc<dyn Held>) {
        let mut all = self.all.borrow_mut();
        all.retain(|known| known.strong_count() > 0);
        all.push(Rc::downgrade(held));
    }

    /// Counts a new bucket that belongs to `scope`.
    fn begin(&self, scope: Scope) {
        self.held.set(self.held.get() + 1);
        if let ScopeKind::Counted(key) = scope.kind() {
            *self.buckets.borrow_mut().get_or_default(key) += 1;
        }
    }

    /// Subtracts a bucket of `scope` that has left.
    fn end(&self, scope: Scope) {
        self.held.set(self.held.get() - 1);
        if let ScopeKind::Counted(key) = scope.kind() {
            let mut buckets = self.buckets.borrow_mut();
            if let Some(count) = buckets.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    buckets.remove(key);
                }
            }
        }
    }

    /// Returns the aggregators that are still in use.
    fn in_use(&self) -> Vec<Rc<dyn Held>> {
        self.all.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns `true` if only buckets of the finish of `scope` live here; always for detached work, which is not
    /// counted.
    fn is_all_in_buckets(&self, local: &Local, scope: Scope) -> bool {
        let ScopeKind::Counted(key) = scope.kind() else { return true };
        self.buckets.borrow().get(key).is_some_and(|count| local.live_tasks(key) == *count)
    }
}

impl Service for Aggregations {
    const ROW: usize = 5;

    fn new(_here: PlaceId, _places: u32) -> Self {
        Aggregations {
            all: RefCell::default(),
            buckets: RefCell::default(),
            held: Cell::new(0),
            is_active: Cell::new(false),
            active_at: Cell::new(Duration::ZERO),
            usual_gap: Cell::new(Duration::ZERO),
            next_flush: Cell::new(None),
        }
    }

    fn place_died(&self, local: &Local, place: PlaceId) {
        self.in_use().iter().for_each(|held| held.place_died(local, place));
    }

    fn explain(&self, _inquiry: &Inquiry<'_>) -> Vec<String> {
        let waiting: usize = self.in_use().iter().map(|held| held.waiting()).sum();
        if waiting == 0 {
            return Vec::new();
        }
        vec![format!("{waiting} tasks wait for room in an aggregator")]
    }

    fn next_due(&self) -> Option<Duration> {
        self.next_flush.get()
    }

    #[inline]
    fn run_due(&self, local: &Local) -> bool {
        self.held.get() > 0 && self.flush_quiet(local)
    }
}

impl Aggregations {
    /// Sends buckets if nothing has happened for longer than usual; returns whether one left.
    ///
    /// Buckets of a finish with live tasks here are sent after [`REST`], because the tasks may wait for the items in
    /// them.
    fn flush_quiet(&self, local: &Local) -> bool {
        let now = local.clock().now();
        if self.is_active.replace(false) {
            let gap = now.saturating_sub(self.active_at.replace(now)).min(GAP_MAX);
            self.usual_gap.set((self.usual_gap.get() * 7 + gap) / 8);
            self.next_flush.set(Some(now + self.usual_gap.get() * QUIET_GAPS));
            return false;
        }
        if self.next_flush.get().is_some_and(|at| now < at) {
            return false;
        }
        let is_resting = now.saturating_sub(self.active_at.get()) >= REST;
        let before = self.held.get();
        let due = |scope| is_resting || self.is_all_in_buckets(local, scope);
        self.in_use().iter().for_each(|held| held.flush(local, &due));
        let left = self.held.get();
        self.next_flush.set((left > 0 && !is_resting).then(|| self.active_at.get() + REST));
        left < before
    }
}

/// Receives the acknowledgement of a bucket.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let id: PartId = reader.take_serde()?;
    let part = local.part_value(id);
    // Without a handle here, nothing waits.
    let Some(part) = part else { return Ok(()) };
    let known =
        part.downcast_ref::<AggregatorPart>().is_some_and(|part| part.held.acknowledged(local, source));
    if known { Ok(()) } else { Err(Refused::of_service("it acknowledges items that it did not get")) }
}
