//! Worlds in which each asynchronous operation of the public interface is cancelled at random moments.
//!
//! Each module has a random program over one service, and checks its invariants after any cancellation. [`table`] lists
//! every public function that returns a future, with the world that cancels it. `ISLES_TEST_SEEDS` sets the number of
//! seeds; `ISLES_SEED` selects one.

mod aggregation;
mod arrays;
mod channels;
mod fragile;
mod handles;
mod messages;
mod phasers;
mod shared;
mod table;
mod tasks;
mod teams;
mod windows;

use crate::seeds::seeds;
use isles::prelude::*;
use isles::{ErrorKind, Plan, Random, Result, timeout};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// Seeds in the ordinary tests.
const SEEDS: u64 = 150;

/// Number of seeds after which each operation must have been cancelled.
const SEEDS_MIN: u64 = 100;

/// Longer than any program takes.
const FAR: Duration = Duration::from_secs(3_600);

/// Maximum number of polls of a cancelled operation.
const POLLS_MAX: u64 = 8;

thread_local! {
    /// Number of times that each operation was cancelled while it waited. All places share this thread.
    static GIVEN_UP: RefCell<BTreeMap<&'static str, u64>> = RefCell::default();
}

/// Runs `operation` to its end, or polls it a random number of times and drops it. Returns `None` if it was not ready
/// by then, or if the drop of a [`fragile`] value ended it.
///
/// `name` is that of the function in [`table::OPERATIONS`].
async fn interrupt<F: Future>(name: &'static str, random: &mut Random, operation: F) -> Option<F::Output> {
    let polls = (random.below(3) > 0).then(|| random.below(POLLS_MAX));
    let (mut operation, mut polled) = (Box::pin(operation), 0);
    let output = poll_fn(|context| {
        if polls == Some(polled) {
            return Poll::Ready(None);
        }
        polled += 1;
        let Some(output) = fragile::survived(|| operation.as_mut().poll(context)) else {
            return Poll::Ready(None);
        };
        if output.is_pending() && polls.is_some() {
            // It is polled again even if nothing has arrived.
            context.waker().wake_by_ref();
        }
        output.map(Some)
    })
    .await;
    fragile::survived(|| drop(operation));
    if output.is_none() && polled > 0 {
        GIVEN_UP.with_borrow_mut(|given_up| *given_up.entry(name).or_default() += 1);
    }
    output
}

/// As [`interrupt`], for an operation whose errors end the program.
async fn attempt<T>(
    name: &'static str,
    random: &mut Random,
    operation: impl Future<Output = Result<T>>,
) -> Result<Option<T>> {
    interrupt(name, random, operation).await.transpose()
}

/// Returns the errors that a cancellation does not explain.
fn explained<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if *error.kind() == ErrorKind::Cancelled => Ok(None),
        Err(error) => Err(error),
    }
}

/// Runs `program` with each seed on 2 to 5 places, in a calm and in an adverse world, and checks that all operations of
/// `world` were cancelled.
fn run_worlds<F, P>(world: &str, program: F)
where
    F: Fn(u64) -> P + Copy + 'static,
    P: Future<Output = Result<()>> + 'static,
{
    GIVEN_UP.with_borrow_mut(BTreeMap::clear);
    let all = seeds(SEEDS);
    for seed in all.clone() {
        // In few seeds, because the runtime prints a line for each such panic.
        fragile::arm(seed % 64 == 3);
        for plan in [Plan::calm, Plan::adversarial] {
            let places = 2 + (seed % 4) as u32;
            let main = move || async move {
                match seed % 2 {
                    0 => program(seed).await?,
                    // Time passes only while no place can go on, so a deadline that far away never comes.
                    _ => timeout(FAR, program(seed)).await??,
                }
                // After any cancellation, each place still answers.
                everywhere!(here().index()).await.map(drop)
            };
            let (result, _, digest) = isles::simulate(places, plan(seed), main);
            result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
            // Each tenth world is run again.
            if seed % 10 == 0 {
                let again = isles::simulate(places, plan(seed), main).2;
                assert_eq!(digest, again, "ISLES_SEED={seed} gave two different runs");
            }
        }
    }
    if all.end - all.start >= SEEDS_MIN {
        let given_up: Vec<String> =
            GIVEN_UP.with_borrow(|given_up| given_up.keys().map(|name| (*name).to_owned()).collect());
        table::check_world(world, &given_up);
    }
}
