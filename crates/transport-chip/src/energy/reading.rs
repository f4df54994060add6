//! Readings of the energy during a run, for observers.
//!
//! A core may have run ahead of the present by one step of work; the reading includes the part of it until its own
//! time, spread evenly as in the profile. Invariant: readings never decrease, and between two of them no core exceeds
//! its power.

use super::profile::{Sample, SampleInterval};
use isles_chip::quantity::{Attojoules, Picoseconds};

/// Energy drawn until one time by each core of a chip and, as the last value, by everything else, by the chosen model.
#[derive(Clone)]
pub struct EnergyReading {
    time: Picoseconds,
    consumers: Vec<SampleInterval>,
}

impl EnergyReading {
    /// Makes the reading at the start of a run on a chip with `cores` cores.
    pub(crate) fn new(cores: usize) -> EnergyReading {
        EnergyReading { time: Picoseconds::ZERO, consumers: vec![SampleInterval::default(); cores + 1] }
    }

    /// Returns the time of the reading.
    pub fn time(&self) -> Picoseconds {
        self.time
    }

    /// Returns the energy of one core.
    pub fn core(&self, core: usize) -> Attojoules {
        self.consumers[core].booked
    }

    /// Returns the energy of the chip.
    pub fn total(&self) -> Attojoules {
        self.consumers.iter().map(|consumer| consumer.booked).sum()
    }

    /// Advances to `until`. `sample` returns the energy of a consumer at or after `until`.
    pub(crate) fn advance(
        &mut self,
        until: Picoseconds,
        mut sample: impl FnMut(usize, Picoseconds) -> Sample,
    ) {
        self.time = until.max(self.time);
        for (number, consumer) in self.consumers.iter_mut().enumerate() {
            if consumer.last.time < self.time {
                (consumer.first, consumer.last) = (consumer.last, sample(number, self.time));
            }
            consumer.booked = consumer.drawn_until(self.time).max(consumer.booked);
        }
    }
}
