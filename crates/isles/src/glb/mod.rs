//! Global load balancing: tasks that make tasks, spread over all places while they run.
//!
//! A program gives a [`Bag`] of tasks; [`run`] keeps every place busy with a part of it until no task is left. Places
//! that run out ask others at random, then wait for their lifelines (V. Saraswat et al., "Lifeline-based global load
//! balancing", PPoPP 2011; W. Zhang et al., "GLB: lifeline-based global load balancing library in X10", 2014). A
//! `finish` alone knows the end. What a place decides is in `isles_protocol::balance`; the rest uses only what every
//! program can use. Invariant: each task is processed once, and what it came to is in one bag.

mod place_bag;
mod report;
mod worker;

pub use isles_protocol::balance::{BATCH_MAX, ParameterFault, Parameters, STEALS_MAX};
pub use report::{Balanced, PlaceBalance, RunBalance};

use crate::prelude::*;
use crate::{Error, ErrorKind, Result};
use place_bag::PlaceBag;
use serde::Serialize;
use serde::de::DeserializeOwned;
use worker::{PlaceBags, work};

/// Tasks that may make further tasks, and what those that have run came to.
///
/// A place has one bag; parts of it travel. The result of a run is that of all bags merged, in the order of the places;
/// which tasks are in which bag depends on the run. So merging results must be associative and commutative, as counting
/// and the greatest of numbers are, and the sum of floating-point numbers is not.
pub trait Bag: Clone + Serialize + DeserializeOwned + 'static {
    /// What the tasks come to.
    type Result;

    /// Processes up to `count` tasks, which may add others; returns how many. Fewer than `count`, which is at least 1,
    /// means that none is left.
    ///
    /// On a modelled chip it says by [`work`](crate::work) what they cost.
    fn process(&mut self, count: usize) -> usize;

    /// Takes a part of the tasks out, with no results, for another place; `None` if there are too few to give any away.
    ///
    /// Half of all, large tasks before small ones, keeps the places busy longest.
    fn split(&mut self) -> Option<Self>;

    /// Takes in the tasks and the results of another bag.
    fn merge(&mut self, other: Self);

    /// What the tasks came to.
    fn result(self) -> Self::Result;
}

/// Processes the tasks of `bag`, and all that they make, at all places; ends when none is left anywhere.
///
/// If the bag keeps its promise, the result does not depend on the machine, the number of places and the order of
/// events. The run has a `finish` of its own, and ends by it.
///
/// # Errors
/// [`ErrorKind::DeadPlace`]: a place has died, and its tasks and results are lost; the text says what is left.
/// [`ErrorKind::Panicked`]: the bag panicked.
pub async fn run<B: Bag>(bag: B) -> Result<Balanced<B::Result>> {
    run_with(Parameters::default(), bag).await
}

/// As [`run`], balanced in another way.
///
/// # Errors
/// As [`run`], and [`ErrorKind::Misused`]: `parameters` are not allowed for that many places.
pub async fn run_with<B: Bag>(parameters: Parameters, bag: B) -> Result<Balanced<B::Result>> {
    parameters.check(place_count()).map_err(|fault| Error::new(ErrorKind::Misused, fault.to_string()))?;
    let bags: PlaceBags<B> = PlaceLocal::with(parameters, |parameters| {
        let members: Vec<usize> = (0..place_count()).collect();
        PlaceBag::new(here().index(), &members, &parameters)
    })
    .await?;
    let started = now();
    finish(async {
        if bags.lock().put(bag, now()) {
            spawn(work(bags.clone()));
        }
    })
    .await?;
    let elapsed = now() - started;
    let parts = everywhere!({
        let mut own = bags.lock();
        (own.bag.take(), own.counts.clone())
    })
    .await?;
    let (parts, places): (Vec<Option<B>>, Vec<_>) = parts.into_iter().unzip();
    let merged = parts.into_iter().flatten().reduce(|mut one, other| {
        one.merge(other);
        one
    });
    let result = merged.expect("the first place has a bag").result();
    let balance = RunBalance { elapsed, places };
    Ok(Balanced { result, balance })
}

#[cfg(test)]
mod tests {
    //! Runs in seeded worlds: each task once, whatever the order and the delays; and the machine against a model.

    use super::*;
    use crate::{Plan, simulate};
    use serde::Deserialize;

    /// Tasks of a binary tree with uneven children: a task of `size` n is a node with n - 1 nodes below it.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    struct Trees {
        sizes: Vec<u64>,
        nodes: u64,
    }

    impl Trees {
        fn of(size: u64) -> Trees {
            Trees { sizes: vec![size], nodes: 0 }
        }
    }

    impl Bag for Trees {
        type Result = u64;

        fn process(&mut self, count: usize) -> usize {
            for processed in 0..count {
                let Some(size) = self.sizes.pop() else { return processed };
                self.nodes += 1;
                let below = size - 1;
                let first = below / 3;
                self.sizes.extend([first, below - first].into_iter().filter(|size| *size > 0));
            }
            count
        }

        fn split(&mut self) -> Option<Trees> {
            let given = self.sizes.len() / 2;
            (given > 0).then(|| Trees { sizes: self.sizes.drain(..given).collect(), nodes: 0 })
        }

        fn merge(&mut self, other: Trees) {
            self.nodes += other.nodes;
            self.sizes.extend(other.sizes);
        }

        fn result(self) -> u64 {
            assert_eq!(self.sizes, [], "tasks are left");
            self.nodes
        }
    }

    fn parameters(seed: u64) -> Parameters {
        let batch = Some(1 + (seed % 13) as u32);
        Parameters {
            batch,
            random_steals: (seed % 4) as u32,
            lifeline_base: 2 + (seed % 3) as u32,
            seed,
            ..Parameters::default()
        }
    }

    #[test]
    fn each_task_is_processed_once_in_worlds_of_any_order_and_delay() {
        for places in [1, 2, 3, 5, 9, 17] {
            for seed in 0..30 {
                let (result, ..) = simulate(places, Plan::adversarial(seed), move || async move {
                    let Balanced { result, balance } = run_with(parameters(seed), Trees::of(1000)).await?;
                    assert_eq!((result, balance.tasks()), (1000, 1000));
                    assert_eq!(balance.places.len(), places as usize);
                    Ok::<_, Error>(())
                });
                result.unwrap_or_else(|error| panic!("{places} places, seed {seed}: {error}"));
            }
        }
    }

    #[test]
    fn every_place_gets_tasks_of_a_large_bag() {
        let (result, ..) = simulate(17, Plan::calm(1), || async {
            let parameters = Parameters { batch: Some(4), ..Parameters::default() };
            let Balanced { balance, .. } = run_with(parameters, Trees::of(100_000)).await?;
            let least = balance.places.iter().map(|place| place.tasks).min();
            assert!(least.is_some_and(|least| least > 1000), "{balance}");
            Ok::<_, Error>(())
        });
        result.unwrap();
    }

    #[test]
    fn parameters_that_are_not_allowed_are_an_error_and_no_run() {
        let (result, ..) = simulate(2, Plan::calm(1), || async {
            let parameters = Parameters { lifelines: Some(0), ..Parameters::default() };
            run_with(parameters, Trees::of(10)).await.map(|_| ())
        });
        let error = result.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Misused);
        assert!(error.to_string().contains("lifelines is 0; allowed: 1 to 1024 for 2 places"), "{error}");
    }
}
