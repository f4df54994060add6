//! The worker and the messages of a balanced run: requests, gifts and saves, on the runtime's public interface.
//!
//! [`PlaceBag`] makes all decisions. Invariant: a part that has left a bag is in an answer that a worker waits for, in
//! a gift that the finish counts, or, in a resilient run, held by a task that waits for its save.

use super::Bag;
use super::place_bag::{Part, PlaceBag};
use super::recovery;
use crate::prelude::*;
use crate::{ErrorKind, Result, yield_now};
use isles_protocol::balance::StealKind;
use isles_runtime::LibrarySpan;
use std::pin::Pin;

/// The bags of all places.
pub(super) type PlaceBags<B> = PlaceLocal<PlaceBag<B>>;

/// Batches between two checks whether a place has died or a save is due.
const LOOKS_APART: u64 = 256;

/// Returns the place with this number, which must be one of the run.
pub(super) fn place(number: usize) -> Place {
    Place::new(number).expect("it is a place of the run")
}

/// Returns `true` if the place with this number is dead.
pub(super) fn is_dead(number: usize) -> bool {
    place(number).is_dead()
}

/// Returns `true` if no place is dead, or the run is resilient.
fn may_continue<B: Bag>(bags: &PlaceBags<B>) -> bool {
    bags.lock().is_resilient() || !places().any(Place::is_dead)
}

/// Runs the worker of this place: processes the bag and asks for tasks until the balancer ends it.
///
/// Boxed because gifts start workers, whose gifts start workers.
pub(super) fn work<B: Bag>(bags: PlaceBags<B>) -> Pin<Box<dyn Future<Output = Result<()>>>> {
    Box::pin(async move {
        let mut looked = 0_u64;
        loop {
            process(&bags, &mut looked).await?;
            if !may_continue(&bags) {
                return Ok(());
            }
            if bags.lock().has_many_unsaved() {
                save(&bags).await?;
            }
            let asked = bags.lock().ask(now(), is_dead);
            let Some((victim, kind)) = asked else { return save(&bags).await };
            let part = ask(&bags, victim, kind).await?;
            let now = now();
            bags.lock().answered(victim, kind, part, now);
        }
    })
}

/// Processes the bag of this place until it is empty or the run must end.
async fn process<B: Bag>(bags: &PlaceBags<B>, looked: &mut u64) -> Result<()> {
    loop {
        let begun = bags.lock().batch.is_due().then(now);
        let outcome = bags.lock().process();
        let tasks = match outcome {
            // A bag may discard its tasks after a death: the run ends with an error anyway.
            Err(_) if !may_continue(bags) => return Ok(()),
            Ok(0) => return Ok(()),
            outcome => outcome?,
        };
        let processed = begun.map(|_| now());
        give(bags)?;
        yield_now().await;
        if let Some((begun, processed)) = begun.zip(processed) {
            let look = now() - processed;
            bags.lock().batch.measured(tasks, processed - begun, look);
        }
        *looked += 1;
        if looked.is_multiple_of(LOOKS_APART) {
            if !may_continue(bags) {
                return Ok(());
            }
            let is_due = bags.lock().is_save_due(now());
            if is_due {
                save(bags).await?;
            }
        }
    }
}

/// Gives parts of the bag to waiting thieves.
fn give<B: Bag>(bags: &PlaceBags<B>) -> Result<()> {
    let giver = here().index();
    loop {
        let gift = bags.lock().next_gift(is_dead)?;
        let Some((thief, part)) = gift else { return Ok(()) };
        if bags.lock().is_resilient() {
            let bags = bags.clone();
            spawn(async move {
                save(&bags).await?;
                spawn_at!(place(thief), accept(&bags, giver, part));
                Ok::<_, crate::Error>(())
            });
        } else {
            spawn_at!(place(thief), accept(bags, giver, part));
        }
    }
}

/// Adds the part that a lifeline gives, and starts a worker if needed.
fn accept<B: Bag>(bags: &PlaceBags<B>, giver: usize, part: Part<B>) {
    if bags.lock().accept(giver, part, now()) {
        spawn(work(bags.clone()));
    }
}

/// Asks a place for tasks; a dead place returns none.
async fn ask<B: Bag>(bags: &PlaceBags<B>, victim: usize, kind: StealKind) -> Result<Option<Part<B>>> {
    let thief = here().index();
    let name = match kind {
        StealKind::Random => "steal ←",
        StealKind::Lifeline => "lifeline ←",
    };
    let _span = LibrarySpan::begin(name, place(victim).id());
    none_if_dead(at!(place(victim), answer(bags, thief, kind).await?).await).map(Option::flatten)
}

/// Answers a request. A part is sent only once it is in the backup. A dead thief gets `None`, because the parts it had
/// received have already been restored elsewhere.
async fn answer<B: Bag>(bags: &PlaceBags<B>, thief: usize, kind: StealKind) -> Result<Option<Part<B>>> {
    if is_dead(thief) {
        return Ok(None);
    }
    let part = bags.lock().asked(thief, kind)?;
    if part.is_some() {
        save(bags).await?;
    }
    Ok(part)
}

/// Returns the answer of a place; `None` if it is dead.
pub(super) fn none_if_dead<V>(answer: Result<V>) -> Result<Option<V>> {
    match answer {
        Err(error) if matches!(error.kind(), ErrorKind::DeadPlace(_)) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Saves the state of this place at its partner; nothing unless the run is resilient.
pub(super) async fn save<B: Bag>(bags: &PlaceBags<B>) -> Result<()> {
    let begun = bags.lock().begin_save(now())?;
    match begun {
        Some((backups, begun)) => recovery::save(backups, begun).await,
        None => Ok(()),
    }
}
