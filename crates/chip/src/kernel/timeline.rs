//! When a resource that serves one request at a time is free.
//!
//! Requests come in no order of time: a place that has computed ahead reserves later moments first. So the gaps are
//! kept, and an earlier request fills them. What lies before the present (the least time that any request can still
//! ask for) is forgotten, which loses nothing; if too many stretches remain, the two that are closest become one, which
//! can only delay.
//! Invariant: the stretches are sorted, apart from each other, and not empty.

use crate::quantity::Picoseconds;
use std::collections::VecDeque;

/// Most stretches kept.
pub(super) const STRETCHES_MAX: usize = 32;

/// The busy stretches of one resource from the present on.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    busy: VecDeque<(u64, u64)>,
}

impl Timeline {
    /// Reserves the first free stretch of length `duration` at `from` or later, and returns where it starts.
    ///
    /// `present` is a time before which nobody will ask any more; it is not after `from`.
    pub fn reserve(&mut self, present: Picoseconds, from: Picoseconds, duration: Picoseconds) -> Picoseconds {
        debug_assert!(present <= from, "a request from the past: {present} and {from}");
        while self.busy.front().is_some_and(|(_, end)| *end <= present.0) {
            self.busy.pop_front();
        }
        if duration.0 == 0 {
            return from;
        }
        let mut start = from.0;
        let mut index = self.busy.partition_point(|(_, end)| *end <= start);
        while let Some(&(busy_from, busy_to)) = self.busy.get(index) {
            if start + duration.0 <= busy_from {
                break;
            }
            start = busy_to;
            index += 1;
        }
        self.insert(index, start, start + duration.0);
        Picoseconds(start)
    }

    /// The busy stretches that are kept, in order.
    pub fn stretches(&self) -> impl Iterator<Item = (Picoseconds, Picoseconds)> + '_ {
        self.busy.iter().map(|&(start, end)| (Picoseconds(start), Picoseconds(end)))
    }

    /// Puts a stretch before the one at `index`, and joins it with neighbours that it touches.
    fn insert(&mut self, index: usize, start: u64, end: u64) {
        let touches_before = index > 0 && self.busy[index - 1].1 == start;
        let touches_after = self.busy.get(index).is_some_and(|next| next.0 == end);
        match (touches_before, touches_after) {
            (true, true) => {
                self.busy[index - 1].1 = self.busy[index].1;
                self.busy.remove(index);
            }
            (true, false) => self.busy[index - 1].1 = end,
            (false, true) => self.busy[index].0 = start,
            (false, false) => self.busy.insert(index, (start, end)),
        }
        if self.busy.len() > STRETCHES_MAX {
            self.close_least_gap();
        }
    }

    fn close_least_gap(&mut self) {
        let gap = |index: &usize| self.busy[index + 1].0 - self.busy[*index].1;
        let Some(index) = (0..self.busy.len() - 1).min_by_key(gap) else { return };
        self.busy[index].1 = self.busy[index + 1].1;
        self.busy.remove(index + 1);
    }
}
