//! Places whose processes another program has started, such as an MPI launcher.
//!
//! One of them creates the segment and tells the others its process and descriptor; they open it through `/proc`, which
//! the system permits between processes of one user. Each watches all others by process descriptors. Invariant: a
//! sibling that ends without having left is marked dead by some survivor.

use crate::segment::{Image, Segment, SegmentError};
use crate::words::SharedWords;
use isles_transport::PlaceId;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

impl Segment {
    /// Returns the descriptor of the segment in this process, which created it, for [`Segment::join_sibling`].
    pub fn descriptor(&self) -> i32 {
        self.file().as_raw_fd()
    }

    /// Attaches to the segment that the living process `process` of this host has created.
    ///
    /// # Errors
    /// The process is not visible from here or not accessible, or the descriptor is not a segment of this program.
    pub fn join_sibling(process: u32, descriptor: i32, image: Image) -> Result<Segment, SegmentError> {
        Segment::attach(file_of(process, descriptor)?, image)
    }

    /// Starts a thread that marks each of these places dead when its process ends, unless the place has left by then. A
    /// process that has already ended counts as ending now.
    ///
    /// # Errors
    /// The system has no process descriptors, or starts no thread.
    pub fn watch_siblings(&self, siblings: Vec<(PlaceId, u32)>) -> io::Result<()> {
        let mut open: Vec<(PlaceId, OwnedFd)> = Vec::new();
        for (place, process) in siblings {
            let process = i32::try_from(process).ok().and_then(Pid::from_raw);
            match process.map(|process| pidfd_open(process, PidfdFlags::empty())) {
                Some(Ok(descriptor)) => open.push((place, descriptor)),
                Some(Err(rustix::io::Errno::SRCH)) | None => self.mark_dead(place),
                Some(Err(error)) => return Err(error.into()),
            }
        }
        let segment = self.clone();
        let watch = move || {
            while !open.is_empty() {
                let mut fds: Vec<_> = open.iter().map(|(_, end)| PollFd::new(end, PollFlags::IN)).collect();
                // After an error (a signal) no descriptor is ready; the next turn polls again.
                let _ = poll(&mut fds, None);
                let ended: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
                let mut ended = ended.into_iter();
                open.retain(|(place, _)| {
                    let is_over = ended.next().unwrap_or(false);
                    if is_over {
                        segment.mark_dead(*place);
                    }
                    !is_over
                });
            }
        };
        std::thread::Builder::new().name("isles-watch".into()).stack_size(64 << 10).spawn(watch).map(drop)
    }
}

impl SharedWords {
    /// Returns the descriptor of the words in this process, which created them, for [`SharedWords::join_sibling`].
    pub fn descriptor(&self) -> i32 {
        self.file().as_raw_fd()
    }

    /// Attaches to the words that the living process `process` of this host has created.
    ///
    /// # Errors
    /// The process is not visible from here or not accessible, or the descriptor is not that of shared words.
    pub fn join_sibling(process: u32, descriptor: i32) -> Result<SharedWords, SegmentError> {
        SharedWords::attach(file_of(process, descriptor)?)
    }
}

/// Opens the memory file behind a descriptor of another process.
fn file_of(process: u32, descriptor: i32) -> Result<OwnedFd, SegmentError> {
    let path = format!("/proc/{process}/fd/{descriptor}");
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file =
        file.map_err(|_| SegmentError::NotASegment("the process that made it cannot be looked into"))?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_transport::{Class, Endpoint, HandlerId, Inbound};
    use std::process::{Command, id};
    use std::sync::atomic::Ordering;

    const IMAGE: Image = [7; 16];

    #[test]
    fn a_segment_is_joined_by_process_and_descriptor() {
        let ours = Segment::for_places(2, IMAGE).unwrap();
        let theirs = Segment::join_sibling(id(), ours.descriptor(), IMAGE).unwrap();
        let (here, there) = (ours.endpoint(PlaceId(0)).unwrap(), theirs.endpoint(PlaceId(1)).unwrap());
        here.send(PlaceId(1), Class::Data, HandlerId(5), 0, &mut |_| Some(0)).unwrap();
        assert_eq!(there.progress(Inbound::All, &mut |_| ()), 1);
        assert!(Segment::join_sibling(id(), ours.descriptor(), [8; 16]).is_err(), "another program");
        assert!(Segment::join_sibling(id(), 1_000_000, IMAGE).is_err(), "no such descriptor");
    }

    #[test]
    fn words_are_joined_by_process_and_descriptor() {
        let ours = SharedWords::create(8).unwrap();
        let theirs = SharedWords::join_sibling(id(), ours.descriptor()).unwrap();
        theirs.words()[3].store(7, Ordering::Relaxed);
        assert_eq!(ours.words()[3].load(Ordering::Relaxed), 7);
        assert!(SharedWords::join_sibling(id(), 1_000_000).is_err(), "no such descriptor");
    }

    #[test]
    fn a_sibling_whose_process_ends_is_dead_and_one_that_has_left_is_not() {
        let segment = Segment::for_places(3, IMAGE).unwrap();
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let endpoints = [0, 1, 2].map(|place| segment.endpoint(PlaceId(place)).unwrap());
        endpoints[2].leave();
        segment.watch_siblings(vec![(PlaceId(1), child.id()), (PlaceId(2), child.id())]).unwrap();
        assert!(!endpoints[0].is_dead(PlaceId(1)));
        child.kill().unwrap();
        child.wait().unwrap();
        while !endpoints[0].is_dead(PlaceId(1)) {
            std::thread::yield_now();
        }
        assert!(!endpoints[0].is_dead(PlaceId(2)));
    }
}
