//! Memory that all cores share, as the driver reaches it for a place.
//!
//! What a place sees and what that costs is decided in [`crate::shared`]. Invariant: nobody has a stretch before the
//! memory is there.

use super::ChipWorld;
use crate::cores::Cores;
use crate::shared::{MemoryRegion, SharedMemoryState};
use isles_chip::shared::CachePolicy;
use isles_transport::PlaceId;

impl ChipWorld {
    /// Takes memory of zeros that all cores share, behind the memory controller of `place`; for the rest of the run.
    /// None if the chip's file does not say what memory costs, or has other lines than those of 32 bytes.
    pub fn take_shared(&self, place: PlaceId, kind: CachePolicy, bytes: u64) -> Option<MemoryRegion> {
        let state = &mut *self.shared.state.borrow_mut();
        if state.shared.is_none() {
            state.shared = state.cores.memory().map(SharedMemoryState::new);
        }
        let core = state.cores.core_map().core(place);
        Some(state.shared.as_mut()?.take(core, kind, bytes))
    }

    /// `place` reads from `offset` on: what it sees, which may be old.
    ///
    /// # Panics
    /// If that is not within the stretch.
    pub fn read_shared(&self, place: PlaceId, stretch: &MemoryRegion, offset: u64, into: &mut [u8]) {
        self.reach_shared(|shared, cores| shared.read((cores, place), stretch, offset, into));
    }

    /// `place` writes from `offset` on.
    ///
    /// # Panics
    /// If that is not within the stretch.
    pub fn write_shared(&self, place: PlaceId, stretch: &MemoryRegion, offset: u64, from: &[u8]) {
        self.reach_shared(|shared, cores| shared.write((cores, place), stretch, offset, from));
    }

    /// The core of `place` forgets what its first cache has of memory that is written through.
    pub fn invalidate_shared(&self, place: PlaceId) {
        self.reach_shared(|shared, cores| shared.invalidate((cores, place)));
    }

    /// The write buffer of the core of `place` lets its line go, to memory behind the controller of the stretch.
    pub fn drain_shared(&self, place: PlaceId, stretch: &MemoryRegion) {
        self.reach_shared(|shared, cores| shared.drain((cores, place), stretch));
    }

    /// The core of `place` writes back what its caches have of the stretch, and forgets it.
    pub fn flush_shared(&self, place: PlaceId, stretch: &MemoryRegion) {
        self.reach_shared(|shared, cores| shared.flush((cores, place), stretch));
    }

    fn reach_shared(&self, access: impl FnOnce(&mut SharedMemoryState, &mut Cores)) {
        let state = &mut *self.shared.state.borrow_mut();
        let shared = state.shared.as_mut().expect("who has a stretch has taken it");
        access(shared, &mut state.cores);
    }
}
