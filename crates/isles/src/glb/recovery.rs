//! Recovery after deaths: the first place asks the living for what they know, and they restore the state of the dead.
//!
//! It runs between two finishes, when no message is in flight. Each remote call has a finish of its own, so that a
//! death is an error of that call only. Saves are here too; they are independent of the type of bag, because partners
//! keep bytes. Invariant: the questions change no state, so they restart after a further death; a death while places
//! restore ends the run with an error.

use super::Bag;
use super::worker::{self, PlaceBags, is_dead, none_if_dead, place};
use crate::prelude::*;
use crate::{Error, ErrorKind, Result, yield_now};
use isles_protocol::balance::backup::{
    BackupState, EncodedBag, ReceivedNumbers, RecoveryFacts, RestoreOrders, Save, StartedSave, restore_orders,
};
use isles_protocol::ordered::OrderedMap;
use isles_runtime::wire::{DecodeError, from_bytes};

/// The backup state of a resilient run, at each of its places.
pub(super) type PlaceBackups = PlaceLocal<BackupState>;

/// Returns `true` if every cause of the error is the death of a place.
pub(super) fn is_death(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::DeadPlace(_) => true,
        ErrorKind::Several => error.causes().iter().all(is_death),
        _ => false,
    }
}

/// Restores the state of the dead members at the living, which become the members.
///
/// # Errors
/// The state of a dead place is lost because its partner is dead as well, or a place has died during the recovery.
pub(super) async fn recover<B: Bag>(
    bags: &PlaceBags<B>,
    backups: &PlaceBackups,
    members: &mut Vec<usize>,
) -> Result<()> {
    let (living, orders) = orders(backups, members).await?;
    for (number, orders) in orders {
        finish(async { at!(place(number), restore(bags, backups, orders, &living)?).await }).await?;
    }
    for number in &living {
        finish(async { at!(place(*number), worker::save(bags).await?).await }).await?;
    }
    *members = living;
    Ok(())
}

/// Returns the living members, and the orders for those that restore the state of dead ones.
async fn orders(
    backups: &PlaceBackups,
    members: &[usize],
) -> Result<(Vec<usize>, Vec<(usize, RestoreOrders)>)> {
    // The error caused by a death may arrive before the notice of the death.
    while !members.iter().any(|member| is_dead(*member)) {
        yield_now().await;
    }
    loop {
        let (dead, living): (Vec<usize>, Vec<usize>) = members.iter().partition(|member| is_dead(**member));
        match facts(backups, &living, &dead).await {
            Ok(facts) => {
                let orders = restore_orders(members, &dead, &facts).map_err(|place| lost(place, &dead))?;
                return Ok((living, orders));
            }
            Err(error) if is_death(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Gathers the facts of the living about the dead. Each answers once it knows of these deaths.
async fn facts(
    backups: &PlaceBackups,
    living: &[usize],
    dead: &[usize],
) -> Result<OrderedMap<usize, RecoveryFacts>> {
    let mut facts = OrderedMap::new();
    for number in living {
        let known = finish(async { at!(place(*number), local_facts(backups, dead).await).await }).await?;
        facts.insert(*number, known);
    }
    Ok(facts)
}

async fn local_facts(backups: &PlaceBackups, dead: &[usize]) -> RecoveryFacts {
    while !dead.iter().all(|number| is_dead(*number)) {
        yield_now().await;
    }
    backups.lock().facts(dead)
}

fn restore<B: Bag>(
    bags: &PlaceBags<B>,
    backups: &PlaceBackups,
    orders: RestoreOrders,
    living: &[usize],
) -> Result<()> {
    let restored = backups.lock().restore(orders, living);
    let bag = |image: &EncodedBag| from_bytes(image).map_err(|fault| unreadable(&fault));
    let restored = restored.iter().map(bag).collect::<Result<Vec<B>>>()?;
    bags.lock().restore(restored, living);
    Ok(())
}

/// Returns the error for a bag that its `Deserialize` rejects.
fn unreadable(fault: &DecodeError) -> Error {
    Error::new(ErrorKind::Undecodable, format!("the backup of a bag could not be read: {fault}"))
}

/// Completes a save of this place, and notifies the givers that their parts are saved. If the partner has died, nothing
/// is saved.
pub(super) async fn save(backups: PlaceBackups, started: StartedSave) -> Result<()> {
    let StartedSave { version, outgoing } = started;
    let owner = here().index();
    if let Some((partner, save)) = outgoing
        && none_if_dead(at!(place(partner), keep(&backups, owner, save)).await)?.is_none()
    {
        return Ok(());
    }
    let saved_parts = backups.lock().saved(version);
    for (giver, numbers) in saved_parts {
        if !is_dead(giver) {
            none_if_dead(at!(place(giver), settled(&backups, owner, numbers)).await)?;
        }
    }
    Ok(())
}

/// Stores the backup of a place whose partner is this one.
fn keep(backups: &PlaceBackups, owner: usize, save: Save) {
    backups.lock().keep(owner, save);
}

/// Records that a thief has saved parts given by this place.
fn settled(backups: &PlaceBackups, thief: usize, numbers: ReceivedNumbers) {
    backups.lock().settled(thief, &numbers);
}

/// Returns the error for a place whose backup is lost too.
fn lost(number: usize, dead: &[usize]) -> Error {
    let others = dead.iter().filter(|other| **other != number).map(|other| place(*other).to_string());
    let others: Vec<String> = others.collect();
    let text = format!(
        "its bag is lost, because its backup was at a place that is dead too ({})",
        others.join(", ")
    );
    Error::new(ErrorKind::DeadPlace(place(number).id()), text)
}
