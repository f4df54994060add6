//! The receives that wait for frames.
//!
//! A message that a library was told to expect it moves into the memory of the receiver, and shows it at the look that
//! brings it. Others it copies into memory of its own, and shows them at the next look. So some receives are posted
//! from the first look of a place to its end. They take frames in the order in which they were posted, and that is the
//! order of each pair and class. Invariant: at least one is posted, until the end.

use crate::block::{BlockBytes, BlockPool};
use crate::frame::{HEADER_BYTES, RECORD_BYTES, class_of};
use crate::library::{Library, OpenRequest};
use isles_transport::{Class, Inbound, PlaceId};
use std::collections::VecDeque;
use std::rc::Rc;

/// Number of receives posted while nothing comes.
const POSTED: usize = 4;

/// Offset of a frame in its memory: chosen so that the content of its first record is aligned as a block is.
const START: usize = 64 - HEADER_BYTES - RECORD_BYTES;

/// A frame that has come.
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

    /// Its memory, to be kept with the content of its first record, which is so long.
    pub(crate) fn into_content(self, len: usize) -> BlockBytes {
        self.memory.part(START + HEADER_BYTES + RECORD_BYTES, len)
    }
}

/// Receives that wait for frames, and the frames that have arrived.
pub(crate) struct FrameInlet {
    library: Rc<Library>,
    /// Memory of frames alone, all of which have the same length.
    pool: Rc<BlockPool>,
    /// Bytes of the longest frame.
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

    /// Returns `true` if `len` bytes are worth the memory of a whole frame.
    pub(crate) fn is_worth_a_frame(&self, len: usize) -> bool {
        4 * len >= self.room
    }

    /// The oldest frame that is wanted, if it has come.
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

    /// Puts back a frame that [`FrameInlet::next`] gave, as the next one.
    pub(crate) fn put_back(&mut self, frame: ArrivedFrame) {
        self.arrived.push_front(frame);
    }

    /// Posts as many receives as there should be; for when nothing has come, because what has come goes first.
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

    /// Looks once for a frame; whether there was one.
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

    /// Posts nothing more: nothing comes any more.
    pub(crate) fn close(&mut self) {
        self.posted.drain(..).for_each(|request| self.library.cancel(request));
    }
}
