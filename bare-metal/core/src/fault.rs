//! The end of a core that cannot continue: a dump of the processor state, and a state visible to the other cores.

use crate::interrupt::{DOUBLE_FAULT, Frame, PAGE_FAULT};
use crate::{chip, console, machine, println, program};
use bare_map::record;
use core::sync::atomic::Ordering;

/// Stands for a panic in place of a vector.
pub const PANIC: u32 = 256;

/// Vectors 0 to 21, as named in the processor's manual.
const NAMES: [&str; 22] = [
    "divide error",
    "debug exception",
    "non-maskable interrupt",
    "breakpoint",
    "overflow",
    "bound range exceeded",
    "invalid opcode",
    "device not available",
    "double fault",
    "coprocessor segment overrun",
    "invalid TSS",
    "segment not present",
    "stack-segment fault",
    "general protection",
    "page fault",
    "reserved",
    "x87 floating-point error",
    "alignment check",
    "machine check",
    "SIMD floating-point exception",
    "virtualization exception",
    "control protection exception",
];

/// Registers in the order in which an interrupt saves them.
const REGISTERS: [&str; 15] =
    ["r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8", "rbp", "rdi", "rsi", "rdx", "rcx", "rbx", "rax"];

/// Prints the state saved by an exception, and stops the core.
pub fn dump(frame: &Frame) -> ! {
    let vector = frame.vector as usize;
    let name = name_of(vector);
    println!("exception {vector} ({name}) at {:#x}, error code {:#x}", frame.rip, frame.error);
    if chip::has_joined() {
        println!("core {}, rank {} of {}", chip::core(), program::rank(), program::ranks());
    }
    for (row, values) in frame.registers.chunks(3).enumerate() {
        let mut values = REGISTERS[3 * row..].iter().zip(values);
        values.by_ref().for_each(|(name, value)| console::print(format_args!("{name:>3} {value:016x}  ")));
        println!("");
    }
    println!("rsp {:016x}  flags {:08x}  cs {:x}  ss {:x}", frame.rsp, frame.rflags, frame.cs, frame.ss);
    let address = machine::fault_address();
    let is_of_memory = vector == PAGE_FAULT || vector == DOUBLE_FAULT;
    if is_of_memory && machine::is_guarded(address as usize) {
        println!("stack overflow: address {address:#x} lies in the guard page below a stack");
    } else if vector == PAGE_FAULT {
        println!("address {address:#x}");
    }
    halt(vector as u32)
}

/// Returns the name of an exception in the processor's manual.
pub fn name_of(vector: usize) -> &'static str {
    NAMES.get(vector).unwrap_or(&"reserved")
}

/// Stops this core as failed.
pub fn halt(vector: u32) -> ! {
    machine::set_interrupts(false);
    if chip::has_joined() {
        chip::own_record(record::VECTOR).store(vector, Ordering::Relaxed);
        // PAIR bare.state: publish
        chip::own_record(record::STATE).store(record::FAULTED, Ordering::Release);
    }
    machine::power_off(2)
}

/// Prints a line and stops this core as failed.
pub fn stop(why: core::fmt::Arguments<'_>) -> ! {
    println!("{why}");
    halt(PANIC)
}
