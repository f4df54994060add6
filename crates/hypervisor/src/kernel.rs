//! The kernel of a guest: its instructions, its descriptor tables, and their pages.
//!
//! The kernel has two entries. A system call enters at one of three stubs; an exception at the stub of its vector. Both
//! execute one `out` to [`PORT`], and the monitor does the rest. It distinguishes them by the page of the instruction
//! pointer ([`KernelPages::entry_of`]).
//!
//! A virtual CPU of hardware enters the kernel of a system call in ring 0. A KVM without virtualization hardware (PVM)
//! stays in ring 3 there. The page of the system-call stubs is therefore open to ring 3, to read and execute. The first
//! system call goes through a stub that works in both rings and shows the monitor which ring it is.

use crate::error::GuestError;
use crate::memory::{GuestMemory, PAGE, PageRights, Reserved};

/// The only I/O port that a guest may use.
pub const PORT: u16 = 0xE0;

/// Selectors of the segments, with the ring in the low two bits.
pub const KERNEL_CODE: u16 = 0x08;
pub const USER_DATA: u16 = 0x23;
pub const USER_CODE: u16 = 0x2b;
pub const TASK: u16 = 0x30;

const GDT: u64 = 0;
const IDT: u64 = PAGE;
const TSS: u64 = 2 * PAGE;
const EXCEPTIONS: u64 = 5 * PAGE;
const CALLS: u64 = 6 * PAGE;
const FACTS: u64 = 7 * PAGE;
const STACK: u64 = 8 * PAGE;
const END: u64 = 16 * PAGE;

/// Vectors of exceptions of the architecture (Intel SDM, volume 3, section 7.3).
pub const VECTORS: u64 = 32;

/// Bytes of the task state segment before the permission bitmap, and of the bitmap.
const TSS_BYTES: u64 = 0x68;
const BITMAP_BYTES: u64 = 8192;

/// Limits of the tables, in bytes less one, as descriptor registers hold them. The bitmap ends with a byte of ones.
pub const GDT_LIMIT: u16 = 0x3f;
pub const IDT_LIMIT: u16 = (VECTORS * 16 - 1) as u16;
pub const TSS_LIMIT: u32 = (TSS_BYTES + BITMAP_BYTES) as u32;

// `sub rsp`, `push` and `popfq` leave the 128 bytes below the stack pointer alone, which belong to the caller.
std::arch::global_asm!(
    ".pushsection .text.guest_kernel, \"ax\"",
    ".balign 16",
    "guest_kernel_calls:",
    // The probe: any system call, from either ring.
    "out 0xE0, al",
    "sysretq",
    ".balign 16",
    // Ring 0: `getpid` is handled here, all others by the monitor.
    "guest_kernel_call_ring_0:",
    "cmp eax, 39",
    "je 2f",
    "out 0xE0, al",
    "sysretq",
    "2: mov eax, [rip + guest_kernel_calls + 4096]",
    "sysretq",
    ".balign 16",
    // Ring 3: as above, but the return is a jump; the monitor sets the instruction pointer itself.
    "guest_kernel_call_ring_3:",
    "cmp eax, 39",
    "je 2f",
    "out 0xE0, al",
    "ud2",
    "2: mov eax, [rip + guest_kernel_calls + 4096]",
    "lea rsp, [rsp - 128]",
    "push r11",
    "popfq",
    "lea rsp, [rsp + 128]",
    "jmp rcx",
    "guest_kernel_calls_end:",
    ".balign 16",
    // One stub of 16 bytes for each vector; those without an error code push a zero.
    "guest_kernel_exceptions:",
    ".set guest_vector, 0",
    ".rept 32",
    ".balign 16",
    ".if (guest_vector == 8) || ((guest_vector >= 10) && (guest_vector <= 14)) || (guest_vector == 17) || (guest_vector == 21) || (guest_vector == 29) || (guest_vector == 30)",
    ".else",
    "push 0",
    ".endif",
    "push guest_vector",
    "jmp 3f",
    ".set guest_vector, guest_vector + 1",
    ".endr",
    ".balign 16",
    "3: out 0xE0, al",
    "add rsp, 16",
    "iretq",
    "guest_kernel_exceptions_end:",
    ".popsection",
);

// NEED: the bytes of the stubs are found by their labels.
// SOUND: nothing is called or written; only addresses between the labels are read.
unsafe extern "C" {
    static guest_kernel_calls: u8;
    static guest_kernel_call_ring_0: u8;
    static guest_kernel_call_ring_3: u8;
    static guest_kernel_calls_end: u8;
    static guest_kernel_exceptions: u8;
    static guest_kernel_exceptions_end: u8;
}

/// Cause of a guest's exit to the monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestEntry {
    /// A system call.
    SystemCall,
    /// An exception; its frame is at the stack pointer.
    Exception,
    /// A write to the port by code of the program; `eax` has the number of the call.
    Hypercall,
}

/// The pages of a guest's kernel, at an address otherwise unused in the process.
pub struct KernelPages {
    pages: Reserved,
}

impl KernelPages {
    /// Writes the kernel and its tables, and maps them in the guest.
    pub fn new(memory: &mut GuestMemory) -> Result<KernelPages, GuestError> {
        let kernel = KernelPages { pages: Reserved::new(END)? };
        kernel.write_segments();
        kernel.write_stubs();
        kernel.write_gates();
        kernel.pages.write::<u32>(FACTS, std::process::id());
        for offset in (0..END).step_by(PAGE as usize) {
            let access = match offset {
                CALLS => PageRights { user: true, write: false, execute: true },
                FACTS => PageRights { user: true, write: false, execute: false },
                EXCEPTIONS => PageRights { user: false, write: false, execute: true },
                _ => PageRights { user: false, write: true, execute: false },
            };
            let page = kernel.pages.base() + offset;
            memory.map(page..page + PAGE, access)?;
        }
        Ok(kernel)
    }

    /// Writes the descriptors of code and data of rings 0 and 3, and of the task, which has the stack of ring 0.
    fn write_segments(&self) {
        const CODE_0: u64 = 0x00af_9b00_0000_ffff;
        const DATA_0: u64 = 0x00cf_9300_0000_ffff;
        const CODE_3_OF_32_BITS: u64 = 0x00cf_fb00_0000_ffff;
        const DATA_3: u64 = 0x00cf_f300_0000_ffff;
        const CODE_3: u64 = 0x00af_fb00_0000_ffff;
        let task = self.task();
        let limit = u64::from(TSS_LIMIT);
        let task_low =
            (limit & 0xffff) | ((task & 0xff_ffff) << 16) | (0x8b << 40) | (((task >> 24) & 0xff) << 56);
        let descriptors = [0, CODE_0, DATA_0, CODE_3_OF_32_BITS, DATA_3, CODE_3, task_low, task >> 32];
        for (offset, descriptor) in (GDT..).step_by(8).zip(descriptors) {
            self.pages.write::<u64>(offset, descriptor);
        }
        self.pages.write::<u32>(TSS + 0x04, self.stack_top() as u32);
        self.pages.write::<u32>(TSS + 0x08, (self.stack_top() >> 32) as u32);
        self.pages.write::<u16>(TSS + 0x66, TSS_BYTES as u16);
        for offset in 0..=BITMAP_BYTES {
            let is_ports = offset == u64::from(PORT / 8);
            self.pages
                .write::<u8>(TSS + TSS_BYTES + offset, if is_ports { !(1 << (PORT % 8)) } else { 0xff });
        }
    }

    fn write_stubs(&self) {
        let calls = &raw const guest_kernel_calls..&raw const guest_kernel_calls_end;
        let exceptions = &raw const guest_kernel_exceptions..&raw const guest_kernel_exceptions_end;
        for (offset, code) in [(CALLS, calls), (EXCEPTIONS, exceptions)] {
            let bytes = code.end as usize - code.start as usize;
            for byte in 0..bytes {
                // NEED: the code of the stubs is copied out of this program's text.
                // SOUND: `byte` is below the distance of the two labels, between which is initialised code.
                let value = unsafe { *code.start.add(byte) };
                self.pages.write::<u8>(offset + byte as u64, value);
            }
        }
    }

    /// Writes an interrupt gate to ring 0 for each vector. Ring 3 may raise breakpoints, as on Linux.
    fn write_gates(&self) {
        const BREAKPOINT: u64 = 3;
        for vector in 0..VECTORS {
            let stub = self.pages.base() + EXCEPTIONS + 16 * vector;
            let kind: u64 = if vector == BREAKPOINT { 0xee } else { 0x8e };
            let low = (stub & 0xffff)
                | (u64::from(KERNEL_CODE) << 16)
                | (kind << 40)
                | (((stub >> 16) & 0xffff) << 48);
            self.pages.write::<u64>(IDT + 16 * vector, low);
            self.pages.write::<u64>(IDT + 16 * vector + 8, stub >> 32);
        }
    }

    /// Returns the address of the segment descriptor table.
    pub fn descriptors(&self) -> u64 {
        self.pages.base() + GDT
    }

    /// Returns the address of the interrupt descriptor table.
    pub fn gates(&self) -> u64 {
        self.pages.base() + IDT
    }

    /// Returns the address of the task state segment.
    pub fn task(&self) -> u64 {
        self.pages.base() + TSS
    }

    fn stack_top(&self) -> u64 {
        self.pages.base() + END
    }

    /// Returns the entry of the first system call.
    pub fn probe(&self) -> u64 {
        self.pages.base() + CALLS
    }

    /// Returns the entry of system calls that arrive in ring 0 or in ring 3.
    pub fn call_entry(&self, is_ring_0: bool) -> u64 {
        let stub =
            if is_ring_0 { &raw const guest_kernel_call_ring_0 } else { &raw const guest_kernel_call_ring_3 };
        self.probe() + (stub as u64 - &raw const guest_kernel_calls as u64)
    }

    /// Returns the cause of the guest's exit to the monitor, from the address of the exiting instruction.
    pub fn entry_of(&self, instruction: u64) -> GuestEntry {
        match instruction.wrapping_sub(self.pages.base()) & !(PAGE - 1) {
            CALLS => GuestEntry::SystemCall,
            EXCEPTIONS => GuestEntry::Exception,
            _ => GuestEntry::Hypercall,
        }
    }

    /// Returns the frame of an exception if `stack` lies in the stack of ring 0.
    pub fn frame(&self, stack: u64) -> Option<ExceptionFrame> {
        let words = (ExceptionFrame::WORDS * 8) as u64;
        let offset = stack.checked_sub(self.pages.base()).filter(|offset| offset % 8 == 0)?;
        (STACK..=END - words).contains(&offset).then(|| {
            let word = |index: u64| self.pages.read::<u64>(offset + 8 * index);
            ExceptionFrame { vector: word(0), error: word(1), rip: word(2), rflags: word(4), rsp: word(5) }
        })
    }

    /// Returns `true` if `address` belongs to the kernel's pages.
    pub fn contains(&self, address: u64) -> bool {
        self.pages.contains(address)
    }
}

/// Values that the processor and a stub push at an exception.
#[derive(Clone, Copy, Debug)]
pub struct ExceptionFrame {
    pub vector: u64,
    pub error: u64,
    pub rip: u64,
    pub rflags: u64,
    pub rsp: u64,
}

impl ExceptionFrame {
    /// Vector, error code, and the five words of the processor.
    const WORDS: usize = 7;
    /// Vector of a page fault.
    pub const PAGE_FAULT: u64 = 14;
}
