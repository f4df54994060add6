//! The ring against a queue of the standard library, and its limits.

#![cfg(not(loom))]

use bare_mpb::{COUNT_WORDS, Channels, Header, NotReceived, NotSent, Ring};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Words of a ring with payloads of 0 to 48 bytes.
const WORDS: usize = 16;

fn words() -> Vec<AtomicU64> {
    (0..WORDS).map(|_| AtomicU64::new(0)).collect()
}

/// Draws a number from a linear congruential generator: the same in each run.
fn draw(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn entries_come_out_as_they_went_in_over_many_turns_of_the_ring() {
    let (lock, words) = (AtomicU32::new(0), words());
    let ring = Ring::new(&lock, &words);
    let (mut model, mut state) = (VecDeque::new(), 7);
    let (mut fulls, mut empties, mut moved) = (0, 0, 0);
    for number in 0..100_000_u32 {
        if draw(&mut state).is_multiple_of(2) {
            let payload: Vec<u8> = (0..draw(&mut state) % 49).map(|at| (at as u32 ^ number) as u8).collect();
            let (core, channels) =
                ((number % 48) as u16, Channels { source: number as u16, target: (number >> 3) as u16 });
            match ring.send(core, channels, &payload) {
                Ok(()) => model.push_back((core, channels, payload)),
                Err(refused) => {
                    assert_eq!(refused, NotSent::Full);
                    let used: usize = model.iter().map(|entry| 2 + entry.2.len().div_ceil(8)).sum();
                    assert!(used + 2 + payload.len().div_ceil(8) > WORDS - COUNT_WORDS);
                    fulls += 1;
                }
            }
        } else {
            let mut into = [0; 48];
            match (ring.receive(&mut into), model.pop_front()) {
                (Ok(header), Some((source_core, channels, payload))) => {
                    let Channels { source: source_channel, target: target_channel } = channels;
                    let length = payload.len() as u32;
                    assert_eq!(header, Header { source_core, source_channel, target_channel, length });
                    assert_eq!(into[..payload.len()], payload);
                    moved += 1;
                }
                (Err(NotReceived::Empty), None) => empties += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(fulls > 1000 && empties > 1000 && moved > 10_000, "{fulls} {empties} {moved}");
}

#[test]
fn what_never_fits_is_refused_and_what_does_not_fit_the_reader_stays() {
    let (lock, words) = (AtomicU32::new(0), words());
    let ring = Ring::new(&lock, &words);
    assert_eq!(ring.longest(), 48);
    assert_eq!(ring.send(1, Channels { source: 0, target: 0 }, &[0; 49]), Err(NotSent::TooLong(48)));
    ring.send(1, Channels { source: 2, target: 3 }, &[5; 48]).unwrap();
    let header = ring.peek().unwrap();
    assert_eq!(ring.receive(&mut [0; 47]), Err(NotReceived::NoRoom(header)));
    assert_eq!(ring.receive(&mut [0; 48]), Ok(header));
    assert_eq!(ring.peek(), None);
}

#[test]
fn a_held_lock_names_its_owner() {
    let (lock, words) = (AtomicU32::new(47 + 1), words());
    assert_eq!(
        Ring::new(&lock, &words).send(1, Channels { source: 0, target: 0 }, &[]),
        Err(NotSent::Locked(47))
    );
}
