//! On which processor a place waits.
//!
//! If places share processors, those that wait yield the processor in turn, so each look costs a turn of all that wait
//! on the same one. The system takes five places on one processor and three on the other for even; the turn of five is
//! what everybody waits for. So a waiting place moves itself to where fewer are awake. The invariant: a move makes the
//! difference smaller, so a run that is even stays as it is.
//!
//! If each place has a processor of its own, one that is about to sleep returns to it if it was moved to that of
//! another place that is awake; from elsewhere only if the user chose the processor, because the system moves a place
//! away from what others run there.
//!
//! One that works is never moved: where it runs is the system's affair.

use crate::layout::PlaceBlock;
use crate::lifecycle::Lifecycle;
use crate::pinning;
use crate::segment::{Segment, View};
use isles_transport::PlaceId;
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// Turns between two looks at the other places: some 0.4 milliseconds of waiting with 8 places on 2 processors.
const TURNS: u32 = 64;

/// The core of one place.
pub(super) struct CoreBalance {
    here: usize,
    blocks: Vec<View<PlaceBlock>>,
    processors: Vec<usize>,
    home: usize,
    turns: Cell<u32>,
}

impl CoreBalance {
    /// The core balance of `here`, if a processor is kept for it.
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

    /// Returns to the place's own processor from where it does not belong.
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

    /// Counts a turn; looks at the others now and then.
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

    /// Says on which processor this place is; which of the run's own it is.
    fn publish(&self) -> Option<usize> {
        let here = rustix::thread::sched_getcpu();
        // Relaxed: a hint to the others.
        self.blocks[self.here].processor.store(here as u32 + 1, Ordering::Relaxed);
        self.processors.iter().position(|processor| *processor == here)
    }

    /// Returns the index, among the run's processors, of the one an awake place last used.
    fn core_of(&self, block: &PlaceBlock) -> Option<usize> {
        let processor = awake_on(block)?;
        self.processors.iter().position(|known| *known == processor)
    }
}

/// Returns `true` if a place that is about to sleep on the processor `here` does better at its own; other places are
/// awake on `others`.
fn belongs_home(here: usize, home: usize, returns: bool, mut others: impl Iterator<Item = usize>) -> bool {
    here != home && (returns || others.any(|processor| processor == here))
}

/// Returns the processor on which a place was last seen, if it is awake.
fn awake_on(block: &PlaceBlock) -> Option<usize> {
    // Relaxed: hints; a place that is counted where it is not makes one move too many.
    let word = block.processor.load(Ordering::Relaxed);
    let asleep = block.sleeping.0.load(Ordering::Relaxed) != 0;
    let over = Lifecycle::decode(block.life.load(Ordering::Relaxed)).is_over();
    (word as usize).checked_sub(1).filter(|_| !asleep && !over)
}

/// The processor with the fewest places awake, if going there from `here` makes the difference smaller.
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
        /// Whoever looks next: after at most as many moves as places the run is even.
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
