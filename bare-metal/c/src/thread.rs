//! Threads and devices for C programs; `include/bare.h` declares them.
//!
//! Threads and devices are identified by numbers. An invalid number or a refusal returns -1 to the caller and never
//! stops the core. The RCCE library may be used by one thread of a core only; `malloc` and `printf` by all.

use bare_core::device::{Device, Mode};
use bare_core::thread::{self, End, ThreadId};

fn thread_of(number: i32) -> Option<ThreadId> {
    ThreadId::of_number(usize::try_from(number).ok()?)
}

fn device_of(number: i32) -> Option<Device> {
    Device::of_number(usize::try_from(number).ok()?)
}

/// Starts a thread, and returns its number; -1 if there are too many.
#[unsafe(no_mangle)]
pub extern "C" fn bare_thread_start(function: extern "C" fn(usize) -> i32, argument: usize) -> i32 {
    thread::spawn_c(function, argument).map_or(-1, |thread| thread.number() as i32)
}

/// Returns the number of this thread; that of `main` is 0.
#[unsafe(no_mangle)]
pub extern "C" fn bare_thread_self() -> i32 {
    thread::current().number() as i32
}

/// Lets other ready threads run first.
#[unsafe(no_mangle)]
pub extern "C" fn bare_thread_yield() {
    thread::start_scheduler();
    thread::yield_now();
}

/// Waits until a thread has ended, and stores its value unless `value` is null. Returns 0, or -1 if there is no such
/// thread, or it is `main` or the caller.
///
/// # Safety
/// `value` must be null or the address of an `int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bare_thread_join(number: i32, value: *mut i32) -> i32 {
    let Some(thread) = thread_of(number).filter(|thread| number != 0 && *thread != thread::current()) else {
        return -1;
    };
    let End::Returned(returned) = thread::join(thread) else { return -1 };
    if !value.is_null() {
        // NEED: C returns a second result through an address.
        // SOUND: the caller guarantees that it is the address of an int.
        unsafe { *value = returned };
    }
    0
}

/// Signals a thread; may be called by interrupt handlers. Returns 0, or -1 if there is no such thread.
#[unsafe(no_mangle)]
pub extern "C" fn bare_signal(number: i32) -> i32 {
    thread_of(number).map_or(-1, |thread| {
        thread::signal(thread);
        0
    })
}

/// Waits until this thread has a signal, and consumes it.
#[unsafe(no_mangle)]
pub extern "C" fn bare_wait_signal() {
    thread::start_scheduler();
    thread::wait();
}

/// Opens a device on a channel of this core, which writes to a channel of a rank. Returns its number, or -1 if there
/// is no such rank, channel or mode, if all devices are open, or if the channel has one.
#[unsafe(no_mangle)]
pub extern "C" fn bare_device_open(channel: u32, rank: i32, rank_channel: u32, mode: i32) -> i32 {
    let open = || {
        let [channel, peer] = [u16::try_from(channel).ok()?, u16::try_from(rank_channel).ok()?];
        let rank = usize::try_from(rank).ok().filter(|rank| *rank < bare_core::program::ranks())?;
        let mode = [Mode::Poll, Mode::Interrupt].get(usize::try_from(mode).ok()?).copied()?;
        Device::open(channel, rank, peer, mode).ok()
    };
    open().map_or(-1, |device| device.number() as i32)
}

/// Closes a device. Returns 0, or -1 if the number is invalid.
#[unsafe(no_mangle)]
pub extern "C" fn bare_device_close(number: i32) -> i32 {
    device_of(number).map_or(-1, |device| {
        device.close();
        0
    })
}

/// Waits for a message of a device, and returns its length; -1 if there is no such device, the message is longer than
/// `room`, or a core has stopped.
///
/// # Safety
/// `into` must point to `room` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bare_device_read(number: i32, into: *mut u8, room: usize) -> i64 {
    // NEED: C passes memory as address and length.
    // SOUND: the caller guarantees the memory, and nothing else uses it during the call.
    let into = unsafe { core::slice::from_raw_parts_mut(into, room) };
    let header = device_of(number).and_then(|device| device.read(into).ok());
    header.map_or(-1, |header| i64::from(header.length))
}

/// Sends a message to the peer of a device, and waits while the buffer there is full. Returns 0, or -1 if there is no
/// such device, the message is too long, or a core has stopped.
///
/// # Safety
/// `bytes` must point to `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bare_device_write(number: i32, bytes: *const u8, length: usize) -> i32 {
    // NEED: as above.
    // SOUND: as above; it is only read.
    let payload = unsafe { core::slice::from_raw_parts(bytes, length) };
    device_of(number).and_then(|device| device.write(payload).ok()).map_or(-1, |()| 0)
}
