//! The queue of events to come: at most one of each owner.
//!
//! A tournament: a binary tree over all owners whose every node holds the earlier of its two children's events, so the
//! root is the next one. An event that comes, moves or goes plays again on its way to the root: as many comparisons as
//! the tree is high, whose outcome needs no branch. There is no list for events of the present moment: every turn of a
//! place and every transfer takes time, so none arises.
//! Invariant: a node's entry is the least of the entries of its children.

use super::Key;

/// What stands at a node: a key whose last bits, the sequence number, are replaced by the owner's number. One owner has
/// one event here, so that number never decides, and what remains differs between owners.
type Entry = u128;

/// The bits of an entry that are the owner.
const OWNER: Entry = u32::MAX as Entry;

/// After all events.
const NOBODY: Entry = Entry::MAX;

/// The next event of each owner, in the order of their keys.
pub struct Queue {
    /// The children of each node. Node 1 is the root, the children of node `n` are `2 n` and `2 n + 1`; nodes from the
    /// number of these pairs on are the owners. Pair 0 holds the root beside nothing.
    pairs: Vec<[Entry; 2]>,
    /// The keys as they were given, by owner.
    keys: Vec<Key>,
}

impl Queue {
    /// No event of any of so many owners.
    pub fn new(owners: usize) -> Queue {
        Queue { pairs: vec![[NOBODY; 2]; owners.next_power_of_two()], keys: vec![Key::NEVER; owners] }
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
        let root = self.pairs[0][1];
        let owner = root as u32;
        (root != NOBODY).then(|| (self.keys[owner as usize], owner))
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
        let mut node = self.pairs.len() + owner as usize;
        while node > 0 {
            let pair = &mut self.pairs[node / 2];
            let side = node % 2;
            pair[side] = entry;
            // Taken out by its place: of a choice between two values the compiler makes a branch.
            entry = pair[side ^ usize::from(pair[1 - side] < entry)];
            node /= 2;
        }
    }
}
