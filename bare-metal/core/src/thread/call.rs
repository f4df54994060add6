//! System calls of user-mode threads; the supervisor checks each address passed to it.
//!
//! A call is the software interrupt 48 with its number in rax and arguments in rdi, rsi and rdx; the result is in rax.
//! It runs on the thread's supervisor-mode stack, with interrupts enabled, so it can wait and be preempted.

use super::user;
use crate::interrupt::{self, Frame, Hook};
use crate::{console, device, message, timer};
use core::arch::asm;

/// Positions of registers in a frame.
pub const RSI: usize = 10;
/// As above.
pub const RDI: usize = 9;
const RDX: usize = 11;
const RAX: usize = 14;

/// Numbers of system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Number {
    /// Ends the thread with the value in rdi.
    Exit,
    /// Lets other threads run first.
    Yield,
    /// Prints the text of rsi bytes at rdi.
    Print,
    /// Returns the nanoseconds since boot.
    Time,
    /// Reads a message of device rdi into rdx bytes at rsi; returns the header's two words as one, or [`REFUSED`].
    Read,
    /// Writes rdx bytes at rsi to device rdi, whose peer is set; returns 0 or [`REFUSED`].
    Write,
}

/// Result of a refused call.
pub const REFUSED: u64 = u64::MAX;

/// Makes a system call; only for user-mode threads.
pub fn call(number: Number, arguments: [usize; 3]) -> u64 {
    let result;
    // NEED: an interrupt is the way from user to supervisor mode.
    // SOUND: the supervisor checks all addresses, and resumes this thread with its registers, except rax.
    unsafe {
        asm!(
            "int {}",
            const interrupt::SYSTEM_CALL,
            inlateout("rax") number as u64 => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
        );
    }
    result
}

/// Installs the handler of system calls.
pub fn install() {
    interrupt::set_hook(Hook::Call, handle);
}

fn handle(frame: usize) -> usize {
    // NEED: hooks take addresses.
    // SOUND: it is the address of the frame of the system call being handled, on the stack of this thread.
    let frame = unsafe { &mut *(frame as *mut Frame) };
    let [number, first, second, third] = [RAX, RDI, RSI, RDX].map(|register| frame.registers[register]);
    interrupt::enable();
    let result = carry_out(number, [first, second, third].map(|argument| argument as usize));
    frame.registers[RAX] = result.unwrap_or(REFUSED);
    0
}

/// Returns the result of a call, or `None` if it is refused.
fn carry_out(number: u64, [first, second, third]: [usize; 3]) -> Option<u64> {
    const EXIT: u64 = Number::Exit as u64;
    const YIELD: u64 = Number::Yield as u64;
    const PRINT: u64 = Number::Print as u64;
    const TIME: u64 = Number::Time as u64;
    const READ: u64 = Number::Read as u64;
    const WRITE: u64 = Number::Write as u64;
    match number {
        EXIT => super::exit(first as i32),
        YIELD => super::yield_now(),
        PRINT => console::write(user::readable(first, second)?),
        TIME => return Some(timer::nanoseconds()),
        READ => {
            let into = user::writable(second, third)?;
            let header = device::Device::of_number(first)?.read(into).ok()?;
            let [source, channel] = [header.source_core, header.source_channel].map(u64::from);
            return Some(source | channel << 16 | u64::from(header.length) << 32);
        }
        WRITE => {
            let payload = user::readable(second, third).filter(|text| text.len() <= message::LONGEST)?;
            device::Device::of_number(first)?.write(payload).ok()?;
        }
        _ => return None,
    }
    Some(0)
}
