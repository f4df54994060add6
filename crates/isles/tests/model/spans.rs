//! The spans in the trace of a program on a modelled chip: its calls, their bodies and its finishes, with their times.

use crate::protobuf::{Packet, Span, packets, spans};
use isles::prelude::*;
use isles::{ChipReport, ErrorKind, Flag, Launch, Machine, ModelledChip, Result, now};
use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

const PLACES: u32 = 4;

/// A span as the program reports it: name, place, line, and clock before and after.
type Said = (String, u32, u32, Duration, Duration);

fn chip() -> ModelledChip {
    ModelledChip::new("scc").unwrap()
}

/// Runs `main` on the chip, with its trace in the file `name`.
fn traced<F>(name: &str, main: impl FnOnce() -> F) -> (Result<()>, ChipReport, Vec<Packet>)
where
    F: Future<Output = Result<()>> + 'static,
{
    let path = format!("{}/{name}.perfetto-trace", env!("CARGO_TARGET_TMPDIR"));
    let flag = Flag { variable: "ISLES_TRACE", name: "--trace", value: &path };
    let launch = Launch::from_environment_with(Machine::Chip(chip()), &[flag]).unwrap().places(PLACES);
    let (result, _, report) = launch.run_on_chip(chip(), main).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    (result, report, packets(&bytes))
}

/// Runs nested finishes, calls of each place from the first, and two concurrent calls that do not nest.
async fn program(said: Rc<RefCell<Vec<Said>>>) -> Result<()> {
    let say =
        |name: String, (place, line), (start, end)| said.borrow_mut().push((name, place, line, start, end));
    let outer = now();
    let outer_line = line!() + 1;
    finish(async {
        work(Cycles(1_000));
        let (inner, line) = (now(), line!() + 1);
        finish(async {
            spawn_at!(Place::new(1).unwrap(), work(Cycles(20_000)));
        })
        .await?;
        say("finish".into(), (0, line), (inner, now()));
        for place in places() {
            let (before, line) = (now(), line!() + 1);
            let (start, end) = at!(place, {
                let start = now();
                work(Cycles(5_000));
                (start, now())
            })
            .await?;
            let number = place.index() as u32;
            say(format!("at → {place}"), (0, line), (before, now()));
            if place != here() {
                say("at ← place 0".into(), (number, line), (start, end));
            }
        }
        Ok::<_, isles::Error>(())
    })
    .await?;
    say("finish".into(), (0, outer_line), (outer, now()));

    let (before, line) = (now(), line!() + 1);
    finish(async {
        for (number, cycles) in [(1_u32, 30_000), (2, 60_000)] {
            let said = Rc::clone(&said);
            spawn(async move {
                let (before, line) = (now(), line!() + 1);
                let body = at!(Place::new(number as usize).unwrap(), {
                    let start = now();
                    work(Cycles(cycles));
                    (start, now())
                });
                let (start, end) = body.await?;
                said.borrow_mut().push((format!("at → place {number}"), 0, line, before, now()));
                said.borrow_mut().push(("at ← place 0".into(), number, line, start, end));
                Ok::<_, isles::Error>(())
            });
        }
    })
    .await?;
    said.borrow_mut().push(("finish".into(), 0, line, before, now()));

    let (before, line) = (now(), line!() + 1);
    let mut kept = Box::pin(finish(async { work(Cycles(3_000)) }));
    kept.as_mut().await?;
    said.borrow_mut().push(("finish".into(), 0, line, before, now()));
    work(Cycles(2_000)); // it is over, although it is still there
    drop(kept);
    Ok(())
}

/// Returns the tracks of spans, each with its place.
fn lanes(packets: &[Packet]) -> Vec<(u64, u32)> {
    let tracks = packets.iter().filter_map(|packet| packet.track.as_ref());
    let lanes = tracks.filter_map(|track| {
        let place = track.name.strip_prefix("calls of place ")?.strip_suffix(", 1 ns is 1 ps")?;
        assert!(track.parent.is_some(), "{track:?}");
        Some((track.uuid, place.parse().unwrap()))
    });
    lanes.collect()
}

/// Returns the spans on those tracks, each with its place; spans on one track do not overlap.
fn spans_of_places(packets: &[Packet]) -> Vec<(u32, Span)> {
    let lanes = lanes(packets);
    let place = |span: &Span| Some(lanes.iter().find(|(track, _)| *track == span.track)?.1);
    let found = spans(packets).into_iter().filter_map(|span| Some((place(&span)?, span)));
    let found: Vec<(u32, Span)> = found.collect();
    assert!(found.iter().all(|(_, span)| span.depth == 0), "{found:?}");
    found
}

/// Returns a span as the program reports it; `None` for one of the runtime, which has no source line.
fn said_of((place, span): &(u32, Span)) -> Option<Said> {
    let (file, line) = span.source.clone()?;
    let time = |picoseconds: u64| Duration::from_nanos(picoseconds / 1_000);
    let own = file == file!();
    own.then(|| (span.name.clone(), *place, line as u32, time(span.start), time(span.end)))
}

#[test]
fn calls_bodies_and_finishes_are_spans_with_their_times_names_and_lines() {
    let said = Rc::new(RefCell::new(Vec::new()));
    let saying = Rc::clone(&said);
    let (result, report, packets) = traced("program", move || program(saying));
    result.unwrap();
    let found = spans_of_places(&packets);
    let (tasks, mut theirs): (Vec<Said>, Vec<Said>) =
        found.iter().filter_map(said_of).partition(|(name, ..)| name == "task");
    // One turn of each task sent from here to another place: of `spawn_at!`, and of five bodies of `at!`.
    let places: Vec<u32> = tasks.iter().map(|(_, place, ..)| *place).collect();
    assert_eq!(places.iter().filter(|place| **place > 0).count(), 1 + 3 + 2, "{tasks:?}");
    let mut ours = said.take();
    assert_eq!(ours.len(), 2 + 4 + 3 + 1 + 4 + 1);
    ours.sort();
    theirs.sort();
    assert_eq!(theirs, ours);
    let whole: Vec<&(u32, Span)> = found.iter().filter(|(_, span)| span.source.is_none()).collect();
    let [(0, whole)] = whole.as_slice() else { panic!("one run, at the first place: {whole:?}") };
    assert_eq!(whole.name, "the whole run");
    // After it the current turn ends, which returns credits.
    assert!(whole.end <= report.time.0 && whole.end + 1_000_000 > report.time.0, "{whole:?}, {report}");
    assert!(found.iter().all(|(_, span)| whole.start <= span.start && span.end <= whole.end), "{found:?}");
}

#[test]
fn spans_change_nothing_of_a_run() {
    let run = || program(Rc::default());
    let (result, report, _) = traced("same", run);
    result.unwrap();
    let launch = Launch::from_environment().unwrap().places(PLACES);
    let (_, _, plain) = launch.run_on_chip(chip(), run).unwrap();
    assert_eq!((report.digest, report.time), (plain.digest, plain.time));
    assert_eq!(report.ledgers, plain.ledgers);
}

#[test]
fn what_is_cancelled_ends_its_spans_on_both_sides() {
    let line = line!() + 3;
    let (result, _, packets) = traced("cancelled", || async {
        let limit = Duration::from_micros(500);
        let late = finish(async { at!(Place::new(3).unwrap(), pending::<()>().await).await }).deadline(limit);
        assert_eq!(late.await.unwrap_err().kind(), &ErrorKind::DeadlinePassed);
        work(Cycles(1_000_000));
        Ok(())
    });
    result.unwrap();
    let found: Vec<Said> = spans_of_places(&packets).iter().filter_map(said_of).collect();
    let one = |name: &str, place| {
        let all: Vec<_> =
            found.iter().filter(|said| said.0 == name && (said.1, said.2) == (place, line)).collect();
        let [(.., start, end)] = all.as_slice() else { panic!("{name} is not once in {found:?}") };
        (*start, *end)
    };
    let [finish, call, body] = [one("finish", 0), one("at → place 3", 0), one("at ← place 0", 3)];
    let within = |inner: (Duration, Duration)| finish.0 <= inner.0 && inner.1 <= finish.1;
    assert!(within(call) && within(body) && body.0 > call.0, "{found:?}");
    assert!(finish.1 < finish.0 + Duration::from_millis(1), "the work afterwards is not in it: {found:?}");
}

/// Runs a receive that waits for a computation, over a channel and from a member, and a long message that waits for its
/// receiver.
async fn waits(said: Rc<RefCell<Vec<Said>>>) -> Result<()> {
    let say = |name: &str, line, (start, end)| said.borrow_mut().push((name.to_owned(), 0, line, start, end));
    let (sender, receiver) = channel::<u64>(0);
    let team = Team::world();
    finish(async {
        spawn_at!(Place::new(1).unwrap(), {
            let mut long = vec![0_u64; 5_000];
            work(Cycles(20_000));
            sender.send(1).await?;
            work(Cycles(20_000));
            team.send(0, &2_u64).await?;
            work(Cycles(20_000));
            team.recv_slice(0, &mut long).await?;
        });
        let (before, line) = (now(), line!() + 1);
        receiver.recv().await?;
        say("recv ← place 0", line, (before, now()));
        let (before, line) = (now(), line!() + 1);
        team.recv::<u64>(1).await?;
        say("recv ← place 1", line, (before, now()));
        let (before, line) = (now(), line!() + 1);
        team.send_slice(1, &[3_u64; 5_000]).await?;
        say("send → place 1", line, (before, now()));
        Ok::<_, isles::Error>(())
    })
    .await
}

#[test]
fn waits_of_tasks_for_other_tasks_are_spans() {
    let said = Rc::new(RefCell::new(Vec::new()));
    let saying = Rc::clone(&said);
    let (result, _, packets) = traced("waits", move || waits(saying));
    result.unwrap();
    let found = spans_of_places(&packets);
    for (name, place, line, before, after) in said.take() {
        let of_line = |(_, lane, of, ..): &Said| (*lane, *of) == (place, line);
        let drawn: Vec<Said> = found.iter().filter_map(said_of).filter(of_line).collect();
        let [(drawn_name, _, _, start, end)] = &drawn[..] else { panic!("{name}: {drawn:?}") };
        assert_eq!(*drawn_name, name);
        assert!(before <= *start && *end <= after, "{name}: {before:?} {start:?} {end:?} {after:?}");
        // It waited for most of the computation of the other place.
        assert!(*end - *start > Duration::from_micros(30), "{name}: {:?}", *end - *start);
    }
}
