//! Accesses with a lead time: a core's own work before an access and the access are one event.
//!
//! The route of a line is reserved at the call, for the time at which the access starts. A request of another core in
//! between is delayed if both overlap, and otherwise takes a free gap before it. So two requests that overlap within
//! the lead may be served in a different order than with [`BareCore::compute`] and a separate access; without
//! contention the times are equal. It is for runs of whole programs, where host time matters. Contents are not moved;
//! the caller keeps them elsewhere.

use super::BareCore;
use crate::cache::{Access, Level};
use crate::quantity::Picoseconds;
use crate::topology::CoreId;

impl BareCore {
    /// Returns the length of `cycles` cycles of this core.
    #[inline]
    pub fn duration(&self, cycles: u64) -> Picoseconds {
        self.state().cycles(self.id, cycles)
    }

    /// Spends `lead`, then reads a line of the message buffer of `of`, through the first-level cache.
    #[inline]
    pub async fn read_line_after(&self, lead: Picoseconds, of: CoreId, line: u32) {
        let (end, gone) = {
            let mut state = self.state();
            let start = state.now + lead;
            (state.read_end(self.id, of, start), state.private(self.id).caches.pass(of.0, line))
        };
        self.until(end).await;
        if gone > 0 {
            self.write_back(gone).await;
        }
    }

    /// Spends `lead`, then writes a line of the message buffer of `of`, and wakes a core that polls it.
    #[inline]
    pub async fn write_line_after(&self, lead: Picoseconds, of: CoreId, line: u32) {
        let end = {
            let mut state = self.state();
            let start = state.now + lead;
            state.write_end(self.id, of, start)
        };
        self.until(end).await;
        self.state().touch_line(of, line);
    }

    /// Reads a line of its private memory into its caches after `lead`. Returns the time that is still to be spent: all
    /// of it if the line is in a cache.
    #[inline]
    pub async fn load_after(&self, lead: Picoseconds, line: u64) -> Picoseconds {
        let access = self.state().private(self.id).caches.read(line);
        self.private_after(lead, access, true).await
    }

    /// As [`BareCore::load_after`], for a write of a line, word by word, at the level that holds it.
    #[inline]
    pub async fn store_after(&self, lead: Picoseconds, line: u64) -> Picoseconds {
        let access = self.state().private(self.id).caches.write(line);
        self.private_after(lead, access, false).await
    }

    async fn private_after(&self, mut lead: Picoseconds, access: Access, is_load: bool) -> Picoseconds {
        if access.level == Level::Memory || access.written_back > 0 {
            self.sleep_until(self.now() + lead).await;
            lead = Picoseconds::ZERO;
        }
        let time = {
            let mut state = self.state();
            match is_load {
                true => state.begin_load(self.id, access.level),
                false => state.begin_store(self.id, access.level),
            }
        };
        match time {
            Some(time) => lead += time,
            None => self.suspended().await,
        }
        if access.written_back > 0 {
            self.sleep_until(self.now() + lead).await;
            lead = Picoseconds::ZERO;
            self.write_back(access.written_back).await;
        }
        lead
    }
}
