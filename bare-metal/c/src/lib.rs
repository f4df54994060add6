//! Functions for C programs on a bare core: console, time, interrupts, sleep, exit, and number formatting.
//!
//! `include/bare.h` declares them. The rest of the C library is C, in this folder; RCCE comes from the folder `c` of
//! Isles, unmodified. Floating-point numbers are passed as bits, because Rust code for bare cores uses no SSE
//! registers.

#![no_std]

mod number;
#[cfg(feature = "threads")]
mod thread;

use bare_core::{chip, console, interrupt, program, timer};
use core::sync::atomic::{AtomicU32, Ordering};

// NEED: C programs are started by C code.
// SOUND: `system.c` defines it with this type.
unsafe extern "C" {
    /// Sets up the C library, runs `main` of the program and ends the core.
    safe fn bare_c_start() -> i32;
}

bare_core::entry!(start);

fn start() -> i32 {
    bare_c_start()
}

/// Writes bytes to the console.
///
/// # Safety
/// `text` must point to `bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bare_write(text: *const u8, bytes: usize) {
    // NEED: C passes a text as address and length.
    // SOUND: the caller guarantees these bytes.
    console::write(unsafe { core::slice::from_raw_parts(text, bytes) });
}

/// Writes a number as `printf` does, truncated to `room` characters, and returns their number.
///
/// # Safety
/// `text` must point to `room` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bare_format_double(
    bits: u64,
    conversion: u8,
    precision: u32,
    is_alternate: bool,
    text: *mut u8,
    room: usize,
) -> usize {
    // NEED: C passes memory as address and length.
    // SOUND: the caller guarantees the memory, and nothing else uses it during the call.
    let text = unsafe { core::slice::from_raw_parts_mut(text, room) };
    number::format(f64::from_bits(bits), conversion, precision as usize, is_alternate, text)
}

/// Ends this core.
#[unsafe(no_mangle)]
pub extern "C" fn bare_exit(code: i32) -> ! {
    program::exit(code)
}

/// Returns the nanoseconds since boot.
#[unsafe(no_mangle)]
pub extern "C" fn bare_nanoseconds() -> u64 {
    timer::nanoseconds()
}

/// Returns the milliseconds counted by the timer.
#[unsafe(no_mangle)]
pub extern "C" fn bare_milliseconds() -> u64 {
    timer::milliseconds()
}

/// Sleeps for at least that many milliseconds; interrupts are handled meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn bare_sleep(milliseconds: u32) {
    timer::sleep_milliseconds(milliseconds.into());
}

/// Sleeps until the next interrupt; that of the timer comes within a millisecond. Ends the core with a line if another
/// core of the program has failed.
#[unsafe(no_mangle)]
pub extern "C" fn bare_wait() {
    if let Some(stopped) = chip::stopped_core(chip::Needed::Any) {
        // One more wait: the awaited value may have arrived before the other core stopped.
        if WAITS_WITHOUT_HOPE.fetch_add(1, Ordering::Relaxed) > 2 {
            bare_core::println!("{stopped}");
            program::exit(1);
        }
    } else {
        WAITS_WITHOUT_HOPE.store(0, Ordering::Relaxed);
    }
    timer::sleep_milliseconds(1);
}

static WAITS_WITHOUT_HOPE: AtomicU32 = AtomicU32::new(0);

/// Returns the number of this core.
#[unsafe(no_mangle)]
pub extern "C" fn bare_core() -> i32 {
    chip::core() as i32
}

/// Returns the number of cores of the program.
#[unsafe(no_mangle)]
pub extern "C" fn bare_ranks() -> i32 {
    program::ranks() as i32
}

/// Returns the rank of this core.
#[unsafe(no_mangle)]
pub extern "C" fn bare_rank() -> i32 {
    program::rank() as i32
}

/// Returns the core of a rank, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn bare_core_of(rank: i32) -> i32 {
    if (0..bare_ranks()).contains(&rank) { program::core_of(rank as usize) as i32 } else { -1 }
}

/// Returns the rate of the tile in the low half and that of the mesh in the high half, in MHz.
#[unsafe(no_mangle)]
pub extern "C" fn bare_rates() -> u32 {
    let (tile, mesh) = chip::rates_mhz();
    tile | mesh << 16
}

/// Returns the index of a core of the chip, if the number is valid.
fn core_of_chip(number: i32) -> Option<usize> {
    usize::try_from(number).ok().filter(|core| *core < bare_core::map::CORES)
}

/// Takes the lock register of a core, and waits while it is held. Returns 0, or -1 if there is no such core or a core
/// of the program has stopped.
#[unsafe(no_mangle)]
pub extern "C" fn bare_acquire_lock(core: i32) -> i32 {
    core_of_chip(core).and_then(|core| chip::acquire_lock(core).ok()).map_or(-1, |()| 0)
}

/// Takes the lock register of a core if it is free. Returns 0, or -1 if it is held or there is no such core.
#[unsafe(no_mangle)]
pub extern "C" fn bare_try_lock(core: i32) -> i32 {
    core_of_chip(core).filter(|core| chip::try_lock(*core)).map_or(-1, |_| 0)
}

/// Releases the lock register of a core. Returns 0, or -1 if there is no such core.
#[unsafe(no_mangle)]
pub extern "C" fn bare_release_lock(core: i32) -> i32 {
    core_of_chip(core).map_or(-1, |core| {
        chip::release_lock(core);
        0
    })
}

fn pin(number: i32) -> Option<interrupt::Pin> {
    [interrupt::Pin::Lint0, interrupt::Pin::Lint1].get(usize::try_from(number).ok()?).copied()
}

/// Raises a pin of a core: 0 is LINT0, 1 is LINT1. Returns 0, or -1 if there is no such core or pin.
#[unsafe(no_mangle)]
pub extern "C" fn bare_interrupt_core(core: i32, number: i32) -> i32 {
    core_of_chip(core).zip(pin(number)).map_or(-1, |(core, pin)| {
        chip::interrupt_core(core, pin);
        0
    })
}

/// Sets the handler of a pin of this core. Returns 0, or -1 if there is no such pin.
#[unsafe(no_mangle)]
pub extern "C" fn bare_set_handler(number: i32, handler: extern "C" fn()) -> i32 {
    pin(number).map_or(-1, |pin| {
        interrupt::set_handler(pin, handler);
        0
    })
}

/// Stores the address of the argument text, and returns the number of arguments.
///
/// # Safety
/// `text` must be the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bare_arguments(text: *mut usize) -> i32 {
    let (count, address) = program::arguments();
    // NEED: C returns a second result through an address.
    // SOUND: the caller guarantees that it is the address of a pointer.
    unsafe { *text = address };
    count as i32
}

/// Stores address and length of the program's shared memory.
///
/// # Safety
/// `bytes` must be the address of a 64-bit number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bare_shared_memory(bytes: *mut u64) -> usize {
    let (address, length) = program::shared_memory();
    // NEED: as above.
    // SOUND: as above.
    unsafe { *bytes = length as u64 };
    address
}

/// Returns the address of the memory shared by libraries of the program: 124 KiB, zero at the start.
#[unsafe(no_mangle)]
pub extern "C" fn bare_library_area() -> usize {
    program::library_area()
}

/// Returns the address of the message buffers by rank, 8 KiB each.
#[unsafe(no_mangle)]
pub extern "C" fn bare_buffers() -> usize {
    bare_core::map::RANK_BUFFERS_ADDRESS
}
