//! `ring`: every place has a ring for all senders in its buffer, guarded by its register; an interrupt announces a
//! packet, as in the port of a distributed real-time system.
//!
//! ```text
//! control   a quarter     words written by senders in turn, lines read by the owner's system
//! data      the rest      the same
//! ```
//!
//! Words are written one by one and uncached, which reproduces the published rates near and far
//! (`docs/chip/protocols/ring.md`). The receiver's driver is a task that the interrupt wakes. A waiting place is
//! halted. The division into classes is ours.

use super::{Driver, HEADER_BYTES, Packet};
use crate::cores::{Cores, Costs};
use crate::protocol::{MESSAGE_BYTES_MIN, POLL_CYCLES, RECEIVE_CYCLES, SEND_CYCLES};
use crate::world::WorldError;
use isles_chip::cost::Mode;
use isles_chip::kernel::Timeline;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

/// Control gets one part in this number of the lines.
const CONTROL_PART: u32 = 4;

/// Lines of the longest packet, by class, control first: half a kilobyte, and 4 KB with their header.
const PACKET_LINES_MAX: [u32; 2] = [17, 129];

/// Occupied lines of one ring, with the times until which they are occupied.
type OccupiedLines = Vec<(Picoseconds, u32)>;

/// All rings.
pub(crate) struct Ring {
    line_bytes: u32,
    /// Lines by class, control first.
    lines: [u32; 2],
    /// Occupied lines by receiver and class.
    taken: Vec<[OccupiedLines; 2]>,
    /// Times at which the register of each receiver is held.
    registers: Vec<Timeline>,
}

impl Ring {
    /// Makes the rings of all places in the buffers of a chip.
    ///
    /// # Errors
    /// [`WorldError`]: the chip lacks something that the protocol needs.
    pub(crate) fn new(places: u32, costs: &Costs) -> Result<Ring, WorldError> {
        let times = costs.times();
        WorldError::of_missing(&[
            ("test_and_set", times.test_and_set.is_some()),
            ("buffer_word", times.access(Mode::BufferWord).is_some()),
            ("interrupt", times.interrupt.is_some()),
            ("task_wake", times.task_wake.is_some()),
        ])?;
        let (lines, line_bytes) = (costs.buffer_lines(), costs.line_bytes());
        let message = (HEADER_BYTES as u32 + MESSAGE_BYTES_MIN).div_ceil(line_bytes);
        let control = (lines / CONTROL_PART).max(message);
        if lines < control + message {
            return Err(WorldError::Buffer { lines, needed: 2 * message });
        }
        Ok(Ring {
            line_bytes,
            lines: [control, lines - control],
            taken: (0..places).map(|_| [OccupiedLines::new(), OccupiedLines::new()]).collect(),
            registers: vec![Timeline::default(); places as usize],
        })
    }

    fn packet_lines(&self, class: Class) -> u32 {
        PACKET_LINES_MAX[class as usize].min(self.lines[class as usize])
    }
}

/// Returns the time from the interrupt to the driver's task.
fn wake(cores: &Cores, place: PlaceId) -> Picoseconds {
    cores.times(place).task_wake.unwrap_or_default().over(0)
}

impl Driver for Ring {
    const CALLS: bool = true;
    const UNREAD_MAX: usize = 16 << 10;

    fn payload(&self, class: Class) -> usize {
        (self.packet_lines(class) * self.line_bytes) as usize
    }

    fn lines(&self, bytes: usize) -> u32 {
        bytes.div_ceil(self.line_bytes as usize) as u32
    }

    fn prepare(&self, cores: &mut Cores, packet: Packet) {
        cores.compute(packet.source, SEND_CYCLES, crate::report::TimeCategory::Handling);
    }

    fn slot(&mut self, cores: &Cores, packet: Packet, ready: Picoseconds) -> Picoseconds {
        let present = cores.present();
        let taken = &mut self.taken[packet.target.index()][packet.class as usize];
        taken.retain(|(until, _)| *until > present);
        taken.sort_unstable();
        let mut used: u32 = taken.iter().filter(|(until, _)| *until > ready).map(|(_, lines)| lines).sum();
        let mut slot = ready;
        for (until, lines) in taken.iter().filter(|(until, _)| *until > ready) {
            if used + packet.lines <= self.lines[packet.class as usize] {
                break;
            }
            slot = *until;
            used -= lines;
        }
        slot
    }

    fn write(&mut self, cores: &mut Cores, packet: Packet, at: Picoseconds) -> (Picoseconds, Picoseconds) {
        let Packet { source, target, lines, .. } = packet;
        // Acquiring and releasing the register, and raising the interrupt.
        let registers = cores.register(source, target) * 3;
        let alone = registers + cores.uncontended_word_write_time(source, target, lines);
        // The holder of the register contends at the buffer's port only with reads of the buffer's owner.
        let start = self.registers[target.index()].reserve(cores.present(), at, alone);
        (start, registers + cores.word_write_time(source, target, lines, start))
    }

    fn receive_time(&self, cores: &Cores, Packet { target, lines, .. }: Packet) -> Picoseconds {
        wake(cores, target) + cores.own_read(target, lines)
    }

    fn receive(&mut self, cores: &mut Cores, packet: Packet, at: Picoseconds) -> (Picoseconds, Picoseconds) {
        let Packet { target, lines, .. } = packet;
        let wake = wake(cores, target);
        let whole = wake + cores.read_time(target, target, lines, at + wake);
        (whole, whole)
    }

    fn free(&mut self, packet: Packet, at: Picoseconds) {
        self.taken[packet.target.index()][packet.class as usize].push((at, packet.lines));
    }

    fn look(&self, cores: &Cores, place: PlaceId) -> Picoseconds {
        cores.cycles(place, POLL_CYCLES)
    }

    fn read(&self, cores: &Cores, place: PlaceId, _bytes: usize) -> Picoseconds {
        cores.cycles(place, RECEIVE_CYCLES)
    }

    /// An acknowledgement is a word in the sender's buffer.
    fn acknowledgement(
        &self,
        cores: &Cores,
        reader: PlaceId,
        sender: PlaceId,
        _is_due: bool,
    ) -> [Picoseconds; 2] {
        [cores.register(reader, sender), Picoseconds::ZERO]
    }
}
