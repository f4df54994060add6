//! Global load balancing: spreads tasks that create tasks over all places while they run.
//!
//! A program passes a [`Bag`] of tasks; [`run`] keeps every place busy with a part of it until no task is left. A place
//! that runs out steals from random victims, then waits for its lifelines (V. Saraswat et al., "Lifeline-based global
//! load balancing", PPoPP 2011; W. Zhang et al., "GLB: lifeline-based global load balancing library in X10", 2014). A
//! `finish` detects the end. The decisions of a place are in `isles_protocol::balance`. Apart from trace spans and
//! errors that name the program's line, this library uses only the public interface. Invariant: each task is processed
//! once, and its result is in one bag.

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
    /// Accumulated balance of all runs started in this thread, for the report of a program.
    static BALANCE: RefCell<Option<RunBalance>> = const { RefCell::new(None) };
}

/// Takes the balance of the runs started in this thread since the last call; `None` if there were none.
pub(crate) fn take_balance() -> Option<RunBalance> {
    BALANCE.take()
}

/// A bag of tasks that may create further tasks, and the combined result of the processed ones.
///
/// Each place has one bag, and parts of it move to other places. The result of a run comes from all bags, merged in the
/// order of the places; which tasks are in which bag depends on the run. Merging of results must therefore be
/// associative and commutative, as a count or a maximum, unlike a sum of floating-point numbers.
pub trait Bag: Clone + Serialize + DeserializeOwned + 'static {
    /// Combined result of the tasks.
    type Result;

    /// Processes up to `count` tasks, which may add others, and returns their number; `count` is at least 1. Fewer than
    /// `count` means that no task is left; more is an error of the run.
    ///
    /// On a modelled chip it declares their cost with [`work`](crate::work).
    fn process(&mut self, count: usize) -> usize;

    /// Splits off a part of the tasks, without results, for another place; `None` if there are too few to split. A part
    /// without tasks is an error of the run.
    ///
    /// Giving away half of them, large tasks first, keeps the places busy longest.
    fn split(&mut self) -> Option<Self>;

    /// Adds the tasks and the results of another bag.
    fn merge(&mut self, other: Self);

    /// Returns the combined result of the tasks.
    fn result(self) -> Self::Result;
}

/// Processes the tasks of `bag`, and all tasks that these create, at all places, until none is left.
///
/// If the bag satisfies the contract of [`Bag`], the result does not depend on the machine, the number of places or the
/// order of events. The run has a `finish` of its own.
///
/// # Errors
/// [`ErrorKind::DeadPlace`]: a place has died, and its tasks and results are lost; the text says how much the others
/// have processed. [`ErrorKind::Panicked`]: the bag panicked. [`ErrorKind::Misused`]: the bag violates the contract of
/// [`Bag`], so that the run would not end; the text says how.
#[track_caller]
pub fn run<B: Bag>(bag: B) -> impl Future<Output = Result<Balanced<B::Result>>> {
    run_with(Parameters::default(), bag)
}

/// As [`run`], with other parameters of the balancing.
///
/// # Errors
/// As [`run`]; also [`ErrorKind::Misused`] if `parameters` are invalid for the number of places.
#[track_caller]
pub fn run_with<B: Bag>(parameters: Parameters, bag: B) -> impl Future<Output = Result<Balanced<B::Result>>> {
    let caller = Location::caller();
    async move { balance(parameters, bag).await.map_err(|error| of_library(fault_of_bag(error), LINES, caller)) }
}

/// Path prefix of the source lines of this library.
const LINES: &str = file!().split_at(file!().len() - "mod.rs".len()).0;

/// Returns the error caused by the bag, if it is among the errors of several places; otherwise the error itself.
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

/// Returns the members of a new run, in order: all places.
fn all_members() -> Vec<usize> {
    (0..place_count()).collect()
}

/// Returns the backup state of a new resilient run, at this place.
fn safety() -> BackupState {
    BackupState::new(here().index(), &all_members())
}

/// Starts a worker at each member that has a bag, and waits until no task is left anywhere.
async fn process_all<B: Bag>(bags: &PlaceBags<B>, members: &[usize]) -> Result<()> {
    finish(async {
        // At the start only this place has one.
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

/// Returns the bags and the counts of all members, in order.
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

/// Returns the bag and counts of this place. A resilient run copies the bag, in case another place dies before all are
/// collected.
fn bag_and_counts<B: Bag>(bags: &PlaceBags<B>) -> (Option<B>, PlaceBalance) {
    let mut own = bags.lock();
    let bag = if own.is_resilient() { own.bag.clone() } else { own.bag.take() };
    (bag, own.counts.clone())
}

/// Returns the error for a death in a run that is not resilient, with the number of tasks that other places had
/// processed.
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
