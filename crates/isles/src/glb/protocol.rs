//! What places do and say to balance a run: tasks, kinds and gifts on the runtime's public interface.
//!
//! All decisions are the [`Balancer`]'s. Invariant: a part that has left a bag is in an answer that a worker waits for,
//! or in a gift that the finish counts.

use super::Bag;
use super::asking::StealKind;
use super::balancer::Balancer;
use crate::prelude::*;
use crate::{ErrorKind, Result, yield_now};
use std::future::Future;
use std::pin::Pin;

/// The balancers of all places.
pub(super) type Balancers<B> = PlaceLocal<Balancer<B>>;

/// Batches between two looks whether a place has died.
const DEATH_LOOKS: u64 = 256;

/// The place with this number, which a balancer knows.
pub(super) fn place(number: usize) -> Place {
    Place::new(number).expect("a balancer knows the places of its run")
}

/// Whether any place is dead.
pub(super) fn is_any_dead() -> bool {
    places().any(Place::is_dead)
}

/// The worker of this place: processes the bag and asks for tasks until nobody has any.
///
/// Boxed because gifts start workers, whose gifts start workers.
pub(super) fn work<B: Bag>(balancers: Balancers<B>) -> Pin<Box<dyn Future<Output = Result<()>>>> {
    Box::pin(async move {
        let mut looked = 0_u64;
        loop {
            process(&balancers, &mut looked).await;
            if is_any_dead() {
                return Ok(());
            }
            let asked = balancers.lock().ask(now(), |number| place(number).is_dead());
            let Some((victim, kind)) = asked else { return Ok(()) };
            let part = ask(&balancers, victim, kind).await?;
            balancers.lock().answered(victim, kind, part, now());
        }
    })
}

/// Processes the bag of this place until it is empty, or a place has died.
async fn process<B: Bag>(balancers: &Balancers<B>, looked: &mut u64) {
    loop {
        let begun = balancers.lock().batch.is_due().then(now);
        let tasks = balancers.lock().process();
        if tasks == 0 {
            return;
        }
        let processed = begun.map(|_| now());
        give(balancers);
        yield_now().await;
        if let Some((begun, processed)) = begun.zip(processed) {
            let look = now() - processed;
            balancers.lock().batch.measured(tasks, processed - begun, look);
        }
        *looked += 1;
        if looked.is_multiple_of(DEATH_LOOKS) && is_any_dead() {
            return;
        }
    }
}

/// Gives parts of the bag to those who wait for them.
fn give<B: Bag>(balancers: &Balancers<B>) {
    let giver = here().index();
    loop {
        let Some((thief, part)) = balancers.lock().next_gift() else { return };
        spawn_at!(place(thief), accept(balancers, giver, part));
    }
}

/// Takes in what a lifeline gives.
fn accept<B: Bag>(balancers: &Balancers<B>, giver: usize, part: B) {
    if balancers.lock().accept(giver, part, now()) {
        spawn(work(balancers.clone()));
    }
}

/// Asks a place for tasks. One that is dead has none.
async fn ask<B: Bag>(balancers: &Balancers<B>, victim: usize, kind: StealKind) -> Result<Option<B>> {
    let thief = here().index();
    match at!(place(victim), balancers.lock().asked(thief, kind)).await {
        Err(error) if matches!(error.kind(), ErrorKind::DeadPlace(_)) => Ok(None),
        answer => answer,
    }
}
