//! Interrupts raised by programs: those pending at each place, and masks.
//!
//! All targets of a request are called at about the same time; the system of each then accesses registers behind the
//! controller's single port, as in `cores::interrupt`. The interrupt is pending until its place takes it between two
//! steps; a computing step is indivisible. Invariants: a place takes interrupts in the order of their arrival, none
//! before its arrival and none while masked.

use super::state::{Event, WorldState};
use super::{ChipWorld, WorldError};
use crate::report::TimeCategory;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;
use std::collections::VecDeque;

/// The interrupts of one place.
#[derive(Clone, Default)]
pub(super) struct PendingInterrupts {
    /// Arrival time and source of the interrupts, in the order of arrival.
    coming: VecDeque<(Picoseconds, PlaceId)>,
    /// `true` if the place takes interrupts.
    taken: bool,
}

impl PendingInterrupts {
    fn put(&mut self, arrival: Picoseconds, source: PlaceId) {
        let after = self.coming.iter().rposition(|(other, _)| *other <= arrival).map_or(0, |index| index + 1);
        self.coming.insert(after, (arrival, source));
    }

    fn first(&self) -> Option<Picoseconds> {
        self.coming.front().filter(|_| self.taken).map(|(arrival, _)| *arrival)
    }
}

impl WorldState {
    /// Returns the arrival time of the first interrupt that `place` takes, in the past or the future.
    pub(super) fn first_interrupt(&self, place: PlaceId) -> Option<Picoseconds> {
        self.interrupts.get(place.index()).and_then(PendingInterrupts::first)
    }

    fn interrupts_of(&mut self, place: PlaceId) -> &mut PendingInterrupts {
        if self.interrupts.is_empty() {
            self.interrupts = vec![PendingInterrupts::default(); self.statuses.len()];
        }
        &mut self.interrupts[place.index()]
    }

    fn raise(&mut self, source: PlaceId, targets: &[PlaceId]) -> Result<(), WorldError> {
        self.cores.check_interrupts()?;
        self.settle(source);
        let now = self.cores.now(source);
        let (done, called) = self.cores.interrupt(source, now, targets.len() as u32);
        self.cores.spend(source, done - now, TimeCategory::Copying);
        for (target, called) in targets.iter().zip(called) {
            let key = self.key(called, EventClass::Arrival, *target);
            self.digest.record(key, Event::Interrupt as u32, u64::from(source.0));
            if self.is_alive(*target) {
                self.interrupts_of(*target).put(called, source);
                if let Some(first) = self.first_interrupt(*target) {
                    self.wake(*target, first);
                }
            }
        }
        Ok(())
    }

    fn take_interrupt(&mut self, place: PlaceId) -> Option<PlaceId> {
        self.first_interrupt(place).filter(|arrival| *arrival <= self.cores.now(place))?;
        let (_, source) = self.interrupts_of(place).coming.pop_front()?;
        // The core reads the register with the source and writes the one that clears it.
        let registers = self.cores.controller_register(place) * 2;
        self.cores.spend(place, registers, TimeCategory::Handling);
        Some(source)
    }
}

impl ChipWorld {
    /// Interrupts `targets` from `source`; one request covers as many targets as the controller's mask has bits.
    ///
    /// # Errors
    /// [`WorldError::NoInterrupts`]: the chip has no interrupt controller. [`WorldError::Unknown`]: its file lacks the
    /// costs of an interrupt.
    pub fn raise(&self, source: PlaceId, targets: &[PlaceId]) -> Result<(), WorldError> {
        self.shared.state.borrow_mut().raise(source, targets)
    }

    /// Takes the first interrupt that has arrived at `place`, unless masked, and returns its source.
    pub fn take_interrupt(&self, place: PlaceId) -> Option<PlaceId> {
        self.shared.state.borrow_mut().take_interrupt(place)
    }

    /// Enables or masks interrupts at `place`; they are masked at first. Masked interrupts stay pending.
    ///
    /// # Errors
    /// As [`ChipWorld::raise`].
    pub fn take_interrupts(&self, place: PlaceId, taken: bool) -> Result<(), WorldError> {
        let mut state = self.shared.state.borrow_mut();
        state.cores.check_interrupts()?;
        state.interrupts_of(place).taken = taken;
        Ok(())
    }
}
