//! Writes the file of counters: the first process the header, each place its page.
//!
//! No function waits, allocates or fails. Invariant: one [`HeaderWriter`] per run, one [`PlaceWriter`] per place.

use super::{
    CounterTable, ENERGY_VALUES, FINISH_VALUES, FINISHES, FINISHES_VALUES, LABEL_BYTES, MAGIC, PHASE_BYTES,
    PLACE_VALUES, PROGRESS_WORDS, PageLayout, STATE_WORDS, UNIT_BYTES, VERSION, WAITS, group_words, header,
};
use crate::page::group;
use crate::page::output::{self, RingWriter};
use crate::page::sync::{AtomicU64, Ordering};
use crate::sample::{
    CounterValues, DeathCause, EnergySample, LinkSample, Liveness, OpenFinish, OutputStream, ProgressSample,
    RunEnd,
};
use std::cell::Cell;
use std::iter::repeat;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Memory of a file of counters.
pub trait WordMemory: Send + Sync {
    /// Returns all words.
    fn words(&self) -> &[AtomicU64];
}

impl WordMemory for Vec<AtomicU64> {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

/// Writes the header, the deaths and the links.
#[derive(Clone)]
pub struct HeaderWriter {
    words: Arc<dyn WordMemory>,
    layout: PageLayout,
}

impl HeaderWriter {
    /// Writes the header of a new file, for a run that began at `started_unix_ms`.
    ///
    /// # Panics
    /// If the memory has fewer words than the layout.
    pub fn begin(words: Arc<dyn WordMemory>, layout: PageLayout, started_unix_ms: u64) -> HeaderWriter {
        assert!(words.words().len() as u64 >= layout.words(), "too few words for the counters");
        let writer = HeaderWriter { words, layout };
        writer.set(header::VERSION, VERSION);
        let CounterTable { counters, names_hash } = CounterTable::OURS;
        writer.set(header::NAMES, names_hash);
        writer.set(header::COUNTERS, counters);
        writer.set(header::PLACES, layout.places.into());
        writer.set(header::LINKS, layout.links.into());
        writer.set(header::STARTED, started_unix_ms);
        writer.set(header::MAGIC, MAGIC);
        writer
    }

    /// Records that the run was alive `time_ms` milliseconds after its start.
    pub fn heartbeat(&self, time_ms: u64) {
        self.set(header::HEARTBEAT, time_ms);
    }

    /// Records the end of the run.
    pub fn end(&self, end: RunEnd) {
        self.set(header::END, end.encode());
    }

    /// Records the time of the modelled chip and the load of its links.
    pub fn model(&self, model_ns: u64, links: &[LinkSample]) {
        let kept = &links[..links.len().min(self.layout.links as usize)];
        for (index, link) in (self.layout.links_at() as usize..).step_by(2).zip(kept) {
            self.set(index, u64::from(link.from) << 32 | u64::from(link.to));
            self.set(index + 1, link.busy_ps);
        }
        self.set(header::LINKS_USED, kept.len() as u64);
        self.set(header::MODEL, model_ns);
    }

    /// Records the energy of the whole chip.
    pub fn energy(&self, energy: EnergySample) {
        let group = &self.words.words()[header::ENERGY..=header::ENERGY + ENERGY_VALUES];
        group::write(group, &[energy.until_ns, energy.nanojoules]);
    }

    /// Records why a place is dead. Any place may call it; the last call counts.
    pub fn died(&self, place: u32, cause: DeathCause) {
        if place < self.layout.places {
            self.set(self.layout.deaths_at() as usize + place as usize, cause.encode());
        }
    }

    fn set(&self, word: usize, value: u64) {
        // Relaxed: each word is independent, and readers use system calls.
        self.words.words()[word].store(value, Ordering::Relaxed);
    }
}

/// Writes the page of one place.
pub struct PlaceWriter {
    words: Arc<dyn WordMemory>,
    layout: PageLayout,
    place: u32,
    process: u32,
    copies: u64,
    output: RingWriter,
    /// Messages that are not in the row of peers yet: their receiver, their number and their bytes.
    unwritten: Cell<[u64; 3]>,
}

impl PlaceWriter {
    /// Returns the time of the run's last heartbeat, in milliseconds after its start. Heartbeats come several times a
    /// second and replace reading a clock.
    #[inline]
    pub fn alive_ms(&self) -> u64 {
        // Relaxed: only a change matters.
        self.words.words()[header::HEARTBEAT].load(Ordering::Relaxed)
    }

    /// Returns the writer of `place`, which runs in this process.
    ///
    /// # Panics
    /// If there is no such place, or the memory has fewer words than the layout.
    pub fn new(words: Arc<dyn WordMemory>, layout: PageLayout, place: u32) -> PlaceWriter {
        assert!(place < layout.places, "place {place} of {}", layout.places);
        assert!(words.words().len() as u64 >= layout.words(), "too few words for the counters");
        let (process, output) = (std::process::id(), RingWriter::default());
        PlaceWriter { words, layout, place, process, copies: 0, output, unwritten: Cell::default() }
    }

    /// Copies the state of the place and its counters, as of one moment.
    pub fn copy(&mut self, liveness: Liveness, at_ns: u64, values: &CounterValues) {
        self.write_sent();
        self.copies += 1;
        let mut group = [0; PLACE_VALUES];
        group[..STATE_WORDS].copy_from_slice(&[liveness.encode(), at_ns, self.copies, self.process.into()]);
        group[STATE_WORDS..].copy_from_slice(values);
        group::write(self.group(self.layout.place_at(self.place), PLACE_VALUES), &group);
    }

    /// Lists the open finishes of the place, at most the first few.
    pub fn finishes(&mut self, finishes: &[OpenFinish]) {
        let mut group = [0; FINISHES_VALUES];
        let listed = &finishes[..finishes.len().min(FINISHES)];
        group[0] = listed.len() as u64;
        for (values, finish) in group[1..].chunks_exact_mut(FINISH_VALUES).zip(listed) {
            encode_finish(values, finish);
        }
        group::write(self.group(self.layout.finishes_at(self.place), FINISHES_VALUES), &group);
    }

    /// Counts one more message to `to`. Readers see it after the next copy, or the next message to another place.
    #[inline]
    pub fn sent(&self, to: u32, bytes: u64) {
        let [last, messages, sum] = self.unwritten.get();
        if last != u64::from(to) {
            self.write_sent();
            return self.unwritten.set([to.into(), 1, bytes]);
        }
        self.unwritten.set([last, messages + 1, sum.wrapping_add(bytes)]);
    }

    /// Adds the messages counted since the last call to the row of peers.
    fn write_sent(&self) {
        let [to, more @ ..] = self.unwritten.get();
        self.unwritten.set([to, 0, 0]);
        if to < self.layout.peers().into() {
            let at = self.layout.peers_at(self.place) as usize + 2 * to as usize;
            let pair = &self.words.words()[at..at + 2];
            for (word, more) in pair.iter().zip(more) {
                // Relaxed: this place is the only writer, and each word is independent.
                word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
            }
        }
    }

    /// Adds `steps` to the steps that the place has done.
    #[inline]
    pub fn add_done(&self, steps: u64) {
        self.add_progress(0, steps);
    }

    /// Adds `steps` to the total of the program, at any place, and sets their name, a plural. The last name counts; a
    /// long one is cut.
    pub fn add_total(&self, steps: u64, unit: &str) {
        self.write_text(header::UNIT, UNIT_BYTES, unit);
        // Places that begin at about the same time each add their own steps; that is not growth of the total.
        let known = self.progress();
        if steps > 0 && known.done > known.total / 10 {
            self.expect_more();
        }
        self.add_progress(1, steps);
    }

    /// Records that the total of steps will grow.
    pub fn expect_more(&self) {
        // Relaxed: independent of other words.
        self.words.words()[header::GROWS].store(1, Ordering::Relaxed);
    }

    /// Starts the phase `name` of the program, whose steps count from zero. A long name is cut. Called at one place,
    /// while no other counts steps.
    pub fn begin_phase(&self, name: &str) {
        self.write_text(header::PHASE, PHASE_BYTES, name);
        let words = self.words.words();
        for (word, sum) in words[header::PHASE_BEGIN..].iter().zip(self.sums()) {
            // Relaxed: a reader that sees the one without the other shows wrong steps once.
            word.store(sum, Ordering::Relaxed);
        }
        words[header::GROWS].store(0, Ordering::Relaxed); // relaxed, as above
    }

    /// Writes up to `bytes` bytes of `text` to the header, from word `at` on.
    fn write_text(&self, at: usize, bytes: usize, text: &str) {
        let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let values = text.as_bytes()[..end].chunks(8).map(text_word);
        for (word, value) in self.words.words()[at..at + bytes / 8].iter().zip(values.chain(repeat(0))) {
            // Relaxed: places that use the same name write the same words, and readers use system calls.
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the progress of all places together, without the names of the steps and the phase.
    pub fn progress(&self) -> ProgressSample {
        // Relaxed: independent counts of other places.
        let word = |at: usize| self.words.words()[at].load(Ordering::Relaxed);
        let [done, total] = self.sums();
        ProgressSample {
            done: done.saturating_sub(word(header::PHASE_BEGIN)),
            total: total.saturating_sub(word(header::PHASE_BEGIN + 1)),
            grows: word(header::GROWS) != 0,
            ..ProgressSample::default()
        }
    }

    /// Returns the done and total steps of all places since the run began.
    fn sums(&self) -> [u64; PROGRESS_WORDS] {
        std::array::from_fn(|which| {
            let at = |place: u32| self.layout.place_at(place) as usize + PLACE_VALUES + 1 + which;
            // Relaxed: independent counts of other places.
            let word = |place: u32| self.words.words()[at(place)].load(Ordering::Relaxed);
            (0..self.layout.places).map(word).fold(0, u64::saturating_add)
        })
    }

    fn add_progress(&self, which: usize, steps: u64) {
        let at = self.layout.place_at(self.place) as usize + PLACE_VALUES + 1 + which;
        let word = &self.words.words()[at];
        // Relaxed: this place is the only writer, and each word is independent.
        word.store(word.load(Ordering::Relaxed).saturating_add(steps), Ordering::Relaxed);
    }

    /// Records printed text, in place of the oldest. A run of more than 1,024 places records none.
    pub fn print(&mut self, stream: OutputStream, text: &str) {
        if !self.layout.keeps_output() {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Relaxed: it was written before the places began.
        let started_ms = self.words.words()[header::STARTED].load(Ordering::Relaxed);
        let time_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_sub(started_ms);
        let at = self.layout.output_at(self.place) as usize;
        let ring = &self.words.words()[at..at + (output::RING_HEADER + output::RING_WORDS) as usize];
        self.output.print(ring, time_ms, stream, text);
    }

    /// As [`HeaderWriter::died`], called by a place that learns of a death.
    pub fn died(&self, place: u32, cause: DeathCause) {
        HeaderWriter { words: Arc::clone(&self.words), layout: self.layout }.died(place, cause);
    }

    fn group(&self, at: u64, values: usize) -> &[AtomicU64] {
        debug_assert!((values as u64) < group_words(values));
        &self.words.words()[at as usize..at as usize + values + 1]
    }
}

/// Encodes an open finish as words.
fn encode_finish(values: &mut [u64], finish: &OpenFinish) {
    values[..4].copy_from_slice(&[
        finish.id,
        // 0 means none.
        finish.parent.map_or(0, |parent| parent.wrapping_add(1)),
        finish.since_ms,
        finish.live,
    ]);
    for (word, (place, tasks)) in values[4..4 + WAITS].iter_mut().zip(&finish.waits_for) {
        *word = u64::from(*place) << 32 | u64::from((*tasks).max(1));
    }
    // The end of a path identifies it better than its beginning.
    let start = finish.label.len().saturating_sub(LABEL_BYTES);
    let start = (start..).find(|at| finish.label.is_char_boundary(*at)).unwrap_or(start);
    for (word, bytes) in values[4 + WAITS..].iter_mut().zip(finish.label.as_bytes()[start..].chunks(8)) {
        *word = text_word(bytes);
    }
}

/// Returns up to eight bytes of a text as a word.
pub(super) fn text_word(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}
