//! Connections between places of several hosts: rendezvous, and messages with the bytes of pages.
//!
//! Each place listens at an address of its host and publishes it with a random token. A place connects to those before
//! it in the order of the region, and sends the token and its number; a connection without the token is rejected. A
//! message is a header of 16 bytes, as in a pipe, and for some kinds a payload with its length in the header.
//!
//! Nothing blocks once the connections exist: pending output is kept in memory, bounded by the protocol's messages in
//! flight.

use crate::RegionError;
use isles_protocol::PlaceId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

const REMEDY: &str = "let the hosts of a region connect to each other by TCP";
const TOKEN_BYTES: usize = 16;
const HELLO_BYTES: usize = TOKEN_BYTES + 4;

/// Time limit for all places of a region to connect, after all have prepared.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// Time limit for a connected place to send its token.
const HELLO_LIMIT: Duration = Duration::from_secs(2);
/// Milliseconds without an acknowledgement after which a peer is dead.
const SILENCE_LIMIT: u32 = 10_000;

/// Bytes per read.
const READ_BYTES: usize = 1 << 16;

/// The largest payload: a mask with a bit for each byte of a page, and all its bytes.
pub const PAYLOAD_MAX: usize = crate::PAGE_BYTES / 8 + crate::PAGE_BYTES;

/// The address at which a place accepts connections, and the token that authenticates a caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketAddress {
    address: SocketAddr,
    token: [u8; TOKEN_BYTES],
}

/// The socket at which a place accepts the connections of others.
pub struct Listener {
    listener: TcpListener,
    token: [u8; TOKEN_BYTES],
}

fn failed(call: &'static str) -> impl Fn(io::Error) -> RegionError {
    move |error| RegionError::System { call, error, remedy: REMEDY }
}

impl Listener {
    pub fn open() -> Result<Listener, RegionError> {
        let mut token = [0; TOKEN_BYTES];
        let random = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut token));
        random.map_err(failed("read of /dev/urandom"))?;
        let listener = TcpListener::bind((own_address(), 0)).map_err(failed("listen"))?;
        Ok(Listener { listener, token })
    }

    pub fn address(&self) -> Option<SocketAddress> {
        Some(SocketAddress { address: self.listener.local_addr().ok()?, token: self.token })
    }

    /// Accepts the next place that knows the token; `None` for a connection without it.
    fn accept(&self, until: Instant) -> Result<Option<(PlaceId, TcpStream)>, RegionError> {
        let left = until.saturating_duration_since(Instant::now());
        let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut waits = [PollFd::new(&self.listener, PollFlags::IN)];
        match poll(&mut waits, Some(&limit)) {
            Ok(0) => return Err(failed("accept")(ErrorKind::TimedOut.into())),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed("poll")(error.into())),
        }
        let (mut stream, _) = self.listener.accept().map_err(failed("accept"))?;
        let mut hello = [0; HELLO_BYTES];
        let received =
            stream.set_read_timeout(Some(HELLO_LIMIT)).and_then(|()| stream.read_exact(&mut hello));
        let (token, number) = hello.split_at(TOKEN_BYTES);
        let number = u32::from_le_bytes(number.try_into().expect("four bytes"));
        Ok((received.is_ok() && token == self.token).then_some((PlaceId(number), stream)))
    }
}

/// Returns the address of this host for other hosts: that of its name, or else loopback.
fn own_address() -> Ipv4Addr {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let addresses = (name.trim(), 0).to_socket_addrs().into_iter().flatten();
    let mut fours = addresses.filter_map(|address| match address {
        SocketAddr::V4(four) => Some(*four.ip()),
        SocketAddr::V6(_) => None,
    });
    fours.next().unwrap_or(Ipv4Addr::LOCALHOST)
}

/// Connects this place to all others, whose addresses are in the order of the region.
pub fn connect_all(
    listener: &Listener,
    here: PlaceId,
    addresses: &[&SocketAddress],
) -> Result<Vec<(PlaceId, Connection)>, RegionError> {
    let until = Instant::now() + CONNECT_LIMIT;
    let mut connections = Vec::new();
    for (place, address) in (0..here.0).map(PlaceId).zip(addresses) {
        let mut stream =
            TcpStream::connect_timeout(&address.address, CONNECT_LIMIT).map_err(failed("connect"))?;
        let mut hello = address.token.to_vec();
        hello.extend(here.0.to_le_bytes());
        stream.write_all(&hello).map_err(failed("connect"))?;
        connections.push((place, Connection::new(stream)?));
    }
    while connections.len() + 1 < addresses.len() {
        let Some((place, stream)) = listener.accept(until)? else { continue };
        let is_due = place > here && place.index() < addresses.len();
        if is_due && connections.iter().all(|(other, _)| *other != place) {
            connections.push((place, Connection::new(stream)?));
        }
    }
    Ok(connections)
}

/// A message that has arrived.
type SocketMessage = ([u8; 16], Vec<u8>);

/// The connection to another place.
pub struct Connection {
    pub stream: TcpStream,
    unsent: VecDeque<u8>,
    unread: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream) -> Result<Connection, RegionError> {
        let made = || -> io::Result<()> {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(None)?;
            rustix::net::sockopt::set_tcp_user_timeout(&stream, SILENCE_LIMIT)?;
            // On an idle connection, only probes show that the other host is gone.
            rustix::net::sockopt::set_tcp_keepidle(&stream, Duration::from_secs(5))?;
            rustix::net::sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(1))?;
            rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
            stream.set_nonblocking(true)
        };
        made().map_err(failed("set-up of a connection"))?;
        Ok(Connection { stream, unsent: VecDeque::new(), unread: Vec::new() })
    }

    /// Returns `true` if output is pending.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends as much of a message as possible; [`Connection::flush`] sends the rest.
    pub fn send(&mut self, header: &[u8; 16], payload: &[u8]) {
        self.unsent.extend(header);
        self.unsent.extend(payload);
        self.flush();
    }

    /// Sends as much pending output as possible. The end of a connection is detected by reads.
    pub fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent.as_slices().0) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// Reads once; returns `false` if the other end is gone.
    pub fn read(&mut self) -> bool {
        let mut bytes = [0; READ_BYTES];
        match self.stream.read(&mut bytes) {
            Ok(0) => false,
            Ok(length) => {
                self.unread.extend_from_slice(&bytes[..length]);
                true
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Takes the complete messages. `payload_bytes` returns the number of bytes after a header, or `None` for an
    /// invalid one, and then so does this.
    pub fn take_messages(
        &mut self,
        payload_bytes: impl Fn(&[u8; 16]) -> Option<usize>,
    ) -> Option<Vec<SocketMessage>> {
        let (mut messages, mut start) = (Vec::new(), 0);
        while let Some(header) = self.unread[start..].first_chunk::<16>().copied() {
            let length = payload_bytes(&header).filter(|length| *length <= PAYLOAD_MAX)?;
            let Some(payload) = self.unread.get(start + 16..start + 16 + length) else { break };
            messages.push((header, payload.to_vec()));
            start += 16 + length;
        }
        self.unread.drain(..start);
        Some(messages)
    }

    /// Sends pending output and a last message within a second, and shuts down the sending side.
    pub fn close(mut self, header: &[u8; 16]) {
        self.unsent.extend(header);
        let limit = Some(Duration::from_secs(1));
        // Places that are gone do not read it.
        let _ = self.stream.set_nonblocking(false).and_then(|()| self.stream.set_write_timeout(limit));
        let _ = self.stream.write_all(self.unsent.make_contiguous());
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }
}
