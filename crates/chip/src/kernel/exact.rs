//! The network with an event for each hop, as the reference for the fast one.
//!
//! Each link serves the packets in the order of arrival of their headers, and recovers after each. It is for tests and
//! single cases; runs of programs do not use it.

use super::{EventClass, LinkTiming, Queue, TieBreak};
use crate::quantity::Picoseconds;

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time at which it enters the network.
    pub from: Picoseconds,
    /// The links of its path, in order.
    pub path: Vec<usize>,
    /// Its length, header included.
    pub flits: u64,
}

/// Returns the arrival time of each packet's last flit. Headers that reach a link simultaneously are served in the
/// order of `packets`.
pub fn arrivals(links: usize, pace: LinkTiming, packets: &[Packet]) -> Vec<Picoseconds> {
    let tie_break = TieBreak::new(0);
    let mut free = vec![Picoseconds(0); links];
    let mut queue = Queue::new(packets.len());
    let mut hops = vec![0; packets.len()];
    let mut done = vec![Picoseconds(0); packets.len()];
    for (number, packet) in packets.iter().enumerate() {
        queue.set(number as u32, tie_break.key(packet.from, EventClass::Arrival, number as u32, 0));
    }
    while let Some((key, owner)) = queue.pop() {
        let number = owner as usize;
        let (packet, hop) = (&packets[number], hops[number]);
        let body = Picoseconds(pace.flit.0 * packet.flits);
        let Some(&link) = packet.path.get(hop) else {
            done[number] = key.time() + body;
            continue;
        };
        let start = key.time().max(free[link]);
        free[link] = start + body + pace.recovery;
        hops[number] = hop + 1;
        queue.set(owner, tie_break.key(start + pace.hop, EventClass::Arrival, owner, hop as u32 + 1));
    }
    done
}
