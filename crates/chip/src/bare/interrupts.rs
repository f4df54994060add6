//! The interrupt controller: pending interrupts of cores, and the single port to its registers.
//!
//! Raising is parallel: all targets of a request are called at about the same time. A core that takes an interrupt
//! reads a register of the controller and writes another one. All registers are behind one port, which serves one core
//! after the other, where simultaneous targets queue (Petrović et al., 6th MARC symposium, paper 5, 004:1110).
//! The first `targets_free` of them do not wait.

use crate::chip::Interrupts;
use crate::quantity::Picoseconds;
use crate::topology::CoreId;
use std::collections::VecDeque;

/// The port.
pub struct InterruptPort {
    /// Time from raising to arrival without contention.
    alone: Picoseconds,
    /// Time of each core at the port.
    each: Picoseconds,
    pub traits: Interrupts,
    /// Time at which the port has served all requests.
    through: Picoseconds,
    /// Pending interrupts of each core, with arrival time and source, in order.
    coming: Vec<VecDeque<(Picoseconds, CoreId)>>,
}

impl InterruptPort {
    pub fn new(traits: &Interrupts, alone: Picoseconds, each: Picoseconds, cores: u32) -> InterruptPort {
        InterruptPort {
            alone,
            each,
            traits: *traits,
            through: Picoseconds::ZERO,
            coming: vec![VecDeque::new(); cores as usize],
        }
    }

    /// Interrupts `target` from `source` at a distance of `way`; returns the arrival time.
    pub fn raise(
        &mut self,
        now: Picoseconds,
        source: CoreId,
        target: CoreId,
        way: Picoseconds,
    ) -> Picoseconds {
        let arrival = now + self.alone + way;
        self.coming[target.0 as usize].push_back((arrival, source));
        arrival
    }

    /// Requests the registers for a core; returns its wait for earlier requests.
    pub fn wait(&mut self, now: Picoseconds) -> Picoseconds {
        self.through = self.through.max(now) + self.each;
        self.traits.late(self.through - now, self.each)
    }

    /// Takes the first interrupt that had arrived at `core` by `now`, and returns its source.
    pub fn take(&mut self, now: Picoseconds, core: CoreId) -> Option<CoreId> {
        let coming = &mut self.coming[core.0 as usize];
        let (_, source) = *coming.front().filter(|(arrival, _)| *arrival <= now)?;
        coming.pop_front();
        Some(source)
    }

    /// Returns the arrival time of the first pending interrupt, in the past or the future.
    pub fn first(&self, core: CoreId) -> Option<Picoseconds> {
        self.coming[core.0 as usize].front().map(|(arrival, _)| *arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::TileId;

    #[test]
    fn all_targets_are_called_at_once_and_wait_for_the_registers() {
        let traits = Interrupts { tile: TileId(0), targets_free: 20, targets_max: 32 };
        let mut port = InterruptPort::new(&traits, Picoseconds(2_000), Picoseconds(143), 48);
        let (zero, way) = (Picoseconds::ZERO, Picoseconds(7));
        let mut raise = |core| port.raise(zero, CoreId(7), CoreId(core), way).0;
        assert!((0..48).all(|core| raise(core) == 2_007));
        let called = Picoseconds(2_007);
        assert_eq!(port.take(Picoseconds(2_006), CoreId(0)), None);
        assert_eq!(port.take(called, CoreId(0)), Some(CoreId(7)));
        assert_eq!((port.first(CoreId(0)), port.first(CoreId(1))), (None, Some(called)));
        let waits: Vec<u64> = (0..48).map(|_| port.wait(called).0).collect();
        assert_eq!((waits[0], waits[19], waits[20], waits[47]), (0, 0, 143, 28 * 143));
        assert_eq!(port.wait(called + Picoseconds(143)).0, 28 * 143, "behind those");
        assert_eq!(port.wait(Picoseconds(1_000_000)), zero);
    }
}
