//! The queue of events to come: at most one of each owner.
//!
//! A tournament: a tree over all owners whose every node holds the earliest of its four children's events, so the
//! root is the next one. An event that comes, moves or goes plays again on its way to the root: three comparisons a
//! level, whose outcome needs no branch, within one line of the host's caches. There is no list for events of the
//! present moment: every turn of a place and every transfer takes time, so none arises.
//! Invariant: a node's entry is the least of the entries of its children.

use super::Key;

/// What stands at a node: a key whose last bits, the sequence number, are replaced by the owner's number. One owner has
/// one event here, so that number never decides, and what remains differs between owners.
type Entry = u128;

/// The bits of an entry that are the owner.
const OWNER: Entry = u32::MAX as Entry;

/// After all events.
const NOBODY: Entry = Entry::MAX;

/// The children of one node.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Four([Entry; 4]);

/// The next event of each owner, in the order of their keys.
pub struct Queue {
    /// The children of each node that has some. Node 0 is the root, the children of node `n` are `4 n + 1` and the next
    /// three; nodes from the number of these fours on are the owners.
    fours: Vec<Four>,
    /// What stands at the root.
    root: Entry,
    /// The keys as they were given, by owner.
    keys: Vec<Key>,
}

impl Queue {
    /// No event of any of so many owners.
    pub fn new(owners: usize) -> Queue {
        let fours = vec![Four([NOBODY; 4]); owners.saturating_sub(1).div_ceil(3)];
        Queue { fours, root: NOBODY, keys: vec![Key::NEVER; owners] }
    }

    /// Gives `owner` the event `key`, which is of that owner, instead of the one that it has, if it has one.
    #[inline]
    pub fn set(&mut self, owner: u32, key: Key) {
        self.keys[owner as usize] = key;
        self.play(owner, key.bits() & !OWNER | Entry::from(owner));
    }

    /// Takes the event of `owner` out, if it has one.
    pub fn remove(&mut self, owner: u32) -> Option<Key> {
        let key = self.key_of(owner)?;
        self.keys[owner as usize] = Key::NEVER;
        self.play(owner, NOBODY);
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
        let owner = self.root as u32;
        (self.root != NOBODY).then(|| (self.keys[owner as usize], owner))
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
            let Four(four) = &mut self.fours[above];
            four[side] = entry;
            // Taken out by its place, and that by shifts: of a choice between two values the compiler makes a branch.
            let (first, second) = (u8::from(four[1] < four[0]), u8::from(four[3] < four[2]));
            let is_second = u8::from(four[2 + usize::from(second)] < four[usize::from(first)]);
            let within = (second << 1 | first) >> is_second & 1;
            entry = four[usize::from(is_second << 1 | within)];
            node = above;
        }
        self.root = entry;
    }
}
