//! The ring: messages of one class from one place to one other, in order.
//!
//! It is the hottest code of the product, so it has a file of its own and its memory is a parameter ([`RingMemory`]):
//! the same code runs on the mapped segment, on the heap in property tests, and under loom. It does not depend on the
//! meaning of messages, on sleeping places, or on the origin of the memory.
//!
//! A record starts at a multiple of [`GRAIN`] bytes with one header word and is contiguous; its payload
//! follows the word. A record that would cross the end is preceded by one that skips the rest. Positions
//! count bytes since creation and never wrap; the offset in memory is the position modulo the capacity.
//!
//! The value rings of channels publish a count instead of header words. One type for both would slow one of them down.
//! Medians of bare rings between two cores: half a round trip takes 60 ns with a count, and 44 ns with header words,
//! because the count is one more line to fetch; the throughput of values of 8 bytes is 560 million per second with a
//! count, and 91 million with header words, because each value then has a line of its own.
//!
//! Invariants:
//! - *clear ahead*: when a header is published, the header word of the record after it is zero; old payload is
//!   therefore never taken for a header. `Producer::cleared` is the end of the zero header words;
//! - *credit*: the producer touches `[tail, limit)` only, the consumer `[head, tail)` only; `limit` never
//!   exceeds the consumer's published head plus the capacity;
//! - the consumer believes nothing: each header is checked before its record is touched.

#[cfg(not(loom))]
pub(crate) mod mapped;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use std::cell::Cell;

/// Alignment and unit of records, in bytes: one cache line.
///
/// Measured in one direction with messages of 8 to 56 bytes: 35 to 45 million per second, steadily; with a grain of 16
/// or 32 bytes 20 to 45, because records then share lines that both cores access at the same time. Half a round trip is
/// the same within 15 %.
pub(crate) const GRAIN: u64 = 64;

/// Bytes of the header word in front of each payload.
pub(crate) const HEADER_BYTES: usize = 8;

/// Longest record, in bytes, after which the lines of a further record of that length are not all fetched at once.
const SHORT_SPAN_MAX: u64 = 512;

/// Number of bytes the producer clears ahead of its tail, which also brings those lines to its core early.
///
/// Measured: with one line of 64 bytes a message takes nearly twice as long as with two; more than four lines
/// change nothing.
const CLEAR_AHEAD: u64 = 256;

/// Number of bytes ahead of its tail for which the producer requests lines, without waiting for them.
///
/// The consumer read them a lap ago, so its core holds them; the stores that clear them wait for each in turn, and
/// delay all later stores. Measured with a stream of small tasks, with 0.19 µs for a line to cross: without these
/// requests, the consumer waits for the producer and the rate is 5 to 8 million per second; with 8 lines or more it is
/// 9.5 to 12.
const FETCH_AHEAD: u64 = 768;

/// Number of bytes ahead of its head for which the consumer of a stream requests lines.
///
/// A line takes longer to cross than a small message takes to be received, and processors do not predict that records
/// follow each other. If the producer is less far ahead, a request takes lines away that it is about to write, so this
/// is only for a consumer that has been behind for a while.
const LOOK_AHEAD: u64 = 512;

/// Highest byte of every header word; a word without it is garbage.
const MARK: u64 = 0xA7;

/// The line that a ring's two ends share beside its records.
#[repr(C, align(64))]
pub(crate) struct Credit {
    /// Head of the ring, in bytes since creation; only the consumer stores.
    pub head: AtomicU64,
    /// 1 while the producer wants to be woken for room; the producer sets it, the consumer clears it.
    pub starved: AtomicU32,
}

/// The memory of one ring, addressed by positions.
pub(crate) trait RingMemory {
    /// Returns the size in bytes, a power of two and at least `8 * GRAIN`.
    fn capacity(&self) -> u64;
    /// Returns the header word at `position`, a multiple of [`GRAIN`].
    fn word(&self, position: u64) -> &AtomicU64;
    /// Returns the shared line.
    fn credit(&self) -> &Credit;
    /// Lends the `room` bytes after the header word at `position` for writing; contiguous, in bounds.
    fn write<R>(&self, position: u64, room: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R;
    /// Lends the `len` bytes after the header word at `position` for reading; contiguous, in bounds.
    fn read<R>(&self, position: u64, len: usize, look: impl FnOnce(&[u8]) -> R) -> R;
    /// Requests the line of the header word at `position`, which will be written; a hint.
    fn fetch(&self, position: u64);
    /// Requests the line of the header word at `position`, which will be read; a hint.
    fn expect(&self, position: u64);
    /// Reserves memory for `[from, to)`, positions of the first lap. Returns `false` if there is none.
    fn reserve(&self, from: u64, to: u64) -> bool;
}

/// Content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// The message itself.
    Inline,
    /// The description of a block.
    Block,
    /// Nothing: the next record starts at the beginning of the memory.
    Skip,
}

/// A header word: mark, kind, handler, length from the highest byte down; never zero.
///
/// It is kept as a word, because the conversion to fields at every message costs more than the fields are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader(pub u64);

impl RecordHeader {
    /// Creates the header of a record of `len` payload bytes; of a skip, `len` bytes to the end of the memory.
    pub fn new(kind: RecordKind, handler: u16, len: usize) -> RecordHeader {
        let kind = match kind {
            RecordKind::Inline => 1u64,
            RecordKind::Block => 2,
            RecordKind::Skip => 3,
        };
        RecordHeader(MARK << 56 | kind << 48 | u64::from(handler) << 32 | len as u64)
    }

    /// Returns the kind of the record, if this is a valid header.
    #[inline]
    fn kind(self) -> Result<RecordKind, RingFault> {
        match (self.0 >> 48) ^ (MARK << 8) {
            1 => Ok(RecordKind::Inline),
            2 => Ok(RecordKind::Block),
            3 => Ok(RecordKind::Skip),
            unknown if unknown <= 0xFF => Err(RingFault::RecordKind),
            _ => Err(RingFault::Mark),
        }
    }

    /// Returns the receiving function's number.
    #[inline]
    pub fn handler(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Returns the payload in bytes; for a skip, the bytes to the end of the memory.
    #[inline]
    fn len(self) -> usize {
        self.0 as u32 as usize
    }
}

/// Violation of the format of a ring by a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingFault {
    /// A header word without the mark.
    Mark,
    /// A kind that does not exist.
    RecordKind,
    /// A record that leaves the ring.
    Length,
    /// A head outside what the producer has written.
    Head,
    /// A block outside the sender's arena.
    Block,
    /// A valid record whose message the receiver had to refuse.
    Message,
}

/// Reason why nothing was put into the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutError {
    /// There is no room; the consumer will wake the producer when there is.
    Full,
    /// There is no memory for the room.
    NoMemory,
    /// The writer abandoned the record.
    Abandoned,
    /// The consumer broke the format.
    Fault(RingFault),
}

/// Returns the bytes from one record to the next for a payload of `len` bytes.
pub(crate) const fn span(len: usize) -> u64 {
    (len as u64 + HEADER_BYTES as u64 + GRAIN - 1) & !(GRAIN - 1)
}

/// Returns the largest payload of a ring of `capacity` bytes: a record takes at most a quarter.
///
/// The consumer publishes its head at least once a quarter, so a drained ring shows at least three quarters free; a
/// record and the skip before it take less than one half and a grain. A producer that waits for a drained ring
/// therefore always makes progress.
pub(crate) const fn payload_max(capacity: u64) -> usize {
    capacity as usize / 4 - HEADER_BYTES
}

/// The sending end.
pub(crate) struct Producer<T> {
    track: T,
    /// Start of the next record; its header word is zero.
    tail: Cell<u64>,
    /// End of the bytes that may be accessed.
    limit: Cell<u64>,
    /// Header words are zero in `[tail, cleared)`; at least `tail + GRAIN`; the whole first lap at creation.
    cleared: Cell<u64>,
    /// End of the bytes with reserved memory, in the first lap.
    reserved: Cell<u64>,
    /// The consumer's head as last read.
    head: Cell<u64>,
}

impl<T: RingMemory> Producer<T> {
    /// Creates the sending end of a ring whose memory is all zero and whose first grain is reserved.
    pub fn new(track: T) -> Self {
        let capacity = track.capacity();
        debug_assert!(capacity.is_power_of_two() && capacity >= 8 * GRAIN);
        Producer {
            track,
            tail: Cell::new(0),
            limit: Cell::new(0),
            cleared: Cell::new(capacity),
            reserved: Cell::new(0),
            head: Cell::new(0),
        }
    }

    /// Creates the sending end of a ring whose ends are at `start`, and whose header words are all zero.
    #[cfg(all(test, loom))]
    pub(crate) fn starting_at(track: T, start: u64) -> Self {
        let producer = Producer::new(track);
        let cells = [&producer.tail, &producer.limit, &producer.head];
        cells.into_iter().for_each(|cell| cell.set(start));
        producer.cleared.set(start + GRAIN);
        producer.reserved.set(producer.track.capacity());
        producer
    }

    /// Puts one record of at most `room` payload bytes, which `fill` writes in place; it returns the number of bytes
    /// used.
    ///
    /// `room` is at most [`payload_max`].
    #[inline]
    pub fn put(
        &self,
        kind: RecordKind,
        handler: u16,
        room: usize,
        fill: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<(), PutError> {
        let extent = span(room);
        let skip = self.skip_before(extent);
        // One grain more than the record: the header word after it has to be cleared.
        if self.tail.get() + skip + extent + GRAIN > self.limit.get() {
            self.extend(skip + extent + GRAIN)?;
        }
        let start = self.tail.get() + skip;
        let cleared = self.cleared.get();
        if extent > GRAIN {
            // The payload may overwrite header words, so this is noted before `fill` can abandon the record or unwind.
            self.cleared.set(cleared.min(start + GRAIN));
        }
        let used = self.track.write(start, room, fill).ok_or(PutError::Abandoned)?;
        assert!(used <= room, "a message of {used} bytes was written into room for {room}");
        if extent > GRAIN {
            self.clear_touched(start + span(used), (start + extent).min(cleared));
            self.cleared.set(cleared);
        }
        if skip != 0 {
            self.publish(start, RecordHeader::new(RecordKind::Skip, 0, skip as usize));
        }
        self.publish(start + span(used), RecordHeader::new(kind, handler, used));
        self.clear_ahead();
        if extent > SHORT_SPAN_MAX {
            self.fetch_next(extent);
        } else {
            self.fetch(start + FETCH_AHEAD, self.tail.get() + FETCH_AHEAD);
        }
        Ok(())
    }

    /// Clears the header words in `[from, to)` again that a writer has overwritten without need.
    ///
    /// This is rare; and storing zero over zero would take the line away from the consumer, which polls the first of
    /// them, before the record could be published: 0.1 µs per message.
    #[inline]
    fn clear_touched(&self, from: u64, to: u64) {
        for position in (from..to).step_by(GRAIN as usize) {
            let word = self.track.word(position);
            // Relaxed, both: the release of the record orders them.
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Clears the header word at `next`, then shows the record at the tail to the consumer.
    #[inline]
    fn publish(&self, next: u64, header: RecordHeader) {
        if next >= self.cleared.get() {
            // Relaxed: ordered before the header by the release below.
            self.track.word(next).store(0, Ordering::Relaxed);
            self.cleared.set(next + GRAIN);
        }
        // PAIR ring.record: publish
        self.track.word(self.tail.get()).store(header.0, Ordering::Release);
        self.tail.set(next);
    }

    /// Clears some header words after the tail, off the path of the message.
    #[inline]
    fn clear_ahead(&self) {
        let end = (self.tail.get() + CLEAR_AHEAD).min(self.limit.get());
        let mut position = self.cleared.get();
        while position < end {
            // Relaxed: the release of a later record orders it.
            self.track.word(position).store(0, Ordering::Relaxed);
            position += GRAIN;
            self.cleared.set(position);
        }
    }

    /// Requests the lines of a next record of the same length as the last one, while the consumer copies that one.
    ///
    /// Stores to them would have the same effect, but the next atomic exchange of this place would wait for them.
    fn fetch_next(&self, extent: u64) {
        let start = self.tail.get() + self.skip_before(extent);
        let end = start + extent;
        if end > self.limit.get() && self.refresh().is_ok() {
            // Without memory the hint has no effect, and the next record handles the failure itself.
            let _ = self.reserve(end.min(self.head.get() + self.track.capacity()));
        }
        self.fetch(start, end);
    }

    /// Requests the lines in `[from, to)` that may be accessed.
    #[inline]
    fn fetch(&self, from: u64, to: u64) {
        let end = to.min(self.limit.get());
        let mut position = from;
        while position < end {
            self.track.fetch(position);
            position += GRAIN;
        }
    }

    /// Returns the number of bytes at the tail that a record of `extent` bytes would have to skip, because it would
    /// cross the end.
    #[inline]
    fn skip_before(&self, extent: u64) -> u64 {
        let capacity = self.track.capacity();
        let rest = capacity - (self.tail.get() & (capacity - 1));
        if extent > rest { rest } else { 0 }
    }

    /// Makes the limit at least `tail + needed`, or returns the reason and asks the consumer to wake this place.
    #[cold]
    fn extend(&self, needed: u64) -> Result<(), PutError> {
        let end = self.tail.get() + needed;
        if self.head.get() + self.track.capacity() < end {
            self.refresh()?;
        }
        if self.head.get() + self.track.capacity() < end {
            // Relaxed: a place that wants to sleep until there is room checks once more after the fence of the parking
            // protocol (`may_have_room`): either it sees a new head, or the consumer sees the request.
            self.track.credit().starved.store(1, Ordering::Relaxed);
            return Err(PutError::Full);
        }
        self.reserve(end)
    }

    /// Reads the consumer's head.
    fn refresh(&self) -> Result<(), PutError> {
        // PAIR ring.head: observe
        let head = self.track.credit().head.load(Ordering::Acquire);
        if head < self.head.get() || head > self.tail.get() || !head.is_multiple_of(GRAIN) {
            return Err(PutError::Fault(RingFault::Head));
        }
        self.head.set(head);
        Ok(())
    }

    /// Sets the limit, and reserves memory up to it.
    fn reserve(&self, end: u64) -> Result<(), PutError> {
        let capacity = self.track.capacity();
        if self.reserved.get() < capacity && end > self.reserved.get() {
            let to = end.next_multiple_of(capacity / 8).min(capacity);
            if !self.track.reserve(self.reserved.get(), to) {
                return Err(PutError::NoMemory);
            }
            self.reserved.set(to);
        }
        let credit = self.head.get() + capacity;
        let reserved = self.reserved.get();
        self.limit.set(if reserved < capacity { credit.min(reserved) } else { credit });
        Ok(())
    }

    /// Returns `true` if a record that was refused as [`PutError::Full`] may fit now.
    ///
    /// A request that the consumer has taken counts as room: it may have been taken for a head that this end had seen
    /// already, and would not be answered again. The next refusal makes a new request.
    pub(crate) fn may_have_room(&self) -> bool {
        let credit = self.track.credit();
        // Both are relaxed hints, ordered by the fence of the waiter; `put` reads the head again.
        credit.head.load(Ordering::Relaxed) != self.head.get() || credit.starved.load(Ordering::Relaxed) == 0
    }
}

/// One record as the consumer sees it.
pub(crate) struct Record<'a> {
    /// Kind of the record; never a skip.
    pub kind: RecordKind,
    /// The receiving function's number.
    pub handler: u16,
    /// Its payload.
    pub payload: &'a [u8],
}

/// Outcome of a [`Consumer::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeOutcome {
    /// There was no record.
    Nothing,
    /// One record was seen.
    Record,
    /// One record was seen and the producer waits for the room: wake it.
    RecordAndStarved,
}

/// The receiving end.
pub(crate) struct Consumer<T> {
    track: T,
    /// Start of the next record.
    head: Cell<u64>,
    /// Head that was published to the producer.
    published: Cell<u64>,
}

impl<T: RingMemory> Consumer<T> {
    /// Creates the receiving end of a ring whose memory is all zero.
    pub fn new(track: T) -> Self {
        Consumer { track, head: Cell::new(0), published: Cell::new(0) }
    }

    /// Creates the receiving end of a ring whose ends are at `start`.
    #[cfg(all(test, loom))]
    pub(crate) fn starting_at(track: T, start: u64) -> Self {
        Consumer { track, head: Cell::new(start), published: Cell::new(start) }
    }

    /// Returns `true` if nothing is there: no record and no garbage.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: a hint; `take` reads it again with acquire.
        self.track.word(self.head.get()).load(Ordering::Relaxed) == 0
    }

    /// Passes the next record, if there is one, to `look`. The record is removed even if `look` unwinds.
    #[inline]
    pub fn take(&self, look: impl FnOnce(Record<'_>)) -> Result<TakeOutcome, RingFault> {
        let Some((header, kind)) = self.next()? else { return Ok(TakeOutcome::Nothing) };
        let position = self.head.get();
        self.head.set(position + span(header.len()));
        let show = |payload: &[u8]| look(Record { kind, handler: header.handler(), payload });
        self.track.read(position, header.len(), show);
        Ok(self.give_credit())
    }

    /// Passes the next record to `wants`, if it is a small message, and removes it if `wants` returns `true`.
    ///
    /// Returns `None` if something was left for [`Consumer::take`]: an unwanted message, a block, or garbage.
    #[inline]
    pub fn take_if(&self, wants: impl FnOnce(Record<'_>) -> bool) -> Option<TakeOutcome> {
        let header = match self.next() {
            Ok(None) => return Some(TakeOutcome::Nothing),
            Ok(Some((header, RecordKind::Inline))) => header,
            _ => return None,
        };
        let show =
            |payload: &[u8]| wants(Record { kind: RecordKind::Inline, handler: header.handler(), payload });
        self.track.read(self.head.get(), header.len(), show).then(|| {
            self.head.set(self.head.get() + span(header.len()));
            self.give_credit()
        })
    }

    /// Returns the header of the next record, after a skip; `None` if there is no record.
    #[inline]
    fn next(&self) -> Result<Option<(RecordHeader, RecordKind)>, RingFault> {
        let header = self.header();
        if header.0 == 0 {
            return Ok(None);
        }
        let kind = self.check(header)?;
        if kind != RecordKind::Skip {
            return Ok(Some((header, kind)));
        }
        self.head.set(self.head.get() + header.len() as u64);
        let header = self.header();
        if header.0 == 0 {
            return Ok(None);
        }
        match self.check(header)? {
            RecordKind::Skip => Err(RingFault::RecordKind),
            kind => Ok(Some((header, kind))),
        }
    }

    /// Returns the word at the head: a header, garbage, or zero.
    #[inline]
    fn header(&self) -> RecordHeader {
        // PAIR ring.record: observe
        RecordHeader(self.track.word(self.head.get()).load(Ordering::Acquire))
    }

    /// Requests a line that will be read soon, if the producer is that far ahead.
    #[inline]
    pub fn look_ahead(&self) {
        self.track.expect(self.head.get() + LOOK_AHEAD);
    }

    /// Returns the size of the ring in bytes.
    pub fn capacity(&self) -> u64 {
        self.track.capacity()
    }

    /// Returns the number of bytes taken since creation.
    pub fn taken(&self) -> u64 {
        self.head.get()
    }

    /// Returns the start of the next record, as an offset in the memory, for the report of a fault.
    pub fn offset(&self) -> u64 {
        self.head.get() & (self.track.capacity() - 1)
    }

    /// Returns the kind of the record at the head, if its header is valid and it stays inside the memory.
    #[inline]
    fn check(&self, header: RecordHeader) -> Result<RecordKind, RingFault> {
        let kind = header.kind()?;
        let capacity = self.track.capacity();
        let rest = capacity - self.offset();
        let sound = match kind {
            RecordKind::Skip => header.len() as u64 == rest,
            RecordKind::Inline | RecordKind::Block => {
                header.len() <= payload_max(capacity) && span(header.len()) <= rest
            }
        };
        if sound { Ok(kind) } else { Err(RingFault::Length) }
    }

    /// Publishes the head once a quarter of the ring has been taken.
    #[inline]
    fn give_credit(&self) -> TakeOutcome {
        if self.head.get() - self.published.get() < self.track.capacity() / 4 {
            return TakeOutcome::Record;
        }
        self.publish_head()
    }

    fn publish_head(&self) -> TakeOutcome {
        self.published.set(self.head.get());
        let credit = self.track.credit();
        // PAIR ring.head: publish
        credit.head.store(self.head.get(), Ordering::Release);
        // PAIR parking.word: observe
        fence(Ordering::SeqCst);
        // Both relaxed: the fence above orders them after the head. The second may take a request that was made for a
        // later head: the producer then finds it taken before it sleeps (`Producer::may_have_room`).
        if credit.starved.load(Ordering::Relaxed) == 0 {
            return TakeOutcome::Record;
        }
        credit.starved.store(0, Ordering::Relaxed);
        TakeOutcome::RecordAndStarved
    }
}
