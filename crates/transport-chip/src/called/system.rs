//! What the systems do: they send packets and take them in, one after the other, while their places compute or wait.
//!
//! It does not know what a packet is part of. Invariant: what a system did while its place was busy is charged to that
//! place once.

use super::{Called, Driver, Packet};
use crate::cores::Cores;
use crate::mail::{Letter, Piece};
use crate::report::Spending;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

impl<D: Driver> Called<D> {
    /// Lets the system of `place` work for so long, at `at` or later; gives when it begins.
    pub(super) fn employ(
        &mut self,
        present: Picoseconds,
        place: PlaceId,
        at: Picoseconds,
        time: Picoseconds,
    ) -> Picoseconds {
        let desk = self.desk(place);
        let begin = desk.system.reserve(present, at, time);
        let after = desk.jobs.iter().rposition(|(other, _)| *other <= begin).map_or(0, |index| index + 1);
        desk.jobs.insert(after, (begin, time));
        begin
    }

    /// Charges what the system of `place` has done until now while the place was busy.
    pub(super) fn settle(&mut self, cores: &mut Cores, place: PlaceId) {
        let now = cores.now(place);
        let ledger = cores.ledger(place);
        let waited = ledger.time(Spending::Waiting) + ledger.time(Spending::Sleeping);
        let desk = self.desk(place);
        let busy_until = now - (waited - desk.waited);
        desk.waited = waited;
        let begun = desk.jobs.iter().take_while(|(begin, _)| *begin < now).count();
        let begun = desk.jobs.drain(..begun);
        let lost = begun.filter(|(begin, _)| *begin < busy_until).map(|(_, time)| time);
        let lost = lost.fold(Picoseconds::ZERO, |sum, time| sum + time);
        cores.spend(place, lost, Spending::Handling);
    }

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
            self.employ(cores.present(), source, start, took);
        }
        let called = start + took + cores.times(source).interrupt.unwrap_or_default().over(0);
        // First when it can, then what is in its way at that time: several that come at once each wait only once.
        let alone = self.driver.taking(cores, packet);
        let begin = self.employ(cores.present(), target, called, alone);
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
