//! What places do and say to balance a run: tasks, kinds and gifts on the runtime's public interface.
//!
//! All decisions are the [`PlaceBag`]'s. Invariant: a part that has left a bag is in an answer that a worker waits for,
//! or in a gift that the finish counts.

use super::Bag;
use super::place_bag::PlaceBag;
use crate::prelude::*;
use crate::{ErrorKind, Result, yield_now};
use isles_protocol::balance::StealKind;
use std::future::Future;
use std::pin::Pin;

/// The bags of all places.
pub(super) type PlaceBags<B> = PlaceLocal<PlaceBag<B>>;

/// Batches between two looks whether a place has died.
const DEATH_LOOKS: u64 = 256;

/// The place with this number, which is one of the run.
pub(super) fn place(number: usize) -> Place {
    Place::new(number).expect("it is a place of the run")
}

/// Whether any place is dead.
pub(super) fn is_any_dead() -> bool {
    places().any(Place::is_dead)
}

/// The worker of this place: processes the bag and asks for tasks until nobody has any.
///
/// Boxed because gifts start workers, whose gifts start workers.
pub(super) fn work<B: Bag>(bags: PlaceBags<B>) -> Pin<Box<dyn Future<Output = Result<()>>>> {
    Box::pin(async move {
        let mut looked = 0_u64;
        loop {
            process(&bags, &mut looked).await;
            if is_any_dead() {
                return Ok(());
            }
            let asked = bags.lock().ask(now(), |number| place(number).is_dead());
            let Some((victim, kind)) = asked else { return Ok(()) };
            let part = ask(&bags, victim, kind).await?;
            let now = now();
            bags.lock().answered(victim, kind, part, now);
        }
    })
}

/// Processes the bag of this place until it is empty, or a place has died.
async fn process<B: Bag>(bags: &PlaceBags<B>, looked: &mut u64) {
    loop {
        let begun = bags.lock().batch.is_due().then(now);
        let tasks = bags.lock().process();
        if tasks == 0 {
            return;
        }
        let processed = begun.map(|_| now());
        give(bags);
        yield_now().await;
        if let Some((begun, processed)) = begun.zip(processed) {
            let look = now() - processed;
            bags.lock().batch.measured(tasks, processed - begun, look);
        }
        *looked += 1;
        if looked.is_multiple_of(DEATH_LOOKS) && is_any_dead() {
            return;
        }
    }
}

/// Gives parts of the bag to those who wait for them.
fn give<B: Bag>(bags: &PlaceBags<B>) {
    let giver = here().index();
    loop {
        let Some((thief, part)) = bags.lock().next_gift() else { return };
        spawn_at!(place(thief), accept(bags, giver, part));
    }
}

/// Takes in what a lifeline gives.
fn accept<B: Bag>(bags: &PlaceBags<B>, giver: usize, part: B) {
    if bags.lock().accept(giver, part, now()) {
        spawn(work(bags.clone()));
    }
}

/// Asks a place for tasks. One that is dead has none.
async fn ask<B: Bag>(bags: &PlaceBags<B>, victim: usize, kind: StealKind) -> Result<Option<B>> {
    let thief = here().index();
    match at!(place(victim), bags.lock().asked(thief, kind)).await {
        Err(error) if matches!(error.kind(), ErrorKind::DeadPlace(_)) => Ok(None),
        answer => answer,
    }
}
