//! Spans of a program for a machine that draws them: turns of its tasks, its calls, their bodies, its finishes, its
//! waits for other tasks, its collectives, and the whole run.
//!
//! Code that opens a span need not know whether anything draws it. If nothing does, a span costs four bytes, a look at
//! the place when it begins and a comparison when it ends; no message carries it. Invariant: a span ends once, at the
//! latest when its owner is dropped.

use crate::local::Local;
use isles_protocol::PlaceId;
use isles_telemetry::{COUNTERS, CounterId};
use isles_transport::{Source, Span, SpanId};

/// The name of the span of a task's turn.
pub(crate) const TASK: &str = "task";
/// Name of the span of an `at!` at its caller.
pub(crate) const CALL: &str = "at →";
/// Name of the span of an `at!` at the place that it went to.
pub(crate) const BODY: &str = "at ←";
/// Name of the span of a finish.
pub(crate) const FINISH: &str = "finish";
/// Name of the span of a send over a channel or to a member of a team.
pub const SEND: &str = "send →";
/// Name of the span of a receive.
pub const RECEIVE: &str = "recv ←";
/// Name of the span of a put into a window.
pub const PUT: &str = "put →";
/// Name of the span of a get from a window.
pub const GET: &str = "get ←";
/// Name of the span of a window's fence.
pub const FENCE: &str = "fence";
/// Name of the span of the wait for a lock of a window, or of an array that places share page by page.
pub const LOCK: &str = "lock";
/// Name of the span of a guard of an array that places share page by page, in which its pages arrive.
pub const PAGES: &str = "pages ←";
/// Name of the span of the whole run.
pub(crate) const RUN: &str = "the whole run";

/// A span of a library on top of this one, open until it is dropped; without effect if nothing draws spans.
#[must_use = "a span ends when it is dropped"]
pub struct LibrarySpan(#[expect(dead_code, reason = "it ends when it is dropped")] OpenSpan);

impl LibrarySpan {
    /// Begins a span called `name` that concerns `other`, at the place of the calling task.
    pub fn begin(name: &'static str, other: PlaceId) -> LibrarySpan {
        LibrarySpan(Local::with(|local| local.span(name, Some(other), || None)))
    }
}

/// Id of no span: no endpoint has that many open.
const NONE: SpanId = SpanId(u32::MAX);

/// A span of this place, open until it is dropped; or none, if nothing draws spans.
#[must_use = "a span ends when it is dropped"]
pub struct OpenSpan(SpanId);

impl Local {
    /// Begins a span, if this machine draws any.
    #[inline]
    pub fn span(
        &self,
        name: &'static str,
        other: Option<PlaceId>,
        source: impl FnOnce() -> Option<Source>,
    ) -> OpenSpan {
        if !self.draws_spans {
            return OpenSpan::NONE;
        }
        self.endpoint()
            .span_sink()
            .map_or(OpenSpan::NONE, |sink| OpenSpan(sink.begin_span(&Span { name, other, source: source() })))
    }

    /// Adds `by` to a counter of this place, and to its track in a trace, if this machine draws any.
    pub fn add_drawn_count(&self, counter: CounterId, by: u64) {
        self.add_count(counter, by);
        if self.draws_spans
            && by > 0
            && let Some(sink) = self.endpoint().span_sink()
        {
            sink.add_count(COUNTERS[counter.index()].name, by);
        }
    }
}

impl OpenSpan {
    /// No span.
    pub const NONE: OpenSpan = OpenSpan(NONE);
}

impl Drop for OpenSpan {
    #[inline]
    fn drop(&mut self) {
        if self.0 != NONE {
            end(self.0);
        }
    }
}

#[cold]
#[inline(never)]
fn end(span: SpanId) {
    Local::try_with(|local| local.endpoint().span_sink().map(|sink| sink.end_span(span)));
}
