//! Live snapshots as server-sent events, the newest only.
//!
//! All readers share one value, which is replaced; there are no queues. A slow reader gets the newest snapshot, with
//! the number of missed ones. Invariant: the cost of a reader does not grow with its slowness.

use crate::guard::Role;
use futures_core::Stream;
use hyper::body::{Bytes, Frame};
use isles_view::Snapshot;
use serde::Serialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;

/// Maximum number of read-only readers at a time; of all readers if there is no manager role.
const VIEWERS_MAX: usize = 64;

/// Maximum number of readers with the manager role at a time.
const MANAGERS_MAX: usize = 16;

/// Maximum time for which a stream is silent.
const SILENCE: Duration = Duration::from_secs(5);

/// A snapshot as one reader gets it.
#[derive(Serialize)]
pub(crate) struct ReaderSnapshot {
    /// Number of snapshots that this reader has missed.
    missed: u64,
    #[serde(flatten)]
    snapshot: Snapshot,
}

impl From<Snapshot> for ReaderSnapshot {
    /// Returns the snapshot for a single request, with no missed ones.
    fn from(snapshot: Snapshot) -> ReaderSnapshot {
        ReaderSnapshot { missed: 0, snapshot }
    }
}

/// A snapshot as text, encoded once for all readers: a [`ReaderSnapshot`] without its first field.
#[derive(Debug)]
pub(crate) struct Published {
    seq: u64,
    /// The fields of the snapshot and the closing brace of the object.
    fields: String,
}

impl Published {
    /// Writes the text of a snapshot.
    pub(crate) fn new(snapshot: &Snapshot) -> Published {
        let mut fields = serde_json::to_string(snapshot).expect("a snapshot has a form");
        let brace = fields.remove(0);
        assert_eq!(brace, '{', "a struct with names is an object");
        Published { seq: snapshot.seq, fields }
    }

    /// Returns the event for a reader that has missed `missed` snapshots: `missed` is the first field of its object.
    fn event(&self, missed: u64) -> Bytes {
        let Published { seq, fields } = self;
        format!("event: snapshot\nid: {seq}\ndata: {{\"missed\":{missed},{fields}\n\n").into()
    }
}

/// Counts readers, managers separately, so that neither role locks out the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readers {
    viewers: Arc<AtomicUsize>,
    managers: Arc<AtomicUsize>,
}

/// A connected reader.
#[derive(Debug)]
struct ReaderPermit(Arc<AtomicUsize>);

impl Readers {
    /// Admits one more reader of this role; `None` if there are too many.
    fn admit(&self, role: Role) -> Option<ReaderPermit> {
        let (count, limit) = match role {
            Role::View => (&self.viewers, VIEWERS_MAX),
            Role::Control => (&self.managers, MANAGERS_MAX),
        };
        // Relaxed: a count that orders no other memory.
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

/// State of a reader: the snapshots that it has been sent and has missed.
struct ReaderState {
    snapshots: watch::Receiver<Arc<Published>>,
    /// Number of the last snapshot that it was sent; `None` for a new reader.
    last: Option<u64>,
    missed: u64,
    _permit: ReaderPermit,
}

type NextEvent = Pin<Box<dyn Future<Output = Option<(ReaderState, Bytes)>> + Send>>;

/// The stream of one reader.
pub(crate) struct SnapshotStream {
    next: Option<NextEvent>,
}

impl SnapshotStream {
    /// Returns the stream of a new reader, from the snapshot after `last` on; `None` if there are too many of its role.
    pub(crate) fn new(
        snapshots: &watch::Receiver<Arc<Published>>,
        readers: &Readers,
        role: Role,
        last: Option<u64>,
    ) -> Option<SnapshotStream> {
        let mut snapshots = snapshots.clone();
        snapshots.mark_changed();
        let state = ReaderState { snapshots, last, missed: 0, _permit: readers.admit(role)? };
        Some(SnapshotStream { next: Some(Box::pin(next_event(state))) })
    }
}

impl Stream for SnapshotStream {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = self.get_mut();
        let Some(next) = &mut stream.next else { return Poll::Ready(None) };
        let Poll::Ready(done) = next.as_mut().poll(context) else { return Poll::Pending };
        let (next, text) = match done {
            Some((state, text)) => {
                (Some(Box::pin(next_event(state)) as NextEvent), Some(Ok(Frame::data(text))))
            }
            None => (None, None),
        };
        stream.next = next;
        Poll::Ready(text)
    }
}

/// Waits for the next snapshot, for up to the silence limit of a stream; `None` at the end of the server.
async fn next_event(mut state: ReaderState) -> Option<(ReaderState, Bytes)> {
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

#[cfg(test)]
mod tests {
    use super::{Published, ReaderSnapshot};
    use isles_telemetry::{RunDescription, Sample};
    use isles_view::SnapshotBuilder;
    use serde_json::{Value, to_value};

    #[test]
    fn an_event_is_the_snapshot_with_the_number_of_its_reader_whatever_texts_say() {
        let mut sample = Sample { places: vec![Default::default()], ..Sample::default() };
        sample.progress.unit = "\"missed\":7,{\"missed\":8}".to_owned();
        let description = RunDescription { places: 1, ..RunDescription::default() };
        let snapshot = SnapshotBuilder::new(&description).build(sample, Some("\"missed\":9"));
        let published = Published::new(&snapshot);
        for missed in [0, 5, u64::MAX] {
            let event = published.event(missed);
            let text = std::str::from_utf8(&event).unwrap();
            let data =
                text.strip_prefix("event: snapshot\nid: 1\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
            let sent = to_value(ReaderSnapshot { missed, snapshot: snapshot.clone() }).unwrap();
            assert_eq!(serde_json::from_str::<Value>(data).unwrap(), sent);
            assert_eq!(sent["missed"], missed);
        }
    }
}
