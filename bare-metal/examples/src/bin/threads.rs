//! Threads that never yield the processor, in both modes, and user-mode threads that try to access the supervisor.

#![no_std]
#![no_main]

use bare_core::thread::{self, End, user};
use bare_core::{entry, println, timer};
use core::sync::atomic::{AtomicU64, Ordering};

/// Final count of each thread in each phase.
const COUNTS: u64 = 1000;
/// Number of rounds in which each thread waits for the other's count without yielding.
const TURNS: u64 = 5;

static TURN: AtomicU64 = AtomicU64::new(0);

entry!(main);

/// Counts to `COUNTS`, then waits for its turn in a loop that never yields: only preemption lets the other run.
fn take_turns(turn: &AtomicU64, own: u64) -> i32 {
    for round in 0..TURNS {
        while turn.load(Ordering::Relaxed) != 2 * round + own {
            core::hint::spin_loop();
        }
        (0..COUNTS).for_each(|count| {
            core::hint::black_box(count);
        });
        turn.store(2 * round + own + 1, Ordering::Relaxed);
    }
    own as i32
}

fn kernel_thread(own: usize) -> i32 {
    take_turns(&TURN, own as u64)
}

fn user_thread(own: usize) -> i32 {
    take_turns(&user::words()[0], own as u64)
}

/// Writes to memory of the supervisor.
fn intruder(_: usize) -> i32 {
    TURN.store(77, Ordering::Relaxed);
    0
}

/// Overflows its stack.
fn diver(depth: usize) -> i32 {
    let room = core::hint::black_box([depth as u8; 512]);
    if depth == 0 { 0 } else { diver(depth - 1) + i32::from(core::hint::black_box(room)[0]) }
}

/// Passes a supervisor address to a system call; returns 0 if only a text of the image was printed.
fn deceiver(address: usize) -> i32 {
    i32::from(!user::print("a text of the image\n")) + i32::from(user::print_at(address, 8))
}

fn main() -> i32 {
    match run() {
        Ok(()) => 0,
        Err(error) => {
            println!("threads: {error}");
            1
        }
    }
}

fn run() -> Result<(), thread::TooManyThreads> {
    let before = timer::milliseconds();
    let pair = [thread::spawn(kernel_thread, 0)?, thread::spawn(kernel_thread, 1)?];
    assert_eq!(pair.map(thread::join), [End::Returned(0), End::Returned(1)]);
    println!("two threads in supervisor mode that never yield took {} turns each", TURNS);
    let pair = [user::spawn(user_thread, 0)?, user::spawn(user_thread, 1)?];
    assert_eq!(pair.map(thread::join), [End::Returned(0), End::Returned(1)]);
    println!("two threads in user mode that never yield took {} turns each", TURNS);
    // Turns change only by preemption, which comes from the timer.
    assert!(timer::milliseconds() - before >= TURNS, "no millisecond has passed");
    let faulty = user::spawn(intruder, 0)?;
    assert_eq!(thread::join(faulty), End::Faulted(14));
    assert_eq!(TURN.load(Ordering::Relaxed), 2 * TURNS);
    let deep = user::spawn(diver, 100)?;
    assert_eq!(thread::join(deep), End::Faulted(14));
    let refused = user::spawn(deceiver, &raw const TURN as usize)?;
    assert_eq!(thread::join(refused), End::Returned(0));
    println!("the supervisor's memory is as it was");
    Ok(())
}
