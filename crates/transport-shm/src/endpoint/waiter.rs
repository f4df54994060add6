//! Waiting: look for a while, give the processor away for a while, sleep.
//!
//! [`WaitPolicy`] is how long each of them lasts, in one place, so that it can be read and tuned with the `raw`
//! example. [`Waiter`] follows it and the parking protocol ([`crate::parking`]); what there is to wait for is the
//! caller's question, asked again and again.

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

/// Longest sleep of a place when the system had no memory for its message.
const SHORTAGE_SLEEP: Duration = Duration::from_millis(10);

/// Number of looks before the first look at the clock.
const QUICK_LOOKS: u32 = 256;

/// Longer than giving the processor away goes on; a longer timeout needs no look at the clock meanwhile.
const ASIDE_MAX: Duration = Duration::from_millis(50);

/// Number of looks between two looks at the clock.
const LOOKS: u32 = 32;

/// Longest time a place looks while a long message is being written for it: 8 MiB at least. A sender that dies in the
/// middle leaves its announcement.
const COMING_MAX: Duration = Duration::from_millis(2);

/// Longest that a place looks in a loop, where its last waits ended soon after it had gone to sleep. Less than what a
/// wake-up takes where it is slow; a place that is woken more rarely than this looks no longer than the policy says.
const SPIN_MAX: Duration = Duration::from_micros(250);

/// Returns the least time for which a place looks that other hosts write to, if `places` places of the run share
/// `processors` processors of its machine: several times what an answer takes over TCP, or, if places wait for their
/// turns, what all of them take. It yields the processor meanwhile, if somebody wants it.
pub fn polling_time(places: u32, processors: u32) -> Duration {
    if places <= processors { Duration::from_micros(200) } else { Duration::from_millis(2) }
}

/// The waiting of one place.
pub(super) struct Waiter {
    wait_policy: WaitPolicy,
    /// Time to look in a loop now: what the policy says, or longer ([`Waiter::adapt`]).
    spin: Cell<Duration>,
    /// Least time each wait looks ([`Waiter::look_for_hosts`]).
    polling_time: Option<Duration>,
    /// The last wait ended because its time was over, with nothing found.
    found_nothing: Cell<bool>,
    /// The processor of this place, if one is kept for it.
    core_balance: Option<CoreBalance>,
    unpark_signal: Arc<UnparkSignal>,
}

/// State other threads of the process need to end a wait.
struct UnparkSignal {
    /// A wait is to return at once.
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

    /// Lets each wait look for [`polling_time`] at least before a sleep, on whose end others may count; but after a
    /// sleep whose time was over, and that nothing has ended, it sleeps on at once. It keeps the processor only if
    /// `places` places of the run have `processors` processors of this machine together.
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

    /// Chooses how long the next wait looks in a loop, after a sleep that has lasted `slept`.
    ///
    /// If a wake-up takes longer than a place looks, as on a busy host, two places that answer each other would sleep
    /// at every message and never find each other awake again. So a short sleep makes the next looks longer, and a long
    /// one ends that: an idle place sleeps as soon as ever.
    fn adapt(&self, slept: Duration) {
        if self.wait_policy.spin.is_zero() {
            return;
        }
        let waited = self.spin.get() + slept;
        self.spin.set(if waited <= SPIN_MAX { (2 * waited).min(SPIN_MAX) } else { self.wait_policy.spin });
    }

    /// Looks in a loop, keeping the processor; whether something was found, or the time was over.
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

    /// Looks between giving the processor away; whether something was found, or the time was over.
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

/// The steps of one wait, in order: look in a loop, look between giving the processor away, sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitPolicy {
    /// Time to look in a loop, keeping the processor.
    ///
    /// A sleep and its wake-up cost some 5 microseconds at each side; so a place with a processor of its own
    /// looks for several times that, and an idle one then sleeps for good.
    pub spin: Duration,
    /// Number of times to yield the processor after that, looking in between.
    ///
    /// If places share processors, the one that has the work gets the processor at once this way, without the cost of a
    /// sleep for the one that waits.
    pub yields: u32,
}

/// Most places a processor for which giving the processor away goes round faster than a sleep and its wake-up:
/// some 0.8 microseconds a place (measured with 8 places on 2 processors) against some 15.
const CROWD_MAX: u32 = 16;

impl WaitPolicy {
    /// Returns `true` if places yield the processor to each other for as long as they wait.
    fn waits_in_turn(self) -> bool {
        self.spin.is_zero() && self.yields > 1
    }

    /// The policy of a run of `places` places on `processors` processors.
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
