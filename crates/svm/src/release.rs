//! Pages of the model release: copies from homes, twins, and differences that go back.
//!
//! The pages of a place's own home are mapped from the frames that all share, and need no copy. All others come from a
//! memory file of this place. Places write differences into the frames themselves: on one host no message is needed.
//!
//! A word for each page behind the frames keeps a home's guards apart from differences that others write: bit 31 while
//! one is written, below it the number of guards of the home.

use crate::RegionError;
use crate::state::{RegionState, add};
use crate::sys::{PAGE_BYTES, PageMapping};
use isles_protocol::svm::{PageAccess, PageNumber, ReleaseCache};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::Ordering;

const WORDS: usize = PAGE_BYTES / 8;
const WRITING: u32 = 1 << 31;

type Twin = Box<[u64; WORDS]>;

/// The copies that a place has of pages of other homes.
pub struct ReleasePages {
    cache: ReleaseCache,
    twins: HashMap<PageNumber, Twin>,
    /// The copies, where the program does not see it when they are written. `None` for other models.
    copies: Option<PageMapping>,
}

/// Returns the pages whose home is place `place` of a region of the model release: blocks, in the order of places.
pub fn home_block(pages: u32, places: u32, place: u32) -> Range<u32> {
    let first = |place: u32| (u64::from(pages) * u64::from(place) / u64::from(places)) as u32;
    first(place)..first(place + 1)
}

impl ReleasePages {
    pub fn new(pages: u32, copies: Option<PageMapping>) -> ReleasePages {
        ReleasePages { cache: ReleaseCache::new(pages), twins: HashMap::new(), copies }
    }
}

impl RegionState {
    fn own_block(&self) -> Range<u32> {
        home_block(self.pages, self.places, self.here.0)
    }

    /// Of the service thread: answers a fault.
    pub fn fault_in_copy(&self, page: PageNumber, access: PageAccess) -> Result<(), RegionError> {
        let mut release = self.release.lock().expect("no holder panics");
        let ReleasePages { cache, twins, copies: Some(copies) } = &mut *release else { return Ok(()) };
        let Some(action) = cache.fault(page, access) else { return Ok(()) };
        let words = page.index() * WORDS..(page.index() + 1) * WORDS;
        if action.fetches {
            for word in words.clone() {
                let value = self.frames.word64(word).load(Ordering::Relaxed);
                copies.word64(word).store(value, Ordering::Relaxed);
            }
            add(&self.counts.pages, 1);
            add(&self.counts.bytes, PAGE_BYTES);
        }
        if action.twins {
            let mut twin: Twin = Box::new([0; WORDS]);
            for (kept, word) in twin.iter_mut().zip(words) {
                *kept = copies.word64(word).load(Ordering::Relaxed);
            }
            twins.insert(page, twin);
        }
        self.map(page, action.access)
    }

    /// Of the worker, which holds no guard: writes all differences to their homes.
    pub fn flush(&self) -> Result<(), RegionError> {
        let mut release = self.release.lock().expect("no holder panics");
        let ReleasePages { cache, twins, copies: Some(copies) } = &mut *release else { return Ok(()) };
        for page in cache.release() {
            let index = page.index();
            self.states[index].store(1, Ordering::SeqCst);
            self.fault.protect(&self.program, index * PAGE_BYTES..(index + 1) * PAGE_BYTES, true)?;
            let Some(twin) = twins.remove(&page) else { continue };
            self.begin_writing(page)?;
            for (before, word) in twin.iter().zip(index * WORDS..) {
                let now = copies.word64(word).load(Ordering::Relaxed);
                if now != *before {
                    self.write_difference(*before, now, word * 8);
                }
            }
            // PAIR page-word: publish
            self.pin_word(page).fetch_and(!WRITING, Ordering::Release);
        }
        Ok(())
    }

    /// Of the worker, which holds no guard and has flushed: drops all copies.
    pub fn invalidate(&self) -> Result<(), RegionError> {
        let dropped = self.release.lock().expect("no holder panics").cache.acquire();
        add(&self.counts.revoked, dropped.len());
        for page in dropped {
            let index = page.index();
            self.states[index].store(0, Ordering::SeqCst);
            self.program.unmap_pages(index * PAGE_BYTES..(index + 1) * PAGE_BYTES)?;
        }
        Ok(())
    }

    /// Writes those bytes of a word that differ, because another place may change the others now.
    fn write_difference(&self, before: u64, now: u64, at: usize) {
        let bytes = before.to_ne_bytes().into_iter().zip(now.to_ne_bytes());
        for (offset, (_, now)) in bytes.enumerate().filter(|(_, (before, now))| before != now) {
            self.frames.byte(at + offset).store(now, Ordering::Relaxed);
            add(&self.counts.bytes, 1);
        }
    }

    fn pin_word(&self, page: PageNumber) -> &std::sync::atomic::AtomicU32 {
        self.frames.word32(self.pages as usize * PAGE_BYTES / 4 + page.index())
    }

    /// Waits until no guard of the home holds the page. A guard is never held while its place waits for another.
    fn begin_writing(&self, page: PageNumber) -> Result<(), RegionError> {
        let word = self.pin_word(page);
        // PAIR page-word: observe
        while word.compare_exchange(0, WRITING, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.check()?;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Of the worker: pins a page for a guard, whichever its home is.
    pub fn pin_for_release(&self, page: PageNumber, access: PageAccess) -> Result<(), RegionError> {
        if !self.own_block().contains(&page.0) {
            return self.pin(page, access);
        }
        // PAIR page-word: observe
        while self.pin_word(page).fetch_add(1, Ordering::Acquire) & WRITING != 0 {
            // PAIR page-word: publish
            self.pin_word(page).fetch_sub(1, Ordering::Release);
            self.check()?;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Of the worker: ends [`RegionState::pin_for_release`].
    pub fn unpin_for_release(&self, page: PageNumber) {
        if self.own_block().contains(&page.0) {
            // PAIR page-word: publish
            self.pin_word(page).fetch_sub(1, Ordering::Release);
        } else {
            self.unpin(page);
        }
    }
}
