//! The file server, whose disk and link all places share.
//!
//! Calls of different places overlap in their latency and in the core's time for the bytes; the server transfers the
//! bytes of one call after the other. A file that was read or written before is warm, in the server's memory. Without a
//! server in the chip file, accesses take no time. Invariant: the time of calls is booked as waiting, and counted.

use super::Cores;
use crate::report::{FileTraffic, TimeCategory};
use isles_chip::Chip;
use isles_chip::cost::Cost;
use isles_chip::kernel::Timeline;
use isles_chip::quantity::Picoseconds;
use isles_transport::ordered::OrderedSet;
use isles_transport::{FileAccess, PlaceId};

/// Latency of a call, and time per KiB.
type CallTimes = [Picoseconds; 2];

/// Times of a call to the file server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileTimes {
    cold: CallTimes,
    warm: CallTimes,
    /// Time of the calling core per KiB.
    core_kib: Picoseconds,
}

impl FileTimes {
    /// Returns the times of the file server; `None` if the chip file has none.
    pub(super) fn of(chip: &Chip) -> Option<FileTimes> {
        let server = chip.files()?;
        let clocks = chip.default_preset().clocks();
        let times = |costs: [&Cost; 2]| costs.map(|cost| cost.at(clocks).over(0));
        Some(FileTimes {
            cold: times([&server.cold_latency, &server.cold_kib]),
            warm: times([&server.warm_latency, &server.warm_kib]),
            core_kib: server.core_kib.at(clocks).over(0),
        })
    }
}

/// The server of a run.
#[derive(Debug, Default)]
pub(super) struct Files {
    link: Timeline,
    warm: OrderedSet<u64>,
    pub(super) traffic: FileTraffic,
}

impl Cores {
    /// Makes `place` wait until the server has completed the access.
    pub(crate) fn access_file(&mut self, place: PlaceId, access: &FileAccess) {
        let is_warm = !self.files.warm.insert(access.file) || access.is_write;
        let traffic = &mut self.files.traffic;
        let calls = if access.is_write { &mut traffic.writes } else { &mut traffic.reads };
        *calls += 1;
        traffic.bytes += access.bytes;
        traffic.cold += u64::from(!is_warm);
        let Some(FileTimes { cold, warm, core_kib }) = self.costs.files else { return };
        let [latency, kib] = if is_warm { warm } else { cold };
        let of_bytes =
            |kib: Picoseconds| Picoseconds((u128::from(kib.0) * u128::from(access.bytes) / 1_024) as u64);
        let (present, now) = (self.present, self.now(place));
        let sent = self.files.link.reserve(present, now + latency, of_bytes(kib)) + of_bytes(kib);
        let end = sent.max(now + latency + of_bytes(core_kib));
        self.files.traffic.waited += end - now;
        self.spend(place, end - now, TimeCategory::Waiting);
    }

    /// Returns the totals of the programs' reads and writes.
    pub(crate) fn file_traffic(&self) -> FileTraffic {
        self.files.traffic
    }
}
