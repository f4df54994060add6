//! The handle of an aggregator.

use super::local_aggregator::{ItemFunctions, LocalAggregator, TargetItems};
use super::{AggregatorOptions, AggregatorPart, Held};
use crate::aggregation::Aggregations;
use crate::table::service::Service;
use isles_protocol::PlaceId;
use isles_protocol::aggregation::{Buckets, Router};
use isles_runtime::capture::Handle;
use isles_runtime::service::coop::{CALL, cooperate};
use isles_runtime::service::{Members, PartId, PartRef, call, replicate};
use isles_runtime::{Cycles, Error, ErrorKind, Local, Place, PlaceLocal, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::Any;
use std::future::poll_fn;
use std::panic::Location;
use std::rc::Rc;

/// Carries small items to places and applies them there, many in one message.
///
/// An `at!` or a `spawn_at!` costs a message each; a [`push`](Aggregator::push) costs a store into a bucket. A bucket
/// leaves when it is full, or when nothing else of the enclosing finish lives at the place; the finish ends when every
/// item is applied. Items of one place for another may be applied in any order.
///
/// ```ignore
/// let table = PlaceLocal::new(|| vec![0_u64; 1 << 20]).await?;
/// let updates = Aggregator::new(&table, |table, (at, value): (u32, u64)| table[at as usize] ^= value).await?;
/// finish(async {
///     for place in places() {
///         spawn_at!(place, {
///             for (owner, at, value) in stream() {
///                 updates.push(owner, (at, value)).await?;
///             }
///         });
///     }
/// })
/// .await?;
/// ```
///
/// The method is that of Garg and Sabharwal, "Software routing and aggregation of messages to optimize the performance
/// of HPCC Randomaccess benchmark" (SC 2006).
pub struct Aggregator<T: 'static> {
    here: Rc<LocalAggregator<T>>,
    share: PartRef,
}

impl<T: Serialize + DeserializeOwned + 'static> Aggregator<T> {
    /// Makes an aggregator; `apply` applies each item to the instance of `state` at the item's place, one at a time.
    ///
    /// `apply` runs at each place, so it captures nothing. It runs with the instance locked, so it fails while a task
    /// holds a guard of the instance across an `await`. If it panics, the finish ends with that error, which says how
    /// many items are lost: this one, and those behind it in its bucket.
    ///
    /// # Errors
    /// A place is dead.
    #[track_caller]
    pub fn new<S, F>(state: &PlaceLocal<S>, apply: F) -> impl Future<Output = Result<Self>>
    where
        S: 'static,
        F: Fn(&mut S, T) + Copy + 'static,
    {
        Aggregator::with(AggregatorOptions::default(), state, apply)
    }

    /// As [`Aggregator::new`], with `options`.
    ///
    /// # Errors
    /// As for [`Aggregator::new`]; [`Misused`](ErrorKind::Misused): the shape of the route is not one of the run's
    /// number of places, or a number of items is beyond its bound.
    #[track_caller]
    pub fn with<S, F>(
        options: AggregatorOptions,
        state: &PlaceLocal<S>,
        apply: F,
    ) -> impl Future<Output = Result<Self>>
    where
        S: 'static,
        F: Fn(&mut S, T) + Copy + 'static,
    {
        let apply_each = move |state: &mut S, items: Vec<T>, left: &mut usize| {
            for item in items {
                apply(state, item);
                *left -= 1;
            }
        };
        Aggregator::build(options, state, ByBucket, apply_each)
    }

    /// As [`Aggregator::with`], with a function that takes all items of a bucket for its place at once. A tight loop
    /// over them keeps as many memory reads in flight as the processor can. If it panics, all of them count as lost.
    ///
    /// # Errors
    /// As for [`Aggregator::with`].
    #[track_caller]
    pub fn batched<S, F>(
        options: AggregatorOptions,
        state: &PlaceLocal<S>,
        apply: F,
    ) -> impl Future<Output = Result<Self>>
    where
        S: 'static,
        F: Fn(&mut S, Vec<T>) + Copy + 'static,
    {
        let apply_all = move |state: &mut S, items: Vec<T>, _: &mut usize| apply(state, items);
        Aggregator::build(options, state, ByBucket, apply_all)
    }

    /// As [`Aggregator::batched`], for items that name their place: `target` returns it, at any place. Buckets then
    /// carry no places, which saves four bytes an item on routes of several hops.
    ///
    /// # Errors
    /// As for [`Aggregator::with`].
    #[track_caller]
    pub fn addressed<S, P, F>(
        options: AggregatorOptions,
        state: &PlaceLocal<S>,
        target: P,
        apply: F,
    ) -> impl Future<Output = Result<Self>>
    where
        S: 'static,
        P: Fn(&S, &T) -> Place + Copy + 'static,
        F: Fn(&mut S, Vec<T>) + Copy + 'static,
    {
        const {
            assert!(
                size_of::<P>() == 0,
                "the function of an aggregator runs at each place: it captures nothing"
            );
        }
        let apply_all = move |state: &mut S, items: Vec<T>, _: &mut usize| apply(state, items);
        Aggregator::build(options, state, ByItem(target), apply_all)
    }

    /// As [`Aggregator::batched`]; `apply` also counts down the number of items that are not applied yet.
    #[track_caller]
    fn build<S, G, F>(
        options: AggregatorOptions,
        state: &PlaceLocal<S>,
        target: G,
        apply: F,
    ) -> impl Future<Output = Result<Self>>
    where
        S: 'static,
        G: ItemTarget<S, T>,
        F: Fn(&mut S, Vec<T>, &mut usize) + Copy + 'static,
    {
        const {
            assert!(
                size_of::<F>() == 0,
                "the function of an aggregator runs at each place: it captures nothing"
            );
        }
        let caller = Location::caller();
        call::called_at(caller, async move {
            let (here, places) = Local::with(|local| (local.here(), local.places()));
            options.check()?;
            Router::new(options.route.clone(), here, places)
                .map_err(|fault| Error::new(ErrorKind::Misused, fault.to_string()))?;
            let seed = (options, state.clone());
            let make_part = move |(options, state)| make(options, state, target, apply);
            let part = Rc::new(make_part(seed.clone()));
            let here = Rc::clone(&part.here);
            let members = Members::All(places);
            let share = replicate(caller, members, &seed, part, make_part).await?;
            Aggregator::of(share, here)
                .ok_or_else(|| Error::new(ErrorKind::Misused, "a part of another type"))
        })
    }

    fn of(share: PartRef, here: Rc<dyn Any>) -> Option<Self> {
        Some(Aggregator { here: here.downcast().ok()?, share })
    }

    /// Sends `item` to `to`, to be applied there; the enclosing finish waits for that. Returns once the item is in a
    /// bucket, and waits only while that bucket is full and the ones before it are in flight.
    ///
    /// # Errors
    /// The next place on the route is dead, or there is no route to `to` from here ([`Misused`](ErrorKind::Misused)).
    /// The enclosing finish reports what goes wrong later.
    #[inline]
    pub async fn push(&self, to: Place, item: T) -> Result<()> {
        match self.here.store_within(to.id(), item) {
            Ok(()) => Ok(()),
            Err(item) => self.push_slow(to, item).await,
        }
    }

    /// Sends each item of `items` to its place, as [`Aggregator::push`] does with one, in a tight loop.
    ///
    /// # Errors
    /// As for [`Aggregator::push`]; the items behind the one that failed are not taken.
    pub async fn push_all(&self, items: impl IntoIterator<Item = (Place, T)>) -> Result<()> {
        let mut items = items.into_iter();
        while let Some((to, item)) = self.here.store_while(&mut items) {
            self.push_slow(to, item).await?;
        }
        Ok(())
    }

    /// Stores an item that begins or fills its bucket.
    async fn push_slow(&self, to: Place, item: T) -> Result<()> {
        self.share.attachment().with(|_| ())?;
        let mut item = Some(item);
        let store = poll_fn(|context| self.here.poll_store(&self.share, to.id(), &mut item, context));
        cooperate(CALL, store).await
    }

    /// Sends all buckets of this place now, without waiting for the end of a finish.
    pub fn flush(&self) {
        self.share.attachment().try_with(|local| self.here.flush(local, &|_| true));
    }

    /// Returns the capacity of a bucket at this place, in items.
    pub fn bucket(&self) -> usize {
        self.here.capacity()
    }

    /// Returns the number of items that have left this place in buckets, and the number of those buckets.
    pub fn sent(&self) -> (u64, u64) {
        self.here.counts.get()
    }

    /// Charges the core of this place for handing on `items` items.
    pub(super) fn charge(&self, items: usize) {
        Local::with(|local| Aggregations::of(local).is_active.set(true));
        let cycles = self.here.forward_cycles;
        if cycles > 0 {
            isles_runtime::work(Cycles(cycles * items as u64));
        }
    }

    /// Returns the places of arrived items, or nothing unless the items name them.
    pub(super) fn targets(&self, items: &[T]) -> Vec<PlaceId> {
        self.here.targets(items)
    }

    /// Applies items that are all for this place.
    ///
    /// # Errors
    /// As for [`LocalAggregator::apply`].
    pub(super) fn apply_here(&self, items: Vec<T>) -> Result<()> {
        self.here.apply(items)
    }

    /// Returns the id of its part.
    pub(super) fn id(&self) -> PartId {
        self.share.id()
    }
}

/// Finds the place of an arrived item. It has no size, because it runs at each place.
trait ItemTarget<S, T>: Copy + 'static {
    /// `true` if the item names its place.
    const IS_SAID: bool;

    /// Returns the place that the item names.
    fn of(&self, state: &S, item: &T) -> Option<Place>;
}

/// Buckets carry the places of their items.
#[derive(Clone, Copy)]
struct ByBucket;

/// A function knows the place of each item.
#[derive(Clone, Copy)]
struct ByItem<P>(P);

impl<S, T> ItemTarget<S, T> for ByBucket {
    const IS_SAID: bool = false;

    fn of(&self, _: &S, _: &T) -> Option<Place> {
        None
    }
}

impl<S, T, P: Fn(&S, &T) -> Place + Copy + 'static> ItemTarget<S, T> for ByItem<P> {
    const IS_SAID: bool = true;

    fn of(&self, state: &S, item: &T) -> Option<Place> {
        Some((self.0)(state, item))
    }
}

/// Makes the part of an aggregator at this place.
fn make<S, T, G, F>(options: AggregatorOptions, state: PlaceLocal<S>, target: G, apply: F) -> AggregatorPart
where
    S: 'static,
    G: ItemTarget<S, T>,
    T: Serialize + DeserializeOwned + 'static,
    F: Fn(&mut S, Vec<T>, &mut usize) + Copy + 'static,
{
    Local::with(|local| {
        let router = Router::new(options.route.clone(), local.here(), local.places())
            .expect("the maker has tried the route, which fits a number of places");
        let limits = options.limits(&router);
        let of_items = G::IS_SAID.then(|| {
            let state = state.clone();
            let of_all = move |items: &[T]| {
                let state = state.lock();
                items.iter().filter_map(|item| target.of(&state, item)).map(Place::id).collect()
            };
            Box::new(of_all) as Box<TargetItems<T>>
        });
        let apply_all = move |items: Vec<T>, left: &mut usize| {
            apply(&mut state.lock(), items, left);
        };
        let functions = ItemFunctions { apply: Box::new(apply_all), targets: of_items };
        let here = LocalAggregator::new(Buckets::new(router, limits), functions, options.forward_cycles);
        let held: Rc<dyn Held> = Rc::clone(&here) as Rc<dyn Held>;
        Aggregations::of(local).register(&held);
        AggregatorPart { held, here }
    })
}

impl<T: 'static> Serialize for Aggregator<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.share.serialize(serializer)
    }
}

impl<'de, T: 'static> Deserialize<'de> for Aggregator<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (share, value) = PartRef::with_value(deserializer)?;
        let part = value.and_then(|value| value.downcast::<AggregatorPart>().ok());
        match part.map(|part| Rc::clone(&part.here).downcast::<LocalAggregator<T>>()) {
            Some(Ok(here)) => Ok(Aggregator { here, share }),
            _ => Err(serde::de::Error::custom("the handle's part is not at this place")),
        }
    }
}

impl<T: 'static> Clone for Aggregator<T> {
    fn clone(&self) -> Self {
        Aggregator { here: Rc::clone(&self.here), share: self.share.clone() }
    }
}

impl<T: 'static> Handle for Aggregator<T> {}
