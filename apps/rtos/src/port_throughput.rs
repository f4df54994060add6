//! The application `port-throughput`: a task sends packets of one length to another task through a port.
//!
//! The receiver takes one packet before the measurement, and then the requested number; both tasks wait at the port,
//! so one packet is in flight at a time (OpenComRTOS, section IV.D). With `--hand-over` the data stays in a buffer of
//! shared memory: the packet identifies it, and the receiver locks it, copies it, and returns it. Invariant: the
//! receiver's digest is that of the sender's packets, under every map.

use crate::program::{Digest, HubArguments, HubProgram};
use clap::{Args, ValueEnum, value_parser};
use isles::hub::{HubDescription, HubId, HubKind, HubMap, HubTask, Wait};
use isles::prelude::*;
use isles::{Mapping, MemoryKind, Shared, SharedOptions};
use isles_app::Failure;
use isles_app::frame::{Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The arguments of `isles run port-throughput`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct PortThroughput {
    /// Data of a packet in bytes, 1 to 1048576
    #[arg(long, value_name = "N", default_value = "4096", value_parser = value_parser!(u32).range(1..=1 << 20))]
    bytes: u32,

    /// Packets that are measured, 1 to 2^32 - 2
    #[arg(long, value_name = "N", default_value = "1000", value_parser = value_parser!(u32).range(1..u32::MAX as i64))]
    packets: u32,

    /// Hand the data over in a buffer of shared memory, cached in this way on a modelled chip
    #[arg(long, value_name = "MEMORY")]
    hand_over: Option<BufferMemory>,

    #[command(flatten)]
    hubs: HubArguments,
}

/// Caching of the shared buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BufferMemory {
    /// Not at all
    Uncached,
    /// In both caches
    Cached,
    /// In the first cache, written through
    Through,
}

impl BufferMemory {
    fn kind(self) -> MemoryKind {
        match self {
            BufferMemory::Uncached => MemoryKind::Uncached,
            BufferMemory::Cached => MemoryKind::Cached,
            BufferMemory::Through => MemoryKind::Through,
        }
    }
}

/// The buffer that sender and receiver hand to each other.
type SharedBuffer = Shared<Mapping<u8>>;

/// The packets that are sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Packets {
    bytes: u32,
    count: u32,
    hand_over: Option<BufferMemory>,
}

/// Argument of the tasks.
#[derive(Clone, Serialize, Deserialize)]
struct TransferArguments {
    packets: Packets,
    /// Shared buffer, if the packets do not go through the port.
    buffer: Option<SharedBuffer>,
}

/// The result of a task: the digest of all packets, and the receiver's time for all but the first.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Transferred {
    digest: u64,
    nanoseconds: u64,
}

/// The result of a run.
#[derive(Serialize)]
pub struct PortThroughputFound {
    /// Data of a packet in bytes.
    bytes: u32,
    /// Packets that were measured.
    packets: u32,
    /// Data received per second, in 10^6 bytes.
    mb_per_s: f64,
    /// The digests of the sent and the received data.
    sent: u64,
    received: u64,
}

fn describe(packets: Packets) -> HubDescription {
    HubDescription::new()
        .task("sender", 20)
        .task("receiver", 20)
        .hub("port", HubKind::Port)
        .hub("buffer", HubKind::Resource { ceiling: 0 })
        .hub("returned", HubKind::Semaphore { count: 1 })
        .packet_bytes(packets.bytes.max(DESCRIPTOR_BYTES as u32))
}

/// Description of a buffer: its address, its length, and the resource that locks it.
const DESCRIPTOR_BYTES: usize = 12;

/// Returns the packet that hands over a buffer.
fn descriptor(buffer: &SharedBuffer, bytes: u32, lock: HubId) -> [u8; DESCRIPTOR_BYTES] {
    let mut packet = [0; DESCRIPTOR_BYTES];
    packet[..4].copy_from_slice(&(buffer.home().index() as u32).to_le_bytes());
    packet[4..8].copy_from_slice(&bytes.to_le_bytes());
    packet[8..].copy_from_slice(&lock.0.to_le_bytes());
    packet
}

/// Returns a map with port and receiver at one place, and the sender at another.
fn usual_map(places: u32) -> HubMap {
    let other = u32::from(places > 1);
    HubMap::of([("sender", 0), ("receiver", other), ("port", other), ("buffer", other), ("returned", 0)])
}

/// Writes the data of a packet: its number, and bytes derived from it.
fn fill(data: &mut [u8], number: u32) {
    let word = number.wrapping_mul(0x9e37_79b9).to_le_bytes();
    for chunk in data.chunks_mut(4) {
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

async fn body(
    task: HubTask,
    TransferArguments { packets, buffer }: TransferArguments,
) -> isles::Result<Transferred> {
    let buffer = buffer.as_ref();
    if task.name() == "sender" {
        send(&task, packets, buffer).await
    } else {
        receive(&task, packets, buffer).await
    }
}

async fn send(task: &HubTask, packets: Packets, buffer: Option<&SharedBuffer>) -> isles::Result<Transferred> {
    let (port, lock, returned) = (task.port("port")?, task.resource("buffer")?, task.semaphore("returned")?);
    let (mut data, mut digest) = (vec![0; packets.bytes as usize], Digest::new());
    for number in 0..=packets.count {
        fill(&mut data, number);
        digest.add(&data[..data.len().min(4)]);
        let Some(buffer) = buffer else {
            task.put(port, &data, Wait::Forever).await?;
            continue;
        };
        task.test(returned, Wait::Forever).await?;
        let mut filling = buffer.write().await?;
        filling.write(0, &data);
        filling.release().await;
        task.put(port, &descriptor(buffer, packets.bytes, lock), Wait::Forever).await?;
    }
    Ok(Transferred { digest: digest.0, nanoseconds: 0 })
}

async fn receive(
    task: &HubTask,
    packets: Packets,
    buffer: Option<&SharedBuffer>,
) -> isles::Result<Transferred> {
    let (port, lock, returned) = (task.port("port")?, task.resource("buffer")?, task.semaphore("returned")?);
    let (mut begun, mut digest) = (now(), Digest::new());
    for number in 0..=packets.count {
        let mut data = task.get(port, Wait::Forever).await?;
        if let Some(buffer) = buffer {
            let is_it = data == descriptor(buffer, packets.bytes, lock);
            data = vec![0; if is_it { packets.bytes as usize } else { 0 }];
            task.test(lock, Wait::Forever).await?;
            buffer.read().await?.read(0, &mut data);
            task.signal(lock, Wait::Forever).await?;
            task.signal(returned, Wait::Forever).await?;
        }
        if number == 0 {
            begun = now();
        }
        let is_whole =
            data.len() == packets.bytes as usize && data.chunks(4).all(|chunk| data.starts_with(chunk));
        digest.add(if is_whole { &data[..data.len().min(4)] } else { &[] });
    }
    Ok(Transferred { digest: digest.0, nanoseconds: (now() - begun).as_nanos() as u64 })
}

impl Application for PortThroughput {
    const INFO: ApplicationInfo = ApplicationInfo::new(
        "port-throughput",
        "A task that sends packets to another one through a port of a distributed real-time kernel",
        "packets",
    );
    type Input = HubProgram<Packets>;
    type Found = PortThroughputFound;

    fn open(&self, places: u32) -> Result<Self::Input, Failure> {
        let packets = Packets { bytes: self.bytes, count: self.packets, hand_over: self.hand_over };
        HubProgram::open(&self.hubs, packets, describe, usual_map(places), places)
    }

    fn heading(&self, _: &Self::Input) -> String {
        let form = if self.hand_over.is_some() { "handed over by" } else { "through" };
        format!("{} packets of {} B {form} a port", self.packets, self.bytes)
    }

    async fn compute(
        input: HubProgram<Packets>,
        distributor: WorkDistributor,
    ) -> isles::Result<(PortThroughputFound, WorkDone)> {
        let _steps = distributor.open_steps();
        distributor.begin_phase("packets");
        let packets @ Packets { bytes, count, hand_over } = input.arguments;
        let buffer = match hand_over {
            None => None,
            Some(memory) => {
                // The hubs allow only one task at a time to use the buffer.
                let options = SharedOptions::default().memory(memory.kind()).exclusive_by_program();
                Some(Shared::with(Mapping::new(bytes as usize), options).await?)
            }
        };
        let tasks = input.run_with(TransferArguments { packets, buffer }, describe, body).await?.tasks;
        let (sender, receiver) = (tasks["sender"], tasks["receiver"]);
        let seconds = receiver.nanoseconds as f64 / 1e9;
        let found = PortThroughputFound {
            bytes,
            packets: count,
            mb_per_s: f64::from(bytes) * f64::from(count) / seconds / 1e6,
            sent: sender.digest,
            received: receiver.digest,
        };
        Ok((found, WorkDone { seconds, ..WorkDone::default() }))
    }
}

impl RunResult for PortThroughput {
    fn text(&self, found: &PortThroughputFound) -> String {
        format!("packets     {} of {} B\nthroughput  {:.2} MB/s", found.packets, found.bytes, found.mb_per_s)
    }

    fn speed(&self, found: &PortThroughputFound, seconds: f64) -> String {
        format!("{:.1} packets a second", f64::from(found.packets) / seconds)
    }

    fn verify(&self, found: &PortThroughputFound, _: bool) -> Result<Option<Verification>, Failure> {
        let holds = found.sent == found.received;
        let text = format!(
            "the digest of the received data is {:016x}, of the sent data {:016x}",
            found.received, found.sent
        );
        Ok(Some(Verification { holds, text }))
    }

    fn write_csv(&self, found: &PortThroughputFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "bytes,packets,mb_per_s")?;
        writeln!(out, "{},{},{}", found.bytes, found.packets, found.mb_per_s)
    }
}
