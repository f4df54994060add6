//! The shared-memory transport alone: no task, no finish, no serialisation.
//!
//! It sends through the same endpoint as every place, with all its features. Invariant: both sides are busy, each
//! process on its own core.

pub mod ring;

use crate::child::timing::Effort;
use crate::child::timing::{print_figure, seconds_per_step};
use isles_transport::{Arrival, Class, Endpoint, HandlerId, Inbound, PlaceId, SendError};
use isles_transport_shm::processes::{Children, Program, join, spawn};
use isles_transport_shm::{Geometry, Pinning, Segment, ShmEndpoint};
use std::time::Duration;

const IMAGE: [u8; 16] = *b"isles-bench raw ";
const FIRST: PlaceId = PlaceId(0);
const SECOND: PlaceId = PlaceId(1);
const LIMIT: Duration = Duration::from_secs(10);

/// A request.
const CALL: HandlerId = HandlerId(1);
/// A message without an answer.
const COUNT: HandlerId = HandlerId(2);
/// Ends the other side.
const END: HandlerId = HandlerId(3);

/// Prints `half_round_trip_us` and `rate_million` of messages of 8 bytes.
pub fn run(effort: Effort) {
    if let Some(joined) = join(IMAGE) {
        let (segment, here) = joined.expect("the process becomes a place");
        segment.settle(here);
        answer(&segment.endpoint(here).expect("a place attaches once"));
        return;
    }
    let segment = Segment::create(Geometry::for_places(2), IMAGE).expect("there is memory for two places");
    segment.keep_processors(&Pinning::Auto);
    let children = start(&segment);
    segment.settle(FIRST);
    measure(&segment.endpoint(FIRST).expect("a place attaches once"), effort);
    children.finish(LIMIT);
}

fn start(segment: &Segment) -> Children {
    let children = spawn(segment, &Program::current(), [SECOND]).expect("a process can be started");
    children.wait_until_joined(LIMIT).expect("the process becomes a place");
    children
}

fn measure(endpoint: &ShmEndpoint, effort: Effort) {
    let seconds = seconds_per_step(effort, |count| {
        for number in 0..count {
            send(endpoint, SECOND, CALL, number);
            await_answer(endpoint);
        }
    });
    print_figure("half_round_trip_us", seconds * 1e6 / 2.0);
    let seconds = seconds_per_step(effort, |count| {
        for number in 1..count {
            send(endpoint, SECOND, COUNT, number);
        }
        send(endpoint, SECOND, CALL, 0);
        await_answer(endpoint);
    });
    print_figure("rate_million", 1e-6 / seconds);
    send(endpoint, SECOND, END, 0);
    endpoint.leave();
}

fn send(endpoint: &ShmEndpoint, to: PlaceId, handler: HandlerId, number: u64) {
    let mut fill = |room: &mut [u8]| {
        room.copy_from_slice(&number.to_ne_bytes());
        Some(room.len())
    };
    loop {
        match endpoint.send(to, Class::Data, handler, size_of::<u64>(), &mut fill) {
            Ok(()) => return,
            Err(SendError::Full) => continue,
            Err(error) => panic!("{error}"),
        }
    }
}

fn await_answer(endpoint: &ShmEndpoint) {
    while endpoint.progress(Inbound::All, &mut |arrival| assert!(matches!(arrival, Arrival::Message(_)))) == 0
    {
    }
}

/// The second place: answers calls until the end.
fn answer(endpoint: &ShmEndpoint) {
    let mut over = false;
    while !over {
        endpoint.progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) if message.handler == CALL => send(endpoint, FIRST, CALL, 0),
            Arrival::Message(message) => over |= message.handler == END,
            Arrival::Died { .. } => over = true,
        });
    }
    endpoint.leave();
}
