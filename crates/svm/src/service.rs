//! The service thread of a region at one place: handles faults of the program, messages, and deaths.
//!
//! It waits for all three at once and never for another place, so it answers while the worker computes, waits, or is
//! blocked by a fault. On one host a message is 16 bytes, which a pipe writes atomically. At most 5 messages per place
//! of the region are in flight to a place, so a pipe (64 KiB) is full only with more than 600 places; then the sender
//! retries. Between hosts messages go over sockets, and some carry a page or a difference.

use crate::RegionError;
use crate::peers::{PeerLink, RegionPeer};
use crate::polling::HaltPolling;
use crate::release::Difference;
use crate::state::{BELL, Loss, NO_CPU, RegionState, add};
use crate::sys::PAGE_BYTES;
use isles_protocol::PlaceId;
use isles_protocol::svm::{
    Consistency, LockAction, LockMessage, LockNode, LockNumber, PageAccess, PageAction, PageMessage,
    PageNumber, PermissionNode,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::thread::{CpuSet, sched_setaffinity, sched_yield};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, PipeReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

// Kinds of messages between places. Over a socket, 2 may carry a page, and 3 carries one.
const REQUEST: u32 = 0;
const REVOKE: u32 = 1;
const REVOKED: u32 = 2;
const GRANT: u32 = 3;
/// The place drops its part.
const LEAVES: u32 = 4;
/// Over a socket, model release: a page is requested, a page, a difference, and that it was applied.
const FETCH: u32 = 6;
const CONTENT: u32 = 7;
const DIFFERENCE: u32 = 8;
const APPLIED: u32 = 9;
const LOCK_REQUEST: u32 = 10;
const LOCK_GRANT: u32 = 11;
const LOCK_RELEASE: u32 = 12;

// Kinds of messages of a place to its own service thread: it ends; a lock is wanted, or no longer.
pub const STOPS: u32 = 5;
pub const ASKS_LOCK: u32 = 13;
pub const GIVES_LOCK: u32 = 14;

/// The service thread of a region; see the module.
pub struct Service {
    shared: Arc<RegionState>,
    reader: PipeReader,
    peers: Vec<RegionPeer>,
    /// `None` for the model release.
    node: Option<PermissionNode>,
    locks: LockNode,
    /// By lock: the ticket of the worker's last request.
    tickets: BTreeMap<u32, u32>,
    /// Revocations that wait for a guard, with the permission that the program keeps.
    deferred: Vec<(PageNumber, bool)>,
    /// Differences that wait for a guard, each with its sender.
    deferred_differences: Vec<(PlaceId, PageNumber, Vec<u8>)>,
    polling: HaltPolling,
    /// The processor to which this thread is bound.
    processor: usize,
    /// `true` if the worker was resumed since the last wait, possibly on the processor of this thread.
    has_resumed_worker: bool,
    /// `true` if the revocation being reported ended a permission to write.
    revoked_a_writer: bool,
}

/// Returns the bytes of a message: kind, sender, page, and a detail about the page.
pub fn encode(from: PlaceId, kind: u32, page: u32, detail: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (place, word) in bytes.chunks_exact_mut(4).zip([kind, from.0, page, detail]) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

fn encode_message(from: PlaceId, message: PageMessage) -> [u8; 16] {
    let writes = |access| u32::from(access == PageAccess::Write);
    match message {
        PageMessage::Request { page, access } => encode(from, REQUEST, page.0, writes(access)),
        PageMessage::Revoke { page, keeps_read } => encode(from, REVOKE, page.0, u32::from(keeps_read)),
        PageMessage::Revoked { page } => encode(from, REVOKED, page.0, 0),
        PageMessage::Grant { page, access } => encode(from, GRANT, page.0, writes(access)),
    }
}

fn decode_message(kind: u32, page: u32, detail: u32) -> Option<PageMessage> {
    let page = PageNumber(page);
    let access = if detail == 1 { PageAccess::Write } else { PageAccess::Read };
    Some(match kind {
        REQUEST => PageMessage::Request { page, access },
        REVOKE => PageMessage::Revoke { page, keeps_read: detail == 1 },
        REVOKED => PageMessage::Revoked { page },
        GRANT => PageMessage::Grant { page, access },
        _ => return None,
    })
}

fn decode_lock(kind: u32, number: u32) -> Option<LockMessage> {
    let lock = LockNumber(number);
    Some(match kind {
        LOCK_REQUEST => LockMessage::Request { lock },
        LOCK_GRANT => LockMessage::Grant { lock },
        LOCK_RELEASE => LockMessage::Release { lock },
        _ => return None,
    })
}

/// Word `index` of the header of a message.
fn header_word(header: &[u8; 16], index: usize) -> u32 {
    u32::from_ne_bytes(header[index * 4..index * 4 + 4].try_into().expect("four bytes"))
}

/// Returns the payload bytes after a header over a socket; `None` if the header is invalid.
fn payload_bytes(header: &[u8; 16]) -> Option<usize> {
    match header_word(header, 0) {
        GRANT | CONTENT => Some(PAGE_BYTES),
        REVOKED | DIFFERENCE => Some(header_word(header, 3) as usize),
        REQUEST | REVOKE | LEAVES | FETCH | APPLIED | LOCK_REQUEST | LOCK_GRANT | LOCK_RELEASE => Some(0),
        _ => None,
    }
}

/// Ends the process with an error line: the kernel refuses a call that it allowed before, so the worker could never be
/// woken, or its stores never be seen.
pub fn end_process(here: PlaceId, error: &RegionError) -> ! {
    let _ = writeln!(std::io::stderr(), "shared virtual memory at {here}: {error}");
    std::process::abort();
}

impl Service {
    pub fn new(shared: Arc<RegionState>, reader: PipeReader, peers: Vec<RegionPeer>) -> Service {
        let RegionState { here, places, pages, model, .. } = *shared;
        let node = (model != Consistency::Release).then(|| PermissionNode::new(here, places, pages, model));
        Service {
            shared,
            reader,
            peers,
            node,
            locks: LockNode::new(here, places),
            tickets: BTreeMap::new(),
            deferred: Vec::new(),
            deferred_differences: Vec::new(),
            polling: HaltPolling::default(),
            processor: NO_CPU,
            has_resumed_worker: false,
            revoked_a_writer: false,
        }
    }

    /// Serves until the place drops its part.
    pub fn run(mut self) {
        if let Err(error) = self.serve() {
            end_process(self.shared.here, &error);
        }
        let last = encode(self.shared.here, LEAVES, 0, 0);
        for peer in self.peers {
            match peer.link {
                // Places that have left do not read it.
                PeerLink::Pipe { mut inlet, .. } => drop(send(&mut inlet, &last)),
                PeerLink::Socket(Some(connection)) => connection.close(&last),
                PeerLink::Socket(None) => {}
            }
        }
    }

    fn serve(&mut self) -> Result<(), RegionError> {
        loop {
            for peer in self.wait()? {
                self.attend(peer)?;
            }
            while let Some(event) = self.shared.fault.next() {
                let offset = event.address.wrapping_sub(self.shared.program.base() as usize);
                let page = PageNumber((offset / PAGE_BYTES) as u32);
                let access = if event.is_store { PageAccess::Write } else { PageAccess::Read };
                self.fault(page, access)?;
            }
            if self.receive_all()? {
                return Ok(());
            }
            for Difference { home, page, bytes } in self.shared.differences.take_unsent() {
                let header = encode(self.shared.here, DIFFERENCE, page.0, bytes.len() as u32);
                self.send(home, &header, &bytes);
            }
        }
    }

    /// Waits for events; returns the peers that have some.
    fn wait(&mut self) -> Result<Vec<usize>, RegionError> {
        let mut waits = vec![
            PollFd::new(&self.shared.fault, PollFlags::IN),
            PollFd::from_borrowed_fd(self.reader.as_fd(), PollFlags::IN),
        ];
        let mut watched = Vec::new();
        for (index, peer) in self.peers.iter().enumerate() {
            let wait = match &peer.link {
                PeerLink::Pipe { process: Some(process), .. } => PollFd::new(process, PollFlags::IN),
                PeerLink::Socket(Some(connection)) => {
                    let unsent = if connection.has_unsent() { PollFlags::OUT } else { PollFlags::empty() };
                    PollFd::new(&connection.stream, PollFlags::IN | unsent)
                }
                PeerLink::Pipe { process: None, .. } | PeerLink::Socket(None) => continue,
            };
            waits.push(wait);
            watched.push(index);
        }
        let polls = !std::mem::take(&mut self.has_resumed_worker);
        match poll_then_sleep(&mut waits, polls.then_some(&mut self.polling)) {
            Ok(()) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(crate::sys::failed("poll", "allow more open files")(error)),
        }
        let seen = watched.into_iter().zip(&waits[2..]).filter(|(_, wait)| !wait.revents().is_empty());
        Ok(seen.map(|(index, _)| index).collect())
    }

    /// A process has ended, or a connection is readable or writable.
    fn attend(&mut self, index: usize) -> Result<(), RegionError> {
        let RegionPeer { place, link } = &mut self.peers[index];
        let place = *place;
        let connection = match link {
            PeerLink::Pipe { process, .. } => {
                *process = None;
                return self.lose(Loss::Died(place));
            }
            PeerLink::Socket(None) => return Ok(()),
            PeerLink::Socket(Some(connection)) => connection,
        };
        connection.flush();
        let is_open = connection.read();
        let messages = connection.take_messages(payload_bytes);
        if !is_open || messages.is_none() {
            *link = PeerLink::Socket(None);
        }
        let is_closed = !is_open || messages.is_none();
        for (header, payload) in messages.into_iter().flatten() {
            if header_word(&header, 1) == place.0 {
                self.handle(&header, &payload)?;
            }
        }
        if is_closed { self.lose(Loss::Died(place)) } else { Ok(()) }
    }

    fn fault(&mut self, page: PageNumber, access: PageAccess) -> Result<(), RegionError> {
        add(&self.shared.counts.faults, 1);
        self.follow_worker();
        let Some(node) = &mut self.node else {
            if let Some(home) = self.shared.fault_in_copy(page, access)? {
                self.send(home, &encode(self.shared.here, FETCH, page.0, 0), &[]);
                if self.shared.loss().is_some() {
                    self.shared.end_fetches()?;
                }
            }
            return Ok(());
        };
        let mut actions = Vec::new();
        node.fault(page, access, &mut actions);
        self.execute(actions)
    }

    /// Binds this thread to the processor of its worker, so that handing over a fault wakes no other processor.
    fn follow_worker(&mut self) {
        let processor = self.shared.processor.load(Ordering::Relaxed);
        if processor != self.processor && processor < CpuSet::MAX_CPU {
            let mut set = CpuSet::new();
            set.set(processor);
            // On failure, the scheduler places the thread.
            let _ = sched_setaffinity(None, &set);
            self.processor = processor;
        }
    }

    /// Reads all messages of the pipe; returns `true` if the place drops its part.
    fn receive_all(&mut self) -> Result<bool, RegionError> {
        let mut header = [0_u8; 16];
        loop {
            match self.reader.read_exact(&mut header) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => {
                    let remedy = "this is a fault of Isles";
                    return Err(RegionError::System { call: "read of the pipe", error, remedy });
                }
            }
            if header == BELL {
                self.retry_deferred()?;
                continue;
            }
            let [kind, _, number, detail] = [0, 1, 2, 3].map(|index| header_word(&header, index));
            match kind {
                STOPS => return Ok(true),
                ASKS_LOCK => {
                    self.tickets.insert(number, detail);
                    let lock = LockNumber(number);
                    if self.locks.holds(lock) {
                        self.shared.lock_granted(number, detail);
                    }
                    self.lock_step(|node, out| node.request(lock, out));
                }
                GIVES_LOCK => self.lock_step(|node, out| node.release(LockNumber(number), out)),
                _ => self.handle(&header, &[])?,
            }
        }
    }

    /// Handles a message of another place.
    fn handle(&mut self, header: &[u8; 16], payload: &[u8]) -> Result<(), RegionError> {
        let [kind, from, number, detail] = [0, 1, 2, 3].map(|index| header_word(header, index));
        let (from, page) = (PlaceId(from), PageNumber(number));
        if kind == LEAVES {
            return self.lose(Loss::Left(from));
        }
        if let Some(message) = decode_lock(kind, number) {
            self.lock_step(|node, out| node.receive(from, message, out));
            return Ok(());
        }
        if page.0 >= self.shared.pages {
            return Ok(());
        }
        match kind {
            FETCH => {
                let content = self.shared.frame(page);
                self.send(from, &encode(self.shared.here, CONTENT, page.0, 0), &content);
            }
            CONTENT => self.shared.content_arrived(page, payload)?,
            DIFFERENCE => {
                self.deferred_differences.push((from, page, payload.to_vec()));
                self.shared.deferred.fetch_add(1, Ordering::SeqCst);
                self.retry_differences();
            }
            APPLIED => self.shared.differences.one_applied(),
            _ => {
                // A page that the program can read has the same content already.
                let is_here = self.shared.states[page.index()].load(Ordering::SeqCst) > 0;
                if !payload.is_empty() && !is_here {
                    self.shared.set_frame(page, payload);
                }
                if let (Some(message), Some(node)) = (decode_message(kind, number, detail), &mut self.node) {
                    let mut actions = Vec::new();
                    node.receive(from, message, &mut actions);
                    self.execute(actions)?;
                }
            }
        }
        Ok(())
    }

    fn lock_step(&mut self, step: impl FnOnce(&mut LockNode, &mut Vec<LockAction>)) {
        let mut actions = Vec::new();
        step(&mut self.locks, &mut actions);
        for action in actions {
            match action {
                LockAction::Send { to, message } => {
                    let (kind, lock) = match message {
                        LockMessage::Request { lock } => (LOCK_REQUEST, lock),
                        LockMessage::Grant { lock } => (LOCK_GRANT, lock),
                        LockMessage::Release { lock } => (LOCK_RELEASE, lock),
                    };
                    self.send(to, &encode(self.shared.here, kind, lock.0, 0), &[]);
                }
                LockAction::Granted { lock } => {
                    let ticket = self.tickets.get(&lock.0).copied().unwrap_or_default();
                    self.shared.lock_granted(lock.0, ticket);
                }
            }
        }
    }

    fn lose(&mut self, loss: Loss) -> Result<(), RegionError> {
        self.shared.lose(loss);
        let (Loss::Died(place) | Loss::Left(place)) = loss;
        let mut actions = Vec::new();
        if let Some(node) = &mut self.node {
            node.place_died(place, &mut actions);
        }
        self.locks.place_died();
        self.shared.wake_lock_wait();
        self.shared.differences.wake();
        self.shared.end_fetches()?;
        self.execute(actions)
    }

    fn execute(&mut self, actions: Vec<PageAction>) -> Result<(), RegionError> {
        for action in actions {
            match action {
                PageAction::Send { to, message } => self.send_message(to, message),
                PageAction::Map { page, access } => {
                    add(&self.shared.counts.pages, 1);
                    // A page that nobody has touched is not in the file yet.
                    self.shared.frames.byte(page.index() * PAGE_BYTES).load(Ordering::Relaxed);
                    self.shared.map(page, access)?;
                    self.has_resumed_worker = true;
                }
                PageAction::Revoke { page, keeps_read } => self.revoke(page, keeps_read)?,
            }
        }
        Ok(())
    }

    fn revoke(&mut self, page: PageNumber, keeps_read: bool) -> Result<(), RegionError> {
        self.deferred.push((page, keeps_read));
        self.shared.deferred.fetch_add(1, Ordering::SeqCst);
        self.retry_deferred()
    }

    /// Applies differences of other hosts to pages that no guard holds.
    fn retry_differences(&mut self) {
        for (from, page, bytes) in std::mem::take(&mut self.deferred_differences) {
            if self.shared.apply_difference(page, &bytes) {
                self.shared.deferred.fetch_sub(1, Ordering::SeqCst);
                self.send(from, &encode(self.shared.here, APPLIED, page.0, 0), &[]);
            } else {
                self.deferred_differences.push((from, page, bytes));
            }
        }
    }

    /// Executes deferred revocations and differences of pages that no guard holds any more.
    fn retry_deferred(&mut self) -> Result<(), RegionError> {
        self.retry_differences();
        for (page, keeps_read) in std::mem::take(&mut self.deferred) {
            let Some(before) = self.shared.take(page, keeps_read)? else {
                self.deferred.push((page, keeps_read));
                continue;
            };
            self.revoked_a_writer = before == PageAccess::Write;
            self.shared.deferred.fetch_sub(1, Ordering::SeqCst);
            let mut actions = Vec::new();
            if let Some(node) = &mut self.node {
                node.revoked(page, &mut actions);
            }
            self.execute(actions)?;
        }
        Ok(())
    }

    /// Sends a message about a page, over a socket with the content if the receiver needs it.
    fn send_message(&mut self, to: PlaceId, message: PageMessage) {
        let mut header = encode_message(self.shared.here, message);
        let content = match message {
            PageMessage::Grant { page, .. } if self.shared.has_sockets => self.shared.frame(page),
            PageMessage::Revoked { page } if self.shared.has_sockets && self.revoked_a_writer => {
                header = encode(self.shared.here, REVOKED, page.0, PAGE_BYTES as u32);
                add(&self.shared.counts.bytes, PAGE_BYTES);
                self.shared.frame(page)
            }
            _ => Vec::new(),
        };
        self.send(to, &header, &content);
    }

    fn send(&mut self, to: PlaceId, header: &[u8; 16], payload: &[u8]) {
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.place == to) else { return };
        add(&self.shared.counts.messages, 1);
        match &mut peer.link {
            // The death of a place is detected elsewhere.
            PeerLink::Pipe { inlet, .. } => drop(send(inlet, header)),
            PeerLink::Socket(Some(connection)) => connection.send(header, payload),
            PeerLink::Socket(None) => {}
        }
    }
}

/// Waits until a descriptor is ready: polls for a while, if it may, and then sleeps.
fn poll_then_sleep(
    waits: &mut [PollFd<'_>],
    polling: Option<&mut HaltPolling>,
) -> Result<(), rustix::io::Errno> {
    let Some(polling) = polling else { return poll(waits, None).map(drop) };
    let started = Instant::now();
    let mut last = started;
    if polling.limit() > Duration::ZERO {
        // Returns late if another thread wants this processor.
        sched_yield();
        last = Instant::now();
        polling.record_check(last - started);
    }
    while last - started < polling.limit() {
        if poll(waits, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0 {
            polling.waited(started.elapsed());
            return Ok(());
        }
        let now = Instant::now();
        if polling.record_check(now - last) {
            break;
        }
        last = now;
    }
    poll(waits, None)?;
    polling.waited(started.elapsed());
    Ok(())
}

/// Writes a whole message; fails if the reader is gone.
pub fn send(inlet: &mut File, bytes: &[u8; 16]) -> std::io::Result<()> {
    loop {
        match inlet.write_all(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            other => return other,
        }
    }
}
