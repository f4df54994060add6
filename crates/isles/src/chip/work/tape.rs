//! The tape of a run: the measurements of its code, in order, and the identity of the run.
//!
//! A run on a modelled chip whose code is measured on the host is not reproducible. With the tape it is: a second run
//! takes its measurements from there. `docs/chip/tape.md` describes the format. This file knows only bytes: it measures
//! nothing, and reads and writes no file. Invariants: every sequence of bytes is either the canonical form of one tape
//! or an error; memory use is bounded by the length of the input.

use super::digest::digest;
use std::fmt;

/// The first bytes of a tape.
const MAGIC: [u8; 8] = *b"islestap";

/// The version of the format, the only one that is read.
const VERSION: u32 = 3;

/// Size in bytes of the digest at the end, which covers everything before it.
const CHECK_BYTES: usize = 16;

/// Maximum size of a tape in bytes: some hundred million measurements.
pub(crate) const TAPE_BYTES_MAX: usize = 1 << 30;

/// Maximum total time on cores of a tape, in picoseconds: 25 days, so that a core's clock, which overflows after 213
/// days, does not overflow even at an eighth of its rate.
const CODE_MAX: u128 = 25 * 86_400 * 1_000_000_000_000;

/// Identity of the run of a tape. Only a run with an equal header can play it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TapeHeader {
    /// A digest of the program's file.
    pub(crate) program: [u8; 16],
    /// A digest of the chip's file.
    pub(crate) chip: [u8; 16],
    pub(crate) places: u32,
    /// Thousandths of core time per unit of host time.
    pub(crate) ratio: u32,
    pub(crate) seed: u64,
    /// Names and values of all other settings that affect the run.
    pub(crate) settings: Vec<(String, String)>,
    /// The program's own arguments.
    pub(crate) arguments: Vec<Vec<u8>>,
}

/// One measurement: code of `place` took `nanoseconds` on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measurement {
    pub(crate) place: u32,
    pub(crate) nanoseconds: u64,
}

/// Reason why bytes are not a valid tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TapeFault {
    /// The first bytes are not those of a tape.
    Foreign,
    /// A tape of another version of the format.
    Version(u32),
    /// The bytes are truncated or were changed.
    Damaged,
}

impl fmt::Display for TapeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TapeFault::Foreign => write!(f, "a tape (this file is not one)"),
            TapeFault::Version(found) => {
                write!(f, "a tape of version {VERSION} (this one has version {found})")
            }
            TapeFault::Damaged => write!(f, "a complete tape (this one is truncated, or was changed)"),
        }
    }
}

/// Measurements in order, packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measurements {
    bytes: Vec<u8>,
    number: u64,
}

impl Measurements {
    /// Adds a measurement; ignored if the tape is full.
    pub(crate) fn push(&mut self, measurement: Measurement) {
        if !self.is_full() {
            write_number(&mut self.bytes, u64::from(measurement.place));
            write_number(&mut self.bytes, measurement.nanoseconds);
            self.number += 1;
        }
    }

    /// Returns `true` if the tape is full.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= TAPE_BYTES_MAX / 2
    }
}

/// A complete tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tape {
    pub(crate) header: TapeHeader,
    pub(crate) measurements: Measurements,
}

impl Tape {
    /// Encodes the tape.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        let TapeHeader { program, chip, places, ratio, seed, settings, arguments } = &self.header;
        bytes.extend([*program, *chip].concat());
        bytes.extend([places.to_le_bytes(), ratio.to_le_bytes()].concat());
        bytes.extend(seed.to_le_bytes());
        write_number(&mut bytes, settings.len() as u64);
        settings
            .iter()
            .flat_map(|(name, value)| [name, value])
            .for_each(|text| write_bytes(&mut bytes, text.as_bytes()));
        write_number(&mut bytes, arguments.len() as u64);
        arguments.iter().for_each(|argument| write_bytes(&mut bytes, argument));
        write_number(&mut bytes, self.measurements.number);
        write_bytes(&mut bytes, &self.measurements.bytes);
        let check = digest(&bytes);
        bytes.extend(check);
        bytes
    }

    /// Decodes a tape.
    ///
    /// # Errors
    /// [`TapeFault`]: `bytes` are not a valid tape.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Tape, TapeFault> {
        let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Err(TapeFault::Foreign) };
        let (version, _) = rest.split_first_chunk().ok_or(TapeFault::Damaged)?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(TapeFault::Version(version));
        }
        let (content, check) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or(TapeFault::Damaged)?;
        if digest(content) != *check {
            return Err(TapeFault::Damaged);
        }
        Tape::decode_content(&content[MAGIC.len() + 4..]).ok_or(TapeFault::Damaged)
    }

    /// Decodes the bytes between version and digest; `None` if they are malformed.
    fn decode_content(content: &[u8]) -> Option<Tape> {
        let mut reader = TapeReader(content);
        let header = reader.header()?;
        let number = reader.number()?;
        let bytes = reader.bytes()?;
        if !reader.0.is_empty() {
            return None;
        }
        let (mut found, mut total) = (TapeReader(bytes), 0_u128);
        for _ in 0..number {
            let measurement = found.measurement().filter(|measurement| measurement.place < header.places)?;
            total += u128::from(measurement.nanoseconds);
        }
        if total * u128::from(header.ratio) > CODE_MAX {
            return None;
        }
        found
            .0
            .is_empty()
            .then(|| Tape { header, measurements: Measurements { bytes: bytes.to_vec(), number } })
    }
}

/// Plays the measurements of a tape, once.
#[derive(Debug)]
pub(crate) struct Playback {
    tape: Tape,
    /// Position of the next measurement in bytes.
    next: usize,
    played: u64,
}

impl Playback {
    pub(crate) fn new(tape: Tape) -> Playback {
        Playback { tape, next: 0, played: 0 }
    }

    /// Returns the next measurement if it is of `place`; `None` means that the run has departed from the tape.
    pub(crate) fn next(&mut self, place: u32) -> Option<u64> {
        let bytes = &self.tape.measurements.bytes;
        let mut reader = TapeReader(bytes.get(self.next..)?);
        let measurement = reader.measurement().filter(|measurement| measurement.place == place)?;
        self.next = bytes.len() - reader.0.len();
        self.played += 1;
        Some(measurement.nanoseconds)
    }

    /// Returns the number of measurements played, and their total number.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.played, self.tape.measurements.number)
    }
}

/// Writes a number as LEB128: groups of seven bits, the least significant first.
fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn write_bytes(bytes: &mut Vec<u8>, content: &[u8]) {
    write_number(bytes, content.len() as u64);
    bytes.extend(content);
}

/// Reads values from the front of bytes; returns `None` for malformed ones.
struct TapeReader<'a>(&'a [u8]);

impl<'a> TapeReader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads a number, which must be in its shortest form.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take()?;
            let group = u64::from(byte & 0x7f);
            if shift == 63 && group > 1 || byte == 0 && shift > 0 {
                return None;
            }
            number |= group << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (first, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(first)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn header(&mut self) -> Option<TapeHeader> {
        let (program, chip) = (self.take()?, self.take()?);
        let (places, ratio) = (u32::from_le_bytes(self.take()?), u32::from_le_bytes(self.take()?));
        let seed = u64::from_le_bytes(self.take()?);
        let mut settings = Vec::new();
        for _ in 0..self.number()? {
            settings.push((self.text()?, self.text()?));
        }
        let mut arguments = Vec::new();
        for _ in 0..self.number()? {
            arguments.push(self.bytes()?.to_vec());
        }
        Some(TapeHeader { program, chip, places, ratio, seed, settings, arguments })
    }

    fn measurement(&mut self) -> Option<Measurement> {
        let place = u32::try_from(self.number()?).ok()?;
        Some(Measurement { place, nanoseconds: self.number()? })
    }
}

/// For fuzzing: decodes `bytes` as a tape, and as the content between version and digest. An accepted tape must encode
/// to the same bytes.
#[cfg(fuzzing)]
pub fn fuzz(bytes: &[u8]) {
    if let Ok(tape) = Tape::decode(bytes) {
        assert_eq!(tape.encode(), bytes);
    }
    let mut whole = [&MAGIC[..], &VERSION.to_le_bytes(), bytes].concat();
    whole.extend(digest(&whole));
    if let Ok(tape) = Tape::decode(&whole) {
        assert_eq!(tape.encode(), whole);
        let (all, mut playback) = (tape.measurements.number, Playback::new(tape.clone()));
        let places = tape.header.places;
        for _ in 0..all.min(1_000) {
            assert!((0..places.min(1_000)).any(|place| playback.next(place).is_some()) || places > 1_000);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_transport::random::Random;

    fn tape(places: u32, measured: &[(u32, u64)]) -> Tape {
        let mut measurements = Measurements::default();
        for (place, nanoseconds) in measured {
            measurements.push(Measurement { place: place % places, nanoseconds: *nanoseconds });
        }
        let header = TapeHeader {
            program: [7; 16],
            chip: [9; 16],
            places,
            ratio: 20_000,
            seed: 1 << 40,
            settings: [("rest", "poll"), ("reduce", "auto")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            arguments: vec![b"--graph".to_vec(), vec![0xff, 0]],
        };
        Tape { header, measurements }
    }

    #[test]
    fn the_layout_is_that_of_the_document() {
        let bytes = tape(2, &[(1, 300)]).encode();
        assert_eq!(&bytes[..12], b"islestap\x03\0\0\0");
        assert_eq!((&bytes[12..28], &bytes[28..44]), (&[7; 16][..], &[9; 16][..]));
        assert_eq!(&bytes[44..60], [2, 0, 0, 0, 0x20, 0x4e, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(&bytes[60..83], b"\x02\x04rest\x04poll\x06reduce\x04auto");
        assert_eq!(&bytes[83..95], b"\x02\x07--graph\x02\xff\0");
        assert_eq!(&bytes[95..100], [1, 3, 1, 0xac, 2]);
        assert_eq!(bytes.len(), 100 + CHECK_BYTES);
    }

    #[test]
    fn what_is_no_tape_is_told_from_one_that_was_cut_off_or_changed() {
        let bytes = tape(3, &[(0, 5), (2, 1 << 40)]).encode();
        for len in 0..bytes.len() {
            let fault = if len < 8 { TapeFault::Foreign } else { TapeFault::Damaged };
            assert_eq!(Tape::decode(&bytes[..len]), Err(fault), "{len} bytes of {}", bytes.len());
        }
        for place in 12..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 4;
            assert_eq!(Tape::decode(&changed), Err(TapeFault::Damaged), "byte {place}");
        }
        let newer = [&MAGIC[..], &4_u32.to_le_bytes(), &bytes[12..]].concat();
        assert_eq!(Tape::decode(&newer), Err(TapeFault::Version(4)));
        assert_eq!(Tape::decode(b"a chip, not a tape"), Err(TapeFault::Foreign));
    }

    #[test]
    fn a_form_that_nobody_writes_is_refused_although_its_check_is_right() {
        type Change = dyn Fn(&mut Vec<u8>);
        let good = tape(2, &[(1, 300)]).encode();
        let with = |change: &Change| {
            let mut bytes = good[..good.len() - CHECK_BYTES].to_vec();
            change(&mut bytes);
            bytes.extend(digest(&bytes));
            Tape::decode(&bytes)
        };
        assert!(with(&|_| ()).is_ok());
        let bad: [&Change; 6] = [
            &|bytes| bytes.push(0),                       // more than the tape
            &|bytes| bytes[95] = 2,                       // more measurements than there are
            &|bytes| bytes[97] = 2,                       // of a place that is not there
            &|bytes| _ = bytes.splice(97..98, [0x81, 0]), // a place in a longer form, one byte too many
            &|bytes| bytes[61] = 0xff,                    // a name beyond the end
            &|bytes| bytes.truncate(95),                  // no measurements
        ];
        for (number, change) in bad.into_iter().enumerate() {
            assert_eq!(with(change), Err(TapeFault::Damaged), "change {number}");
        }
    }

    #[test]
    fn a_tape_comes_back_as_it_was_and_plays_what_was_put_on_it() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let places = 1 + random.below(299) as u32;
            let measured: Vec<(u32, u64)> = (0..random.index(60))
                .map(|_| (random.below(1 << 32) as u32, random.below(1 << 40)))
                .collect();
            let whole = tape(places, &measured);
            let back = Tape::decode(&whole.encode());
            assert_eq!(back.as_ref(), Ok(&whole), "seed {seed}");
            let mut playback = Playback::new(whole);
            for (place, nanoseconds) in &measured {
                let other = (place % places + 1) % places;
                assert_eq!(playback.next(other), (places == 1).then_some(*nanoseconds), "seed {seed}");
                if places > 1 {
                    assert_eq!(playback.next(place % places), Some(*nanoseconds), "seed {seed}");
                }
            }
            assert_eq!(playback.next(0), None);
            assert_eq!(playback.progress(), (measured.len() as u64, measured.len() as u64));
        }
    }

    #[test]
    fn any_bytes_are_refused_or_are_the_form_that_is_written() {
        let whole = tape(3, &[(0, 300), (1, 7), (2, 1 << 39)]).encode();
        let mut accepted = 0;
        for seed in 0..20_000 {
            let mut random = Random::new(seed);
            let mut bytes = if seed % 2 == 0 {
                let random_bytes = (0..random.index(200)).map(|_| random.below(256) as u8);
                [&MAGIC[..], &VERSION.to_le_bytes(), &random_bytes.collect::<Vec<u8>>()].concat()
            } else {
                let mut changed = whole[..whole.len() - CHECK_BYTES].to_vec();
                let place = 12 + random.index(changed.len() - 12);
                changed[place] = random.below(256) as u8;
                changed
            };
            bytes.extend(digest(&bytes));
            if let Ok(tape) = Tape::decode(&bytes) {
                assert_eq!(tape.encode(), bytes, "seed {seed}");
                accepted += 1;
            }
        }
        assert!(accepted > 1_000, "some of what is nearly a tape is one: {accepted}");
    }
}
