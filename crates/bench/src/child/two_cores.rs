//! Communication of two cores without Isles: the lower bounds and the plain peers of a message.
//!
//! The exchange of one cache line (a lower bound for any message), the copy of 2 MB by one core (the bound for a
//! message that is copied once), a wake-up by the kernel (the floor for a message to a sleeping place), and
//! crossbeam's bounded channels (the usual means in Rust for shared memory). Rings are in `ring`. Invariants: the copy
//! is not optimised away; the sleeper is in the kernel before the clock starts; a batch ends when its last message has
//! been taken.

use crate::child::timing::Effort;
use crate::child::timing::{median, pin, print_figure, print_version, seconds_per_step};
use crossbeam_channel::bounded;
use rustix::thread::futex;
use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

#[repr(align(128))]
struct Line(AtomicU64);

const LAST: u64 = u64::MAX;

/// Prints `half_round_trip_us`.
pub fn cache_line(effort: Effort) {
    let line = Line(AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| answer(&line));
        pin(0);
        let mut last = 0;
        let seconds = seconds_per_step(effort, |count| {
            for _ in 0..count {
                line.0.store(last + 1, Release); // PAIR bench.exchange: publish
                last += 2;
                while line.0.load(Acquire) != last {} // PAIR bench.exchange: observe
            }
        });
        line.0.store(LAST, Release); // PAIR bench.exchange: publish
        print_figure("half_round_trip_us", seconds * 1e6 / 2.0);
    });
}

/// Answers each odd number with the next even one.
fn answer(line: &Line) {
    pin(1);
    loop {
        let seen = line.0.load(Acquire); // PAIR bench.exchange: observe
        if seen == LAST {
            return;
        }
        if seen % 2 == 1 {
            line.0.store(seen + 1, Release); // PAIR bench.exchange: publish
        }
    }
}

const BYTES: usize = 2 << 20;

/// Prints `copy_gb` in 10⁹ bytes per second.
pub fn memcpy(effort: Effort) {
    pin(0);
    let (from, mut to) = (vec![1_u8; BYTES], vec![2_u8; BYTES]);
    let seconds = seconds_per_step(effort, |count| {
        for _ in 0..count {
            black_box(&mut to).copy_from_slice(black_box(&from));
        }
    });
    print_figure("copy_gb", BYTES as f64 / seconds / 1e9);
}

const END: u32 = u32::MAX;

/// Long enough for the sleeper to reach the kernel: a place with its own processor looks for work for 50 µs before it
/// sleeps, or 250 µs after short sleeps.
///
/// It is the same for places and for the bare futex: the cost of a wake grows with the time since the sleeper fell
/// asleep (on a virtual host 20 µs after 50 µs, 26 µs after 400 µs), because an idle processor sleeps ever deeper.
pub const PAUSE: Duration = Duration::from_micros(450);

/// Long enough for the sleeper's processor to sleep as well; a virtual one is then given back to its host.
pub const LONG_PAUSE: Duration = Duration::from_micros(1300);

#[repr(align(128))]
struct Word(AtomicU32);

/// Prints `there_and_back_us`, and `long_asleep_us`: from before the wake until the woken thread's answer is seen.
pub fn futex(effort: Effort) {
    let (call, reply) = (Word(AtomicU32::new(0)), Word(AtomicU32::new(0)));
    thread::scope(|scope| {
        scope.spawn(|| sleeper(&call, &reply));
        pin(0);
        let rounds = (effort.batch.as_millis() as u32 * effort.repetitions as u32).max(3);
        let mut numbers = 1..END;
        for (name, pause) in [("there_and_back_us", PAUSE), ("long_asleep_us", LONG_PAUSE)] {
            let numbers = numbers.by_ref().take(rounds as usize);
            print_figure(
                name,
                median(numbers.map(|number| round(&call, &reply, number, pause)).collect()) * 1e6,
            );
        }
        call.0.store(END, Release); // PAIR bench.wake.call: publish
        wake(&call);
    });
}

/// Busy-waits for `pause`.
pub fn keep_busy(pause: Duration) {
    let start = Instant::now();
    while start.elapsed() < pause {}
}

/// Returns the seconds from the wake to the answer.
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
        // An error means that the word has changed or a signal arrived; both are checked below.
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

/// Prints `half_round_trip_us` and `rate_million`.
pub fn crossbeam(effort: Effort) {
    print_version("crossbeam-channel");
    let (there, calls) = bounded::<u64>(64);
    let (answer, replies) = bounded::<u64>(64);
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(1);
            calls.iter().for_each(|number| answer.send(number).expect("the caller waits"));
        });
        pin(0);
        let seconds = seconds_per_step(effort, |count| {
            for number in 0..count {
                there.send(number).expect("the answerer waits");
                replies.recv().expect("the answerer answers");
            }
        });
        drop(there);
        print_figure("half_round_trip_us", seconds * 1e6 / 2.0);
    });
    print_figure("rate_million", rate(effort));
}

/// Returns the millions of messages per second, one way; zero asks for an acknowledgement of all.
fn rate(effort: Effort) -> f64 {
    let (way, messages) = bounded::<u64>(1024);
    let (all_taken, taken) = bounded::<()>(1);
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(1);
            messages
                .iter()
                .filter(|number| *number == 0)
                .for_each(|_| all_taken.send(()).expect("the sender waits"));
        });
        pin(0);
        let seconds = seconds_per_step(effort, |count| {
            for number in (0..count).rev() {
                way.send(number).expect("the taker waits");
            }
            taken.recv().expect("the taker answers");
        });
        drop(way);
        1e-6 / seconds
    })
}
