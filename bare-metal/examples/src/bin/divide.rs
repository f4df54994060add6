//! The last rank divides by zero; the others wait for it at a barrier, and get an error.

#![no_std]
#![no_main]

use bare_core::{entry, println, program};

entry!(main);

fn main() -> i32 {
    if program::rank() + 1 == program::ranks() {
        // NEED: division in Rust checks its divisor, which would prevent the exception.
        // SOUND: it does not return, and changes only the named registers.
        unsafe { core::arch::asm!("xor edx, edx", "div ecx", in("ecx") 0, inout("eax") 7 => _, out("edx") _) }
    }
    match program::barrier() {
        Ok(()) => 0,
        Err(stopped) => {
            println!("{stopped}");
            1
        }
    }
}
