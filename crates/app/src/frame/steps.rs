//! How far a run is, told to the terminal: the count that those who observe the run see, where somebody can.
//!
//! Without observers the first process counts what it knows: on a modelled chip the steps of all places, else those
//! that were dealt out, which about as many are done of. Invariant: of a total that will grow nothing is foretold, and
//! nothing here is part of the run.

use crate::console::Progress;
use isles::progress;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Steps that the places of this process have done.
static DONE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// At the thread of the first place: what tells whenever steps are done, how many there are, and whether there will
    /// be more.
    static TELLING: RefCell<Option<(StepsTeller, (u64, bool))>> = const { RefCell::new(None) };
}

/// Says that this place has done some steps of those that a [`StepsGuard`] tells of.
pub fn add_done(steps: u64) {
    progress::add_done(steps);
    // Relaxed: a count, by which nothing is ordered.
    DONE.fetch_add(steps, Ordering::Relaxed);
    TELLING.with_borrow_mut(|telling| {
        if let Some((teller, total)) = telling.as_mut().filter(|(teller, _)| teller.is_due()) {
            teller.tell(None, *total);
        }
    });
}

/// What tells the terminal how far a run is.
pub(super) struct StepsTeller {
    progress: Progress,
    /// What was done in this process before.
    base: u64,
}

impl StepsTeller {
    /// For `total` steps, 0 if nobody knows how many, of which `before` are done.
    pub(super) fn new(total: u64, unit: impl Into<Cow<'static, str>>, before: u64) -> StepsTeller {
        let before = progress::observed().map_or(before, |seen| seen.done);
        let base = DONE.load(Ordering::Relaxed) - before.min(DONE.load(Ordering::Relaxed)); // relaxed, as above
        StepsTeller { progress: Progress::new(total, unit).after(before), base }
    }

    /// Whether it is time to tell again.
    pub(super) fn is_due(&self) -> bool {
        self.progress.is_due()
    }

    /// Tells how many steps are done; `dealt` says it without observers, or the count of this process if there is none.
    pub(super) fn tell(&mut self, dealt: Option<u64>, (total, grows): (u64, bool)) {
        let own = || DONE.load(Ordering::Relaxed).saturating_sub(self.base); // relaxed, as above
        let done = match progress::observed() {
            Some(seen) => {
                self.progress.set_total(seen.total, seen.grows);
                seen.done
            }
            None => {
                self.progress.set_total(total, grows);
                dealt.unwrap_or_else(own)
            }
        };
        self.progress.tell(done);
    }
}

/// Tells how far a run is while it lives, whenever steps are done at the thread of the first place.
pub struct StepsGuard(());

impl StepsGuard {
    /// Begins to tell; there are `total` steps, 0 if nobody knows how many.
    pub(super) fn begin(teller: StepsTeller, total: u64, grows: bool) -> StepsGuard {
        TELLING.set(Some((teller, (total, grows))));
        StepsGuard(())
    }
}

impl Drop for StepsGuard {
    fn drop(&mut self) {
        TELLING.set(None);
    }
}
