//! The result of a run, and the work of each place.
//!
//! Separate from the balancer because programs read it. Invariant: the result does not depend on the work of each
//! place.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Work of one place in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceBalance {
    /// Tasks processed.
    pub tasks: u64,
    /// Batches in which they were processed.
    pub batches: u64,
    /// Random steals attempted.
    pub asked: u64,
    /// Random steals that returned tasks.
    pub stolen: u64,
    /// Total time of the successful random steals, from the request until the tasks are in the bag.
    pub stealing: Duration,
    /// Requests sent to lifelines.
    pub lifelines_asked: u64,
    /// Parts received from lifelines, at once or later.
    pub gifts: u64,
    /// Parts given away.
    pub given: u64,
    /// Time with tasks in the bag, by the clock of the place; includes polling for messages.
    pub busy: Duration,
    /// Copies of the bag sent to its partner; 0 unless the run is resilient.
    pub saves: u64,
}

impl PlaceBalance {
    /// Adds the place's work in another run.
    fn add(&mut self, other: &PlaceBalance) {
        self.tasks += other.tasks;
        self.batches += other.batches;
        self.asked += other.asked;
        self.stolen += other.stolen;
        self.stealing += other.stealing;
        self.lifelines_asked += other.lifelines_asked;
        self.gifts += other.gifts;
        self.given += other.given;
        self.busy += other.busy;
        self.saves += other.saves;
    }
}

/// The result of a run, and how it was balanced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balanced<R> {
    /// The result of all tasks.
    pub result: R,
    /// Balance of the run.
    pub balance: RunBalance,
}

/// Balance of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunBalance {
    /// Time from the start of the first task to the end of the last, by the clock of the first place.
    pub elapsed: Duration,
    /// Work of each place, in order of the places; `None` for one that has died.
    pub places: Vec<Option<PlaceBalance>>,
    /// Places that died and whose tasks the others have completed.
    pub recovered: u64,
}

impl RunBalance {
    /// Adds another run on the same places.
    pub fn add(&mut self, other: RunBalance) {
        self.elapsed += other.elapsed;
        self.recovered += other.recovered;
        if self.places.is_empty() {
            self.places = other.places;
            return;
        }
        for (place, other) in self.places.iter_mut().zip(other.places) {
            match (place.as_mut(), other) {
                (Some(place), Some(other)) => place.add(&other),
                _ => *place = None,
            }
        }
    }

    /// Returns the number of tasks of all living places. After a death it is approximate: tasks of the dead place are
    /// missing, and tasks that were repeated may count twice.
    pub fn tasks(&self) -> u64 {
        self.places.iter().flatten().map(|place| place.tasks).sum()
    }

    /// Returns the fraction of the time in which the places had no tasks, 0 to 1.
    pub fn idle(&self) -> f64 {
        let living: Vec<_> = self.places.iter().flatten().collect();
        let all = self.elapsed.as_secs_f64() * living.len() as f64;
        let busy: f64 = living.iter().map(|place| place.busy.as_secs_f64()).sum();
        if all > 0.0 { (1.0 - busy / all).max(0.0) } else { 0.0 }
    }
}

impl fmt::Display for RunBalance {
    /// Writes a table with a line for each place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>5}  {:>12}  {:>8}  {:>8}  {:>6}  {:>6}  {:>6}",
            "place", "tasks", "asked", "stolen", "gifts", "given", "idle"
        )?;
        for (number, place) in self.places.iter().enumerate() {
            let Some(place) = place else {
                writeln!(f, "{number:>5}  dead")?;
                continue;
            };
            let PlaceBalance { tasks, asked, stolen, lifelines_asked, gifts, given, busy, .. } = place;
            let idle = match self.elapsed.as_secs_f64() {
                0.0 => 0.0,
                elapsed => 100.0 * (1.0 - busy.as_secs_f64() / elapsed).max(0.0),
            };
            let asked = asked + lifelines_asked;
            writeln!(
                f,
                "{number:>5}  {tasks:>12}  {asked:>8}  {stolen:>8}  {gifts:>6}  {given:>6}  {idle:>4.1} %"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_what_is_not_busy_and_a_dead_place_has_none() {
        let place =
            |tasks, busy| Some(PlaceBalance { tasks, busy: Duration::from_secs(busy), ..Default::default() });
        let places = vec![place(30, 10), place(10, 5), None];
        let balance = RunBalance { elapsed: Duration::from_secs(10), places, recovered: 1 };
        assert_eq!((balance.tasks(), balance.idle()), (40, 0.25));
        let table = balance.to_string();
        assert_eq!(table.lines().count(), 4);
        assert!(table.ends_with("50.0 %\n    2  dead\n"), "{table}");
        assert_eq!(RunBalance::default().idle(), 0.0);
    }
}
