//! One packet, from the system of its sender to that of its receiver.
//!
//! It does not know what a packet is part of. Invariant: all its times are known when it is sent.

use super::{Driver, InterruptDriven, Packet};
use crate::cores::Cores;
use crate::inbox::{Fragment, InboxEntry};
use crate::report::TimeCategory;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;

impl<D: Driver> InterruptDriven<D> {
    /// Sends a packet with `bytes` bytes of a lane; gives when it can be found.
    pub(super) fn inject(
        &mut self,
        cores: &mut Cores,
        lane: usize,
        bytes: usize,
        piece: Fragment,
    ) -> Picoseconds {
        let (source, target, class) = self.pairs.ends(lane);
        let packet = Packet { source, target, class, lines: self.driver.lines(bytes) };
        self.driver.prepare(cores, packet);
        cores.load_private(source, packet.lines, piece.message_bytes());
        let ready = cores.now(source);
        let slot = self.driver.slot(cores, packet, ready);
        let (start, took) = self.driver.write(cores, packet, slot);
        if slot == ready {
            cores.spend(source, (start - ready) + took, TimeCategory::Copying);
        } else {
            // The system goes on with it by itself when there is room.
            self.place_state(source).system.reserve(cores.present(), start, took);
        }
        let called = start + took + cores.times(source).interrupt.unwrap_or_default().over(0);
        // First when it can, then what is in its way at that time: several that come at once each wait only once.
        let alone = self.driver.taking(cores, packet);
        let begin = self.place_state(target).system.reserve(cores.present(), called, alone);
        let (needed, whole) = self.driver.take_in(cores, packet, begin);
        self.driver.free(packet, begin + needed);
        let state = &mut self.lanes[lane];
        state.last = state.last.max(begin + whole);
        state.unread += bytes;
        state.waiting += 1;
        let found = state.last;
        let key = self.tie_break.key(found, EventClass::Arrival, lane as u32, 0);
        let queued =
            InboxEntry { key, lane: lane as u32, source, lines: bytes as u32, fetch: 0, slots: 0, piece };
        self.place_state(target).inbox.put(queued);
        found
    }
}
