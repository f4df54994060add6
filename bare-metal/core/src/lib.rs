//! The runtime of a program on a bare core: console, interrupts, timer, the chip's address map, messages, the end.
//!
//! A core is a virtual machine whose shared-memory device (ivshmem) holds the state that all cores of the chip share;
//! see `bare_map`. A program defines its `main` with [`entry!`]. It runs in supervisor mode with interrupts enabled,
//! and may start threads.

#![no_std]

pub mod bell;
pub mod chip;
pub mod console;
pub mod device;
mod fault;
pub mod interrupt;
mod machine;
pub mod message;
pub mod program;
mod stack;
pub mod thread;
pub mod timer;

pub use bare_map as map;
pub use fault::stop;

/// Defines the entry of an image: `fn() -> i32`, whose value is the exit code of the core.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn bare_main() -> i32 {
            let main: fn() -> i32 = $main;
            main()
        }
    };
}

// NEED: the program of an image is linked to this crate, not known to it.
// SOUND: `entry!` defines it with this type.
unsafe extern "C" {
    safe fn bare_main() -> i32;
}

/// Starts the devices, runs `bare_main`, and ends the core; called by `bare_boot`.
#[unsafe(no_mangle)]
extern "C" fn bare_start(start_information: u32) -> ! {
    stack::install();
    interrupt::install();
    let core = machine::core_number(start_information);
    let device = machine::shared_memory();
    chip::join(core, device);
    timer::start();
    bell::start();
    interrupt::enable();
    let code = bare_main();
    program::exit(code)
}

#[panic_handler]
fn panicked(panic: &core::panic::PanicInfo<'_>) -> ! {
    console::print(format_args!("panic: {}\n", panic.message()));
    if let Some(place) = panic.location() {
        console::print(format_args!("at {}:{}\n", place.file(), place.line()));
    }
    fault::halt(fault::PANIC)
}
