//! Measures Xipx devices between threads, as in figure 4 of the paper on BareMichael.
//!
//! `xipx PATTERN [BYTES [ROUNDS [THREADS [MODE]]]]`, with the pattern `ping-pong` or `ping-ping`, threads in `kernel`
//! or `user` mode, which detect a message by `poll` or `interrupt`. With three cores it is two-to-one: two threads of
//! rank 0, each with its own device, exchange messages with one partner each at the same time. It prints the time of
//! half a round, the median of 21 batches of each thread, and the bandwidth of rank 0: bytes in and out in that time.

#![no_std]
#![no_main]

use bare_core::device::{Device, Mode, NotOpened};
use bare_core::message::LONGEST;
use bare_core::thread::{self, End, TooManyThreads, user};
use bare_core::{chip, entry, println, program, timer};
use core::fmt;
use core::sync::atomic::Ordering;

const BATCHES: usize = 21;
const ROUNDS_MAX: usize = 100_000;

entry!(main);

/// Work of a thread, in a form that fits into its argument.
#[derive(Clone, Copy)]
struct Exchange {
    /// Device of the thread, and the location of its times.
    device: usize,
    bytes: usize,
    rounds: usize,
    is_ping_ping: bool,
    is_first: bool,
}

impl Exchange {
    fn pack(self) -> usize {
        let flags = usize::from(self.is_ping_ping) | usize::from(self.is_first) << 1;
        self.device | self.bytes << 8 | self.rounds << 24 | flags << 48
    }

    fn unpack(argument: usize) -> Exchange {
        Exchange {
            device: argument & 0xff,
            bytes: argument >> 8 & 0xffff,
            rounds: argument >> 24 & 0xff_ffff,
            is_ping_ping: argument >> 48 & 1 == 1,
            is_first: argument >> 49 & 1 == 1,
        }
    }
}

/// Calls of a thread, in its mode.
trait Calls {
    /// Returns the bytes of the message, or `None` if the call was refused.
    fn read(device: usize, into: &mut [u8]) -> Option<usize>;
    fn write(device: usize, payload: &[u8]) -> Option<()>;
    fn nanoseconds() -> u64;
}

struct Kernel;
struct User;

impl Calls for Kernel {
    fn read(device: usize, into: &mut [u8]) -> Option<usize> {
        Device::of_number(device)?.read(into).ok().map(|header| header.length as usize)
    }

    fn write(device: usize, payload: &[u8]) -> Option<()> {
        Device::of_number(device)?.write(payload).ok()
    }

    fn nanoseconds() -> u64 {
        timer::nanoseconds()
    }
}

impl Calls for User {
    fn read(device: usize, into: &mut [u8]) -> Option<usize> {
        user::read(device, into).map(|(_, _, bytes)| bytes)
    }

    fn write(device: usize, payload: &[u8]) -> Option<()> {
        user::write(device, payload).then_some(())
    }

    fn nanoseconds() -> u64 {
        user::nanoseconds()
    }
}

/// Runs all batches; returns 0, or 1 if a message was refused, 2 if one was wrong.
fn exchange<C: Calls>(argument: usize) -> i32 {
    let of = Exchange::unpack(argument);
    let (mut sent, mut memory) = ([0; LONGEST], [0; LONGEST]);
    for batch in 0..BATCHES {
        let begin = C::nanoseconds();
        for round in 0..of.rounds {
            sent[0] = round as u8;
            let payload = &sent[..of.bytes];
            if (of.is_ping_ping || of.is_first) && C::write(of.device, payload).is_none() {
                return 1;
            }
            let Some(bytes) = C::read(of.device, &mut memory) else { return 1 };
            if bytes != of.bytes || memory[0] != round as u8 {
                return 2;
            }
            if !of.is_ping_ping && !of.is_first && C::write(of.device, payload).is_none() {
                return 1;
            }
        }
        let time = C::nanoseconds() - begin;
        user::words()[of.device * BATCHES + batch].store(time, Ordering::Relaxed);
    }
    0
}

/// Reason why there is no measurement.
enum Failure {
    Device(NotOpened),
    Thread(TooManyThreads),
    Stopped(chip::StoppedCore),
    Ended(End),
}

impl fmt::Display for Failure {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Device(error) => error.fmt(text),
            Failure::Thread(error) => error.fmt(text),
            Failure::Stopped(error) => error.fmt(text),
            Failure::Ended(end) => write!(text, "a thread has ended with {end:?}"),
        }
    }
}

fn main() -> i32 {
    let word = |at, otherwise| program::argument(at).unwrap_or(otherwise);
    let number = |at, otherwise| program::argument(at).map_or(Some(otherwise), |text| text.parse().ok());
    let (pattern, threads, mode) = (word(1, "ping-pong"), word(4, "kernel"), word(5, "poll"));
    let (bytes, rounds) = (number(2, 32).unwrap_or(0), number(3, 200).unwrap_or(0));
    let is_known = ["ping-pong", "ping-ping"].contains(&pattern)
        && ["kernel", "user"].contains(&threads)
        && ["poll", "interrupt"].contains(&mode);
    if !is_known
        || !(1..=LONGEST).contains(&bytes)
        || !(1..=ROUNDS_MAX).contains(&rounds)
        || !(2..=3).contains(&program::ranks())
    {
        println!(
            "xipx: {} cores, {pattern}, {bytes} B, {rounds} rounds, {threads}, {mode}; allowed: 2 or 3 cores, \
             ping-pong or ping-ping, 1 to {LONGEST} B, 1 to {ROUNDS_MAX} rounds, kernel or user, poll or interrupt",
            program::ranks()
        );
        return 2;
    }
    let of = Exchange {
        device: 0,
        bytes,
        rounds,
        is_ping_ping: pattern == "ping-ping",
        is_first: program::rank() == 0,
    };
    match measure(of, threads == "user", if mode == "poll" { Mode::Poll } else { Mode::Interrupt }) {
        Ok(megabytes) if program::rank() == 0 => {
            let partners = program::ranks() - 1;
            let half_round = half_round(0, rounds);
            println!(
                "{pattern}, {threads} threads, {mode}, {partners} to one: {bytes} bytes {half_round} ns {megabytes} MB/s"
            );
            0
        }
        Ok(_) => 0,
        Err(failure) => {
            println!("xipx: {failure}");
            1
        }
    }
}

/// Opens the devices, runs their threads, and returns the bandwidth of this core in MB/s.
fn measure(of: Exchange, is_user: bool, mode: Mode) -> Result<u64, Failure> {
    let rank = program::rank();
    let partners = if rank == 0 { 1..program::ranks() } else { 0..1 };
    let mut threads = [None; 2];
    let count = partners.len();
    for partner in partners {
        // The channel of an exchange is the number of its core other than rank 0.
        let channel = partner.max(rank) as u16;
        Device::open(channel, partner, channel, mode).map_err(Failure::Device)?;
    }
    program::barrier().map_err(Failure::Stopped)?;
    for (device, thread) in threads.iter_mut().enumerate().take(count) {
        let argument = Exchange { device, ..of }.pack();
        let started = if is_user {
            user::spawn(exchange::<User>, argument)
        } else {
            thread::spawn(exchange::<Kernel>, argument)
        };
        *thread = Some(started.map_err(Failure::Thread)?);
    }
    let mut megabytes = 0;
    for thread in threads.into_iter().flatten() {
        match thread::join(thread) {
            End::Returned(0) => {}
            end => return Err(Failure::Ended(end)),
        }
    }
    for device in 0..count {
        // In half a round of either pattern, one message is sent or received on average.
        megabytes += of.bytes as u64 * 1000 / half_round(device, of.rounds);
    }
    Ok(megabytes)
}

/// Returns the nanoseconds of half a round of a device, the median of its batches.
fn half_round(device: usize, rounds: usize) -> u64 {
    let mut times = [0; BATCHES];
    for (time, word) in times.iter_mut().zip(&user::words()[device * BATCHES..]) {
        *time = word.load(Ordering::Relaxed);
    }
    times.sort_unstable();
    (times[BATCHES / 2] / (2 * rounds as u64)).max(1)
}
