//! Plain single-producer rings: the simplest queues that two cores can share.
//!
//! Slots are 64 bytes. In the index ring, head and tail are counters on separate cache lines and each side caches the
//! other's last seen value; a message costs two lines. In the marked ring each slot carries its own number, so a
//! message costs one line. Neither has wake-ups, classes or checks, whose cost the comparison shows. Invariant: only
//! the producer stores `tail` and slots, only the consumer `head`; both count from creation.

use crate::child::timing::Effort;
use crate::child::timing::{pin, print_figure, seconds_per_step};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;

const SLOTS: u64 = 1024;
const END: u64 = u64::MAX;

#[repr(align(128))]
struct Index(AtomicU64);

/// Word 0 is the message; word 1 is used only by the marked ring: the number of the message, from 1.
#[repr(align(64))]
struct RingSlot([AtomicU64; 8]);

struct Ring {
    /// Slots taken since creation; only the consumer stores.
    head: Index,
    /// Slots filled since creation; only the producer of the index ring stores.
    tail: Index,
    slots: Box<[RingSlot]>,
}

/// One side of a ring, on its own cache lines: two threads write to both sides at each push and pop.
#[repr(align(128))]
struct RingSide<'a> {
    ring: &'a Ring,
    /// This side's counter.
    own: u64,
    /// The last seen value of the other side's counter.
    seen: u64,
}

/// Measures the index ring. Prints `half_round_trip_us` and `rate_million` of messages of 8 bytes.
pub fn index(effort: Effort) {
    let (there, back, way) = (Ring::new(), Ring::new(), Ring::new());
    let (mut out, mut calls, mut answers, mut replies) =
        (there.side(), there.side(), back.side(), back.side());
    let half = half_round_trip(
        effort,
        |number| out.push(number),
        || replies.pop(),
        || calls.pop(),
        |number| answers.push(number),
    );
    print_figure("half_round_trip_us", half);
    let (mut out, mut messages) = (way.side(), way.side());
    print_figure("rate_million", rate(effort, |number| out.push(number), || messages.pop()));
}

/// Measures the marked ring. Prints the same.
pub fn marked(effort: Effort) {
    let (there, back, way) = (Ring::new(), Ring::new(), Ring::new());
    let (mut out, mut calls, mut answers, mut replies) =
        (there.side(), there.side(), back.side(), back.side());
    let half = half_round_trip(
        effort,
        |number| out.push_marked(number),
        || replies.pop_marked(),
        || calls.pop_marked(),
        |number| answers.push_marked(number),
    );
    print_figure("half_round_trip_us", half);
    let (mut out, mut messages) = (way.side(), way.side());
    print_figure("rate_million", rate(effort, |number| out.push_marked(number), || messages.pop_marked()));
}

/// Returns the microseconds of half a round trip between this thread, which sends calls and receives answers, and
/// another one, which answers them.
fn half_round_trip(
    effort: Effort,
    mut send_call: impl FnMut(u64),
    mut receive_answer: impl FnMut() -> u64,
    mut receive_call: impl FnMut() -> u64 + Send,
    mut send_answer: impl FnMut(u64) + Send,
) -> f64 {
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(1);
            loop {
                match receive_call() {
                    END => return,
                    number => send_answer(number),
                }
            }
        });
        pin(0);
        let seconds = seconds_per_step(effort, |count| {
            for number in 0..count {
                send_call(number);
                receive_answer();
            }
        });
        send_call(END);
        seconds * 1e6 / 2.0
    })
}

/// Returns the millions of messages per second, one way; a batch ends when the other thread reports that it took
/// number 0.
fn rate(effort: Effort, mut push: impl FnMut(u64), mut pop: impl FnMut() -> u64 + Send) -> f64 {
    let batches_taken = &Index(AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(1);
            loop {
                match pop() {
                    END => return,
                    0 => batches_taken.0.fetch_add(1, Release), // PAIR bench.ring.batch: publish
                    _ => continue,
                };
            }
        });
        pin(0);
        let mut batches = 0;
        let seconds = seconds_per_step(effort, |count| {
            (0..count).rev().for_each(&mut push);
            batches += 1;
            while batches_taken.0.load(Acquire) != batches {} // PAIR bench.ring.batch: observe
        });
        push(END);
        1e-6 / seconds
    })
}

impl Ring {
    fn new() -> Ring {
        let slots = (0..SLOTS).map(|_| RingSlot(Default::default())).collect();
        Ring { head: Index(AtomicU64::new(0)), tail: Index(AtomicU64::new(0)), slots }
    }

    /// Returns the initial view of one side.
    fn side(&self) -> RingSide<'_> {
        RingSide { ring: self, own: 0, seen: 0 }
    }

    fn slot(&self, number: u64) -> &RingSlot {
        &self.slots[(number % SLOTS) as usize]
    }
}

impl RingSide<'_> {
    fn wait_for_room(&mut self) {
        while self.own - self.seen == SLOTS {
            self.seen = self.ring.head.0.load(Acquire); // PAIR bench.ring.head: observe
        }
    }

    fn push(&mut self, number: u64) {
        self.wait_for_room();
        self.ring.slot(self.own).0[0].store(number, Relaxed); // `tail` publishes it
        self.own += 1;
        self.ring.tail.0.store(self.own, Release); // PAIR bench.ring.tail: publish
    }

    fn pop(&mut self) -> u64 {
        while self.own == self.seen {
            self.seen = self.ring.tail.0.load(Acquire); // PAIR bench.ring.tail: observe
        }
        let number = self.ring.slot(self.own).0[0].load(Relaxed); // `tail` was observed
        self.own += 1;
        self.ring.head.0.store(self.own, Release); // PAIR bench.ring.head: publish
        number
    }

    fn push_marked(&mut self, number: u64) {
        self.wait_for_room();
        let slot = self.ring.slot(self.own);
        slot.0[0].store(number, Relaxed); // the mark publishes it
        self.own += 1;
        slot.0[1].store(self.own, Release); // PAIR bench.ring.mark: publish
    }

    fn pop_marked(&mut self) -> u64 {
        let slot = self.ring.slot(self.own);
        self.own += 1;
        while slot.0[1].load(Acquire) != self.own {} // PAIR bench.ring.mark: observe
        let number = slot.0[0].load(Relaxed); // the mark was observed
        self.ring.head.0.store(self.own, Release); // PAIR bench.ring.head: publish
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_pushed_is_popped_in_order_round_the_ring() {
        let (ring, marked) = (Ring::new(), Ring::new());
        let count = 5 * SLOTS + 3;
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut plain, mut with_marks) = (ring.side(), marked.side());
                for number in 0..count {
                    plain.push(number);
                    with_marks.push_marked(number);
                }
            });
            let (mut plain, mut with_marks) = (ring.side(), marked.side());
            assert!((0..count).all(|number| plain.pop() == number && with_marks.pop_marked() == number));
        });
    }
}
