//! One packet, from the system of its sender to that of its receiver.
//!
//! It does not know what a packet is part of. Invariant: all its times are known when it is sent.

use super::{Called, Driver, Packet};
use crate::cores::Cores;
use crate::mail::{Letter, Piece};
use crate::report::Spending;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;

impl<D: Driver> Called<D> {
    /// Sends a packet with `bytes` bytes of a lane; gives when it can be found.
    pub(super) fn inject(
        &mut self,
        cores: &mut Cores,
        lane: usize,
        bytes: usize,
        piece: Piece,
    ) -> Picoseconds {
        let (source, target, class) = self.pairs.ends(lane);
        let packet = Packet { source, target, class, lines: self.driver.lines(bytes) };
        self.driver.prepare(cores, packet);
        cores.load_private(source, packet.lines, piece.message_bytes());
        let ready = cores.now(source);
        let slot = self.driver.slot(cores, packet, ready);
        let (start, took) = self.driver.write(cores, packet, slot);
        if slot == ready {
            cores.spend(source, (start - ready) + took, Spending::Copying);
        } else {
            // The system goes on with it by itself when there is room.
            self.desk(source).system.employ(cores.present(), start, took);
        }
        let called = start + took + cores.times(source).interrupt.unwrap_or_default().over(0);
        // First when it can, then what is in its way at that time: several that come at once each wait only once.
        let alone = self.driver.taking(cores, packet);
        let begin = self.desk(target).system.employ(cores.present(), called, alone);
        let (needed, whole) = self.driver.take_in(cores, packet, begin);
        self.driver.free(packet, begin + needed);
        let state = &mut self.lanes[lane];
        state.last = state.last.max(begin + whole);
        state.unread += bytes;
        state.waiting += 1;
        let found = state.last;
        let key = self.ties.key(found, EventClass::Arrival, lane as u32, 0);
        let letter =
            Letter { key, lane: lane as u32, source, lines: bytes as u32, fetch: 0, slots: 0, piece };
        self.desk(target).mail.put(letter);
        found
    }
}
