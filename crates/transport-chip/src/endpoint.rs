//! The endpoint of a place on a modelled chip.
//!
//! It also checks the calling rules of [`Endpoint`]: violations that crash a real transport, or go unnoticed there, are
//! assertions here. It never blocks. It offers no shared memory, because a remote read-modify-write would take effect
//! in the order of turns and not of time.

use crate::protocol::inbox::{Content, MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, OutgoingMulticast};
use crate::world::WorldShared;
use crate::world::messages::Delivery;
use crate::world::state::WorldState;
use isles_transport::{
    AlignedBytes, Arrival, Body, Class, Death, Endpoint, FileAccess, HandlerId, Inbound, Lending, Limits,
    MappedMemory, Message, Multicast, Next, OtherHosts, PlaceId, ReentryGuard, SendError, Span, SpanId,
    SpanSink, Unpark, Work, WorkModel,
};
use std::cell::RefMut;
use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum number of arrivals in one call of `progress`.
const BATCH: usize = 64;

/// Longest block: a fifth of the private memory of an SCC core as it was configured (320 MB).
const BLOCK_BYTES_MAX: usize = 64 << 20;

/// The endpoint of one place of a [`ChipWorld`](crate::ChipWorld).
///
/// Once its place is killed, sends return [`SendError::DeadPlace`], and nothing arrives.
pub struct ChipEndpoint {
    here: PlaceId,
    shared: Rc<WorldShared>,
    reentry: ReentryGuard,
}

impl ChipEndpoint {
    pub(crate) fn new(here: PlaceId, shared: Rc<WorldShared>) -> ChipEndpoint {
        ChipEndpoint { here, shared, reentry: ReentryGuard::default() }
    }

    fn state(&self) -> RefMut<'_, WorldState> {
        self.shared.state.borrow_mut()
    }

    fn check_send(&self, to: PlaceId, len: usize, max: usize) -> Result<(), SendError> {
        assert_ne!(to, self.here, "{to} sends to itself through its endpoint");
        assert!(to.0 < self.places(), "{to} does not exist, there are {} places", self.places());
        self.reentry.check_send();
        if len > max { Err(SendError::TooLong { len, max }) } else { Ok(()) }
    }
}

/// Delivers a message; returns its buffer if that belongs to the world's pool.
fn deliver_message(message: ReceivedMessage, deliver: &mut dyn FnMut(Arrival<'_>)) -> Option<Content> {
    let ReceivedMessage { source, class, handler, content, .. } = message;
    let mut hand = |body| deliver(Arrival::Message(Message { source, class, handler, body }));
    match content {
        MessageContent::Block(block) => {
            hand(Body::Block(block));
            None
        }
        MessageContent::Inline(content) => {
            hand(Body::Inline(content.bytes()));
            Some(content)
        }
    }
}

impl Endpoint for ChipEndpoint {
    fn here(&self) -> PlaceId {
        self.here
    }

    fn places(&self) -> u32 {
        self.shared.places
    }

    fn limits(&self) -> Limits {
        let state = self.state();
        let max = |class| state.protocol.message_bytes_max(class);
        Limits {
            inline_bytes_max: max(Class::Data),
            control_bytes_max: max(Class::Control),
            block_bytes_max: BLOCK_BYTES_MAX,
        }
    }

    /// Returns `true`: all places take turns in one thread.
    fn shares_processors(&self) -> bool {
        true
    }

    fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Result<(), SendError> {
        let mut state = self.state();
        self.check_send(to, room, state.protocol.message_bytes_max(class))?;
        let out = Outgoing { from: self.here, to, class, handler };
        // Check for room for an empty message first, so that a full ring is found before anything is encoded.
        let is_any_length = state.admit(&out, room)?;
        let mut content = state.take_buffer(room);
        drop(state);
        let filled = {
            let _fill = self.reentry.fill();
            fill(&mut content.bytes_mut()[..room])
        };
        let mut state = self.state();
        let admitted = match filled {
            Some(len) if is_any_length => Ok(len),
            Some(len) => state.admit_length(&out, len).map(|()| len),
            None => Err(SendError::Abandoned),
        };
        match admitted {
            Ok(len) => {
                content.shorten(len);
                state.send(&out, content);
                Ok(())
            }
            Err(error) => {
                state.return_buffer(content);
                state.drain_wakeups(self.here);
                Err(error)
            }
        }
    }

    fn send_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendError> {
        self.check_send(to, len, BLOCK_BYTES_MAX)?;
        let out = Outgoing { from: self.here, to, class, handler };
        self.state().admit_block(&out)?;
        let mut content = AlignedBytes::new(len);
        {
            let _fill = self.reentry.fill();
            fill(content.bytes_mut());
        }
        self.state().send_block(&out, content);
        Ok(())
    }

    fn progress(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let _deliver = self.reentry.deliver();
        let mut state = self.state();
        let seen = state.poll(self.here);
        let mut delivered = 0;
        for _ in 0..BATCH {
            match state.take(self.here, seen, inbound) {
                None => break,
                Some(Delivery::Fragment) => continue,
                Some(Delivery::Died(place)) => {
                    drop(state);
                    deliver(Arrival::Died { place, cause: Death::Ended });
                    state = self.state();
                }
                Some(Delivery::ReceivedMessage(message)) => {
                    drop(state);
                    let emptied = deliver_message(message, deliver);
                    state = self.state();
                    emptied.into_iter().for_each(|content| state.return_buffer(content));
                }
            }
            delivered += 1;
        }
        state.return_credits(self.here);
        delivered
    }

    /// Not offered: messages are taken by `progress` only.
    fn take_next(
        &self,
        _from: PlaceId,
        _class: Class,
        _wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        Next::Left
    }

    fn is_ready(&self) -> bool {
        // Relaxed is enough: the driver observes the flag before the place acts on it.
        self.shared.unparked[self.here.index()].0.load(Ordering::Relaxed) || self.state().has_news(self.here)
    }

    fn is_sending(&self) -> bool {
        self.state().is_sending(self.here)
    }

    /// Returns at once: the driver asks [`ChipWorld::next`](crate::ChipWorld::next) instead.
    fn wait_with(&self, _timeout: Option<Duration>, _also: &dyn Fn() -> bool) {
        self.reentry.check_wait();
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::clone(&self.shared.unparked[self.here.index()]) as Arc<dyn Unpark>
    }

    fn is_dead(&self, place: PlaceId) -> bool {
        self.state().is_dead(self.here, place)
    }

    /// Returns [`Death::Ended`] for a dead place, because a core gives no reason.
    fn death(&self, place: PlaceId) -> Option<Death> {
        self.is_dead(place).then_some(Death::Ended)
    }

    /// Kills the place; the chip's watchdog reports it as any other death.
    fn declare_dead(&self, place: PlaceId) {
        self.state().kill(place);
    }

    fn leave(&self) {
        self.state().leave(self.here);
    }

    fn work_model(&self) -> Option<&dyn WorkModel> {
        Some(self)
    }

    /// Returns a sink only if the run is traced; a trace starts before any place asks.
    fn span_sink(&self) -> Option<&dyn SpanSink> {
        let is_traced =
            self.state().cores.recorder.as_ref().is_some_and(|recorder| recorder.trace_writer.is_some());
        is_traced.then_some(self as &dyn SpanSink)
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        Some(self)
    }

    fn other_hosts(&self) -> Option<&dyn OtherHosts> {
        None
    }

    fn shared_memory(&self) -> Option<&dyn MappedMemory> {
        None
    }

    fn lending(&self) -> Option<&dyn Lending> {
        None
    }
}

impl Multicast for ChipEndpoint {
    fn bytes(&self, class: Class) -> Range<usize> {
        self.state().protocol.multicast().map_or(0..0, |multicast| multicast.bytes(class))
    }

    fn send_to_all(
        &self,
        to: &[PlaceId],
        class: Class,
        handler: HandlerId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let (len, bytes) = (message.len(), Multicast::bytes(self, class));
        to.iter().try_for_each(|to| self.check_send(*to, len, bytes.end.saturating_sub(1)))?;
        if len < bytes.start {
            return Err(SendError::TooLong { len, max: 0 });
        }
        let out = OutgoingMulticast { from: self.here, to, class, handler };
        self.state().multicast(&out, message)
    }
}

impl WorkModel for ChipEndpoint {
    fn work(&self, work: &Work, line: &'static Location<'static>) {
        self.state().work(self.here, work, line);
    }

    fn access_file(&self, access: &FileAccess) {
        self.state().access_file(self.here, access);
    }
}

impl SpanSink for ChipEndpoint {
    fn begin_span(&self, span: &Span) -> SpanId {
        let mut state = self.state();
        state.cores.recorder.as_mut().map_or(SpanId(0), |recorder| recorder.begin_span(self.here, span))
    }

    fn end_span(&self, span: SpanId) {
        if let Some(recorder) = &mut self.state().cores.recorder {
            recorder.end_span(self.here, span);
        }
    }

    /// Does nothing: a trace of a chip has no counters.
    fn add_count(&self, _: &'static str, _: u64) {}
}
