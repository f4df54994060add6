//! Doorbells, with which a core interrupts another one.
//!
//! The ivshmem device has a register into which a sender writes the numbers of a core and of a vector; QEMU forwards
//! that by a host event, which the target's device turns into an interrupt (MSI-X). A device without doorbells has no
//! MSI-X table; then the timer of the target finds the pin or message within a millisecond.

use crate::{chip, interrupt, machine};
use bare_map::{self as map, record};
use core::sync::atomic::{AtomicU32, Ordering, fence};

/// Offset of the doorbell in the first memory region of the device.
const DOORBELL: u32 = 12;
/// Address to which a device writes interrupts for the only processor.
const MESSAGE_ADDRESS: u32 = 0xfee0_0000;

/// Address of the registers of the device, or 0 if it has no doorbells.
static REGISTERS: AtomicU32 = AtomicU32::new(0);

/// Enables the device's interrupts: its vector 0 is for pins, vector 1 for messages.
pub(crate) fn start() {
    let Some(device) = machine::find_bells() else { return };
    for (entry, vector) in [interrupt::PINS, interrupt::MESSAGES].into_iter().enumerate() {
        let at = device.table + 16 * entry as u32;
        for (offset, value) in [(0, MESSAGE_ADDRESS), (4, 0), (8, vector as u32), (12, 0)] {
            machine::device_register(at + offset).store(value, Ordering::Relaxed);
        }
    }
    machine::enable_bells(&device);
    REGISTERS.store(device.registers, Ordering::Relaxed);
}

/// Returns `true` if the chip has doorbells.
pub fn has_bells() -> bool {
    REGISTERS.load(Ordering::Relaxed) != 0
}

fn ring(core: usize, vector: u32) {
    let registers = REGISTERS.load(Ordering::Relaxed);
    if registers != 0 {
        machine::device_register(registers + DOORBELL).store((core as u32) << 16 | vector, Ordering::Relaxed);
    }
}

/// Rings for a raised pin of `core`.
pub(crate) fn ring_for_pin(core: usize) {
    ring(core, 0);
}

/// Rings for a message in the buffer of `core`, if it has requested that.
pub(crate) fn ring_for_message(core: usize) {
    // The entry is written before the request is read, as `request` is written before the ring is read.
    fence(Ordering::SeqCst);
    if wanted(core).load(Ordering::Relaxed) != 0 {
        ring(core, 1);
    }
}

/// Sets whether senders must ring for messages.
pub(crate) fn request(is_needed: bool) {
    let wanted = wanted(chip::core());
    if wanted.load(Ordering::Relaxed) != u32::from(is_needed) {
        wanted.store(is_needed.into(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

/// Returns the word of `core` that is nonzero if it wants a doorbell for each message.
fn wanted(core: usize) -> &'static AtomicU32 {
    &machine::window(map::record_of(core) + record::BELL, 1)[0]
}
