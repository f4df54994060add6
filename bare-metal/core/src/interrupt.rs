//! Interrupts: the descriptor table, entry and return, the local controller, and the two pins of a core.
//!
//! Vectors 0 to 31 are exceptions, which stop the core with a dump, or in user mode the thread. A pin is a bit of a
//! word shared by all cores. A core that raises it rings the target's doorbell, whose interrupt calls the handler; the
//! timer also checks the word, each millisecond.

use crate::{chip, fault, machine, timer};
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Vector of an exception that cannot be saved on the stack.
pub const DOUBLE_FAULT: usize = 8;
/// Vector of an access to a missing or closed page.
pub const PAGE_FAULT: usize = 14;
/// Vector of the timer.
pub const TIMER: u64 = 32;
/// Vector of the doorbell for raised pins.
pub const PINS: u64 = 33;
/// Vector of the doorbell for messages.
pub const MESSAGES: u64 = 34;
const SPURIOUS: u32 = 47;
/// Vector of system calls from user mode.
pub const SYSTEM_CALL: usize = 48;
/// Vector of the interrupt that yields the processor.
const SWITCH: u64 = 49;
const VECTORS: usize = 50;

const CONTROLLER: u32 = 0xfee0_0000;
const END_OF_INTERRUPT: u32 = CONTROLLER + 0xb0;
const SPURIOUS_REGISTER: u32 = CONTROLLER + 0xf0;

/// An interrupt pin of a core; the local controller of a P54C has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// LINT0.
    Lint0,
    /// LINT1.
    Lint1,
}

/// The program state saved by an interrupt.
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
    .balign 16
    pushq $0
    pushq $48
    jmp bare_call_entry
    bare_stub 49, 0
    .macro bare_save
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
    .endm
    .macro bare_resume
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
    .endm
bare_interrupt_entry:
    bare_save
    subq $512, %rsp
    andq $-16, %rsp
    fxsave (%rsp)
    cld
    call bare_interrupt
    leaq -512(%rax), %rsp
    andq $-16, %rsp
    fxrstor (%rsp)
    movq %rax, %rsp
    bare_resume
bare_call_entry:
    bare_save
    movq %rsp, %rbx
    andq $-16, %rsp
    cld
    call bare_system_call
    movq %rbx, %rsp
    bare_resume
    "#,
    options(att_syntax)
);

// NEED: the stubs are symbols of the assembly above.
// SOUND: only its address is used.
unsafe extern "C" {
    /// The first of the stubs, 16 bytes each; must not be called from Rust.
    fn bare_stubs();
}

/// The descriptors: two words for each vector.
#[repr(C, align(16))]
struct Table(UnsafeCell<[[u64; 2]; VECTORS]>);

// NEED: the processor reads the table while Rust shares it.
// SOUND: it is written once, by `install`, before interrupts are enabled.
unsafe impl Sync for Table {}

static TABLE: Table = Table(UnsafeCell::new([[0; 2]; VECTORS]));

/// Handlers of the pins; while it is null, a raised pin stays pending.
static HANDLERS: [AtomicPtr<()>; 2] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 2];

/// Installs the descriptors, and leaves interrupts disabled.
pub fn install() {
    let table = TABLE.0.get();
    for vector in 0..VECTORS {
        let address = (bare_stubs as *const () as usize + 16 * vector) as u64;
        // Present, 64-bit interrupt gate, code segment 8; user mode may only make system calls.
        let rights = if vector == SYSTEM_CALL { 0xee00 } else { 0x8e00 };
        // A double fault has its own stack, the first in the task segment.
        let stack = u64::from(vector == DOUBLE_FAULT);
        let low = address & 0xffff | 8 << 16 | stack << 32 | rights << 32 | (address >> 16 & 0xffff) << 48;
        // NEED: the table is a static, which the processor reads later.
        // SOUND: only this function accesses it, and it is called once, with interrupts disabled.
        unsafe { (*table)[vector] = [low, address >> 32] };
    }
    let pointer =
        machine::TablePointer { limit: (size_of::<[[u64; 2]; VECTORS]>() - 1) as u16, address: table as u64 };
    // NEED: an instruction.
    // SOUND: the table is complete and lives as long as the image.
    unsafe { asm!("lidt [{}]", in(reg) &pointer, options(nostack, readonly)) }
    // The two legacy controllers of a PC stay masked.
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

/// Action of threads and devices at an interrupt, in images that have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// Takes the address of the interrupted thread's frame, and returns that of the thread to resume.
    Schedule,
    /// Ends a user-mode thread because of an exception, and returns like [`Hook::Schedule`].
    EndFaulty,
    /// Moves messages out of the ring; the argument is 1 for the timer's interrupt.
    MoveMessages,
    /// Executes the system call of a frame.
    Call,
}

/// Functions of the hooks; null if the image has none.
static HOOKS: [AtomicPtr<()>; 4] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 4];

/// Sets the function of a hook, which runs with interrupts disabled.
pub(crate) fn set_hook(hook: Hook, function: fn(usize) -> usize) {
    // PAIR bare.hook: publish
    HOOKS[hook as usize].store(function as *mut (), Ordering::Release);
}

/// Calls the function of a hook, and returns its value, or `None` if there is none.
fn call_hook(hook: Hook, argument: usize) -> Option<usize> {
    // PAIR bare.hook: observe
    let function = HOOKS[hook as usize].load(Ordering::Acquire);
    // NEED: a function is stored as an address, which can be null.
    // SOUND: only `set_hook` stores there, and only functions of this type.
    (!function.is_null())
        .then(|| unsafe { core::mem::transmute::<*mut (), fn(usize) -> usize>(function)(argument) })
}

/// Yields the processor to another ready thread, if there are threads.
pub(crate) fn switch() {
    // NEED: a software interrupt saves the state of a thread like any other interrupt.
    // SOUND: its handler later resumes this thread with all its registers.
    unsafe { asm!("int {}", const SWITCH) }
}

/// Handles one interrupt, and returns the address of the frame to resume; called by the assembly above.
#[unsafe(no_mangle)]
extern "C" fn bare_interrupt(frame: &Frame) -> usize {
    let own = core::ptr::from_ref(frame) as usize;
    match frame.vector {
        TIMER => {
            timer::count_millisecond();
            end_interrupt();
            handle_pins();
            call_hook(Hook::MoveMessages, 1);
        }
        PINS => {
            end_interrupt();
            handle_pins();
            return own;
        }
        MESSAGES => {
            end_interrupt();
            call_hook(Hook::MoveMessages, 0);
        }
        0..32 if frame.is_user() => return call_hook(Hook::EndFaulty, own).unwrap_or(own),
        0..32 => fault::dump(frame),
        SWITCH => {}
        _ => return own,
    }
    call_hook(Hook::Schedule, own).unwrap_or(own)
}

/// Executes a system call; called by the assembly above.
#[unsafe(no_mangle)]
extern "C" fn bare_system_call(frame: &mut Frame) {
    call_hook(Hook::Call, core::ptr::from_mut(frame) as usize);
}

fn end_interrupt() {
    machine::device_register(END_OF_INTERRUPT).store(0, Ordering::Relaxed);
}

impl Frame {
    /// Returns `true` if the processor was in user mode.
    pub(crate) fn is_user(&self) -> bool {
        self.cs & 3 == 3
    }
}

/// Value shared by the code and the interrupt handlers of a core; accessed only with interrupts disabled.
#[derive(Debug)]
pub(crate) struct Guarded<T>(UnsafeCell<T>);

// NEED: a static must be `Sync`.
// SOUND: a core has one processor, and nothing else runs there during `with`.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub(crate) const fn new(value: T) -> Guarded<T> {
        Guarded(UnsafeCell::new(value))
    }

    /// Runs `body`, which must not call `with` of the same value, with interrupts disabled.
    pub(crate) fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        // NEED: the value is shared.
        // SOUND: nothing else runs on this core meanwhile, and no body calls this again.
        without(|| body(unsafe { &mut *self.0.get() }))
    }
}

/// Calls the handlers of raised pins; a pin without a handler stays raised until it has one.
fn handle_pins() {
    for (pin, handler) in HANDLERS.iter().enumerate() {
        // PAIR bare.handler: observe
        let handler = handler.load(Ordering::Acquire);
        if !handler.is_null() && chip::take_pins(1 << pin) != 0 {
            // NEED: a handler is stored as an address, which can be null.
            // SOUND: only `set_handler` stores there, and only functions of this type.
            unsafe { core::mem::transmute::<*mut (), extern "C" fn()>(handler)() }
        }
    }
}
