//! The ring in mapped memory compared with a simple queue, and with garbage as input.

use super::*;
use crate::layout::{Geometry, Layout};
use crate::ring::mapped::MappedRing;
use crate::segment::Segment;
use isles_transport::{Class, PlaceId};
use proptest::prelude::*;
use std::collections::VecDeque;

const CAPACITY: u64 = 4096;

/// Returns a segment with the smallest rings, and both ends of its data ring from place 0 to place 1.
fn ends() -> (Segment, Producer<MappedRing>, Consumer<MappedRing>) {
    let geometry =
        Geometry { places: 2, control_bytes: CAPACITY, data_bytes: CAPACITY, arena_bytes: 2 << 20 };
    let segment = Segment::create(geometry, [0; 16]).unwrap();
    let lane = || MappedRing::new(&segment, PlaceId(0), PlaceId(1), Class::Data);
    let (producer, consumer) = (Producer::new(lane()), Consumer::new(lane()));
    (segment, producer, consumer)
}

/// Returns the payload of message `number`: each byte depends on both arguments.
fn payload(number: u64, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number as usize * 31 + at * 7) as u8 | 1).collect()
}

/// Action a producer may try, in any order.
#[derive(Clone, Debug)]
enum Step {
    /// Put a message of `used` bytes into `room` bytes.
    Put { room: usize, used: usize },
    /// Write some of the room, then abandon the message.
    Abandon { room: usize },
    /// Take this number of messages.
    Take(usize),
    /// Look at the next message alone, and take it or leave it.
    Pick { wanted: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let max = payload_max(CAPACITY);
    let room = prop_oneof![3 => 0..=64usize, 1 => 0..=max];
    let step = prop_oneof![
        5 => room
            .clone()
            .prop_flat_map(|room| (Just(room), 0..=room))
            .prop_map(|(room, used)| Step::Put { room, used }),
        1 => room.prop_map(|room| Step::Abandon { room }),
        2 => (0..20usize).prop_map(Step::Take),
        2 => proptest::bool::ANY.prop_map(|wanted| Step::Pick { wanted }),
    ];
    proptest::collection::vec(step, 1..400)
}

fn put(producer: &Producer<MappedRing>, number: u64, room: usize, used: usize) -> Result<(), PutError> {
    let message = payload(number, used);
    producer.put(RecordKind::Inline, number as u16, room, |bytes| {
        assert_eq!(bytes.len(), room);
        // All of the room is overwritten, as a careless writer would do.
        bytes.fill(0xA7);
        bytes[..used].copy_from_slice(&message);
        Some(used)
    })
}

fn take(consumer: &Consumer<MappedRing>) -> Result<Option<(u16, Vec<u8>)>, RingFault> {
    let mut seen = None;
    consumer.take(|record| seen = Some((record.handler, record.payload.to_vec())))?;
    Ok(seen)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_ring_is_a_queue(steps in steps()) {
        let (_segment, producer, consumer) = ends();
        let mut oracle = VecDeque::new();
        let mut number = 0;
        for step in steps {
            match step {
                Step::Put { room, used } => match put(&producer, number, room, used) {
                    Ok(()) => {
                        oracle.push_back((number as u16, payload(number, used)));
                        number += 1;
                    }
                    Err(refusal) => {
                        prop_assert_eq!(refusal, PutError::Full);
                        prop_assert!(!oracle.is_empty(), "an empty ring was full");
                    }
                },
                Step::Abandon { room } => {
                    let answer = producer.put(RecordKind::Inline, 0, room, |bytes| {
                        bytes.fill(0xA7);
                        None
                    });
                    prop_assert!(matches!(answer, Err(PutError::Abandoned | PutError::Full)));
                }
                Step::Pick { wanted } => {
                    let mut seen = None;
                    let taken = consumer.take_if(|record| {
                        seen = Some((record.handler, record.payload.to_vec()));
                        wanted
                    });
                    match (taken, seen) {
                        (Some(TakeOutcome::Nothing), seen) => prop_assert!(seen.is_none() && oracle.is_empty()),
                        (Some(_), seen) => prop_assert_eq!(seen, oracle.pop_front()),
                        (None, Some(seen)) => prop_assert_eq!(Some(&seen), oracle.front()),
                        (None, None) => prop_assert!(false, "a message was left and not shown"),
                    }
                }
                Step::Take(count) => {
                    for _ in 0..count {
                        prop_assert_eq!(take(&consumer), Ok(oracle.pop_front()));
                    }
                }
            }
            prop_assert_eq!(consumer.is_empty(), oracle.is_empty());
        }
        while let Some(expected) = oracle.pop_front() {
            prop_assert_eq!(take(&consumer), Ok(Some(expected)));
        }
        prop_assert_eq!(take(&consumer), Ok(None));
    }

    #[test]
    fn garbage_in_a_ring_is_a_fault_and_never_a_panic(
        before in 0..100u64,
        garbage in proptest::collection::vec(any::<u8>(), CAPACITY as usize),
    ) {
        let (segment, producer, consumer) = ends();
        for number in 0..before {
            put(&producer, number, 40, 40).unwrap();
            take(&consumer).unwrap();
        }
        scribble(&segment, &garbage);
        let header = consumer.offset() as usize;
        let word = u64::from_le_bytes(garbage[header..header + 8].try_into().unwrap());
        prop_assume!(word != 0 && word >> 56 != MARK);
        prop_assert_eq!(take(&consumer), Err(RingFault::Mark));
    }

    #[test]
    fn headers_with_the_mark_and_a_wrong_rest_are_faults(
        kind in any::<u8>(),
        handler in any::<u16>(),
        len in any::<u32>(),
    ) {
        let (segment, _producer, consumer) = ends();
        let word = MARK << 56 | u64::from(kind) << 48 | u64::from(handler) << 32 | u64::from(len);
        scribble(&segment, &word.to_le_bytes());
        let inside = len as usize <= payload_max(CAPACITY);
        match (kind, take(&consumer)) {
            (1 | 2, Ok(Some((seen, payload)))) => {
                prop_assert!(inside);
                prop_assert_eq!((seen, payload.len()), (handler, len as usize));
            }
            (1 | 2, answer) => prop_assert_eq!((answer, inside), (Err(RingFault::Length), false)),
            (3, Ok(None)) => prop_assert_eq!(u64::from(len), CAPACITY),
            (3, answer) => prop_assert_eq!(answer, Err(RingFault::Length)),
            (_, answer) => prop_assert_eq!(answer, Err(RingFault::RecordKind)),
        }
    }
}

/// Overwrites the first bytes of the ring's records.
fn scribble(segment: &Segment, bytes: &[u8]) {
    for (word, chunk) in (0u64..).zip(bytes.chunks_exact(8)) {
        scribble_at(segment, word * 8, u64::from_le_bytes(chunk.try_into().unwrap()));
    }
}

/// Overwrites one word of the ring's records.
fn scribble_at(segment: &Segment, offset: u64, word: u64) {
    let start = Layout::of(*segment.geometry()).ring(PlaceId(0), PlaceId(1), Class::Data);
    segment.mapping().view::<AtomicU64>(start + offset).store(word, Ordering::Relaxed);
}

#[test]
fn two_skips_in_a_row_are_a_fault_and_not_a_loop() {
    let (segment, _producer, consumer) = ends();
    let skip = RecordHeader::new(RecordKind::Skip, 0, CAPACITY as usize);
    scribble(&segment, &skip.0.to_le_bytes());
    assert_eq!(take(&consumer), Err(RingFault::RecordKind));
    assert_eq!(consumer.take_if(|_| true), None, "it is left to who can say what is wrong");
    assert_eq!(take(&consumer), Err(RingFault::RecordKind));
}

#[test]
fn a_record_that_would_cross_the_end_is_a_fault() {
    let (segment, producer, consumer) = ends();
    while consumer.offset() < CAPACITY - 2 * GRAIN {
        put(&producer, 0, 8, 8).unwrap();
        take(&consumer).unwrap();
    }
    let header = RecordHeader::new(RecordKind::Inline, 0, 2 * GRAIN as usize);
    scribble_at(&segment, consumer.offset(), header.0);
    assert_eq!(take(&consumer), Err(RingFault::Length));
}

#[test]
fn a_head_that_the_consumer_cannot_have_reached_is_a_fault() {
    for head in [GRAIN * 1000, 1, u64::MAX] {
        let (segment, producer, _consumer) = ends();
        let credit = Layout::of(*segment.geometry()).credit(PlaceId(0), PlaceId(1), Class::Data);
        segment.mapping().view::<Credit>(credit).head.store(head, Ordering::Relaxed);
        let refusal = (0..).find_map(|number| put(&producer, number, 8, 8).err());
        assert_eq!(refusal, Some(PutError::Fault(RingFault::Head)));
    }
}

#[test]
fn a_drained_ring_takes_the_largest_message_wherever_it_stands() {
    for before in 0..200 {
        let (_segment, producer, consumer) = ends();
        for number in 0..before {
            put(&producer, number, 8, 8).unwrap();
            take(&consumer).unwrap();
        }
        let max = payload_max(CAPACITY);
        assert_eq!(put(&producer, before, max, max), Ok(()));
        assert_eq!(take(&consumer), Ok(Some((before as u16, payload(before, max)))));
    }
}

#[test]
fn a_writer_that_unwinds_leaves_the_ring_whole() {
    let (_segment, producer, consumer) = ends();
    let room = 500;
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        producer.put(RecordKind::Inline, 0, room, |bytes| {
            bytes.fill(0xA7);
            panic!("the writer gives up");
        })
    }));
    assert!(unwound.is_err());
    for number in 0..3 {
        put(&producer, number, 8, 8).unwrap();
        assert_eq!(take(&consumer), Ok(Some((number as u16, payload(number, 8)))));
        assert_eq!(take(&consumer), Ok(None));
    }
}

#[test]
fn a_refused_producer_is_told_when_there_is_room() {
    let (_segment, producer, consumer) = ends();
    let refused = (0..).find(|number| put(&producer, *number, 8, 8).is_err()).unwrap();
    assert_eq!(refused, CAPACITY / GRAIN - 1, "one grain stays free for the header after the last record");
    assert!(!producer.may_have_room());
    let answers: Vec<_> = (0..refused).map(|_| consumer.take(|_| ()).unwrap()).collect();
    assert_eq!(answers.iter().filter(|answer| **answer == TakeOutcome::RecordAndStarved).count(), 1);
    assert!(producer.may_have_room());
    put(&producer, 0, 8, 8).unwrap();
}

/// A ring's memory that notes how far its lines were fetched.
struct RecordingMemory {
    lane: MappedRing,
    fetched: std::rc::Rc<Cell<u64>>,
}

impl RingMemory for RecordingMemory {
    fn capacity(&self) -> u64 {
        self.lane.capacity()
    }
    fn word(&self, position: u64) -> &AtomicU64 {
        self.lane.word(position)
    }
    fn credit(&self) -> &Credit {
        self.lane.credit()
    }
    fn write<R>(&self, position: u64, room: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        self.lane.write(position, room, fill)
    }
    fn read<R>(&self, position: u64, len: usize, look: impl FnOnce(&[u8]) -> R) -> R {
        self.lane.read(position, len, look)
    }
    fn fetch(&self, position: u64) {
        self.fetched.set(position + GRAIN);
    }

    fn expect(&self, position: u64) {
        self.lane.expect(position);
    }
    fn reserve(&self, from: u64, to: u64) -> bool {
        self.lane.reserve(from, to)
    }
}

#[test]
fn lines_are_fetched_ahead_and_never_past_the_credit() {
    let (segment, _, consumer) = ends();
    let fetched = std::rc::Rc::new(Cell::new(0));
    let lane = MappedRing::new(&segment, PlaceId(0), PlaceId(1), Class::Data);
    let producer = Producer::new(RecordingMemory { lane, fetched: std::rc::Rc::clone(&fetched) });
    let put = |room: usize| producer.put(RecordKind::Inline, 0, room, |_| Some(room));
    put(SHORT_SPAN_MAX as usize - HEADER_BYTES).unwrap();
    let ahead = (SHORT_SPAN_MAX + FETCH_AHEAD).min(producer.limit.get());
    assert_eq!(fetched.get(), ahead, "as many lines as a short record took, further on");
    assert!(ahead > FETCH_AHEAD);
    let long = SHORT_SPAN_MAX as usize;
    put(long).unwrap();
    assert_eq!(fetched.get(), SHORT_SPAN_MAX + 2 * span(long));
    while put(long).is_ok() {
        assert!(fetched.get() <= CAPACITY, "nothing was taken yet");
    }
    for turn in 0..1000 {
        while put(if turn % 2 == 0 { long } else { 8 }).is_ok() {}
        take(&consumer).unwrap();
        assert!(fetched.get() <= consumer.taken() + CAPACITY);
    }
    assert!(fetched.get() > 10 * CAPACITY, "it goes on lap after lap");
}
