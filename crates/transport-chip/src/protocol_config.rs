//! How the places of a run are joined: the protocol of messages, and what several of them get at once.
//!
//! A value for whoever asks for a world. Invariant: what divides the buffers is said before anything runs.

use crate::async_broadcast::AsyncBroadcast;
use crate::cores::Costs;
use crate::isles::DoorbellLayout;
use crate::protocol::{BufferLayout, Protocol};
use crate::world::WorldError;

/// How places are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolConfig {
    /// How messages cross the chip.
    pub protocol: Protocol,
    /// Messages to several places go down a tree of so many children each by interrupts, and take their lines from
    /// those of other messages. None: as the protocol has it.
    pub relays: Option<u32>,
}

impl From<Protocol> for ProtocolConfig {
    fn from(protocol: Protocol) -> ProtocolConfig {
        ProtocolConfig { protocol, relays: None }
    }
}

impl ProtocolConfig {
    /// What it needs of a chip with `places` places.
    ///
    /// # Errors
    /// [`WorldError`]: the chip does not have it, or not enough.
    pub(crate) fn buffer_layout(self, places: u32, costs: &Costs) -> Result<BufferLayout, WorldError> {
        let Some(children) = self.relays else { return self.protocol.buffer_layout(places, costs) };
        if self.protocol != Protocol::Doorbell {
            return Err(WorldError::NoRelays);
        }
        let relays = AsyncBroadcast::new(children, places, costs)?;
        let (lines, taken) = (costs.buffer_lines(), relays.lines());
        let short = |needed| WorldError::Buffer { lines, needed: needed + taken };
        let budget =
            DoorbellLayout::new(places, lines.saturating_sub(taken), costs.line_bytes()).map_err(short)?;
        Ok(BufferLayout::Relayed(budget, relays))
    }
}
