//! What the kernel takes to wake a sleeping thread on the other core.
//!
//! Its own file because it is the floor under a message to a sleeping place. It carries nothing.
//! The invariant: the sleeper is in the kernel before the clock starts; the waker leaves it the time for that.

use super::batch::median;
use super::pin::pin;
use super::say;
use crate::options::Effort;
use rustix::thread::futex;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};
use std::thread;
use std::time::{Duration, Instant};

const END: u32 = u32::MAX;

/// Long enough for the sleeper to reach the kernel and its core to go idle.
const PAUSE: Duration = Duration::from_micros(200);

#[repr(align(128))]
struct Word(AtomicU32);

/// Prints `there_and_back_us`: from before the wake until the woken thread's answer is seen.
pub fn run(effort: Effort) {
    let (call, reply) = (Word(AtomicU32::new(0)), Word(AtomicU32::new(0)));
    thread::scope(|scope| {
        scope.spawn(|| sleeper(&call, &reply));
        pin(0);
        let rounds = (effort.batch.as_micros() * effort.repetitions as u128 / PAUSE.as_micros()) as u32;
        let seconds: Vec<f64> = (1..=rounds.max(3)).map(|number| round(&call, &reply, number)).collect();
        call.0.store(END, Release); // PAIR bench.wake.call: publish
        wake(&call);
        say("there_and_back_us", median(seconds) * 1e6);
    });
}

/// The seconds from the wake to the answer.
fn round(call: &Word, reply: &Word, number: u32) -> f64 {
    let pause = Instant::now();
    while pause.elapsed() < PAUSE {}
    let start = Instant::now();
    call.0.store(number, Release); // PAIR bench.wake.call: publish
    wake(call);
    while reply.0.load(Acquire) != number {} // PAIR bench.wake.reply: observe
    start.elapsed().as_secs_f64()
}

fn sleeper(call: &Word, reply: &Word) {
    pin(1);
    let mut last = 0;
    loop {
        // An error means that the word has changed or a signal came: both are looked at below.
        let _ = futex::wait(&call.0, futex::Flags::PRIVATE, last, None);
        let seen = call.0.load(Acquire); // PAIR bench.wake.call: observe
        if seen == END {
            return;
        }
        reply.0.store(seen, Release); // PAIR bench.wake.reply: publish
        last = seen;
    }
}

fn wake(word: &Word) {
    futex::wake(&word.0, futex::Flags::PRIVATE, 1).expect("a wake of an own word succeeds");
}
