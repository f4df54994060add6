//! The queue of events to come.
//!
//! A heap with four children a node (the top levels share cache lines) of keys and slots, beside a slab that holds what
//! the events carry. Cancelling empties the slot and leaves the heap alone; a popped entry whose slot has moved on to
//! another generation is skipped. There is no list for events of the present moment: every turn of a place and every
//! transfer takes time, so none arises.
//! Invariant: each heap entry's key is not above those of its children.

use super::Key;

/// Children of a heap node.
const CHILDREN: usize = 4;

/// The right to cancel one event; of no use once it has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    slot: u32,
    generation: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    ticket: Ticket,
}

struct Slot<T> {
    generation: u32,
    body: Option<T>,
}

/// Events in the order of their keys.
pub struct Queue<T> {
    heap: Vec<Entry>,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[cfg(test)]
impl Ticket {
    pub(super) fn slot_number(self) -> u32 {
        self.slot
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { heap: Vec::new(), slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Queue<T> {
    /// Adds an event.
    pub fn push(&mut self, key: Key, body: T) -> Ticket {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, body: None });
            (self.slots.len() - 1) as u32
        });
        let place = &mut self.slots[slot as usize];
        place.body = Some(body);
        let ticket = Ticket { slot, generation: place.generation };
        self.heap.push(Entry { key, ticket });
        self.rise(self.heap.len() - 1);
        ticket
    }

    /// Takes an event out, if it has not happened yet.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<T> {
        let slot = &mut self.slots[ticket.slot as usize];
        if slot.generation != ticket.generation {
            return None;
        }
        let body = slot.body.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(ticket.slot);
        Some(body)
    }

    /// The key of the next event.
    pub fn next_key(&mut self) -> Option<Key> {
        while let Some(first) = self.heap.first() {
            if self.slots[first.ticket.slot as usize].generation == first.ticket.generation {
                return Some(first.key);
            }
            self.remove_first();
        }
        None
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Key, T)> {
        let key = self.next_key()?;
        let ticket = self.remove_first()?;
        self.cancel(ticket).map(|body| (key, body))
    }

    fn remove_first(&mut self) -> Option<Ticket> {
        let last = self.heap.pop()?;
        let Some(first) = self.heap.first_mut() else { return Some(last.ticket) };
        let removed = std::mem::replace(first, last).ticket;
        self.sink();
        Some(removed)
    }

    fn rise(&mut self, mut index: usize) {
        while index > 0 {
            let parent = (index - 1) / CHILDREN;
            if self.heap[parent].key <= self.heap[index].key {
                return;
            }
            self.heap.swap(parent, index);
            index = parent;
        }
    }

    fn sink(&mut self) {
        let mut index = 0;
        loop {
            let first = index * CHILDREN + 1;
            let mut children = first..(first + CHILDREN).min(self.heap.len());
            let Some(mut least) = children.next() else { return };
            for child in children {
                if self.heap[child].key < self.heap[least].key {
                    least = child;
                }
            }
            if self.heap[index].key <= self.heap[least].key {
                return;
            }
            self.heap.swap(index, least);
            index = least;
        }
    }
}
