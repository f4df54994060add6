//! Value rings: the values that a place sends by slots, in a region of the home that both map.
//!
//! One place writes a ring and one reads it, so each keeps its own count and sees that of the other in the region. This
//! file knows cells and words; what a value means to the channel is the protocol's. Invariants: a cell is read only
//! when the count of values written is beyond it, and written only when the count of values taken has passed it; the
//! home looks into no ring before its place has said that it uses it.
//!
//! The rings that carry messages between processes publish header words instead of a count. One type for both would
//! slow one of them down. Medians of bare rings between two cores: with a count half a round trip takes 60 ns, with
//! header words 44; values of 8 bytes pass at 560 million a second with a count, and at 91 million with header words.

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

/// Most bytes of the cells of one ring.
const CELLS_BYTES_MAX: usize = 64 << 10;

/// The number of values that a place sends as messages before it gets a ring, so that a few values take no region.
const ITEMS_MIN: u32 = 16;

/// Number of pauses of a reader before it looks for more, when it has taken the few values of its last look: about the
/// time the writer takes for ten to forty more.
const STREAM_PAUSES: u32 = 64;

/// Number of values of one look from which they are not few: the reader is slower than the writer.
const STREAM_VALUES: u64 = 64;

/// The words that count the values written and taken, and the first of the cells. Each count is alone on two lines,
/// because processors fetch lines in pairs.
const WRITTEN: usize = 0;
const TAKEN: usize = 16;
const CELLS: usize = 32;

/// The words of a region, however they are mapped.
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
    /// The shape of a ring for a channel of `T`; none if `T` owns memory or is longer than a cell, or if the capacity
    /// is below 2, where a place has no slots.
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

/// Words of the cell of a value.
fn cell_words<T>() -> usize {
    if is_word::<T>() { 1 } else { value_bytes::<T>().div_ceil(size_of::<u64>()) }
}

/// The end of a ring that writes.
pub(super) struct RingWriter<W> {
    words: W,
    shape: RingShape,
    written: Cell<u64>,
    /// Number of values the reader had taken when this end last looked.
    taken: Cell<u64>,
}

impl<W: RingWords> RingWriter<W> {
    /// The one writer from now on.
    fn new(words: W, shape: RingShape) -> RingWriter<W> {
        // Relaxed: a writer before was of this place.
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

    /// Writes a value, for which there is room.
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

/// A count of values written that no sound place has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FalseCount;

/// The end of a ring that reads.
pub(super) struct RingReader<W> {
    words: W,
    shape: RingShape,
    taken: Cell<u64>,
    /// Number of values written when this end last looked.
    written: Cell<u64>,
    /// True if the look before found few values, but some: they come as a stream.
    is_short: Cell<bool>,
}

impl<W: RingWords> RingReader<W> {
    /// The one reader of a new ring.
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

    /// Looks for more values after all that were found are taken. Before, it lets a few of a stream come together, if
    /// the place `may_spin`: each look takes the line of the count away from who writes it.
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

    /// Takes the first value; none if there is none.
    ///
    /// # Errors
    /// The writer has written more than there is room for.
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
    /// Keeps it mapped.
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
    /// It has it.
    Sent,
    /// It has no room for it.
    NoRoom,
    /// Nobody will read it: the home is dead.
    Dead,
}

/// The ring into which this place writes, elsewhere than at the home.
pub(super) type OutwardRing = RingWriter<MappedRegion>;

impl OutwardRing {
    /// The ring in a region of the home, if that is one of this shape and can be mapped here.
    pub(super) fn mapped(local: &Local, shape: RingShape, region: Region) -> Option<OutwardRing> {
        let memory = local.endpoint().shared_memory().filter(|_| region.words == shape.words())?;
        Some(RingWriter::new(MappedRegion::new(memory, region)?, shape))
    }

    /// Writes a value, if there is room and it fits, and wakes `home` if that sleeps.
    ///
    /// # Errors
    /// The value does not travel.
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

    /// The words of a value that is no number; none if it does not fit.
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

/// A place that sends by slots, at the home.
struct SendingPlace {
    place: PlaceId,
    /// Its items that came as messages, since it was told of a ring or forgot it.
    items: u32,
    ring: Option<InwardRing>,
}

/// The ring from which the home reads.
struct InwardRing {
    reader: RingReader<MappedRegion>,
    region: Region,
    /// True if its place was told of it and has not yet said that it uses it.
    is_offered: bool,
    /// True if its place has said so since it was last told of it.
    is_used: bool,
}

/// The rings of a channel, at its home.
#[derive(Default)]
pub(super) struct InwardRings {
    places: RefCell<Vec<SendingPlace>>,
    /// The place whose ring is looked into first: it had values when it was looked into last.
    first: Cell<usize>,
    /// True if any ring is used.
    pub(super) are_used: Cell<bool>,
    /// True if the place looks into them for tasks that wait.
    pub(super) are_watched: Cell<bool>,
}

/// Ring from which a value is taken.
#[derive(Clone, Copy)]
pub(super) enum TakeFrom {
    /// The ring of this place.
    Place(PlaceId),
    /// Any; a stream may be looked at for some time, if the place `may_spin`.
    Any {
        /// [`Local::may_spin`].
        may_spin: bool,
    },
}

/// A value of a ring, as far as it can be read, and who sent it.
pub(super) type RingValue<T> = (PlaceId, Result<T, DecodeError>);

impl InwardRings {
    /// Notes an item of `place` that came as a message; returns the message that tells it of a ring, if it is time.
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
        // A place that forgot the channel has used the ring before. Until its answer, values may be on their way in
        // messages, and those that it writes after them must not be read first.
        (ring.is_offered, ring.is_used) = (true, false);
        Some(ChannelMessage::Ring { start: ring.region.start, words: ring.region.words })
    }

    /// Notes that `place` uses its ring, or no longer knows the channel; returns whether it was told of a ring.
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

    /// The next value of a ring.
    ///
    /// # Errors
    /// With the place whose ring is none.
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

    /// As [`InwardRings::take_any`], where that which had values is empty.
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

    /// Reads nothing more of `place`, which is dead.
    ///
    /// Its ring stays: if it is only said to be dead it may write for a while, and its words must be nobody else's.
    pub(super) fn place_died(&self, place: PlaceId) {
        let mut places = self.places.borrow_mut();
        let of_place = places.iter_mut().filter(|sending| sending.place == place);
        of_place.filter_map(|sending| sending.ring.as_mut()).for_each(|ring| ring.is_used = false);
    }

    /// Gives all rings back, when the channel is over.
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
    /// With the place, if its ring is none.
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
    /// A new one for `place`; none if there is no memory for it that both share.
    fn new(local: &Local, shape: RingShape, place: PlaceId) -> Option<InwardRing> {
        let memory = local.endpoint().shared_memory()?;
        let is_far = local.endpoint().other_hosts().is_some_and(|hosts| hosts.is_far(place));
        let region = if is_far { None } else { memory.allocate(shape.words()) }?;
        let reader = RingReader::new(MappedRegion::new(memory, region)?, shape);
        Some(InwardRing { reader, region, is_offered: false, is_used: false })
    }
}

impl ControlBlock {
    /// Begins to use the region that the home has taken for the values that this place sends by slots.
    pub(super) fn begin_ring(&self, local: &Local, start: u64, words: u64) {
        let region = Region { place: self.id.home, start, words };
        if let Some(shape) = self.kind.ring_shape()
            && let Some(ring) = OutwardRing::mapped(local, shape, region)
        {
            // First, so that all that went before is known to have come; a dead home needs no values.
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
