//! The last lines that a place has printed: a ring in the file of counters, written by its place.
//!
//! A line is a record: its number, the time and stream of its output, and its text. The place overwrites the oldest
//! ones and never waits. Before it overwrites a record it advances the position of the oldest one. A reader reads the
//! words first and that position afterwards, so it takes no record that was being overwritten; `docs/design/output.md`
//! has the proof. Invariant: the numbers of the records of a ring follow each other, so what is missing is counted.

use super::LINE;
use crate::page::sync::{AtomicU64, Ordering, fence};
use crate::sample::{OutputLine, OutputStream};

/// Words of the header of a ring: the end of the newest record and the beginning of the oldest one, as words since the
/// start.
pub(super) const RING_HEADER: u64 = LINE;

/// Words of the records of a ring: 16 KiB.
pub(super) const RING_WORDS: u64 = 2048;

/// Words of a record before its text: its number; milliseconds, stream and bytes.
const RECORD_HEADER: u64 = 2;

/// Maximum bytes of a record; a longer line takes several.
const TEXT_BYTES_MAX: usize = 1024;

/// Returns the number of words of a record of `bytes` bytes.
fn record_words(bytes: usize) -> u64 {
    RECORD_HEADER + bytes.div_ceil(8) as u64
}

/// State of a place's ring, at its writer.
#[derive(Default)]
pub(super) struct RingWriter {
    /// The number of the newest record.
    number: u64,
    end: u64,
    first: u64,
    /// Text of each stream after its last line feed.
    partial: [Vec<u8>; 4],
}

impl RingWriter {
    /// Adds text printed at `time_ms`. A line becomes a record once it ends or reaches the longest record.
    pub(super) fn print(&mut self, ring: &[AtomicU64], time_ms: u64, stream: OutputStream, text: &str) {
        let mut partial = std::mem::take(&mut self.partial[stream as usize]);
        for piece in text.split_inclusive('\n') {
            let (piece, is_whole) = match piece.strip_suffix('\n') {
                Some(line) => (line, true),
                None => (piece, false),
            };
            let mut left = piece;
            while partial.len() + left.len() > TEXT_BYTES_MAX {
                let room = TEXT_BYTES_MAX - partial.len();
                let cut = (0..=room).rev().find(|cut| left.is_char_boundary(*cut)).unwrap_or(0);
                partial.extend_from_slice(&left.as_bytes()[..cut]);
                self.push(ring, time_ms, stream, &partial);
                partial.clear();
                left = &left[cut..];
            }
            partial.extend_from_slice(left.as_bytes());
            if is_whole {
                self.push(ring, time_ms, stream, &partial);
                partial.clear();
            }
        }
        self.partial[stream as usize] = partial;
    }

    /// Adds a record in place of the oldest ones.
    fn push(&mut self, ring: &[AtomicU64], time_ms: u64, stream: OutputStream, text: &[u8]) {
        let words = &ring[RING_HEADER as usize..];
        let size = words.len() as u64;
        let end = self.end + record_words(text.len());
        let at = |position: u64| &words[(position % size) as usize];
        // Relaxed, here and below: this place is the only writer.
        while end - self.first > size {
            let bytes = at(self.first + 1).load(Ordering::Relaxed) & 0xffff;
            self.first += record_words(bytes as usize);
        }
        ring[1].store(self.first, Ordering::Relaxed);
        // PAIR output.first: publish
        fence(Ordering::Release);
        self.number += 1;
        at(self.end).store(self.number, Ordering::Relaxed);
        let facts = time_ms << 20 | (stream as u64) << 16 | text.len() as u64;
        at(self.end + 1).store(facts, Ordering::Relaxed);
        for (position, bytes) in (self.end + RECORD_HEADER..).zip(text.chunks(8)) {
            at(position).store(super::writer::text_word(bytes), Ordering::Relaxed);
        }
        self.end = end;
        // PAIR output.end: publish
        ring[0].store(end, Ordering::Release);
    }
}

/// Returns the records of a ring with a number above `after`; `end` was read before `words`, `first` after them.
///
/// It terminates with valid texts whatever the words hold.
pub(super) fn decode(end: u64, words: &[u64], first: u64, after: u64) -> Vec<OutputLine> {
    let size = words.len() as u64;
    let mut lines = Vec::new();
    // If the writer is far ahead, no record may be left.
    let mut position = first;
    while position < end && end - position <= size {
        let at = |position: u64| words[(position % size) as usize];
        let (seq, facts) = (at(position), at(position + 1));
        let bytes = (facts & 0xffff) as usize;
        let next = position + record_words(bytes);
        if next > end || bytes > TEXT_BYTES_MAX {
            break;
        }
        if seq > after {
            let text = (position + RECORD_HEADER..next).flat_map(|position| at(position).to_le_bytes());
            let text: Vec<u8> = text.take(bytes).collect();
            let stream = match facts >> 16 & 3 {
                0 => OutputStream::Standard,
                1 => OutputStream::Error,
                2 => OutputStream::Result,
                _ => OutputStream::Stages,
            };
            let text = String::from_utf8_lossy(&text).into_owned();
            lines.push(OutputLine { seq, time_ms: facts >> 20, stream, text });
        }
        position = next;
    }
    lines
}

/// Reads a ring in owned memory in the order that a reader uses with system calls.
#[cfg(any(test, loom))]
pub(super) fn read(ring: &[AtomicU64]) -> Vec<OutputLine> {
    // PAIR output.end: observe
    let end = ring[0].load(Ordering::Acquire);
    // Relaxed: ordered by the load before and the fence after.
    let words: Vec<u64> =
        ring[RING_HEADER as usize..].iter().map(|word| word.load(Ordering::Relaxed)).collect();
    // PAIR output.first: observe
    fence(Ordering::Acquire);
    decode(end, &words, ring[1].load(Ordering::Relaxed), 0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ring(words: u64) -> Vec<AtomicU64> {
        (0..RING_HEADER + words).map(|_| AtomicU64::new(0)).collect()
    }

    fn texts(ring: &[AtomicU64]) -> Vec<String> {
        read(ring).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn lines_are_read_as_they_were_printed_with_their_streams_and_times() {
        let (ring, mut writer) = (ring(RING_WORDS), RingWriter::default());
        writer.print(&ring, 5, OutputStream::Standard, "one\n\ntw");
        writer.print(&ring, 6, OutputStream::Error, "\u{1b}[2Jerror\n");
        assert_eq!(texts(&ring), ["one", "", "\u{1b}[2Jerror"], "a line counts once it has ended");
        writer.print(&ring, 7, OutputStream::Standard, "o\n");
        let last = read(&ring).pop().unwrap();
        let stream = OutputStream::Standard;
        assert_eq!(last, OutputLine { seq: 4, time_ms: 7, stream, text: "two".to_owned() });
        assert_eq!(read(&ring)[2].stream, OutputStream::Error);
    }

    #[test]
    fn the_oldest_lines_go_and_numbers_tell_how_many() {
        let (ring, mut writer) = (ring(64), RingWriter::default());
        // Records of three words each.
        for number in 1..=999 {
            writer.print(&ring, number, OutputStream::Standard, &format!("line {number}\n"));
            let read = read(&ring);
            assert!(read.len() as u64 == number.min(21) && read[0].seq + read.len() as u64 == number + 1);
            assert!(read.iter().all(|line| line.text == format!("line {}", line.seq)));
        }
    }

    #[test]
    fn a_long_line_is_several_and_no_character_is_cut() {
        let (ring, mut writer) = (ring(RING_WORDS), RingWriter::default());
        let long = "ä".repeat(3 * TEXT_BYTES_MAX / 4) + "€";
        writer.print(&ring, 0, OutputStream::Standard, &(long.clone() + "\n"));
        let read = texts(&ring);
        assert_eq!((read.concat(), read.len()), (long, 2));
    }

    proptest! {
        #[test]
        fn any_texts_are_the_same_in_lines(texts in prop::collection::vec("[aä€\n]{0,40}", 0..60)) {
            let (ring, mut writer) = (ring(160), RingWriter::default());
            for text in &texts {
                writer.print(&ring, 1, OutputStream::Error, text);
            }
            let all = texts.concat();
            let mut lines: Vec<&str> = all.split('\n').collect();
            lines.pop();
            let read = super::read(&ring);
            for line in &read {
                prop_assert_eq!(&line.text, lines[line.seq as usize - 1]);
            }
            prop_assert_eq!(read.last().map_or(0, |line| line.seq), lines.len() as u64);
        }

        #[test]
        fn any_words_are_decoded_without_a_panic(
            words in prop::collection::vec(any::<u64>(), 16),
            end in any::<u64>(),
            back in 0..40_u64,
        ) {
            let lines = decode(end, &words, end.wrapping_sub(back), 0);
            prop_assert!(lines.len() <= words.len());
        }
    }
}
