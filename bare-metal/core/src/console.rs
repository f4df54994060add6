//! The console of a core: a ring of 64 KiB that the launcher reads; before the chip is mapped, the serial line.
//!
//! A writer never waits: bytes that the launcher has not read in time are overwritten, and the launcher counts them.

use crate::{chip, interrupt, machine};
use bare_map as map;
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write(text.as_bytes());
        Ok(())
    }
}

/// Prints formatted text.
pub fn print(text: fmt::Arguments<'_>) {
    let _ = Console.write_fmt(text); // `write_str` above never fails
}

/// Writes bytes without interruption by an interrupt handler.
pub fn write(bytes: &[u8]) {
    if chip::has_joined() {
        interrupt::without(|| write_to_ring(bytes));
    } else {
        bytes.iter().for_each(|byte| machine::write_serial(*byte));
    }
}

fn write_to_ring(bytes: &[u8]) {
    let start = map::console_of(chip::core());
    let written = &machine::window(start + map::console::WRITTEN, 1)[0];
    let ring = machine::window(start + map::console::RING, map::CONSOLE_RING_BYTES / 4);
    let mut at = written.load(Ordering::Relaxed);
    for byte in bytes {
        let word = &ring[at as usize % map::CONSOLE_RING_BYTES / 4];
        let shift = at % 4 * 8;
        word.store(
            word.load(Ordering::Relaxed) & !(0xff << shift) | u32::from(*byte) << shift,
            Ordering::Relaxed,
        );
        at = at.wrapping_add(1);
    }
    // PAIR bare.console: publish
    written.store(at, Ordering::Release);
}

/// Prints a line on the console of this core.
#[macro_export]
macro_rules! println {
    ($($arguments:tt)*) => {
        $crate::console::print(format_args!("{}\n", format_args!($($arguments)*)))
    };
}
