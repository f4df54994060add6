//! Global load balancing: tasks that make tasks, spread over all places while they run.
//!
//! A program gives a [`Bag`] of tasks; [`run`] keeps every place busy with a part of it until no task is left. Places
//! that run out ask others at random, then wait for their lifelines (V. Saraswat et al., "Lifeline-based global load
//! balancing", PPoPP 2011; W. Zhang et al., "GLB: lifeline-based global load balancing library in X10", 2014). A
//! `finish` alone knows the end. What a place decides is in `isles_protocol::balance`; the rest uses only what every
//! program can use. Invariant: each task is processed once, and what it came to is in one bag.

mod place_bag;
mod report;
#[cfg(test)]
mod tests;
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
    let balance = RunBalance { elapsed, places: places.into_iter().map(Some).collect(), recovered: 0 };
    Ok(Balanced { result, balance })
}
