//! Stacks and their guard pages, the task segment, and the stack on which a double fault is handled.
//!
//! Below each stack is an unmapped page, so a stack overflow faults instead of changing other memory. In supervisor
//! mode the processor cannot save that page fault on the same stack, and raises a double fault, for which the task
//! segment has a separate stack. User-mode stacks differ: their guard pages are closed to user mode only, and the page
//! fault ends the thread.

use crate::machine;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Size in bytes of the stack of a thread, in each of the two modes.
pub const STACK_BYTES: usize = 16 << 10;
const GUARD_BYTES: usize = 4 << 10;
/// Size in bytes of the stack of double faults, on which the dump is printed.
const FAULT_STACK_BYTES: usize = 8 << 10;

/// A stack above its guard page.
#[repr(C, align(4096))]
pub struct GuardedStack {
    guard: [u8; GUARD_BYTES],
    bytes: UnsafeCell<[u8; STACK_BYTES]>,
}

// NEED: threads have stacks, which are memory of the image.
// SOUND: only a thread's own processor state, and the code that puts its first frame there before it runs, use its
// stack.
unsafe impl Sync for GuardedStack {}

impl GuardedStack {
    pub const fn new() -> GuardedStack {
        GuardedStack { guard: [0; GUARD_BYTES], bytes: UnsafeCell::new([0; STACK_BYTES]) }
    }

    /// Returns the address of the guard page.
    pub fn guard(&self) -> usize {
        self.guard.as_ptr() as usize
    }

    /// Returns the address after the stack.
    pub fn top(&self) -> usize {
        self.bytes.get() as usize + STACK_BYTES
    }
}

/// Stack of double faults, which never return.
#[repr(align(16))]
struct FaultStack(UnsafeCell<[u8; FAULT_STACK_BYTES]>);

// NEED: a static must be `Sync`.
// SOUND: only the processor uses it, at a double fault.
unsafe impl Sync for FaultStack {}

static FAULT_STACK: FaultStack = FaultStack(UnsafeCell::new([0; FAULT_STACK_BYTES]));

const TASK_SEGMENT: u16 = 40;
const TASK_SEGMENT_WORDS: usize = 26;
/// Index in the task segment of the stack for interrupts in user mode, and of the first stack that an interrupt can
/// select; each takes two words.
const SUPERVISOR_STACK: usize = 1;
const FIRST_NAMED_STACK: usize = 9;

/// The task segment, from which the processor reads the stacks of interrupts.
static TASK: [AtomicU32; TASK_SEGMENT_WORDS] = [const { AtomicU32::new(0) }; TASK_SEGMENT_WORDS];

/// Segments: those of the boot, user-mode code and data, the task segment.
static SEGMENTS: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];

/// Code and data segments of supervisor and user mode.
const CODE_AND_DATA: [u64; 4] =
    [0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff, 0x00af_fb00_0000_ffff, 0x00cf_f300_0000_ffff];

fn set_stack(word: usize, top: usize) {
    TASK[word].store(top as u32, Ordering::Relaxed);
    TASK[word + 1].store((top >> 32) as u32, Ordering::Relaxed);
}

/// Sets the stack on which interrupts in user mode save their frame.
pub fn set_supervisor_stack(top: usize) {
    set_stack(SUPERVISOR_STACK, top);
}

/// Loads the segments, and guards the stack of `main`.
pub fn install() {
    let (base, limit) = (TASK.as_ptr() as u64, size_of_val(&TASK) as u64 - 1);
    let task = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
    for (segment, value) in SEGMENTS[1..].iter().zip(CODE_AND_DATA.into_iter().chain([task, base >> 32])) {
        segment.store(value, Ordering::Relaxed);
    }
    set_stack(FIRST_NAMED_STACK, FAULT_STACK.0.get() as usize + FAULT_STACK_BYTES);
    TASK[TASK_SEGMENT_WORDS - 1].store((size_of_val(&TASK) as u32) << 16, Ordering::Relaxed);
    machine::load_segments(&SEGMENTS, TASK_SEGMENT);
    machine::map_first_pages();
}
