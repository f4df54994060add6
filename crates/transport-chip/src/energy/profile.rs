//! Power over time: the energy of a run in windows of equal length.
//!
//! A window is closed when the run has passed its end, so there is no cost in between. Windows are short at first; when
//! there are too many, they are merged in pairs. A core may have run ahead of a window's end by at most one step of
//! work, whose energy is spread evenly over it.
//!
//! Invariant: the sum over all windows is the total energy.

use isles_chip::quantity::{Attojoules, Microwatts, Picoseconds};

/// Maximum number of windows.
const WINDOWS_MAX: usize = 1 << 9;

/// Minimum number of windows, for any number of consumers.
const WINDOWS_MIN: usize = 4;

/// Number of samples that bounds the windows: a chip of 100,000 cores gets fewer windows.
const SAMPLES: usize = 1 << 16;

/// Length of the first windows: a microsecond.
const FIRST_WINDOW: Picoseconds = Picoseconds(1_000_000);

/// Energy drawn in each window of a run, by voltage domain and by the rest of the chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Length of a window; the last one may be shorter.
    pub window: Picoseconds,
    /// End of the profile.
    pub end: Picoseconds,
    columns: usize,
    sums: Vec<Attojoules>,
}

/// The highest power of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Mean power of the window.
    pub power: Microwatts,
    /// Start of the window.
    pub start: Picoseconds,
}

impl Profile {
    /// Returns start and length of each window, with the energy of each voltage domain and, as the last value, of
    /// everything besides the cores.
    pub fn windows(&self) -> impl Iterator<Item = (Picoseconds, Picoseconds, &[Attojoules])> {
        self.sums.chunks(self.columns).enumerate().map(|(number, sums)| {
            let start = self.window * number as u64;
            (start, Picoseconds((self.end.0 - start.0).min(self.window.0)), sums)
        })
    }

    /// Returns the energy of the chip from `begin` to `end`, spread evenly within a window.
    pub fn drawn(&self, begin: Picoseconds, end: Picoseconds) -> Attojoules {
        let part = |(start, length, sums): (Picoseconds, Picoseconds, &[Attojoules])| {
            let covered = end.0.min(start.0 + length.0).saturating_sub(begin.0.max(start.0));
            let all = sums.iter().copied().sum::<Attojoules>();
            let (length, covered) = (u128::from(length.0.max(1)), u128::from(covered));
            Attojoules(all.0 / length * covered + all.0 % length * covered / length)
        };
        self.windows().map(part).sum()
    }

    /// Returns the window with the highest power. A last window of at most half the length counts only if it is the
    /// only one.
    pub fn peak(&self) -> Peak {
        let power = |(start, length, sums): (Picoseconds, Picoseconds, &[Attojoules])| Peak {
            power: sums.iter().copied().sum::<Attojoules>().mean_over(length),
            start,
        };
        let long = |(_, length, _): &(Picoseconds, Picoseconds, &[Attojoules])| length.0 * 2 > self.window.0;
        let highest = self.windows().filter(long).map(power).reduce(higher);
        let first = Peak { power: Microwatts(0), start: Picoseconds::ZERO };
        highest.or(self.windows().map(power).next()).unwrap_or(first)
    }
}

/// Returns the higher peak; the first of two equal ones.
fn higher(one: Peak, other: Peak) -> Peak {
    if other.power > one.power { other } else { one }
}

/// Energy that a consumer had drawn by some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) time: Picoseconds,
    pub(crate) drawn: Attojoules,
}

/// Two samples of one consumer, and its energy already booked in windows.
#[derive(Clone, Copy, Default)]
pub(super) struct SampleInterval {
    pub(super) first: Sample,
    pub(super) last: Sample,
    pub(super) booked: Attojoules,
}

impl SampleInterval {
    /// Returns the energy drawn until `time`, which must be between the samples.
    pub(super) fn drawn_until(&self, time: Picoseconds) -> Attojoules {
        if time == self.last.time {
            return self.last.drawn;
        }
        let length = self.last.time.0 - self.first.time.0;
        let drawn = self.last.drawn.0.saturating_sub(self.first.drawn.0);
        let rest = time.0 - self.first.time.0;
        // In two parts, so that no product exceeds 128 bits, or 64 bits for the usual short numbers.
        let part = match (u64::try_from(drawn), u32::try_from(length)) {
            (Ok(drawn), Ok(_)) => u128::from(drawn / length * rest + drawn % length * rest / length),
            _ => {
                let (length, rest) = (u128::from(length), u128::from(rest));
                drawn / length * rest + drawn % length * rest / length
            }
        };
        Attojoules(self.first.drawn.0 + part)
    }
}

/// Samples a profile during a run.
#[derive(Clone)]
pub(crate) struct Sampler {
    window: Picoseconds,
    /// End of the current window.
    end: Picoseconds,
    columns: usize,
    /// Column of each consumer.
    column_of: Vec<usize>,
    /// Number of windows at which they are merged in pairs; even.
    most: usize,
    sums: Vec<Attojoules>,
    intervals: Vec<SampleInterval>,
}

impl Sampler {
    /// Makes a sampler of consumers with these columns.
    pub(crate) fn new(column_of: Vec<usize>) -> Sampler {
        let things = column_of.len();
        Sampler {
            window: FIRST_WINDOW,
            end: FIRST_WINDOW,
            columns: column_of.iter().max().map_or(0, |last| last + 1),
            column_of,
            most: (SAMPLES / things.max(1)).clamp(WINDOWS_MIN, WINDOWS_MAX) & !1,
            sums: Vec::new(),
            intervals: vec![SampleInterval::default(); things],
        }
    }

    /// Returns the end of the current window.
    pub(crate) fn end(&self) -> Picoseconds {
        self.end
    }

    /// Closes the current window. `sample` returns the energy of a consumer at or after the end of the window; it is
    /// not called for consumers that are already ahead.
    pub(crate) fn close(&mut self, sample: impl FnMut(usize, Picoseconds) -> Sample) {
        self.close_at(self.end, sample);
        self.end += self.window;
        if self.sums.len() >= self.most * self.columns {
            self.merge();
        }
    }

    fn close_at(&mut self, end: Picoseconds, mut sample: impl FnMut(usize, Picoseconds) -> Sample) {
        let from = self.sums.len();
        self.sums.resize(from + self.columns, Attojoules::ZERO);
        for (thing, (interval, column)) in self.intervals.iter_mut().zip(&self.column_of).enumerate() {
            if interval.last.time < end {
                (interval.first, interval.last) = (interval.last, sample(thing, end));
            }
            let until = interval.drawn_until(end).max(interval.booked);
            self.sums[from + column] += Attojoules(until.0 - interval.booked.0);
            interval.booked = until;
        }
    }

    /// Merges windows in pairs; their number is even.
    fn merge(&mut self) {
        let columns = self.columns;
        let pairs = self.sums.chunks_exact(2 * columns);
        self.sums =
            pairs.flat_map(|pair| (0..columns).map(|column| pair[column] + pair[columns + column])).collect();
        self.window = self.window * 2;
        self.end = self.window * (self.sums.len() / columns + 1) as u64;
    }

    /// Returns the profile until `end`, which is not before the current window.
    pub(crate) fn finish(
        mut self,
        end: Picoseconds,
        mut sample: impl FnMut(usize, Picoseconds) -> Sample,
    ) -> Profile {
        while self.end < end {
            self.close(&mut sample);
        }
        self.close_at(end, &mut sample);
        let Sampler { window, columns, sums, .. } = self;
        Profile { window, end, columns, sums }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: u64 = 1_000_000;

    /// A consumer that always draws `power` microwatts.
    fn steady(power: u64) -> impl FnMut(usize, Picoseconds) -> Sample {
        move |thing, time| Sample { time, drawn: Microwatts(power + thing as u64).over(time) }
    }

    #[test]
    fn a_steady_power_is_the_power_of_every_window_and_the_peak() {
        let profile = Sampler::new(vec![0, 1]).finish(Picoseconds(7 * MICROSECOND + 3), steady(10));
        assert_eq!(profile.windows().count(), 8);
        for (_, length, sums) in profile.windows() {
            assert_eq!(sums.iter().map(|sum| sum.mean_over(length).0).collect::<Vec<_>>(), [10, 11]);
        }
        assert_eq!(profile.peak(), Peak { power: Microwatts(21), start: Picoseconds::ZERO });
    }

    #[test]
    fn too_many_windows_become_half_as_many_and_nothing_is_lost() {
        let end = Picoseconds(5 * WINDOWS_MAX as u64 * MICROSECOND + 17);
        let profile = Sampler::new(vec![0]).finish(end, steady(1_000));
        assert!(profile.windows().count() <= WINDOWS_MAX);
        assert_eq!(profile.window, FIRST_WINDOW * 8);
        let sum: Attojoules = profile.windows().flat_map(|(_, _, sums)| sums.to_vec()).sum();
        assert_eq!(sum, Microwatts(1_000).over(end));
        let whole: u64 = profile.windows().map(|(_, length, _)| length.0).sum();
        assert_eq!(whole, end.0);
    }

    #[test]
    fn a_chip_of_very_many_cores_gets_few_windows() {
        let end = Picoseconds(1_000 * MICROSECOND);
        let profile =
            Sampler::new(vec![0; 100_000]).finish(end, |_, time| Sample { time, drawn: Attojoules(1) });
        assert!((2..=4).contains(&profile.windows().count()), "{}", profile.windows().count());
        let sum: Attojoules = profile.windows().flat_map(|(_, _, sums)| sums.to_vec()).sum();
        assert_eq!(sum, Attojoules(100_000));
    }

    #[test]
    fn who_runs_ahead_is_spread_evenly_over_the_stretch() {
        // It draws 40 µW for 4 µs in one step, then nothing.
        let ahead = |_, end: Picoseconds| {
            let time = end.max(Picoseconds(4 * MICROSECOND));
            Sample { time, drawn: Microwatts(40).over(Picoseconds(4 * MICROSECOND)) }
        };
        let profile = Sampler::new(vec![0]).finish(Picoseconds(6 * MICROSECOND), ahead);
        let powers: Vec<u64> =
            profile.windows().map(|(_, length, sums)| sums[0].mean_over(length).0).collect();
        assert_eq!(powers, [40, 40, 40, 40, 0, 0]);
    }

    #[test]
    fn a_little_that_is_drawn_over_a_long_stretch_is_spread_over_all_of_it() {
        // The second is longer than 32 bits of picoseconds, and its windows than a microsecond.
        for (length, drawn, expected) in [(4, 10, vec![2, 3, 2, 3]), (8_192, 5_120, vec![10; WINDOWS_MAX])] {
            let end = Picoseconds(length * MICROSECOND);
            let ahead = |_, _| Sample { time: end, drawn: Attojoules(drawn) };
            let profile = Sampler::new(vec![0]).finish(end, ahead);
            let sums: Vec<u128> = profile.windows().map(|(_, _, sums)| sums[0].0).collect();
            assert_eq!(sums, expected);
        }
    }

    #[test]
    fn nothing_is_lost_however_few_windows_there_are_to_be_made_half() {
        for things in [9_500, 11_000, 13_000, 16_000] {
            let end = Picoseconds(40 * MICROSECOND);
            let profile = Sampler::new(vec![0; things]).finish(end, |_, time| steady(1)(0, time));
            let sum: Attojoules = profile.windows().flat_map(|(_, _, sums)| sums.to_vec()).sum();
            assert_eq!(sum.0, Microwatts(1).over(end).0 * things as u128, "{things}");
        }
    }

    #[test]
    fn the_last_window_is_a_peak_if_it_is_longer_than_half_of_the_others() {
        for (rest, start) in [(500_000, 0), (500_002, 4)] {
            let last = |_, time: Picoseconds| {
                let spike = time.0.saturating_sub(4 * MICROSECOND) * 5;
                Sample { time, drawn: Attojoules(u128::from(time.0 + spike)) }
            };
            let profile = Sampler::new(vec![0]).finish(Picoseconds(4 * MICROSECOND + rest), last);
            assert_eq!(profile.peak().start.0, start * MICROSECOND);
        }
    }

    #[test]
    fn the_peak_is_the_highest_window_that_is_not_a_rest() {
        let rising = |_, time: Picoseconds| {
            let spike = u64::from(time.0 > 3 * MICROSECOND) * 5;
            Sample { time, drawn: Attojoules(u128::from(time.0 + spike * MICROSECOND)) }
        };
        let profile = Sampler::new(vec![0]).finish(Picoseconds(4 * MICROSECOND + 2), rising);
        assert_eq!(profile.peak(), Peak { power: Microwatts(6), start: Picoseconds(3 * MICROSECOND) });
    }
}
