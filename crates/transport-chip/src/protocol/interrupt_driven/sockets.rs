//! `sockets`: TCP over the mesh, through the network driver of the chip's Linux.
//!
//! ```text
//! descriptors   one byte for each place     written by that place under the owner's register, cleared by the owner
//! packets       what is left                written by the owner, read by receivers: one ring
//! ```
//!
//! A packet of up to 1,500 bytes is in the sender's buffer, and a descriptor at the receiver has its location. Each
//! pair of cores has one packet in flight until the receiver's driver has copied it; packets leave a core in order. The
//! driver's operations are those of Intel's source (2009); the costs of the stack above it are unpublished. The
//! connection for each class is ours. Only acknowledgements that the sender may be waiting for are charged; others ride
//! on packets.
//!
//! `mpi-sock`: the same under MPI, as used by X10's transport over MPI: a message has MPI's header, each poll is a
//! probe of the library, and each received message is unexpected, so the library copies it once more.

use super::{Driver, Packet};
use crate::cores::{Cores, Costs};
use crate::protocol::{MESSAGE_BYTES_MIN, interrupt_driven};
use crate::report::TimeCategory;
use crate::world::WorldError;
use isles_chip::cost::HopCost;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use std::collections::VecDeque;

/// Bytes of a packet besides its content: IP, TCP, and the length that the driver writes.
const HEADERS: u32 = 20 + 20 + 2;

/// Bytes of content of a full packet.
const PAYLOAD_MAX: u32 = 1_460;

/// Cycles of a poll for each connection: the loop of `poll`; estimated.
const CONNECTION_CYCLES: u64 = 50;

/// Costs that a message library adds to sockets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MpiCosts {
    /// Bytes of the header of a message.
    header: u32,
    /// Cycles of a call that sends, and of one that receives.
    call_cycles: u64,
    /// Cycles of a probe besides the system's poll.
    probe_cycles: u64,
}

impl MpiCosts {
    /// MPICH2 over its sockets channel, on which SCC-MPI is based (004:932). Assumed, with an uncertainty factor of
    /// two: the costs of its calls on these cores are unpublished.
    pub(crate) const CH3_SOCK: MpiCosts = MpiCosts { header: 40, call_cycles: 1_500, probe_cycles: 500 };
}

/// Content of one core's send buffer.
#[derive(Default)]
struct SendBuffer {
    /// End of use and lines of the packets.
    packets: VecDeque<(Picoseconds, u32)>,
    used: u32,
    /// Start of the last packet.
    last: Picoseconds,
}

/// All drivers.
pub(crate) struct Sockets {
    places: usize,
    line_bytes: u32,
    /// Lines for packets.
    lines: u32,
    payload: u32,
    send_queues: Vec<SendBuffer>,
    /// Times at which the descriptors are clear, by sender and receiver.
    clear: Vec<Picoseconds>,
    /// The library above the sockets, if there is one.
    mpi: Option<MpiCosts>,
}

impl Sockets {
    /// Makes the drivers of all places in the buffers of a chip, with or without a library above.
    ///
    /// # Errors
    /// [`WorldError`]: the chip lacks something that the protocol needs.
    pub(crate) fn new(places: u32, costs: &Costs, mpi: Option<MpiCosts>) -> Result<Sockets, WorldError> {
        let times = costs.times();
        WorldError::of_missing(&[
            ("test_and_set", times.test_and_set.is_some()),
            ("interrupt", times.interrupt.is_some()),
            ("system_call", times.system_call.is_some()),
            ("stack_send", times.stack_send.is_some()),
            ("stack_receive", times.stack_receive.is_some()),
            ("stack_line", times.stack_line.is_some()),
        ])?;
        let (lines, line_bytes) = (costs.buffer_lines(), costs.line_bytes());
        let descriptors = places.div_ceil(line_bytes);
        let headers = HEADERS + mpi.map_or(0, |mpi| mpi.header);
        let least = descriptors
            + (headers + interrupt_driven::HEADER_BYTES as u32 + MESSAGE_BYTES_MIN).div_ceil(line_bytes);
        if lines < least {
            return Err(WorldError::Buffer { lines, needed: least });
        }
        let lines = lines - descriptors;
        let places = places as usize;
        Ok(Sockets {
            places,
            line_bytes,
            lines,
            // MPI's header is content of the packet.
            payload: PAYLOAD_MAX.min(lines * line_bytes - HEADERS) - (headers - HEADERS),
            send_queues: std::iter::repeat_with(SendBuffer::default).take(places).collect(),
            clear: vec![Picoseconds::ZERO; places * places],
            mpi,
        })
    }

    fn pair(&self, packet: Packet) -> usize {
        packet.source.index() * self.places + packet.target.index()
    }

    /// Returns the time of the stack for copying a message of `bytes` bytes.
    fn copy(&self, cores: &Cores, place: PlaceId, bytes: usize) -> Picoseconds {
        let lines = bytes.div_ceil(self.line_bytes as usize) as u64;
        near(cores.times(place).stack_line) * lines
    }
}

fn near(span: Option<HopCost>) -> Picoseconds {
    span.unwrap_or_default().over(0)
}

impl Driver for Sockets {
    const CALLS: bool = false;
    const UNREAD_MAX: usize = 64 << 10;

    fn payload(&self, _class: Class) -> usize {
        self.payload as usize
    }

    fn lines(&self, bytes: usize) -> u32 {
        let headers = HEADERS + self.mpi.map_or(0, |mpi| mpi.header);
        (headers as usize + bytes).div_ceil(self.line_bytes as usize) as u32
    }

    fn prepare(&self, cores: &mut Cores, packet: Packet) {
        let Packet { source, lines, .. } = packet;
        let times = cores.times(source);
        let calls = near(times.system_call) + near(times.stack_send);
        let copy = self.copy(cores, source, (lines * self.line_bytes) as usize);
        let library = cores.cycles(source, self.mpi.map_or(0, |mpi| mpi.call_cycles));
        cores.spend(source, calls + copy + library, TimeCategory::Handling);
    }

    fn slot(&mut self, _cores: &Cores, packet: Packet, ready: Picoseconds) -> Picoseconds {
        let pair = self.pair(packet);
        let send_queue = &mut self.send_queues[packet.source.index()];
        let mut slot = ready.max(self.clear[pair]).max(send_queue.last);
        while let Some((until, lines)) = send_queue.packets.front().copied() {
            if until > slot && send_queue.used + packet.lines <= self.lines {
                break;
            }
            slot = slot.max(until);
            send_queue.used -= lines;
            send_queue.packets.pop_front();
        }
        send_queue.last = slot;
        slot
    }

    fn write(&mut self, cores: &mut Cores, packet: Packet, at: Picoseconds) -> (Picoseconds, Picoseconds) {
        let Packet { source, target, lines, .. } = packet;
        let content = cores.write_time(source, source, lines, at);
        // The register is acquired and released around the descriptor; then the interrupt is raised.
        let register = cores.register(source, target);
        let descriptor = cores.write_time(source, target, 1, at + content + register);
        (at, content + descriptor + register * 3)
    }

    fn receive_time(&self, cores: &Cores, packet: Packet) -> Picoseconds {
        let Packet { source, target, lines, .. } = packet;
        let copies = cores.uncontended_read_time(target, source, lines)
            + cores.uncontended_write_time(target, target, 1);
        copies + cores.register(target, target) * 2 + near(cores.times(target).stack_receive)
    }

    fn receive(&mut self, cores: &mut Cores, packet: Packet, at: Picoseconds) -> (Picoseconds, Picoseconds) {
        let Packet { source, target, lines, .. } = packet;
        let content = cores.read_time(target, source, lines, at);
        let register = cores.register(target, target);
        let descriptor = cores.write_time(target, target, 1, at + content + register);
        let needed = content + descriptor + register * 2;
        (needed, needed + near(cores.times(target).stack_receive))
    }

    fn free(&mut self, packet: Packet, at: Picoseconds) {
        let pair = self.pair(packet);
        self.clear[pair] = at;
        let send_queue = &mut self.send_queues[packet.source.index()];
        send_queue.packets.push_back((at, packet.lines));
        send_queue.used += packet.lines;
    }

    fn look(&self, cores: &Cores, place: PlaceId) -> Picoseconds {
        let connections = CONNECTION_CYCLES * (self.places as u64 - 1);
        let library = self.mpi.map_or(0, |mpi| mpi.probe_cycles);
        near(cores.times(place).system_call) + cores.cycles(place, connections + library)
    }

    fn read(&self, cores: &Cores, place: PlaceId, bytes: usize) -> Picoseconds {
        let read = near(cores.times(place).system_call) + self.copy(cores, place, bytes);
        // The library has read it into a buffer of its own, from which the receiver copies it.
        let again = |mpi: MpiCosts| cores.cycles(place, mpi.call_cycles) + self.copy(cores, place, bytes);
        read + self.mpi.map_or(Picoseconds::ZERO, again)
    }

    fn acknowledgement(
        &self,
        cores: &Cores,
        reader: PlaceId,
        sender: PlaceId,
        is_due: bool,
    ) -> [Picoseconds; 2] {
        if !is_due {
            return [Picoseconds::ZERO; 2];
        }
        [near(cores.times(reader).stack_send), near(cores.times(sender).stack_receive)]
    }
}
