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

/// Long enough for the sleeper to reach the kernel: several times what a place looks for work before it sleeps.
pub const PAUSE: Duration = Duration::from_micros(150);

/// Long enough for the sleeper's processor to sleep as well; a virtual one is then given back to its host.
pub const LONG_PAUSE: Duration = Duration::from_millis(1);

#[repr(align(128))]
struct Word(AtomicU32);

/// Prints `there_and_back_us`, and `long_asleep_us`: from before the wake until the woken thread's answer is seen.
pub fn run(effort: Effort) {
    let (call, reply) = (Word(AtomicU32::new(0)), Word(AtomicU32::new(0)));
    thread::scope(|scope| {
        scope.spawn(|| sleeper(&call, &reply));
        pin(0);
        let rounds = (effort.batch.as_millis() as u32 * effort.repetitions as u32).max(3);
        let mut numbers = 1..END;
        for (name, pause) in [("there_and_back_us", PAUSE), ("long_asleep_us", LONG_PAUSE)] {
            let numbers = numbers.by_ref().take(rounds as usize);
            say(name, median(numbers.map(|number| round(&call, &reply, number, pause)).collect()) * 1e6);
        }
        call.0.store(END, Release); // PAIR bench.wake.call: publish
        wake(&call);
    });
}

/// Lets `pause` pass without giving the processor away.
pub fn keep_busy(pause: Duration) {
    let start = Instant::now();
    while start.elapsed() < pause {}
}

/// The seconds from the wake to the answer.
fn round(call: &Word, reply: &Word, number: u32, pause: Duration) -> f64 {
    keep_busy(pause);
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
