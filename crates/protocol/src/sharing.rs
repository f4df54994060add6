//! Work sharing: the choice of a place for a task whose place the program leaves open.
//!
//! Each place knows the tasks that it has placed itself, and learns when one ends. It chooses the place that has the
//! fewest of them, and among several the first one after itself: tasks that start one another go round, and a loop
//! deals them out. It knows neither what others place nor how long a task takes. Invariant: a dead place is chosen no
//! more, unless all are dead.

use crate::PlaceId;
use crate::ordered::OrderedSet;

/// The tasks that one place has placed and that have not ended, by place.
#[derive(Debug)]
pub struct LeastBusy {
    here: u32,
    /// Loads by distance, in places after this one; itself last.
    loads: Vec<u32>,
    /// Load and distance of each living place.
    by_load: OrderedSet<(u32, u32)>,
}

/// Error of a report by a place that has no such task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPlaced;

impl LeastBusy {
    /// Returns the loads as place `here` of `places` sees them, with the places that are alive by `is_alive`; nothing
    /// is placed yet.
    pub fn new(here: PlaceId, places: u32, is_alive: impl Fn(PlaceId) -> bool) -> LeastBusy {
        let mut chooser =
            LeastBusy { here: here.0, loads: vec![0; places as usize], by_load: OrderedSet::new() };
        let alive = (0..places).filter(|distance| is_alive(chooser.place(*distance)));
        chooser.by_load = alive.map(|distance| (0, distance)).collect();
        chooser
    }

    /// Returns the place for the next task, which counts until [`LeastBusy::ended`].
    pub fn place_task(&mut self) -> PlaceId {
        // If all others are gone, this one is left.
        let Some((load, distance)) = self.by_load.pop_first() else { return PlaceId(self.here) };
        self.loads[distance as usize] = load + 1;
        self.by_load.insert((load + 1, distance));
        self.place(distance)
    }

    /// Records that one task of `place` has ended.
    ///
    /// # Errors
    /// [`NotPlaced`]: the place has no such task.
    pub fn ended(&mut self, place: PlaceId) -> Result<(), NotPlaced> {
        let places = self.loads.len() as u32;
        let distance = (place.0 + places - self.here + places - 1) % places;
        let load = self.loads.get_mut(distance as usize).filter(|load| **load > 0).ok_or(NotPlaced)?;
        *load -= 1;
        if self.by_load.remove((*load + 1, distance)) {
            self.by_load.insert((*load, distance));
        }
        Ok(())
    }

    /// Handles the death of `place`.
    pub fn died(&mut self, place: PlaceId) {
        self.by_load.retain(|(_, distance)| (self.here + 1 + distance) % self.loads.len() as u32 != place.0);
    }

    fn place(&self, distance: u32) -> PlaceId {
        PlaceId((self.here + 1 + distance) % self.loads.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all_alive(here: u32, places: u32) -> LeastBusy {
        LeastBusy::new(PlaceId(here), places, |_| true)
    }

    #[test]
    fn a_loop_deals_tasks_out_and_the_place_itself_comes_last() {
        let mut chooser = all_alive(1, 3);
        let chosen: Vec<u32> = (0..6).map(|_| chooser.place_task().0).collect();
        assert_eq!(chosen, [2, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn tasks_that_start_one_another_go_round() {
        let mut here = 0;
        let mut visited = Vec::new();
        for _ in 0..4 {
            here = all_alive(here, 4).place_task().0;
            visited.push(here);
        }
        assert_eq!(visited, [1, 2, 3, 0]);
    }

    #[test]
    fn who_has_ended_first_gets_the_next_and_the_dead_none() {
        let mut chooser = all_alive(0, 3);
        for _ in 0..3 {
            chooser.place_task();
        }
        assert_eq!(chooser.ended(PlaceId(2)), Ok(()));
        assert_eq!(chooser.place_task(), PlaceId(2));
        chooser.died(PlaceId(1));
        let chosen: Vec<u32> = (0..4).map(|_| chooser.place_task().0).collect();
        assert_eq!(chosen, [2, 0, 2, 0]);
        assert_eq!(chooser.ended(PlaceId(1)), Ok(()), "its end may still come");
        assert_eq!(chooser.ended(PlaceId(1)), Err(NotPlaced));
        assert_eq!(chooser.ended(PlaceId(7)), Err(NotPlaced));
    }

    #[test]
    fn who_is_left_alone_takes_all() {
        let mut chooser = LeastBusy::new(PlaceId(1), 2, |place| place == PlaceId(1));
        assert_eq!([chooser.place_task(), chooser.place_task()], [PlaceId(1); 2]);
        chooser.died(PlaceId(1));
        assert_eq!(chooser.place_task(), PlaceId(1));
    }

    proptest! {
        /// In any order of ends, the chosen place never has more tasks than another living one.
        #[test]
        fn the_chosen_place_is_among_the_least_busy(
            here in 0_u32..6,
            steps in prop::collection::vec((any::<bool>(), 0_u32..6), 0..200),
        ) {
            let (mut chooser, mut loads) = (all_alive(here, 6), [0_u32; 6]);
            for (places, at) in steps {
                if places {
                    let chosen = chooser.place_task().index();
                    prop_assert_eq!(loads[chosen], *loads.iter().min().unwrap());
                    loads[chosen] += 1;
                } else {
                    let is_placed = loads[at as usize] > 0;
                    prop_assert_eq!(chooser.ended(PlaceId(at)).is_ok(), is_placed);
                    loads[at as usize] -= u32::from(is_placed);
                }
            }
        }
    }
}
