//! What a run writes down of itself while it goes on: who sends how much to whom, and what each core does when.
//!
//! Hooks for the world: it says when a core spends time, and when a send or a receipt begins and ends; and for what
//! runs there, whose spans have [`track_pool`]. Of a trace only an [`event`] is noted here; a [`trace_writer`] has the
//! thread that makes the [`trace`] of them, of which [`counters`] and [`spans`] are parts, and an [`sink`] gives it
//! away. Nothing here knows a protocol.
//!
//! Invariant: nothing here is read by the model, so a recorded run is the run that it would have been.

mod counters;
mod event;
mod sink;
mod spans;
#[cfg(test)]
mod tests;
mod trace;
mod trace_writer;
mod track_pool;

pub(crate) use trace::Trace;
pub(crate) use trace_writer::TraceWriter;

use crate::report::TimeCategory;
use crate::traffic::Traffic;
use event::TraceEvent;
use isles_chip::gear::{GearId, VoltageStepId};
use isles_chip::quantity::Picoseconds;
use isles_chip::supply::SupplyResponse;
use isles_chip::topology::CoreId;
use isles_transport::{Class, PlaceId, Span, SpanId};

/// What is recorded of a run: what is wanted of these two.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) traffic: Option<Traffic>,
    pub(crate) trace_writer: Option<TraceWriter>,
}

/// A message between two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) source: PlaceId,
    pub(crate) target: PlaceId,
    pub(crate) class: Class,
    pub(crate) bytes: u64,
}

/// The core of a place when a trace begins: which it is, its clock, its domains, and what these are set to.
pub(crate) struct InitialState {
    pub(crate) core: CoreId,
    pub(crate) now: Picoseconds,
    pub(crate) clock: u32,
    pub(crate) supply: u32,
    pub(crate) gear: GearId,
    pub(crate) step: VoltageStepId,
}

impl Recorder {
    /// `place` spends the time from `start`, which is the end of what it has spent last, to `end`.
    #[inline(never)] // Where it is called, cores of runs without a recorder would be in its way.
    pub(crate) fn spend(
        &mut self,
        place: PlaceId,
        start: Picoseconds,
        end: Picoseconds,
        category: TimeCategory,
    ) {
        if let Some(trace_writer) = &mut self.trace_writer {
            trace_writer.spend(place, end - start, category);
        }
    }

    /// What `place` spends from now on belongs to something with a name.
    #[inline]
    pub(crate) fn begin(&mut self, place: PlaceId) {
        self.note(TraceEvent::Begun(place));
    }

    /// The source of `transfer` has sent it.
    #[inline]
    pub(crate) fn sent(&mut self, transfer: Transfer, is_block: bool) {
        self.note(if is_block { TraceEvent::SentBlock(transfer) } else { TraceEvent::Sent(transfer) });
    }

    /// The target of `transfer` has taken it in.
    pub(crate) fn received(&mut self, transfer: Transfer) {
        if let Some(traffic) = &mut self.traffic {
            traffic.count(transfer.source, transfer.target, transfer.bytes);
        }
        self.note(TraceEvent::Received(transfer));
    }

    /// `place` has taken in a piece of a block.
    pub(crate) fn received_piece(&mut self, place: PlaceId) {
        self.note(TraceEvent::ReceivedPiece(place));
    }

    /// What had begun at `place` was nothing.
    #[inline]
    pub(crate) fn abandon(&mut self, place: PlaceId) {
        self.note(TraceEvent::Abandoned(place));
    }

    /// A span of `place` begins.
    pub(crate) fn begin_span(&mut self, place: PlaceId, span: &Span) -> SpanId {
        self.trace_writer.as_mut().map_or(SpanId(0), |trace_writer| trace_writer.begin_span(place, span))
    }

    /// A span of `place` ends.
    pub(crate) fn end_span(&mut self, place: PlaceId, span: SpanId) {
        if let Some(trace_writer) = &mut self.trace_writer {
            trace_writer.end_span(place, span);
        }
    }

    /// Rates and voltages change.
    pub(crate) fn shifted(&mut self, answer: &SupplyResponse) {
        if let Some(trace_writer) = &mut self.trace_writer {
            trace_writer.shifted(answer);
        }
    }

    #[inline(always)]
    fn note(&mut self, entry: TraceEvent) {
        if let Some(trace_writer) = &mut self.trace_writer {
            trace_writer.note(entry);
        }
    }
}
