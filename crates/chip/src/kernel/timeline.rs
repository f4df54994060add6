//! When a resource that serves one request at a time is free.
//!
//! Requests come in no order of time: a place that has computed ahead reserves later moments first. So the gaps are
//! kept, and an earlier request fills them. What lies before the present (the least time that any request can still
//! ask for) is forgotten, which loses nothing; if too many stretches remain, the two that are closest become one, which
//! can only delay. Most requests are among the latest, so the search begins at the end; and what is past is only
//! forgotten when the list is full, which is cheaper than looking each time.
//! Invariant: the stretches are sorted, apart from each other, and not empty.

use crate::quantity::Picoseconds;

/// Most stretches kept.
pub(super) const STRETCHES_MAX: usize = 32;

/// The busy stretches of one resource from the present on, and some from before it.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    busy: Vec<Stretch>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: u64,
    end: u64,
}

impl Timeline {
    /// Reserves the first free stretch of length `duration` at `from` or later, and returns where it starts.
    ///
    /// `present` is a time before which nobody will ask any more; it is not after `from`.
    #[inline]
    pub fn reserve(&mut self, present: Picoseconds, from: Picoseconds, duration: Picoseconds) -> Picoseconds {
        debug_assert!(present <= from, "a request from the past: {present} and {from}");
        let stretch = Stretch { start: from.0, end: from.0 + duration.0 };
        let after_all = self.busy.last().is_none_or(|last| last.end < from.0);
        if after_all && self.busy.len() < STRETCHES_MAX && duration.0 > 0 {
            self.busy.push(stretch);
            return from;
        }
        Picoseconds(self.reserve_among(present, stretch))
    }

    /// As `reserve`, when there are others to be compared with or forgotten.
    fn reserve_among(&mut self, present: Picoseconds, mut stretch: Stretch) -> u64 {
        let duration = stretch.end - stretch.start;
        if duration == 0 {
            return stretch.start;
        }
        let before = self.busy.iter().rposition(|busy| busy.end <= stretch.start);
        let mut index = before.map_or(0, |before| before + 1);
        for next in &self.busy[index..] {
            if stretch.start + duration <= next.start {
                break;
            }
            stretch.start = next.end;
            index += 1;
        }
        stretch.end = stretch.start + duration;
        self.insert(index, stretch);
        if self.busy.len() > STRETCHES_MAX {
            self.shorten(present);
        }
        stretch.start
    }

    /// The busy stretches that are kept, in order.
    pub fn stretches(&self) -> impl Iterator<Item = (Picoseconds, Picoseconds)> + '_ {
        self.busy.iter().map(|stretch| (Picoseconds(stretch.start), Picoseconds(stretch.end)))
    }

    /// Puts a stretch before the one at `index`, and joins it with neighbours that it touches.
    #[inline]
    fn insert(&mut self, index: usize, stretch: Stretch) {
        let touches_before = index > 0 && self.busy[index - 1].end == stretch.start;
        let touches_after = index < self.busy.len() && self.busy[index].start == stretch.end;
        match (touches_before, touches_after) {
            (false, false) => self.busy.insert(index, stretch),
            (true, false) => self.busy[index - 1].end = stretch.end,
            (false, true) => self.busy[index].start = stretch.start,
            (true, true) => self.busy[index - 1].end = self.busy.remove(index).end,
        }
    }

    /// Forgets what is past, or closes the least gap if nothing is.
    #[cold]
    fn shorten(&mut self, present: Picoseconds) {
        let past = self.busy.partition_point(|stretch| stretch.end <= present.0);
        self.busy.drain(..past);
        if past > 0 {
            return;
        }
        let gap = |index: &usize| self.busy[index + 1].start - self.busy[*index].end;
        let Some(index) = (0..self.busy.len() - 1).min_by_key(gap) else { return };
        self.busy[index].end = self.busy.remove(index + 1).end;
    }
}
