//! Reads a trace back: a separate parser of Protocol Buffers, for the fields in traces of chips.
//!
//! It shares no code with the writer, and fails on unknown fields.

use std::collections::BTreeMap;

/// A packet of a trace.
#[derive(Debug, Default)]
pub struct Packet {
    pub time: Option<u64>,
    pub track: Option<TrackDescriptor>,
    pub event: Option<Event>,
}

#[derive(Debug, Default)]
pub struct TrackDescriptor {
    pub uuid: u64,
    pub parent: Option<u64>,
    pub process: Option<(u64, String)>,
    pub thread: Option<(u64, u64, String)>,
    /// The name of a track that belongs to no process.
    pub name: String,
    /// Unit of a counter's values.
    pub unit: Option<String>,
}

#[derive(Debug, Default)]
pub struct Event {
    pub kind: u64,
    pub track: u64,
    pub name: Option<String>,
    pub value: Option<f64>,
    pub flows: Vec<u64>,
    pub last_flows: Vec<u64>,
    pub notes: BTreeMap<String, u64>,
    /// Source line of the program: file and number.
    pub source: Option<(String, u64)>,
}

/// A span of the trace.
#[derive(Clone, Debug)]
pub struct Span {
    pub track: u64,
    pub name: String,
    pub start: u64,
    pub end: u64,
    pub depth: usize,
    pub flows: Vec<u64>,
    pub last_flows: Vec<u64>,
    pub notes: BTreeMap<String, u64>,
    pub source: Option<(String, u64)>,
}

/// Returns the spans of a trace; checks that in each track they are in order of time, nested and closed.
pub fn spans(packets: &[Packet]) -> Vec<Span> {
    let mut open: BTreeMap<u64, Vec<Span>> = BTreeMap::new();
    let mut clocks: BTreeMap<u64, u64> = BTreeMap::new();
    let mut closed = Vec::new();
    for (time, event) in packets.iter().filter_map(|packet| Some((packet.time?, packet.event.as_ref()?))) {
        let clock = clocks.insert(event.track, time);
        assert!(clock <= Some(time), "track {} goes back from {clock:?} to {time}", event.track);
        let stack = open.entry(event.track).or_default();
        match event.kind {
            1 => stack.push(Span {
                track: event.track,
                name: event.name.clone().expect("a span has a name"),
                start: time,
                end: 0,
                depth: stack.len(),
                flows: event.flows.clone(),
                last_flows: event.last_flows.clone(),
                notes: event.notes.clone(),
                source: event.source.clone(),
            }),
            2 => {
                let span = stack.pop().expect("what ends has begun");
                closed.push(Span { end: time, ..span });
            }
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty), "a span does not end");
    closed
}

/// A value on the wire.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(&self) -> u64 {
        let Value::Number(number) = self else { panic!("no number") };
        *number
    }

    fn bytes(&self) -> &'a [u8] {
        let Value::Bytes(bytes) = self else { panic!("no bytes") };
        bytes
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(first & 0x7f).checked_shl(shift).expect("a number of 64 bits");
        if *first < 0x80 {
            return value;
        }
    }
    unreachable!()
}

/// Returns the fields of a message, which occupies all of `bytes`.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Number(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let len = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(len);
                bytes = rest;
                Value::Bytes(content)
            }
            kind => panic!("kind {kind}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

/// Names of events and of notes, and lines of the program, by number.
#[derive(Default)]
struct Names {
    events: BTreeMap<u64, String>,
    notes: BTreeMap<u64, String>,
    sources: BTreeMap<u64, (String, u64)>,
}

/// Returns the packets of a trace.
pub fn packets(trace: &[u8]) -> Vec<Packet> {
    let mut names = Names::default();
    let read = |(number, value): (u64, Value<'_>)| {
        assert_eq!(number, 1, "a trace has packets only");
        packet(value.bytes(), &mut names)
    };
    fields(trace).into_iter().map(read).collect()
}

fn packet(bytes: &[u8], names: &mut Names) -> Packet {
    let mut packet = Packet::default();
    for (number, value) in fields(bytes) {
        match number {
            8 => packet.time = Some(value.number()),
            10 => assert_eq!(value.number(), 1, "one sequence"),
            11 => packet.event = Some(event(value.bytes(), names)),
            12 => intern(value.bytes(), names),
            13 => assert!([1, 2].contains(&value.number())),
            60 => packet.track = Some(track(value.bytes())),
            other => panic!("field {other} of a packet"),
        }
    }
    packet
}

fn intern(bytes: &[u8], names: &mut Names) {
    for (number, value) in fields(bytes) {
        let entry = fields(value.bytes());
        if number == 4 {
            let [(1, id), (2, file), (4, line)] = entry.as_slice() else { panic!("a line of a program") };
            let source = (file.text(), line.number());
            assert!(id.number() > 0 && names.sources.insert(id.number(), source).is_none());
            continue;
        }
        assert!([2, 3].contains(&number), "field {number} of what is interned");
        let [(1, id), (2, name)] = entry.as_slice() else { panic!("an interned name") };
        let names = if number == 2 { &mut names.events } else { &mut names.notes };
        assert!(id.number() > 0 && names.insert(id.number(), name.text()).is_none());
    }
}

fn track(bytes: &[u8]) -> TrackDescriptor {
    let mut track = TrackDescriptor::default();
    for (number, value) in fields(bytes) {
        match number {
            1 => track.uuid = value.number(),
            2 => {
                track.name = value.text();
                assert!(!track.name.is_empty());
            }
            8 => {
                let counter = fields(value.bytes());
                let [(6, unit)] = counter.as_slice() else { panic!("a counter") };
                track.unit = Some(unit.text());
            }
            3 => {
                let process = fields(value.bytes());
                let [(1, pid), (6, name)] = process.as_slice() else { panic!("a process") };
                track.process = Some((pid.number(), name.text()));
            }
            4 => {
                let thread = fields(value.bytes());
                let [(1, pid), (2, tid), (5, name)] = thread.as_slice() else { panic!("a thread") };
                track.thread = Some((pid.number(), tid.number(), name.text()));
            }
            5 => track.parent = Some(value.number()),
            other => panic!("field {other} of a track"),
        }
    }
    // Perfetto: tracks with a process or thread must be root tracks (google/perfetto#940).
    let is_own = track.process.is_some() || track.thread.is_some();
    assert!(!is_own || track.parent.is_none(), "a thread or process below another track");
    track
}

fn event(bytes: &[u8], names: &Names) -> Event {
    let mut event = Event::default();
    for (number, value) in fields(bytes) {
        match number {
            4 => {
                let note = fields(value.bytes());
                let [(1, id), (_, value)] = note.as_slice() else { panic!("a note") };
                if let Value::Number(number) = value {
                    event.notes.insert(names.notes[&id.number()].clone(), *number);
                }
            }
            9 => event.kind = value.number(),
            10 => event.name = Some(names.events[&value.number()].clone()),
            11 => event.track = value.number(),
            34 => event.source = Some(names.sources[&value.number()].clone()),
            44 => event.value = Some(f64::from_bits(value.number())),
            47 => event.flows.push(value.number()),
            48 => event.last_flows.push(value.number()),
            other => panic!("field {other} of an event"),
        }
    }
    event
}
