//! The service thread of a region at one place: faults of the program, messages of other places, deaths.
//!
//! It waits for all three at once and never for another place, so it answers while the worker computes, waits, or is
//! stopped by a fault. A message is 16 bytes, which a pipe takes whole. The messages that can be under way to a place
//! are less than 4 for each place of the region, so a pipe (64 KiB) is full only with more than 1,000 places; then the
//! sender tries again.

use crate::RegionError;
use crate::peers::RegionPeer;
use crate::state::{BELL, Loss, RegionState, add};
use crate::sys::PAGE_BYTES;
use isles_protocol::PlaceId;
use isles_protocol::svm::{Consistency, PageAccess, PageAction, PageMessage, PageNumber, PermissionNode};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use std::fs::File;
use std::io::{ErrorKind, PipeReader, Read, Write};
use std::sync::Arc;

/// The kind of a message by which a place says that it drops its part.
const LEAVES: u32 = 4;
/// The kind of a message by which a place ends its own service thread.
pub const STOPS: u32 = 5;

/// See the file header.
pub struct Service {
    shared: Arc<RegionState>,
    reader: PipeReader,
    peers: Vec<RegionPeer>,
    /// `None` for the model release.
    node: Option<PermissionNode>,
    /// Revocations that wait for a guard, with what the program keeps.
    deferred: Vec<(PageNumber, bool)>,
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
        PageMessage::Request { page, access } => encode(from, 0, page.0, writes(access)),
        PageMessage::Revoke { page, keeps_read } => encode(from, 1, page.0, u32::from(keeps_read)),
        PageMessage::Revoked { page } => encode(from, 2, page.0, 0),
        PageMessage::Grant { page, access } => encode(from, 3, page.0, writes(access)),
    }
}

fn decode_message(kind: u32, page: u32, detail: u32) -> Option<PageMessage> {
    let page = PageNumber(page);
    let access = if detail == 1 { PageAccess::Write } else { PageAccess::Read };
    Some(match kind {
        0 => PageMessage::Request { page, access },
        1 => PageMessage::Revoke { page, keeps_read: detail == 1 },
        2 => PageMessage::Revoked { page },
        3 => PageMessage::Grant { page, access },
        _ => return None,
    })
}

impl Service {
    pub fn new(shared: Arc<RegionState>, reader: PipeReader, peers: Vec<RegionPeer>) -> Service {
        let RegionState { here, places, pages, model, .. } = *shared;
        let node = (model != Consistency::Release).then(|| PermissionNode::new(here, places, pages, model));
        Service { shared, reader, peers, node, deferred: Vec::new() }
    }

    /// Serves until the place drops its part. If the kernel refuses what it has allowed before, the process ends with
    /// a line: nobody could ever wake the worker.
    pub fn run(mut self) {
        if let Err(error) = self.serve() {
            let _ = writeln!(std::io::stderr(), "shared virtual memory at {}: {error}", self.shared.here);
            std::process::abort();
        }
        for peer in &mut self.peers {
            // Whoever has left already does not read it.
            let _ = send(&mut peer.inlet, &encode(self.shared.here, LEAVES, 0, 0));
        }
    }

    fn serve(&mut self) -> Result<(), RegionError> {
        loop {
            let dead = self.wait()?;
            for place in dead {
                self.lose(Loss::Died(place))?;
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
        }
    }

    /// Waits until something has happened; returns the places that have died.
    fn wait(&mut self) -> Result<Vec<PlaceId>, RegionError> {
        let mut waits = vec![
            PollFd::new(&self.shared.fault, PollFlags::IN),
            PollFd::from_borrowed_fd(self.reader.as_fd(), PollFlags::IN),
        ];
        let watched: Vec<usize> =
            (0..self.peers.len()).filter(|peer| self.peers[*peer].process.is_some()).collect();
        let processes = self.peers.iter().filter_map(|peer| peer.process.as_ref());
        waits.extend(processes.map(|process| PollFd::new(process, PollFlags::IN)));
        match poll(&mut waits, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(crate::sys::failed("poll", "allow more open files")(error)),
        }
        let ended: Vec<bool> = waits.iter().skip(2).map(|wait| !wait.revents().is_empty()).collect();
        drop(waits);
        let dead = watched.into_iter().zip(ended).filter(|(_, ended)| *ended).map(|(peer, _)| peer);
        Ok(dead
            .map(|peer| {
                self.peers[peer].process = None;
                self.peers[peer].place
            })
            .collect())
    }

    fn fault(&mut self, page: PageNumber, access: PageAccess) -> Result<(), RegionError> {
        add(&self.shared.counts.faults, 1);
        match &mut self.node {
            None => self.shared.fault_in_copy(page, access),
            Some(node) => {
                let mut actions = Vec::new();
                node.fault(page, access, &mut actions);
                self.execute(actions)
            }
        }
    }

    /// Takes all messages; returns whether the place drops its part.
    fn receive_all(&mut self) -> Result<bool, RegionError> {
        let mut bytes = [0_u8; 16];
        loop {
            match self.reader.read_exact(&mut bytes) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => {
                    let remedy = "this is a fault of Isles";
                    return Err(RegionError::System { call: "read of the pipe", error, remedy });
                }
            }
            let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
            let (kind, from) = (word(0), PlaceId(word(4)));
            if bytes == BELL {
                self.retry_deferred()?;
            } else if kind == STOPS {
                return Ok(true);
            } else if kind == LEAVES {
                self.lose(Loss::Left(from))?;
            } else if let (Some(message), Some(node)) =
                (decode_message(kind, word(8), word(12)), &mut self.node)
            {
                let mut actions = Vec::new();
                node.receive(from, message, &mut actions);
                self.execute(actions)?;
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
        self.execute(actions)
    }

    fn execute(&mut self, actions: Vec<PageAction>) -> Result<(), RegionError> {
        for action in actions {
            match action {
                PageAction::Send { to, message } => self.send(to, message),
                PageAction::Map { page, access } => {
                    add(&self.shared.counts.pages, 1);
                    // A page that nobody has touched is not in the file yet.
                    self.shared
                        .frames
                        .byte(page.index() * PAGE_BYTES)
                        .load(std::sync::atomic::Ordering::Relaxed);
                    self.shared.map(page, access)?;
                }
                PageAction::Revoke { page, keeps_read } => self.revoke(page, keeps_read)?,
            }
        }
        Ok(())
    }

    fn revoke(&mut self, page: PageNumber, keeps_read: bool) -> Result<(), RegionError> {
        self.deferred.push((page, keeps_read));
        self.shared.deferred.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.retry_deferred()
    }

    /// Revokes what no guard holds any more.
    fn retry_deferred(&mut self) -> Result<(), RegionError> {
        for (page, keeps_read) in std::mem::take(&mut self.deferred) {
            if !self.shared.take(page, keeps_read)? {
                self.deferred.push((page, keeps_read));
                continue;
            }
            self.shared.deferred.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
            let mut actions = Vec::new();
            if let Some(node) = &mut self.node {
                node.revoked(page, &mut actions);
            }
            self.execute(actions)?;
        }
        Ok(())
    }

    fn send(&mut self, to: PlaceId, message: PageMessage) {
        let bytes = encode_message(self.shared.here, message);
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.place == to) {
            add(&self.shared.counts.messages, 1);
            // A place that is gone is heard of otherwise.
            let _ = send(&mut peer.inlet, &bytes);
        }
    }
}

/// Writes a message whole, or fails because nobody reads it any more.
pub fn send(inlet: &mut File, bytes: &[u8; 16]) -> std::io::Result<()> {
    loop {
        match inlet.write_all(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            other => return other,
        }
    }
}
