//! The queue of events to come: at most one of each owner.
//!
//! A tournament: a binary tree over all owners whose every node holds the earlier of its two children's events, so the
//! root is the next one. An event that comes, moves or goes plays again on its way to the root: as many comparisons as
//! the tree is high, whose outcome needs no branch. There is no list for events of the present moment: every turn of a
//! place and every transfer takes time, so none arises.
//! Invariant: a node's key is the least of the keys of its children.

use super::Key;

#[derive(Clone, Copy)]
struct Node {
    key: Key,
    owner: u32,
}

/// The next event of each owner, in the order of their keys.
pub struct Queue {
    /// Node 1 is the root, those of node `n` are `2 n` and `2 n + 1`; the second half are the owners.
    nodes: Vec<Node>,
}

impl Queue {
    /// No event of any of so many owners.
    pub fn new(owners: usize) -> Queue {
        let nobody = Node { key: Key::NEVER, owner: 0 };
        Queue { nodes: vec![nobody; 2 * owners.next_power_of_two()] }
    }

    /// Gives `owner` the event `key`, instead of the one that it has, if it has one.
    #[inline]
    pub fn set(&mut self, owner: u32, key: Key) {
        let mut index = self.leaf(owner);
        let mut node = Node { key, owner };
        self.nodes[index] = node;
        while index > 1 {
            let other = self.nodes[index ^ 1];
            node = if other.key < node.key { other } else { node };
            index /= 2;
            self.nodes[index] = node;
        }
    }

    /// Takes the event of `owner` out, if it has one.
    pub fn remove(&mut self, owner: u32) -> Option<Key> {
        let key = self.key_of(owner)?;
        self.set(owner, Key::NEVER);
        Some(key)
    }

    /// The event of `owner`, if it has one.
    #[inline]
    pub fn key_of(&self, owner: u32) -> Option<Key> {
        Some(self.nodes[self.leaf(owner)].key).filter(|key| *key != Key::NEVER)
    }

    /// The next event and whose it is.
    #[inline]
    pub fn first(&self) -> Option<(Key, u32)> {
        let Node { key, owner } = self.nodes[1];
        (key != Key::NEVER).then_some((key, owner))
    }

    /// Takes the next event and says whose it is.
    pub fn pop(&mut self) -> Option<(Key, u32)> {
        let (key, owner) = self.first()?;
        self.set(owner, Key::NEVER);
        Some((key, owner))
    }

    fn leaf(&self, owner: u32) -> usize {
        let owners = self.nodes.len() / 2;
        assert!((owner as usize) < owners, "there is no owner {owner}");
        owners + owner as usize
    }
}
