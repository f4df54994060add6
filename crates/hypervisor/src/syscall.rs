//! System calls of a guest, executed by the thread of the monitor.
//!
//! Without a guest, the same thread would make these calls, with the same memory, descriptors and thread pointer, so
//! nearly every call is passed through. There are two exceptions. A new thread or process continues outside the guest,
//! as an ordinary one. A `fork` without a separate stack, and changes of the thread pointer, are refused.

use kvm_bindings::kvm_regs;
use std::arch::{asm, naked_asm};
use std::ops::RangeInclusive;

/// Numbers of system calls of Linux on x86-64.
const CLONE: u64 = 56;
const WITHOUT_STACK: RangeInclusive<u64> = 57..=58;
const ARCH_PRCTL: u64 = 158;
const CLONE3: u64 = 435;

const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;

const NOT_PERMITTED: i64 = -1;
const NOT_IMPLEMENTED: i64 = -38;

/// Counts of a guest's requests to the monitor, since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestCounts {
    /// System calls that the monitor made.
    pub system_calls: u64,
    /// Page faults of the guest's page tables, each resolved by mapping a range.
    pub page_faults: u64,
    /// Other calls to the monitor.
    pub hypercalls: u64,
}

/// Returns the thread pointer of this thread: the base of the segment FS.
pub fn thread_pointer() -> u64 {
    let mut base = 0_u64;
    call(ARCH_PRCTL, [ARCH_GET_FS, &raw mut base as u64, 0, 0, 0, 0]);
    base
}

/// Sets the action of a signal to `action`, the kernel's `struct sigaction`.
pub fn set_action(signal: i32, action: &[u64; 4]) {
    const RT_SIGACTION: u64 = 13;
    const MASK_BYTES: u64 = 8;
    call(RT_SIGACTION, [signal as u64, action.as_ptr() as u64, 0, MASK_BYTES, 0, 0]);
}

/// Sends a signal to this thread, delivered before the call returns. A signal to the process could go to another
/// thread.
pub fn signal_this_thread(signal: i32) {
    const GETTID: u64 = 186;
    const TGKILL: u64 = 234;
    let thread = call(GETTID, [0; 6]) as u64;
    call(TGKILL, [u64::from(std::process::id()), thread, signal as u64, 0, 0, 0]);
}

/// Makes a system call and returns its result; an error is its negative number.
fn call(number: u64, arguments: [u64; 6]) -> i64 {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    let result: i64;
    // NEED: the calls are those of the guest, whatever they are, which no library offers.
    // SOUND: the guest's code is code of this process, which could have made the call itself.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as i64 => result,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            in("r8") fifth,
            in("r9") sixth,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// Makes the system call that `registers` describe, and returns its result for the guest.
pub fn forward(registers: &kvm_regs) -> i64 {
    let number = registers.rax;
    let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
    match number {
        CLONE => clone_with_stack(registers),
        CLONE3 => clone3_with_stack(registers),
        number if WITHOUT_STACK.contains(&number) => NOT_IMPLEMENTED,
        ARCH_PRCTL if arguments[0] == ARCH_SET_FS => NOT_PERMITTED,
        _ => call(number, arguments),
    }
}

/// Initial registers of a thread, which starts where its parent, a guest, called `clone`.
#[repr(C)]
struct CloneRegisters {
    number: u64,
    arguments: [u64; 6],
    rbx: u64,
    rbp: u64,
    r12: u64,
    r13: u64,
    r14: u64,
    r15: u64,
}

impl CloneRegisters {
    fn of(registers: &kvm_regs) -> CloneRegisters {
        let kvm_regs { rax, rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15, .. } = *registers;
        CloneRegisters { number: rax, arguments: [rdi, rsi, rdx, r10, r8, r9], rbx, rbp, r12, r13, r14, r15 }
    }
}

/// Pushes the address at which the thread continues onto the new `stack`, and returns the new stack pointer.
fn with_return(stack: u64, registers: &kvm_regs) -> u64 {
    // In ring 3 or 0, a system call leaves the address after it in RCX.
    // NEED: the new thread has no other memory of its own yet.
    // SOUND: the caller of `clone` has given this memory to the thread as its stack.
    unsafe { ((stack - 8) as *mut u64).write_unaligned(registers.rcx) };
    stack - 8
}

fn clone_with_stack(registers: &kvm_regs) -> i64 {
    let mut clone = CloneRegisters::of(registers);
    if clone.arguments[1] == 0 {
        return NOT_IMPLEMENTED;
    }
    clone.arguments[1] = with_return(clone.arguments[1], registers);
    // NEED: a thread begins at an instruction of the guest.
    // SOUND: it has the guest's registers and its own stack, as if the guest's code had made the call.
    unsafe { begin_thread(&clone) }
}

fn clone3_with_stack(registers: &kvm_regs) -> i64 {
    const WORDS: usize = 11;
    const STACK: usize = 5;
    const STACK_BYTES: usize = 6;
    let mut clone = CloneRegisters::of(registers);
    let [address, bytes, ..] = clone.arguments;
    if !(8 * (STACK_BYTES as u64 + 2)..=8 * WORDS as u64).contains(&bytes) {
        return NOT_IMPLEMENTED;
    }
    let mut words = [0_u64; WORDS];
    // NEED: the arguments lie in the guest's memory.
    // SOUND: the guest's code has put `bytes` bytes there, which are no more than the array.
    unsafe {
        std::ptr::copy_nonoverlapping(address as *const u8, words.as_mut_ptr().cast::<u8>(), bytes as usize);
    }
    if words[STACK] == 0 || words[STACK_BYTES] < 8 {
        return NOT_IMPLEMENTED;
    }
    with_return(words[STACK] + words[STACK_BYTES], registers);
    words[STACK_BYTES] -= 8;
    clone.arguments[0] = words.as_ptr() as u64;
    // NEED: as in `clone_with_stack`.
    // SOUND: as in `clone_with_stack`.
    unsafe { begin_thread(&clone) }
}

/// Makes the system call of `registers` and returns its result; the new thread continues at the address on its stack.
///
/// # Safety
/// The call is `clone` or `clone3` with a stack, at whose top is an address of code that expects `registers`.
#[unsafe(naked)]
unsafe extern "C" fn begin_thread(registers: *const CloneRegisters) -> i64 {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov r11, rdi",
        "mov rax, [r11]",
        "mov rdi, [r11 + 8]",
        "mov rsi, [r11 + 16]",
        "mov rdx, [r11 + 24]",
        "mov r10, [r11 + 32]",
        "mov r8, [r11 + 40]",
        "mov r9, [r11 + 48]",
        "mov rbx, [r11 + 56]",
        "mov rbp, [r11 + 64]",
        "mov r12, [r11 + 72]",
        "mov r13, [r11 + 80]",
        "mov r14, [r11 + 88]",
        "mov r15, [r11 + 96]",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        // The new thread: its stack holds only the address to continue at.
        "2: ret",
    )
}
