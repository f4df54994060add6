//! The units of work of a run as a bag of `isles::glb`: places that run out steal units from others.
//!
//! Units are numbers, so a bag is a few ranges of them; results stay at the place that computed them, in the kernel. So
//! the death of a place loses its results, and such a run is never `resilient`. Invariant: each unit is in one range of
//! one bag, in progress at one place, or computed.

use super::PlaceWork;
use isles::glb::{self, Bag, Balanced, Parameters, RunBalance};
use isles::prelude::*;
use isles::{Error, ErrorKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Kernel that computes units at its place; a value that can be sent, with handles of the places' data.
pub trait UnitKernel: Clone + Serialize + DeserializeOwned + 'static {
    /// Computes the next part of `unit`, the first one unless it `is_begun`; returns `true` if the unit is complete.
    /// Between two parts, other places are answered, and no other unit is computed.
    fn compute(&self, unit: u64, is_begun: bool) -> bool;
}

/// Units to be computed.
#[derive(Clone, Serialize, Deserialize)]
struct UnitBag<K> {
    kernel: K,
    shares: PlaceLocal<PlaceWork>,
    /// Half-open ranges of units; none is empty.
    ranges: Vec<(u64, u64)>,
    /// The unit in progress, which is never stolen.
    in_progress: Option<u64>,
}

impl<K: UnitKernel> UnitBag<K> {
    fn take(&mut self) -> Option<u64> {
        let (low, high) = self.ranges.last_mut()?;
        let unit = *low;
        *low += 1;
        if low == high {
            self.ranges.pop();
        }
        Some(unit)
    }

    fn count(&self) -> u64 {
        self.ranges.iter().map(|(low, high)| high - low).sum()
    }
}

impl<K: UnitKernel> Bag for UnitBag<K> {
    type Result = ();

    /// A task is a part of a unit. If a place is dead, all units are dropped as one task: its results are lost, which
    /// is the error of the whole run.
    fn process(&mut self, count: usize) -> usize {
        for processed in 0..count {
            let is_begun = self.in_progress.is_some();
            let Some(unit) = self.in_progress.take().or_else(|| self.take()) else { return processed };
            if places().any(Place::is_dead) {
                self.ranges.clear();
                return processed + 1;
            }
            let started = Instant::now();
            let is_over = self.kernel.compute(unit, is_begun);
            self.in_progress = (!is_over).then_some(unit);
            self.shares.lock().add_part(started, is_over);
        }
        count
    }

    /// Splits off half of the units, from the end that this place would reach last.
    fn split(&mut self) -> Option<UnitBag<K>> {
        let mut wanted = (self.count() + u64::from(self.in_progress.is_some())) / 2;
        let mut given = Vec::new();
        while wanted > 0 {
            let (low, high) = self.ranges.remove(0);
            let taken = wanted.min(high - low);
            given.push((high - taken, high));
            if taken < high - low {
                self.ranges.insert(0, (low, high - taken));
            }
            wanted -= taken;
        }
        let has_any = !given.is_empty();
        has_any.then(|| UnitBag {
            kernel: self.kernel.clone(),
            shares: self.shares.clone(),
            ranges: given,
            in_progress: None,
        })
    }

    fn merge(&mut self, other: UnitBag<K>) {
        self.ranges.splice(..0, other.ranges);
    }

    fn result(self) {}
}

/// Computes the units `0..count`, and records the work of each place in `shares`.
///
/// # Errors
/// [`ErrorKind::DeadPlace`]: a place has died.
pub(super) async fn balance<K: UnitKernel>(
    count: u64,
    shares: PlaceLocal<PlaceWork>,
    kernel: K,
) -> isles::Result<RunBalance> {
    let ranges = if count > 0 { vec![(0, count)] } else { Vec::new() };
    let bag = UnitBag { kernel, shares, ranges, in_progress: None };
    // A unit is long: a thief should not wait for several.
    let parameters = Parameters { batch: Some(1), ..Parameters::default() };
    match glb::run_with(parameters, bag).await {
        Ok(Balanced { balance, .. }) => Ok(balance),
        Err(error) if matches!(error.kind(), ErrorKind::DeadPlace(_)) => {
            Err(Error::new(error.kind().clone(), "what it had computed is lost"))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles::{Plan, PlannedDeath};
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use std::rc::Rc;

    /// Counts the parts of units, each of which has as many as its number modulo 3, and one.
    #[derive(Clone, Serialize, Deserialize)]
    struct PartCounts {
        own: PlaceLocal<BTreeMap<u64, u64>>,
    }

    impl UnitKernel for PartCounts {
        fn compute(&self, unit: u64, is_begun: bool) -> bool {
            let mut own = self.own.lock();
            assert_eq!(own.contains_key(&unit), is_begun, "unit {unit}");
            let parts = own.entry(unit).or_default();
            *parts += 1;
            *parts == unit % 3 + 1
        }
    }

    #[test]
    fn each_unit_is_computed_once_at_one_place_in_worlds_of_any_order() {
        for seed in 0..40 {
            let (places, units) = (1 + seed as u32 % 9, [0, 1, 2, 7, 100][seed as usize % 5]);
            let (result, ..) = isles::simulate(places, Plan::adversarial(seed), move || async move {
                let own = PlaceLocal::new(BTreeMap::new).await?;
                let shares = PlaceLocal::new(PlaceWork::default).await?;
                let kernel = PartCounts { own: own.clone() };
                let balance = balance(units, shares.clone(), kernel).await?;
                let parts = (0..units).map(|unit| unit % 3 + 1).sum::<u64>();
                assert_eq!(balance.tasks(), parts);
                let done = own.reduce(|mut one, other| {
                    for (unit, parts) in other {
                        assert_eq!(one.insert(unit, parts), None, "unit {unit} was computed twice");
                    }
                    one
                });
                let expected: BTreeMap<u64, u64> = (0..units).map(|unit| (unit, unit % 3 + 1)).collect();
                assert_eq!(done.await?, expected);
                let add =
                    |one: PlaceWork, other: PlaceWork| PlaceWork { units: one.units + other.units, ..one };
                assert_eq!(shares.reduce(add).await?.units, units);
                Ok::<_, isles::Error>(())
            });
            result.unwrap_or_else(|error| panic!("{units} units, {places} places, seed {seed}: {error}"));
        }
    }

    #[test]
    fn a_death_at_any_moment_is_the_error_of_the_run() {
        let third = Rc::new(Cell::new(None));
        let victim_cell = Rc::clone(&third);
        let set_victim = || async move { victim_cell.set(Place::new(2).map(Place::id)) };
        isles::simulate(3, Plan::calm(0), set_victim).0.unwrap();
        let (place, mut died) = (third.get().unwrap(), 0);
        for seed in 0..400 {
            let losses = vec![PlannedDeath { place, step: 400 + 7 * seed % 1000 }];
            let plan = Plan { losses, ..Plan::adversarial(seed) };
            let (result, ..) = isles::simulate(5, plan, || async {
                let own = PlaceLocal::new(BTreeMap::new).await?;
                let shares = PlaceLocal::new(PlaceWork::default).await?;
                balance(300, shares, PartCounts { own }).await.map(|_| ())
            });
            let Err(error) = result else { continue };
            assert_eq!(*error.kind(), ErrorKind::DeadPlace(place), "seed {seed}: {error}");
            died += 1;
        }
        assert!(died > 200, "only {died} runs were longer than their place lived");
    }

    #[test]
    fn every_place_gets_units() {
        let (result, ..) = isles::simulate(8, Plan::calm(1), || async {
            let own = PlaceLocal::new(BTreeMap::new).await?;
            let shares = PlaceLocal::new(PlaceWork::default).await?;
            let balance = balance(1000, shares, PartCounts { own }).await?;
            let least = balance.places.iter().flatten().map(|place| place.tasks).min();
            assert!(least > Some(20), "{balance}");
            Ok::<_, isles::Error>(())
        });
        result.unwrap();
    }
}
