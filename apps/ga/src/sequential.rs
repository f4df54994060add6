//! The same evolution without places, tasks and channels: the reference of a run.
//!
//! Islands are advanced one after the other, and exchange by assignment. Invariant: it shares the rules of an island
//! with the run, but none of the communication.

use super::evolution::Evolution;
use super::island::{Island, IslandRecord};

/// Returns the merged record of all islands of an evolution.
pub fn record(evolution: &Evolution) -> Option<IslandRecord> {
    let mut islands: Vec<Island> =
        (0..evolution.islands).map(|number| Island::new(evolution, number)).collect();
    let mut generation = 0;
    while generation < evolution.generations_max && !islands.iter().any(Island::has_found) {
        generation += 1;
        islands.iter_mut().for_each(Island::advance);
        if generation % evolution.migration_interval == 0 {
            let emigrants: Vec<_> = islands.iter().map(Island::emigrants).collect();
            for (number, island) in islands.iter_mut().enumerate() {
                let left = number.checked_sub(1).map(|left| emigrants[left].clone());
                let right = emigrants.get(number + 1).cloned();
                island.immigrate(left.into_iter().chain(right).flatten());
            }
        }
    }
    islands.into_iter().map(Island::record).reduce(IslandRecord::merge)
}
