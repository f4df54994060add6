//! The bells by which ranks of different hosts wake each other.
//!
//! An MPI library waits only by spinning. So each rank listens on a UDP socket with a thread that makes no call of the
//! library, and whoever sends something after a silence rings there. A ring may be lost or come from a stranger: it
//! only makes a place look, and a sleeping place looks from time to time anyway.

use isles_transport::Unpark;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

/// The bell of this rank, and the addresses of those of the others.
#[derive(Debug)]
pub struct Bell {
    socket: UdpSocket,
    addresses: Vec<SocketAddrV4>,
}

/// Bytes of an address, as ranks tell each other.
pub(crate) const ADDRESS_BYTES: usize = 6;

impl Bell {
    /// Hangs up a bell, and says its address in bytes that other ranks know how to read.
    ///
    /// # Errors
    /// What the system says.
    pub fn hang() -> io::Result<(Bell, [u8; ADDRESS_BYTES])> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let (address, port) = (own_address(), socket.local_addr()?.port());
        let mut bytes = [0; ADDRESS_BYTES];
        bytes[..4].copy_from_slice(&address.octets());
        bytes[4..].copy_from_slice(&port.to_le_bytes());
        Ok((Bell { socket, addresses: Vec::new() }, bytes))
    }

    /// The bells of all ranks, by rank.
    pub fn know(&mut self, addresses: impl IntoIterator<Item = [u8; ADDRESS_BYTES]>) {
        let address = |bytes: [u8; ADDRESS_BYTES]| {
            let [a, b, c, d, low, high] = bytes;
            SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_le_bytes([low, high]))
        };
        self.addresses = addresses.into_iter().map(address).collect();
    }

    /// Lets each ring of this bell end a wait, from a thread of its own, to the end of the process.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn listen(&self, unparker: Arc<dyn Unpark>) -> io::Result<()> {
        let socket = self.socket.try_clone()?;
        let listen = move || {
            let mut byte = [0];
            // An error is that of a ring of ours which nobody heard.
            loop {
                let _ = socket.recv(&mut byte);
                unparker.unpark();
            }
        };
        std::thread::Builder::new().name("isles-bell".into()).stack_size(64 << 10).spawn(listen).map(drop)
    }

    /// Rings at `rank`.
    pub(crate) fn ring(&self, rank: u32) {
        if let Some(address) = self.addresses.get(rank as usize) {
            // What is lost is found at the next look.
            let _ = self.socket.send_to(&[1], address);
        }
    }
}

/// The address under which other hosts know this one: that of its name, else the own one of any host.
fn own_address() -> Ipv4Addr {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let addresses = (name.trim(), 0).to_socket_addrs().into_iter().flatten();
    let mut fours = addresses.filter_map(|address| match address.ip() {
        std::net::IpAddr::V4(four) => Some(four),
        std::net::IpAddr::V6(_) => None,
    });
    fours.next().unwrap_or(Ipv4Addr::LOCALHOST)
}
