//! The live half: snapshots as server-sent events, the newest only.
//!
//! All readers look at one value that is replaced; nobody has a queue. A reader that is slow finds the newest when it
//! comes back, and is told how many it has missed. Invariant: what a reader costs does not grow with its slowness.

use crate::guard::Role;
use futures_core::Stream;
use hyper::body::{Bytes, Frame};
use isles_view::Snapshot;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;

/// Most readers at a time of those who may only look, or of all where nobody may do more.
const VIEWERS_MAX: usize = 64;

/// Most readers at a time of those who manage.
const MANAGERS_MAX: usize = 16;

/// How long a stream says nothing at most.
const SILENCE: Duration = Duration::from_secs(5);

/// A snapshot as text, written once for all readers.
#[derive(Debug)]
pub(crate) struct Published {
    seq: u64,
    /// What stands before and behind the number of snapshots that a reader has missed.
    head: String,
    tail: String,
}

impl Published {
    /// The text of a snapshot.
    pub(crate) fn new(snapshot: &Snapshot) -> Published {
        const MISSED: &str = "\"missed\":";
        let text = serde_json::to_string(snapshot).unwrap_or_default();
        // In a string the quotation mark would have a backslash before it.
        let at = text.find(MISSED).map_or(text.len(), |at| at + MISSED.len());
        let tail = text[at..].trim_start_matches(|digit: char| digit.is_ascii_digit()).to_owned();
        Published { seq: snapshot.seq, head: text[..at].to_owned(), tail }
    }

    fn event(&self, missed: u64) -> Bytes {
        let Published { seq, head, tail } = self;
        format!("event: snapshot\nid: {seq}\ndata: {head}{missed}{tail}\n\n").into()
    }
}

/// Counts those who read, those who manage apart from the others, so that neither keeps the other out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readers {
    viewers: Arc<AtomicUsize>,
    managers: Arc<AtomicUsize>,
}

/// One reader, while it is there.
#[derive(Debug)]
struct ReaderPermit(Arc<AtomicUsize>);

impl Readers {
    /// A slot for one more reader of this role; none if there are too many.
    fn enter(&self, role: Role) -> Option<ReaderPermit> {
        let (count, limit) = match role {
            Role::View => (&self.viewers, VIEWERS_MAX),
            Role::Control => (&self.managers, MANAGERS_MAX),
        };
        // Relaxed: a count, by which nothing else is ordered.
        let add = |count: usize| (count < limit).then_some(count + 1);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(ReaderPermit(Arc::clone(count)))
    }
}

impl Drop for ReaderPermit {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a reader has seen.
struct ReaderState {
    snapshots: watch::Receiver<Arc<Published>>,
    /// The number of the last snapshot that it was sent; none of a new reader.
    last: Option<u64>,
    missed: u64,
    _permit: ReaderPermit,
}

type Turn = Pin<Box<dyn Future<Output = Option<(ReaderState, Bytes)>> + Send>>;

/// The stream of one reader.
pub(crate) struct SnapshotStream {
    next: Option<Turn>,
}

impl SnapshotStream {
    /// The stream of a new reader, which begins after the snapshot `last`; none if there are too many of its role.
    pub(crate) fn new(
        snapshots: &watch::Receiver<Arc<Published>>,
        readers: &Readers,
        role: Role,
        last: Option<u64>,
    ) -> Option<SnapshotStream> {
        let mut snapshots = snapshots.clone();
        snapshots.mark_changed();
        let state = ReaderState { snapshots, last, missed: 0, _permit: readers.enter(role)? };
        Some(SnapshotStream { next: Some(Box::pin(turn(state))) })
    }
}

impl Stream for SnapshotStream {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = self.get_mut();
        let Some(next) = &mut stream.next else { return Poll::Ready(None) };
        let Poll::Ready(done) = next.as_mut().poll(context) else { return Poll::Pending };
        let (next, text) = match done {
            Some((state, text)) => (Some(Box::pin(turn(state)) as Turn), Some(Ok(Frame::data(text)))),
            None => (None, None),
        };
        stream.next = next;
        Poll::Ready(text)
    }
}

/// Waits for the next snapshot, and for no longer than a stream may be silent; none at the end of the server.
async fn turn(mut state: ReaderState) -> Option<(ReaderState, Bytes)> {
    match tokio::time::timeout(SILENCE, state.snapshots.changed()).await {
        Err(_) => Some((state, Bytes::from_static(b": still there\n\n"))),
        Ok(Err(_)) => None,
        Ok(Ok(())) => {
            let newest = Arc::clone(&state.snapshots.borrow_and_update());
            let skipped = state.last.map_or(0, |last| newest.seq.saturating_sub(last + 1));
            state.missed += skipped;
            state.last = Some(newest.seq);
            let text = newest.event(state.missed);
            Some((state, text))
        }
    }
}
