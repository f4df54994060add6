//! User mode: threads with access to their own memory, but not to devices, the chip or the supervisor.
//!
//! A user-mode thread executes and reads the text of the image, and reads and writes user memory: the stacks of such
//! threads and [`words`], which they share with each other and with the supervisor. Any other access is a page fault,
//! which ends only that thread. For all else it makes a system call, as the functions here do.

use super::call::{self, Number};
use super::{Start, THREADS_MAX, ThreadId, TooManyThreads};
use crate::machine::{self, text_end, user_memory};
use crate::stack::GuardedStack;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const USER_CODE: u64 = 24 | 3;
const USER_DATA: u64 = 32 | 3;
/// Start address of the text of an image.
const TEXT: usize = 0x10_0000;
/// Number of words shared by user-mode threads.
pub const WORDS: usize = 512;

/// User memory: whole pages.
#[repr(C, align(4096))]
struct Memory {
    words: [AtomicU64; WORDS],
    stacks: [GuardedStack; THREADS_MAX],
}

#[unsafe(link_section = ".bss.user")]
static MEMORY: Memory = Memory {
    words: [const { AtomicU64::new(0) }; WORDS],
    stacks: [const { GuardedStack::new() }; THREADS_MAX],
};

/// Maps the pages of user mode, once.
fn install() {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    if !IS_INSTALLED.swap(true, Ordering::Relaxed) {
        let is_guard = |page| MEMORY.stacks.iter().any(|stack| stack.guard() == page);
        machine::open_to_user_mode(TEXT..text_end(), user_memory(), is_guard);
        call::install();
    }
}

/// Starts a thread in user mode.
///
/// # Errors
/// There are already [`THREADS_MAX`].
pub fn spawn(function: fn(usize) -> i32, argument: usize) -> Result<ThreadId, TooManyThreads> {
    install();
    super::add(|number| Start {
        entry: run as *const () as usize,
        code: USER_CODE,
        data: USER_DATA,
        stack: MEMORY.stacks[number].top() as u64,
        function: function as usize,
        argument,
    })
}

#[expect(improper_ctypes_definitions, reason = "frames of this image are its only callers")]
extern "C" fn run(function: fn(usize) -> i32, argument: usize) -> ! {
    exit(function(argument))
}

/// Returns the words that all user-mode threads and the supervisor share; zero at the start.
pub fn words() -> &'static [AtomicU64; WORDS] {
    &MEMORY.words
}

/// Returns text or user memory at an address passed by a user-mode thread; `None` if it is neither.
pub(super) fn readable(address: usize, bytes: usize) -> Option<&'static [u8]> {
    let end = address.checked_add(bytes)?;
    let Range { start, end: stop } = user_memory();
    let is_allowed = address >= TEXT && end <= text_end() || address >= start && end <= stop;
    // NEED: a system call passes memory by its address.
    // SOUND: it is text, or user memory, which only the thread waiting for this call uses.
    is_allowed.then(|| unsafe { core::slice::from_raw_parts(address as *const u8, bytes) })
}

/// Returns user memory at an address passed by a user-mode thread; `None` if it is not user memory.
pub(super) fn writable(address: usize, bytes: usize) -> Option<&'static mut [u8]> {
    let end = address.checked_add(bytes)?;
    let Range { start, end: stop } = user_memory();
    // NEED: as above.
    // SOUND: it is user memory, which only the thread waiting for this call uses.
    (address >= start && end <= stop)
        .then(|| unsafe { core::slice::from_raw_parts_mut(address as *mut u8, bytes) })
}

/// Ends this thread with a value.
pub fn exit(value: i32) -> ! {
    loop {
        call::call(Number::Exit, [value as u32 as usize, 0, 0]);
    }
}

/// Lets other ready threads run first.
pub fn yield_now() {
    call::call(Number::Yield, [0; 3]);
}

/// Prints a text; returns `true` if this thread may read it.
pub fn print(text: &str) -> bool {
    print_at(text.as_ptr() as usize, text.len())
}

/// Prints the bytes at an address; returns `true` if this thread may read them.
pub fn print_at(address: usize, bytes: usize) -> bool {
    call::call(Number::Print, [address, bytes, 0]) != call::REFUSED
}

/// Returns the nanoseconds since boot.
pub fn nanoseconds() -> u64 {
    call::call(Number::Time, [0; 3])
}

/// Waits for the oldest message of the device with a number; returns the core and channel of its sender and its
/// length, or `None` if refused.
pub fn read(device: usize, into: &mut [u8]) -> Option<(u16, u16, usize)> {
    let result = call::call(Number::Read, [device, into.as_mut_ptr() as usize, into.len()]);
    (result != call::REFUSED).then_some((result as u16, (result >> 16) as u16, (result >> 32) as usize))
}

/// Sends a message to the peer of the device with a number; returns `true` on success.
pub fn write(device: usize, payload: &[u8]) -> bool {
    call::call(Number::Write, [device, payload.as_ptr() as usize, payload.len()]) != call::REFUSED
}
