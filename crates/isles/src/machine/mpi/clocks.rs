//! Offsets of the clocks of other hosts from the clock of the first place, for traces.
//!
//! Rank 0 and the first rank of each other host exchange a word many times and keep the fastest exchange: the other
//! clock was read within it, so its midpoint is off by at most half its duration (Cristian, Probabilistic clock
//! synchronization, 1989). This is done before and after the run; in between, the drift is taken as constant. Ranks of
//! one host share a clock. Invariant: all ranks take part in the same exchanges, in the same order.

use crate::trace::now;
use isles_transport_mpi::Library;

/// Number of exchanges, of which the fastest is kept.
const EXCHANGES: usize = 64;

/// Content of a request for the time.
const NOTHING: [u8; 8] = [0; 8];

/// A reading of a clock relative to that of the first place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClockReading {
    /// Time of the other clock, in nanoseconds.
    at: u64,
    /// Lead of the other clock in nanoseconds; negative if it was behind.
    ahead: i64,
    /// Largest possible error of `ahead`, in nanoseconds.
    error: u64,
}

/// The clock of a host in a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostClock {
    before: ClockReading,
    after: ClockReading,
}

impl HostClock {
    pub(super) fn new(before: ClockReading, after: ClockReading) -> HostClock {
        HostClock { before, after }
    }

    /// Converts `time` of this clock to the clock of the first place.
    pub(super) fn to_first(self, time: u64) -> u64 {
        let HostClock { before, after } = self;
        let (whole, part) = (after.at.abs_diff(before.at).max(1) as f64, time as f64 - before.at as f64);
        let drift = (after.ahead - before.ahead) as f64 * (part / whole).clamp(0.0, 1.0);
        time.saturating_add_signed(-before.ahead).saturating_add_signed(-(drift.round() as i64))
    }

    /// Returns the largest possible error of a converted time, in nanoseconds.
    pub(super) fn error(self) -> u64 {
        self.before.error.max(self.after.error)
    }
}

/// Reads the clocks of all hosts; a collective call. `hosts[rank]` is the first rank of that rank's host. Returns the
/// readings by rank at rank 0, and default readings at the others.
pub(super) fn read(library: &Library, hosts: &[u32]) -> Vec<ClockReading> {
    let here = library.rank();
    let mut readings = vec![ClockReading::default(); hosts.len()];
    for (rank, first) in (0..).zip(hosts).skip(1) {
        if rank != *first {
            readings[rank as usize] = readings[*first as usize];
        } else if here == 0 {
            readings[rank as usize] = exchange(library, rank);
        } else if here == rank {
            answer(library);
        }
    }
    readings
}

fn exchange(library: &Library, rank: u32) -> ClockReading {
    let once = || {
        let (mut said, begun) = (NOTHING, now());
        library.send(&NOTHING, rank);
        library.receive(&mut said, rank);
        reading(begun, u64::from_le_bytes(said), now())
    };
    (0..EXCHANGES).map(|_| once()).min_by_key(|reading| reading.error).unwrap_or_default()
}

fn answer(library: &Library) {
    for _ in 0..EXCHANGES {
        library.receive(&mut [0; 8], 0);
        library.send(&now().to_le_bytes(), 0);
    }
}

/// Returns the reading from an exchange from `begun` to `ended`, in which the other clock showed `at`.
fn reading(begun: u64, at: u64, ended: u64) -> ClockReading {
    let half = ended.saturating_sub(begun).div_ceil(2);
    ClockReading { at, ahead: at.wrapping_sub(begun + half) as i64, error: half }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_time_is_as_wrong_as_is_said_at_most() {
        let start = 2_000_000_000_000_u64;
        let ways = [(1, 1), (1, 90_000), (90_000, 1), (12_345, 23_456)];
        for (ahead, drift) in [(0, 0), (1_000_000_000_000, 200), (-1_000_000_000_000, -200), (-3, 57)] {
            // Parts in a million, of the time since the start.
            let other = |time: u64| {
                time.checked_add_signed(ahead + (time - start) as i64 * drift / 1_000_000).unwrap()
            };
            for (there, back) in ways {
                let read = |time: u64| reading(time, other(time + there), time + there + back);
                for length in [1_000, 5_000_000_000, 1_000_000_000_000] {
                    let clock = HostClock::new(read(start), read(start + length));
                    // The clock's own drift within an exchange, and what is rounded.
                    let allowed = (there + back).div_ceil(2) + (there + back) * 200 / 1_000_000 + 4;
                    assert!(clock.error() <= allowed);
                    for part in 0..=10 {
                        let time = start + there + length / 10 * part;
                        let found = clock.to_first(other(time));
                        assert!(found.abs_diff(time) <= allowed, "{found} for {time}, {clock:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_clock_of_the_first_host_and_one_that_was_read_at_once_stay_as_they_are() {
        assert_eq!(HostClock::default().to_first(7), 7);
        let read = reading(1_000, 501_100, 1_200);
        assert_eq!(read, ClockReading { at: 501_100, ahead: 500_000, error: 100 });
        assert_eq!(HostClock::new(read, read).to_first(502_000), 2_000);
    }
}
