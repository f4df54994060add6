//! An endpoint that wraps another and records the activity of its place.
//!
//! It stands between the runtime and the transport and is the [`SpanSink`] of the runtime, so neither of them knows of
//! traces, and a run without a trace does not contain it. Invariant: every call is forwarded to the inner endpoint
//! unchanged, once.

use super::collect::Collector;
use super::record::{RECORDS_MAX, RecordKind, Recorder, now};
use isles_transport::{
    Arrival, Class, Endpoint, HandlerId, Inbound, Multicast, Next, PlaceId, SendError, Span, SpanId, SpanSink,
};
use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

/// A recorded endpoint.
pub(crate) struct RecordedEndpoint<E> {
    endpoint: E,
    /// `None` once the place has left.
    recorder: RefCell<Option<Recorder>>,
    collector: Collector,
}

impl<E: Endpoint> RecordedEndpoint<E> {
    /// Records the activity of the place of `endpoint`, from now until it leaves, for `collector`.
    pub(crate) fn new(endpoint: E, collector: Collector) -> RecordedEndpoint<E> {
        let recorder = Recorder::new(endpoint.here(), endpoint.places(), RECORDS_MAX);
        RecordedEndpoint { endpoint, recorder: RefCell::new(Some(recorder)), collector }
    }

    fn record<V>(&self, record: impl FnOnce(&mut Recorder) -> V) -> Option<V> {
        self.recorder.borrow_mut().as_mut().map(record)
    }

    /// Calls `handle`, and records it as the handling of a message.
    fn receive<V>(&self, from: PlaceId, class: Class, bytes: usize, handle: impl FnOnce() -> V) -> V {
        let number = self.record(|recorder| recorder.arrived(from, class));
        let start = now();
        let handled = handle();
        if let Some(number) = number {
            self.record(|recorder| recorder.received(start, from, class, number, bytes));
        }
        handled
    }
}

impl<E: Endpoint> Endpoint for RecordedEndpoint<E> {
    isles_transport::forward_to!(endpoint:
        here, places, limits, shares_processors, is_ready, is_sending, unparker, is_dead, declare_dead, death,
        shared_memory, lending, other_hosts, work_model
    );

    fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Result<(), SendError> {
        let (start, mut bytes) = (now(), 0);
        let mut fill = |memory: &mut [u8]| fill(memory).inspect(|len| bytes = *len);
        self.endpoint.send(to, class, handler, room, &mut fill)?;
        self.record(|recorder| recorder.sent(RecordKind::Send, start, to, class, bytes));
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
        let start = now();
        self.endpoint.send_block(to, class, handler, len, fill)?;
        self.record(|recorder| recorder.sent(RecordKind::SendBlock, start, to, class, len));
        Ok(())
    }

    fn progress(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        self.endpoint.progress(inbound, &mut |arrival| match &arrival {
            Arrival::Message(message) => {
                let (from, class, bytes) = (message.source, message.class, message.body.bytes().len());
                self.receive(from, class, bytes, || deliver(arrival));
            }
            Arrival::Died { .. } => deliver(arrival),
        })
    }

    fn wait_with(&self, timeout: Option<Duration>, also: &dyn Fn() -> bool) {
        let start = now();
        self.endpoint.wait_with(timeout, also);
        self.record(|recorder| recorder.waited(start));
    }

    fn leave(&self) {
        self.endpoint.leave();
        if let Some(recorder) = self.recorder.take() {
            self.collector.take(recorder.finish());
        }
    }

    fn take_next(
        &self,
        from: PlaceId,
        class: Class,
        wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        // Whether the message is taken is known only after the call.
        let (start, mut bytes) = (now(), 0);
        let mut wants = |handler, message: &[u8]| {
            bytes = message.len();
            wants(handler, message)
        };
        let next = self.endpoint.take_next(from, class, &mut wants);
        if next == Next::Taken {
            self.record(|recorder| {
                let number = recorder.arrived(from, class);
                recorder.received(start, from, class, number, bytes);
            });
        }
        next
    }

    fn span_sink(&self) -> Option<&dyn SpanSink> {
        Some(self)
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        self.endpoint.multicast().map(|_| self as &dyn Multicast)
    }
}

impl<E: Endpoint> Multicast for RecordedEndpoint<E> {
    fn bytes(&self, class: Class) -> Range<usize> {
        self.endpoint.multicast().map_or(0..0, |multicast| multicast.bytes(class))
    }

    fn send_to_all(
        &self,
        to: &[PlaceId],
        class: Class,
        handler: HandlerId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let Some(multicast) = self.endpoint.multicast() else { return Err(SendError::Full) };
        let start = now();
        multicast.send_to_all(to, class, handler, message)?;
        let sent = |recorder: &mut Recorder| {
            to.iter().for_each(|to| recorder.sent(RecordKind::Send, start, *to, class, message.len()));
        };
        self.record(sent);
        Ok(())
    }
}

impl<E: Endpoint> SpanSink for RecordedEndpoint<E> {
    fn begin_span(&self, span: &Span) -> SpanId {
        // After the place has left nothing is recorded; no span has this number.
        self.record(|recorder| recorder.begin_span(span)).unwrap_or(SpanId(u32::MAX - 1))
    }

    fn end_span(&self, span: SpanId) {
        self.record(|recorder| recorder.end_span(span));
    }

    fn add_count(&self, name: &'static str, by: u64) {
        self.record(|recorder| recorder.add_count(name, by));
    }
}
