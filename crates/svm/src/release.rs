//! Pages of the model release: copies from homes, twins, and differences sent back.
//!
//! The pages of a place's own home are mapped from the frames that all share, and need no copy. All others come from a
//! memory file of this place. Places write differences into the frames themselves: on one host no message is needed. In
//! a region that spans hosts a copy is requested from its home, and a difference goes there as a message: a mask with a
//! bit for each byte of the page, then the bytes that changed. A release ends when all are acknowledged as applied.
//!
//! A word for each page behind the frames keeps a home's guards apart from differences that others write: bit 31 while
//! one is written, below it the number of guards of the home.

use crate::RegionError;
use crate::state::{RegionState, add};
use crate::sys::{PAGE_BYTES, PageMapping};
use isles_protocol::PlaceId;
use isles_protocol::svm::{CacheAction, PageAccess, PageNumber, ReleaseCache};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex};

const WORDS: usize = PAGE_BYTES / 8;
const WRITING: u32 = 1 << 31;
/// Bytes of the mask of a difference.
const MASK_BYTES: usize = PAGE_BYTES / 8;
/// Most differences in flight from a place to other hosts: 1.2 MB.
const UNAPPLIED_MAX: usize = 256;

type Twin = Box<[u64; WORDS]>;

/// The copies of pages of other homes at a place.
pub struct ReleasePages {
    cache: ReleaseCache,
    twins: HashMap<PageNumber, Twin>,
    /// Pages requested from homes on other hosts, with the pending actions.
    fetching: HashMap<PageNumber, CacheAction>,
    /// A second mapping of the copies, for writes that the program must not see. `None` for other models.
    copies: Option<PageMapping>,
}

/// Returns the pages whose home is place `place` of a region of the model release: blocks, in the order of places.
pub fn home_block(pages: u32, places: u32, place: u32) -> Range<u32> {
    let first = |place: u32| (u64::from(pages) * u64::from(place) / u64::from(places)) as u32;
    first(place)..first(place + 1)
}

/// A difference on its way to the home of its page.
pub struct Difference {
    pub home: PlaceId,
    pub page: PageNumber,
    pub bytes: Vec<u8>,
}

/// Differences that the worker hands to its service thread.
#[derive(Default)]
pub struct Differences {
    queue: Mutex<DifferenceQueue>,
    applied: Condvar,
}

#[derive(Default)]
struct DifferenceQueue {
    unsent: VecDeque<Difference>,
    /// Number of differences not yet acknowledged as applied.
    unapplied: usize,
}

impl Differences {
    fn queue(&self) -> std::sync::MutexGuard<'_, DifferenceQueue> {
        self.queue.lock().expect("no holder panics")
    }

    /// Service thread: takes the differences to send.
    pub fn take_unsent(&self) -> VecDeque<Difference> {
        std::mem::take(&mut self.queue().unsent)
    }

    /// Service thread: records that a home has applied one.
    pub fn one_applied(&self) {
        let mut queue = self.queue();
        queue.unapplied = queue.unapplied.saturating_sub(1);
        self.applied.notify_all();
    }

    /// Service thread: wakes the worker to check for the loss of the region.
    pub fn wake(&self) {
        let _queue = self.queue();
        self.applied.notify_all();
    }
}

impl ReleasePages {
    pub fn new(pages: u32, copies: Option<PageMapping>) -> ReleasePages {
        ReleasePages {
            cache: ReleaseCache::new(pages),
            twins: HashMap::new(),
            fetching: HashMap::new(),
            copies,
        }
    }
}

impl RegionState {
    fn own_block(&self) -> Range<u32> {
        home_block(self.pages, self.places, self.here.0)
    }

    /// Returns the home of a page.
    fn home(&self, page: PageNumber) -> PlaceId {
        let place = (u64::from(page.0) + 1) * u64::from(self.places) - 1;
        PlaceId((place / u64::from(self.pages)) as u32)
    }

    /// Service thread: resolves a fault. Returns the home from which the page must be requested first, if it is on
    /// another host.
    pub fn fault_in_copy(
        &self,
        page: PageNumber,
        access: PageAccess,
    ) -> Result<Option<PlaceId>, RegionError> {
        let mut release = self.release.lock().expect("no holder panics");
        let Some(action) = release.cache.fault(page, access) else { return Ok(None) };
        if let Some(due) = release.fetching.get_mut(&page) {
            *due = CacheAction { twins: due.twins || action.twins, access: action.access, ..*due };
            return Ok(None);
        }
        if action.fetches && self.has_sockets {
            release.fetching.insert(page, action);
            return Ok(Some(self.home(page)));
        }
        let Some(copies) = &release.copies else { return Ok(None) };
        if action.fetches {
            for word in page.index() * WORDS..(page.index() + 1) * WORDS {
                let value = self.frames.word64(word).load(Ordering::Relaxed);
                copies.word64(word).store(value, Ordering::Relaxed);
            }
            add(&self.counts.bytes, PAGE_BYTES);
        }
        self.finish_fault(&mut release, page, action)
    }

    /// Makes the twin for an action, and maps the present copy.
    fn finish_fault(
        &self,
        release: &mut ReleasePages,
        page: PageNumber,
        action: CacheAction,
    ) -> Result<Option<PlaceId>, RegionError> {
        let Some(copies) = &release.copies else { return Ok(None) };
        if action.fetches {
            add(&self.counts.pages, 1);
        }
        if action.twins {
            let mut twin: Twin = Box::new([0; WORDS]);
            for (kept, word) in twin.iter_mut().zip(page.index() * WORDS..) {
                *kept = copies.word64(word).load(Ordering::Relaxed);
            }
            release.twins.insert(page, twin);
        }
        self.map(page, action.access)?;
        Ok(None)
    }

    /// Service thread: handles the arrival of a page from another host.
    pub fn content_arrived(&self, page: PageNumber, content: &[u8]) -> Result<(), RegionError> {
        let mut release = self.release.lock().expect("no holder panics");
        let Some(action) = release.fetching.remove(&page) else { return Ok(()) };
        if let Some(copies) = &release.copies {
            copies.store_page(page.index(), content);
            add(&self.counts.bytes, content.len());
        }
        self.finish_fault(&mut release, page, action).map(drop)
    }

    /// Service thread, after a loss: maps the pages that will not arrive, with their local content.
    pub fn end_fetches(&self) -> Result<(), RegionError> {
        let mut release = self.release.lock().expect("no holder panics");
        let fetching: Vec<_> = release.fetching.drain().collect();
        let Some(copies) = &release.copies else { return Ok(()) };
        for (page, action) in fetching {
            // An untouched page is not in the file yet.
            copies.word64(page.index() * WORDS).load(Ordering::Relaxed);
            self.map(page, action.access)?;
        }
        Ok(())
    }

    /// Worker, without guards: writes all differences to their homes.
    pub fn flush(&self) -> Result<(), RegionError> {
        let mut differences = Vec::new();
        let mut release = self.release.lock().expect("no holder panics");
        let ReleasePages { cache, twins, copies: Some(copies), .. } = &mut *release else { return Ok(()) };
        for page in cache.release() {
            let index = page.index();
            self.states[index].store(1, Ordering::SeqCst);
            self.fault.protect(&self.program, index * PAGE_BYTES..(index + 1) * PAGE_BYTES, true)?;
            let Some(twin) = twins.remove(&page) else { continue };
            let now = |word: usize| copies.word64(index * WORDS + word).load(Ordering::Relaxed);
            if self.has_sockets {
                let bytes = encode_difference(&twin, now);
                differences.push(Difference { home: self.home(page), page, bytes });
                continue;
            }
            self.begin_writing(page)?;
            for (word, before) in twin.iter().enumerate().filter(|(word, before)| now(*word) != **before) {
                self.write_difference(*before, now(word), (index * WORDS + word) * 8);
            }
            // PAIR page-word: publish
            self.pin_word(page).fetch_and(!WRITING, Ordering::Release);
        }
        // The service thread needs the lock during the wait.
        drop(release);
        self.ship(differences)
    }

    /// Hands differences to the service thread, and waits until all are applied.
    fn ship(&self, differences: Vec<Difference>) -> Result<(), RegionError> {
        for difference in differences {
            let mut queue = self.await_applied(UNAPPLIED_MAX - 1)?;
            queue.unapplied += 1;
            add(&self.counts.bytes, difference.bytes.len() - MASK_BYTES);
            queue.unsent.push_back(difference);
            drop(queue);
            self.ring();
        }
        self.await_applied(0).map(drop)
    }

    /// Waits until at most `most` differences are not applied.
    fn await_applied(&self, most: usize) -> Result<std::sync::MutexGuard<'_, DifferenceQueue>, RegionError> {
        let Differences { applied, .. } = &self.differences;
        let is_full = |queue: &mut DifferenceQueue| queue.unapplied > most && self.loss().is_none();
        let queue = applied.wait_while(self.differences.queue(), is_full).expect("no holder panics");
        self.check()?;
        Ok(queue)
    }

    /// Service thread of the home: applies a difference of another host, unless a guard holds the page; returns whether
    /// it did.
    pub fn apply_difference(&self, page: PageNumber, bytes: &[u8]) -> bool {
        let Some((mask, mut values)) = bytes.split_at_checked(MASK_BYTES) else { return true };
        // Sequentially consistent with the count of deferred requests, see `state`.
        if self.pin_word(page).compare_exchange(0, WRITING, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return false;
        }
        for at in (0..PAGE_BYTES).filter(|at| mask[at / 8] >> (at % 8) & 1 == 1) {
            let Some((value, rest)) = values.split_first() else { break };
            self.frames.byte(page.index() * PAGE_BYTES + at).store(*value, Ordering::Relaxed);
            values = rest;
        }
        // PAIR page-word: publish
        self.pin_word(page).fetch_and(!WRITING, Ordering::Release);
        true
    }

    /// Worker, without guards and after a flush: drops all copies.
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

    /// Worker: pins a page of any home for a guard.
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

    /// Worker: ends [`RegionState::pin_for_release`].
    pub fn unpin_for_release(&self, page: PageNumber, access: PageAccess) {
        if self.own_block().contains(&page.0) {
            // PAIR page-word: publish. Sequentially consistent with the check of deferred requests, see `state`.
            self.pin_word(page).fetch_sub(1, Ordering::SeqCst);
            self.wake_deferred();
        } else {
            self.unpin(page, access);
        }
    }
}

/// Encodes a difference for a message: a mask with a bit for each byte of the page, then the changed bytes.
fn encode_difference(twin: &[u64; WORDS], now: impl Fn(usize) -> u64) -> Vec<u8> {
    let mut bytes = vec![0; MASK_BYTES];
    for (word, before) in twin.iter().enumerate() {
        let pairs = before.to_ne_bytes().into_iter().zip(now(word).to_ne_bytes());
        for (offset, (_, now)) in pairs.enumerate().filter(|(_, (before, now))| before != now) {
            bytes[word] |= 1 << offset;
            bytes.push(now);
        }
    }
    bytes
}
