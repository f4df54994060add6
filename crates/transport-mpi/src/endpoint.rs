//! One place's attachment to the ranks of an MPI run.
//!
//! Small messages to one place and class share a frame, which leaves when it is full, at each `progress` and before a
//! wait, and at once after a silence. A large message is announced in a frame and comes by itself, straight into its
//! memory; what follows it in its class waits for it. Invariants: what is under way is covered by credit; nothing is
//! borrowed while a message is written or handed on, because both may send.

use crate::bell::Bell;
use crate::block::{BlockBytes, BlockPool};
use crate::credit::{PairCredit, window};
use crate::frame::{BLOCK_RECORD_BYTES, Frame, FrameRecord, RECORD_BYTES, record_bytes};
use crate::library::{Library, OpenRequest};
use crate::token_bucket::TokenBucket;
use isles_transport::composite::FarEndpoint;
use isles_transport::{
    AlignedBytes, Arrival, BlockMemory, Body, Class, Endpoint, HandlerId, Inbound, Lending, Limits,
    MappedMemory, Message, Multicast, Observer, OtherHosts, PlaceId, ReentryGuard, SendError, Unpark,
};
use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A frame that is as long leaves.
const FRAME_BYTES: usize = 4096;

/// A place that has not looked for messages for so long was computing, or waited for its turn.
const AWAY: Duration = Duration::from_micros(5);

/// Frames that one call of `progress` takes at most.
const FRAMES_MAX: usize = 16;

/// How long a place sleeps at most: the library moves large messages only while it is called, and a ring may be lost.
const SLEEP_MOVING: Duration = Duration::from_micros(50);
const SLEEP: Duration = Duration::from_millis(10);

/// Largest block: a count of the library is an `int`.
const BLOCK_MAX: usize = 1 << 30;

/// Up to so many ranks hear that a place has left; of more, those with which it has talked.
const TOLD_MAX: u32 = 256;

const CLASSES: [Class; 2] = [Class::Control, Class::Data];

fn tag_of(class: Class) -> u32 {
    match class {
        Class::Control => 0,
        Class::Data => 1,
    }
}

/// A large message that has arrived; its sender has its room back when it is dropped.
#[derive(Debug)]
pub struct MpiBlock {
    bytes: BlockBytes,
    source: PlaceId,
    dropped: Rc<RefCell<Vec<(PlaceId, u64)>>>,
}

impl BlockMemory for MpiBlock {
    fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }
}

impl Drop for MpiBlock {
    fn drop(&mut self) {
        self.dropped.borrow_mut().push((self.source, self.bytes.bytes().len() as u64));
    }
}

/// What has arrived behind a block that is still coming, or is that block.
enum Postponed {
    Message(HandlerId, AlignedBytes),
    /// With the bytes of its record.
    Block(HandlerId, OpenRequest<BlockBytes>, usize),
}

/// What is known of a place with which there was talk.
struct RemotePlace {
    credit: PairCredit,
    /// By class.
    frames: [Frame; 2],
    waiting: [VecDeque<Postponed>; 2],
    has_left: bool,
    /// Whether it stands in [`MpiEndpoint::dirty`].
    is_dirty: bool,
    last_sent: Option<Instant>,
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
    /// The places to which something is to be sent, each once.
    dirty: RefCell<Vec<PlaceId>>,
    /// What the library sends now.
    sent_frames: RefCell<Vec<OpenRequest<Vec<u8>>>>,
    sent_blocks: RefCell<Vec<OpenRequest<BlockBytes>>>,
    /// The places and classes that wait for a block.
    stalled: RefCell<Vec<(PlaceId, Class)>>,
    blocks: Rc<BlockPool>,
    dropped: Rc<RefCell<Vec<(PlaceId, u64)>>>,
    /// The memory into which frames are received, one after the other; none while one is handed on.
    frame_memory: Cell<Option<AlignedBytes>>,
    /// A send was refused, and since then something was given back.
    refused: Cell<bool>,
    has_room_again: Cell<bool>,
    /// This place has left: it sends nothing more, not even what it owes.
    has_left: Cell<bool>,
    end_limit: Option<Duration>,
    start: Instant,
    /// That of frames which leave before a task runs.
    bucket: Cell<TokenBucket>,
    /// When this place last looked for messages, since the start.
    looked: Cell<Duration>,
    unparked: Arc<EndedWait>,
    reentry: ReentryGuard,
}

impl MpiEndpoint {
    /// The endpoint of this rank. With a bell, which must know those of the others, places that sleep are woken.
    pub fn new(library: Rc<Library>, bell: Option<Bell>) -> MpiEndpoint {
        let peers = (0..library.size()).map(|_| None).collect();
        MpiEndpoint {
            window: window(library.size()),
            library,
            bell,
            peers: RefCell::new(peers),
            dirty: RefCell::default(),
            sent_frames: RefCell::default(),
            sent_blocks: RefCell::default(),
            stalled: RefCell::default(),
            blocks: Rc::default(),
            dropped: Rc::default(),
            frame_memory: Cell::default(),
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

    /// Ends the run with a line if, when this endpoint is dropped, some other rank keeps its own longer than `limit`.
    #[must_use]
    pub fn ends_within(mut self, limit: Duration) -> MpiEndpoint {
        self.end_limit = Some(limit);
        self
    }

    /// Whether this place has not looked for messages for a while. Then one look may only take from the network what
    /// the next one finds, because a library looks at its queue first.
    fn was_away(&self) -> bool {
        self.start.elapsed().saturating_sub(self.looked.get()) >= AWAY
    }

    fn peer(&self, place: PlaceId) -> RefMut<'_, RemotePlace> {
        RefMut::map(self.peers.borrow_mut(), |peers| {
            &mut **peers[place.index()].get_or_insert_with(|| {
                Box::new(RemotePlace {
                    credit: PairCredit::new(self.window),
                    frames: Default::default(),
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

    /// Sees to it that `place` is looked at by [`MpiEndpoint::flush`].
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

    /// Sends a large message, for which there is room as a block, in a frame, if it is short enough and there is room
    /// for that: to be told of and to come by itself would take longer. Whether it did.
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
        let returned = peer.credit.take_owed();
        let bytes = peer.frames[tag_of(class) as usize].finish(returned);
        let request = self.library.send_frame(bytes, place.0, tag_of(class));
        self.keep(request, &self.sent_frames);
        let now = Instant::now();
        let silence = peer.last_sent.replace(now).map_or(Duration::MAX, |last| now - last);
        if let Some(bell) = &self.bell {
            bell.ring_after(silence, place.0);
        }
    }

    /// Keeps a request among others unless it is done.
    fn keep<B>(&self, mut request: OpenRequest<B>, others: &RefCell<Vec<OpenRequest<B>>>) {
        if !self.library.is_done(&mut request) {
            others.borrow_mut().push(request);
        }
    }

    /// Sends all frames that hold something, and returns credit that is due.
    fn flush(&self) {
        for (source, len) in self.dropped.take() {
            let mut peer = self.peer(source);
            peer.credit.dropped(len);
            self.note_dirty(source, &mut peer);
        }
        for place in self.dirty.take() {
            let mut peer = self.peer(place);
            peer.is_dirty = false;
            for class in CLASSES {
                if !peer.frames[tag_of(class) as usize].is_empty() {
                    self.send_frame(place, &mut peer, class);
                }
            }
            if peer.credit.is_return_due() && !self.has_left.get() {
                self.send_frame(place, &mut peer, Class::Control);
            }
        }
        self.sent_frames.borrow_mut().retain_mut(|request| !self.library.is_done(request));
        self.sent_blocks.borrow_mut().retain_mut(|request| !self.library.is_done(request));
    }

    /// Takes in a frame; how many messages were handed on.
    fn take_in(
        &self,
        source: PlaceId,
        class: Class,
        bytes: &[u8],
        deliver: &mut dyn FnMut(Arrival<'_>),
    ) -> usize {
        let Ok((returned, records)) = Frame::parse(bytes) else {
            self.condemn(source);
            return 0;
        };
        match self.peer(source).credit.give_back(returned) {
            Err(_) => self.condemn(source),
            Ok(is_something) if is_something && self.refused.get() => self.has_room_again.set(true),
            Ok(_) => {}
        }
        records.into_iter().map(|record| self.take_record(source, class, record, deliver)).sum()
    }

    fn take_record(
        &self,
        source: PlaceId,
        class: Class,
        record: FrameRecord<'_>,
        deliver: &mut dyn FnMut(Arrival<'_>),
    ) -> usize {
        let mut peer = self.peer(source);
        let is_behind = !peer.waiting[tag_of(class) as usize].is_empty();
        match record {
            FrameRecord::Left => {
                peer.has_left = true;
                self.has_room_again.set(self.refused.get());
                return 0;
            }
            FrameRecord::Message(handler, content) if is_behind => {
                let mut copy = AlignedBytes::new(content.len());
                copy.bytes_mut().copy_from_slice(content);
                peer.waiting[tag_of(class) as usize].push_back(Postponed::Message(handler, copy));
                return 0;
            }
            FrameRecord::Message(handler, content) => {
                drop(peer);
                let body = Body::Inline(content);
                deliver(Arrival::Message(Message { source, class, handler, body }));
                self.handed_on(source, class, record_bytes(content.len()));
                return 1;
            }
            FrameRecord::InlineBlock(handler, content) => {
                let mut memory = self.blocks.take(content.len());
                memory.bytes_mut().copy_from_slice(content);
                let bytes = record_bytes(content.len());
                if is_behind {
                    let block = Postponed::Block(handler, OpenRequest::done(memory), bytes);
                    peer.waiting[tag_of(class) as usize].push_back(block);
                    return 0;
                }
                drop(peer);
                let body = self.block_of(source, memory);
                deliver(Arrival::Message(Message { source, class, handler, body }));
                self.handed_on(source, class, bytes);
                return 1;
            }
            FrameRecord::Block(handler, len, tag) => {
                let Some(len) = usize::try_from(len).ok().filter(|len| *len <= BLOCK_MAX) else {
                    drop(peer);
                    self.condemn(source);
                    return 0;
                };
                let request = self.library.receive_block(self.blocks.take(len), source.0, tag);
                let block = Postponed::Block(handler, request, BLOCK_RECORD_BYTES);
                peer.waiting[tag_of(class) as usize].push_back(block);
            }
        }
        drop(peer);
        if !is_behind {
            self.stalled.borrow_mut().push((source, class));
        }
        0
    }

    /// A large message of `source`, as its receiver has it.
    fn block_of(&self, source: PlaceId, bytes: BlockBytes) -> Body<'static> {
        Body::Block(Box::new(MpiBlock { bytes, source, dropped: Rc::clone(&self.dropped) }))
    }

    /// A record of `source` was handed on: its bytes are to be given back.
    fn handed_on(&self, source: PlaceId, class: Class, bytes: usize) {
        let mut peer = self.peer(source);
        peer.credit.handed_on(class, bytes);
        if peer.credit.is_return_due() {
            self.note_dirty(source, &mut peer);
        }
    }

    /// Hands on what waited for blocks that are here now; how many messages that were.
    fn deliver_stalled(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let mut count = 0;
        for (source, class) in self.stalled.take() {
            let is_wanted = class == Class::Control || inbound == Inbound::All;
            while is_wanted && let Some(next) = self.next_waiting(source, class) {
                let (handler, body, bytes) = match next {
                    Postponed::Message(handler, content) => {
                        let bytes = record_bytes(content.bytes().len());
                        let body = Body::Inline(content.bytes());
                        deliver(Arrival::Message(Message { source, class, handler, body }));
                        self.handed_on(source, class, bytes);
                        count += 1;
                        continue;
                    }
                    Postponed::Block(handler, request, bytes) => {
                        let memory = request.into_bytes().expect("`next_waiting` returns what is here");
                        (handler, self.block_of(source, memory), bytes)
                    }
                };
                deliver(Arrival::Message(Message { source, class, handler, body }));
                self.handed_on(source, class, bytes);
                count += 1;
            }
            if !self.peer(source).waiting[tag_of(class) as usize].is_empty() {
                self.stalled.borrow_mut().push((source, class));
            }
        }
        count
    }

    /// The next that waited, if it is here.
    fn next_waiting(&self, source: PlaceId, class: Class) -> Option<Postponed> {
        let mut peer = self.peer(source);
        let waiting = &mut peer.waiting[tag_of(class) as usize];
        if let Postponed::Block(_, request, _) = waiting.front_mut()?
            && !self.library.is_done(request)
        {
            return None;
        }
        waiting.pop_front()
    }

    /// Whether a frame has come. What a look takes from the network the library shows at the next one, which for a
    /// place that was away would be long after.
    fn has_frame(&self) -> bool {
        let was_away = self.was_away();
        let has_come = self.library.has_frame(None) || was_away && self.library.has_frame(None);
        self.looked.set(self.start.elapsed());
        has_come
    }

    /// Whether some block that others wait for is here.
    fn has_stalled(&self) -> bool {
        self.stalled.borrow().iter().any(|(source, class)| {
            match self.peer(*source).waiting[tag_of(*class) as usize].front_mut() {
                Some(Postponed::Block(_, request, _)) => self.library.is_done(request),
                Some(Postponed::Message(..)) => true,
                None => false,
            }
        })
    }

    /// Whether the library has something to do that it does only while it is called.
    fn is_moving(&self) -> bool {
        !self.sent_frames.borrow().is_empty()
            || !self.sent_blocks.borrow().is_empty()
            || !self.stalled.borrow().is_empty()
    }

    /// Whether all others have said that they send nothing more, as far as they do.
    fn have_others_left(&self) -> bool {
        let has_left = |peer: &Option<Box<RemotePlace>>| peer.as_ref().is_some_and(|peer| peer.has_left);
        let left = self.peers.borrow().iter().filter(|peer| has_left(peer)).count();
        left + 1 == self.places() as usize || self.places() > TOLD_MAX
    }

    /// Takes in and forgets what comes, until all that was sent has left and all ranks are here.
    fn close(&self) {
        let (mut barrier, start) = (None, Instant::now());
        loop {
            if self.end_limit.is_some_and(|limit| start.elapsed() > limit) {
                self.library.abort(&"some other rank does not end, though the run is over");
            }
            self.progress(Inbound::All, &mut |arrival| drop(arrival));
            if barrier.is_none() && !self.is_moving() && self.have_others_left() {
                barrier = Some(self.library.begin_barrier());
            }
            if barrier.as_mut().is_some_and(|barrier| self.library.is_done(barrier)) {
                return;
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
            bell.end_watch();
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
        // Two of the longest fit the window.
        let longest = self.window as usize / 2 - RECORD_BYTES;
        Limits { inline_bytes_max: longest, control_bytes_max: longest, block_bytes_max: BLOCK_MAX }
    }

    /// The library spins; what that means is the matter of the near endpoint.
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
        let leaves_at_once = peer.bucket.take(self.start.elapsed());
        if leaves_at_once || peer.frames[tag_of(class) as usize].len() >= FRAME_BYTES {
            self.send_frame(to, &mut peer, class);
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
        // Few are under way at a time, and the least that a library must offer is 32767.
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
        self.flush();
        let mut count = self.deliver_stalled(inbound, deliver);
        let tag = (inbound == Inbound::Control).then_some(tag_of(Class::Control));
        let was_away = self.was_away();
        let mut looks = if was_away { 2 } else { 1 };
        let mut memory = self.frame_memory.take().unwrap_or_else(|| AlignedBytes::new(FRAME_BYTES));
        for _ in 0..FRAMES_MAX {
            let Some(frame) = self.library.take_frame(tag, &mut memory) else {
                looks -= 1;
                if looks == 0 {
                    break;
                }
                continue;
            };
            let class = if frame.tag == tag_of(Class::Control) { Class::Control } else { Class::Data };
            let handed_on = self.take_in(PlaceId(frame.from), class, memory.bytes(), deliver);
            count += handed_on;
            // A message alone in its frame is probably the last one for a place that looks all the time, and what it
            // brings goes first: a look in vain takes as long as the library needs to ask the network.
            if handed_on == 1 && !was_away {
                break;
            }
        }
        self.frame_memory.set(Some(memory));
        self.flush();
        self.looked.set(self.start.elapsed());
        count
    }

    fn is_ready(&self) -> bool {
        // Relaxed: the wait that this ends observes.
        self.unparked.0.load(Ordering::Relaxed)
            || self.has_room_again.get()
            || !self.dropped.borrow().is_empty()
            || self.has_stalled()
            || self.has_frame()
    }

    /// Looks, and gives the processor away between: for a rank that has no near endpoint to sleep in.
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

    /// None is: a rank that dies ends the run, because neither library goes on without it.
    fn is_dead(&self, _place: PlaceId) -> bool {
        false
    }

    /// Ends the run: a rank cannot be left out.
    fn condemn(&self, place: PlaceId) {
        self.library.abort(&format_args!("{place} broke the format of messages, and the run ends"));
    }

    fn leave(&self) {
        if self.has_left.replace(true) {
            return;
        }
        let is_known = |place: PlaceId| self.peers.borrow()[place.index()].is_some();
        let all = (0..self.places()).map(PlaceId).filter(|place| *place != self.here());
        for place in all.filter(|place| self.places() <= TOLD_MAX || is_known(*place)) {
            let mut peer = self.peer(place);
            peer.frames[tag_of(Class::Control) as usize].add_left();
            self.note_dirty(place, &mut peer);
        }
        self.flush();
    }

    fn observer(&self) -> Option<&dyn Observer> {
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

    fn push_out(&self) {
        if !self.dirty.borrow().is_empty() {
            let mut bucket = self.bucket.get();
            let may = bucket.take(self.start.elapsed());
            self.bucket.set(bucket);
            if may {
                self.flush();
            }
        }
    }
}

impl FarEndpoint for MpiEndpoint {
    fn wakes_by(&self, near: Arc<dyn Unpark>) {
        if let Some(bell) = &self.bell {
            // Without the thread a sleeping place is found at its next look.
            let _ = bell.listen(near);
        }
    }

    fn before_sleep(&self) -> Option<Duration> {
        self.flush();
        let is_bell_heard = self.bell.is_some() && !self.is_moving();
        Some(if is_bell_heard { SLEEP } else { SLEEP_MOVING })
    }
}
