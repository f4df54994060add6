//! The lock-free protocols under loom: every interleaving within the bound.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p isles-transport-shm --lib` runs these and nothing else. The ring's
//! memory is owned here, and smaller than any real one: eight grains. The model also checks that no two threads touch
//! one payload at a time, and puts stale payload into every header word that a record covers.

use super::parking;
use crate::membarrier;
use crate::parking::{Doorbell, Fencing, park, signal, wake_parked};
use crate::ring::{Consumer, Credit, GRAIN, Producer, PutError, RecordKind, RingMemory, TakeOutcome, span};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

const GRAINS: usize = 8;
const CAPACITY: u64 = GRAINS as u64 * GRAIN;
/// Two grains: the most that a record may take of this ring.
const LONG: usize = 100;

/// A ring's memory: the payload of a record lies whole in the cell of its first grain.
struct Model {
    words: Vec<AtomicU64>,
    cells: Vec<UnsafeCell<Vec<u8>>>,
    credit: Credit,
}

impl Model {
    fn new(start: u64) -> Arc<Model> {
        Arc::new(Model {
            words: (0..GRAINS).map(|_| AtomicU64::new(0)).collect(),
            cells: (0..GRAINS).map(|_| UnsafeCell::new(Vec::new())).collect(),
            credit: Credit { head: AtomicU64::new(start), starved: AtomicU32::new(0) },
        })
    }

    fn index(position: u64) -> usize {
        ((position / GRAIN) % GRAINS as u64) as usize
    }
}

impl RingMemory for Arc<Model> {
    fn capacity(&self) -> u64 {
        CAPACITY
    }

    fn word(&self, position: u64) -> &AtomicU64 {
        &self.words[Model::index(position)]
    }

    fn credit(&self) -> &Credit {
        &self.credit
    }

    fn write<R>(&self, position: u64, room: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let first = Model::index(position);
        for covered in first + 1..first + (span(room) / GRAIN) as usize {
            self.words[covered].store(u64::MAX, Ordering::Relaxed);
            self.cells[covered].with_mut(|_| ());
        }
        self.cells[first].with_mut(|payload| {
            // NEED: loom's cell lends a pointer.
            // SOUND: loom checks that nobody else has it now.
            let payload = unsafe { &mut *payload };
            payload.resize(room, 0);
            fill(payload)
        })
    }

    fn read<R>(&self, position: u64, len: usize, look: impl FnOnce(&[u8]) -> R) -> R {
        let first = Model::index(position);
        for covered in first + 1..first + (span(len) / GRAIN) as usize {
            self.cells[covered].with(|_| ());
        }
        // NEED: as above.
        // SOUND: as above.
        self.cells[first].with(|payload| look(unsafe { &(&*payload)[..len] }))
    }

    fn fetch(&self, _position: u64) {}

    fn expect(&self, _position: u64) {}

    fn reserve(&self, _from: u64, _to: u64) -> bool {
        true
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn put(producer: &Producer<Arc<Model>>, number: u16, len: usize) -> Result<(), PutError> {
    producer.put(RecordKind::Inline, number, len, |bytes| {
        bytes.fill(number as u8);
        Some(len)
    })
}

/// Takes one record, checks that it is number `number` and whole, and wakes the producer if it waits.
fn take(consumer: &Consumer<Arc<Model>>, number: u16, producer_word: &AtomicU32) -> bool {
    let taken = consumer.take(|record| {
        assert_eq!(record.handler, number);
        assert!(record.payload.iter().all(|byte| *byte == number as u8), "a torn record");
    });
    let taken = taken.expect("a header that nobody wrote");
    if taken == TakeOutcome::RecordAndStarved {
        signal(producer_word, Fencing::Both);
    }
    taken != TakeOutcome::Nothing
}

/// Runs one producer that sends records of `lens` and one consumer that takes them; both sleep when they cannot go on.
fn converse(start: u64, before: u16, lens: &'static [usize]) {
    let memory = Model::new(start);
    let producer = Producer::starting_at(memory.clone(), start);
    let consumer = Consumer::starting_at(memory, start);
    for number in 0..before {
        put(&producer, number, 8).unwrap();
    }
    let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let theirs = words.clone();
    let sender = thread::spawn(move || {
        for (number, len) in (before..).zip(lens) {
            while put(&producer, number, *len).is_err() {
                park(&theirs[0], Fencing::Both, None, || producer.may_have_room());
            }
            signal(&theirs[1], Fencing::Both);
        }
    });
    for number in 0..before + lens.len() as u16 {
        while !take(&consumer, number, &words[0]) {
            park(&words[1], Fencing::Both, None, || !consumer.is_empty());
        }
    }
    sender.join().unwrap();
}

#[test]
fn no_message_is_lost_or_torn_and_none_is_slept_through() {
    check(|| converse(0, 0, &[8, LONG, 8]));
}

#[test]
fn records_that_do_not_fit_the_end_are_whole_at_the_beginning() {
    check(|| converse(CAPACITY - GRAIN, 0, &[LONG, 8]));
}

#[test]
fn old_payload_is_never_taken_for_a_header() {
    check(|| {
        // A lap of long records leaves stale words in every second grain; short ones follow.
        let memory = Model::new(0);
        let producer = Producer::starting_at(memory.clone(), 0);
        let consumer = Consumer::starting_at(memory, 0);
        let word = AtomicU32::new(0);
        for number in 0..4 {
            put(&producer, number, LONG).unwrap_or_else(|refusal| panic!("{number}: {refusal:?}"));
            assert!(take(&consumer, number, &word));
        }
        let sender = thread::spawn(move || (4..7).for_each(|number| put(&producer, number, 8).unwrap()));
        for number in 4..7 {
            while !take(&consumer, number, &word) {
                thread::yield_now();
            }
        }
        sender.join().unwrap();
        assert!(!take(&consumer, 7, &word));
    });
}

#[test]
fn a_producer_that_waits_for_room_is_woken() {
    check(|| converse(0, 7, &[8]));
}

#[test]
fn a_producer_that_waits_again_and_again_is_woken_each_time() {
    check(|| converse(0, 6, &[LONG, 8, LONG]));
}

/// The giver runs no fence of its own: only the sleeper's barrier orders it.
fn give_to_a_sleeper_that_fences(messages: u16) {
    let memory = Model::new(0);
    let producer = Producer::starting_at(memory.clone(), 0);
    let consumer = Consumer::starting_at(memory, 0);
    let word = Arc::new(AtomicU32::new(0));
    let theirs = word.clone();
    let sender = thread::spawn(move || {
        for number in 0..messages {
            // A barrier may take effect before the message, between it and the check of the word (`signal`), and after
            // both.
            membarrier::point();
            put(&producer, number, 8).unwrap();
            signal(&theirs, Fencing::Sleeper);
        }
        membarrier::end();
    });
    let nobody = AtomicU32::new(0);
    for number in 0..messages {
        while !take(&consumer, number, &nobody) {
            park(&word, Fencing::Sleeper, None, || !consumer.is_empty());
        }
    }
    sender.join().unwrap();
}

#[test]
fn the_fence_of_the_sleeper_alone_loses_no_wake_up() {
    check(|| give_to_a_sleeper_that_fences(1));
    check(|| give_to_a_sleeper_that_fences(2));
}

#[test]
fn a_bell_is_never_slept_through() {
    check(|| {
        let bell =
            Arc::new(Doorbell { bits: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))) });
        let sent = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let word = Arc::new(AtomicU32::new(0));
        let senders: Vec<_> = (0..2)
            .map(|source| {
                let (bell, sent, word) = (bell.clone(), sent.clone(), word.clone());
                thread::spawn(move || {
                    for _ in 0..2 - source {
                        // Stands for a published record.
                        // PAIR model.sent: publish
                        sent[source].fetch_add(1, Ordering::Release);
                        parking::ring(&bell, 1, source as u32);
                        signal(&word, Fencing::Both);
                    }
                })
            })
            .collect();
        let mut seen = [0, 0];
        while seen != [2, 1] {
            let bits = parking::take(&bell, 1, 0);
            for source in 0..2 {
                if bits >> source & 1 == 1 {
                    // PAIR model.sent: observe
                    seen[source] = sent[source].load(Ordering::Acquire);
                }
            }
            if bits == 0 {
                park(&word, Fencing::Both, None, || parking::rings(&bell, 1, 1));
            }
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

#[test]
fn a_death_wakes_a_place_whose_waker_died_before_the_wake() {
    check(|| {
        let word = Arc::new(AtomicU32::new(0));
        let changes = Arc::new(AtomicU32::new(0));
        let (theirs, announced) = (word.clone(), changes.clone());
        let monitor = thread::spawn(move || {
            // The waker took the word and was killed.
            parking::take_word(&theirs);
            // PAIR model.changes: publish
            announced.fetch_add(1, Ordering::SeqCst);
            wake_parked(&theirs);
        });
        // PAIR model.changes: observe
        let changed = || changes.load(Ordering::Acquire) != 0;
        while !changed() {
            park(&word, Fencing::Both, None, changed);
        }
        monitor.join().unwrap();
    });
}
