//! The end of a guest that failed: its dump, and the signal that ends its process.

use crate::error::GuestError;
use crate::kernel::ExceptionFrame;
use kvm_bindings::kvm_regs;
use std::fmt::{self, Write};

/// Names of the exceptions of the architecture, by vector.
const EXCEPTIONS: [&str; 22] = [
    "division error",
    "debug exception",
    "non-maskable interrupt",
    "breakpoint",
    "overflow",
    "bound exceeded",
    "illegal instruction",
    "device not available",
    "double fault",
    "coprocessor overrun",
    "invalid task state",
    "segment not present",
    "stack fault",
    "general protection fault",
    "page fault",
    "reserved exception",
    "floating-point error",
    "misaligned access",
    "machine check",
    "vector floating-point error",
    "virtualization exception",
    "control protection fault",
];

/// Cause of a guest's failure.
#[derive(Debug)]
pub enum FaultCause<'a> {
    /// An exception that the program caused; `address` is that of a page fault.
    Exception { frame: ExceptionFrame, address: u64 },
    /// The virtual CPU stopped for this reason.
    Stopped(&'a str),
    /// The monitor could not do what the guest needed.
    Monitor(GuestError),
}

impl FaultCause<'_> {
    /// Returns the signal that the same fault raises without a guest.
    fn signal(&self) -> rustix::process::Signal {
        use rustix::process::Signal;
        match self {
            FaultCause::Exception { frame, .. } => match frame.vector {
                0 | 16 | 19 => Signal::FPE,
                1 | 3 => Signal::TRAP,
                6 => Signal::ILL,
                17 => Signal::BUS,
                _ => Signal::SEGV,
            },
            FaultCause::Stopped(_) => Signal::SEGV,
            FaultCause::Monitor(_) => Signal::ABORT,
        }
    }
}

impl fmt::Display for FaultCause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultCause::Exception { frame, address } => {
                let name = EXCEPTIONS.get(frame.vector as usize).copied().unwrap_or("exception");
                write!(f, "{name} (vector {}, error {:#x})", frame.vector, frame.error)?;
                if frame.vector == ExceptionFrame::PAGE_FAULT {
                    let access = match frame.error {
                        error if error & 2 != 0 => "writing",
                        error if error & 16 != 0 => "executing",
                        _ => "reading",
                    };
                    write!(f, ", {access} {address:#x}")?;
                }
                write!(f, ", at {:#x}", frame.rip)
            }
            FaultCause::Stopped(why) => write!(f, "the virtual CPU stopped by {why}"),
            FaultCause::Monitor(error) => write!(f, "the monitor: {error}"),
        }
    }
}

/// Text of bounded length on the stack: the guest may have exited in the middle of an allocation.
struct DumpText {
    bytes: [u8; 2048],
    len: usize,
}

impl Write for DumpText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let kept = text.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + kept].copy_from_slice(&text.as_bytes()[..kept]);
        self.len += kept;
        Ok(())
    }
}

/// Writes the dump of the guest called `name` to standard error, and ends the process with the signal that the fault
/// raises without a guest.
pub fn dump_and_end(name: &str, cause: &FaultCause<'_>, registers: &kvm_regs) -> ! {
    let mut text = DumpText { bytes: [0; 2048], len: 0 };
    let mut registers = *registers;
    if let FaultCause::Exception { frame, .. } = cause {
        (registers.rip, registers.rsp, registers.rflags) = (frame.rip, frame.rsp, frame.rflags);
    }
    // Writing to `DumpText` never fails.
    let _ = write_dump(&mut text, name, cause, &registers);
    let mut rest = &text.bytes[..text.len];
    while let Ok(written) = rustix::io::write(rustix::stdio::stderr(), rest) {
        rest = &rest[written..];
        if rest.is_empty() || written == 0 {
            break;
        }
    }
    end_by(cause.signal())
}

/// Writes the lines of a dump: the cause, then the registers, four a line.
fn write_dump(
    text: &mut impl Write,
    name: &str,
    cause: &FaultCause<'_>,
    registers: &kvm_regs,
) -> fmt::Result {
    writeln!(text, "{name}: the guest failed: {cause}")?;
    let named = [
        ("rip", registers.rip),
        ("rsp", registers.rsp),
        ("rbp", registers.rbp),
        ("rfl", registers.rflags),
        ("rax", registers.rax),
        ("rbx", registers.rbx),
        ("rcx", registers.rcx),
        ("rdx", registers.rdx),
        ("rsi", registers.rsi),
        ("rdi", registers.rdi),
        ("r8 ", registers.r8),
        ("r9 ", registers.r9),
        ("r10", registers.r10),
        ("r11", registers.r11),
        ("r12", registers.r12),
        ("r13", registers.r13),
        ("r14", registers.r14),
        ("r15", registers.r15),
    ];
    for row in named.chunks(4) {
        for (name, value) in row {
            write!(text, "  {name} {value:016x}")?;
        }
        writeln!(text)?;
    }
    Ok(())
}

/// Ends the process by `signal`, with the default action.
fn end_by(signal: rustix::process::Signal) -> ! {
    /// The kernel's `struct sigaction` with the default action: handler, flags, restorer, mask.
    const DEFAULT: [u64; 4] = [0; 4];
    crate::syscall::set_action(signal.as_raw(), &DEFAULT);
    crate::syscall::signal_this_thread(signal.as_raw());
    // Only if the thread has blocked the signal.
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_names_the_place_the_fault_and_every_register() {
        let frame = ExceptionFrame { vector: 14, error: 6, rip: 0x1234, rflags: 0x202, rsp: 0x7fff_0000 };
        let cause = FaultCause::Exception { frame, address: 0x10 };
        let registers = kvm_regs { rip: 0x1234, r15: 0xabcd, ..kvm_regs::default() };
        let mut text = String::new();
        write_dump(&mut text, "place 1", &cause, &registers).unwrap();
        let first = "place 1: the guest failed: page fault (vector 14, error 0x6), writing 0x10, at 0x1234\n";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains("rip 0000000000001234") && text.contains("r15 000000000000abcd"), "{text}");
        assert_eq!(text.lines().count(), 6, "{text}");
    }

    #[test]
    fn each_fault_has_the_signal_of_a_process() {
        let of = |vector| {
            let frame = ExceptionFrame { vector, error: 0, rip: 0, rflags: 0, rsp: 0 };
            FaultCause::Exception { frame, address: 0 }.signal()
        };
        use rustix::process::Signal;
        assert_eq!(of(0), Signal::FPE);
        assert_eq!(of(6), Signal::ILL);
        assert_eq!(of(13), Signal::SEGV);
        assert_eq!(of(14), Signal::SEGV);
        assert_eq!(FaultCause::Stopped("a halt").signal(), Signal::SEGV);
    }
}
