//! A place takes whatever its peers say: the decoders of all messages, replayed without a fuzzer.
//!
//! The fuzz target `messages` looks for such inputs; here invented ones, the same at each run, go the same way. A file
//! of its own, with one test, because it watches the panics of the whole process: the place would turn one in a
//! decoder into an error of its sender.

mod conversation;

use isles_transport::random::Random;
use std::sync::atomic::{AtomicUsize, Ordering};

const INPUTS: u64 = 1500;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Up to 120 bytes; most begin like an instruction that means something.
fn input(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::new();
    for _ in 0..1 + random.index(12) {
        bytes.push(if random.index(40) == 0 { 0xff } else { random.index(3) as u8 });
        let plain = random.index(4) == 0;
        bytes.push(if plain { random.bits() as u8 & 0x7f } else { random.bits() as u8 | 0x80 });
        for _ in 0..random.index(8) {
            bytes.push(random.bits() as u8 & [0xff, 0x3f, 0x07][random.index(3)]);
        }
    }
    bytes
}

#[test]
fn a_place_goes_on_working_whatever_its_peers_say() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |what| {
        // Relaxed is enough: one thread writes and reads it.
        PANICS.fetch_add(1, Ordering::Relaxed);
        before(what);
    }));
    let (pieces, handlers) = conversation::stock();
    assert!(pieces >= 15 && handlers >= 7, "{pieces} genuine messages for {handlers} handlers");
    for seed in 0..INPUTS {
        conversation::hold(&input(seed));
        assert_eq!(PANICS.load(Ordering::Relaxed), 0, "something panicked at the input of seed {seed}");
    }
}
