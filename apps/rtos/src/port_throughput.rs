//! The application `port-throughput`: a task sends packets of one length to another one through a port.
//!
//! The receiver takes one packet before it measures, and then as many as are asked for; both wait at the port, so one
//! packet is under way (OpenComRTOS, section IV.D). Invariant: the receiver's digest is that of the packets that the
//! sender makes, under every map.

use crate::program::{Digest, HubArguments, HubProgram};
use clap::{Args, value_parser};
use isles::hub::{HubDescription, HubKind, HubMap, HubTask, Wait};
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{Application, Verification, WorkDistributor, WorkDone};
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

    #[command(flatten)]
    hubs: HubArguments,
}

/// The packets that are sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Packets {
    bytes: u32,
    count: u32,
}

/// The result of a task: the digest of all packets, and the time of all but the first at the receiver.
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
    /// Data that the receiver has got a second, in 10^6 bytes.
    mb_per_s: f64,
    /// The digests of what was sent and received.
    sent: u64,
    received: u64,
}

fn describe(packets: Packets) -> HubDescription {
    HubDescription::new()
        .task("sender", 20)
        .task("receiver", 20)
        .hub("port", HubKind::Port)
        .packet_bytes(packets.bytes)
}

/// Port and receiver at one place, the sender at another.
fn usual_map(places: u32) -> HubMap {
    let other = u32::from(places > 1);
    HubMap::of([("sender", 0), ("receiver", other), ("port", other)])
}

/// The data of a packet: its number, and bytes that follow from it.
fn fill(data: &mut [u8], number: u32) {
    let word = number.wrapping_mul(0x9e37_79b9).to_le_bytes();
    for chunk in data.chunks_mut(4) {
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

async fn body(task: HubTask, packets: Packets) -> isles::Result<Transferred> {
    let port = task.port("port")?;
    let (count, mut digest) = (packets.count + 1, Digest::new());
    if task.name() == "sender" {
        let mut data = vec![0; packets.bytes as usize];
        for number in 0..count {
            fill(&mut data, number);
            digest.add(&data[..data.len().min(4)]);
            task.put(port, &data, Wait::Forever).await?;
        }
        return Ok(Transferred { digest: digest.0, nanoseconds: 0 });
    }
    let mut begun = now();
    for number in 0..count {
        let data = task.get(port, Wait::Forever).await?;
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
    const NAME: &'static str = "port-throughput";
    const ABOUT: &'static str =
        "A task that sends packets to another one through a port of a distributed real-time kernel";
    const UNITS: &'static str = "packets";
    type Input = HubProgram<Packets>;
    type Found = PortThroughputFound;

    fn open(&self, places: u32) -> Result<HubProgram<Packets>, Failure> {
        let packets = Packets { bytes: self.bytes, count: self.packets };
        HubProgram::open(&self.hubs, packets, describe, (usual_map(places), places))
    }

    fn heading(&self, _: &HubProgram<Packets>) -> String {
        format!("{} packets of {} B through a port", self.packets, self.bytes)
    }

    async fn compute(
        input: HubProgram<Packets>,
        distributor: WorkDistributor,
    ) -> isles::Result<(PortThroughputFound, WorkDone)> {
        let _steps = distributor.open_steps();
        distributor.begin_phase("packets");
        let Packets { bytes, count } = input.arguments;
        let tasks = input.run(describe, body).await?.tasks;
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
