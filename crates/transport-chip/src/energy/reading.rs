//! What a run has drawn so far, for who looks at it while it goes on.
//!
//! A core may have run ahead of the present by one stretch of work: of that the reading has the part until its own
//! time, as if it was drawn evenly, like the profile. Invariant: a reading never goes back, and between two of them no
//! core draws more than it can.

use super::profile::{Sample, SampleInterval};
use isles_chip::quantity::{Attojoules, Picoseconds};

/// Energy that each core of a chip and, after them, everything else had drawn by one time, by the run's own model.
#[derive(Clone)]
pub struct EnergyReading {
    time: Picoseconds,
    consumers: Vec<SampleInterval>,
}

impl EnergyReading {
    /// Of a run that has not begun, on a chip of that many cores.
    pub(crate) fn new(cores: usize) -> EnergyReading {
        EnergyReading { time: Picoseconds::ZERO, consumers: vec![SampleInterval::default(); cores + 1] }
    }

    /// The time until which it holds.
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

    /// Advances to `until`. `sample` returns the energy of a consumer at a time that is not before `until`.
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
