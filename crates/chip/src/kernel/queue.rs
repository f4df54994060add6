//! The queue of events to come: at most one of each owner.
//!
//! A tournament: a tree over all owners whose every node holds the times of its four children's earliest events and
//! whose they are, so the root is the next one. An event that comes, moves or goes plays again on its way to the root:
//! three comparisons a level, whose outcome needs no branch, within one line of the host's caches. Only of events of
//! one time the rest of their keys decides. There is no list for events of the present moment: every turn of a place
//! and every transfer takes time, so none arises.
//! Invariant: a node's entry is the least of the entries of its children.

use super::Key;
use std::hint::select_unpredictable;

/// The times of owners without an event: after all others, and of each owner its own, so that no two are equal.
const NEVER: u64 = u64::MAX - u32::MAX as u64;

/// Rank among events of one time: the low half of a key, whose last bits, the sequence number, are replaced by the
/// owner's number. One owner has one event here, so the sequence number never decides.
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
    /// The earliest of the four.
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
        // The time is chosen by itself: it decides at the next node, and the rank mostly does not.
        (select_unpredictable(is_second, second, first), self.ranks[index])
    }

    /// The same where some are at one time.
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
    /// The children of each node that has some. Node 0 is the root, the children of node `n` are `4 n + 1` and the next
    /// three; nodes from the number of these fours on are the owners.
    fours: Vec<HeapNode>,
    /// The event at the root.
    root: Entry,
    /// The keys as they were given, by owner.
    keys: Vec<Key>,
}

impl Queue {
    /// Returns a queue of `owners` owners without events.
    pub fn new(owners: usize) -> Queue {
        // Sides without a child are at no time either, each at its own.
        let nobody = HeapNode { times: [0, 1, 2, 3].map(|side| u64::MAX - side), ranks: [EventRank::MAX; 4] };
        let fours = vec![nobody; owners.saturating_sub(1).div_ceil(3)];
        Queue { fours, root: (u64::MAX, EventRank::MAX), keys: vec![Key::NEVER; owners] }
    }

    /// Gives `owner` the event `key`, which is of that owner, instead of the one that it has, if it has one.
    #[inline]
    pub fn set(&mut self, owner: u32, key: Key) {
        self.keys[owner as usize] = key;
        let rank = key.bits() as EventRank & !EventRank::from(u32::MAX) | EventRank::from(owner);
        self.play(owner, (key.time().0, rank));
    }

    /// Takes the event of `owner` out, if it has one.
    pub fn remove(&mut self, owner: u32) -> Option<Key> {
        let key = self.key_of(owner)?;
        self.keys[owner as usize] = Key::NEVER;
        self.play(owner, (NEVER + u64::from(owner), EventRank::from(owner)));
        Some(key)
    }

    /// The event of `owner`, if it has one.
    #[inline]
    pub fn key_of(&self, owner: u32) -> Option<Key> {
        Some(self.keys[owner as usize]).filter(|key| *key != Key::NEVER)
    }

    /// The next event and whose it is.
    #[inline]
    pub fn first(&self) -> Option<(Key, u32)> {
        let (time, owner) = (self.root.0, self.root.1 as u32);
        (time < NEVER).then(|| (self.keys[owner as usize], owner))
    }

    /// Takes the next event and says whose it is.
    pub fn pop(&mut self) -> Option<(Key, u32)> {
        let (key, owner) = self.first()?;
        self.remove(owner);
        Some((key, owner))
    }

    /// Lets `owner` play anew, on all the way to the root.
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
