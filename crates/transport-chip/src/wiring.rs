//! How the places of a run are joined: the protocol of messages, and what several of them get at once.
//!
//! A value for whoever asks for a world. Invariant: what divides the buffers is said before anything runs.

use crate::cores::Costs;
use crate::isles::Budget;
use crate::relay::Relays;
use crate::wire::{Division, Protocol};
use crate::world::Misfit;

/// How places are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    /// How messages cross the chip.
    pub protocol: Protocol,
    /// Messages to several places go down a tree of so many children each by interrupts, and take their lines from
    /// those of other messages. None: as the protocol has it.
    pub relays: Option<u32>,
}

impl From<Protocol> for Wiring {
    fn from(protocol: Protocol) -> Wiring {
        Wiring { protocol, relays: None }
    }
}

impl Wiring {
    /// What it needs of a chip with `places` places.
    ///
    /// # Errors
    /// [`Misfit`]: the chip does not have it, or not enough.
    pub(crate) fn divide(self, places: u32, costs: &Costs) -> Result<Division, Misfit> {
        let Some(children) = self.relays else { return self.protocol.divide(places, costs) };
        if self.protocol != Protocol::Isles {
            return Err(Misfit::NoRelays);
        }
        let relays = Relays::new(children, places, costs)?;
        let (lines, taken) = (costs.buffer_lines(), relays.lines());
        let short = |needed| Misfit::Buffer { lines, needed: needed + taken };
        let budget = Budget::new(places, lines.saturating_sub(taken), costs.line_bytes()).map_err(short)?;
        Ok(Division::Relayed(budget, relays))
    }
}
