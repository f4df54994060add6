//! Interrupts: the descriptor table, entry and return, the local controller, the two pins of a core.
//!
//! Vectors 0 to 31 are exceptions, which stop the core with a dump. A pin of another core is a word that all cores
//! share; the timer looks at it each millisecond, and calls the handler of a raised pin as an interrupt. So a pin takes
//! up to a millisecond: plain ivshmem has no doorbell.

use crate::{chip, fault, machine, timer};
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Vector of the timer.
pub const TIMER: u64 = 32;
const SPURIOUS: u32 = 47;
const VECTORS: usize = 48;

const CONTROLLER: u32 = 0xfee0_0000;
const END_OF_INTERRUPT: u32 = CONTROLLER + 0xb0;
const SPURIOUS_REGISTER: u32 = CONTROLLER + 0xf0;

/// An interrupt pin of a core, as the local controller of a P54C has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// LINT0.
    Lint0,
    /// LINT1.
    Lint1,
}

/// The state of the program that an interrupt has saved.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    /// r15, r14, .. r8, rbp, rdi, rsi, rdx, rcx, rbx, rax.
    pub registers: [u64; 15],
    /// Vector of the interrupt.
    pub vector: u64,
    /// Error code, or 0.
    pub error: u64,
    /// Next instruction.
    pub rip: u64,
    /// Code segment.
    pub cs: u64,
    /// Flags.
    pub rflags: u64,
    /// Stack pointer.
    pub rsp: u64,
    /// Stack segment.
    pub ss: u64,
}

global_asm!(
    r#"
    .macro bare_stub vector, has_error
    .balign 16
    .if \has_error == 0
    pushq $0
    .endif
    pushq $\vector
    jmp bare_interrupt_entry
    .endm
    .text
    .balign 16
bare_stubs:
    .irp vector, 0, 1, 2, 3, 4, 5, 6, 7
    bare_stub \vector, 0
    .endr
    bare_stub 8, 1
    bare_stub 9, 0
    .irp vector, 10, 11, 12, 13, 14
    bare_stub \vector, 1
    .endr
    .irp vector, 15, 16
    bare_stub \vector, 0
    .endr
    bare_stub 17, 1
    .irp vector, 18, 19, 20
    bare_stub \vector, 0
    .endr
    bare_stub 21, 1
    .irp vector, 22, 23, 24, 25, 26, 27, 28
    bare_stub \vector, 0
    .endr
    .irp vector, 29, 30
    bare_stub \vector, 1
    .endr
    .irp vector, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47
    bare_stub \vector, 0
    .endr
bare_interrupt_entry:
    pushq %rax
    pushq %rbx
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %rbp
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, %rdi
    movq %rsp, %rbx
    subq $512, %rsp
    andq $-16, %rsp
    fxsave (%rsp)
    cld
    call bare_interrupt
    fxrstor (%rsp)
    movq %rbx, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rbp
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rbx
    popq %rax
    addq $16, %rsp
    iretq
    "#,
    options(att_syntax)
);

// NEED: the stubs are symbols of the assembly above.
// SOUND: only their address is used.
unsafe extern "C" {
    /// The first of the stubs, 16 bytes each; not to be called from Rust.
    fn bare_stubs();
}

/// The descriptors: two words for each vector.
#[repr(C, align(16))]
struct Table(UnsafeCell<[[u64; 2]; VECTORS]>);

// NEED: the processor reads the table while Rust shares it.
// SOUND: it is written once, by `install`, before interrupts are enabled.
unsafe impl Sync for Table {}

static TABLE: Table = Table(UnsafeCell::new([[0; 2]; VECTORS]));

/// A table's address as the processor wants it.
#[repr(C, packed)]
struct TablePointer {
    limit: u16,
    address: u64,
}

/// Handlers of the pins; null: the pin waits for one.
static HANDLERS: [AtomicPtr<()>; 2] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 2];

/// Installs the descriptors, and leaves interrupts disabled.
pub fn install() {
    let table = TABLE.0.get();
    for vector in 0..VECTORS {
        let address = (bare_stubs as *const () as usize + 16 * vector) as u64;
        // Present, supervisor, 64-bit interrupt gate, code segment 8.
        let low = address & 0xffff | 8 << 16 | 0x8e00 << 32 | (address >> 16 & 0xffff) << 48;
        // NEED: the table is a static, which the processor reads later.
        // SOUND: this is the only function that accesses it, and is called once, with interrupts disabled.
        unsafe { (*table)[vector] = [low, address >> 32] };
    }
    let pointer =
        TablePointer { limit: (size_of::<[[u64; 2]; VECTORS]>() - 1) as u16, address: table as u64 };
    // NEED: an instruction.
    // SOUND: the table is complete and lives as long as the image.
    unsafe { asm!("lidt [{}]", in(reg) &pointer, options(nostack, readonly)) }
    // The two controllers of a PC stay silent.
    machine::write_port(0x21, 0xff);
    machine::write_port(0xa1, 0xff);
    machine::device_register(SPURIOUS_REGISTER).store(0x100 | SPURIOUS, Ordering::Relaxed);
}

/// Enables interrupts.
pub fn enable() {
    machine::set_interrupts(true);
}

/// Runs `body` with interrupts disabled.
pub fn without<T>(body: impl FnOnce() -> T) -> T {
    let enabled = machine::set_interrupts(false);
    let value = body();
    if enabled {
        machine::set_interrupts(true);
    }
    value
}

/// Sets the handler of a pin of this core. It runs with interrupts disabled.
pub fn set_handler(pin: Pin, handler: extern "C" fn()) {
    // PAIR bare.handler: publish
    HANDLERS[pin as usize].store(handler as *mut (), Ordering::Release);
}

/// Handles one interrupt; called by the assembly above.
#[unsafe(no_mangle)]
extern "C" fn bare_interrupt(frame: &Frame) {
    match frame.vector {
        TIMER => {
            timer::count_millisecond();
            machine::device_register(END_OF_INTERRUPT).store(0, Ordering::Relaxed);
            handle_pins();
        }
        0..32 => fault::dump(frame),
        _ => {}
    }
}

/// Calls the handlers of raised pins; a pin without a handler stays raised until it has one.
fn handle_pins() {
    for (pin, handler) in HANDLERS.iter().enumerate() {
        // PAIR bare.handler: observe
        let handler = handler.load(Ordering::Acquire);
        if !handler.is_null() && chip::take_pins(1 << pin) != 0 {
            // NEED: a handler is kept as an address, which can be null.
            // SOUND: only `set_handler` stores there, and it stores functions of this type.
            unsafe { core::mem::transmute::<*mut (), extern "C" fn()>(handler)() }
        }
    }
}
