//! When a resource that serves one request at a time is free.
//!
//! Requests come in no order of time: a place that has computed ahead reserves later moments first. So the stretches in
//! which the resource is busy are kept, in no order, until they are past (before the least time that any request can
//! still ask for), and a request takes the first gap between them that is long enough. Forgetting what is past loses
//! nothing; if too many stretches are to come, the two that are closest become one, which can only delay.
//!
//! Nearly always a request finds its stretch free and a few others near it. So a few stretches also stand in two rows
//! of short numbers, in which one pass without a branch sees that nothing is in the way. Such a number is what is left
//! of a time without its low bits, rounded to the outside, and without its high ones: it may raise a false alarm, which
//! costs a second look at the whole numbers, but never misses what is in the way.
//!
//! Where more is to come than the rows take, or something long, all of it goes to a crowd: a list in order, in which
//! what touches is one. It goes back when few are left.
//! Invariant: no two stretches overlap, and those of the rows are short.

use crate::quantity::Picoseconds;
use wide::{CmpGt, CmpLt, i16x16};

/// Most stretches to come that are kept.
pub(super) const STRETCHES_MAX: usize = 64;

/// Stretches in the rows.
const ROW: usize = 16;

/// Low bits that the numbers of the rows leave out: they count in 512 ps, and begin anew after 34 µs.
const FINE_BITS: u32 = 9;

/// The longest stretch in the rows: two of these, rounded, fit into half of the range of its numbers.
const SHORT_MAX: u64 = 1 << (FINE_BITS + 13);

/// The busy stretches of one resource that are to come, and some that are past.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    kept: IntervalStore,
}

/// Storage of the stretches.
#[derive(Clone, Debug, Default)]
enum IntervalStore {
    /// Nothing has been asked for yet.
    #[default]
    Nothing,
    /// In the rows, and the entry of them that is written next, modulo their length.
    Rows { next: u32, rows: Box<Rows> },
    /// In order, apart from each other; some may be past.
    Crowd(Vec<BusyInterval>),
}

/// Short stretches in no order.
#[derive(Clone, Debug, Default)]
#[repr(align(64))] // The rows of short numbers fill one line of the host's caches.
struct Rows {
    /// Starts of the stretches, rounded down.
    starts: i16x16,
    /// Ends of the stretches, rounded up.
    ends: i16x16,
    stretches: [BusyInterval; ROW],
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

    /// Start and end as the rows have them.
    #[inline]
    fn rounded(self) -> (i16, i16) {
        let up = (1 << FINE_BITS) - 1;
        ((self.start >> FINE_BITS) as i16, ((self.end + up) >> FINE_BITS) as i16)
    }
}

impl Rows {
    /// Returns the entries that may be in the way.
    #[inline(always)]
    fn alarms(&self, stretch: BusyInterval) -> Entries {
        let (start, end) = stretch.rounded();
        let (from, length) = (i16x16::splat(start), i16x16::splat(end.wrapping_sub(start)));
        let starts_before = (self.starts - from).cmp_lt(length);
        let ends_after = (self.ends - from).cmp_gt(i16x16::splat(0));
        (starts_before & ends_after).move_mask() as Entries
    }

    /// Puts a short stretch where one is past.
    #[inline(always)]
    fn write(&mut self, index: usize, stretch: BusyInterval) {
        self.stretches[index] = stretch;
        let (start, end) = stretch.rounded();
        (self.starts.as_array_mut()[index], self.ends.as_array_mut()[index]) = (start, end);
    }

    /// Returns one of the `alarms`, a stretch that is in the way of this one, which then cannot begin before that ends.
    #[inline]
    fn in_the_way(&self, stretch: BusyInterval, mut alarms: Entries) -> Option<usize> {
        while alarms != 0 {
            let index = alarms.trailing_zeros() as usize % ROW;
            let kept = &self.stretches[index];
            if kept.end > stretch.start && kept.start < stretch.end {
                return Some(index);
            }
            alarms &= alarms - 1;
        }
        None
    }

    /// Reserves the first free stretch from this one on, of which these alarms are known, if there is an entry for it.
    /// Gives where it starts, and which entry is written next.
    fn reserve(
        &mut self,
        present: u64,
        mut stretch: BusyInterval,
        mut alarms: Entries,
        next: u32,
    ) -> Option<(u64, u32)> {
        let duration = stretch.end - stretch.start;
        let mut before = None;
        while let Some(index) = self.in_the_way(stretch, alarms) {
            let end = self.stretches[index].end;
            (stretch, before) = (BusyInterval { start: end, end: end + duration }, Some(index));
            alarms = self.alarms(stretch);
        }
        let longer =
            before.map(|index| (index, BusyInterval { start: self.stretches[index].start, ..stretch }));
        if let Some((index, longer)) = longer.filter(|(_, longer)| longer.is_short()) {
            self.write(index, longer);
            return Some((stretch.start, next));
        }
        let is_past = |index: &u32| self.stretches[*index as usize % ROW].is_past(present);
        let index = (next..).take(ROW).find(is_past)?;
        self.write(index as usize % ROW, stretch);
        Some((stretch.start, index.wrapping_add(1)))
    }
}

impl Timeline {
    /// Reserves the first free stretch of length `duration` at `from` or later, and returns where it starts.
    ///
    /// `present` is a time before which nobody will ask any more; it is not after `from`.
    #[inline(always)]
    pub fn reserve(&mut self, present: Picoseconds, from: Picoseconds, duration: Picoseconds) -> Picoseconds {
        debug_assert!(present <= from, "a request from the past: {present} and {from}");
        let stretch = BusyInterval { start: from.0, end: from.0 + duration.0 };
        if let IntervalStore::Rows { next, rows } = &mut self.kept
            && duration.0.wrapping_sub(1) < SHORT_MAX
        {
            let (alarms, index) = (rows.alarms(stretch), *next as usize % ROW);
            if alarms == 0 && rows.stretches[index].is_past(present.0) {
                rows.write(index, stretch);
                *next = next.wrapping_add(1);
                return from;
            }
            return Picoseconds(self.reserve_near(present.0, stretch, alarms));
        }
        Picoseconds(self.reserve_anywhere(present.0, stretch))
    }

    /// As `reserve`, of a short stretch among the rows, of which these alarms are known.
    #[inline(never)]
    fn reserve_near(&mut self, present: u64, stretch: BusyInterval, alarms: Entries) -> u64 {
        if let IntervalStore::Rows { next, rows } = &mut self.kept
            && let Some((start, after)) = rows.reserve(present, stretch, alarms, *next)
        {
            *next = after;
            return start;
        }
        self.reserve_in_crowd(present, stretch)
    }

    /// As `reserve`, of what is empty, or long, or the first, or in a crowd.
    #[inline(never)]
    fn reserve_anywhere(&mut self, present: u64, stretch: BusyInterval) -> u64 {
        if stretch.start == stretch.end {
            return stretch.start;
        }
        if stretch.is_short() && matches!(self.kept, IntervalStore::Nothing) {
            self.kept = IntervalStore::Rows { next: 0, rows: Box::default() };
            return self.reserve_near(present, stretch, 0);
        }
        self.reserve_in_crowd(present, stretch)
    }

    /// As `reserve`, among a crowd; makes one of the rows if there is none.
    fn reserve_in_crowd(&mut self, present: u64, mut stretch: BusyInterval) -> u64 {
        let mut crowd = match std::mem::take(&mut self.kept) {
            IntervalStore::Crowd(crowd) => crowd,
            kept => kept.sorted(present),
        };
        let duration = stretch.end - stretch.start;
        let before = crowd.iter().rposition(|busy| busy.end <= stretch.start);
        let mut index = before.map_or(0, |before| before + 1);
        for next in &crowd[index..] {
            if stretch.start + duration <= next.start {
                break;
            }
            stretch.start = next.end;
            index += 1;
        }
        stretch.end = stretch.start + duration;
        join(&mut crowd, index, stretch);
        let is_long = crowd.len() > STRETCHES_MAX;
        self.kept = if is_long { shortened(crowd, present) } else { IntervalStore::Crowd(crowd) };
        stretch.start
    }

    /// The stretches to come, in order; those that touch are one.
    #[cfg(test)]
    pub(super) fn stretches(&self, present: Picoseconds) -> Vec<(u64, u64)> {
        self.kept.sorted(present.0).into_iter().map(|stretch| (stretch.start, stretch.end)).collect()
    }
}

impl IntervalStore {
    /// The stretches to come, in order; those that touch are one.
    fn sorted(&self, present: u64) -> Vec<BusyInterval> {
        let all = match self {
            IntervalStore::Nothing => &[],
            IntervalStore::Rows { rows, .. } => &rows.stretches[..],
            IntervalStore::Crowd(crowd) => crowd,
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

/// Puts a stretch before the one at `index` of a crowd, and joins it with neighbours that it touches.
fn join(crowd: &mut Vec<BusyInterval>, index: usize, stretch: BusyInterval) {
    let touches_before = index > 0 && crowd[index - 1].end == stretch.start;
    let touches_after = index < crowd.len() && crowd[index].start == stretch.end;
    match (touches_before, touches_after) {
        (true, true) => crowd[index - 1].end = crowd.remove(index).end,
        (true, false) => crowd[index - 1].end = stretch.end,
        (false, true) => crowd[index].start = stretch.start,
        (false, false) => crowd.insert(index, stretch),
    }
}

/// Forgets what is past of a crowd, or closes the least gap if nothing is. If few are left, the rows take them.
#[cold]
fn shortened(mut crowd: Vec<BusyInterval>, present: u64) -> IntervalStore {
    let past = crowd.partition_point(|stretch| stretch.is_past(present));
    crowd.drain(..past);
    let gap = |index: &usize| crowd[index + 1].start - crowd[*index].end;
    if past == 0
        && let Some(index) = (0..crowd.len() - 1).min_by_key(gap)
    {
        crowd[index].end = crowd.remove(index + 1).end;
    }
    if crowd.len() > ROW / 2 || crowd.iter().any(|stretch| !stretch.is_short()) {
        return IntervalStore::Crowd(crowd);
    }
    let (mut rows, next) = (Box::<Rows>::default(), crowd.len() as u32);
    crowd.iter().enumerate().for_each(|(index, stretch)| rows.write(index, *stretch));
    IntervalStore::Rows { next, rows }
}
