//! Endpoints as threads: broken peers, many places, memory, and the wake-up of refused senders.

use super::outlet::ANNOUNCED_BYTES_MIN;
use super::*;
use crate::layout::{Geometry, PAGE_BYTES};
use crate::lifecycle::ExitCause;
use crate::parking;
use crate::ring::{RecordHeader, RecordKind};
use isles_transport::{Block, Body, EndpointExt, Message};
use std::sync::atomic::Ordering;

const DATA: Class = Class::Data;

fn segment(places: u32) -> Segment {
    Segment::create(Geometry::for_places(places), [0; 16]).unwrap()
}

fn endpoints(segment: &Segment) -> Vec<ShmEndpoint> {
    segment.all_places().map(|place| segment.endpoint(place).unwrap()).collect()
}

fn send(endpoint: &ShmEndpoint, to: u32, class: Class, bytes: &[u8]) -> Result<(), SendError> {
    endpoint.send(PlaceId(to), class, HandlerId(1), bytes.len(), &mut |room| {
        room.copy_from_slice(bytes);
        Some(bytes.len())
    })
}

/// Runs one turn of `progress`. Returns the arrivals as lines: `source: bytes` or `source died: cause`.
fn progress_lines(endpoint: &ShmEndpoint) -> Vec<String> {
    let mut lines = Vec::new();
    endpoint.progress(Inbound::All, &mut |arrival| match arrival {
        Arrival::Message(message) => lines.push(format!("{}: {:?}", message.source.0, message.body.bytes())),
        Arrival::Died { place, cause: Death::Ended | Death::Exited(_) | Death::Killed(_) } => {
            lines.push(format!("{} ended", place.0));
        }
        Arrival::Died { place, cause: Death::Corrupt(text) } => lines.push(format!("{}: {text}", place.0)),
    });
    lines
}

/// Overwrites the header word at `offset` of a ring.
fn scribble(segment: &Segment, source: u32, target: u32, class: Class, offset: u64, word: u64) {
    let ring = segment.layout().ring(PlaceId(source), PlaceId(target), class);
    segment.mapping().view::<AtomicU64>(ring + offset).store(word, Ordering::Relaxed);
}

#[test]
fn garbage_in_a_ring_is_the_death_of_its_sender_at_every_place() {
    for places in [3, 9] {
        let segment = segment(places);
        let endpoints = endpoints(&segment);
        send(&endpoints[1], 0, DATA, &[7]).unwrap();
        send(&endpoints[1], 2, DATA, &[8]).unwrap();
        scribble(&segment, 1, 0, DATA, 64, 0x1234);
        let cause = "1: a header without its mark, in the data ring from place 1 to place 0 at byte 64, \
                     seen by place 0";
        assert_eq!(progress_lines(&endpoints[0]), ["1: [7]", cause]);
        assert_eq!(
            progress_lines(&endpoints[2]),
            ["1: [8]", cause],
            "what had been sent arrives before the end"
        );
        assert!(endpoints[2].is_dead(PlaceId(1)) && endpoints[0].is_dead(PlaceId(1)));
        assert_eq!(send(&endpoints[0], 1, DATA, &[1]), Err(SendError::DeadPlace(PlaceId(1))));
        assert_eq!(send(&endpoints[2], 1, DATA, &[1]), Err(SendError::DeadPlace(PlaceId(1))));
        assert!(progress_lines(&endpoints[0]).is_empty(), "a death is told once");
    }
}

#[test]
fn a_block_outside_the_arena_is_the_death_of_its_sender() {
    let arena = Geometry::for_places(2).arena_bytes;
    for (offset, len) in [(arena, 1), (0, arena), (32, 8), (u64::MAX - 63, 64), (64, u64::MAX)] {
        let segment = segment(2);
        let endpoints = endpoints(&segment);
        let ring = segment.layout().ring(PlaceId(1), PlaceId(0), Class::Control);
        for (at, value) in [(8, offset), (16, len)] {
            segment.mapping().view::<AtomicU64>(ring + at).store(value, Ordering::Relaxed);
        }
        let header = RecordHeader::new(RecordKind::Block, 0, 16);
        scribble(&segment, 1, 0, Class::Control, 0, header.0);
        let cause = "1: a block outside the arena of its sender, in the control ring from place 1 to place 0 \
                     at byte 0, seen by place 0";
        assert_eq!(progress_lines(&endpoints[0]), [cause], "{offset} {len}");
    }
}

#[test]
fn a_head_that_runs_ahead_is_the_death_of_the_receiver() {
    let segment = segment(2);
    let endpoints = endpoints(&segment);
    let credit = segment.layout().credit(PlaceId(0), PlaceId(1), DATA);
    segment.mapping().view::<crate::ring::Credit>(credit).head.store(1 << 40, Ordering::Relaxed);
    let refusal = (0..10_000).find_map(|_| send(&endpoints[0], 1, DATA, &[0; 8]).err());
    assert_eq!(refusal, Some(SendError::DeadPlace(PlaceId(1))));
    let cause = "1: a head outside what was sent, in the data ring from place 0 to place 1, seen by place 0";
    assert_eq!(progress_lines(&endpoints[0]), [cause]);
}

#[test]
fn bells_of_places_that_do_not_exist_mean_nothing() {
    let segment = segment(9);
    let endpoints = endpoints(&segment);
    for source in [0, 9, 63, 64, 255] {
        parking::ring(&segment.block(PlaceId(0)).bell, DATA as usize, source);
    }
    send(&endpoints[8], 0, DATA, &[5]).unwrap();
    assert_eq!(progress_lines(&endpoints[0]), ["8: [5]"]);
    assert!(progress_lines(&endpoints[0]).is_empty());
}

#[test]
fn an_end_that_is_due_after_the_last_message_was_taken_alone_ends_a_wait() {
    for (places, inbound) in
        [(2, Inbound::All), (9, Inbound::All), (2, Inbound::Control), (9, Inbound::Control)]
    {
        let segment = segment(places);
        let mut endpoints = endpoints(&segment);
        (0..=BATCH).for_each(|_| send(&endpoints[1], 0, DATA, &[7]).unwrap());
        drop(endpoints.remove(1));
        let here = &endpoints[0];
        assert_eq!(progress_lines(here).len(), BATCH, "a message is left, so the end is not told yet");
        if inbound == Inbound::Control {
            assert_eq!(here.progress(inbound, &mut |_| panic!("there is no control message")), 0);
        }
        assert_eq!(here.take_next(PlaceId(1), DATA, &mut |_, _| true), Next::Taken);
        assert!(here.inlets.is_ready(), "{places} places, {inbound:?}");
        assert_eq!(progress_lines(here), ["1 ended"]);
        assert!(!here.inlets.is_ready(), "{places} places, {inbound:?}");
    }
}

#[test]
fn a_place_that_broke_off_between_record_and_bell_is_heard_to_the_end() {
    let segment = segment(9);
    let mut endpoints = endpoints(&segment);
    send(&endpoints[8], 0, DATA, &[5]).unwrap();
    segment.block(PlaceId(0)).bell.bits[DATA as usize][0].store(0, Ordering::Relaxed);
    drop(endpoints.pop());
    assert!(progress_lines(&endpoints[0]).is_empty());
    assert!(endpoints[0].inlets.is_ready());
    assert_eq!(progress_lines(&endpoints[0]), ["8: [5]", "8 ended"]);
}

#[test]
fn control_is_heard_while_data_waits() {
    for places in [2, 9] {
        let segment = segment(places);
        let endpoints = endpoints(&segment);
        send(&endpoints[1], 0, DATA, &[1]).unwrap();
        send(&endpoints[1], 0, Class::Control, &[2]).unwrap();
        let mut seen = Vec::new();
        let count = endpoints[0].progress(Inbound::Control, &mut |arrival| {
            if let Arrival::Message(message) = arrival {
                seen.push((message.class, message.body.bytes().to_vec()));
            }
        });
        assert_eq!((count, seen), (1, vec![(Class::Control, vec![2])]));
        assert!(!endpoints[0].inlets.is_ready(), "data that is not asked for is nothing to do");
        assert_eq!(progress_lines(&endpoints[0]), ["1: [1]"]);
    }
}

#[test]
fn a_place_attaches_once() {
    let segment = segment(2);
    let first = segment.endpoint(PlaceId(0)).unwrap();
    assert!(segment.endpoint(PlaceId(0)).is_err());
    drop(first);
    assert!(segment.endpoint(PlaceId(0)).is_err(), "not even after its end");
}

#[test]
fn a_place_that_left_takes_no_messages_and_is_not_dead() {
    let segment = segment(2);
    let endpoints = endpoints(&segment);
    send(&endpoints[1], 0, DATA, &[1]).unwrap();
    endpoints[1].leave();
    assert_eq!(progress_lines(&endpoints[0]), ["1: [1]"]);
    assert_eq!(send(&endpoints[0], 1, DATA, &[1]), Err(SendError::DeadPlace(PlaceId(1))));
    assert!(!endpoints[0].is_dead(PlaceId(1)));
    assert!(progress_lines(&endpoints[0]).is_empty());
}

#[test]
fn a_panic_in_deliver_consumes_its_message_and_nothing_else() {
    let segment = segment(2);
    let endpoints = endpoints(&segment);
    (0..3).for_each(|number| send(&endpoints[1], 0, DATA, &[number]).unwrap());
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        endpoints[0].progress(Inbound::All, &mut |_| panic!("the receiver gives up"));
    }));
    assert!(unwound.is_err());
    assert_eq!(progress_lines(&endpoints[0]), ["1: [1]", "1: [2]"]);
}

#[test]
fn blocks_lent_to_a_process_that_is_gone_are_lent_again() {
    let geometry = Geometry { arena_bytes: 2 << 20, ..Geometry::for_places(3) };
    let segment = Segment::create(geometry, [0; 16]).unwrap();
    let endpoints = endpoints(&segment);
    let len = endpoints[0].limits().block_bytes_max;
    let lend =
        |to: u32| endpoints[0].send_block(PlaceId(to), DATA, HandlerId(0), len, &mut |room| room.fill(1));
    (0..4).for_each(|_| lend(1).unwrap());
    assert_eq!(lend(2), Err(SendError::Full));
    segment.mark_dead(PlaceId(1));
    progress_lines(&endpoints[0]);
    assert_eq!(lend(2), Err(SendError::Full), "a dead thread may have left a block with another one");
    segment.mark_reaped(PlaceId(1), ExitCause::Unseen);
    progress_lines(&endpoints[0]);
    assert_eq!(lend(2), Ok(()));
}

#[test]
fn a_block_dropped_elsewhere_wakes_the_sender_that_waits_for_it() {
    let geometry = Geometry { arena_bytes: 2 << 20, ..Geometry::for_places(2) };
    let segment = Segment::create(geometry, [0; 16]).unwrap();
    let (sender, receiver) = (segment.endpoint(PlaceId(0)).unwrap(), segment.endpoint(PlaceId(1)).unwrap());
    let len = sender.limits().block_bytes_max;
    let rounds = 200;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0..rounds {
                let mut fill = |room: &mut [u8]| room.fill(round as u8);
                while sender.send_block(PlaceId(1), DATA, HandlerId(0), len, &mut fill).is_err() {
                    sender.wait(None);
                }
            }
            sender.leave();
        });
        let mut kept: Vec<Block> = Vec::new();
        let mut seen = 0;
        while seen < rounds {
            receiver.progress(Inbound::All, &mut |arrival| {
                if let Arrival::Message(Message { body: Body::Block(block), .. }) = arrival {
                    assert!(
                        block.bytes().iter().all(|byte| *byte == seen as u8) && block.bytes().len() == len
                    );
                    seen += 1;
                    kept.push(block);
                }
            });
            // Four blocks fill the arena: the sender waits until all of them are dropped, or the last have arrived.
            if kept.len() == 4 {
                kept.clear();
            }
            receiver.wait(Some(Duration::from_millis(1)));
        }
    });
}

#[test]
fn a_place_that_is_condemned_while_its_messages_are_delivered_is_dead_at_every_place() {
    for places in [3, 9] {
        let segment = segment(places);
        let endpoints = endpoints(&segment);
        for byte in [1, 2, 3] {
            send(&endpoints[1], 0, DATA, &[byte]).unwrap();
        }
        send(&endpoints[1], 2, DATA, &[8]).unwrap();
        let mut heard = 0;
        endpoints[0].progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) => {
                heard += 1;
                endpoints[0].declare_dead(message.source);
            }
            Arrival::Died { place, cause: Death::Corrupt(_) } => assert_eq!((place, heard), (PlaceId(1), 1)),
            Arrival::Died { cause, .. } => panic!("{cause}"),
        });
        assert_eq!(
            progress_lines(&endpoints[0]),
            [""; 0],
            "nothing more is believed, and the death is told once"
        );
        let cause = "1: a message that no sound place sends, from place 1 to place 0, seen by place 0";
        assert_eq!(progress_lines(&endpoints[2]), ["1: [8]", cause]);
        assert_eq!(send(&endpoints[0], 1, DATA, &[4]), Err(SendError::DeadPlace(PlaceId(1))));
        assert_eq!(send(&endpoints[2], 1, DATA, &[4]), Err(SendError::DeadPlace(PlaceId(1))));
    }
}

/// Sends the number of this place to every other, and receives from every other.
fn all_meet(endpoint: &ShmEndpoint) {
    let (here, places) = (endpoint.here().0, endpoint.places());
    let mut unsent: Vec<u32> = (0..places).filter(|place| *place != here).collect();
    let mut heard = vec![false; places as usize];
    heard[here as usize] = true;
    while !unsent.is_empty() || heard.contains(&false) {
        unsent.retain(|to| send(endpoint, *to, DATA, &here.to_le_bytes()).is_err());
        let count = endpoint.progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) => {
                assert_eq!(message.body.bytes(), message.source.0.to_le_bytes());
                assert!(!std::mem::replace(&mut heard[message.source.index()], true));
            }
            Arrival::Died { place, cause } => panic!("{place} died: {cause:?}"),
        });
        if count == 0 {
            endpoint.wait(None);
        }
    }
}

/// Sends a token round a ring of all places.
fn token(endpoint: &ShmEndpoint, rounds: u32) {
    let next = (endpoint.here().0 + 1) % endpoint.places();
    for round in 0..rounds {
        if endpoint.here().0 == 0 {
            send(endpoint, next, DATA, &round.to_le_bytes()).unwrap();
        }
        while endpoint.progress(Inbound::All, &mut |_| ()) == 0 {
            endpoint.wait(None);
        }
        if endpoint.here().0 != 0 {
            send(endpoint, next, DATA, &round.to_le_bytes()).unwrap();
        }
    }
}

fn run_threads(places: u32, body: impl Fn(&ShmEndpoint) + Sync) -> Segment {
    let segment = segment(places);
    std::thread::scope(|scope| {
        for place in segment.all_places() {
            let (segment, body) = (&segment, &body);
            scope.spawn(move || {
                let endpoint = segment.endpoint(place).unwrap();
                body(&endpoint);
                endpoint.leave();
            });
        }
    });
    segment
}

/// Returns the resident memory of the segment, in bytes.
fn resident(segment: &Segment) -> u64 {
    rustix::fs::fstat(segment.file()).unwrap().st_blocks as u64 * 512
}

#[test]
fn forty_eight_places_meet() {
    run_threads(48, all_meet);
    run_threads(48, |endpoint| token(endpoint, 20));
}

#[test]
fn two_hundred_and_fifty_six_places_meet_within_their_memory() {
    let segment = run_threads(256, all_meet);
    // Each place has touched the first eighth of 255 rings.
    assert!(resident(&segment) / 256 < 2 << 20, "{} bytes", resident(&segment));
}

#[test]
fn an_idle_place_takes_less_than_two_megabytes() {
    for places in [1, 2, 8, 9, 64, 256] {
        let segment = segment(places);
        let endpoints = endpoints(&segment);
        for endpoint in &endpoints {
            progress_lines(endpoint);
            endpoint.wait(Some(Duration::ZERO));
        }
        let bound = 64 * 1024 + u64::from(places.min(8)) * 2 * PAGE_BYTES;
        assert!(resident(&segment) / u64::from(places) <= bound, "{places}: {} bytes", resident(&segment));
    }
}

#[test]
fn a_long_message_is_announced_while_it_is_written() {
    let segment = segment(2);
    let mut endpoints = endpoints(&segment);
    // As on a machine where each has a processor.
    endpoints[0].outlets.announces = true;
    let coming = || segment.block(PlaceId(1)).coming.0.load(Ordering::Relaxed);
    for (len, announced) in [(ANNOUNCED_BYTES_MIN - 1, 0), (ANNOUNCED_BYTES_MIN, 1)] {
        let mut seen = None;
        let mut fill = |_: &mut [u8]| seen = Some(coming());
        endpoints[0].send_block(PlaceId(1), DATA, HandlerId(0), len, &mut fill).unwrap();
        assert_eq!((seen, coming()), (Some(announced), 0), "{len} bytes");
    }
    let mut fail = |_: &mut [u8]| panic!("a value that cannot be written");
    let send = || endpoints[0].send_block(PlaceId(1), DATA, HandlerId(0), ANNOUNCED_BYTES_MIN, &mut fail);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(send)).unwrap_err();
    assert_eq!(coming(), 0);
    endpoints[0].outlets.announces = false;
    let mut seen = None;
    let mut fill = |_: &mut [u8]| seen = Some(coming());
    endpoints[0].send_block(PlaceId(1), DATA, HandlerId(0), ANNOUNCED_BYTES_MIN, &mut fill).unwrap();
    assert_eq!(seen, Some(0), "a place that shares its processor does not look for it");
}

#[test]
fn a_block_whose_writing_panics_keeps_no_memory_from_the_next() {
    let segment = segment(2);
    let endpoints = endpoints(&segment);
    let send = |fill: &mut dyn FnMut(&mut [u8])| {
        endpoints[0].send_block(PlaceId(1), DATA, HandlerId(0), 1 << 20, fill)
    };
    for _ in 0..1_000 {
        let fail = || send(&mut |_: &mut [u8]| panic!("a value that cannot be written"));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(fail)).unwrap_err();
    }
    assert_eq!(send(&mut |room| room.fill(1)), Ok(()));
}

#[test]
fn a_place_that_sleeps_gives_the_pages_of_its_large_messages_back() {
    let segment = segment(2);
    let endpoints = endpoints(&segment);
    let pages = || rustix::fs::fstat(segment.file()).unwrap().st_blocks as u64 * 512;
    let before = pages();
    let len = 8 << 20;
    endpoints[0].send_block(PlaceId(1), DATA, HandlerId(1), len, &mut |room| room.fill(7)).unwrap();
    let mut heard = 0;
    endpoints[1].progress(Inbound::All, &mut |arrival| {
        let Arrival::Message(message) = arrival else { panic!("nobody dies") };
        heard += message.body.bytes().len();
    });
    assert_eq!(heard, len);
    assert!(pages() >= before + len as u64);
    assert!(progress_lines(&endpoints[0]).is_empty(), "it has looked at all that could end a wait");
    // No place wakes it, so it wakes itself; then it releases the pages and sleeps as long as it may.
    endpoints[0].wait(None);
    while pages() >= before + 4 * PAGE_BYTES {
        endpoints[0].wait(Some(Duration::from_millis(100)));
    }
}
