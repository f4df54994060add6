//! One place's attachment to the ranks of an MPI run.
//!
//! Small messages to one place and class share a frame, which leaves when it is full, at each `progress`, before a
//! wait, and at once after a silence. A large message is announced in a frame and comes separately, straight into its
//! memory; later messages of its class wait for it. Invariants: credit covers everything in flight; nothing is borrowed
//! while a message is written or handed on, because both may send.

mod receiving;

pub use receiving::MpiBlock;

use crate::bell::Bell;
use crate::block::{BlockBytes, BlockPool};
use crate::credit::{PairCredit, window};
use crate::frame::{
    BLOCK_RECORD_BYTES, Frame, FrameBytes, FramePool, HEADER_BYTES, RECORD_BYTES, record_bytes, tag_of,
};
use crate::inlet::FrameInlet;
use crate::library::{Library, OpenRequest};
use crate::token_bucket::TokenBucket;
use isles_transport::composite::FarEndpoint;
use isles_transport::{
    Arrival, Class, Death, Endpoint, HandlerId, Inbound, Lending, Limits, MappedMemory, Multicast, Next,
    OtherHosts, PlaceId, ReentryGuard, SendError, SpanSink, Unpark, WorkModel,
};
use receiving::DeferredArrival;
use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Length at which a frame is sent, in bytes.
const FRAME_BYTES: usize = 4096;

/// Time since the last look that found nothing after which this place was computing, or was not scheduled.
const AWAY: Duration = Duration::from_micros(5);

/// Longest sleep of a place: the library moves large messages only while it is called, and a ring may be lost.
const SLEEP_MOVING: Duration = Duration::from_micros(50);
const SLEEP: Duration = Duration::from_millis(10);

/// Length of the largest block: a count of the library is an `int`.
const BLOCK_MAX: usize = 1 << 30;

/// Largest number of ranks that are all told that a place has left; in a larger run only those with which it has
/// communicated.
const NOTIFIED_MAX: u32 = 256;

const CLASSES: [Class; 2] = [Class::Control, Class::Data];

/// Returns the length of the longest frame: one that is nearly full, and then gets the longest record and three short
/// ones.
fn frame_bytes_max(window: u32) -> usize {
    HEADER_BYTES + FRAME_BYTES + window as usize / 2 + 3 * BLOCK_RECORD_BYTES
}

/// State of a place that this one has communicated with.
struct RemotePlace {
    credit: PairCredit,
    /// Frames by class.
    frames: [Frame; 2],
    waiting: [VecDeque<DeferredArrival>; 2],
    has_left: bool,
    /// True if it is in [`MpiEndpoint::dirty`].
    is_dirty: bool,
    /// Time at which something was last sent to it, since the start.
    last_sent: Option<Duration>,
    bucket: TokenBucket,
    next_tag: u32,
}

#[derive(Default)]
struct EndedWait(AtomicBool);

impl Unpark for EndedWait {
    fn unpark(&self) {
        // PAIR mpi.unparked: publish
        self.0.store(true, Ordering::Release);
    }
}

/// The endpoint of a rank. Dropping it waits until all ranks drop theirs.
pub struct MpiEndpoint {
    library: Rc<Library>,
    bell: Option<Bell>,
    window: u32,
    peers: RefCell<Vec<Option<Box<RemotePlace>>>>,
    /// The places with something to send to them, without duplicates.
    dirty: RefCell<Vec<PlaceId>>,
    /// Frames that the library is sending.
    sent_frames: RefCell<Vec<OpenRequest<FrameBytes>>>,
    sent_blocks: RefCell<Vec<OpenRequest<BlockBytes>>>,
    /// The places and classes that wait for a block.
    stalled: RefCell<Vec<(PlaceId, Class)>>,
    blocks: Rc<BlockPool>,
    dropped: Rc<RefCell<Vec<(PlaceId, u64)>>>,
    /// Receiver of frames, and the memory of frames to send.
    inlet: RefCell<FrameInlet>,
    frame_pool: Rc<FramePool>,
    /// True if a send was refused, and then if credit has come back since.
    refused: Cell<bool>,
    has_room_again: Cell<bool>,
    /// True once this place has left: it sends nothing more, not even owed credit.
    has_left: Cell<bool>,
    end_limit: Option<Duration>,
    start: Instant,
    /// Tokens of frames that may leave before a task runs.
    bucket: Cell<TokenBucket>,
    /// Time at which this place last looked for messages and found none, since the start.
    looked: Cell<Duration>,
    unparked: Arc<EndedWait>,
    reentry: ReentryGuard,
}

impl MpiEndpoint {
    /// Makes the endpoint of this rank. With a bell, which must know those of the others, sleeping places are woken.
    pub fn new(library: Rc<Library>, bell: Option<Bell>) -> MpiEndpoint {
        let peers = (0..library.size()).map(|_| None).collect();
        let window = window(library.size());
        let inlet = FrameInlet::new(Rc::clone(&library), frame_bytes_max(window));
        MpiEndpoint {
            window,
            library,
            bell,
            peers: RefCell::new(peers),
            dirty: RefCell::default(),
            sent_frames: RefCell::default(),
            sent_blocks: RefCell::default(),
            stalled: RefCell::default(),
            blocks: Rc::default(),
            dropped: Rc::default(),
            inlet: RefCell::new(inlet),
            frame_pool: Rc::default(),
            refused: Cell::new(false),
            has_room_again: Cell::new(false),
            has_left: Cell::new(false),
            end_limit: None,
            start: Instant::now(),
            bucket: Cell::default(),
            looked: Cell::default(),
            unparked: Arc::default(),
            reentry: ReentryGuard::default(),
        }
    }

    /// Makes the run end with an error line if, after this endpoint is dropped, another rank keeps its own longer than
    /// `limit`.
    #[must_use]
    pub fn ends_within(mut self, limit: Duration) -> MpiEndpoint {
        self.end_limit = Some(limit);
        self
    }

    /// Records that nothing has come; this is the time to post receives again.
    fn note_empty_poll(&self) {
        self.looked.set(self.start.elapsed());
        self.inlet.borrow_mut().repost_receives();
    }

    /// Returns `true` if messages may have waited here for a while.
    fn was_away(&self) -> bool {
        self.start.elapsed().saturating_sub(self.looked.get()) >= AWAY
    }

    fn peer(&self, place: PlaceId) -> RefMut<'_, RemotePlace> {
        RefMut::map(self.peers.borrow_mut(), |peers| {
            &mut **peers[place.index()].get_or_insert_with(|| {
                Box::new(RemotePlace {
                    credit: PairCredit::new(self.window),
                    frames: CLASSES.map(|_| Frame::new(&self.frame_pool)),
                    waiting: Default::default(),
                    has_left: false,
                    is_dirty: false,
                    last_sent: None,
                    bucket: TokenBucket::default(),
                    next_tag: 0,
                })
            })
        })
    }

    /// Makes [`MpiEndpoint::flush`] look at `place`.
    fn note_dirty(&self, place: PlaceId, peer: &mut RemotePlace) {
        if !std::mem::replace(&mut peer.is_dirty, true) {
            self.dirty.borrow_mut().push(place);
        }
    }

    fn check_send(&self, to: PlaceId, len: usize, max: usize) -> Result<(), SendError> {
        assert_ne!(to, self.here(), "{to} sends to itself through its endpoint");
        assert!(to.0 < self.places(), "{to} does not exist, there are {} places", self.places());
        self.reentry.check_send();
        if len > max { Err(SendError::TooLong { len, max }) } else { Ok(()) }
    }

    fn refuse(&self) -> SendError {
        self.refused.set(true);
        self.has_room_again.set(false);
        SendError::Full
    }

    /// Sends a large message inside a frame, if it is short enough and the frame has room; returns whether it did.
    ///
    /// Called when there is room for it as a block, which would take longer, because a block is announced and sent
    /// apart.
    fn send_inline_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        let mut peer = self.peer(to);
        if len > self.limits().inline_bytes_max || !peer.credit.has_room(class, record_bytes(len)) {
            return false;
        }
        let written = {
            let _fill = self.reentry.fill();
            peer.frames[tag_of(class) as usize].add_inline_block(handler, len, fill)
        };
        peer.credit.send(class, written.unwrap_or_default());
        peer.credit.send_block(len as u64);
        self.send_frame(to, &mut peer, class);
        true
    }

    /// Sends the frame of a class to `place`.
    fn send_frame(&self, place: PlaceId, peer: &mut RemotePlace, class: Class) {
        self.send_frame_at(self.start.elapsed(), place, peer, class);
    }

    /// As [`MpiEndpoint::send_frame`], with the time as an argument.
    fn send_frame_at(&self, now: Duration, place: PlaceId, peer: &mut RemotePlace, class: Class) {
        let returned = peer.credit.take_owed();
        let bytes = peer.frames[tag_of(class) as usize].finish(returned);
        let request = self.library.send_frame(bytes, place.0, tag_of(class));
        self.keep(request, &self.sent_frames);
        let silence = peer.last_sent.replace(now).map_or(Duration::MAX, |last| now.saturating_sub(last));
        if let Some(bell) = &self.bell {
            bell.ring_after(silence, place.0);
        }
    }

    /// Adds a request to `others` unless it is done.
    fn keep<B>(&self, mut request: OpenRequest<B>, others: &RefCell<Vec<OpenRequest<B>>>) {
        if !self.library.is_done(&mut request) {
            others.borrow_mut().push(request);
        }
    }

    /// Records the credit owed for large messages that were dropped here.
    #[inline]
    fn note_dropped(&self) {
        if self.dropped.borrow().is_empty() {
            return;
        }
        for (source, len) in self.dropped.take() {
            let mut peer = self.peer(source);
            peer.credit.dropped(len);
            self.note_dirty(source, &mut peer);
        }
    }

    /// Sends all frames that have records, and returns credit that is due; if the place is idle, also the credit of
    /// single large messages, which otherwise goes with the next frame.
    #[inline]
    fn flush(&self, is_idle: bool) {
        self.note_dropped();
        if !self.dirty.borrow().is_empty() {
            self.send_dirty(is_idle);
        }
        self.forget_done(&self.sent_frames);
        self.forget_done(&self.sent_blocks);
    }

    /// Sends to the places of [`MpiEndpoint::note_dirty`].
    fn send_dirty(&self, is_idle: bool) {
        for place in self.dirty.take() {
            let mut peer = self.peer(place);
            peer.is_dirty = false;
            for class in CLASSES {
                if !peer.frames[tag_of(class) as usize].is_empty() {
                    self.send_frame(place, &mut peer, class);
                }
            }
            if self.has_left.get() {
                continue;
            }
            let owes_blocks = peer.credit.owes_blocks();
            if peer.credit.is_return_due() || owes_blocks && is_idle || peer.credit.defer_return() {
                self.send_frame(place, &mut peer, Class::Control);
            } else if owes_blocks {
                self.note_dirty(place, &mut peer);
            }
        }
    }

    /// Removes the requests that the library has finished.
    #[inline]
    fn forget_done<B>(&self, sent: &RefCell<Vec<OpenRequest<B>>>) {
        if !sent.borrow().is_empty() {
            sent.borrow_mut().retain_mut(|request| !self.library.is_done(request));
        }
    }

    /// Returns `true` if the library has work that it does only while it is called.
    fn is_moving(&self) -> bool {
        !self.sent_frames.borrow().is_empty()
            || !self.sent_blocks.borrow().is_empty()
            || !self.stalled.borrow().is_empty()
    }

    /// Returns `true` if all other places that will say so have said that they send nothing more.
    fn have_others_left(&self) -> bool {
        let has_left = |peer: &Option<Box<RemotePlace>>| peer.as_ref().is_some_and(|peer| peer.has_left);
        let left = self.peers.borrow().iter().filter(|peer| has_left(peer)).count();
        left + 1 == self.places() as usize || self.places() > NOTIFIED_MAX
    }

    /// Receives and drops messages until everything sent has left and all ranks are here.
    fn close(&self) {
        let (mut barrier, start) = (None, Instant::now());
        loop {
            if self.end_limit.is_some_and(|limit| start.elapsed() > limit) {
                self.library.abort(&"another rank does not end, although the run is over");
            }
            self.progress(Inbound::All, &mut |arrival| drop(arrival));
            if barrier.is_none() && !self.is_moving() && self.have_others_left() {
                barrier = Some(self.library.begin_barrier());
            }
            if barrier.as_mut().is_some_and(|barrier| self.library.is_done(barrier)) {
                return self.inlet.borrow_mut().close();
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for MpiEndpoint {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.library.abort(&"the place panicked");
        }
        self.leave();
        if let Some(bell) = &self.bell {
            bell.end_detector();
        }
        self.close();
    }
}

impl Endpoint for MpiEndpoint {
    fn here(&self) -> PlaceId {
        PlaceId(self.library.rank())
    }

    fn places(&self) -> u32 {
        self.library.size()
    }

    fn limits(&self) -> Limits {
        // Two of the longest records fit the window.
        let longest = self.window as usize / 2 - RECORD_BYTES;
        Limits { inline_bytes_max: longest, control_bytes_max: longest, block_bytes_max: BLOCK_MAX }
    }

    /// The library spins; the near endpoint decides what to do about it.
    fn shares_processors(&self) -> bool {
        false
    }

    fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Result<(), SendError> {
        self.check_send(to, room, self.limits().inline_bytes_max)?;
        self.note_dropped();
        let mut peer = self.peer(to);
        if peer.has_left {
            return Err(SendError::DeadPlace(to));
        }
        let bytes = record_bytes(room);
        if !peer.credit.has_room(class, bytes) {
            return Err(self.refuse());
        }
        if peer.frames[tag_of(class) as usize].len() + bytes > FRAME_BYTES
            && !peer.frames[tag_of(class) as usize].is_empty()
        {
            self.send_frame(to, &mut peer, class);
        }
        let written = {
            let _fill = self.reentry.fill();
            peer.frames[tag_of(class) as usize].add(handler, room, fill).ok_or(SendError::Abandoned)?
        };
        peer.credit.send(class, written);
        let now = self.start.elapsed();
        if peer.bucket.take(now) || peer.frames[tag_of(class) as usize].len() >= FRAME_BYTES {
            self.send_frame_at(now, to, &mut peer, class);
        } else {
            self.note_dirty(to, &mut peer);
        }
        Ok(())
    }

    fn send_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendError> {
        self.check_send(to, len, BLOCK_MAX)?;
        self.note_dropped();
        {
            let peer = self.peer(to);
            if peer.has_left {
                return Err(SendError::DeadPlace(to));
            }
            let has_room = peer.credit.has_room(class, BLOCK_RECORD_BYTES);
            if !has_room || !peer.credit.has_block_room(len as u64) {
                return Err(self.refuse());
            }
        }
        if self.send_inline_block(to, class, handler, len, fill) {
            return Ok(());
        }
        let mut memory = self.blocks.take(len);
        {
            let _fill = self.reentry.fill();
            fill(memory.bytes_mut());
        }
        let mut peer = self.peer(to);
        let tag = peer.next_tag;
        // Few are in flight at a time, and a library must offer tags up to at least 32767.
        peer.next_tag = (tag + 1) % 32_768;
        peer.credit.send(class, BLOCK_RECORD_BYTES);
        peer.credit.send_block(len as u64);
        peer.frames[tag_of(class) as usize].add_block(handler, len as u64, tag);
        self.send_frame(to, &mut peer, class);
        let request = self.library.send_block(memory, to.0, tag);
        self.keep(request, &self.sent_blocks);
        Ok(())
    }

    fn progress(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let _deliver = self.reentry.deliver();
        self.flush(false);
        let count = self.receive(inbound, deliver);
        self.flush(count == 0);
        count
    }

    /// Offered for a message that is alone in its frame.
    fn take_next(
        &self,
        from: PlaceId,
        class: Class,
        wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        let _deliver = self.reentry.deliver();
        self.flush(false);
        self.receive_next(from, class, wants)
    }

    fn is_ready(&self) -> bool {
        // Relaxed: the wait that this ends observes it.
        self.unparked.0.load(Ordering::Relaxed)
            || self.has_room_again.get()
            || !self.dropped.borrow().is_empty()
            || self.has_stalled()
            || self.has_frame()
    }

    /// Returns `false`: deferred frames leave with each `progress`, and before the place sleeps.
    fn is_sending(&self) -> bool {
        false
    }

    /// Polls, and yields the processor in between: for a rank without a near endpoint to sleep in.
    fn wait_with(&self, timeout: Option<Duration>, also: &dyn Fn() -> bool) {
        self.reentry.check_wait();
        self.before_sleep();
        let start = Instant::now();
        while !also() && !self.is_ready() && timeout.is_none_or(|timeout| start.elapsed() < timeout) {
            std::thread::yield_now();
        }
        self.has_room_again.set(false);
        // PAIR mpi.unparked: observe
        self.unparked.0.swap(false, Ordering::Acquire);
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::clone(&self.unparked) as Arc<dyn Unpark>
    }

    /// Returns `false`: a rank that dies ends the run, because neither library goes on without it.
    fn is_dead(&self, _place: PlaceId) -> bool {
        false
    }

    /// Returns `None`: see [`Endpoint::is_dead`].
    fn death(&self, _place: PlaceId) -> Option<Death> {
        None
    }

    /// Ends the run: a rank cannot be left out.
    fn declare_dead(&self, place: PlaceId) {
        self.library.abort(&format_args!("{place} broke the format of messages, and the run ends"));
    }

    fn leave(&self) {
        if self.has_left.replace(true) {
            return;
        }
        let is_known = |place: PlaceId| self.peers.borrow()[place.index()].is_some();
        let all = (0..self.places()).map(PlaceId).filter(|place| *place != self.here());
        for place in all.filter(|place| self.places() <= NOTIFIED_MAX || is_known(*place)) {
            let mut peer = self.peer(place);
            peer.frames[tag_of(Class::Control) as usize].add_left();
            self.note_dirty(place, &mut peer);
        }
        self.flush(true);
    }

    fn work_model(&self) -> Option<&dyn WorkModel> {
        None
    }

    fn span_sink(&self) -> Option<&dyn SpanSink> {
        None
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        None
    }

    fn shared_memory(&self) -> Option<&dyn MappedMemory> {
        None
    }

    fn lending(&self) -> Option<&dyn Lending> {
        None
    }

    fn other_hosts(&self) -> Option<&dyn OtherHosts> {
        Some(self)
    }
}

impl OtherHosts for MpiEndpoint {
    fn is_far(&self, place: PlaceId) -> bool {
        place != self.here()
    }

    fn host_of(&self, place: PlaceId) -> PlaceId {
        place
    }

    fn flush_coalesced(&self) {
        if !self.dirty.borrow().is_empty() {
            let mut bucket = self.bucket.get();
            let may = bucket.take(self.start.elapsed());
            self.bucket.set(bucket);
            if may {
                self.flush(false);
            }
        }
    }
}

impl FarEndpoint for MpiEndpoint {
    fn set_near_unparker(&self, near: Arc<dyn Unpark>) {
        if let Some(bell) = &self.bell {
            // Without the thread, a sleeping place finds messages at its next look.
            let _ = bell.listen(near);
        }
    }

    fn before_sleep(&self) -> Option<Duration> {
        self.flush(true);
        let is_bell_heard = self.bell.is_some() && !self.is_moving();
        Some(if is_bell_heard { SLEEP } else { SLEEP_MOVING })
    }
}
