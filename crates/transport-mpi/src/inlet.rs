//! The posted receives for frames.
//!
//! For a message with a posted receive, an MPI library moves the bytes into the receiver's memory, and reports them at
//! the poll that brings them. Others it copies into its own memory, and reports them at the next poll. So some receives
//! are posted from the first poll of a place to its end. They take frames in the order in which they were posted, which
//! is the order of each pair and class. Invariant: at least one is posted, until the end.

use crate::block::{BlockBytes, BlockPool};
use crate::frame::{HEADER_BYTES, RECORD_BYTES, class_of};
use crate::library::{Library, OpenRequest};
use isles_transport::{Class, Inbound, PlaceId};
use std::collections::VecDeque;
use std::rc::Rc;

/// Number of receives posted while nothing arrives.
const POSTED: usize = 4;

/// Offset of a frame in its memory, such that the content of its first record is aligned like a block.
const START: usize = 64 - HEADER_BYTES - RECORD_BYTES;

/// A frame that has arrived.
pub(crate) struct ArrivedFrame {
    pub(crate) source: PlaceId,
    pub(crate) class: Class,
    memory: BlockBytes,
    len: usize,
}

impl ArrivedFrame {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[START..START + self.len]
    }

    /// Returns its memory, to be kept for the content of its first record, which has this length.
    pub(crate) fn into_content(self, len: usize) -> BlockBytes {
        self.memory.part(START + HEADER_BYTES + RECORD_BYTES, len)
    }
}

/// Receives that wait for frames, and the frames that have arrived.
pub(crate) struct FrameInlet {
    library: Rc<Library>,
    /// Memory for frames only, all of the same length.
    pool: Rc<BlockPool>,
    /// Length of the longest frame.
    room: usize,
    posted: VecDeque<OpenRequest<BlockBytes>>,
    /// Frames that have arrived and were not wanted yet, the oldest first.
    arrived: VecDeque<ArrivedFrame>,
}

impl FrameInlet {
    /// Posts receives of frames of at most `room` bytes.
    pub(crate) fn new(library: Rc<Library>, room: usize) -> FrameInlet {
        let (posted, arrived) = (VecDeque::new(), VecDeque::new());
        let mut inlet = FrameInlet { library, pool: Rc::default(), room, posted, arrived };
        (0..POSTED).for_each(|_| inlet.post());
        inlet
    }

    /// Returns `true` if `len` bytes are worth keeping the memory of a whole frame.
    pub(crate) fn is_worth_a_frame(&self, len: usize) -> bool {
        4 * len >= self.room
    }

    /// Returns the oldest wanted frame, if one has arrived.
    pub(crate) fn next(&mut self, inbound: Inbound) -> Option<ArrivedFrame> {
        let is_wanted = |frame: &ArrivedFrame| inbound == Inbound::All || frame.class == Class::Control;
        loop {
            if let Some(index) = self.arrived.iter().position(is_wanted) {
                return self.arrived.remove(index);
            }
            if !self.look() {
                return None;
            }
        }
    }

    /// Returns `true` if a frame has arrived.
    pub(crate) fn has_frame(&mut self) -> bool {
        !self.arrived.is_empty() || self.look()
    }

    /// Puts back a frame that [`FrameInlet::next`] returned, as the next one.
    pub(crate) fn put_back(&mut self, frame: ArrivedFrame) {
        self.arrived.push_front(frame);
    }

    /// Posts the missing receives; call it when nothing has arrived, because arrivals go first.
    #[inline]
    pub(crate) fn repost_receives(&mut self) {
        while self.posted.len() < POSTED {
            self.post();
        }
    }

    fn post(&mut self) {
        let memory = self.pool.take(START + self.room);
        self.posted.push_back(self.library.post_frame(memory, START));
    }

    /// Polls once for a frame; returns whether there was one.
    fn look(&mut self) -> bool {
        let Some(oldest) = self.posted.front_mut() else { return false };
        let Some(frame) = self.library.take_frame(oldest) else { return false };
        let memory = self.posted.pop_front().and_then(OpenRequest::into_bytes).expect("it is done");
        let (source, class) = (PlaceId(frame.from), class_of(frame.tag));
        self.arrived.push_back(ArrivedFrame { source, class, memory, len: frame.len });
        if self.posted.is_empty() {
            self.post();
        }
        true
    }

    /// Posts no more receives: nothing arrives any more.
    pub(crate) fn close(&mut self) {
        self.posted.drain(..).for_each(|request| self.library.cancel(request));
    }
}
