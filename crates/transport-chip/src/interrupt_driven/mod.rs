//! The protocols whose receiver is called by an interrupt: what its system does then takes the message in.
//!
//! The sender's system writes a packet and raises an interrupt. The receiver's system answers it whatever its place is
//! doing, copies the packet into private memory, and the buffer is free again; the place finds the message when it
//! looks. So a buffer is never held by a place that computes, and all times of a packet are known when it is sent. They
//! differ in where a packet lies and what the systems spend: that is a [`Driver`], one module each.
//!
//! What a system does while its place computes or copies is time that the place loses, and is charged at its next look;
//! what it does while the place waits costs nothing more. How much of one sender and class may lie unread is bounded,
//! and a receipt opens that again. The way of a packet is in `transfer`, blocks in `block_send`, receipts in
//! `acknowledgement`. It does not know turns or deaths. Invariant: messages of one pair and class are found in the
//! order in which they were sent.

mod acknowledgement;
mod block_send;
mod place_state;
mod protocol;
mod ring;
mod sockets;
mod transfer;

pub(crate) use ring::Ring;
pub(crate) use sockets::Sockets;

use crate::cores::Cores;
use crate::lane_index::LaneIndex;
use crate::protocol::Outgoing;
use isles_chip::kernel::TieBreak;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use place_state::{Lane, PlaceState};

/// Bytes of a message that are not its content: length, handler, kind.
const HEADER_BYTES: usize = 8;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) source: PlaceId,
    pub(crate) target: PlaceId,
    pub(crate) class: Class,
    pub(crate) lines: u32,
}

/// What the systems of one protocol do.
pub(crate) trait Driver {
    /// Whether places that wait are halted until they are called.
    const CALLS: bool;

    /// Bytes of one sender and class that may lie unread.
    const UNREAD_MAX: usize;

    /// Bytes of content of a packet of `class`.
    fn payload(&self, class: Class) -> usize;

    /// Lines of a packet with so many bytes of content.
    fn lines(&self, bytes: usize) -> u32;

    /// The sender's own part, before the packet can be written: calls and copies; also for each packet of a block.
    fn prepare(&self, cores: &mut Cores, packet: Packet);

    /// When there is room for the packet, at `ready` or later.
    fn slot(&mut self, cores: &Cores, packet: Packet, ready: Picoseconds) -> Picoseconds;

    /// Writes it at `at` or later and raises the interrupt; when that begins, and how long it takes.
    fn write(&mut self, cores: &mut Cores, packet: Packet, at: Picoseconds) -> (Picoseconds, Picoseconds);

    /// For how long the receiver's system takes it in if nothing is in the way.
    fn taking(&self, cores: &Cores, packet: Packet) -> Picoseconds;

    /// It does so from `at` on: for how long the packet's lines are still needed, and the whole.
    fn take_in(&mut self, cores: &mut Cores, packet: Packet, at: Picoseconds) -> (Picoseconds, Picoseconds);

    /// The lines of the packet are free from `at` on.
    fn free(&mut self, packet: Packet, at: Picoseconds);

    /// What the place spends to look for messages.
    fn look(&self, cores: &Cores, place: PlaceId) -> Picoseconds;

    /// What the place spends to read a message of so many bytes.
    fn read(&self, cores: &Cores, place: PlaceId, bytes: usize) -> Picoseconds;

    /// A receipt of `reader` for `sender`; what each spends on it. `is_due` if the sender may be waiting for it.
    fn acknowledgement(
        &self,
        cores: &Cores,
        reader: PlaceId,
        sender: PlaceId,
        is_due: bool,
    ) -> [Picoseconds; 2];
}

/// All systems of a run.
pub(crate) struct InterruptDriven<D> {
    driver: D,
    pairs: LaneIndex,
    tie_break: TieBreak,
    lanes: Vec<Lane>,
    place_states: Vec<PlaceState>,
}

impl<D: Driver> InterruptDriven<D> {
    pub(crate) fn new(driver: D, places: u32, tie_break: TieBreak) -> InterruptDriven<D> {
        let (places, pairs) = (places as usize, LaneIndex::of(places as usize));
        InterruptDriven {
            driver,
            pairs,
            tie_break,
            lanes: std::iter::repeat_with(Lane::default).take(pairs.lanes()).collect(),
            place_states: std::iter::repeat_with(PlaceState::default).take(places).collect(),
        }
    }

    fn lane_out(&self, out: &Outgoing) -> usize {
        self.pairs.lane(out.from, out.to, out.class)
    }

    fn place_state(&mut self, place: PlaceId) -> &mut PlaceState {
        &mut self.place_states[place.index()]
    }
}
