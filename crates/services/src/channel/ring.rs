//! Value rings: the values that a place sends by slots, in a region of the home that both places map.
//!
//! One place writes a ring and one reads it, so each keeps its own count and reads that of the other in the region.
//! This file handles cells and words; the protocol decides what a value means to the channel. Invariants: a cell is
//! read only after the count of written values has passed it, and written only after the count of taken values has
//! passed it; the home does not read a ring before its place has announced that it uses it.
//!
//! The rings that carry messages between processes publish header words instead of a count. One type for both would
//! slow one of them down. Medians of bare rings between two cores: half a round trip takes 60 ns with a count, and 44
//! ns with header words; the throughput of values of 8 bytes is 560 million per second with a count, and 91 million
//! with header words.

use super::control_block::{ControlBlock, value_bytes};
use super::message::ChannelMessage;
use isles_protocol::PlaceId;
use isles_runtime::Local;
use isles_runtime::capture::CanSend;
use isles_runtime::wire::{DecodeError, EncodeError, Reader, is_word, of_word, word_of};
use isles_transport::{MappedMemory, Region};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of the longest value.
const CELL_WORDS_MAX: usize = 8;

/// Maximum number of bytes of the cells of one ring.
const CELLS_BYTES_MAX: usize = 64 << 10;

/// Number of values that a place sends as messages before it gets a ring, so that a few values use no region.
const ITEMS_MIN: u32 = 16;

/// Number of pauses of a reader before it polls again after a poll that found few values: about the time in which the
/// writer adds ten to forty more.
const STREAM_PAUSES: u32 = 64;

/// Number of values in one poll from which they are not few: the reader is then slower than the writer.
const STREAM_VALUES: u64 = 64;

/// Indices of the words that count the values written and taken, and of the first cell. Each count has two lines of its
/// own, because processors fetch lines in pairs.
const WRITTEN: usize = 0;
const TAKEN: usize = 16;
const CELLS: usize = 32;

/// The words of a region, independent of the mapping.
pub(super) trait RingWords {
    fn load(&self, index: usize, order: Ordering) -> u64;
    fn store(&self, index: usize, value: u64, order: Ordering);
}

/// Dimensions of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingShape {
    /// A power of two.
    cells: u64,
    cell_words: usize,
}

impl RingShape {
    /// Returns the shape of a ring for a channel of `T`; `None` if `T` owns memory or is longer than a cell, or if the
    /// capacity is below 2, because a place then has no slots.
    pub(super) fn of<T>(capacity: u32) -> Option<RingShape> {
        let cell_words = cell_words::<T>();
        if std::mem::needs_drop::<T>() || capacity < 2 || cell_words > CELL_WORDS_MAX {
            return None;
        }
        let most = CELLS_BYTES_MAX / (cell_words * size_of::<u64>());
        let cells = (capacity as usize).next_power_of_two().min(1 << most.ilog2());
        Some(RingShape { cells: cells as u64, cell_words })
    }

    fn words(self) -> u64 {
        CELLS as u64 + self.cells * self.cell_words as u64
    }

    #[inline]
    fn cell(self, position: u64, words: usize) -> usize {
        CELLS + (position & (self.cells - 1)) as usize * words
    }
}

/// Returns the number of words of the cell of a value.
fn cell_words<T>() -> usize {
    if is_word::<T>() { 1 } else { value_bytes::<T>().div_ceil(size_of::<u64>()) }
}

/// The writing end of a ring.
pub(super) struct RingWriter<W> {
    words: W,
    shape: RingShape,
    written: Cell<u64>,
    /// Number of values that the reader had taken at the last check.
    taken: Cell<u64>,
}

impl<W: RingWords> RingWriter<W> {
    /// Creates the only writer from now on.
    fn new(words: W, shape: RingShape) -> RingWriter<W> {
        // Relaxed: earlier writers were at this place.
        let written = Cell::new(words.load(WRITTEN, Ordering::Relaxed));
        // PAIR ring.taken: observe
        let taken = Cell::new(words.load(TAKEN, Ordering::Acquire));
        RingWriter { words, shape, written, taken }
    }

    /// Returns `true` if a value can be written now.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        let is_free = || self.written.get().wrapping_sub(self.taken.get()) < self.shape.cells;
        is_free() || {
            // PAIR ring.taken: observe
            self.taken.set(self.words.load(TAKEN, Ordering::Acquire));
            is_free()
        }
    }

    /// Writes a value; there must be room.
    #[inline]
    fn put(&self, value: &[u64]) {
        let written = self.written.get();
        let first = self.shape.cell(written, value.len());
        for (word, index) in value.iter().zip(first..) {
            // Relaxed: the count carries the order.
            self.words.store(index, *word, Ordering::Relaxed);
        }
        self.written.set(written.wrapping_add(1));
        // PAIR ring.written: publish
        self.words.store(WRITTEN, written.wrapping_add(1), Ordering::Release);
    }
}

/// Error of an impossible count of written values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FalseCount;

/// The reading end of a ring.
pub(super) struct RingReader<W> {
    words: W,
    shape: RingShape,
    taken: Cell<u64>,
    /// Number of values written at the last check.
    written: Cell<u64>,
    /// True if the last poll found few values, but at least one: they arrive as a stream.
    is_short: Cell<bool>,
}

impl<W: RingWords> RingReader<W> {
    /// Creates the only reader of a new ring.
    fn new(words: W, shape: RingShape) -> RingReader<W> {
        RingReader { words, shape, taken: Cell::new(0), written: Cell::new(0), is_short: Cell::new(false) }
    }

    /// Returns `true` if the ring holds no value.
    #[inline]
    fn is_empty(&self) -> bool {
        if self.taken.get() == self.written.get() {
            // PAIR ring.written: observe
            self.written.set(self.words.load(WRITTEN, Ordering::Acquire));
        }
        self.taken.get() == self.written.get()
    }

    /// Checks for more values after all known ones are taken. If they arrive as a stream and the place `may_spin`, it
    /// first waits for several, because each check takes the line of the count away from the writer.
    #[inline(never)]
    fn refresh_written(&self, may_spin: bool) {
        if may_spin && self.is_short.get() {
            (0..STREAM_PAUSES).for_each(|_| std::hint::spin_loop());
        }
        let before = self.written.get();
        // PAIR ring.written: observe
        self.written.set(self.words.load(WRITTEN, Ordering::Acquire));
        self.is_short.set((1..STREAM_VALUES).contains(&self.written.get().wrapping_sub(before)));
    }

    /// Takes the first value; `None` if the ring is empty.
    ///
    /// # Errors
    /// The writer has written more values than there is room for.
    #[inline]
    fn take(&self, value: &mut [u64], may_spin: bool) -> Result<Option<()>, FalseCount> {
        let taken = self.taken.get();
        if taken == self.written.get() {
            self.refresh_written(may_spin);
            if taken == self.written.get() {
                return Ok(None);
            }
        }
        if self.written.get().wrapping_sub(taken) > self.shape.cells {
            return Err(FalseCount);
        }
        let first = self.shape.cell(taken, value.len());
        for (word, index) in value.iter_mut().zip(first..) {
            // Relaxed: the count carries the order.
            *word = self.words.load(index, Ordering::Relaxed);
        }
        self.taken.set(taken.wrapping_add(1));
        // PAIR ring.taken: publish
        self.words.store(TAKEN, taken.wrapping_add(1), Ordering::Release);
        Ok(Some(()))
    }
}

/// A region as this place maps it.
pub(super) struct MappedRegion {
    first: NonNull<AtomicU64>,
    len: usize,
    /// Keeps the region mapped.
    _hold: Rc<dyn Any>,
}

impl MappedRegion {
    fn new(memory: &dyn MappedMemory, region: Region) -> Option<MappedRegion> {
        let words = memory.view(region)?;
        Some(MappedRegion { first: NonNull::from(words).cast(), len: words.len(), _hold: memory.hold() })
    }

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        // NEED: to map the region anew for each value would take as long as the value.
        // SOUND: `view` gave these words, which `hold` keeps mapped; they are viewed as atomic words only.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl RingWords for MappedRegion {
    #[inline]
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.words()[index].load(order)
    }

    #[inline]
    fn store(&self, index: usize, value: u64, order: Ordering) {
        self.words()[index].store(value, order);
    }
}

/// Outcome of a send into a ring.
pub(super) enum RingSend {
    /// The value is in the ring.
    Sent,
    /// The ring has no room for the value.
    NoRoom,
    /// The home is dead and will not read the value.
    Dead,
}

/// The ring into which this place writes, elsewhere than at the home.
pub(super) type OutwardRing = RingWriter<MappedRegion>;

impl OutwardRing {
    /// Returns the ring in a region of the home, if the region has this shape and can be mapped here.
    pub(super) fn mapped(local: &Local, shape: RingShape, region: Region) -> Option<OutwardRing> {
        let memory = local.endpoint().shared_memory().filter(|_| region.words == shape.words())?;
        Some(RingWriter::new(MappedRegion::new(memory, region)?, shape))
    }

    /// Writes a value, if there is room and it fits, and wakes `home` if it sleeps.
    ///
    /// # Errors
    /// The value cannot be sent.
    #[inline]
    pub(super) fn send<T: CanSend>(
        &self,
        local: &Local,
        home: PlaceId,
        value: &T,
    ) -> Result<RingSend, EncodeError> {
        if !self.has_room() {
            return Ok(RingSend::NoRoom);
        }
        match word_of(value) {
            Some(word) => self.put(&[word]),
            None => {
                let Some((words, len)) = self.encoded(local, home, value)? else {
                    return Ok(RingSend::NoRoom);
                };
                self.put(&words[..len]);
            }
        }
        let is_there = local.endpoint().shared_memory().is_some_and(|memory| memory.wake(home));
        Ok(if is_there { RingSend::Sent } else { RingSend::Dead })
    }

    /// Returns the words of a value that is not a number; `None` if it does not fit.
    #[inline(never)]
    fn encoded<T: CanSend>(
        &self,
        local: &Local,
        home: PlaceId,
        value: &T,
    ) -> Result<Option<([u64; CELL_WORDS_MAX], usize)>, EncodeError> {
        let mut words = [0; CELL_WORDS_MAX];
        let len = self.shape.cell_words;
        let room: &mut [u8] = bytemuck::cast_slice_mut(&mut words[..len]);
        let (_, is_whole) = local.write_ahead(home, room, &|writer| writer.put_value(value))?;
        Ok(is_whole.then_some((words, len)))
    }
}

/// State of a place that sends by slots, at the home.
struct SendingPlace {
    place: PlaceId,
    /// Number of its items that came as messages since its ring was announced to it or it forgot the ring.
    items: u32,
    ring: Option<InwardRing>,
}

/// The ring from which the home reads.
struct InwardRing {
    reader: RingReader<MappedRegion>,
    region: Region,
    /// True if the ring was announced to its place, which has not yet announced its use.
    is_offered: bool,
    /// True if its place has announced its use since the last announcement of the ring.
    is_used: bool,
}

/// The rings of a channel, at its home.
#[derive(Default)]
pub(super) struct InwardRings {
    places: RefCell<Vec<SendingPlace>>,
    /// The place whose ring is polled first, because it had values at the last poll.
    first: Cell<usize>,
    /// True if any ring is used.
    pub(super) are_used: Cell<bool>,
    /// True if the place polls them for waiting tasks.
    pub(super) are_watched: Cell<bool>,
}

/// Ring from which a value is taken.
#[derive(Clone, Copy)]
pub(super) enum TakeFrom {
    /// The ring of this place.
    Place(PlaceId),
    /// Any ring; a stream may be polled for some time, if the place `may_spin`.
    Any {
        /// [`Local::may_spin`].
        may_spin: bool,
    },
}

/// The sender of a value in a ring, and the value if it can be decoded.
pub(super) type RingValue<T> = (PlaceId, Result<T, DecodeError>);

impl InwardRings {
    /// Counts an item of `place` that came as a message. Returns the message that announces a ring to the place, if it
    /// is due.
    pub(super) fn note_item(
        &self,
        local: &Local,
        shape: RingShape,
        place: PlaceId,
    ) -> Option<ChannelMessage> {
        let mut places = self.places.borrow_mut();
        let sending = match places.iter_mut().find(|sending| sending.place == place) {
            Some(sending) => sending,
            None => {
                places.push(SendingPlace { place, items: 0, ring: None });
                places.last_mut()?
            }
        };
        sending.items = sending.items.saturating_add(1);
        if sending.items != ITEMS_MIN || sending.ring.as_ref().is_some_and(|ring| ring.is_offered) {
            return None;
        }
        if sending.ring.is_none() {
            sending.ring = InwardRing::new(local, shape, place);
        }
        let ring = sending.ring.as_mut()?;
        // A place that forgot the channel has used the ring before. Until its answer, values may be in transit in
        // messages, and those that it writes after them must not be read first.
        (ring.is_offered, ring.is_used) = (true, false);
        Some(ChannelMessage::Ring { start: ring.region.start, words: ring.region.words })
    }

    /// Notes that `place` uses its ring, or no longer knows the channel. Returns `true` if a ring was announced to it.
    pub(super) fn begin(&self, place: PlaceId) -> bool {
        let mut places = self.places.borrow_mut();
        let Some(sending) = places.iter_mut().find(|sending| sending.place == place) else { return false };
        sending.items = 0;
        let Some(ring) = sending.ring.as_mut().filter(|ring| ring.is_offered) else { return false };
        (ring.is_offered, ring.is_used) = (false, true);
        self.are_used.set(true);
        true
    }

    /// Returns `true` if one of the rings holds a value.
    pub(super) fn have_values(&self) -> bool {
        let has_value = |sending: &SendingPlace| {
            sending.ring.as_ref().is_some_and(|ring| ring.is_used && !ring.reader.is_empty())
        };
        self.places.borrow().iter().any(has_value)
    }

    /// Takes the next value of a ring.
    ///
    /// # Errors
    /// The place whose ring is invalid.
    #[inline]
    pub(super) fn take<T: CanSend>(&self, from: TakeFrom) -> Result<Option<RingValue<T>>, PlaceId> {
        let mut words = [0; CELL_WORDS_MAX];
        let words = &mut words[..cell_words::<T>()];
        let taken = match from {
            TakeFrom::Any { may_spin } => self.take_any(words, may_spin),
            TakeFrom::Place(place) => self.take_of(place, words),
        };
        let Some(place) = taken? else { return Ok(None) };
        let value = match of_word(words[0]) {
            Some(number) => Ok(number),
            None => Reader::new(bytemuck::cast_slice(words)).take_value(),
        };
        Ok(Some((place, value)))
    }

    #[inline]
    fn take_any(&self, value: &mut [u64], may_spin: bool) -> Result<Option<PlaceId>, PlaceId> {
        let places = self.places.borrow();
        if let Some(sending) = places.get(self.first.get())
            && sending.take(value, may_spin)?.is_some()
        {
            return Ok(Some(sending.place));
        }
        self.take_next(&places, value)
    }

    /// As [`InwardRings::take_any`], after the ring that had values is empty.
    #[inline(never)]
    fn take_next(&self, places: &[SendingPlace], value: &mut [u64]) -> Result<Option<PlaceId>, PlaceId> {
        for (index, sending) in places.iter().enumerate() {
            if sending.take(value, false)?.is_some() {
                self.first.set(index);
                return Ok(Some(sending.place));
            }
        }
        Ok(None)
    }

    fn take_of(&self, place: PlaceId, value: &mut [u64]) -> Result<Option<PlaceId>, PlaceId> {
        let places = self.places.borrow();
        let Some(sending) = places.iter().find(|sending| sending.place == place) else { return Ok(None) };
        Ok(sending.take(value, false)?.map(|()| place))
    }

    /// Stops reading the ring of `place`, which is dead.
    ///
    /// The ring remains allocated: a place that was only declared dead may still write for a while, and its words must
    /// not be reused.
    pub(super) fn place_died(&self, place: PlaceId) {
        let mut places = self.places.borrow_mut();
        let of_place = places.iter_mut().filter(|sending| sending.place == place);
        of_place.filter_map(|sending| sending.ring.as_mut()).for_each(|ring| ring.is_used = false);
    }

    /// Frees all rings when the channel has ended.
    pub(super) fn free(&self, local: &Local) {
        let memory = local.endpoint().shared_memory();
        for sending in self.places.borrow_mut().drain(..) {
            if let (Some(memory), Some(ring)) = (memory, &sending.ring) {
                memory.free(ring.region);
            }
        }
    }
}

impl SendingPlace {
    /// # Errors
    /// The place, if its ring is invalid.
    #[inline]
    fn take(&self, value: &mut [u64], may_spin: bool) -> Result<Option<()>, PlaceId> {
        match &self.ring {
            Some(InwardRing { reader, is_used: true, .. }) => {
                reader.take(value, may_spin).map_err(|FalseCount| self.place)
            }
            _ => Ok(None),
        }
    }
}

impl InwardRing {
    /// Creates a ring for `place`; `None` if there is no memory that both share.
    fn new(local: &Local, shape: RingShape, place: PlaceId) -> Option<InwardRing> {
        let memory = local.endpoint().shared_memory()?;
        let is_far = local.endpoint().other_hosts().is_some_and(|hosts| hosts.is_far(place));
        let region = if is_far { None } else { memory.allocate(shape.words()) }?;
        let reader = RingReader::new(MappedRegion::new(memory, region)?, shape);
        Some(InwardRing { reader, region, is_offered: false, is_used: false })
    }
}

impl ControlBlock {
    /// Begins to use the region that the home has allocated for the values that this place sends by slots.
    pub(super) fn begin_ring(&self, local: &Local, start: u64, words: u64) {
        let region = Region { place: self.id.home, start, words };
        if let Some(shape) = self.kind.ring_shape()
            && let Some(ring) = OutwardRing::mapped(local, shape, region)
        {
            // Sent first, so that all earlier values are known to have arrived; a dead home needs no values.
            let _ = self.send_message(local, self.id.home, &ChannelMessage::RingUsed);
            let _ = self.outward.set(ring);
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    //! A ring under loom: `RUSTFLAGS="--cfg loom" cargo test --release -p isles-runtime --lib model`. Real here are the
    //! two ends; not real is the sleep, which does what [`MappedMemory::wake`] promises.

    use super::*;
    use loom::sync::atomic::{AtomicU64, fence};
    use loom::sync::{Arc, Notify};
    use loom::thread;

    /// Cells of the ring, each of two words.
    const CELL_COUNT: u64 = 2;

    struct Model {
        /// Written, taken, and the words of the cells.
        words: Vec<AtomicU64>,
        asleep: AtomicU64,
        sleep: Notify,
    }

    impl Model {
        fn word(&self, index: usize) -> &AtomicU64 {
            match index {
                WRITTEN => &self.words[0],
                TAKEN => &self.words[1],
                index => &self.words[2 + index - CELLS],
            }
        }
    }

    impl RingWords for Arc<Model> {
        fn load(&self, index: usize, order: Ordering) -> u64 {
            self.word(index).load(order)
        }

        fn store(&self, index: usize, value: u64, order: Ordering) {
            self.word(index).store(value, order);
        }
    }

    /// Sends `values` values, of which two fit into the ring, to a place that sleeps when it finds none.
    fn stream(values: u64) {
        let words = (0..2 + 2 * CELL_COUNT).map(|_| AtomicU64::new(0)).collect();
        let model = Arc::new(Model { words, asleep: AtomicU64::new(0), sleep: Notify::new() });
        let shape = RingShape { cells: CELL_COUNT, cell_words: 2 };
        let (writer, reader) = (RingWriter::new(model.clone(), shape), RingReader::new(model.clone(), shape));
        let theirs = model.clone();
        let sender = thread::spawn(move || {
            for value in 1..=values {
                while !writer.has_room() {
                    thread::yield_now();
                }
                writer.put(&[value, !value]);
                fence(Ordering::SeqCst);
                if theirs.asleep.load(Ordering::Relaxed) == 1 && theirs.asleep.swap(0, Ordering::AcqRel) == 1
                {
                    theirs.sleep.notify();
                }
            }
        });
        for value in 1..=values {
            let mut cell = [0; 2];
            while reader.take(&mut cell, false).expect("a count that nobody wrote").is_none() {
                model.asleep.swap(1, Ordering::AcqRel);
                fence(Ordering::SeqCst);
                if reader.is_empty() {
                    model.sleep.wait();
                }
                model.asleep.swap(0, Ordering::AcqRel);
            }
            assert_eq!(cell, [value, !value], "a value that is torn, lost or doubled");
        }
        sender.join().unwrap();
    }

    #[test]
    fn no_value_of_a_ring_is_lost_torn_or_slept_through() {
        for values in 1..=3 {
            let mut builder = loom::model::Builder::new();
            builder.preemption_bound = Some(3);
            builder.check(move || stream(values));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn ring(cells: u64) -> (RingWriter<MappedRegion>, RingReader<MappedRegion>) {
        let shape = RingShape { cells, cell_words: 1 };
        let memory: Rc<Vec<AtomicU64>> = Rc::new((0..shape.words()).map(|_| AtomicU64::new(0)).collect());
        let mapped = || MappedRegion {
            first: NonNull::from(memory.as_slice()).cast(),
            len: memory.len(),
            _hold: Rc::clone(&memory) as Rc<dyn Any>,
        };
        (RingWriter::new(mapped(), shape), RingReader::new(mapped(), shape))
    }

    #[test]
    fn values_come_in_order_through_a_ring_that_is_full_again_and_again() {
        let (writer, reader) = ring(4);
        let (mut sent, mut received, mut cell) = (0, 0, [0]);
        for round in 0..100 {
            while writer.has_room() && sent % 7 != round % 7 {
                writer.put(&[sent]);
                sent += 1;
            }
            writer.has_room().then(|| writer.put(&[sent])).inspect(|()| sent += 1);
            assert!(sent - received <= 4);
            for _ in 0..1 + round % 4 {
                if reader.take(&mut cell, false) == Ok(Some(())) {
                    assert_eq!(cell, [received]);
                    received += 1;
                }
            }
        }
        assert!(received > 50);
    }

    #[test]
    fn a_writer_that_comes_later_goes_on_where_the_one_before_was() {
        let (writer, reader) = ring(4);
        let mut cell = [0];
        (0..3).for_each(|value| writer.put(&[value]));
        assert_eq!((reader.take(&mut cell, false), cell), (Ok(Some(())), [0]));
        let later = RingWriter::new(writer.words, writer.shape);
        later.put(&[3]);
        later.put(&[4]);
        assert!(!later.has_room());
        (1..5).for_each(|value| assert_eq!((reader.take(&mut cell, false), cell), (Ok(Some(())), [value])));
        assert_eq!(reader.take(&mut cell, false), Ok(None));
    }

    #[test]
    fn a_count_beyond_the_cells_is_refused() {
        let (writer, reader) = ring(4);
        writer.words.store(WRITTEN, 5, Ordering::Relaxed);
        assert_eq!(reader.take(&mut [0], false), Err(FalseCount));
    }

    #[test]
    fn only_short_values_that_own_nothing_have_a_ring() {
        let shape = |cells, cell_words| Some(RingShape { cells, cell_words });
        assert_eq!(RingShape::of::<u64>(1_000), shape(1_024, 1));
        assert_eq!(RingShape::of::<u8>(1 << 20), shape(8_192, 1));
        assert_eq!(RingShape::of::<(u64, u32)>(100), shape(128, 3));
        assert_eq!(RingShape::of::<[u64; 6]>(1 << 20), shape(1_024, 8));
        assert_eq!(RingShape::of::<[u64; 7]>(100), None);
        assert_eq!(RingShape::of::<String>(100), None);
        assert_eq!((RingShape::of::<u64>(0), RingShape::of::<u64>(1)), (None, None));
    }
}
