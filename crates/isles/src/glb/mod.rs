//! Global load balancing: tasks that make tasks, spread over all places while they run.
//!
//! A program gives a [`Bag`] of tasks; [`run`] keeps every place busy with a part of it until no task is left. Places
//! that run out ask others at random, then wait for their lifelines (V. Saraswat et al., "Lifeline-based global load
//! balancing", PPoPP 2011; W. Zhang et al., "GLB: lifeline-based global load balancing library in X10", 2014). A
//! `finish` alone knows the end. What a place decides is in `isles_protocol::balance`. The rest uses what every program
//! can use, `LibrarySpan` of the runtime for the trace, and its errors that name the line of the program. Invariant:
//! each task is processed once, and what it came to is in one bag.

mod place_bag;
mod recovery;
mod report;
#[cfg(test)]
mod tests;
mod worker;

pub use isles_protocol::balance::{BATCH_MAX, ParameterFault, Parameters, STEALS_MAX};
pub use report::{Balanced, PlaceBalance, RunBalance};

use crate::prelude::*;
use crate::{Error, ErrorKind, Result};
use isles_protocol::balance::backup::BackupState;
use isles_runtime::{catch_panic, of_library};
use place_bag::PlaceBag;
use recovery::{is_death, recover};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::panic::Location;
use worker::{PlaceBags, place, work};

thread_local! {
    /// Balance of all runs begun in this thread, taken together: for the report of a program.
    static BALANCE: RefCell<Option<RunBalance>> = const { RefCell::new(None) };
}

/// Takes how the runs that were begun in this thread were balanced, since this was last asked; `None` if there were
/// none.
pub(crate) fn take_balance() -> Option<RunBalance> {
    BALANCE.take()
}

/// Tasks that may make further tasks, and what those that have run came to.
///
/// A place has one bag; parts of it travel. The result of a run is that of all bags merged, in the order of the places;
/// which tasks are in which bag depends on the run. So merging results must be associative and commutative, as counting
/// and the greatest of numbers are, and the sum of floating-point numbers is not.
pub trait Bag: Clone + Serialize + DeserializeOwned + 'static {
    /// Combined result of the tasks.
    type Result;

    /// Processes up to `count` tasks, which may add others; returns how many. Fewer than `count`, which is at least 1,
    /// means that none is left; more is an error of the run.
    ///
    /// On a modelled chip it says by [`work`](crate::work) what they cost.
    fn process(&mut self, count: usize) -> usize;

    /// Takes a part of the tasks out, with no results, for another place; `None` if there are too few to give any away.
    /// A part without tasks is an error of the run.
    ///
    /// Half of all, large tasks before small ones, keeps the places busy longest.
    fn split(&mut self) -> Option<Self>;

    /// Takes in the tasks and the results of another bag.
    fn merge(&mut self, other: Self);

    /// Returns the combined result of the tasks.
    fn result(self) -> Self::Result;
}

/// Processes the tasks of `bag`, and all that they make, at all places; ends when none is left anywhere.
///
/// If the bag keeps its promise, the result does not depend on the machine, the number of places and the order of
/// events. The run has a `finish` of its own, and ends by it.
///
/// # Errors
/// [`ErrorKind::DeadPlace`]: a place has died, and its tasks and results are lost; the text says what is left.
/// [`ErrorKind::Panicked`]: the bag panicked. [`ErrorKind::Misused`]: the bag breaks a promise of [`Bag`], and the run
/// would not end; the text says which.
#[track_caller]
pub fn run<B: Bag>(bag: B) -> impl Future<Output = Result<Balanced<B::Result>>> {
    run_with(Parameters::default(), bag)
}

/// As [`run`], balanced in another way.
///
/// # Errors
/// As [`run`], and [`ErrorKind::Misused`]: `parameters` are not allowed for that many places.
#[track_caller]
pub fn run_with<B: Bag>(parameters: Parameters, bag: B) -> impl Future<Output = Result<Balanced<B::Result>>> {
    let caller = Location::caller();
    async move { balance(parameters, bag).await.map_err(|error| of_library(fault_of_bag(error), LINES, caller)) }
}

/// Path prefix of the source lines of this library.
const LINES: &str = file!().split_at(file!().len() - "mod.rs".len()).0;

/// Returns the bag's fault, if that is among the errors of several places; else the error itself.
fn fault_of_bag(error: Error) -> Error {
    let is_of_bag = |cause: &Error| matches!(cause.kind(), ErrorKind::Misused | ErrorKind::Panicked);
    let fault = error.causes().into_iter().find(is_of_bag);
    fault.unwrap_or(error)
}

/// As [`run_with`]; errors name lines of this library.
async fn balance<B: Bag>(parameters: Parameters, bag: B) -> Result<Balanced<B::Result>> {
    parameters.check(place_count()).map_err(|fault| Error::new(ErrorKind::Misused, fault.to_string()))?;
    let backups = if parameters.resilient { Some(PlaceLocal::new(safety).await?) } else { None };
    let seed = (parameters, backups.clone());
    let bags: PlaceBags<B> = PlaceLocal::with(seed, |(parameters, backups)| {
        PlaceBag::new(here().index(), &all_members(), &parameters, backups)
    })
    .await?;
    let started = now();
    bags.lock().bag = Some(bag);
    let mut members = all_members();
    let (elapsed, parts) = loop {
        let worked = process_all(&bags, &members).await;
        let elapsed = now() - started;
        let collected = match worked {
            Ok(()) => collect(&bags, &members).await,
            Err(error) => Err(error),
        };
        match collected {
            Ok(parts) => break (elapsed, parts),
            Err(error) if !is_death(&error) => return Err(error),
            Err(error) => match &backups {
                Some(backups) => recover(&bags, backups, &mut members).await?,
                None => return Err(lost_work_error(&bags, &error).await),
            },
        }
    };
    let mut places = vec![None; place_count()];
    let mut bags = Vec::new();
    for (number, (bag, counts)) in members.iter().zip(parts) {
        places[*number] = Some(counts);
        bags.extend(bag);
    }
    let merge = |mut one: B, other| {
        one.merge(other);
        one
    };
    let result = catch_panic(|| bags.into_iter().reduce(merge).expect("the first place has a bag").result())?;
    let recovered = (place_count() - members.len()) as u64;
    let balance = RunBalance { elapsed, places, recovered };
    BALANCE.with_borrow_mut(|all| all.get_or_insert_default().add(balance.clone()));
    Ok(Balanced { result, balance })
}

/// The members of a new run, in order: all places.
fn all_members() -> Vec<usize> {
    (0..place_count()).collect()
}

/// Returns the state that keeps a new run exact, at this place.
fn safety() -> BackupState {
    BackupState::new(here().index(), &all_members())
}

/// Starts a worker at each member that has a bag; ends when no task is left anywhere.
async fn process_all<B: Bag>(bags: &PlaceBags<B>, members: &[usize]) -> Result<()> {
    finish(async {
        // At first, only this place has one.
        if members.len() == place_count() {
            resume(bags);
        } else {
            for number in members {
                spawn_at!(place(*number), resume(bags));
            }
        }
    })
    .await
}

fn resume<B: Bag>(bags: &PlaceBags<B>) {
    if bags.lock().resume(now()) {
        spawn(work(bags.clone()));
    }
}

/// The bags and the counts of all members, in order.
async fn collect<B: Bag>(bags: &PlaceBags<B>, members: &[usize]) -> Result<Vec<(Option<B>, PlaceBalance)>> {
    if members.len() == place_count() {
        return finish(async { everywhere!(bag_and_counts(bags)).await }).await;
    }
    let mut collected = Vec::new();
    for number in members {
        collected.push(finish(async { at!(place(*number), bag_and_counts(bags)).await }).await?);
    }
    Ok(collected)
}

/// Returns the bag and counts of this place; a copy, in case another place dies before all are collected.
fn bag_and_counts<B: Bag>(bags: &PlaceBags<B>) -> (Option<B>, PlaceBalance) {
    let mut own = bags.lock();
    let bag = if own.is_resilient() { own.bag.clone() } else { own.bag.take() };
    (bag, own.counts.clone())
}

/// The error of a run that is not resilient, with what has become of it.
async fn lost_work_error<B: Bag>(bags: &PlaceBags<B>, error: &Error) -> Error {
    let Some(dead) = places().find(|place| place.is_dead()) else {
        return Error::new(error.kind().clone(), error.to_string());
    };
    let (mut tasks, mut answered) = (0, 0);
    for place in places().filter(|place| !place.is_dead()) {
        if let Ok(done) = finish(async { at!(place, bags.lock().counts.tasks).await }).await {
            (tasks, answered) = (tasks + done, answered + 1);
        }
    }
    let text = format!(
        "its bag and the results of its processed tasks are lost; {answered} other places had processed \
         {tasks} tasks; with `resilient` the run would have continued"
    );
    Error::new(ErrorKind::DeadPlace(dead.id()), text)
}
