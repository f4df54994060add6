//! The bells by which ranks of different hosts wake each other.
//!
//! An MPI library waits only by spinning. So each rank listens on a UDP socket with a thread that makes no call of the
//! library, and whoever sends something after a silence rings there. A ring may be lost or come from a stranger: it
//! only makes a place look, and a sleeping place looks from time to time anyway. The same thread keeps the watch.

use crate::library::leave;
use crate::watch::{BEAT_BYTES, Beat, Watch};
use isles_transport::Unpark;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The bell of this rank, and the addresses of those of the others.
#[derive(Debug)]
pub struct Bell {
    socket: UdpSocket,
    addresses: Vec<SocketAddrV4>,
    watch: Option<Watch>,
    // Relaxed: it says nothing of anything else.
    watch_is_over: Arc<AtomicBool>,
    // Relaxed: the ring that follows wakes who looks at it.
    is_down: Arc<AtomicBool>,
}

/// How often a farewell is said.
const FAREWELLS: usize = 3;

/// Exit code of a rank that has lost another.
const EXIT_LOST: i32 = 1;

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
        let (watch_is_over, is_down) = Default::default();
        Ok((Bell { socket, addresses: Vec::new(), watch: None, watch_is_over, is_down }, bytes))
    }

    /// The bells of all ranks, by rank.
    pub fn know(&mut self, addresses: impl IntoIterator<Item = [u8; ADDRESS_BYTES]>) {
        let address = |bytes: [u8; ADDRESS_BYTES]| {
            let [a, b, c, d, low, high] = bytes;
            SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_le_bytes([low, high]))
        };
        self.addresses = addresses.into_iter().map(address).collect();
    }

    /// Keeps this watch from when the bell is listened to, until [`Bell::end_watch`].
    pub fn keep(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    /// Lets each ring of this bell end a wait, from a thread of its own, as long as there is a bell; keeps the watch.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn listen(&self, unparker: Arc<dyn Unpark>) -> io::Result<()> {
        let listener = Listener {
            socket: self.socket.try_clone()?,
            addresses: self.addresses.clone(),
            unparker,
            watch_is_over: Arc::clone(&self.watch_is_over),
            is_down: Arc::clone(&self.is_down),
        };
        let watch = self.watch.clone();
        let listen = move || match watch {
            Some(watch) => listener.watch(watch),
            None => listener.hear(),
        };
        std::thread::Builder::new().name("isles-bell".into()).stack_size(64 << 10).spawn(listen).map(drop)
    }

    /// Tells the partners of the watch that this rank leaves in good order, and watches them no more.
    pub(crate) fn end_watch(&self) {
        if let Some(watch) = self.watch.as_ref().filter(|_| !self.watch_is_over.swap(true, Ordering::Relaxed))
        {
            // A datagram may be lost, and silence would count as death.
            (0..FAREWELLS).for_each(|_| send_beats(&self.socket, &self.addresses, watch, Beat::Farewell));
        }
    }

    /// Rings at `rank`.
    pub(crate) fn ring(&self, rank: u32) {
        if let Some(address) = self.addresses.get(rank as usize) {
            // What is lost is found at the next look.
            let _ = self.socket.send_to(&[1], address);
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.watch_is_over.store(true, Ordering::Relaxed);
        self.is_down.store(true, Ordering::Relaxed);
        // The thread ends at the next ring, be it a stranger's if this one is lost.
        let own = self.socket.local_addr().map(|own| (Ipv4Addr::LOCALHOST, own.port()));
        let _ = own.and_then(|own| self.socket.send_to(&[1], own));
    }
}

/// What the thread of a bell has.
struct Listener {
    socket: UdpSocket,
    addresses: Vec<SocketAddrV4>,
    unparker: Arc<dyn Unpark>,
    watch_is_over: Arc<AtomicBool>,
    is_down: Arc<AtomicBool>,
}

impl Listener {
    /// Hears rings only.
    fn hear(&self) {
        let mut byte = [0];
        // An error is that of a ring of ours which nobody heard.
        while !self.is_down.load(Ordering::Relaxed) {
            let _ = self.socket.recv(&mut byte);
            self.unparker.unpark();
        }
    }

    /// Hears rings and beats, beats itself, and ends the process if a partner is lost.
    fn watch(&self, mut watch: Watch) {
        if self.socket.set_read_timeout(Some(watch.period())).is_err() {
            return self.hear();
        }
        let start = Instant::now();
        let (mut bytes, mut beaten) = ([0; BEAT_BYTES], None);
        while !self.watch_is_over.load(Ordering::Relaxed) {
            if let Ok(len) = self.socket.recv(&mut bytes) {
                match len {
                    BEAT_BYTES => watch.hear(&bytes, start.elapsed()),
                    _ => self.unparker.unpark(),
                }
            }
            let now = start.elapsed();
            if beaten.is_none_or(|beaten| now >= beaten + watch.period()) {
                beaten = Some(now);
                send_beats(&self.socket, &self.addresses, &watch, Beat::Here);
                if let Some(lost) = watch.look(now) {
                    self.end_process(&watch, lost);
                }
            }
        }
        self.hear();
    }

    /// The rank `lost` is silent: says so, and ends this process, which its launcher notices.
    fn end_process(&self, watch: &Watch, lost: u32) {
        if self.watch_is_over.load(Ordering::Relaxed) {
            return;
        }
        let (rank, limit) = (watch.rank(), watch.limit().as_secs_f64());
        eprintln!(
            "isles: place {rank}: place {lost} has not been heard for {limit} s: it, its host or the link to it is \
             down, and the run ends"
        );
        leave(EXIT_LOST)
    }
}

fn send_beats(socket: &UdpSocket, addresses: &[SocketAddrV4], watch: &Watch, beat: Beat) {
    let bytes = watch.beat(beat);
    for address in watch.partners().filter_map(|partner| addresses.get(partner as usize)) {
        // What is lost comes again.
        let _ = socket.send_to(&bytes, address);
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
