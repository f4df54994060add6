//! Cost of one message: this transport against a plain ring, in one run.
//!
//! Question: how near is the endpoint to the least that shared memory allows? Machine: two processes, each bound
//! to a processor, busy. Units: nanoseconds for half a round trip, millions of messages a second one way, GB/s.
//! Baselines in the same run: two cores exchanging a cache line, and a plain single-producer ring with head and
//! tail. Each figure is minimum, median, maximum of several repetitions; ratios are of medians.
//!
//! `cargo run --release --example raw` for two places; with a number of places as argument: a token round a ring
//! of that many processes. It is a measurement, never a test.

use isles_transport::{
    Arrival, Body, Class, Endpoint, EndpointExt, HandlerId, Inbound, MappedMemory, Message, PlaceId,
    SendError,
};
use isles_transport_shm::processes::{self, Program};
use isles_transport_shm::{Geometry, Pinning, Segment, ShmEndpoint};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const IMAGE: [u8; 16] = *b"isles raw bench.";
const REPETITIONS: usize = 9;
const ROUND_TRIPS: u64 = 20_000;
const MESSAGES: u64 = 1_000_000;
const BLOCK_BYTES: usize = 2 << 20;
const BLOCKS: u64 = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(joined) = processes::join(IMAGE) {
        let (segment, here) = joined?;
        run(&segment, here);
        return Ok(());
    }
    let places = std::env::args().nth(1).map_or(Ok(2), |text| text.parse())?;
    let segment = Segment::create(Geometry::for_places(places), IMAGE)?;
    segment.keep_processors(&Pinning::Auto);
    let children = processes::spawn(&segment, &Program::current(), (1..places).map(PlaceId))?;
    children.wait_until_joined(Duration::from_secs(10))?;
    run(&segment, PlaceId(0));
    for (place, exit) in children.finish(Duration::from_secs(10)) {
        if exit != processes::ProcessExit::Code(0) {
            println!("{place} {exit}");
        }
    }
    Ok(())
}

fn run(segment: &Segment, here: PlaceId) {
    segment.settle(here);
    let endpoint = segment.endpoint(here).expect("each place attaches once");
    if segment.places() == 2 {
        pair(&endpoint);
    } else {
        token(&endpoint);
    }
    endpoint.leave();
}

/// Everything that two places measure, in lockstep.
fn pair(endpoint: &ShmEndpoint) {
    let title = |text: &str| {
        if endpoint.here() == PlaceId(0) {
            println!("{text:<30}       min   median      max   ratio");
        }
    };
    title("half round trip, ns");
    let plain = row(endpoint, "plain ring", None, || plain_round_trips(endpoint));
    row(endpoint, "cache line exchange", plain, || line_exchange(endpoint));
    row(endpoint, "endpoint, progress", plain, || round_trips(endpoint, ROUND_TRIPS, false));
    row(endpoint, "endpoint, wait", plain, || round_trips(endpoint, ROUND_TRIPS, true));
    row(endpoint, "plain ring again", plain, || plain_round_trips(endpoint));
    row(endpoint, "endpoint, other asleep", plain, || asleep(endpoint));
    title("one way, million messages/s");
    let plain = row(endpoint, "plain ring, 64-byte slots", None, || plain_stream(endpoint));
    row(endpoint, "endpoint, 8 bytes", plain, || stream(endpoint, 8));
    row(endpoint, "endpoint, 48 bytes", plain, || stream(endpoint, 48));
    row(endpoint, "endpoint, 200 bytes", plain, || stream(endpoint, 200));
    title("one way, GB/s");
    row(endpoint, "blocks of 2 MiB", None, || blocks(endpoint));
}

/// Measures, prints at place 0, and answers the median; ratios are to `base`.
fn row(endpoint: &ShmEndpoint, name: &str, base: Option<f64>, measure: impl FnMut() -> f64) -> Option<f64> {
    let (min, median, max) = repeat(measure);
    if endpoint.here() == PlaceId(0) {
        let ratio = median / base.unwrap_or(median);
        println!("{name:<30} {min:>9.2} {median:>8.2} {max:>8.2} {ratio:>7.2}");
    }
    Some(median)
}

/// Minimum, median, maximum.
fn repeat(mut measure: impl FnMut() -> f64) -> (f64, f64, f64) {
    measure();
    let mut results: Vec<f64> = (0..REPETITIONS).map(|_| measure()).collect();
    results.sort_by(f64::total_cmp);
    (results[0], results[REPETITIONS / 2], results[REPETITIONS - 1])
}

/// Word `index` of place 0: shared scratch memory of the baselines.
fn word(endpoint: &ShmEndpoint, index: u64) -> &AtomicU64 {
    endpoint.word(PlaceId(0), index as u32).expect("memory is shared")
}

fn await_change(word: &AtomicU64, old: u64) -> u64 {
    loop {
        // PAIR raw.line: observe
        let now = word.load(Ordering::Acquire);
        if now != old {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// Two lines, each written by one side: the least that two cores can do.
fn line_exchange(endpoint: &ShmEndpoint) -> f64 {
    let (mine, theirs) = if endpoint.here().0 == 0 { (0, 16) } else { (16, 0) };
    let (mine, theirs) = (word(endpoint, mine), word(endpoint, theirs));
    // Both words stand at the same count between repetitions; the other side may have begun already.
    // PAIR raw.line: observe
    let mut seen = mine.load(Ordering::Acquire);
    let start = Instant::now();
    for _ in 0..ROUND_TRIPS {
        if endpoint.here().0 == 0 {
            // PAIR raw.line: publish
            mine.fetch_add(1, Ordering::Release);
            seen = await_change(theirs, seen);
        } else {
            seen = await_change(theirs, seen);
            // PAIR raw.line: publish
            mine.fetch_add(1, Ordering::Release);
        }
    }
    start.elapsed().as_nanos() as f64 / ROUND_TRIPS as f64 / 2.0
}

/// A plain single-producer ring: 128 slots of 64 bytes, head and tail on lines of their own.
struct Plain<'a> {
    tail: &'a AtomicU64,
    head: &'a AtomicU64,
    slots: [&'a AtomicU64; 128],
    /// The side's own index, and the other side's as last read.
    own: u64,
    other: u64,
}

impl<'a> Plain<'a> {
    /// Ring 0 or 1; each side takes its index up where the last repetition left it.
    fn new(endpoint: &'a ShmEndpoint, number: u64, produces: bool) -> Plain<'a> {
        let start = 32 + number * (32 + 128 * 8);
        let (tail, head) = (word(endpoint, start), word(endpoint, start + 16));
        // PAIR raw.tail: observe
        let own = if produces { tail } else { head }.load(Ordering::Acquire);
        let slots = std::array::from_fn(|slot| word(endpoint, start + 32 + slot as u64 * 8));
        Plain { tail, head, slots, own, other: own }
    }

    #[inline]
    fn try_push(&mut self, value: u64) -> bool {
        if self.own - self.other == 128 {
            // PAIR raw.head: observe
            self.other = self.head.load(Ordering::Acquire);
            if self.own - self.other == 128 {
                return false;
            }
        }
        self.slots[self.own as usize % 128].store(value, Ordering::Relaxed);
        self.own += 1;
        // PAIR raw.tail: publish
        self.tail.store(self.own, Ordering::Release);
        true
    }

    #[inline]
    fn try_pop(&mut self) -> Option<u64> {
        if self.own == self.other {
            // PAIR raw.tail: observe
            self.other = self.tail.load(Ordering::Acquire);
            if self.own == self.other {
                return None;
            }
        }
        let value = self.slots[self.own as usize % 128].load(Ordering::Relaxed);
        self.own += 1;
        // PAIR raw.head: publish
        self.head.store(self.own, Ordering::Release);
        Some(value)
    }

    fn push(&mut self, value: u64) {
        while !self.try_push(value) {
            std::hint::spin_loop();
        }
    }

    fn pop(&mut self) -> u64 {
        loop {
            if let Some(value) = self.try_pop() {
                return value;
            }
            std::hint::spin_loop();
        }
    }
}

fn plain_round_trips(endpoint: &ShmEndpoint) -> f64 {
    let leads = endpoint.here().0 == 0;
    let mut out = Plain::new(endpoint, u64::from(!leads), true);
    let mut back = Plain::new(endpoint, u64::from(leads), false);
    let start = Instant::now();
    for value in 0..ROUND_TRIPS {
        if leads {
            out.push(value);
            assert_eq!(back.pop(), value);
        } else {
            let value = back.pop();
            out.push(value);
        }
    }
    start.elapsed().as_nanos() as f64 / ROUND_TRIPS as f64 / 2.0
}

fn plain_stream(endpoint: &ShmEndpoint) -> f64 {
    let leads = endpoint.here().0 == 0;
    let mut ring = Plain::new(endpoint, 0, leads);
    sync(endpoint);
    let start = Instant::now();
    for value in 0..MESSAGES {
        if leads {
            ring.push(value);
        } else {
            assert_eq!(ring.pop(), value);
        }
    }
    sync(endpoint);
    MESSAGES as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Sends `len` bytes that begin with `value`, until there is room.
fn send(endpoint: &ShmEndpoint, to: PlaceId, len: usize, value: u64) {
    let mut fill = |room: &mut [u8]| {
        room[..8].copy_from_slice(&value.to_le_bytes());
        room[8..].fill(value as u8);
        Some(room.len())
    };
    loop {
        match endpoint.send(to, Class::Data, HandlerId(1), len, &mut fill) {
            Ok(()) => return,
            Err(SendError::Full) => std::hint::spin_loop(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Receives until `count` messages have come; answers the first word of the last.
fn receive(endpoint: &ShmEndpoint, count: u64, wait: bool) -> u64 {
    let (mut seen, mut last) = (0, 0);
    loop {
        // By reference: taking the arrival apart by value copies it, which costs as much as the message.
        endpoint.progress(Inbound::All, &mut |arrival| match &arrival {
            Arrival::Message(message) => {
                let bytes = message.body.bytes();
                last = u64::from_le_bytes(std::array::from_fn(|byte| bytes[byte]));
                seen += 1;
            }
            Arrival::Died { place, cause } => panic!("{place} died: {cause:?}"),
        });
        if seen >= count {
            return last;
        }
        if wait {
            endpoint.wait(None);
        } else {
            std::hint::spin_loop();
        }
    }
}

fn other(endpoint: &ShmEndpoint) -> PlaceId {
    PlaceId(1 - endpoint.here().0)
}

fn round_trips(endpoint: &ShmEndpoint, count: u64, wait: bool) -> f64 {
    let to = other(endpoint);
    let start = Instant::now();
    for value in 0..count {
        if to.0 == 1 {
            send(endpoint, to, 8, value);
            assert_eq!(receive(endpoint, 1, wait), value);
        } else {
            let value = receive(endpoint, 1, wait);
            send(endpoint, to, 8, value);
        }
    }
    start.elapsed().as_nanos() as f64 / count as f64 / 2.0
}

/// Both sides meet.
fn sync(endpoint: &ShmEndpoint) {
    round_trips(endpoint, 1, true);
}

/// Sends the report of place 1 that it has everything.
fn acknowledge(endpoint: &ShmEndpoint) {
    if endpoint.here().0 == 1 {
        send(endpoint, PlaceId(0), 8, 0);
    } else {
        receive(endpoint, 1, true);
    }
}

/// Round trips that each begin with a pause in which the other place falls asleep.
fn asleep(endpoint: &ShmEndpoint) -> f64 {
    let mut spent = Duration::ZERO;
    let count = 50;
    for _ in 0..count {
        if endpoint.here().0 == 0 {
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(500) {}
        }
        let start = Instant::now();
        round_trips(endpoint, 1, true);
        spent += start.elapsed();
    }
    spent.as_nanos() as f64 / f64::from(count) / 2.0
}

fn stream(endpoint: &ShmEndpoint, len: usize) -> f64 {
    let to = other(endpoint);
    sync(endpoint);
    let start = Instant::now();
    if to.0 == 1 {
        (0..MESSAGES).for_each(|value| send(endpoint, to, len, value));
    } else {
        assert_eq!(receive(endpoint, MESSAGES, false), MESSAGES - 1);
    }
    acknowledge(endpoint);
    MESSAGES as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Blocks that are copied in from an array at one side and out to an array at the other.
fn blocks(endpoint: &ShmEndpoint) -> f64 {
    let to = other(endpoint);
    let mut array = vec![1u8; BLOCK_BYTES];
    sync(endpoint);
    let start = Instant::now();
    if to.0 == 1 {
        for _ in 0..BLOCKS {
            let mut fill = |room: &mut [u8]| room.copy_from_slice(&array);
            while endpoint.send_block(to, Class::Data, HandlerId(2), BLOCK_BYTES, &mut fill).is_err() {
                endpoint.wait(None);
            }
        }
    } else {
        let mut seen = 0;
        while seen < BLOCKS {
            endpoint.progress(Inbound::All, &mut |arrival| {
                if let Arrival::Message(Message { body: Body::Block(block), .. }) = arrival {
                    array.copy_from_slice(block.bytes());
                    seen += 1;
                }
            });
        }
    }
    acknowledge(endpoint);
    (BLOCKS as usize * BLOCK_BYTES) as f64 / start.elapsed().as_secs_f64() / 1e9
}

/// A token round a ring of all places, each of which waits for it.
fn token(endpoint: &ShmEndpoint) {
    let places = endpoint.places();
    let to = PlaceId((endpoint.here().0 + 1) % places);
    let rounds = 100_000 / u64::from(places);
    let result = repeat(|| {
        let start = Instant::now();
        for value in 0..rounds {
            if endpoint.here().0 == 0 {
                send(endpoint, to, 8, value);
            }
            receive(endpoint, 1, true);
            if endpoint.here().0 != 0 {
                send(endpoint, to, 8, value);
            }
        }
        start.elapsed().as_nanos() as f64 / rounds as f64 / f64::from(places)
    });
    if endpoint.here().0 == 0 {
        println!("token round {places} places, ns a hop     min   median      max");
        println!("{:>42.0} {:>8.0} {:>8.0}", result.0, result.1, result.2);
    }
}
