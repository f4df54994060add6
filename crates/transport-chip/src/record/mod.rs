//! What a run writes down of itself while it goes on: who sends how much to whom, and what each core does when.
//!
//! Hooks for the world: it says when a core spends time, and when a send or a receipt begins and ends; and for what
//! runs there, whose spans have [`lanes`]. Of a trace only an [`entry`] is noted here; a [`scribe`] has the thread that
//! makes the [`trace`] of them, of which [`counters`] and [`spans`] are parts, and an [`outlet`] gives it away. Nothing
//! here knows a protocol.
//!
//! Invariant: nothing here is read by the model, so a recorded run is the run that it would have been.

mod counters;
mod entry;
mod lanes;
mod outlet;
mod scribe;
mod spans;
#[cfg(test)]
mod tests;
mod trace;

pub(crate) use scribe::Scribe;
pub(crate) use trace::Trace;

use crate::report::Spending;
use crate::traffic::Traffic;
use entry::Entry;
use isles_chip::gear::{GearId, StepId};
use isles_chip::quantity::Picoseconds;
use isles_chip::supply::Answer;
use isles_chip::topology::CoreId;
use isles_transport::{Class, PlaceId, Span, SpanId};

/// What is recorded of a run: what is wanted of these two.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) traffic: Option<Traffic>,
    pub(crate) scribe: Option<Scribe>,
}

/// A message between two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) source: PlaceId,
    pub(crate) target: PlaceId,
    pub(crate) class: Class,
    pub(crate) bytes: u64,
}

/// The core of a place when a trace begins: which it is, its clock, its domains, and what these are set to.
pub(crate) struct Outset {
    pub(crate) core: CoreId,
    pub(crate) now: Picoseconds,
    pub(crate) clock: u32,
    pub(crate) supply: u32,
    pub(crate) gear: GearId,
    pub(crate) step: StepId,
}

impl Recorder {
    /// `place` spends the time from `start`, which is the end of what it has spent last, to `end`.
    #[inline(never)] // Where it is called, cores of runs without a recorder would be in its way.
    pub(crate) fn spend(&mut self, place: PlaceId, start: Picoseconds, end: Picoseconds, spending: Spending) {
        if let Some(scribe) = &mut self.scribe {
            scribe.spend(place, end - start, spending);
        }
    }

    /// What `place` spends from now on belongs to something with a name.
    #[inline]
    pub(crate) fn begin(&mut self, place: PlaceId) {
        self.note(Entry::Begun(place));
    }

    /// The source of `passage` has sent it.
    #[inline]
    pub(crate) fn sent(&mut self, passage: Passage, is_block: bool) {
        self.note(if is_block { Entry::SentBlock(passage) } else { Entry::Sent(passage) });
    }

    /// The target of `passage` has taken it in.
    pub(crate) fn received(&mut self, passage: Passage) {
        if let Some(traffic) = &mut self.traffic {
            traffic.count(passage.source, passage.target, passage.bytes);
        }
        self.note(Entry::Received(passage));
    }

    /// `place` has taken in a piece of a block.
    pub(crate) fn received_piece(&mut self, place: PlaceId) {
        self.note(Entry::ReceivedPiece(place));
    }

    /// What had begun at `place` was nothing.
    #[inline]
    pub(crate) fn abandon(&mut self, place: PlaceId) {
        self.note(Entry::Abandoned(place));
    }

    /// A span of `place` begins.
    pub(crate) fn begin_span(&mut self, place: PlaceId, span: &Span) -> SpanId {
        self.scribe.as_mut().map_or(SpanId(0), |scribe| scribe.begin_span(place, span))
    }

    /// A span of `place` ends.
    pub(crate) fn end_span(&mut self, place: PlaceId, span: SpanId) {
        if let Some(scribe) = &mut self.scribe {
            scribe.end_span(place, span);
        }
    }

    /// Rates and voltages change.
    pub(crate) fn shifted(&mut self, answer: &Answer) {
        if let Some(scribe) = &mut self.scribe {
            scribe.shifted(answer);
        }
    }

    #[inline(always)]
    fn note(&mut self, entry: Entry) {
        if let Some(scribe) = &mut self.scribe {
            scribe.note(entry);
        }
    }
}
