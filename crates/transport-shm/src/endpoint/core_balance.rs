//! The choice of the processor on which a place waits.
//!
//! If places share processors, the waiting ones yield the processor in turn, so each poll costs a round of all that
//! wait on the same one. The system leaves five places on one processor and three on the other, and then all wait for
//! the round of five. So a waiting place moves itself to the processor where fewer are awake. Invariant: a move makes
//! the difference smaller, so an even run stays as it is.
//!
//! If each place has a processor of its own, a place that is about to sleep returns to it if it was moved to that of
//! another awake place; from elsewhere only if the user chose the processor, because the system moves places away from
//! other programs.
//!
//! A working place is never moved: the system decides where it runs.

use crate::layout::PlaceBlock;
use crate::lifecycle::Lifecycle;
use crate::pinning;
use crate::segment::{Segment, View};
use isles_transport::PlaceId;
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// Turns between two checks of the other places: some 0.4 milliseconds of waiting with 8 places on 2 processors.
const TURNS: u32 = 64;

/// State of one place for the choice of its processor.
pub(super) struct CoreBalance {
    here: usize,
    blocks: Vec<View<PlaceBlock>>,
    processors: Vec<usize>,
    home: usize,
    turns: Cell<u32>,
}

impl CoreBalance {
    /// Returns the core balance of `here`, if a processor is assigned to it.
    pub fn of(segment: &Segment, here: PlaceId) -> Option<CoreBalance> {
        let block = |place| View::new(segment, segment.layout().place_block(place));
        let balance = CoreBalance {
            here: here.index(),
            blocks: segment.all_places().map(block).collect(),
            processors: segment.allowed(),
            home: segment.home(here)?,
            turns: Cell::new(0),
        };
        balance.publish();
        Some(balance)
    }

    /// Moves the thread to the place's own processor, if it should not sleep on the present one.
    pub fn before_sleep(&self) {
        let here = rustix::thread::sched_getcpu();
        // Relaxed, both: a hint to the others, and a setting that was made before this place started.
        let own = &self.blocks[self.here];
        own.processor.store(here as u32 + 1, Ordering::Relaxed);
        let returns = own.returns.load(Ordering::Relaxed) != 0;
        let others = self.blocks.iter().enumerate().filter(|(index, _)| *index != self.here);
        if belongs_home(here, self.home, returns, others.filter_map(|(_, block)| awake_on(block))) {
            pinning::start_on(self.home);
        }
    }

    /// Counts a turn. Every `TURNS` turns, moves the place if another processor has fewer awake places.
    pub fn turn(&self) {
        let turns = self.turns.get().wrapping_add(1);
        self.turns.set(turns);
        if turns.is_multiple_of(TURNS) {
            self.balance();
        }
    }

    #[cold]
    fn balance(&self) {
        let Some(here) = self.publish() else { return };
        let mut awake = vec![0; self.processors.len()];
        for processor in self.blocks.iter().filter_map(|block| self.core_of(block)) {
            awake[processor] += 1;
        }
        if let Some(other) = better(&awake, here) {
            pinning::start_on(self.processors[other]);
            self.publish();
        }
    }

    /// Publishes the processor that this place is on. Returns its index among the run's processors.
    fn publish(&self) -> Option<usize> {
        let here = rustix::thread::sched_getcpu();
        // Relaxed: a hint to the others.
        self.blocks[self.here].processor.store(here as u32 + 1, Ordering::Relaxed);
        self.processors.iter().position(|processor| *processor == here)
    }

    /// Returns the index, among the run's processors, of the one that the place of `block` last used, if it is awake.
    fn core_of(&self, block: &PlaceBlock) -> Option<usize> {
        let processor = awake_on(block)?;
        self.processors.iter().position(|known| *known == processor)
    }
}

/// Returns `true` if a place that is about to sleep on processor `here` should return to `home`; other places are awake
/// on `others`.
fn belongs_home(here: usize, home: usize, returns: bool, mut others: impl Iterator<Item = usize>) -> bool {
    here != home && (returns || others.any(|processor| processor == here))
}

/// Returns the processor on which a place was last seen, if it is awake.
fn awake_on(block: &PlaceBlock) -> Option<usize> {
    // Relaxed: hints; a place that is counted on the wrong processor causes at most a needless move.
    let word = block.processor.load(Ordering::Relaxed);
    let asleep = block.sleeping.0.load(Ordering::Relaxed) != 0;
    let over = Lifecycle::decode(block.life.load(Ordering::Relaxed)).is_over();
    (word as usize).checked_sub(1).filter(|_| !asleep && !over)
}

/// Returns the processor with the fewest awake places, if a move there from `here` makes the difference smaller.
fn better(awake: &[u32], here: usize) -> Option<usize> {
    let (other, fewest) = awake.iter().enumerate().min_by_key(|(_, count)| **count)?;
    (awake[here] > fewest + 1).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_even_run_stays_as_it_is() {
        for (awake, here) in [(&[4, 4][..], 0), (&[4, 3], 0), (&[3, 4], 0), (&[1], 0), (&[0, 1, 0], 1)] {
            assert_eq!(better(awake, here), None, "{awake:?}");
        }
        assert_eq!(better(&[5, 3], 0), Some(1));
        assert_eq!(better(&[5, 3], 1), None);
    }

    #[test]
    fn a_place_goes_home_from_a_core_of_another_place_and_from_any_if_the_user_said_so() {
        let goes = |here, returns, others: &[usize]| belongs_home(here, 3, returns, others.iter().copied());
        assert!(!goes(3, true, &[3]), "it is at home, and the other one goes");
        assert!(goes(2, false, &[0, 2]));
        assert!(!goes(2, false, &[0, 1, 3]), "moved there by the system, which had a reason");
        assert!(goes(2, true, &[]));
    }

    proptest! {
        /// In any order of checks, the run is even after at most one move for each place.
        #[test]
        fn moves_of_single_places_end_even(
            mut cores in prop::collection::vec(0_usize..4, 1..40),
            order in prop::collection::vec(any::<prop::sample::Index>(), 400),
        ) {
            let count = |cores: &[usize]| {
                let mut awake = vec![0; 4];
                cores.iter().for_each(|core| awake[*core] += 1);
                awake
            };
            let (places, mut moves) = (cores.len(), 0);
            for place in order.iter().map(|index| index.index(places)).chain(0..places) {
                if let Some(other) = better(&count(&cores), cores[place]) {
                    cores[place] = other;
                    moves += 1;
                }
            }
            let awake = count(&cores);
            prop_assert!(moves <= places);
            prop_assert!(awake.iter().max().unwrap() - awake.iter().min().unwrap() <= 1, "{awake:?}");
        }
    }
}
