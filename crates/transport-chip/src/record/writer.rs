//! The thread that makes a trace from the recorded events.
//!
//! Merging, naming and encoding takes more than half the time of the model itself, so a thread does it: full chunks of
//! entries go over a bounded channel to the thread with the [`Trace`], and come back empty. The thread's output is byte
//! for byte that of the model writing it directly, because one channel keeps the order and no clock is read.
//!
//! Invariants: there are at most [`CHUNKS`] + 3 chunks, and the model waits for one if necessary; the thread takes
//! everything that it gets, even after an error of its sink, and ends before its [`TraceWriter`]; its panic is
//! propagated to the model.

use super::{EventChunk, TIME_MAX, Trace, TraceEvent};
use crate::energy::Energy;
use crate::report::TimeCategory;
use isles_chip::quantity::Picoseconds;
use isles_chip::supply::SupplyResponse;
use isles_trace::spans::{OpenSpans, SpanName};
use isles_transport::{PlaceId, Span, SpanId};
use std::any::Any;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle, panicking};
use std::{io, mem};

/// Maximum number of chunks that wait for the thread.
const CHUNKS: usize = 8;

/// A command to the writer's thread.
enum WriterCommand {
    Read(EventChunk),
    Shift(SupplyResponse),
    /// The next topic of spans.
    Add(SpanName),
    /// Write the rest, with the energy of the run.
    Finish(Option<Energy>),
}

/// A trace under way.
pub(crate) struct TraceWriter {
    /// Recorded events not passed to the thread yet.
    chunk: EventChunk,
    spans: OpenSpans,
    /// Chunks that have been read.
    empty: Receiver<EventChunk>,
    /// `None` once the thread has ended.
    thread: Option<Thread>,
}

struct Thread {
    orders: SyncSender<WriterCommand>,
    handle: JoinHandle<io::Result<()>>,
}

impl TraceWriter {
    /// Starts writing `trace`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn new(trace: Trace) -> io::Result<TraceWriter> {
        let (orders, ordered) = sync_channel(CHUNKS);
        let (read, empty) = sync_channel(CHUNKS);
        let thread = Builder::new().name("isles-trace".into());
        let handle = thread.spawn(move || write(trace, &ordered, &read))?;
        Ok(TraceWriter {
            chunk: EventChunk::new(),
            spans: OpenSpans::default(),
            empty,
            thread: Some(Thread { orders, handle }),
        })
    }

    /// Records that `place` spends `time`.
    #[inline(always)]
    pub(super) fn spend(&mut self, place: PlaceId, time: Picoseconds, category: TimeCategory) {
        if time > TIME_MAX {
            return self.split_interval(place, time, category);
        }
        self.note(TraceEvent::Spent { place, category, time });
    }

    /// Records a time longer than one entry can hold; the entries are merged into one interval again.
    #[cold]
    #[inline(never)]
    fn split_interval(&mut self, place: PlaceId, mut time: Picoseconds, category: TimeCategory) {
        while time > Picoseconds::ZERO {
            let part = time.min(TIME_MAX);
            self.note(TraceEvent::Spent { place, category, time: part });
            time = time - part;
        }
    }

    #[inline(always)]
    pub(super) fn note(&mut self, entry: TraceEvent) {
        let (first, second) = entry.words();
        if !self.chunk.push(first, second) {
            self.next_chunk(first, second);
        }
    }

    /// Records the start of a span.
    pub(super) fn begin_span(&mut self, place: PlaceId, span: &Span) -> SpanId {
        let topic = SpanName { name: span.name, source: span.source };
        let (number, is_new) = self.spans.number(topic);
        if is_new {
            self.flush_chunk();
            self.order(WriterCommand::Add(topic));
        }
        let lane = self.spans.take(place);
        self.note(TraceEvent::SpanBegun { place, lane, topic: number, other: span.other });
        SpanId(lane)
    }

    /// Records the end of a span; ignored if it started before this trace.
    pub(super) fn end_span(&mut self, place: PlaceId, SpanId(lane): SpanId) {
        if self.spans.release(place, lane) {
            self.note(TraceEvent::SpanEnded { place, lane });
        }
    }

    pub(super) fn shifted(&mut self, answer: &SupplyResponse) {
        self.flush_chunk();
        self.order(WriterCommand::Shift(answer.clone()));
    }

    /// Ends the trace: writes the rest, and the energy of the run.
    ///
    /// # Errors
    /// The first error of the sink, at any time; or the thread had panicked before, which was propagated.
    ///
    /// # Panics
    /// If the thread panics.
    pub(crate) fn finish(mut self, energy: Option<Energy>) -> io::Result<()> {
        self.flush_chunk();
        self.order(WriterCommand::Finish(energy));
        let thread = self.thread.take();
        let end =
            thread.map(Thread::end).unwrap_or_else(|| Ok(Err(io::Error::other("its thread has panicked"))));
        end.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Continues in another chunk.
    #[cold]
    #[inline(never)]
    fn next_chunk(&mut self, first: u64, second: Option<u64>) {
        self.flush_chunk();
        let is_taken = self.chunk.push(first, second);
        debug_assert!(is_taken, "an empty chunk has room");
    }

    fn flush_chunk(&mut self) {
        if !self.chunk.is_empty() {
            let empty = self.empty.try_recv().unwrap_or_else(|_| EventChunk::new());
            let full = mem::replace(&mut self.chunk, empty);
            self.order(WriterCommand::Read(full));
        }
    }

    /// Sends a command to the thread; waits if the thread is far behind.
    fn order(&mut self, order: WriterCommand) {
        let is_gone = self.thread.as_ref().is_some_and(|thread| thread.orders.send(order).is_err());
        if is_gone && let Some(Err(panic)) = self.thread.take().map(Thread::end) {
            resume_unwind(panic);
        }
    }
}

impl Thread {
    /// Waits until the thread has taken all commands and ended.
    fn end(self) -> Result<io::Result<()>, Box<dyn Any + Send>> {
        drop(self.orders);
        self.handle.join()
    }
}

impl Drop for TraceWriter {
    /// Passes on the recorded events and waits for the thread; the rest of the trace is lost.
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // If the thread is gone, it has panicked.
        let _ = thread.orders.send(WriterCommand::Read(mem::replace(&mut self.chunk, EventChunk::new())));
        match thread.end() {
            Err(panic) if !panicking() => resume_unwind(panic),
            _ => {}
        }
    }
}

/// Writes `trace` until the command to finish, or until all senders of commands are gone.
fn write(
    mut trace: Trace,
    orders: &Receiver<WriterCommand>,
    read: &SyncSender<EventChunk>,
) -> io::Result<()> {
    for order in orders {
        match order {
            WriterCommand::Read(mut chunk) => {
                trace.take_all(&chunk);
                chunk.clear();
                // The chunk is dropped if it is no longer needed.
                let _ = read.try_send(chunk);
            }
            WriterCommand::Shift(answer) => trace.shift(&answer),
            WriterCommand::Add(topic) => trace.add(topic),
            WriterCommand::Finish(energy) => return trace.finish(energy.as_ref()),
        }
    }
    Ok(())
}
