//! Reads a trace back: events in the order of the file, with their names.
//!
//! It reads the output of [`perfetto`](crate::perfetto) and shares only the field numbers with it. A file is untrusted
//! input: lengths are checked, numbers must be complete, and references must resolve. Unneeded fields are skipped.
//!
//! Invariant: any bytes give events or an error, never a panic.

use std::collections::BTreeMap;
use std::fmt;

/// Reason why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// It is not a trace, or one of another program; the text names the fault.
    Foreign(&'static str),
    /// The file ends within an event; the number is that of the bytes before this event.
    CutOff(usize),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Foreign(reason) => write!(f, "it is not a trace: {reason}"),
            ReadError::CutOff(whole) => write!(f, "it is truncated after {whole} bytes"),
        }
    }
}

impl std::error::Error for ReadError {}

/// Kind of an event on a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A span begins.
    Begin,
    /// The span that began last ends.
    End,
    /// Something without length.
    Instant,
    /// A counter has another value.
    Counter,
}

/// The value of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackEvent {
    /// Time of the event, in units of the file.
    pub time: u64,
    /// Kind of the event.
    pub kind: EventKind,
    /// The track that it is on.
    pub track: u64,
    /// Its name; ends and counters have none.
    pub name: String,
    /// Its notes, by name.
    pub notes: BTreeMap<String, Note>,
    /// The line of the program that it comes from.
    pub source: Option<(String, u64)>,
    /// The flows that go out from it.
    pub flows: Vec<u64>,
    /// The flows that end at it.
    pub last_flows: Vec<u64>,
    /// The value of a counter.
    pub value: Option<f64>,
}

impl TrackEvent {
    /// The number in a note.
    #[must_use]
    pub fn number(&self, note: &str) -> Option<u64> {
        match self.notes.get(note)? {
            Note::Number(number) => Some(*number),
            Note::Text(_) => None,
        }
    }

    /// The text in a note.
    #[must_use]
    pub fn text(&self, note: &str) -> Option<&str> {
        match self.notes.get(note)? {
            Note::Number(_) => None,
            Note::Text(text) => Some(text),
        }
    }
}

/// A track that a trace describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackInfo {
    /// Its name, or that of its thread or process.
    pub name: String,
    /// True if it is the track of a thread.
    pub is_thread: bool,
}

/// The needed parts of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum TracePacket {
    /// A track is described.
    Track(u64, TrackInfo),
    /// Something happens.
    Event(TrackEvent),
    /// Interned names, or nothing needed.
    Other,
}

/// A value on the wire.
#[derive(Clone, Copy)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

type Field<'a> = (u64, Value<'a>);

const BROKEN: ReadError = ReadError::Foreign("a packet is broken");

impl<'a> Value<'a> {
    fn number(self) -> Result<u64, ReadError> {
        match self {
            Value::Number(number) => Ok(number),
            Value::Bytes(_) => Err(BROKEN),
        }
    }

    fn bytes(self) -> Result<&'a [u8], ReadError> {
        match self {
            Value::Number(_) => Err(BROKEN),
            Value::Bytes(bytes) => Ok(bytes),
        }
    }

    fn text(self) -> Result<String, ReadError> {
        std::str::from_utf8(self.bytes()?).map(str::to_owned).map_err(|_| BROKEN)
    }
}

/// A number of variable length; `None` if the bytes end before it does.
fn varint(bytes: &mut &[u8]) -> Result<Option<u64>, ReadError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
        *bytes = rest;
        let part = u64::from(first & 0x7f);
        if part << shift >> shift != part {
            return Err(BROKEN);
        }
        value |= part << shift;
        if *first < 0x80 {
            return Ok(Some(value));
        }
    }
    Err(BROKEN)
}

/// Takes the next `len` bytes off `bytes`; `None` if fewer are left.
fn take<'a>(bytes: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
    *bytes = rest;
    Some(taken)
}

/// The next field, or `None` if the bytes end before it does.
fn field<'a>(bytes: &mut &'a [u8]) -> Result<Option<Field<'a>>, ReadError> {
    let Some(tag) = varint(bytes)? else { return Ok(None) };
    let value = match tag & 7 {
        0 => varint(bytes)?.map(Value::Number),
        1 => take(bytes, 8).and_then(|word| word.try_into().ok()).map(u64::from_le_bytes).map(Value::Number),
        2 => {
            let Some(len) = varint(bytes)? else { return Ok(None) };
            take(bytes, len).map(Value::Bytes)
        }
        5 => take(bytes, 4).map(Value::Bytes),
        _ => return Err(BROKEN),
    };
    Ok(value.map(|value| (tag >> 3, value)))
}

/// The fields of a message, which takes all of `bytes`.
fn fields(mut bytes: &[u8]) -> Result<Vec<Field<'_>>, ReadError> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        fields.push(field(&mut bytes)?.ok_or(BROKEN)?);
    }
    Ok(fields)
}

/// Reads packets one after the other.
#[derive(Clone, Debug)]
pub struct PacketReader<'a> {
    all: usize,
    rest: &'a [u8],
    events: BTreeMap<u64, String>,
    notes: BTreeMap<u64, String>,
    sources: BTreeMap<u64, (String, u64)>,
}

impl<'a> PacketReader<'a> {
    /// A reader of a whole file.
    #[must_use]
    pub fn new(file: &'a [u8]) -> PacketReader<'a> {
        PacketReader {
            all: file.len(),
            rest: file,
            events: BTreeMap::new(),
            notes: BTreeMap::new(),
            sources: BTreeMap::new(),
        }
    }

    /// The next packet; `None` at the end of the file.
    ///
    /// # Errors
    /// [`ReadError`]; the reader is then finished.
    pub fn packet(&mut self) -> Result<Option<TracePacket>, ReadError> {
        let whole = self.all - self.rest.len();
        match self.rest.first() {
            None => return Ok(None),
            Some(0x0a) => {}
            Some(_) => return Err(ReadError::Foreign("it holds something other than Perfetto packets")),
        }
        let Some((_, value)) = field(&mut self.rest)? else { return Err(ReadError::CutOff(whole)) };
        self.read(value.bytes()?).map(Some)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<TracePacket, ReadError> {
        let (mut time, mut found) = (0, TracePacket::Other);
        for (number, value) in fields(bytes)? {
            match number {
                8 => time = value.number()?,
                11 => found = TracePacket::Event(self.event(value.bytes()?)?),
                12 => self.intern(value.bytes()?)?,
                60 => found = track(value.bytes()?)?,
                _ => {}
            }
        }
        if let TracePacket::Event(event) = &mut found {
            event.time = time;
        }
        Ok(found)
    }

    fn intern(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        for (number, value) in fields(bytes)? {
            let (mut id, mut text, mut line) = (0, String::new(), 0);
            for (number, value) in fields(value.bytes()?)? {
                match number {
                    1 => id = value.number()?,
                    2 => text = value.text()?,
                    4 => line = value.number()?,
                    _ => {}
                }
            }
            match number {
                2 => _ = self.events.insert(id, text),
                3 => _ = self.notes.insert(id, text),
                4 => _ = self.sources.insert(id, (text, line)),
                _ => {}
            }
        }
        Ok(())
    }

    fn event(&self, bytes: &[u8]) -> Result<TrackEvent, ReadError> {
        let mut event = TrackEvent {
            time: 0,
            kind: EventKind::Counter,
            track: 0,
            name: String::new(),
            notes: BTreeMap::new(),
            source: None,
            flows: Vec::new(),
            last_flows: Vec::new(),
            value: None,
        };
        for (number, value) in fields(bytes)? {
            match number {
                4 => {
                    let (name, note) = self.note(value.bytes()?)?;
                    event.notes.insert(name, note);
                }
                9 => {
                    event.kind = match value.number()? {
                        1 => EventKind::Begin,
                        2 => EventKind::End,
                        3 => EventKind::Instant,
                        _ => EventKind::Counter,
                    }
                }
                10 => event.name = self.events.get(&value.number()?).ok_or(BROKEN)?.clone(),
                11 => event.track = value.number()?,
                44 => event.value = Some(f64::from_bits(value.number()?)),
                34 => event.source = Some(self.sources.get(&value.number()?).ok_or(BROKEN)?.clone()),
                47 => event.flows.push(value.number()?),
                48 => event.last_flows.push(value.number()?),
                _ => {}
            }
        }
        Ok(event)
    }

    fn note(&self, bytes: &[u8]) -> Result<(String, Note), ReadError> {
        let (mut name, mut note) = (String::new(), Note::Number(0));
        for (number, value) in fields(bytes)? {
            match number {
                1 => name = self.notes.get(&value.number()?).ok_or(BROKEN)?.clone(),
                3 => note = Note::Number(value.number()?),
                6 => note = Note::Text(value.text()?),
                _ => {}
            }
        }
        Ok((name, note))
    }
}

fn track(bytes: &[u8]) -> Result<TracePacket, ReadError> {
    let (mut uuid, mut info) = (0, TrackInfo::default());
    for (number, value) in fields(bytes)? {
        match number {
            1 => uuid = value.number()?,
            2 => info.name = value.text()?,
            3 => info.name = named(value.bytes()?, 6)?.unwrap_or_default(),
            4 => info = TrackInfo { name: named(value.bytes()?, 5)?.unwrap_or_default(), is_thread: true },
            _ => {}
        }
    }
    Ok(TracePacket::Track(uuid, info))
}

/// The name of a process or thread, which is the field `wanted`.
fn named(bytes: &[u8], wanted: u64) -> Result<Option<String>, ReadError> {
    let found = fields(bytes)?.into_iter().find(|(number, _)| *number == wanted);
    found.map(|(_, value)| value.text()).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfetto::{Details, EncodedTime, Encoder, EventPrefix, Name, Track};

    /// A file with one event of each kind.
    fn file() -> Vec<u8> {
        let mut encoder = Encoder::new(&["send", "a run"], &["bytes", "run"]);
        encoder.describe_process(Track(1), 1, "all");
        encoder.describe_thread(Track(2), 1, 2, "place 0");
        encoder.instant(Track(1), 0, Name(1), &[(Name(1), "threads")]);
        encoder.intern(Name(2), "finish");
        encoder.intern_source(0, "a.rs", 7);
        let (prefix, details) = (EventPrefix::new(Track(2)), [(Name(0), 300)]);
        let details = Details { flow: Some(9), last_flow: None, notes: &details };
        encoder.begin(&prefix, EncodedTime::new(1_000), Name(0), details);
        encoder.end(&prefix, EncodedTime::new(u64::MAX));
        encoder.begin_from(&prefix, EncodedTime::new(5), Name(2), Some(0));
        encoder.bytes().to_vec()
    }

    fn read(bytes: &[u8]) -> Result<Vec<TracePacket>, ReadError> {
        let mut reader = PacketReader::new(bytes);
        std::iter::from_fn(|| reader.packet().transpose()).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let packets = read(&file()).unwrap();
        let thread = TrackInfo { name: "place 0".into(), is_thread: true };
        assert!(packets.contains(&TracePacket::Track(2, thread)), "{packets:?}");
        let events: Vec<TrackEvent> = packets
            .into_iter()
            .filter_map(|packet| if let TracePacket::Event(event) = packet { Some(event) } else { None })
            .collect();
        let [run, send, end, finish] = &events[..] else { panic!("{events:?}") };
        assert_eq!((run.name.as_str(), run.text("run")), ("a run", Some("threads")));
        assert_eq!(
            (send.name.as_str(), send.number("bytes"), &send.flows[..]),
            ("send", Some(300), &[9][..])
        );
        assert_eq!((end.time, &end.kind), (u64::MAX, &EventKind::End));
        assert_eq!((finish.name.as_str(), &finish.source), ("finish", &Some(("a.rs".to_owned(), 7))));
    }

    #[test]
    fn a_file_that_is_cut_off_anywhere_is_read_up_to_there_or_refused() {
        let file = file();
        let mut whole = 0;
        for len in 0..file.len() {
            match read(&file[..len]) {
                Ok(packets) => (whole, _) = (len, packets),
                Err(error) => assert_eq!(error, ReadError::CutOff(whole), "{len}"),
            }
        }
    }

    #[test]
    fn a_changed_byte_never_panics() {
        let file = file();
        for at in 0..file.len() {
            for flipped in [0x01, 0x08, 0x80, 0xff] {
                let mut changed = file.clone();
                changed[at] ^= flipped;
                let _ = read(&changed);
            }
        }
    }

    #[test]
    fn other_files_are_no_traces() {
        for other in [&b"{\"traceEvents\": []}"[..], b"\x7fELF", b"\x00"] {
            assert!(matches!(read(other), Err(ReadError::Foreign(_))), "{other:?}");
        }
    }
}
