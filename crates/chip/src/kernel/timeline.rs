//! When a resource that serves one request at a time is free.
//!
//! Requests come in no order of time: a place that has computed ahead reserves later moments first. So the gaps are
//! kept, and an earlier request fills them. What lies before the present (the least time that any request can still
//! ask for) is forgotten, which loses nothing; if too many stretches remain, the two that are closest become one, which
//! can only delay. Most requests are among the latest, so the search begins at the end; and what is past is only
//! forgotten when the list is full, which is cheaper than looking each time.
//! Where a request goes among the last few stretches cannot be foreseen, so that is counted and moved without a branch;
//! all else (it touches another one, it does not fit, it lies further back) takes the long way.
//! Invariant: the stretches are sorted, apart from each other, and not empty.

use crate::quantity::Picoseconds;

/// Most stretches kept.
pub(super) const STRETCHES_MAX: usize = 32;

/// Stretches that are looked at without a branch; so many empty ones stand before the first.
const LOOK: usize = 6;

/// Before all stretches, and after all.
const FIRST: Stretch = Stretch { start: 0, end: 0 };
const LAST: Stretch = Stretch { start: u64::MAX, end: u64::MAX };

/// The busy stretches of one resource from the present on, and some from before it.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Nothing before the first request; then [`FIRST`] a few times, the stretches, [`LAST`], and room for one more.
    slots: Vec<Stretch>,
    /// How many stretches there are.
    len: usize,
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
        if self.len < STRETCHES_MAX
            && duration.0 > 0
            && let Some(tail) = self.slots.get_mut(self.len..)
            && let Some(tail) = tail.first_chunk_mut()
            && put_in_gap(tail, stretch)
        {
            self.len += 1;
            return from;
        }
        Picoseconds(self.reserve_anywhere(present, stretch))
    }

    /// As `reserve`, wherever the stretch goes and whatever it touches.
    fn reserve_anywhere(&mut self, present: Picoseconds, mut stretch: Stretch) -> u64 {
        let duration = stretch.end - stretch.start;
        if duration == 0 {
            return stretch.start;
        }
        if self.slots.is_empty() {
            self.slots = [[FIRST; LOOK].as_slice(), &[LAST; STRETCHES_MAX + 2]].concat();
        }
        let busy = self.busy();
        let before = busy.iter().rposition(|busy| busy.end <= stretch.start);
        let mut index = before.map_or(0, |before| before + 1);
        for next in &busy[index..] {
            if stretch.start + duration <= next.start {
                break;
            }
            stretch.start = next.end;
            index += 1;
        }
        stretch.end = stretch.start + duration;
        self.insert(index, stretch);
        if self.len > STRETCHES_MAX {
            self.shorten(present);
        }
        stretch.start
    }

    /// The busy stretches that are kept, in order.
    pub fn stretches(&self) -> impl Iterator<Item = (Picoseconds, Picoseconds)> + '_ {
        self.busy().iter().map(|stretch| (Picoseconds(stretch.start), Picoseconds(stretch.end)))
    }

    fn busy(&self) -> &[Stretch] {
        self.slots.get(LOOK..LOOK + self.len).unwrap_or_default()
    }

    fn busy_mut(&mut self) -> &mut [Stretch] {
        &mut self.slots[LOOK..LOOK + self.len]
    }

    /// Puts a stretch before the one at `index`, and joins it with neighbours that it touches.
    fn insert(&mut self, index: usize, stretch: Stretch) {
        let busy = self.busy_mut();
        let touches_before = index > 0 && busy[index - 1].end == stretch.start;
        let touches_after = index < busy.len() && busy[index].start == stretch.end;
        match (touches_before, touches_after) {
            (true, true) => self.join(index - 1),
            (true, false) => busy[index - 1].end = stretch.end,
            (false, true) => busy[index].start = stretch.start,
            (false, false) => {
                let end = LOOK + self.len + 1;
                self.slots.copy_within(LOOK + index..end, LOOK + index + 1);
                self.slots[LOOK + index] = stretch;
                self.len += 1;
            }
        }
    }

    /// Makes one stretch of the one at `index`, the next one, and what is between them.
    fn join(&mut self, index: usize) {
        let busy = self.busy_mut();
        busy[index].end = busy[index + 1].end;
        self.remove(index + 1, 1);
    }

    /// Takes `count` stretches from `index` on out.
    fn remove(&mut self, index: usize, count: usize) {
        let end = LOOK + self.len + 1;
        self.slots.copy_within(LOOK + index + count..end, LOOK + index);
        self.len -= count;
    }

    /// Forgets what is past, or closes the least gap if nothing is.
    #[cold]
    fn shorten(&mut self, present: Picoseconds) {
        let busy = self.busy();
        let past = busy.partition_point(|stretch| stretch.end <= present.0);
        if past > 0 {
            return self.remove(0, past);
        }
        let gap = |index: &usize| busy[index + 1].start - busy[*index].end;
        if let Some(index) = (0..busy.len() - 1).min_by_key(gap) {
            self.join(index);
        }
    }
}

/// Puts a stretch among the last ones, if it fits there where it is and touches nothing. `tail` is the last [`LOOK`] of
/// them, what is after all, and room for one more.
#[inline]
fn put_in_gap(tail: &mut [Stretch; LOOK + 2], stretch: Stretch) -> bool {
    let after: usize = tail[..LOOK].iter().map(|busy| usize::from(busy.end > stretch.start)).sum();
    let index = LOOK - after;
    let fits = index > 0 && tail[index - 1].end < stretch.start && stretch.end < tail[index].start;
    if fits {
        for place in (1..LOOK + 2).rev() {
            let (moved, kept) = (tail[place - 1], tail[place]);
            tail[place] = if place > index { moved } else { kept };
        }
        tail[index] = stretch;
    }
    fits
}
