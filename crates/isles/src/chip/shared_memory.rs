//! The incoherent shared memory of a modelled chip, from inside a program.
//!
//! A chip such as the SCC has memory that every core can access, but no hardware coherence. What a core reads depends
//! on the kind of the memory and on how the program manages its caches. A read that misses a write returns the old
//! bytes, as on the chip. The run records such stale reads and reports them at its end with place, address, the missed
//! write and the operation that the program lacks, so errors are found before the program runs on a real chip.
//!
//! ```
//! use isles::prelude::*;
//! use isles::shared_memory::{MemoryKind, SharedMemory};
//!
//! async fn hand_over() -> isles::Result<u8> {
//!     // None on a machine whose memory is not modelled: use messages there.
//!     let Some(memory) = SharedMemory::new(64, MemoryKind::Through) else { return Ok(42) };
//!     memory.write(0, &[42]);
//!     memory.drain();
//!     let other = here().next();
//!     Ok(at!(other, {
//!         SharedMemory::invalidate();
//!         let mut found = [0];
//!         memory.read(0, &mut found);
//!         found[0]
//!     })
//!     .await?)
//! }
//! ```
//!
//! There is no such memory on a real machine. `docs/chip/shared-memory.md` has the costs of accesses and the limits of
//! the model.

use super::clocks::ask;
use isles_chip::shared::CachePolicy;
pub use isles_services::MemoryKind;
use isles_services::{IncoherentMemory, MemoryRange};
use isles_transport::PlaceId;
use isles_transport_chip::MemoryRegion;
use serde::{Deserialize, Serialize};

/// Returns the cache policy of a kind.
fn policy(kind: MemoryKind) -> CachePolicy {
    match kind {
        MemoryKind::Uncached => CachePolicy::Uncached,
        MemoryKind::Cached => CachePolicy::Cached,
        MemoryKind::Through => CachePolicy::Through,
    }
}

/// A region of the memory that all cores of a modelled chip share; a small handle that can be sent to other places.
///
/// It starts as zeros on a cache line of its own, behind the memory controller of the place that reserves it, and
/// exists until the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedMemory {
    start: u64,
    bytes: u64,
    kind: MemoryKind,
    controller: u32,
}

impl SharedMemory {
    /// Reserves a region of `bytes` bytes. Returns `None` on a real machine, and on a chip whose file has no memory
    /// costs.
    ///
    /// # Panics
    /// On a chip, outside of a task.
    pub fn new(bytes: u64, kind: MemoryKind) -> Option<SharedMemory> {
        let region = ask(None, |world, place| world.take_shared(place, policy(kind), bytes))?;
        let (start, bytes, controller) = (region.start, region.bytes, region.home());
        Some(SharedMemory { start, bytes, kind, controller })
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the kind of this memory.
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn region(&self) -> MemoryRegion {
        MemoryRegion::new(self.start, self.bytes, policy(self.kind), self.controller)
    }

    /// Reads the bytes from `offset` on as this place sees them, which may be stale.
    ///
    /// # Panics
    /// If the range exceeds the region, or outside of a task.
    #[track_caller]
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        ask((), |world, place| world.read_shared(place, &self.region(), offset, into));
    }

    /// Writes the bytes from `offset` on. When other places see them depends on the kind.
    ///
    /// # Panics
    /// If the range exceeds the region, or outside of a task.
    #[track_caller]
    pub fn write(&self, offset: u64, from: &[u8]) {
        ask((), |world, place| world.write_shared(place, &self.region(), offset, from));
    }

    /// Drains this core's write buffer to memory, of any region.
    ///
    /// # Panics
    /// Outside of a task.
    pub fn drain(&self) {
        ask((), |world, place| world.drain_shared(place, &self.region()));
    }

    /// Writes back this core's modified cache lines of the region, and invalidates all its lines of the region.
    ///
    /// This is slow for [`MemoryKind::Cached`] (on the SCC 7,500 cycles and 300 for each line of the region, at most
    /// 582,000), because software must evict the lines.
    ///
    /// # Panics
    /// Outside of a task.
    pub fn flush(&self) {
        ask((), |world, place| world.flush_shared(place, &[self.region()]));
    }

    /// Invalidates all lines of [`MemoryKind::Through`] memory in this core's first-level cache, of any region: the
    /// SCC's instruction CL1INVMB, one cycle. Does nothing on a real machine.
    ///
    /// # Panics
    /// On a chip, outside of a task.
    pub fn invalidate() {
        ask((), |world, place| world.invalidate_shared(place));
    }
}

/// The incoherent memory for shared objects.
pub(super) struct ChipMemory;

impl ChipMemory {
    fn region(region: &MemoryRange) -> MemoryRegion {
        let MemoryRange { start, bytes, kind, controller } = *region;
        MemoryRegion::new(start, bytes, policy(kind), controller)
    }
}

impl IncoherentMemory for ChipMemory {
    fn take(&self, kind: MemoryKind, bytes: u64) -> Option<MemoryRange> {
        let region = ask(None, |world, place| world.take_shared(place, policy(kind), bytes))?;
        let (start, bytes, controller) = (region.start, region.bytes, region.home());
        Some(MemoryRange { start, bytes, kind, controller })
    }

    fn take_buffer(&self, bytes: u64) -> Option<MemoryRange> {
        let region = ask(None, |world, place| world.take_buffer(place, bytes))?;
        let (start, bytes, controller) = (region.start, region.bytes, region.home());
        Some(MemoryRange { start, bytes, kind: MemoryKind::Through, controller })
    }

    fn give_back_buffer(&self, range: &MemoryRange) {
        ask((), |world, _| world.give_back_buffer(&ChipMemory::region(range)));
    }

    fn is_taken_by(&self, place: PlaceId, range: &MemoryRange) -> bool {
        ask(false, |world, _| world.is_taken_by(place, &ChipMemory::region(range)))
    }

    fn tile(&self, place: PlaceId) -> u32 {
        ask(0, |world, _| world.tile(place))
    }

    fn controllers(&self) -> u32 {
        ask(1, |world, _| world.memory_controllers())
    }

    fn read(&self, region: &MemoryRange, offset: u64, into: &mut [u8]) {
        ask((), |world, place| world.read_shared(place, &ChipMemory::region(region), offset, into));
    }

    fn write(&self, region: &MemoryRange, offset: u64, from: &[u8]) {
        ask((), |world, place| world.write_shared(place, &ChipMemory::region(region), offset, from));
    }

    fn flush(&self, regions: &[MemoryRange]) {
        let regions: Vec<MemoryRegion> = regions.iter().map(ChipMemory::region).collect();
        ask((), |world, place| world.flush_shared(place, &regions));
    }

    fn drain(&self, region: &MemoryRange) {
        ask((), |world, place| world.drain_shared(place, &ChipMemory::region(region)));
    }

    fn invalidate(&self) {
        SharedMemory::invalidate();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;
    use crate::{ErrorKind, Launch, ModelledChip, Result, ServedMemory, WindowOptions};

    /// Kills the place with this number, and computes until this place knows of the death.
    fn kill(place: u32) {
        ask((), |world, _| world.kill(PlaceId(place)));
        work(Cycles(1_000_000));
        assert!(places().nth(place as usize).unwrap().is_dead());
    }

    fn check_is_death_of(ended: Result<()>, place: u32) {
        assert_eq!(*ended.unwrap_err().kind(), ErrorKind::DeadPlace(PlaceId(place)));
    }

    /// Notices and completions arrive through the server of the own part, not through those of others.
    #[test]
    fn waits_end_with_the_server_of_the_own_part_and_with_no_other() {
        let program = || async {
            let team = Team::from_places(&places().step_by(2).collect::<Vec<_>>())?;
            let options = WindowOptions::served(ServedMemory::Shared);
            let window = Window::<u64>::with_lens(&team, &[1, 1], options).await?;
            kill(3);
            window.post(&[1])?;
            at!(window.place_of(1), {
                window.start(&[0]).await?;
                window.put_notify(0, 0, &[5]).await?;
                window.complete().await?;
            })
            .await?;
            window.notified(1, 1).await?;
            window.wait().await?;
            kill(1);
            check_is_death_of(window.notified(1, 2).await, 1);
            window.post(&[1])?;
            check_is_death_of(window.wait().await, 1);
            Ok::<_, crate::Error>(())
        };
        let launch = Launch::from_environment().unwrap().places(4);
        launch.run_on_chip(ModelledChip::new("scc").unwrap(), program).unwrap().0.unwrap();
    }
}
