//! What a directed link of the mesh carries.
//!
//! How links are connected is in `topology`, and who waits for whom on them in the kernel. Invariant: a packet
//! fills whole flits.

use crate::cost::{Clocks, Cost};
use crate::kernel::LinkTiming;
use crate::quantity::Bytes;

/// What a directed link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTraits {
    /// The unit of transfer.
    pub flit: Bytes,
    /// How long a link is busy with one flit.
    pub flit_time: Cost,
    /// How long the head of a packet takes from one router to the next.
    pub head: Cost,
    /// The most that a packet carries.
    pub payload_max: Bytes,
    /// What a packet carries besides.
    pub overhead: Bytes,
    /// How long a link takes no packet after it has passed one.
    pub recovery: Cost,
}

impl LinkTraits {
    /// Flits of a packet that carries so many bytes.
    pub fn flits(&self, bytes: u64) -> u64 {
        (bytes + self.overhead.0).div_ceil(self.flit.0)
    }

    /// How fast packets move at these clocks.
    pub fn pace(&self, clocks: &Clocks) -> LinkTiming {
        let length = |cost: &Cost| cost.at(clocks).over(0);
        LinkTiming {
            hop: length(&self.head),
            flit: length(&self.flit_time),
            recovery: length(&self.recovery),
        }
    }
}
