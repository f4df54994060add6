//! Connects the places of a region: by descriptors (`/proc/PID/fd`) on one host, by sockets on several.
//!
//! On one host, each place has a pipe, whose reading end is that of its service thread; the first one has the memory
//! file too. A place publishes their location in a [`PlaceAddress`], and opens those of the others. The file descriptor
//! of a process (`pidfd`) signals its death, independent of threads that may wait for a page.

use crate::RegionError;
use crate::socket::{Connection, Listener, SocketAddress, connect_all};
use crate::sys::{failed, memory_file};
use isles_protocol::PlaceId;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter};

const REMEDY: &str = "allow the process to open its own descriptors by /proc";

/// The descriptors of one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceAddress {
    process: u32,
    /// The writing end of its pipe.
    inlet: i32,
    /// The memory file, at the first place of the region.
    memory: Option<i32>,
    /// The host and its namespace of processes.
    host: String,
    /// The address for connections, if the region spans hosts.
    socket: Option<SocketAddress>,
}

impl PlaceAddress {
    /// Returns `true` if places are on different hosts, or in different namespaces of processes. Then each must call
    /// [`RegionSeed::listen`] and send its address again.
    pub fn span_hosts(addresses: &[PlaceAddress]) -> bool {
        addresses.iter().any(|address| address.host != addresses[0].host)
    }
}

/// The part of one place of a region, before it has the addresses of the others.
pub struct RegionSeed {
    pub(crate) reader: PipeReader,
    pub(crate) writer: PipeWriter,
    pub(crate) memory: Option<OwnedFd>,
    listener: Option<Listener>,
}

/// The connection to another place.
pub(crate) enum PeerLink {
    /// On this host: its pipe; the process is `None` if it is this one, or has been seen to end.
    Pipe { inlet: File, process: Option<OwnedFd> },
    /// In a region that spans hosts; `None` once the other end is gone.
    Socket(Option<Connection>),
}

/// The connection of a service thread to another place.
pub(crate) struct RegionPeer {
    pub(crate) place: PlaceId,
    pub(crate) link: PeerLink,
}

impl RegionSeed {
    /// Opens the descriptors of this place; `memory_bytes` at the first place of the region only.
    ///
    /// # Errors
    /// The kernel refuses a pipe or a memory file.
    pub fn new(memory_bytes: Option<usize>) -> Result<RegionSeed, RegionError> {
        let pipe_error = |error| RegionError::System { call: "pipe", error, remedy: "allow more open files" };
        let (reader, writer) = io::pipe().map_err(pipe_error)?;
        let nonblocking = failed("FIONBIO", REMEDY);
        rustix::io::ioctl_fionbio(&reader, true).map_err(&nonblocking)?;
        rustix::io::ioctl_fionbio(&writer, true).map_err(&nonblocking)?;
        let memory = memory_bytes.map(memory_file).transpose()?;
        Ok(RegionSeed { reader, writer, memory, listener: None })
    }

    /// Lets places of other hosts connect to this one. If one place of a region listens, all must; then pages travel
    /// over sockets between all of them, and no memory is shared.
    ///
    /// # Errors
    /// The kernel refuses a socket.
    pub fn listen(&mut self) -> Result<(), RegionError> {
        self.listener = Some(Listener::open()?);
        Ok(())
    }

    /// Connects to the places of a region over sockets, if they listen; `None` if they do not.
    pub(crate) fn connect(
        &self,
        here: PlaceId,
        addresses: &[PlaceAddress],
    ) -> Result<Option<Vec<RegionPeer>>, RegionError> {
        let sockets: Option<Vec<&SocketAddress>> =
            addresses.iter().map(|address| address.socket.as_ref()).collect();
        let (Some(listener), Some(sockets)) = (&self.listener, sockets) else { return Ok(None) };
        let connections = connect_all(listener, here, &sockets)?;
        let peers = connections
            .into_iter()
            .map(|(place, connection)| RegionPeer { place, link: PeerLink::Socket(Some(connection)) });
        Ok(Some(peers.collect()))
    }

    /// Returns the address for the other places.
    pub fn address(&self) -> PlaceAddress {
        PlaceAddress {
            process: std::process::id(),
            inlet: self.writer.as_raw_fd(),
            memory: self.memory.as_ref().map(AsRawFd::as_raw_fd),
            host: host(),
            socket: self.listener.as_ref().and_then(Listener::address),
        }
    }
}

/// Returns a text that is equal exactly in the processes of one host and PID namespace. Hosts that are namespaces of
/// one machine differ by their names.
fn host() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{} {} {}", boot.trim(), namespace.display(), name.trim())
}

/// Opens a descriptor of a process.
fn open(address: &PlaceAddress, descriptor: i32, reads: bool) -> Result<File, RegionError> {
    let path = format!("/proc/{}/fd/{descriptor}", address.process);
    OpenOptions::new().read(reads).write(true).open(path).map_err(|error| RegionError::System {
        call: "open of a descriptor of another place",
        error,
        remedy: REMEDY,
    })
}

/// Opens the memory file of the region.
pub(crate) fn open_memory(addresses: &[PlaceAddress]) -> Result<File, RegionError> {
    let (first, descriptor) = addresses
        .iter()
        .find_map(|address| Some((address, address.memory?)))
        .expect("the first place of a region has its memory");
    open(first, descriptor, true)
}

/// Opens the pipes of all other places.
pub(crate) fn open_peers(here: PlaceId, addresses: &[PlaceAddress]) -> Result<Vec<RegionPeer>, RegionError> {
    let own = host();
    let mut peers = Vec::new();
    for (place, address) in (0..).map(PlaceId).zip(addresses).filter(|(place, _)| *place != here) {
        if address.host != own {
            return Err(RegionError::OtherHost(place));
        }
        let inlet = open(address, address.inlet, false)?;
        rustix::io::ioctl_fionbio(&inlet, true).map_err(failed("FIONBIO", REMEDY))?;
        let process = match i32::try_from(address.process).ok().and_then(Pid::from_raw) {
            Some(_) if address.process == std::process::id() => None,
            Some(process) => Some(pidfd_open(process, PidfdFlags::empty()).map_err(|error| match error {
                Errno::SRCH => RegionError::DeadPlace(place),
                error => failed("pidfd_open", "shared virtual memory needs Linux 5.19")(error),
            })?),
            None => return Err(RegionError::DeadPlace(place)),
        };
        peers.push(RegionPeer { place, link: PeerLink::Pipe { inlet, process } });
    }
    Ok(peers)
}
