//! Number of tasks that a place processes between two looks for messages.
//!
//! Unless it is set, a batch takes as long as 250 looks, measured during the run; while others ask for tasks, as long
//! as 10. The file knows times only, and no clock. Invariant: a batch has at least one task, and at most [`BATCH_MAX`].

use super::parameters::BATCH_MAX;
use std::time::Duration;

/// Ratio of a batch to a look for messages: a look costs 1/250, and disturbs the processor's predictions.
const LOOKS: u32 = 250;

/// The same if there is no other place to ask.
const LOOKS_ALONE: u32 = 1000;

/// Divisor of the batches of a place that was asked for tasks: a place that asks once has too little, and will ask
/// again.
const SHORTER: u32 = 25;

/// Number of shorter batches after a request.
const SHORT_AFTER_REQUEST: u32 = 64;

/// Number of tasks in the first batch, as in X10's library.
const FIRST: u32 = 100;

/// Interval at which batches are measured, in batches.
const MEASURED: u32 = 8;

/// Longest time of a batch whose size is measured; a thief waits for half of it on average.
const TIME_MAX: Duration = Duration::from_millis(1);

/// Longest time of a task that is counted, 26 days: four times that is still a number.
const TASK_PS_MAX: u64 = u64::MAX / 8;

/// The size of batches.
#[derive(Clone, Debug)]
pub struct Batch {
    is_set: bool,
    size: u32,
    looks: u32,
    /// Number of batches until the next measurement.
    left: u32,
    /// Number of shorter batches left.
    short: u32,
    /// The shortest look so far, and the approximate time of a task, in picoseconds; 0 until they are known.
    look_ps: u64,
    task_ps: u64,
}

impl Batch {
    /// Makes batches of `size` tasks, or of a measured size.
    pub fn new(size: Option<u32>, is_alone: bool) -> Batch {
        let looks = if is_alone { LOOKS_ALONE } else { LOOKS };
        let (is_set, size) = (size.is_some(), size.unwrap_or(FIRST));
        Batch { is_set, size, looks, left: 0, short: 0, look_ps: 0, task_ps: 0 }
    }

    /// Returns the number of tasks in the next batch.
    pub fn size(&self) -> usize {
        let size = if self.short > 0 { (self.size / SHORTER).max(1) } else { self.size };
        size as usize
    }

    /// Records that another place has asked for tasks.
    pub fn asked(&mut self) {
        if !self.is_set {
            self.short = SHORT_AFTER_REQUEST;
        }
    }

    /// Returns `true` if the next batch must be measured.
    pub fn is_due(&mut self) -> bool {
        if self.is_set {
            return false;
        }
        self.short = self.short.saturating_sub(1);
        let is_due = self.left == 0;
        self.left = self.left.checked_sub(1).unwrap_or(MEASURED - 1);
        is_due
    }

    /// Records that a batch of `tasks` tasks took `time`, and the look for messages after it `look`.
    ///
    /// Ignored if the clock did not move.
    pub fn measured(&mut self, tasks: usize, time: Duration, look: Duration) {
        if self.is_set || tasks == 0 || time.is_zero() || look.is_zero() {
            return;
        }
        let (look_ps, task_ps) =
            (picoseconds(look), (picoseconds(time) / tasks as u64).clamp(1, TASK_PS_MAX));
        self.look_ps = if self.look_ps == 0 { look_ps } else { self.look_ps.min(look_ps) };
        // A task that seems long was interrupted, or its batch had few tasks: it counts, but in part.
        self.task_ps = match self.task_ps {
            0 => task_ps,
            known => (3 * known + task_ps.min(known.saturating_mul(4))) / 4,
        };
        let wanted = (u64::from(self.looks).saturating_mul(self.look_ps)).min(picoseconds(TIME_MAX));
        let size = (wanted / self.task_ps.max(1)).min(2 * u64::from(self.size));
        self.size = (size.max(1) as u32).min(BATCH_MAX);
    }
}

fn picoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the size after many batches of tasks of `task_ns`, with looks of `look_ns`.
    fn settled(task_ns: u64, look_ns: u64, is_alone: bool) -> usize {
        let mut batch = Batch::new(None, is_alone);
        for _ in 0..400 {
            if batch.is_due() {
                let time = Duration::from_nanos(task_ns * batch.size() as u64);
                batch.measured(batch.size(), time, Duration::from_nanos(look_ns));
            }
        }
        batch.size()
    }

    #[test]
    fn a_batch_is_as_long_as_250_looks() {
        assert_eq!(settled(100, 100, false), 250);
        assert_eq!(settled(10, 100, false), 2500);
        assert_eq!(settled(100_000, 100, false), 1, "a task is longer than that");
        assert_eq!(settled(100, 100, true), 1000, "nobody waits");
        assert_eq!(settled(100, 1_000_000, false), 10_000, "a millisecond");
    }

    #[test]
    fn a_size_that_is_set_stays_and_a_clock_that_stands_changes_nothing() {
        let mut batch = Batch::new(Some(7), false);
        assert!(!batch.is_due());
        batch.measured(7, Duration::from_secs(1), Duration::from_nanos(1));
        assert_eq!(batch.size(), 7);
        let mut batch = Batch::new(None, false);
        batch.measured(100, Duration::ZERO, Duration::from_micros(1));
        batch.measured(0, Duration::from_micros(1), Duration::from_micros(1));
        assert_eq!(batch.size(), 100);
    }

    #[test]
    fn batches_are_short_for_a_while_after_a_request() {
        let mut batch = Batch::new(None, false);
        batch.asked();
        let short = (0..1000).take_while(|_| {
            batch.is_due();
            batch.size() == (FIRST / SHORTER) as usize
        });
        assert_eq!(short.count() as u32, SHORT_AFTER_REQUEST - 1);
        assert_eq!(batch.size(), FIRST as usize);
        let mut set = Batch::new(Some(7), false);
        set.asked();
        assert_eq!(set.size(), 7);
    }

    #[test]
    fn one_interruption_does_not_make_the_batch_a_task() {
        let mut batch = Batch::new(None, false);
        for _ in 0..50 {
            batch.measured(
                batch.size(),
                Duration::from_nanos(100 * batch.size() as u64),
                Duration::from_nanos(100),
            );
        }
        batch.measured(batch.size(), Duration::from_millis(20), Duration::from_millis(20));
        assert!((125..=250).contains(&batch.size()), "{}", batch.size());
    }

    #[test]
    fn a_task_of_months_is_no_overflow() {
        let mut batch = Batch::new(None, false);
        for seconds in [6_000_000, 96_000, u64::MAX] {
            batch.measured(1, Duration::from_secs(seconds), Duration::from_nanos(1));
            assert_eq!(batch.size(), 1);
        }
    }

    proptest! {
        #[test]
        fn a_batch_is_never_empty_and_never_too_long(
            times in proptest::collection::vec((0_usize..10_000, any::<u64>(), any::<u64>()), 0..60),
        ) {
            let mut batch = Batch::new(None, false);
            for (tasks, time, look) in times {
                batch.measured(tasks, Duration::from_nanos(time), Duration::from_nanos(look));
                prop_assert!((1..=BATCH_MAX as usize).contains(&batch.size()));
            }
        }
    }
}
