//! Traces recorded by ranks: sent to rank 0 and converted to its clock.
//!
//! This happens before and after the run, when no other message is in flight, so the run sends no message for its
//! trace. Invariant: all ranks make the same collective calls, whether they have something to send or not.

use super::clocks;
use super::clocks::{ClockReading, HostClock};
use crate::print::notice;
use crate::trace::Collector;
use isles_transport::PlaceId;
use isles_transport_mpi::Library;

/// A traced run, at one rank.
pub(in crate::machine) struct RecordedRun {
    collector: Collector,
    hosts: Vec<u32>,
    before: Vec<ClockReading>,
}

impl RecordedRun {
    /// Reads the clocks of all hosts; a collective call before the run. `hosts[rank]` is the first rank of that rank's
    /// host.
    pub(in crate::machine) fn begin(library: &Library, hosts: &[u32], collector: Collector) -> RecordedRun {
        RecordedRun { collector, before: clocks::read(library, hosts), hosts: hosts.to_vec() }
    }

    /// Returns the collector for the events of this rank's place.
    pub(in crate::machine) fn collector(&self) -> Collector {
        self.collector.clone()
    }

    /// Adds the parts of all ranks to the collector of rank 0, on its clock, and reports the accuracy of the clocks on
    /// standard error; a collective call after the run.
    pub(in crate::machine) fn finish(self, library: &Library) {
        let after = clocks::read(library, &self.hosts);
        let here = PlaceId(library.rank());
        let own = self.collector.part(here);
        let bytes = own.as_ref().filter(|_| here.0 > 0).map(Collector::to_bytes).unwrap_or_default();
        let lens = library.gather_all(&(bytes.len() as u64).to_le_bytes());
        if here.0 > 0 {
            if !bytes.is_empty() {
                library.send(&bytes, 0);
            }
            return;
        }
        if let Some(own) = own {
            self.collector.take(own);
        }
        let mut error = 0;
        for (rank, len) in (0..).zip(&lens).skip(1) {
            let len = <[u8; 8]>::try_from(len.as_slice()).map_or(0, u64::from_le_bytes);
            if len == 0 {
                continue;
            }
            let mut bytes = vec![0; len as usize];
            library.receive(&mut bytes, rank);
            let clock = HostClock::new(self.before[rank as usize], after[rank as usize]);
            let part = Collector::of_bytes(&bytes).filter(|part| part.place == PlaceId(rank));
            if let Some(part) = part {
                self.collector.take(part.on_clock(|time| clock.to_first(time)));
                error = error.max(clock.error());
            }
        }
        let mut firsts = self.hosts;
        firsts.sort_unstable();
        firsts.dedup();
        if firsts.len() > 1 {
            let (hosts, error) = (firsts.len(), error as f64 / 1e3);
            notice(format_args!(
                "isles: in the trace, the clocks of {hosts} hosts agree within {error:.1} us"
            ));
        }
    }
}
