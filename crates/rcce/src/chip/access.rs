//! Accesses of a rank to message buffers, as [`Participant`](isles_chip::bare::rcce::Participant) makes them.
//!
//! Computation of a rank before or after an access is not a separate event: it is charged with the next access
//! (`isles_chip::bare`, operations `.._after`). That halves the events per message. The library does not access shared
//! memory in between.

use super::model::{RankModel, SWEEP};
use crate::interface::{BUFFER_BYTES, LINE_BYTES, PortRequest};
use isles_chip::bare::BareCore;
use isles_chip::bare::rcce::LibraryCosts;
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::CoreId;

const _: () = assert!(BUFFER_BYTES.is_multiple_of(LINE_BYTES));

impl RankModel {
    fn private_line(&self, core: &BareCore, address: u64) -> u64 {
        self.pages.borrow_mut()[core.id().0 as usize].line(address)
    }

    fn target(&self, request: &PortRequest) -> CoreId {
        CoreId(request.target.min(self.ranks - 1))
    }

    /// Copies lines of private memory into a message buffer.
    pub(super) async fn put(
        &self,
        core: &BareCore,
        library: &LibraryCosts,
        request: &PortRequest,
        lead: Picoseconds,
    ) {
        let (target, memory) = (self.target(request), self.private_line(core, request.address));
        let (mut lead, each) = (lead + core.duration(library.call), core.duration(library.line));
        for at in 0..request.count {
            lead = core.load_after(lead, memory + u64::from(at)).await;
            core.write_line_after(lead + each, target, request.line + at).await;
            lead = Picoseconds::ZERO;
        }
        self.defer(core, lead);
        self.wrote();
    }

    /// Copies lines of a message buffer into private memory.
    pub(super) async fn get(
        &self,
        core: &BareCore,
        library: &LibraryCosts,
        request: &PortRequest,
        lead: Picoseconds,
    ) {
        let (source, memory) = (self.target(request), self.private_line(core, request.address));
        let (mut lead, each) = (lead + core.duration(library.call), core.duration(library.line));
        core.invalidate_buffers();
        for at in 0..request.count {
            let place = memory + u64::from(at);
            if library.prefetches {
                lead = core.load_after(lead, place).await;
            }
            core.read_line_after(lead, source, request.line + at).await;
            lead = core.store_after(each, place).await;
        }
        self.defer(core, lead);
    }

    /// Copies lines of a message buffer into the rank's own one.
    pub(super) async fn relay(
        &self,
        core: &BareCore,
        library: &LibraryCosts,
        request: &PortRequest,
        lead: Picoseconds,
    ) {
        let (source, own) = (self.target(request), request.value as u32);
        let (mut lead, each) = (lead + core.duration(library.call), core.duration(library.line));
        core.invalidate_buffers();
        for at in 0..request.count {
            core.read_line_after(lead, source, request.line + at).await;
            core.write_line_after(each, core.id(), own + at).await;
            lead = Picoseconds::ZERO;
        }
        self.defer(core, lead);
        self.wrote();
    }

    /// Writes a flag.
    pub(super) async fn set(
        &self,
        core: &BareCore,
        library: &LibraryCosts,
        request: &PortRequest,
        lead: Picoseconds,
    ) {
        core.write_line_after(lead + core.duration(library.call), self.target(request), request.line).await;
        self.wrote();
    }

    /// Reads a flag.
    pub(super) async fn look(
        &self,
        core: &BareCore,
        library: &LibraryCosts,
        request: &PortRequest,
        lead: Picoseconds,
    ) {
        let cycles = if request.value == 1 { library.call } else { library.look };
        core.read_line_after(lead + core.duration(cycles), self.target(request), request.line).await;
    }

    /// Waits for a flag of the rank's own buffer, as [`BareCore::wait_line`] does.
    pub(super) async fn wait(
        &self,
        core: &BareCore,
        library: &LibraryCosts,
        request: &PortRequest,
        lead: Picoseconds,
    ) -> u64 {
        let (rank, line) = (core.id().0 as usize, request.line);
        let at = request.address as usize % LINE_BYTES;
        let holds = |content: &[u8; LINE_BYTES]| match request.count {
            0 => content[at..]
                .first_chunk()
                .is_some_and(|word| i32::from_ne_bytes(*word) == request.value as i32),
            mask => (u32::from(content[at]) & mask != 0) == (request.value != 0),
        };
        let mut lead = lead + core.duration(library.call);
        loop {
            core.read_line_after(lead, core.id(), line).await;
            let content = self.segment.line(rank, line as usize);
            if holds(&content) {
                self.defer(core, core.duration(library.look));
                return 0;
            }
            core.compute(library.look).await;
            // Only a write after the read counts; an earlier one has been seen.
            if self.segment.line(rank, line as usize) == content {
                core.wait_written(line..line + 1, library.look).await;
            }
            lead = Picoseconds::ZERO;
        }
    }

    /// Waits until the chip's count of writes differs from `seen`; returns it.
    pub(super) async fn wait_anywhere(&self, core: &BareCore, seen: u64) -> u64 {
        if self.writes.get() == seen {
            core.wait_anywhere(SWEEP).await;
        }
        self.writes.get()
    }
}
