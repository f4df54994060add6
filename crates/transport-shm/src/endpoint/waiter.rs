//! Waiting: spin, then yield the processor, then sleep.
//!
//! [`WaitPolicy`] says how long each phase lasts; it can be tuned with the `raw` example. [`Waiter`] follows it and the
//! parking protocol ([`crate::parking`]); the caller supplies the condition, which is polled.

use super::core_balance::CoreBalance;
use crate::layout::PlaceBlock;
use crate::parking;
use crate::parking::Fencing;
use crate::segment::{Segment, View};
use isles_transport::{PlaceId, Unpark};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum sleep of a place when the system had no memory for its message.
const SHORTAGE_SLEEP: Duration = Duration::from_millis(10);

/// Number of polls before the first read of the clock.
const QUICK_LOOKS: u32 = 256;

/// Longer than the yielding phase lasts: a longer timeout needs no clock reads in it.
const ASIDE_MAX: Duration = Duration::from_millis(50);

/// Number of polls between two reads of the clock.
const LOOKS: u32 = 32;

/// Maximum time that a place spins while a long message is being written to it, enough for 8 MiB. It is limited because
/// a sender that dies in the middle leaves its announcement.
const COMING_MAX: Duration = Duration::from_millis(2);

/// Maximum time that a place spins if its last waits ended soon after it had gone to sleep. Shorter than a slow
/// wake-up; a place that is woken less often spins no longer than the policy says.
const SPIN_MAX: Duration = Duration::from_micros(250);

/// Returns the minimum time for which a place polls that other hosts write to, if `places` places of the run share
/// `processors` processors of its machine: several round trips over TCP or, if places take turns, a round of all of
/// them. It yields the processor meanwhile.
pub fn polling_time(places: u32, processors: u32) -> Duration {
    if places <= processors { Duration::from_micros(200) } else { Duration::from_millis(2) }
}

/// The waiting of one place.
pub(super) struct Waiter {
    wait_policy: WaitPolicy,
    /// Current spin time: that of the policy, or longer ([`Waiter::adapt`]).
    spin: Cell<Duration>,
    /// Minimum time for which each wait polls ([`Waiter::look_for_hosts`]).
    polling_time: Option<Duration>,
    /// True if the last wait timed out with nothing found.
    found_nothing: Cell<bool>,
    /// The core balance, if a processor is assigned to this place.
    core_balance: Option<CoreBalance>,
    unpark_signal: Arc<UnparkSignal>,
}

/// State with which other threads of the process end a wait.
struct UnparkSignal {
    /// True if a wait must return at once.
    set: AtomicBool,
    own: View<PlaceBlock>,
    fencing: Fencing,
}

impl Unpark for UnparkSignal {
    fn unpark(&self) {
        // PAIR alarm.set: publish
        self.set.store(true, Ordering::Release);
        parking::signal(&self.own.sleeping.0, self.fencing);
    }
}

impl Waiter {
    pub fn new(segment: &Segment, here: PlaceId) -> Waiter {
        let own = View::new(segment, segment.layout().place_block(here));
        let unpark_signal = UnparkSignal { set: AtomicBool::new(false), own, fencing: segment.fencing() };
        let wait_policy = WaitPolicy::of(segment.places(), segment.processors());
        Waiter {
            wait_policy,
            spin: Cell::new(wait_policy.spin),
            polling_time: None,
            found_nothing: Cell::new(false),
            core_balance: CoreBalance::of(segment, here),
            unpark_signal: Arc::new(unpark_signal),
        }
    }

    /// Makes each wait poll for at least [`polling_time`] before it sleeps; but a wait after one that timed out with
    /// nothing found sleeps at once. Spins only if `processors` processors of this machine suffice for the `places`
    /// places of the run on it.
    pub(crate) fn look_for_hosts(&mut self, places: u32, processors: u32) {
        self.polling_time = Some(polling_time(places, processors));
        self.wait_policy = WaitPolicy::of(places, processors);
        self.spin.set(self.wait_policy.spin);
    }

    /// Returns `true` if a wait would end because of an unpark.
    pub(crate) fn is_unparked(&self) -> bool {
        // Relaxed: `take_unpark` observes.
        self.unpark_signal.set.load(Ordering::Relaxed)
    }

    pub fn unparker(&self) -> Arc<dyn Unpark> {
        self.unpark_signal.clone()
    }

    /// Waits until `ready` returns `true`, an unpark, or the end of `timeout`; may return early.
    ///
    /// `before_sleep` is called if nothing was found before the sleep; it returns the maximum time to sleep.
    pub fn wait(
        &self,
        timeout: Option<Duration>,
        short_of_memory: bool,
        ready: &dyn Fn() -> bool,
        before_sleep: &dyn Fn() -> Option<Duration>,
    ) {
        let ready = || self.is_unparked() || ready();
        let timeout = if short_of_memory {
            Some(timeout.map_or(SHORTAGE_SLEEP, |t| t.min(SHORTAGE_SLEEP)))
        } else {
            timeout
        };
        let sleeps_on = self.found_nothing.replace(false);
        if !(ready()
            || timeout == Some(Duration::ZERO)
            || !sleeps_on && (self.spin_until(timeout, &ready) || self.yield_until(timeout, &ready)))
        {
            if !self.wait_policy.waits_in_turn() {
                self.core_balance.iter().for_each(CoreBalance::before_sleep);
            }
            let longest = before_sleep();
            let timeout = timeout.into_iter().chain(longest).min();
            let start = Instant::now();
            parking::park(&self.unpark_signal.own.sleeping.0, self.unpark_signal.fencing, timeout, ready);
            let slept = start.elapsed();
            self.adapt(slept);
            let is_long = |look: Duration| timeout.is_some_and(|timeout| slept >= timeout && timeout >= look);
            self.found_nothing.set(self.polling_time.is_some_and(is_long) && !ready());
        }
        self.take_unpark();
    }

    /// Chooses how long the next wait spins, after a sleep of length `slept`.
    ///
    /// If a wake-up takes longer than a place spins, as on a busy host, two places that answer each other would sleep
    /// at every message and never find each other awake again. So a short sleep makes the next waits spin longer, and a
    /// long one resets that: an idle place sleeps as early as before.
    fn adapt(&self, slept: Duration) {
        if self.wait_policy.spin.is_zero() {
            return;
        }
        let waited = self.spin.get() + slept;
        self.spin.set(if waited <= SPIN_MAX { (2 * waited).min(SPIN_MAX) } else { self.wait_policy.spin });
    }

    /// Polls without yielding. Returns `true` if something was found or `timeout` is over.
    fn spin_until(&self, timeout: Option<Duration>, ready: &dyn Fn() -> bool) -> bool {
        let limit = timeout.map_or(self.spin.get(), |timeout| timeout.min(self.spin.get()));
        if limit.is_zero() {
            return false;
        }
        // Check before reading the clock: a clock read or a pause costs half a message.
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
            if looked >= limit && !(looked < longest && self.has_announced_message()) {
                return timeout.is_some_and(|timeout| looked >= timeout);
            }
        }
    }

    /// Returns `true` if a long message is being written for this place.
    fn has_announced_message(&self) -> bool {
        // Relaxed: a hint.
        self.unpark_signal.own.coming.0.load(Ordering::Relaxed) != 0
    }

    /// Polls and yields the processor in turn. Returns `true` if something was found or `timeout` is over.
    fn yield_until(&self, timeout: Option<Duration>, ready: &dyn Fn() -> bool) -> bool {
        let end = timeout.filter(|timeout| *timeout < ASIDE_MAX).map(|timeout| Instant::now() + timeout);
        let turn = || {
            rustix::thread::sched_yield();
            if self.wait_policy.waits_in_turn() {
                self.core_balance.iter().for_each(CoreBalance::turn);
            }
            ready() || end.is_some_and(|end| Instant::now() >= end)
        };
        let start = Instant::now();
        (0..self.wait_policy.yields).any(|_| turn())
            || self
                .polling_time
                .is_some_and(|look| (0..).take_while(|_| start.elapsed() < look).any(|_: u32| turn()))
    }

    fn take_unpark(&self) {
        // Relaxed: a hint that saves the exclusive access.
        if self.unpark_signal.set.load(Ordering::Relaxed) {
            // PAIR alarm.set: observe
            self.unpark_signal.set.swap(false, Ordering::Acquire);
        }
    }
}

/// The phases of one wait, in order: spin, yield, sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitPolicy {
    /// Time to spin.
    ///
    /// A sleep and its wake-up cost some 5 microseconds at each side; so a place with a processor of its own spins for
    /// several times that before it sleeps.
    pub spin: Duration,
    /// Number of times to yield the processor after that, with a poll after each.
    ///
    /// If places share processors, the one with work gets the processor at once this way, without the cost of a sleep
    /// for the one that waits.
    pub yields: u32,
}

/// Maximum number of places on each processor for which a round of yields is faster than a sleep and its wake-up: some
/// 0.8 microseconds for each place (measured with 8 places on 2 processors) against some 15.
const CROWD_MAX: u32 = 16;

impl WaitPolicy {
    /// Returns `true` if places yield the processor to each other for as long as they wait.
    fn waits_in_turn(self) -> bool {
        self.spin.is_zero() && self.yields > 1
    }

    /// Returns the policy of a run of `places` places on `processors` processors.
    pub fn of(places: u32, processors: u32) -> WaitPolicy {
        if places <= processors {
            WaitPolicy { spin: Duration::from_micros(50), yields: 2 }
        } else if places <= CROWD_MAX * processors {
            WaitPolicy { spin: Duration::ZERO, yields: 250 }
        } else {
            WaitPolicy { spin: Duration::ZERO, yields: 1 }
        }
    }
}
