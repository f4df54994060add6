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
//! Invariant: no two stretches overlap, and those of the rows are short.

use crate::quantity::Picoseconds;

/// Most stretches to come that are kept.
pub(super) const STRETCHES_MAX: usize = 32;

/// Stretches in the rows.
const ROW: usize = 16;

/// Low bits that the numbers of the rows leave out: they count in 512 ps, and begin anew after 34 µs.
const FINE_BITS: u32 = 9;

/// The longest stretch in the rows: two of these, rounded, fit into half of the range of its numbers.
const SHORT_MAX: u64 = 1 << (FINE_BITS + 13);

/// The busy stretches of one resource that are to come, and some that are past.
#[derive(Clone, Debug, Default)]
#[repr(align(64))] // The rows fill one line of the host's caches.
pub struct Timeline {
    /// When the first stretches start, rounded down.
    starts: [u16; ROW],
    /// When they end, rounded up.
    ends: [u16; ROW],
    /// The entry of the rows that is written next.
    next: usize,
    /// Nothing before the first request; then the stretches of the rows, and behind them those that are long or found
    /// no room there.
    kept: Vec<Stretch>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    start: u64,
    end: u64,
}

impl Stretch {
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
    fn rounded(self) -> (u16, u16) {
        ((self.start >> FINE_BITS) as u16, self.end.div_ceil(1 << FINE_BITS) as u16)
    }
}

impl Timeline {
    /// Reserves the first free stretch of length `duration` at `from` or later, and returns where it starts.
    ///
    /// `present` is a time before which nobody will ask any more; it is not after `from`.
    #[inline(always)]
    pub fn reserve(&mut self, present: Picoseconds, from: Picoseconds, duration: Picoseconds) -> Picoseconds {
        debug_assert!(present <= from, "a request from the past: {present} and {from}");
        let stretch = Stretch { start: from.0, end: from.0 + duration.0 };
        if self.kept.len() == ROW
            && duration.0.wrapping_sub(1) < SHORT_MAX
            && self.kept[self.next % ROW].is_past(present.0)
            && self.seems_free(stretch)
        {
            self.write(self.next % ROW, stretch);
            self.next += 1;
            return from;
        }
        Picoseconds(self.reserve_anywhere(present.0, stretch))
    }

    /// Whether nothing in the rows seems to be in the way.
    #[inline(always)]
    fn seems_free(&self, stretch: Stretch) -> bool {
        let (start, end) = stretch.rounded();
        let length = end.wrapping_sub(start) as i16;
        let mut busy = false;
        for index in 0..ROW {
            let starts_before = (self.starts[index].wrapping_sub(start) as i16) < length;
            let ends_after = self.ends[index].wrapping_sub(start) as i16 > 0;
            busy |= starts_before & ends_after;
        }
        !busy
    }

    /// Puts a short stretch into the rows, where one is past.
    #[inline]
    fn write(&mut self, index: usize, stretch: Stretch) {
        self.kept[index] = stretch;
        (self.starts[index], self.ends[index]) = stretch.rounded();
    }

    /// As `reserve`, whatever is in the way.
    #[inline(never)]
    fn reserve_anywhere(&mut self, present: u64, mut stretch: Stretch) -> u64 {
        let duration = stretch.end - stretch.start;
        if duration == 0 {
            return stretch.start;
        }
        if self.kept.is_empty() {
            self.kept = vec![Stretch::default(); ROW];
        }
        let mut before = None;
        while let Some(index) = self.in_the_way(stretch) {
            let end = self.kept[index].end;
            (stretch, before) = (Stretch { start: end, end: end + duration }, Some(index));
            if self.kept.len() == ROW && stretch.is_short() && self.seems_free(stretch) {
                break;
            }
        }
        match before.map(|index| (index, Stretch { start: self.kept[index].start, ..stretch })) {
            Some((index, both)) if index < ROW && both.is_short() => self.write(index, both),
            _ => self.keep(present, stretch),
        }
        if self.kept.len() > ROW {
            self.tidy(present);
        }
        stretch.start
    }

    /// A stretch that is in the way of this one, which then cannot begin before that ends.
    #[inline]
    fn in_the_way(&self, stretch: Stretch) -> Option<usize> {
        self.kept.iter().position(|kept| kept.end > stretch.start && kept.start < stretch.end)
    }

    /// Puts a stretch into the rows if it is short and one of them is past, else behind them.
    fn keep(&mut self, present: u64, stretch: Stretch) {
        let mut entries = (self.next..self.next + ROW).map(|index| index % ROW);
        match entries.find(|index| stretch.is_short() && self.kept[*index].is_past(present)) {
            Some(index) => {
                self.write(index, stretch);
                self.next = index + 1;
            }
            None => self.kept.push(stretch),
        }
    }

    /// Forgets what is past behind the rows, and makes room there if there is none.
    #[cold]
    fn tidy(&mut self, present: u64) {
        let mut others = self.kept.split_off(ROW);
        others.retain(|other| !other.is_past(present));
        others.into_iter().for_each(|other| self.keep(present, other));
        if self.kept.len() > STRETCHES_MAX {
            let all = self.shortened(present);
            *self = Timeline { kept: vec![Stretch::default(); ROW], ..Timeline::default() };
            all.into_iter().for_each(|stretch| self.keep(present, stretch));
        }
    }

    /// The stretches to come, in order; if they are too many, the two that are closest are one.
    fn shortened(&self, present: u64) -> Vec<Stretch> {
        let mut all = self.sorted(present);
        let gap = |index: &usize| all[index + 1].start - all[*index].end;
        if all.len() > STRETCHES_MAX
            && let Some(index) = (0..all.len() - 1).min_by_key(gap)
        {
            all[index].end = all[index + 1].end;
            all.remove(index + 1);
        }
        all
    }

    /// The stretches to come, in order; those that touch are one.
    fn sorted(&self, present: u64) -> Vec<Stretch> {
        let mut all: Vec<Stretch> = self.kept.iter().copied().filter(|kept| !kept.is_past(present)).collect();
        all.sort_unstable();
        all.dedup_by(|next, kept| {
            let touches = kept.end == next.start;
            kept.end = if touches { next.end } else { kept.end };
            touches
        });
        all
    }

    /// The stretches to come, in order; those that touch are one.
    #[cfg(test)]
    pub(super) fn stretches(&self, present: Picoseconds) -> Vec<(u64, u64)> {
        self.sorted(present.0).into_iter().map(|stretch| (stretch.start, stretch.end)).collect()
    }
}
