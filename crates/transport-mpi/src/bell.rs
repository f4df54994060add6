//! Bells: datagrams that wake a rank of another host.
//!
//! An MPI library waits only by spinning. So each rank has a thread that listens on a UDP socket and makes no call of
//! the library, and a sender that was silent for a while rings there. A ring may be lost or come from a stranger: it
//! only makes the place look, and a sleeping place looks from time to time anyway. The same thread runs the failure
//! detector, which starts before there is a place to wake.

use crate::failure_detector::{FailureDetector, HEARTBEAT_BYTES, Heartbeat};
use crate::library::leave;
use isles_transport::{Unpark, notice};
use std::net::{Ipv4Addr, SocketAddrV4, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{fmt, io};

/// The bell of this rank, and the addresses of the others' bells.
#[derive(Debug)]
pub struct Bell {
    listener: Listener,
    /// Time without a frame to each rank, after which that rank may sleep.
    silences: Vec<Duration>,
    watch: Option<FailureDetector>,
}

/// Number of times a leaving message is sent.
const LEAVING_COPIES: usize = 3;

/// Exit code of a rank that has lost another.
const EXIT_LOST: i32 = 1;

/// Length of an address, as ranks exchange it.
pub(crate) const ADDRESS_BYTES: usize = 6;

impl Bell {
    /// Binds a bell; returns it with its address, for other ranks.
    ///
    /// # Errors
    /// The error of the system.
    pub fn bind() -> io::Result<(Bell, [u8; ADDRESS_BYTES])> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let (address, port) = (own_address(), socket.local_addr()?.port());
        let mut bytes = [0; ADDRESS_BYTES];
        bytes[..4].copy_from_slice(&address.octets());
        bytes[4..].copy_from_slice(&port.to_le_bytes());
        let listener = Listener { socket, addresses: Vec::new(), state: Arc::default() };
        Ok((Bell { listener, silences: Vec::new(), watch: None }, bytes))
    }

    /// Sets the bells of all ranks, by rank, with the time for which each of them at least polls before it sleeps.
    pub fn set_addresses(&mut self, bells: impl IntoIterator<Item = ([u8; ADDRESS_BYTES], Duration)>) {
        let known = |(bytes, look): ([u8; ADDRESS_BYTES], Duration)| {
            let [a, b, c, d, low, high] = bytes;
            let address = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_le_bytes([low, high]));
            (address, look / 2)
        };
        (self.listener.addresses, self.silences) = bells.into_iter().map(known).unzip();
    }

    /// Runs this failure detector until [`Bell::end_detector`]. Call it when the bell knows those of all ranks and they
    /// are about to meet; [`Bell::listen`] then says that they have met.
    ///
    /// # Errors
    /// The error of the system.
    pub fn start_detector(&mut self, watch: FailureDetector) -> io::Result<()> {
        self.watch = Some(watch.clone());
        self.start(|listener| listener.watch(watch))
    }

    /// Makes each ring of this bell end a wait, on a thread of its own, while the bell lives.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn listen(&self, unparker: Arc<dyn Unpark>) -> io::Result<()> {
        let is_first = self.listener.state.unparker.set(Unparker(unparker)).is_ok();
        match self.watch {
            None if is_first => self.start(|listener| listener.hear()),
            _ => Ok(()),
        }
    }

    /// Starts the thread, which runs `listen`.
    fn start(&self, listen: impl FnOnce(Listener) + Send + 'static) -> io::Result<()> {
        let Listener { socket, addresses, state } = &self.listener;
        let listener =
            Listener { socket: socket.try_clone()?, addresses: addresses.clone(), state: Arc::clone(state) };
        let thread = std::thread::Builder::new().name("isles-bell".into()).stack_size(64 << 10);
        thread.spawn(move || listen(listener)).map(drop)
    }

    /// Tells the partners of the detector that this rank leaves in good order, and stops watching them.
    pub(crate) fn end_detector(&self) {
        let Listener { state, .. } = &self.listener;
        if let Some(watch) =
            self.watch.as_ref().filter(|_| !state.watch_is_over.swap(true, Ordering::Relaxed))
        {
            // A datagram may be lost, and silence would count as death.
            (0..LEAVING_COPIES).for_each(|_| self.listener.send_heartbeats(watch, Heartbeat::Leaving));
        }
    }

    /// Rings at `rank` if it may be asleep: nothing was sent to it for `silence`.
    pub(crate) fn ring_after(&self, silence: Duration, rank: u32) {
        let Listener { socket, addresses, .. } = &self.listener;
        let may_sleep = self.silences.get(rank as usize).is_some_and(|longest| silence > *longest);
        if let Some(address) = addresses.get(rank as usize).filter(|_| may_sleep) {
            // A lost ring is found at the next look.
            let _ = socket.send_to(&[1], address);
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let Listener { socket, state, .. } = &self.listener;
        state.watch_is_over.store(true, Ordering::Relaxed);
        state.is_down.store(true, Ordering::Relaxed);
        // The thread ends at the next ring; if this one is lost, at a stranger's.
        let own = socket.local_addr().map(|own| (Ipv4Addr::LOCALHOST, own.port()));
        let _ = own.and_then(|own| socket.send_to(&[1], own));
    }
}

/// Thread to wake.
struct Unparker(Arc<dyn Unpark>);

impl fmt::Debug for Unparker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unparker")
    }
}

/// State shared by a bell and its thread.
#[derive(Debug, Default)]
struct BellState {
    /// Set once there is a place to wake: all ranks have met.
    unparker: OnceLock<Unparker>,
    // Relaxed: it publishes nothing else.
    watch_is_over: AtomicBool,
    // Relaxed: the ring that follows wakes the thread that reads it.
    is_down: AtomicBool,
}

/// The socket and the peers of a bell, also for its thread.
#[derive(Debug)]
struct Listener {
    socket: UdpSocket,
    addresses: Vec<SocketAddrV4>,
    state: Arc<BellState>,
}

impl Listener {
    fn unpark(&self) {
        if let Some(Unparker(unparker)) = self.state.unparker.get() {
            unparker.unpark();
        }
    }

    /// Receives rings only.
    fn hear(&self) {
        let mut byte = [0];
        // An error is the answer to a ring of ours that reached no socket.
        while !self.state.is_down.load(Ordering::Relaxed) {
            let _ = self.socket.recv(&mut byte);
            self.unpark();
        }
    }

    /// Receives rings and heartbeats, sends heartbeats, and ends the process if a partner is lost.
    fn watch(&self, mut watch: FailureDetector) {
        if self.socket.set_read_timeout(Some(watch.period())).is_err() {
            return self.hear();
        }
        let start = Instant::now();
        let (mut bytes, mut beaten) = ([0; HEARTBEAT_BYTES], None);
        while !self.state.watch_is_over.load(Ordering::Relaxed) {
            let now = start.elapsed();
            if beaten.is_none_or(|beaten| now >= beaten + watch.period()) {
                beaten = Some(now);
                self.send_heartbeats(&watch, Heartbeat::Alive);
                if self.state.unparker.get().is_some() {
                    watch.all_connected();
                }
                if let Some(lost) = watch.check(now) {
                    self.end_process(&watch, lost);
                }
            }
            if let Ok(len) = self.socket.recv(&mut bytes) {
                match len {
                    HEARTBEAT_BYTES => watch.receive(&bytes, start.elapsed()),
                    _ => self.unpark(),
                }
            }
        }
        self.hear();
    }

    fn send_heartbeats(&self, watch: &FailureDetector, heartbeat: Heartbeat) {
        let bytes = watch.heartbeat(heartbeat);
        for address in watch.partners().filter_map(|partner| self.addresses.get(partner as usize)) {
            // A lost heartbeat is repeated.
            let _ = self.socket.send_to(&bytes, address);
        }
    }

    /// Reports that the rank `lost` is silent, and ends this process, which its launcher notices.
    fn end_process(&self, watch: &FailureDetector, lost: u32) {
        if self.state.watch_is_over.load(Ordering::Relaxed) {
            return;
        }
        let (rank, limit) = (watch.rank(), watch.limit().as_secs_f64());
        notice(format_args!(
            "isles: place {rank}: no sign of life from place {lost} for {limit} s: it, its host or the \
             link to it is down, and the run ends"
        ));
        leave(EXIT_LOST)
    }
}

/// Returns the address of this host for others: that of its host name, otherwise an own one.
fn own_address() -> Ipv4Addr {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let addresses = (name.trim(), 0).to_socket_addrs().into_iter().flatten();
    let mut fours = addresses.filter_map(|address| match address.ip() {
        std::net::IpAddr::V4(four) => Some(four),
        std::net::IpAddr::V6(_) => None,
    });
    fours.next().unwrap_or(Ipv4Addr::LOCALHOST)
}
