//! The one port through which interrupts pass, and the interrupts that cores have not taken yet.
//!
//! The port gives each target so many cycles, and the first so many of a crowd are through before the first one
//! arrives: a request of a few targets takes what one takes, a long one or many at once wait in line.

use crate::chip::Interrupts;
use crate::quantity::Picoseconds;
use crate::topology::CoreId;
use std::collections::VecDeque;

/// The port.
pub struct InterruptPort {
    /// From raising to arrival when nobody else is there.
    alone: Picoseconds,
    /// What each target takes at the port.
    each: Picoseconds,
    pub traits: Interrupts,
    /// When the port is through with all that has been asked of it.
    through: Picoseconds,
    /// By core: who interrupts it and when that arrives, in that order.
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

    /// `source` interrupts `target`; when that arrives.
    pub fn raise(&mut self, now: Picoseconds, source: CoreId, target: CoreId) -> Picoseconds {
        self.through = self.through.max(now) + self.each;
        let arrival = now + self.alone + self.traits.late(self.through - now, self.each);
        self.coming[target.0 as usize].push_back((arrival, source));
        arrival
    }

    /// Takes the first interrupt that had arrived at `core` by `now`: who raised it.
    pub fn take(&mut self, now: Picoseconds, core: CoreId) -> Option<CoreId> {
        let coming = &mut self.coming[core.0 as usize];
        let (_, source) = *coming.front().filter(|(arrival, _)| *arrival <= now)?;
        coming.pop_front();
        Some(source)
    }

    /// When the first interrupt that is not taken arrives, or did.
    pub fn first(&self, core: CoreId) -> Option<Picoseconds> {
        self.coming[core.0 as usize].front().map(|(arrival, _)| *arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::TileId;

    #[test]
    fn a_long_request_waits_at_the_port_and_a_later_one_behind_it() {
        let traits = Interrupts { tile: TileId(0), targets_free: 20, targets_max: 32 };
        let mut port = InterruptPort::new(&traits, Picoseconds(2_000), Picoseconds(143), 48);
        let zero = Picoseconds::ZERO;
        let arrivals: Vec<u64> = (0..48).map(|core| port.raise(zero, CoreId(7), CoreId(core)).0).collect();
        assert_eq!((arrivals[0], arrivals[19], arrivals[47]), (2_000, 2_000, 2_000 + 28 * 143));
        assert_eq!(port.raise(Picoseconds(143), CoreId(8), CoreId(0)).0, 143 + 2_000 + 28 * 143);
        let late = Picoseconds(1_000_000);
        assert_eq!(port.raise(late, CoreId(9), CoreId(1)), late + Picoseconds(2_000));
        assert_eq!(port.take(Picoseconds(1_999), CoreId(0)), None);
        assert_eq!(port.take(Picoseconds(2_000), CoreId(0)), Some(CoreId(7)));
        assert_eq!(port.first(CoreId(0)), Some(Picoseconds(143 + 2_000 + 28 * 143)));
    }
}
