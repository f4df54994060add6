//! The interface of message protocols, the list of protocols, and the configuration of a run.
//!
//! The world calls the operations of [`ProtocolModel`] in the order of turns. A protocol spends the time of cores by
//! operations of [`Cores`] and keeps the state of message buffers. It knows neither turns nor deaths: the world tells
//! it what to forget. Capabilities of only some protocols are separate traits. Invariant: the memory that a protocol
//! holds for one sender is bounded; without room it refuses a message.

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

/// Cycles of a send besides its lines: choosing the buffer, writing the header, the fence before the flag.
///
/// Estimated: a one-line RCCE message costs 1,100 to 1,440 cycles in total, of which lines, flags and two polls explain
/// about 600; the rest is divided between both sides (`docs/chip/protocols/README.md`).
pub(crate) const SEND_CYCLES: u64 = 300;

/// Cycles of receiving a message besides its lines; estimated likewise.
pub(crate) const RECEIVE_CYCLES: u64 = 300;

/// Cycles of one poll besides its lines: invalidating them, comparing a word for two places.
pub(crate) const POLL_CYCLES: u64 = 60;

/// Cycles of a poll for each flag with a line of its own: load, comparison, branch; estimated.
pub(crate) const FLAG_CYCLES: u64 = 5;

/// Minimum supported size of small messages of either class, by the conformance suite.
pub(crate) const MESSAGE_BYTES_MIN: u32 = 64;

/// A message protocol of a chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Small rings at the receiver, packed doorbells, credit in batches; longer messages stay in the sender's buffer.
    #[default]
    Doorbell,
    /// Data waits in the sender's buffer; two flags of one line each for every pair (X10's port to the SCC).
    RcceX10,
    /// A section of the receiver's buffer for each core of the chip, which that core writes (SCC-MPI over message
    /// buffers, `mpi-mpb` of the papers).
    Sections,
    /// As [`Protocol::Sections`], with a section for each place: fewer places have longer sections.
    SectionsByPlaces,
    /// Sections in shared memory (SCC-MPI over memory).
    SectionsMemory,
    /// Sections in the buffer for short messages, and in shared memory for longer ones (SCC-MPI over both).
    SectionsMixed,
    /// TCP over the mesh: packets in the sender's buffer, a descriptor and an interrupt (the chip's Linux).
    Sockets,
    /// MPI over [`Protocol::Sockets`] (SCC-MPI over TCP, `mpi-sock` of the papers).
    MpiSockets,
    /// The RCCE library itself: both sides rendezvous and do nothing else until the transfer is complete.
    Rcce,
    /// One ring at each receiver, written word by word, with an interrupt (port of a distributed real-time system).
    Ring,
    /// Hardware packets, on chips that have them instead of message buffers.
    Packets,
}

/// Maximum number of places of a protocol with state for each pair: at most 1 GiB for 2,048.
const OF_PAIRS_MAX: u32 = 2_048;

impl Protocol {
    /// All protocols.
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

    /// The protocols that use message buffers.
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

    /// Returns its name on the command line and in `ISLES_CHIP_PROTOCOL`.
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

/// The division of message buffers by a protocol, or its equivalent.
pub(crate) enum BufferLayout {
    Doorbell(DoorbellLayout),
    /// With asynchronous broadcasts.
    Relayed(DoorbellLayout, AsyncBroadcast),
    RcceX10(RcceX10),
    Sections(Sections),
    Sockets(Sockets),
    Rcce(rcce::BufferLayout),
    Ring(Ring),
    Packets(PacketCosts),
}

impl BufferLayout {
    /// Makes the protocol over these buffers, without messages in flight.
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

/// A message to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing {
    pub(crate) from: PlaceId,
    pub(crate) to: PlaceId,
    pub(crate) class: Class,
    pub(crate) handler: HandlerId,
}

/// A message to be sent to several places, written once.
#[derive(Clone, Copy)]
pub(crate) struct OutgoingMulticast<'a> {
    pub(crate) from: PlaceId,
    pub(crate) to: &'a [PlaceId],
    pub(crate) class: Class,
    pub(crate) handler: HandlerId,
}

impl OutgoingMulticast<'_> {
    /// Returns the message to each of the places.
    pub(crate) fn each(&self) -> impl Iterator<Item = Outgoing> + '_ {
        let OutgoingMulticast { from, to, class, handler } = *self;
        to.iter().map(move |to| Outgoing { from, to: *to, class, handler })
    }
}

/// Places for which something arrives, with the times.
pub(crate) type Wakeups = Vec<(PlaceId, Picoseconds)>;

/// The state and operations of a protocol in a run.
pub(crate) trait ProtocolModel {
    /// Returns the size in bytes of the longest message of `class` other than a block.
    fn message_bytes_max(&self, class: Class) -> usize;

    /// Returns `true` if a message of `len` bytes could be sent now; polls for credit if needed.
    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, len: usize) -> bool;

    /// Returns `true` if a message of any length up to `len` bytes could be sent now without polling for credit. A
    /// protocol may always return `false`; it is then asked again when the length is known.
    fn has_room_up_to(&self, _out: &Outgoing, _len: usize) -> bool {
        false
    }

    /// Returns `true` if a block could be started now; polls for credit if needed.
    fn can_begin_block(&mut self, cores: &mut Cores, out: &Outgoing) -> bool;

    /// Writes a message for which there is room, and returns the arrival time of its first part. A blocked place sends
    /// it later, in [`ProtocolModel::make_progress`].
    fn send(&mut self, cores: &mut Cores, out: &Outgoing, content: MessageContent) -> Option<Picoseconds>;

    /// Starts a block that may start. The part without room is sent later, by [`ProtocolModel::make_progress`]. Adds
    /// the arrivals of parts to `wakeups`.
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

    /// Returns `true` if `place` has partly written messages, so that it polls for credit as well.
    fn has_pending_blocks(&self, place: PlaceId) -> bool;

    /// Polls for credit and continues the partly written messages of `place`; adds the arrivals of parts to `wakeups`.
    fn make_progress(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups);

    /// Polls for messages.
    fn poll(&mut self, cores: &mut Cores, place: PlaceId);

    /// Returns the duration of one poll of an idle place, with or without polling for credit.
    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds;

    /// Returns the arrival time of the first entry not taken yet, in the past or the future.
    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds>;

    /// Returns the arrival time of the first credit not read yet, in the past or the future.
    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds>;

    /// Returns `true` if `place` has not yet taken an entry of `source`.
    fn has_pending_from(&self, source: PlaceId, place: PlaceId) -> bool;

    /// Takes the first entry that had arrived at `until`; `Some(None)` if it was a part of an incomplete message.
    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<ReceivedMessage>>;

    /// Ends a batch of arrivals; adds the arrivals of returned credits to `wakeups`.
    fn return_credits(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups);

    /// Called at the end of a turn of `place` and before it computes; adds the resulting arrivals to the wakeups.
    fn end_turn(&mut self, _cores: &mut Cores, _place: PlaceId, _news: &mut Wakeups) {}

    /// Frees everything that `place` keeps for `gone`, which takes nothing more.
    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId);

    /// Ends all sends and receives of `gone` at once; its blocks in flight are cut off.
    fn abort_place(&mut self, gone: PlaceId);

    /// Returns the multicast of the protocol, if it has one; constant during a run.
    fn multicast(&mut self) -> Option<&mut dyn MulticastModel>;

    /// Returns the blocking sends of the protocol, if its sends block; constant during a run.
    fn blocking_sends(&self) -> Option<&dyn BlockingSendModel>;

    /// As [`ProtocolModel::blocking_sends`], mutably.
    fn blocking_sends_mut(&mut self) -> Option<&mut dyn BlockingSendModel>;
}

/// A protocol that can send a message to several places, written once.
pub(crate) trait MulticastModel {
    /// Returns the range of lengths of multicast messages of `class`.
    fn bytes(&self, class: Class) -> Range<usize>;

    /// Returns `true` if the message could be sent now; polls for credit if needed.
    fn has_room_for_all(&mut self, cores: &mut Cores, out: &OutgoingMulticast<'_>) -> bool;

    /// Writes the `len` bytes of a message for which there is room into a slot from which all receivers fetch it;
    /// returns the slot.
    fn stage(&mut self, cores: &mut Cores, out: &OutgoingMulticast<'_>, len: usize) -> u8;

    /// Announces a slot to one of its receivers; returns the arrival time.
    fn announce(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        slot: u8,
        content: MessageContent,
    ) -> Picoseconds;
}

/// A protocol whose sends may block: a blocked place does nothing else until its send can continue.
pub(crate) trait BlockingSendModel {
    /// Returns `true` if `place` is blocked in a send.
    fn is_blocked_in_send(&self, place: PlaceId) -> bool;

    /// Adds the arrivals that a send attempt of `place` has caused to `wakeups`.
    fn drain_wakeups(&mut self, place: PlaceId, wakeups: &mut Wakeups);
}

/// Configuration of the messages between places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolConfig {
    /// The message protocol.
    pub protocol: Protocol,
    /// Number of children of each node of the tree of asynchronous broadcasts, which are forwarded by interrupts and
    /// take their lines from other messages. `None` uses the protocol's own multicast.
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
