//! Halt polling of a service thread: the time for which it polls before it sleeps.
//!
//! A thread that sleeps on an idle processor is woken by an interrupt, which in a virtual machine takes tens of
//! microseconds. A thread that polls is not. As the governor `haltpoll` of Linux does
//! (`drivers/cpuidle/governors/haltpoll.c`), the time grows when waits end soon and shrinks when they do not, so a
//! region that nobody uses costs no processor time. Polling ends for a while if something else wants the processor.

use std::time::Duration;

/// The longest time of polling; `guest_halt_poll_ns` of Linux.
const POLL_MAX: Duration = Duration::from_micros(200);
/// The first time of polling; `guest_halt_poll_grow_start` of Linux.
const GROW_START: Duration = Duration::from_micros(50);
/// A poll that takes longer than this was interrupted by another thread.
const PREEMPTED: Duration = Duration::from_micros(30);
/// Waits without polling after an interruption.
const PAUSE_WAITS: u32 = 256;

/// State of halt polling; see the module.
#[derive(Debug, Default)]
pub struct HaltPolling {
    limit: Duration,
    /// Waits for which polling stays off.
    pause: u32,
}

impl HaltPolling {
    /// Returns how long the next wait polls before it sleeps.
    pub fn limit(&self) -> Duration {
        if self.pause > 0 { Duration::ZERO } else { self.limit }
    }

    /// Records that a poll of a wait took `took`; returns `true` if polling must end now.
    pub fn record_check(&mut self, took: Duration) -> bool {
        let is_preempted = took > PREEMPTED;
        if is_preempted {
            self.pause = PAUSE_WAITS;
        }
        is_preempted
    }

    /// Records the duration of a wait.
    pub fn waited(&mut self, took: Duration) {
        if self.pause > 0 {
            self.pause -= 1;
        } else if took > POLL_MAX {
            self.limit /= 2;
        } else if took > self.limit {
            self.limit = (self.limit * 2).clamp(GROW_START, POLL_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_micros(80);
    const LATE: Duration = Duration::from_millis(5);

    #[test]
    fn polling_begins_when_waits_end_soon_and_ends_when_they_do_not() {
        let mut polling = HaltPolling::default();
        assert_eq!(polling.limit(), Duration::ZERO);
        polling.waited(LATE);
        assert_eq!(polling.limit(), Duration::ZERO);
        polling.waited(SOON);
        assert_eq!(polling.limit(), GROW_START);
        polling.waited(SOON);
        assert!(polling.limit() > SOON, "the next wait of this length is polled to its end");
        let before = polling.limit();
        polling.waited(SOON);
        assert_eq!(polling.limit(), before);
        (0..20).for_each(|_| polling.waited(LATE));
        assert!(polling.limit() < Duration::from_micros(1));
    }

    #[test]
    fn an_interrupted_look_ends_polling_for_a_while() {
        let mut polling = HaltPolling::default();
        (0..3).for_each(|_| polling.waited(SOON));
        assert!(!polling.record_check(Duration::from_micros(1)) && polling.limit() > Duration::ZERO);
        assert!(polling.record_check(LATE));
        for _ in 0..PAUSE_WAITS {
            assert_eq!(polling.limit(), Duration::ZERO);
            polling.waited(SOON);
        }
        assert!(polling.limit() > Duration::ZERO);
    }

    #[test]
    fn no_wait_polls_longer_than_the_maximum() {
        // All permutations of five durations.
        let lengths = [0, 30, 80, 150, 250].map(Duration::from_micros);
        for order in 0..lengths.len().pow(5) {
            let mut polling = HaltPolling::default();
            for at in 0..5 {
                polling.waited(lengths[order / lengths.len().pow(at) % lengths.len()]);
                assert!(polling.limit() <= POLL_MAX);
            }
        }
    }
}
