//! What a message protocol does for the places of a world, the protocols there are, and what a run chooses of them.
//!
//! The world calls the operations of [`ProtocolModel`] in the order of turns; a protocol spends the time of cores by
//! the operations of [`Cores`] and keeps what lies in message buffers. It does not know turns or deaths: the world
//! tells it what to forget. What only some protocols can do is a trait of its own, which they offer. Invariant: what a
//! protocol holds for one sender is bounded; where there is no room it says so.

pub(crate) mod async_broadcast;
pub(crate) mod blocking_send;
pub(crate) mod chunks;
pub(crate) mod doorbell;
pub(crate) mod inbox;
pub(crate) mod interrupt_driven;
pub(crate) mod packets;
pub(crate) mod rcce;

use crate::cores::{Cores, Costs};
use crate::protocol::async_broadcast::AsyncBroadcast;
use crate::protocol::chunks::{Chunks, RcceX10, SectionChannel, Sections};
use crate::protocol::doorbell::{Doorbell, DoorbellLayout};
use crate::protocol::inbox::{MessageContent, ReceivedMessage};
use crate::protocol::interrupt_driven::{InterruptDriven, MpiCosts, Ring, Sockets};
use crate::protocol::packets::{PacketCosts, Packets};
use crate::protocol::rcce::Rcce;
use crate::world::WorldError;
use isles_chip::kernel::TieBreak;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, HandlerId, PlaceId};
use std::fmt;
use std::ops::Range;

/// Instructions of a send beside its lines: choosing the buffer, writing the header, the fence before the flag.
///
/// Estimated: a one-line RCCE message costs 1,100 to 1,440 cycles in all, of which lines, flags and two polls explain
/// about 600; the rest is shared by both sides (`docs/chip/protocols/README.md`).
pub(crate) const SEND_CYCLES: u64 = 300;

/// Instructions of receiving a message, beside its lines; estimated likewise.
pub(crate) const RECEIVE_CYCLES: u64 = 300;

/// Instructions of one poll beside its lines: invalidating them, comparing a word for two places.
pub(crate) const POLL_CYCLES: u64 = 60;

/// Instructions of a poll for each flag that has a line of its own: the load, the comparison, the branch; estimated.
pub(crate) const FLAG_CYCLES: u64 = 5;

/// Bytes that a small message of either class can have at least, by the conformance suite.
pub(crate) const MESSAGE_BYTES_MIN: u32 = 64;

/// Protocol by which messages cross a chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Small rings at the receiver, packed doorbells, credit in batches; what is longer lies with the sender.
    #[default]
    Doorbell,
    /// Data waits in the sender's buffer; two flags of one line each for every pair (X10's port to the SCC).
    RcceX10,
    /// A section of the receiver's buffer for each core of the chip, written by that one (SCC-MPI over message buffers,
    /// `mpi-mpb` of the papers).
    Sections,
    /// The same with a section for each place that runs: fewer places have longer sections.
    SectionsByPlaces,
    /// Sections in memory that all cores share (SCC-MPI over memory).
    SectionsMemory,
    /// Sections in the buffer for short messages, in memory for longer ones (SCC-MPI over both).
    SectionsMixed,
    /// TCP over the mesh: packets in the sender's buffer, a descriptor and an interrupt (the chip's Linux).
    Sockets,
    /// MPI over these sockets (SCC-MPI over TCP, `mpi-sock` of the papers).
    MpiSockets,
    /// The library itself: both sides meet, and do nothing else until all has passed.
    Rcce,
    /// One ring at each receiver, written word by word, and an interrupt (port of a distributed real-time system).
    Ring,
    /// Packets of the hardware, on chips without message buffers that carry them.
    Packets,
}

/// Most places of a protocol that keeps something for each pair of them: of 2,048 a GiB or less.
const OF_PAIRS_MAX: u32 = 2_048;

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 11] = [
        Protocol::Doorbell,
        Protocol::RcceX10,
        Protocol::Sections,
        Protocol::SectionsByPlaces,
        Protocol::SectionsMemory,
        Protocol::SectionsMixed,
        Protocol::Sockets,
        Protocol::MpiSockets,
        Protocol::Rcce,
        Protocol::Ring,
        Protocol::Packets,
    ];

    /// Those of message buffers.
    pub const OF_BUFFERS: [Protocol; 10] = [
        Protocol::Doorbell,
        Protocol::RcceX10,
        Protocol::Sections,
        Protocol::SectionsByPlaces,
        Protocol::SectionsMemory,
        Protocol::SectionsMixed,
        Protocol::Sockets,
        Protocol::MpiSockets,
        Protocol::Rcce,
        Protocol::Ring,
    ];

    /// Its name on the command line and in `ISLES_CHIP_PROTOCOL`.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Doorbell => "doorbell",
            Protocol::RcceX10 => "rcce-x10",
            Protocol::Sections => "sections",
            Protocol::SectionsByPlaces => "sections-by-places",
            Protocol::SectionsMemory => "sections-memory",
            Protocol::SectionsMixed => "sections-mixed",
            Protocol::Sockets => "sockets",
            Protocol::MpiSockets => "mpi-sock",
            Protocol::Rcce => "rcce",
            Protocol::Ring => "ring",
            Protocol::Packets => "packets",
        }
    }

    /// Returns the protocol called `name`.
    pub fn named(name: &str) -> Option<Protocol> {
        Protocol::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    /// Returns the buffer layout of a chip with `places` places.
    ///
    /// # Errors
    /// [`WorldError`]: the chip lacks something the protocol needs, or has not enough of it.
    pub(crate) fn buffer_layout(self, places: u32, costs: &Costs) -> Result<BufferLayout, WorldError> {
        let (lines, line_bytes) = (costs.buffer_lines(), costs.line_bytes());
        if !matches!(self, Protocol::Doorbell | Protocol::Packets) && places > OF_PAIRS_MAX {
            return Err(WorldError::Places { most: OF_PAIRS_MAX });
        }
        if self != Protocol::Packets && lines == 0 && costs.packets().is_some() {
            return Err(WorldError::NoBuffers);
        }
        let short = |needed| WorldError::Buffer { lines, needed };
        Ok(match self {
            Protocol::Doorbell => {
                BufferLayout::Doorbell(DoorbellLayout::new(places, lines, line_bytes).map_err(short)?)
            }
            Protocol::RcceX10 => {
                BufferLayout::RcceX10(RcceX10::new(places, lines, line_bytes).map_err(short)?)
            }
            Protocol::Sections | Protocol::SectionsMemory | Protocol::SectionsMixed => {
                let layout = Sections::new(costs.cores().max(places), lines, line_bytes).map_err(short)?;
                let channel = match self {
                    Protocol::SectionsMemory => SectionChannel::Memory,
                    Protocol::SectionsMixed => SectionChannel::Mixed,
                    _ => SectionChannel::Buffers,
                };
                if channel != SectionChannel::Buffers {
                    WorldError::of_missing(&[("memory_through", costs.has_shared_memory())])?;
                }
                BufferLayout::Sections(layout.over(channel))
            }
            Protocol::SectionsByPlaces => {
                BufferLayout::Sections(Sections::new(places, lines, line_bytes).map_err(short)?)
            }
            Protocol::Sockets => BufferLayout::Sockets(Sockets::new(places, costs, None)?),
            Protocol::MpiSockets => {
                BufferLayout::Sockets(Sockets::new(places, costs, Some(MpiCosts::CH3_SOCK))?)
            }
            Protocol::Rcce => {
                WorldError::of_missing(&[("test_and_set", costs.times().test_and_set.is_some())])?;
                BufferLayout::Rcce(rcce::BufferLayout::new(places, lines, line_bytes).map_err(short)?)
            }
            Protocol::Ring => BufferLayout::Ring(Ring::new(places, costs)?),
            Protocol::Packets => BufferLayout::Packets(costs.packets().ok_or(WorldError::NoPackets)?),
        })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Message buffers as a protocol divides them, or what it has instead.
pub(crate) enum BufferLayout {
    Doorbell(DoorbellLayout),
    /// The same with asynchronous broadcasts beside it.
    Relayed(DoorbellLayout, AsyncBroadcast),
    RcceX10(RcceX10),
    Sections(Sections),
    Sockets(Sockets),
    Rcce(rcce::BufferLayout),
    Ring(Ring),
    Packets(PacketCosts),
}

impl BufferLayout {
    /// The protocol over these buffers, with nothing under way.
    pub(crate) fn open(self, cores: &Cores, places: u32, tie_break: TieBreak) -> Box<dyn ProtocolModel> {
        match self {
            BufferLayout::Doorbell(layout) => Box::new(Doorbell::new(layout, places, tie_break)),
            BufferLayout::Relayed(layout, relays) => {
                Box::new(Doorbell::relayed(layout, relays, places, tie_break))
            }
            BufferLayout::RcceX10(layout) => Box::new(Chunks::new(layout, cores, places, tie_break)),
            BufferLayout::Sections(layout) => Box::new(Chunks::new(layout, cores, places, tie_break)),
            BufferLayout::Sockets(driver) => Box::new(InterruptDriven::new(driver, places, tie_break)),
            BufferLayout::Rcce(layout) => Box::new(Rcce::new(layout, places, tie_break)),
            BufferLayout::Ring(driver) => Box::new(InterruptDriven::new(driver, places, tie_break)),
            BufferLayout::Packets(costs) => Box::new(Packets::new(costs, places, tie_break)),
        }
    }
}

/// A message on its way into a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing {
    pub(crate) from: PlaceId,
    pub(crate) to: PlaceId,
    pub(crate) class: Class,
    pub(crate) handler: HandlerId,
}

/// A message on its way to several places, written once.
#[derive(Clone, Copy)]
pub(crate) struct OutgoingMulticast<'a> {
    pub(crate) from: PlaceId,
    pub(crate) to: &'a [PlaceId],
    pub(crate) class: Class,
    pub(crate) handler: HandlerId,
}

impl OutgoingMulticast<'_> {
    /// The same to each one of them.
    pub(crate) fn each(&self) -> impl Iterator<Item = Outgoing> + '_ {
        let OutgoingMulticast { from, to, class, handler } = *self;
        to.iter().map(move |to| Outgoing { from, to: *to, class, handler })
    }
}

/// Places for which something arrives, each with the time.
pub(crate) type Wakeups = Vec<(PlaceId, Picoseconds)>;

/// A protocol at work.
pub(crate) trait ProtocolModel {
    /// Bytes of the longest message of `class` that is no block.
    fn message_bytes_max(&self, class: Class) -> usize;

    /// Returns `true` if a message of `len` bytes could be sent now; looks for credit if needed.
    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, len: usize) -> bool;

    /// Returns `true` if a message of `len` bytes and any shorter one could be sent now without a look for credit. A
    /// protocol may always return `false`: then it is asked again when the length is known.
    fn has_room_up_to(&self, _out: &Outgoing, _len: usize) -> bool {
        false
    }

    /// Returns `true` if a block could be begun now; looks for credit if needed.
    fn can_begin_block(&mut self, cores: &mut Cores, out: &Outgoing) -> bool;

    /// Writes a message for which there is room; returns when its first part arrives. A place that is in a call sends
    /// it then; `attend` tells.
    fn send(&mut self, cores: &mut Cores, out: &Outgoing, content: MessageContent) -> Option<Picoseconds>;

    /// Begins a block that may begin; what finds no room now goes when the place attends to it. Tells when parts
    /// arrive.
    fn begin_block(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        content: MessageContent,
        wakeups: &mut Wakeups,
    );

    /// Returns `true` if waiting places are halted until an interrupt wakes them; otherwise they poll.
    fn is_interrupt_driven(&self) -> bool {
        false
    }

    /// Returns `true` if something of `place` is only partly written, so that it looks for credit when it polls.
    fn has_pending_blocks(&self, place: PlaceId) -> bool;

    /// Looks for credit and moves on what `place` has only partly written; tells for whom parts arrive, and when.
    fn make_progress(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups);

    /// Looks for messages.
    fn poll(&mut self, cores: &mut Cores, place: PlaceId);

    /// Returns the time of one poll of an otherwise idle place, with a look for credit or without.
    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds;

    /// Returns the arrival time of the first entry that is not taken yet, in the past or the future.
    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds>;

    /// Returns the arrival time of the first credit that is not read yet, in the past or the future.
    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds>;

    /// Returns `true` if an entry of `source` for `place` is not taken yet.
    fn has_pending_from(&self, source: PlaceId, place: PlaceId) -> bool;

    /// Takes the first entry that had arrived at `until`; `Some(None)` if it was a part of a message to come.
    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<ReceivedMessage>>;

    /// Ends a batch of arrivals; tells who has got credit for it, and when that arrives.
    fn return_credits(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups);

    /// Ends a turn of `place`, or lets it compute for long; tells for whom something arrives, and when.
    fn end_turn(&mut self, _cores: &mut Cores, _place: PlaceId, _news: &mut Wakeups) {}

    /// `gone` takes nothing more: what `place` keeps for it is free again.
    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId);

    /// `gone` takes nothing more and sends nothing more, all at once: its blocks under way end where they are.
    fn abort_place(&mut self, gone: PlaceId);

    /// Returns how messages go to several places at once, if they can; the same for all of a run.
    fn multicast(&mut self) -> Option<&mut dyn MulticastModel>;

    /// Returns how sends block, if they do; the same for all of a run.
    fn blocking_sends(&self) -> Option<&dyn BlockingSendModel>;

    /// Returns the same as [`ProtocolModel::blocking_sends`], to change it.
    fn blocking_sends_mut(&mut self) -> Option<&mut dyn BlockingSendModel>;
}

/// A protocol whose messages can go to several places at once, written once.
pub(crate) trait MulticastModel {
    /// Lengths of messages of `class` that may go so.
    fn bytes(&self, class: Class) -> Range<usize>;

    /// Returns `true` if such a message could be sent now; looks for credit if needed.
    fn has_room_for_all(&mut self, cores: &mut Cores, out: &OutgoingMulticast<'_>) -> bool;

    /// Writes the `len` bytes of a message for which there is room to where all its receivers fetch it; returns that
    /// slot.
    fn stage(&mut self, cores: &mut Cores, out: &OutgoingMulticast<'_>, len: usize) -> u8;

    /// Tells one of the receivers of a slot of its message; returns when that arrives.
    fn announce(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        slot: u8,
        content: MessageContent,
    ) -> Picoseconds;
}

/// A protocol in which a place that sends may be in a call, and does nothing else until something comes for that.
pub(crate) trait BlockingSendModel {
    /// Returns `true` if `place` is in such a call.
    fn is_blocked_in_send(&self, place: PlaceId) -> bool;

    /// Tells for whom an attempt of `place` to send has made something arrive, and when.
    fn drain_wakeups(&mut self, place: PlaceId, wakeups: &mut Wakeups);
}

/// Configuration of the connection between places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolConfig {
    /// Protocol by which messages cross the chip.
    pub protocol: Protocol,
    /// Number of children of each node of the tree by which messages to several places go, by interrupts; their lines
    /// are taken from those of other messages. `None`: as the protocol has it.
    pub relays: Option<u32>,
}

impl From<Protocol> for ProtocolConfig {
    fn from(protocol: Protocol) -> ProtocolConfig {
        ProtocolConfig { protocol, relays: None }
    }
}

impl ProtocolConfig {
    /// Returns the buffer layout of a chip with `places` places.
    ///
    /// # Errors
    /// [`WorldError`]: the chip lacks something the protocol needs, or has not enough of it.
    pub(crate) fn buffer_layout(self, places: u32, costs: &Costs) -> Result<BufferLayout, WorldError> {
        let Some(children) = self.relays else { return self.protocol.buffer_layout(places, costs) };
        if self.protocol != Protocol::Doorbell {
            return Err(WorldError::NoRelays);
        }
        let relays = AsyncBroadcast::new(children, places, costs)?;
        let (lines, taken) = (costs.buffer_lines(), relays.lines());
        let short = |needed| WorldError::Buffer { lines, needed: needed + taken };
        let layout =
            DoorbellLayout::new(places, lines.saturating_sub(taken), costs.line_bytes()).map_err(short)?;
        Ok(BufferLayout::Relayed(layout, relays))
    }
}
