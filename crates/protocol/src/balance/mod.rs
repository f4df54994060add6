//! Load balancing over places, as a pure state machine for each place: which place gets tasks from which, and when.
//!
//! Its inputs are what happens at the place (tasks or a request have arrived, the worker has run out), its outputs what
//! to do; the façade's `glb` does it. It holds no task, reads no clock and sends nothing. The protocol, and the proof
//! that it ends, is in `docs/design/glb.md`. Invariant: tasks in the bag have a worker, or the method that accepted
//! them has returned that one must be started.

mod asking;
pub mod backup;
mod batch;
mod lifelines;
mod parameters;
#[cfg(test)]
mod tests;

pub use asking::StealKind;
pub use batch::Batch;
pub use parameters::{BATCH_MAX, ParameterFault, Parameters, STEALS_MAX};

use asking::{VictimSelection, thieves_of};
use std::collections::VecDeque;

/// The balancer of one place.
#[derive(Clone, Debug)]
pub struct Balancer {
    /// True if a task of the finish processes the bag, or asks for tasks.
    has_worker: bool,
    asking: VictimSelection,
    /// Places that have this one as a lifeline and are remembered.
    remembered: Vec<usize>,
    /// Those of them that have asked and received nothing yet, the first one first.
    thieves: VecDeque<usize>,
}

impl Balancer {
    /// Returns the state of the place `own`, at rest, among `members`, which are sorted and include it. All lifelines
    /// have been asked.
    ///
    /// `draw` returns a random number below the one it is given.
    pub fn new(
        own: usize,
        members: &[usize],
        parameters: &Parameters,
        draw: impl FnMut(usize) -> usize,
    ) -> Balancer {
        let remembered = thieves_of(own, members, parameters);
        Balancer {
            has_worker: false,
            asking: VictimSelection::new(own, members, parameters, draw),
            thieves: remembered.iter().copied().collect(),
            remembered,
        }
    }

    /// Records that there are tasks in the bag. Returns whether to start a worker.
    #[must_use = "tasks without a worker stay for ever"]
    pub fn put(&mut self) -> bool {
        !std::mem::replace(&mut self.has_worker, true)
    }

    /// Accepts tasks of the lifeline `giver` that answer an earlier request. Returns whether to start a worker.
    #[must_use = "tasks without a worker stay for ever"]
    pub fn accept(&mut self, giver: usize) -> bool {
        self.asking.found(giver, StealKind::Lifeline);
        self.put()
    }

    /// Returns the first place that waits for tasks.
    pub fn next_thief(&self) -> Option<usize> {
        self.thieves.front().copied()
    }

    /// Removes the first place that waits, which was given tasks.
    pub fn remove_thief(&mut self) {
        self.thieves.pop_front();
    }

    /// Returns the place to ask for tasks now that the bag is empty. `None` ends the worker: no place is left to ask.
    ///
    /// Skips places for which `is_dead` holds; `draw` returns a random number below its argument.
    pub fn ask(
        &mut self,
        draw: impl FnMut(usize) -> usize,
        is_dead: impl Fn(usize) -> bool,
    ) -> Option<(usize, StealKind)> {
        let next = self.asking.next(draw, is_dead);
        self.has_worker = next.is_some();
        next
    }

    /// Records that a place has asked and there is nothing to give. Remembers it if it is a thief of this lifeline.
    pub fn refused(&mut self, thief: usize, kind: StealKind) {
        let is_known = self.remembered.contains(&thief) && !self.thieves.contains(&thief);
        if kind == StealKind::Lifeline && is_known {
            self.thieves.push_back(thief);
        }
    }

    /// Records that the worker has asked `victim`, and has received tasks.
    pub fn answered(&mut self, victim: usize, kind: StealKind) {
        self.asking.found(victim, kind);
    }
}
