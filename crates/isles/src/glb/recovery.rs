//! Going on after deaths: the first place asks the living what they know, and they restore what the dead had.
//!
//! It runs between two finishes, when nothing is under way. Each call that a death may strike has a finish of its own,
//! so that the death is an error of that call and of nothing else. Invariant: what asks changes nothing, so a death
//! meanwhile begins it anew; a death while places restore ends the run with an error.

use super::Bag;
use super::worker::{PlaceBags, is_dead, place, save};
use crate::prelude::*;
use crate::{Error, ErrorKind, Result, yield_now};
use isles_protocol::balance::backup::{DeathFacts, RestoreOrders, restore_orders};
use std::collections::BTreeMap;

/// Whether an error says nothing but that places have died.
pub(super) fn is_death(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::DeadPlace(_) => true,
        ErrorKind::Several => error.causes().iter().all(is_death),
        _ => false,
    }
}

/// Restores what the dead members had at the others, which are the members from then on.
///
/// # Errors
/// What a dead place had is lost, because its partner is dead as well; or a place has died meanwhile.
pub(super) async fn recover<B: Bag>(bags: &PlaceBags<B>, members: &mut Vec<usize>) -> Result<()> {
    // The error of a death may come before its news.
    while !members.iter().any(|member| is_dead(*member)) {
        yield_now().await;
    }
    let (living, orders) = loop {
        let (dead, living): (Vec<usize>, Vec<usize>) = members.iter().partition(|member| is_dead(**member));
        match facts(bags, &living, &dead).await {
            Ok(facts) => {
                let orders = restore_orders(members, &dead, &facts).map_err(|place| lost(place, &dead))?;
                break (living, orders);
            }
            Err(error) if is_death(&error) => {}
            Err(error) => return Err(error),
        }
    };
    for (number, orders) in orders {
        finish(async { at!(place(number), restore(bags, orders, &living)).await }).await?;
    }
    for number in &living {
        finish(async { at!(place(*number), save(bags).await?).await }).await?;
    }
    *members = living;
    Ok(())
}

/// What the living know about the dead. Each knows the deaths when it answers.
async fn facts<B: Bag>(
    bags: &PlaceBags<B>,
    living: &[usize],
    dead: &[usize],
) -> Result<BTreeMap<usize, DeathFacts>> {
    let mut facts = BTreeMap::new();
    for number in living {
        let known = finish(async { at!(place(*number), facts_here(bags, dead).await).await }).await?;
        facts.insert(*number, known);
    }
    Ok(facts)
}

async fn facts_here<B: Bag>(bags: &PlaceBags<B>, dead: &[usize]) -> DeathFacts {
    while !dead.iter().all(|number| is_dead(*number)) {
        yield_now().await;
    }
    bags.lock().facts(dead)
}

fn restore<B: Bag>(bags: &PlaceBags<B>, orders: RestoreOrders, living: &[usize]) {
    bags.lock().restore(orders, living);
}

/// The error of a place whose state is nowhere.
fn lost(number: usize, dead: &[usize]) -> Error {
    let others = dead.iter().filter(|other| **other != number).map(|other| place(*other).to_string());
    let others: Vec<String> = others.collect();
    let text =
        format!("what it had is lost, because its backup was at a dead place, too ({})", others.join(", "));
    Error::new(ErrorKind::DeadPlace(place(number).id()), text)
}
