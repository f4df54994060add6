//! Waiting: look for a while, give the processor away for a while, sleep.
//!
//! It follows [`Patience`] and the parking protocol ([`crate::parking`]); what there is to wait for is the
//! caller's question, asked again and again.

use super::berth::Berth;
use crate::layout::PlaceBlock;
use crate::parking::{self, Fencing};
use crate::patience::Patience;
use crate::segment::{Segment, View};
use isles_transport::{PlaceId, Unpark};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a place sleeps at most when the system had no memory for its message.
const SHORTAGE_SLEEP: Duration = Duration::from_millis(10);

/// How often to look before the first look at the clock.
const QUICK_LOOKS: u32 = 256;

/// Longer than giving the processor away goes on; a longer timeout needs no look at the clock meanwhile.
const ASIDE_MAX: Duration = Duration::from_millis(50);

/// How often to look between two looks at the clock.
const LOOKS: u32 = 32;

/// How long a place looks at most while a long message is being written for it: 8 MiB at least. A sender that dies in
/// the middle leaves its announcement.
const COMING_MAX: Duration = Duration::from_millis(2);

/// The waiting of one place.
pub(super) struct Rest {
    patience: Patience,
    /// The processor of this place, if one is kept for it.
    berth: Option<Berth>,
    alarm: Arc<Alarm>,
}

/// What other threads of the process need to end a wait.
struct Alarm {
    /// A wait is to return at once.
    set: AtomicBool,
    own: View<PlaceBlock>,
    fencing: Fencing,
}

impl Unpark for Alarm {
    fn unpark(&self) {
        // PAIR alarm.set: publish
        self.set.store(true, Ordering::Release);
        parking::alert(&self.own.sleeping.0, self.fencing);
    }
}

impl Rest {
    pub fn new(segment: &Segment, here: PlaceId) -> Rest {
        let own = View::new(segment, segment.layout().place_block(here));
        let alarm = Alarm { set: AtomicBool::new(false), own, fencing: segment.fencing() };
        let patience = Patience::of(segment.places(), segment.processors());
        Rest { patience, berth: Berth::of(segment, here), alarm: Arc::new(alarm) }
    }

    pub fn unparker(&self) -> Arc<dyn Unpark> {
        self.alarm.clone()
    }

    /// Returns when `ready` says so, or after an unpark, or at the end of `timeout`; possibly before.
    ///
    /// `before_sleep` is called when nothing came while it looked; it answers how long to sleep at most.
    pub fn wait(
        &self,
        timeout: Option<Duration>,
        short_of_memory: bool,
        ready: &dyn Fn() -> bool,
        before_sleep: &dyn Fn() -> Option<Duration>,
    ) {
        // Relaxed: `take_alarm` observes.
        let ready = || self.alarm.set.load(Ordering::Relaxed) || ready();
        let timeout = if short_of_memory {
            Some(timeout.map_or(SHORTAGE_SLEEP, |t| t.min(SHORTAGE_SLEEP)))
        } else {
            timeout
        };
        if !(ready()
            || timeout == Some(Duration::ZERO)
            || self.look(timeout, &ready)
            || self.step_aside(timeout, &ready))
        {
            if !self.patience.waits_in_turn() {
                self.berth.iter().for_each(Berth::before_sleep);
            }
            let longest = before_sleep();
            let timeout = timeout.into_iter().chain(longest).min();
            parking::park(&self.alarm.own.sleeping.0, self.alarm.fencing, timeout, ready);
        }
        self.take_alarm();
    }

    /// Looks in a loop, keeping the processor; whether something was found, or the time was over.
    fn look(&self, timeout: Option<Duration>, ready: &dyn Fn() -> bool) -> bool {
        let limit = timeout.map_or(self.patience.spin, |timeout| timeout.min(self.patience.spin));
        if limit.is_zero() {
            return false;
        }
        // What comes at once is not to wait for the clock, nor for a pause, which takes as long as half a message.
        if (0..QUICK_LOOKS).any(|_| ready()) {
            return true;
        }
        let longest = timeout.map_or(COMING_MAX, |timeout| timeout.min(COMING_MAX));
        let start = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if ready() {
                    return true;
                }
                std::hint::spin_loop();
            }
            let looked = start.elapsed();
            if looked >= limit && !(looked < longest && self.is_coming()) {
                return timeout.is_some_and(|timeout| looked >= timeout);
            }
        }
    }

    /// Whether a long message is being written for this place.
    fn is_coming(&self) -> bool {
        // Relaxed: a hint.
        self.alarm.own.coming.0.load(Ordering::Relaxed) != 0
    }

    /// Looks between giving the processor away; whether something was found, or the time was over.
    fn step_aside(&self, timeout: Option<Duration>, ready: &dyn Fn() -> bool) -> bool {
        let end = timeout.filter(|timeout| *timeout < ASIDE_MAX).map(|timeout| Instant::now() + timeout);
        (0..self.patience.yields).any(|_| {
            rustix::thread::sched_yield();
            if self.patience.waits_in_turn() {
                self.berth.iter().for_each(Berth::turn);
            }
            ready() || end.is_some_and(|end| Instant::now() >= end)
        })
    }

    fn take_alarm(&self) {
        // Relaxed: a hint that saves the exclusive access.
        if self.alarm.set.load(Ordering::Relaxed) {
            // PAIR alarm.set: observe
            self.alarm.set.swap(false, Ordering::Acquire);
        }
    }
}
