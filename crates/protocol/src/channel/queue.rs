//! The queue of a buffer: a ring in memory that grows.
//!
//! Like `VecDeque`, whose `push_back` is not an inline function: without that call a stream within a place carries 7 %
//! more values. Invariants: the length of `slots` is a power of two, or 0; `len` slots from `first` on hold values.

/// A queue of values.
#[derive(Clone, Debug)]
pub(super) struct ValueQueue<T> {
    slots: Vec<Option<T>>,
    first: usize,
    len: usize,
}

impl<T> ValueQueue<T> {
    /// Makes an empty queue, without memory.
    pub(super) const fn new() -> ValueQueue<T> {
        ValueQueue { slots: Vec::new(), first: 0, len: 0 }
    }

    /// Returns the number of values.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if it holds no value.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a value behind the others.
    #[inline]
    pub(super) fn push_back(&mut self, value: T) {
        if self.len == self.slots.len() {
            self.grow();
        }
        let at = self.slot(self.first + self.len);
        self.slots[at] = Some(value);
        self.len += 1;
    }

    /// Adds a value before the others.
    pub(super) fn push_front(&mut self, value: T) {
        if self.len == self.slots.len() {
            self.grow();
        }
        self.first = self.slot(self.first.wrapping_sub(1));
        self.slots[self.first] = Some(value);
        self.len += 1;
    }

    /// Removes the first value.
    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let value = self.slots[self.first].take();
        self.first = self.slot(self.first + 1);
        self.len -= 1;
        value
    }

    /// Removes all values, the first one first.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = T> {
        std::iter::from_fn(|| self.pop_front())
    }

    /// Returns the slot of a position, which may be beyond the end.
    #[inline]
    fn slot(&self, position: usize) -> usize {
        position & self.slots.len().wrapping_sub(1)
    }

    /// Doubles the memory.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let len = self.len;
        let mut slots: Vec<Option<T>> = Vec::with_capacity((2 * len).max(4));
        slots.extend(self.take_all().map(Some));
        slots.resize_with(slots.capacity().next_power_of_two(), || None);
        *self = ValueQueue { slots, first: 0, len };
    }
}

#[cfg(test)]
mod tests {
    use super::ValueQueue;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn a_queue_does_what_a_deque_does(steps in proptest::collection::vec(0_u32..8, 0..200)) {
            let (mut queue, mut deque) = (ValueQueue::new(), VecDeque::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    0..4 => {
                        queue.push_back(number);
                        deque.push_back(number);
                    }
                    4 => {
                        queue.push_front(number);
                        deque.push_front(number);
                    }
                    _ => prop_assert_eq!(queue.pop_front(), deque.pop_front()),
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (deque.len(), deque.is_empty()));
            }
            prop_assert!(queue.take_all().eq(deque));
            prop_assert!(queue.is_empty());
        }
    }
}
