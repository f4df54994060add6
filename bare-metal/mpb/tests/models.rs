//! All interleavings of two writers and a reader on one message buffer: nothing is lost, duplicated or torn.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p bare-mpb --test models`.

#![cfg(loom)]

use bare_mpb::{COUNT_WORDS, Channels, HEADER_WORDS, NotReceived, NotSent, Ring};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64};
use loom::thread;

/// A lock and words for entries with a payload of four bytes.
struct Buffer {
    lock: AtomicU32,
    words: Vec<AtomicU64>,
}

impl Buffer {
    fn new(entries: usize) -> Arc<Buffer> {
        let words = COUNT_WORDS + entries * (HEADER_WORDS + 1);
        Arc::new(Buffer { lock: AtomicU32::new(0), words: (0..words).map(|_| AtomicU64::new(0)).collect() })
    }

    fn ring(&self) -> Ring<'_> {
        Ring::new(&self.lock, &self.words)
    }
}

/// Tries to send `count` numbered entries of `core`, each once; returns the numbers of those accepted.
fn send(buffer: &Buffer, core: u16, count: u8) -> Vec<u8> {
    let is_taken = |number: &u8| {
        let payload = [core as u8, *number, !number, 0x5a];
        let sent = buffer.ring().send(core, Channels { source: core, target: 9 }, &payload);
        assert!(matches!(sent, Ok(()) | Err(NotSent::Full | NotSent::Locked(1 | 2))), "{sent:?}");
        sent.is_ok()
    };
    (0..count).filter(is_taken).collect()
}

/// Tries to receive `count` times; checks each entry, and adds its number to those of its core.
fn receive(buffer: &Buffer, count: u8, received: &mut [Vec<u8>; 3]) {
    for _ in 0..count {
        let mut payload = [0; 4];
        match buffer.ring().receive(&mut payload) {
            Ok(header) => {
                let (core, number) = (header.source_core, payload[1]);
                assert_eq!((header.source_channel, header.target_channel, header.length), (core, 9, 4));
                assert_eq!(payload, [core as u8, number, !number, 0x5a]);
                received[usize::from(core)].push(number);
            }
            Err(refused) => assert_eq!(refused, NotReceived::Empty),
        }
    }
}

/// Runs two writers and a reader at once; the rest is read at the end, and must complete the accepted entries in
/// order.
fn check(entries: usize, sends: [u8; 2], receives: u8) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let buffer = Buffer::new(entries);
        let [first, second] = [1, 2].map(|core: u16| {
            let buffer = buffer.clone();
            thread::spawn(move || send(&buffer, core, sends[usize::from(core) - 1]))
        });
        let reader = thread::spawn({
            let buffer = buffer.clone();
            move || {
                let mut received = [const { Vec::new() }; 3];
                receive(&buffer, receives, &mut received);
                received
            }
        });
        let taken = [Vec::new(), first.join().unwrap(), second.join().unwrap()];
        let mut received = reader.join().unwrap();
        receive(&buffer, sends[0] + sends[1], &mut received);
        assert_eq!(buffer.ring().peek(), None);
        assert_eq!(received, taken);
    });
}

#[test]
fn two_writers_in_a_ring_with_room_lose_and_double_nothing() {
    check(3, [2, 1], 2);
}

#[test]
fn two_writers_in_a_ring_that_is_full_lose_and_double_nothing() {
    check(1, [2, 2], 2);
}
