//! The queue of future events, at most one for each owner.
//!
//! A tournament tree over all owners: each node holds the times and owners of its four children's earliest events, so
//! the root has the next event. Adding, moving or removing an event updates the path to the root, with three
//! branch-free comparisons per level within one cache line of the host. The rest of the keys matters only for
//! simultaneous events. There is no list of events at the present, because every turn and every transfer takes time.
//! Invariant: a node's entry is the minimum of the entries of its children.

use super::Key;
use std::hint::select_unpredictable;

/// Base of the times of owners without an event: after all others, and distinct for each owner.
const NEVER: u64 = u64::MAX - u32::MAX as u64;

/// Rank among simultaneous events: the low half of a key, with the sequence number replaced by the owner's number. Each
/// owner has one event here, so the sequence number never decides.
type EventRank = u64;

/// Time of an event, and its rank.
type Entry = (u64, EventRank);

/// The children of one node: the earliest event below each.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct HeapNode {
    times: [u64; 4],
    ranks: [EventRank; 4],
}

impl HeapNode {
    /// Returns the earliest of the four.
    #[inline(always)]
    fn earliest(&self) -> Entry {
        let [a, b, c, d] = self.times;
        let (is_b, is_d) = (b < a, d < c);
        let (first, second) = (select_unpredictable(is_b, b, a), select_unpredictable(is_d, d, c));
        if (a == b) | (c == d) | (first == second) {
            return self.earliest_by_rank();
        }
        let is_second = second < first;
        let index = select_unpredictable(is_second, 2 | usize::from(is_d), usize::from(is_b));
        // The time is selected separately, because the next node needs it and mostly not the rank.
        (select_unpredictable(is_second, second, first), self.ranks[index])
    }

    /// As [`HeapNode::earliest`], if some times are equal.
    #[inline(never)]
    fn earliest_by_rank(&self) -> Entry {
        let entry = |side: usize| u128::from(self.times[side]) << 64 | u128::from(self.ranks[side]);
        let earlier = |one: u128, other: u128| select_unpredictable(other < one, other, one);
        let earliest = earlier(earlier(entry(0), entry(1)), earlier(entry(2), entry(3)));
        ((earliest >> 64) as u64, earliest as EventRank)
    }
}

/// The next event of each owner, in the order of their keys.
pub struct Queue {
    /// The children of each inner node. Node 0 is the root, the children of node `n` are `4 n + 1` and the next three;
    /// nodes from `fours.len()` on are the owners.
    fours: Vec<HeapNode>,
    /// The event at the root.
    root: Entry,
    /// The full keys, by owner.
    keys: Vec<Key>,
}

impl Queue {
    /// Returns a queue of `owners` owners without events.
    pub fn new(owners: usize) -> Queue {
        // Missing children have distinct times after all events.
        let nobody = HeapNode { times: [0, 1, 2, 3].map(|side| u64::MAX - side), ranks: [EventRank::MAX; 4] };
        let fours = vec![nobody; owners.saturating_sub(1).div_ceil(3)];
        Queue { fours, root: (u64::MAX, EventRank::MAX), keys: vec![Key::NEVER; owners] }
    }

    /// Sets the event of `owner` to `key`, which must be a key of that owner; replaces an earlier event.
    #[inline]
    pub fn set(&mut self, owner: u32, key: Key) {
        self.keys[owner as usize] = key;
        let rank = key.bits() as EventRank & !EventRank::from(u32::MAX) | EventRank::from(owner);
        self.play(owner, (key.time().0, rank));
    }

    /// Removes the event of `owner`, if it has one.
    pub fn remove(&mut self, owner: u32) -> Option<Key> {
        let key = self.key_of(owner)?;
        self.keys[owner as usize] = Key::NEVER;
        self.play(owner, (NEVER + u64::from(owner), EventRank::from(owner)));
        Some(key)
    }

    /// Returns the event of `owner`, if it has one.
    #[inline]
    pub fn key_of(&self, owner: u32) -> Option<Key> {
        Some(self.keys[owner as usize]).filter(|key| *key != Key::NEVER)
    }

    /// Returns the next event and its owner.
    #[inline]
    pub fn first(&self) -> Option<(Key, u32)> {
        let (time, owner) = (self.root.0, self.root.1 as u32);
        (time < NEVER).then(|| (self.keys[owner as usize], owner))
    }

    /// Removes the next event and returns it with its owner.
    pub fn pop(&mut self) -> Option<(Key, u32)> {
        let (key, owner) = self.first()?;
        self.remove(owner);
        Some((key, owner))
    }

    /// Updates the path from `owner` to the root.
    #[inline]
    fn play(&mut self, owner: u32, mut entry: Entry) {
        let mut node = self.fours.len() + owner as usize;
        while node > 0 {
            let (above, side) = ((node - 1) / 4, (node - 1) % 4);
            let four = &mut self.fours[above];
            (four.times[side], four.ranks[side]) = entry;
            entry = four.earliest();
            node = above;
        }
        self.root = entry;
    }
}
