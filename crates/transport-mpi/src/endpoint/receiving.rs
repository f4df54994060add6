//! Receiving: frames, and large messages that come separately.
//!
//! Invariant: messages behind a large one in its class are handed on after it.

use super::{BLOCK_MAX, MpiEndpoint};
use crate::block::BlockBytes;
use crate::frame::{BLOCK_RECORD_BYTES, Frame, FrameRecord, ReturnedCredit, record_bytes, tag_of};
use crate::inlet::ArrivedFrame;
use crate::library::OpenRequest;
use isles_transport::{
    AlignedBytes, Arrival, BlockMemory, Body, Class, Endpoint, HandlerId, Inbound, Message, Next, PlaceId,
};
use std::cell::RefCell;
use std::rc::Rc;

/// Largest number of frames that one call of `progress` takes.
const FRAMES_MAX: usize = 16;

/// A large message that has arrived; dropping it returns its credit to the sender.
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

/// A block that is still coming, or an arrival behind it.
pub(super) enum DeferredArrival {
    Message(HandlerId, AlignedBytes),
    /// With the length of its record in bytes.
    Block(HandlerId, OpenRequest<BlockBytes>, usize),
}

impl MpiEndpoint {
    /// Does what [`Endpoint::progress`](isles_transport::Endpoint::progress) does, but sends nothing.
    pub(super) fn receive(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let mut count = self.deliver_stalled(inbound, deliver);
        let was_away = self.was_away();
        for _ in 0..FRAMES_MAX {
            let oldest = self.inlet.borrow_mut().next(inbound);
            let Some(frame) = oldest else {
                self.note_empty_poll();
                break;
            };
            let handed_on = self.take_in(frame, deliver);
            count += handed_on;
            // A message alone in its frame is probably the last one, for a place that polls all the time, and should be
            // handled first: a look that finds nothing takes as long as the library needs to ask the network.
            if handed_on == 1 && !was_away {
                break;
            }
        }
        count
    }

    /// Takes the oldest message if it is wanted, alone in its frame, and of `from` and `class`.
    pub(super) fn receive_next(
        &self,
        from: PlaceId,
        class: Class,
        wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        if self.is_behind(from, class) {
            return Next::Left;
        }
        let oldest = self.inlet.borrow_mut().next(Inbound::All);
        let Some(frame) = oldest else {
            self.note_empty_poll();
            return Next::Nothing;
        };
        if (frame.source, frame.class) == (from, class)
            && let Ok((returned, records)) = Frame::parse(frame.bytes())
            && let Some(record) = records.single()
            && let FrameRecord::Message(handler, content) | FrameRecord::InlineBlock(handler, content) =
                record
            && wants(handler, content)
        {
            self.take_back(from, returned);
            if let FrameRecord::InlineBlock(..) = record {
                self.peer(from).credit.dropped(content.len() as u64);
            }
            self.note_delivered(from, class, record_bytes(content.len()));
            return Next::Taken;
        }
        self.inlet.borrow_mut().put_back(frame);
        Next::Left
    }

    /// Handles a frame; returns the number of messages handed on.
    fn take_in(&self, frame: ArrivedFrame, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let (source, class) = (frame.source, frame.class);
        let Ok((returned, records)) = Frame::parse(frame.bytes()) else {
            self.declare_dead(source);
            return 0;
        };
        self.take_back(source, returned);
        if let Some(FrameRecord::InlineBlock(handler, content)) = records.clone().single()
            && self.inlet.borrow().is_worth_a_frame(content.len())
            && !self.is_behind(source, class)
        {
            let len = content.len();
            let body = self.block_of(source, frame.into_content(len));
            deliver(Arrival::Message(Message { source, class, handler, body }));
            self.note_delivered(source, class, record_bytes(len));
            return 1;
        }
        records.map(|record| self.take_record(source, class, record, deliver)).sum()
    }

    /// Takes back the credit that a frame of `source` returns.
    fn take_back(&self, source: PlaceId, returned: ReturnedCredit) {
        match self.peer(source).credit.give_back(returned) {
            Err(_) => self.declare_dead(source),
            Ok(is_something) if is_something && self.refused.get() => self.has_room_again.set(true),
            Ok(_) => {}
        }
    }

    /// Returns `true` if messages of `source` in `class` wait for a block, so that all later ones wait, too.
    fn is_behind(&self, source: PlaceId, class: Class) -> bool {
        !self.peer(source).waiting[tag_of(class) as usize].is_empty()
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
                peer.waiting[tag_of(class) as usize].push_back(DeferredArrival::Message(handler, copy));
                return 0;
            }
            FrameRecord::Message(handler, content) => {
                drop(peer);
                let body = Body::Inline(content);
                deliver(Arrival::Message(Message { source, class, handler, body }));
                self.note_delivered(source, class, record_bytes(content.len()));
                return 1;
            }
            FrameRecord::InlineBlock(handler, content) => {
                let mut memory = self.blocks.take(content.len());
                memory.bytes_mut().copy_from_slice(content);
                let bytes = record_bytes(content.len());
                if is_behind {
                    let block = DeferredArrival::Block(handler, OpenRequest::done(memory), bytes);
                    peer.waiting[tag_of(class) as usize].push_back(block);
                    return 0;
                }
                drop(peer);
                let body = self.block_of(source, memory);
                deliver(Arrival::Message(Message { source, class, handler, body }));
                self.note_delivered(source, class, bytes);
                return 1;
            }
            FrameRecord::Block(handler, len, tag) => {
                let Some(len) = usize::try_from(len).ok().filter(|len| *len <= BLOCK_MAX) else {
                    drop(peer);
                    self.declare_dead(source);
                    return 0;
                };
                let request = self.library.receive_block(self.blocks.take(len), source.0, tag);
                let block = DeferredArrival::Block(handler, request, BLOCK_RECORD_BYTES);
                peer.waiting[tag_of(class) as usize].push_back(block);
            }
        }
        drop(peer);
        if !is_behind {
            self.stalled.borrow_mut().push((source, class));
        }
        0
    }

    /// Returns a large message of `source` as its receiver gets it.
    fn block_of(&self, source: PlaceId, bytes: BlockBytes) -> Body<'static> {
        Body::Block(Box::new(MpiBlock { bytes, source, dropped: Rc::clone(&self.dropped) }))
    }

    /// Records that a record of `source` was handed on: its bytes must be returned.
    fn note_delivered(&self, source: PlaceId, class: Class, bytes: usize) {
        let mut peer = self.peer(source);
        peer.credit.note_delivered(class, bytes);
        if peer.credit.is_return_due() || peer.credit.owes_blocks() {
            self.note_dirty(source, &mut peer);
        }
    }

    /// Hands on messages that waited for blocks that have now arrived; returns their number.
    fn deliver_stalled(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let mut count = 0;
        for (source, class) in self.stalled.take() {
            let is_wanted = class == Class::Control || inbound == Inbound::All;
            while is_wanted && let Some(next) = self.next_waiting(source, class) {
                let (handler, body, bytes) = match next {
                    DeferredArrival::Message(handler, content) => {
                        let bytes = record_bytes(content.bytes().len());
                        let body = Body::Inline(content.bytes());
                        deliver(Arrival::Message(Message { source, class, handler, body }));
                        self.note_delivered(source, class, bytes);
                        count += 1;
                        continue;
                    }
                    DeferredArrival::Block(handler, request, bytes) => {
                        let memory = request.into_bytes().expect("`next_waiting` returns what is here");
                        (handler, self.block_of(source, memory), bytes)
                    }
                };
                deliver(Arrival::Message(Message { source, class, handler, body }));
                self.note_delivered(source, class, bytes);
                count += 1;
            }
            if !self.peer(source).waiting[tag_of(class) as usize].is_empty() {
                self.stalled.borrow_mut().push((source, class));
            }
        }
        count
    }

    /// Returns the next waiting arrival, if it is complete.
    fn next_waiting(&self, source: PlaceId, class: Class) -> Option<DeferredArrival> {
        let mut peer = self.peer(source);
        let waiting = &mut peer.waiting[tag_of(class) as usize];
        if let DeferredArrival::Block(_, request, _) = waiting.front_mut()?
            && !self.library.is_done(request)
        {
            return None;
        }
        waiting.pop_front()
    }

    /// Returns `true` if a frame has arrived.
    pub(super) fn has_frame(&self) -> bool {
        let has_come = self.inlet.borrow_mut().has_frame();
        if !has_come {
            self.note_empty_poll();
        }
        has_come
    }

    /// Returns `true` if a block that others wait for has arrived.
    pub(super) fn has_stalled(&self) -> bool {
        self.stalled.borrow().iter().any(|(source, class)| {
            match self.peer(*source).waiting[tag_of(*class) as usize].front_mut() {
                Some(DeferredArrival::Block(_, request, _)) => self.library.is_done(request),
                Some(DeferredArrival::Message(..)) => true,
                None => false,
            }
        })
    }
}
