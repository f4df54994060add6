//! Doorbells: the server of QEMU's ivshmem protocol, through which a core interrupts another one.
//!
//! Each machine gets the memory of the chip and a host event (eventfd) for each vector of each core, over a socket
//! that it inherits. After that, machines ring each other without this process. The protocol is QEMU's
//! `docs/specs/ivshmem-spec.txt`, version 0: 64-bit little-endian numbers, with descriptors attached.

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg,
    socketpair,
};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

/// Vectors of a core: pins, messages.
pub const VECTORS: usize = 2;
const PROTOCOL_VERSION: i64 = 0;
/// The core number that marks the descriptor of the memory.
const MEMORY: i64 = -1;
/// Pause before a retry if too many descriptors are in flight to machines that have not read them yet.
const RETRY: Duration = Duration::from_millis(2);

/// The doorbells of all cores of a run.
pub struct Bells {
    cores: Vec<(usize, [OwnedFd; VECTORS])>,
}

/// Both ends of the socket to a machine.
pub struct BellSocket {
    own: OwnedFd,
    machine: OwnedFd,
}

impl Bells {
    /// Creates the doorbells of `cores`.
    ///
    /// # Errors
    /// The system is out of descriptors.
    pub fn new(cores: impl Iterator<Item = usize>) -> io::Result<Bells> {
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let cores = cores.map(|core| Ok((core, [bell()?, bell()?])));
        Ok(Bells { cores: cores.collect::<io::Result<_>>()? })
    }

    /// Sends the machine of `core` its setup: its number, `memory`, the doorbells of all cores.
    ///
    /// # Errors
    /// The machine has ended, or the system refuses.
    pub fn send_setup(&self, core: usize, socket: &BellSocket, memory: BorrowedFd<'_>) -> io::Result<()> {
        let own = socket.own.as_fd();
        send(own, PROTOCOL_VERSION, None)?;
        send(own, core as i64, None)?;
        send(own, MEMORY, Some(memory))?;
        for (peer, bells) in &self.cores {
            for bell in bells {
                send(own, *peer as i64, Some(bell.as_fd()))?;
            }
        }
        Ok(())
    }
}

impl BellSocket {
    /// Creates a socket whose second end the next child inherits.
    ///
    /// # Errors
    /// The system is out of descriptors.
    pub fn new() -> io::Result<BellSocket> {
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)?;
        let (own, machine) = pair;
        rustix::io::fcntl_setfd(&own, rustix::io::FdFlags::CLOEXEC)?;
        Ok(BellSocket { own, machine })
    }

    /// Returns the number of the descriptor that the machine inherits.
    pub fn number(&self) -> i32 {
        self.machine.as_raw_fd()
    }

    /// Closes the machine's end in this process, and returns the other one; it must stay open while the machine runs.
    pub fn into_lifeline(self) -> OwnedFd {
        self.own
    }
}

/// Sends a number with an optional descriptor.
fn send(socket: BorrowedFd<'_>, number: i64, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let bytes = number.to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    loop {
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            beside.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        match sendmsg(socket, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::TOOMANYREFS) => thread::sleep(RETRY),
            Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
}
