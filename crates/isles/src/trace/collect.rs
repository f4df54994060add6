//! Brings the records of all places to the first place.
//!
//! Threads push them to a shared list; each MPI rank has a list of its own, which it sends. Processes write them into a
//! memfd that the first process creates and they inherit: anonymous, so that nothing is left behind, and each at its
//! own offset, so that none waits for another. A place that is killed has written nothing or a part; the length,
//! written last, shows a complete one.
//!
//! Invariant: a part is read completely or not at all, whatever the memory contains.

use super::record::{KINDS, Part, RECORDS_MAX, RecordKind, Topic, TracedEvent};
use isles_transport::{Class, PlaceId};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

/// Variable with the descriptor of the memfd for the records of a place; empty if there is no trace.
pub(crate) const TRACE_VARIABLE: &str = "ISLES_JOIN_TRACE";

/// Encoded size of a record in bytes.
const RECORD_BYTES: usize = 1 + 1 + 8 + 8 + 4 + 8 + 8;

/// Maximum size of a part in bytes: its records, and the same again for the names and lines of its spans.
const PART_BYTES_MAX: usize = 2 * RECORDS_MAX * RECORD_BYTES;

/// Bytes reserved for each place: a length and a part.
const STRIDE: u64 = 8 + PART_BYTES_MAX as u64;

/// The number that stands for no place.
const NOBODY: u32 = u32::MAX;

/// Destination of the records of all places.
#[derive(Clone)]
pub(crate) enum Collector {
    /// All places are in this process.
    Within(Arc<Mutex<Vec<Part>>>),
    /// Each place is a process; the file is the shared memory.
    Shared(Arc<File>),
}

impl Collector {
    /// Makes a collector for places in this process.
    pub(crate) fn within() -> Collector {
        Collector::Within(Arc::default())
    }

    /// Makes a collector for processes that this one will start.
    ///
    /// # Errors
    /// The system reports an error.
    pub(crate) fn shared() -> io::Result<Collector> {
        Ok(Collector::Shared(Arc::new(memfd_create("isles-trace", MemfdFlags::empty())?.into())))
    }

    /// Opens the collector of the first process in a process that it has started; `None` if there is no trace or the
    /// memory cannot be opened. In the latter case the part of this place is missing.
    pub(crate) fn inherited() -> Option<Collector> {
        let descriptor = std::env::var(TRACE_VARIABLE).ok()?;
        let number: u32 = descriptor.parse().ok()?;
        let file = File::options().read(true).write(true).open(format!("/proc/self/fd/{number}")).ok()?;
        Some(Collector::Shared(Arc::new(file)))
    }

    /// Encodes a part for [`Collector::of_bytes`].
    #[cfg(feature = "mpi")]
    pub(crate) fn to_bytes(part: &Part) -> Vec<u8> {
        encode(part)
    }

    /// Decodes a part; `None` if the bytes are incomplete.
    #[cfg(feature = "mpi")]
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Part> {
        decode(bytes)
    }

    /// Returns the value of [`TRACE_VARIABLE`] for the processes of a run with this collector.
    pub(crate) fn descriptor(&self) -> String {
        match self {
            Collector::Within(_) => String::new(),
            Collector::Shared(file) => file.as_raw_fd().to_string(),
        }
    }

    /// Stores the part of a place. A part that cannot be stored will be missing.
    pub(crate) fn take(&self, part: Part) {
        match self {
            Collector::Within(parts) => parts.lock().unwrap_or_else(PoisonError::into_inner).push(part),
            Collector::Shared(memory) => {
                let bytes = encode(&part);
                if bytes.len() <= PART_BYTES_MAX {
                    let start = u64::from(part.place.0) * STRIDE;
                    let len = (bytes.len() as u64).to_le_bytes();
                    // `TraceRequest::write` reports a missing part.
                    let _ = memory
                        .write_all_at(&bytes, start + 8)
                        .and_then(|()| memory.write_all_at(&len, start));
                }
            }
        }
    }

    /// Takes the part of `place`, if it has arrived.
    pub(crate) fn part(&self, place: PlaceId) -> Option<Part> {
        match self {
            Collector::Within(parts) => {
                let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
                let at = parts.iter().position(|part| part.place == place)?;
                Some(parts.swap_remove(at))
            }
            Collector::Shared(memory) => {
                let (start, mut len) = (u64::from(place.0) * STRIDE, [0; 8]);
                memory.read_exact_at(&mut len, start).ok()?;
                let len = usize::try_from(u64::from_le_bytes(len)).ok()?;
                let mut bytes = vec![0; Some(len).filter(|len| (1..=PART_BYTES_MAX).contains(len))?];
                memory.read_exact_at(&mut bytes, start + 8).ok()?;
                decode(&bytes).filter(|part| part.place == place)
            }
        }
    }
}

fn encode(part: &Part) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(part.records.len() * RECORD_BYTES + 64);
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    bytes.extend(part.place.0.to_le_bytes());
    [part.begin, part.end, part.dropped].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes.extend((part.topics.len() as u32).to_le_bytes());
    for topic in &part.topics {
        text(&mut bytes, &topic.name);
        bytes.push(u8::from(topic.source.is_some()));
        if let Some((file, line)) = &topic.source {
            text(&mut bytes, file);
            bytes.extend(line.to_le_bytes());
        }
    }
    bytes.extend((part.records.len() as u32).to_le_bytes());
    for record in &part.records {
        bytes.extend([record.kind as u8, record.class as u8]);
        bytes.extend(record.other.map_or(NOBODY, |other| other.0).to_le_bytes());
        let numbers = [record.start, record.end, record.number, record.amount];
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    }
    bytes
}

/// A cursor over the bytes being decoded.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn short(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let len = self.short()? as usize;
        String::from_utf8(self.take(len)?.to_vec()).ok()
    }

    fn topic(&mut self) -> Option<Topic> {
        let name = self.text()?;
        let source = if self.byte()? == 0 { None } else { Some((self.text()?, self.short()?)) };
        Some(Topic { name, source })
    }

    fn record(&mut self) -> Option<TracedEvent> {
        let number = self.byte()?;
        let kind: RecordKind = KINDS.into_iter().find(|kind| *kind as u8 == number)?;
        let class = if self.byte()? == Class::Control as u8 { Class::Control } else { Class::Data };
        let other = Some(self.short()?).filter(|other| *other != NOBODY).map(PlaceId);
        let [start, end, number, amount] = [self.long()?, self.long()?, self.long()?, self.long()?];
        Some(TracedEvent { kind, class, start, end, other, number, amount })
    }
}

fn decode(bytes: &[u8]) -> Option<Part> {
    let mut input = Input(bytes);
    let place = PlaceId(input.short()?);
    let [begin, end, dropped] = [input.long()?, input.long()?, input.long()?];
    let topics = (0..input.short()?).map(|_| input.topic()).collect::<Option<_>>()?;
    let records = (0..input.short()?).map(|_| input.record()).collect::<Option<_>>()?;
    input.0.is_empty().then_some(Part { place, begin, end, dropped, topics, records })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(place: u32) -> Part {
        let topics = vec![
            Topic { name: "at →".into(), source: Some(("a.rs".into(), 7)) },
            Topic { name: "the whole run".into(), source: None },
        ];
        let record = |kind| TracedEvent {
            kind,
            class: Class::Data,
            start: 5,
            end: u64::MAX,
            other: (kind != RecordKind::Waiting).then_some(PlaceId(1)),
            number: 3,
            amount: 1 << 40,
        };
        let records = KINDS.map(record).to_vec();
        Part { place: PlaceId(place), begin: 1, end: 2, dropped: 9, topics, records }
    }

    #[test]
    fn parts_come_out_as_they_went_in() {
        for collector in [Collector::within(), Collector::shared().unwrap()] {
            collector.take(part(2));
            collector.take(part(0));
            assert_eq!(
                [0, 1, 2].map(|place| collector.part(PlaceId(place))),
                [Some(part(0)), None, Some(part(2))]
            );
        }
    }

    #[test]
    fn a_part_that_is_not_whole_is_none() {
        let bytes = encode(&part(1));
        assert_eq!(decode(&bytes), Some(part(1)));
        assert!((0..bytes.len()).all(|len| decode(&bytes[..len]).is_none()));
        assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
    }
}
