//! A place survives any messages of its peers: tests of all decoders, without a fuzzer.
//!
//! The fuzz target `messages` searches for such inputs; this test generates them, the same ones in each run. It is a
//! separate program because it observes the panics of the whole process: the place would turn a panic of a decoder into
//! an error of the sender.

mod channels;
mod conversation;

use isles::ErrorKind;
use isles_transport::random::Random;
use isles_transport::{Class, PlaceId};
use std::collections::BTreeSet;
use std::fs::File;
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

const INPUTS: u64 = 3000;

/// Worlds with channels in which a place is hostile.
const WORLDS: u64 = 1000;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics from now on, and has nothing said any more.
fn watch_panics() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // Thousands of refusals are said there, past the harness, which keeps what macros print only.
        rustix::stdio::dup2_stderr(File::options().write(true).open("/dev/null").unwrap()).unwrap();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |what| {
            // Relaxed is enough: what counts is whether there is any, and those of a thread it sees itself.
            PANICS.fetch_add(1, Ordering::Relaxed);
            before(what);
        }));
    });
}

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

/// The head of a message of a window that place 1 made.
fn window_head(kind: u8) -> Vec<u8> {
    [&[0; 7], [kind].as_slice(), &[0; 4], &[1, 0, 0, 0], &[0; 8]].concat()
}

/// Heads that are too short, an unknown handler, an unknown finish, an answer that nobody asked for, and controls.
fn wrong_messages() -> Vec<(Class, u16, Vec<u8>)> {
    let unknown_finish = [[0; 8].as_slice(), &[0; 4], &[9; 12]].concat();
    vec![
        (Class::Data, 0, vec![1, 2, 3]),
        (Class::Data, 0, unknown_finish),
        (Class::Data, 1, vec![1, 2, 3]),
        (Class::Data, 31, Vec::new()),
        (Class::Control, 2, vec![0xff; 16]),
        (Class::Control, 3, vec![0xff; 5]),
        (Class::Control, 4, vec![0xff; 5]),
        (Class::Control, 5, vec![0xff; 2]),
        (Class::Control, 6, vec![0xff; 5]),
        (Class::Data, 7, vec![0xff; 5]),
        (Class::Control, 8, vec![0xff; 5]),
        (Class::Data, 9, vec![1]),
        (Class::Data, 10, vec![0, 0, 99]),
        (Class::Data, 10, Vec::new()),
        (Class::Control, 11, vec![0xff; 23]),
        // More messages are acknowledged than were sent; a team of a place that there is not.
        (Class::Control, 11, [[0; 15].as_slice(), &[2, 9], &[0; 7]].concat()),
        (Class::Control, 11, [[0xff; 8].as_slice(), &[0; 16]].concat()),
        // A part to serve, and the end of its service, where there is no memory for it.
        (Class::Data, 14, [window_head(17).as_slice(), &[0; 12]].concat()),
        (Class::Data, 14, [window_head(18).as_slice(), &[0; 4]].concat()),
    ]
}

#[test]
fn a_peer_that_says_what_no_sound_place_says_counts_as_dead() {
    for (class, handler, bytes) in wrong_messages() {
        let error = conversation::awaits_peer_that_says(class, handler, &bytes);
        let error = error.unwrap_or_else(|| panic!("handler {handler} takes {bytes:?}"));
        assert_eq!(*error.kind(), ErrorKind::DeadPlace(PlaceId(1)), "handler {handler}: {error}");
    }
}

#[test]
fn a_refusal_that_nobody_reads_is_one_all_the_same() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let name = "a_peer_that_says_what_no_sound_place_says_counts_as_dead";
    let mut again = Command::new(std::env::current_exe().unwrap());
    let output = again.args([name, "--exact", "--nocapture"]).stderr(writer).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn a_peer_that_hands_on_a_task_of_a_dead_place_is_sound() {
    assert!(conversation::hands_on_a_task_of_the_dead(), "the peer counts as dead");
}

#[test]
fn a_place_goes_on_working_whatever_its_peers_say() {
    watch_panics();
    let (pieces, handlers) = conversation::stock();
    assert!(pieces >= 30 && handlers >= 9, "{pieces} genuine messages for {handlers} handlers");
    for seed in 0..INPUTS {
        conversation::hold(&input(seed));
        assert_eq!(PANICS.load(Ordering::Relaxed), 0, "something panicked at the input of seed {seed}");
    }
}

#[test]
fn a_hostile_place_harms_no_channel_that_it_does_not_name() {
    watch_panics();
    let (mut taken, mut refused, mut wrote_on) = (BTreeSet::new(), 0, 0);
    for seed in 0..WORLDS {
        let held = channels::hold(seed);
        assert_eq!(PANICS.load(Ordering::Relaxed), 0, "something panicked in the world of seed {seed}");
        taken.extend(held.taken);
        refused += u32::from(held.is_ring_refused);
        wrote_on += u32::from(held.is_ring_refused && held.wrote_on);
    }
    assert_eq!(
        taken.len(),
        channels::MESSAGES,
        "the place lives after each message at least once: {taken:?}"
    );
    assert!(
        refused > 20 && wrote_on > 20,
        "a ring was refused {refused} times, and written on {wrote_on} times"
    );
}
