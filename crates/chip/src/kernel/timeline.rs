//! The busy times of a resource that serves one request at a time.
//!
//! Requests are not in the order of time: a place that has computed ahead reserves later times first. So the busy
//! intervals are kept, unordered, until they are past (before any time that can still be requested), and a request
//! takes the first gap that is long enough. Dropping past intervals loses nothing; if there are too many future ones,
//! the two closest are merged, which can only delay.
//!
//! Nearly always the requested interval is free, with a few others nearby. So a few intervals are also kept as two rows
//! of short integers, which one branch-free SIMD pass checks for conflicts. A short integer is a time without its low
//! bits, rounded outwards, and without its high bits: it may cause a false alarm, which costs a check of the full
//! numbers, but never misses a conflict.
//!
//! If an interval is long or the rows are full, all intervals move to a sorted list, in which adjacent ones are merged.
//! They move back when few are left. Invariant: no two intervals overlap, and those in the rows are short.

use crate::quantity::Picoseconds;
use wide::{CmpGt, CmpLt, i16x16};

/// Maximum number of future intervals.
pub(super) const INTERVALS_MAX: usize = 64;

/// Intervals in the rows.
const ROW: usize = 16;

/// Low bits omitted in the rows, whose numbers count in 512 ps and wrap around after 34 µs.
const FINE_BITS: u32 = 9;

/// Longest interval in the rows: two of these, rounded, fit into half the range of the short integers.
const SHORT_MAX: u64 = 1 << (FINE_BITS + 13);

/// The future busy intervals of one resource, and some past ones.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    kept: IntervalStore,
}

/// Storage of the intervals.
#[derive(Clone, Debug, Default)]
enum IntervalStore {
    /// No request yet.
    #[default]
    Nothing,
    /// In the rows; `next`, modulo their length, is the entry to write next.
    Rows { next: u32, rows: Box<Rows> },
    /// Sorted and not adjacent; some may be past.
    List(Vec<BusyInterval>),
}

/// Short intervals in no order.
#[derive(Clone, Debug, Default)]
#[repr(align(64))] // The rows of short numbers fill one line of the host's caches.
struct Rows {
    /// Starts of the intervals, rounded down.
    starts: i16x16,
    /// Ends of the intervals, rounded up.
    ends: i16x16,
    intervals: [BusyInterval; ROW],
}

/// Entries of the rows, as bits.
type Entries = u32;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct BusyInterval {
    start: u64,
    end: u64,
}

impl BusyInterval {
    #[inline]
    fn is_past(self, present: u64) -> bool {
        self.end <= present
    }

    #[inline]
    fn is_short(self) -> bool {
        self.end - self.start <= SHORT_MAX
    }

    /// Returns start and end in the form of the rows.
    #[inline]
    fn rounded(self) -> (i16, i16) {
        let up = (1 << FINE_BITS) - 1;
        ((self.start >> FINE_BITS) as i16, ((self.end + up) >> FINE_BITS) as i16)
    }
}

impl Rows {
    /// Returns the entries that may conflict.
    #[inline(always)]
    fn alarms(&self, interval: BusyInterval) -> Entries {
        let (start, end) = interval.rounded();
        let (from, length) = (i16x16::splat(start), i16x16::splat(end.wrapping_sub(start)));
        let starts_before = (self.starts - from).cmp_lt(length);
        let ends_after = (self.ends - from).cmp_gt(i16x16::splat(0));
        (starts_before & ends_after).move_mask() as Entries
    }

    /// Replaces a past interval by a short one.
    #[inline(always)]
    fn write(&mut self, index: usize, interval: BusyInterval) {
        self.intervals[index] = interval;
        let (start, end) = interval.rounded();
        (self.starts.as_array_mut()[index], self.ends.as_array_mut()[index]) = (start, end);
    }

    /// Returns an entry of `alarms` that really overlaps this interval, if there is one.
    #[inline]
    fn overlapping(&self, interval: BusyInterval, mut alarms: Entries) -> Option<usize> {
        while alarms != 0 {
            let index = alarms.trailing_zeros() as usize % ROW;
            let kept = &self.intervals[index];
            if kept.end > interval.start && kept.start < interval.end {
                return Some(index);
            }
            alarms &= alarms - 1;
        }
        None
    }

    /// Reserves the first free interval from this one on, given its `alarms`, if there is an entry for it. Returns its
    /// start, and the entry to write next.
    fn reserve(
        &mut self,
        present: u64,
        mut interval: BusyInterval,
        mut alarms: Entries,
        next: u32,
    ) -> Option<(u64, u32)> {
        let duration = interval.end - interval.start;
        let mut before = None;
        while let Some(index) = self.overlapping(interval, alarms) {
            let end = self.intervals[index].end;
            (interval, before) = (BusyInterval { start: end, end: end + duration }, Some(index));
            alarms = self.alarms(interval);
        }
        let longer =
            before.map(|index| (index, BusyInterval { start: self.intervals[index].start, ..interval }));
        if let Some((index, longer)) = longer.filter(|(_, longer)| longer.is_short()) {
            self.write(index, longer);
            return Some((interval.start, next));
        }
        let is_past = |index: &u32| self.intervals[*index as usize % ROW].is_past(present);
        let index = (next..).take(ROW).find(is_past)?;
        self.write(index as usize % ROW, interval);
        Some((interval.start, index.wrapping_add(1)))
    }
}

impl Timeline {
    /// Reserves the first free interval of length `duration` at `from` or later, and returns its start.
    ///
    /// `present` is a time before which there will be no more requests; it is not after `from`.
    #[inline(always)]
    pub fn reserve(&mut self, present: Picoseconds, from: Picoseconds, duration: Picoseconds) -> Picoseconds {
        debug_assert!(present <= from, "a request from the past: {present} and {from}");
        let interval = BusyInterval { start: from.0, end: from.0 + duration.0 };
        if let IntervalStore::Rows { next, rows } = &mut self.kept
            && duration.0.wrapping_sub(1) < SHORT_MAX
        {
            let (alarms, index) = (rows.alarms(interval), *next as usize % ROW);
            if alarms == 0 && rows.intervals[index].is_past(present.0) {
                rows.write(index, interval);
                *next = next.wrapping_add(1);
                return from;
            }
            return Picoseconds(self.reserve_near(present.0, interval, alarms));
        }
        Picoseconds(self.reserve_anywhere(present.0, interval))
    }

    /// As `reserve`, for a short interval in the rows, given its alarms.
    #[inline(never)]
    fn reserve_near(&mut self, present: u64, interval: BusyInterval, alarms: Entries) -> u64 {
        if let IntervalStore::Rows { next, rows } = &mut self.kept
            && let Some((start, after)) = rows.reserve(present, interval, alarms, *next)
        {
            *next = after;
            return start;
        }
        self.reserve_in_list(present, interval)
    }

    /// As `reserve`, for an interval that is empty, long or the first, or goes to a list.
    #[inline(never)]
    fn reserve_anywhere(&mut self, present: u64, interval: BusyInterval) -> u64 {
        if interval.start == interval.end {
            return interval.start;
        }
        if interval.is_short() && matches!(self.kept, IntervalStore::Nothing) {
            self.kept = IntervalStore::Rows { next: 0, rows: Box::default() };
            return self.reserve_near(present, interval, 0);
        }
        self.reserve_in_list(present, interval)
    }

    /// As `reserve`, in a list, into which the rows are converted.
    fn reserve_in_list(&mut self, present: u64, mut interval: BusyInterval) -> u64 {
        let mut list = match std::mem::take(&mut self.kept) {
            IntervalStore::List(list) => list,
            kept => kept.sorted(present),
        };
        let duration = interval.end - interval.start;
        let before = list.iter().rposition(|busy| busy.end <= interval.start);
        let mut index = before.map_or(0, |before| before + 1);
        for next in &list[index..] {
            if interval.start + duration <= next.start {
                break;
            }
            interval.start = next.end;
            index += 1;
        }
        interval.end = interval.start + duration;
        join(&mut list, index, interval);
        let is_long = list.len() > INTERVALS_MAX;
        self.kept = if is_long { shortened(list, present) } else { IntervalStore::List(list) };
        interval.start
    }

    /// The intervals to come, in order; those that touch are one.
    #[cfg(test)]
    pub(super) fn intervals(&self, present: Picoseconds) -> Vec<(u64, u64)> {
        self.kept.sorted(present.0).into_iter().map(|interval| (interval.start, interval.end)).collect()
    }
}

impl IntervalStore {
    /// Returns the intervals to come, in order; those that touch are one.
    fn sorted(&self, present: u64) -> Vec<BusyInterval> {
        let all = match self {
            IntervalStore::Nothing => &[],
            IntervalStore::Rows { rows, .. } => &rows.intervals[..],
            IntervalStore::List(list) => list,
        };
        let mut all: Vec<BusyInterval> = all.iter().filter(|kept| !kept.is_past(present)).copied().collect();
        all.sort_unstable();
        all.dedup_by(|next, kept| {
            let touches = kept.end == next.start;
            kept.end = if touches { next.end } else { kept.end };
            touches
        });
        all
    }
}

/// Inserts an interval before `index` of a list, and merges it with adjacent neighbours.
fn join(list: &mut Vec<BusyInterval>, index: usize, interval: BusyInterval) {
    let touches_before = index > 0 && list[index - 1].end == interval.start;
    let touches_after = index < list.len() && list[index].start == interval.end;
    match (touches_before, touches_after) {
        (true, true) => list[index - 1].end = list.remove(index).end,
        (true, false) => list[index - 1].end = interval.end,
        (false, true) => list[index].start = interval.start,
        (false, false) => list.insert(index, interval),
    }
}

/// Drops the past intervals of a list, or closes the smallest gap if there are none; converts a short list to rows.
#[cold]
fn shortened(mut list: Vec<BusyInterval>, present: u64) -> IntervalStore {
    let past = list.partition_point(|interval| interval.is_past(present));
    list.drain(..past);
    let gap = |index: &usize| list[index + 1].start - list[*index].end;
    if past == 0
        && let Some(index) = (0..list.len() - 1).min_by_key(gap)
    {
        list[index].end = list.remove(index + 1).end;
    }
    if list.len() > ROW / 2 || list.iter().any(|interval| !interval.is_short()) {
        return IntervalStore::List(list);
    }
    let (mut rows, next) = (Box::<Rows>::default(), list.len() as u32);
    list.iter().enumerate().for_each(|(index, interval)| rows.write(index, *interval));
    IntervalStore::Rows { next, rows }
}
