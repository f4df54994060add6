//! Places as real processes: this test program, started again as [`a_started_process`].
//!
//! A started process runs a [`Role`], passed in the environment. No test sleeps: each step waits for a message, a
//! death, an exit or the end of a stream.

use super::*;
use crate::endpoint::ShmEndpoint;
use crate::layout::Geometry;
use crate::segment::SegmentError;
use isles_transport::{Arrival, Body, Class, Death, Endpoint, EndpointExt, HandlerId, Inbound, SendError};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const IMAGE: Image = *b"the test program";
const ROLE: &str = "ISLES_TEST_ROLE";
/// Time limit of the tests, which only keeps a broken build from hanging.
const LIMIT: Duration = Duration::from_secs(60);
const STOP: HandlerId = HandlerId(9);

fn program(role: &str) -> Program {
    let arguments = ["processes::tests::a_started_process", "--exact", "--ignored", "--nocapture"];
    Program {
        file: std::env::current_exe().unwrap().into(),
        name: None,
        arguments: arguments.map(OsString::from).to_vec(),
        environment: vec![(ROLE.into(), role.into())],
        muted: false,
    }
}

fn others(segment: &Segment) -> impl Iterator<Item = PlaceId> + use<> {
    segment.all_places().skip(1)
}

fn launch(places: u32, role: &str) -> (Segment, Children) {
    launch_noticing(children::notice, places, role)
}

fn launch_noticing(notice: children::ExitDescriptor, places: u32, role: &str) -> (Segment, Children) {
    let segment = Segment::create(Geometry::for_places(places), IMAGE).unwrap();
    let children = spawn_noticing(notice, &segment, &program(role), others(&segment)).unwrap();
    (segment, children)
}

#[test]
#[ignore = "runs as a started process"]
fn a_started_process() {
    match std::env::var(ROLE).as_deref() {
        Ok("echo") => echo(&joined()),
        Ok("flood") => flood(&joined()),
        Ok("another image") => {
            let error = join(*b"another program.").expect("started as a place").unwrap_err();
            assert!(matches!(error, JoinError::Segment(SegmentError::ImageMismatch { .. })), "{error}");
        }
        Ok("end early") => std::process::exit(3),
        Ok("never join") => wait_forever(),
        Ok("break the format") => {
            let endpoint = joined();
            let ring = endpoint.segment().layout().ring(endpoint.here(), PlaceId(0), Class::Data);
            endpoint.segment().mapping().view::<AtomicU64>(ring).store(0xBAD, Ordering::Release);
            crate::parking::wake_parked(&endpoint.segment().block(PlaceId(0)).sleeping.0);
            wait_forever();
        }
        Ok("first") => first(),
        Ok("limited") => limited(),
        Ok("crowded") => {
            let _open: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
            limited();
        }
        role => panic!("no such role: {role:?}"),
    }
}

fn joined() -> ShmEndpoint {
    let (segment, here) = join(IMAGE).expect("started as a place").unwrap();
    segment.endpoint(here).unwrap()
}

fn wait_forever() -> ! {
    loop {
        std::thread::park();
    }
}

/// Sends every message back unchanged to its source, until told to stop.
fn echo(endpoint: &ShmEndpoint) {
    let mut stop = false;
    while !stop {
        let mut answers = Vec::new();
        let count = endpoint.progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) if message.handler == STOP => stop = true,
            Arrival::Message(message) => {
                answers.push((message.source, message.class, message.body.bytes().to_vec()))
            }
            Arrival::Died { .. } => {}
        });
        for (to, class, bytes) in answers {
            put(endpoint, to, class, HandlerId(1), &bytes);
        }
        if count == 0 {
            endpoint.wait(None);
        }
    }
    endpoint.leave();
}

/// Sends to all places for ever.
fn flood(endpoint: &ShmEndpoint) {
    let here = endpoint.here();
    let mut number = 0u64;
    loop {
        for to in endpoint.segment().all_places().filter(|to| *to != here) {
            number += 1;
            let len = if number.is_multiple_of(16) { 10_000 } else { 40 };
            let _ = try_put(endpoint, to, Class::Data, HandlerId(1), &vec![here.0 as u8; len]);
        }
        endpoint.progress(Inbound::All, &mut |_| ());
    }
}

fn try_put(
    endpoint: &ShmEndpoint,
    to: PlaceId,
    class: Class,
    handler: HandlerId,
    bytes: &[u8],
) -> Result<(), SendError> {
    if bytes.len() > endpoint.limits().control_bytes_max {
        return endpoint.send_block(to, class, handler, bytes.len(), &mut |room| room.copy_from_slice(bytes));
    }
    endpoint.send(to, class, handler, bytes.len(), &mut |room| {
        room.copy_from_slice(bytes);
        Some(bytes.len())
    })
}

fn put(endpoint: &ShmEndpoint, to: PlaceId, class: Class, handler: HandlerId, bytes: &[u8]) {
    loop {
        match try_put(endpoint, to, class, handler, bytes) {
            Ok(()) => return,
            Err(SendError::Full) => endpoint.wait(None),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits for an arrival for which `show` returns a value.
fn next<R>(endpoint: &ShmEndpoint, mut show: impl FnMut(Arrival<'_>) -> Option<R>) -> R {
    loop {
        let mut answer = None;
        endpoint.progress(Inbound::All, &mut |arrival| answer = answer.take().or(show(arrival)));
        match answer {
            Some(answer) => return answer,
            None => endpoint.wait(None),
        }
    }
}

fn stop_all(endpoint: &ShmEndpoint) {
    others(endpoint.segment()).for_each(|to| put(endpoint, to, Class::Control, STOP, &[]));
    endpoint.leave();
}

fn assert_all_ended_well(exits: Vec<(PlaceId, ProcessExit)>) {
    assert!(exits.iter().all(|(_, exit)| *exit == ProcessExit::Code(0)), "{exits:?}");
}

#[test]
fn messages_and_blocks_go_to_processes_and_come_back() {
    for places in [2, 3, 12] {
        let (segment, children) = launch(places, "echo");
        children.wait_until_joined(LIMIT).unwrap();
        let endpoint = segment.endpoint(PlaceId(0)).unwrap();
        for len in [0, 1, 8, 56, 57, 1000, 100_000, 3 << 20] {
            let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
            for to in others(&segment) {
                put(&endpoint, to, Class::Data, HandlerId(1), &bytes);
                let (source, back) = next(&endpoint, |arrival| match arrival {
                    Arrival::Message(message) => {
                        assert_eq!(matches!(message.body, Body::Block(_)), len > 10_000);
                        Some((message.source, message.body.bytes().to_vec()))
                    }
                    Arrival::Died { place, cause } => panic!("{place} died: {cause:?}"),
                });
                assert!((source, &back) == (to, &bytes), "{len} bytes from {to}");
            }
        }
        stop_all(&endpoint);
        assert_all_ended_well(children.finish(LIMIT));
    }
}

#[test]
fn a_killed_process_is_a_death_that_all_others_learn() {
    check_that_kills_are_learnt(children::notice);
}

/// Kernels before 5.3 have no process descriptors, and some sandboxes forbid them.
#[test]
fn a_kernel_without_descriptors_of_processes_tells_deaths_as_well() {
    check_that_kills_are_learnt(children::exit_pipe);
    let (_segment, children) = launch_noticing(children::exit_pipe, 2, "never join");
    assert_eq!(children.finish(Duration::ZERO), [(PlaceId(1), ProcessExit::Overdue)]);
}

fn check_that_kills_are_learnt(notice: children::ExitDescriptor) {
    let (segment, children) = launch_noticing(notice, 4, "flood");
    children.wait_until_joined(LIMIT).unwrap();
    let endpoint = segment.endpoint(PlaceId(0)).unwrap();
    for victim in [2, 1, 3].map(PlaceId) {
        next(&endpoint, |arrival| {
            matches!(arrival, Arrival::Message(message) if message.source == victim).then_some(())
        });
        children.kill(victim);
        let mut kept = Vec::new();
        next(&endpoint, |arrival| match arrival {
            Arrival::Died { place, cause } => {
                assert_eq!((place, cause), (victim, Death::Killed(9)));
                Some(())
            }
            Arrival::Message(message) => {
                let bytes = message.body.bytes();
                assert!(bytes.iter().all(|byte| *byte == message.source.0 as u8), "a torn message");
                kept.push(bytes.len());
                None
            }
        });
        assert!(endpoint.is_dead(victim));
        assert_eq!(endpoint.death(victim), Some(Death::Killed(9)));
        let refusal = try_put(&endpoint, victim, Class::Data, HandlerId(1), &[1]);
        assert_eq!(refusal, Err(SendError::DeadPlace(victim)));
        assert_eq!(children.exit(victim), Some(ProcessExit::Signal(9)));
    }
    endpoint.leave();
}

#[test]
fn a_process_that_breaks_the_format_is_dead_and_ended() {
    let (segment, children) = launch(2, "break the format");
    let endpoint = segment.endpoint(PlaceId(0)).unwrap();
    let cause = next(&endpoint, |arrival| match arrival {
        Arrival::Died { cause, .. } => Some(cause),
        Arrival::Message(_) => panic!("a message out of garbage"),
    });
    assert!(matches!(cause, Death::Corrupt(text) if text.contains("place 1 to place 0")));
    endpoint.leave();
    // The process would run for ever; the watch kills it long before the limit.
    assert_eq!(children.finish(LIMIT), [(PlaceId(1), ProcessExit::Signal(9))]);
}

#[test]
fn a_process_with_another_image_is_refused_and_the_first_one_told() {
    let (_segment, children) = launch(3, "another image");
    match children.wait_until_joined(LIMIT) {
        Err(LaunchError::ImageMismatch { ours, theirs, .. }) => {
            assert_eq!((&ours, &theirs), (&IMAGE, b"another program."));
        }
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn a_process_that_ends_before_it_joins_is_told() {
    let (_segment, children) = launch(2, "end early");
    let error = children.wait_until_joined(LIMIT).unwrap_err();
    assert_eq!(error.to_string(), "the process of place 1 ended with code 3 before it joined");
}

#[test]
fn a_process_that_does_not_join_is_late_and_ended() {
    let (_segment, children) = launch(2, "never join");
    assert!(matches!(children.wait_until_joined(Duration::ZERO), Err(LaunchError::Late(PlaceId(1)))));
    assert_eq!(children.finish(Duration::ZERO), [(PlaceId(1), ProcessExit::Overdue)]);
}

#[test]
fn a_program_that_is_not_there_is_not_started() {
    let segment = Segment::create(Geometry::for_places(2), IMAGE).unwrap();
    let program = Program { file: "/nowhere/program".into(), ..program("echo") };
    match spawn(&segment, &program, [PlaceId(1)]) {
        Err(error @ LaunchError::NotStarted { .. }) => {
            let text = error.to_string();
            assert!(
                text.starts_with("/nowhere/program could not be started as place 1: No such file"),
                "{text}"
            );
        }
        _ => panic!("started a program that is not there"),
    }
}

/// Starts a first process as a separate program, with its output in a pipe.
fn start_first(role: &str) -> Child {
    let program = program(role);
    let mut command = Command::new(&program.file);
    command.args(&program.arguments).envs(program.environment).stdout(Stdio::piped()).spawn().unwrap()
}

/// Runs the first process of a run of four; prints a line when all have joined, and floods.
fn first() {
    let (segment, children) = launch(4, "flood");
    children.wait_until_joined(LIMIT).unwrap();
    println!("\nall have joined");
    flood(&segment.endpoint(PlaceId(0)).unwrap());
}

#[test]
fn a_first_process_that_is_killed_takes_all_others_with_it() {
    let mut first = start_first("first");
    let mut output = BufReader::new(first.stdout.take().unwrap());
    let joined = output.by_ref().lines().map(Result::unwrap).any(|line| line == "all have joined");
    assert!(joined);
    first.kill().unwrap();
    // The output ends when the last process that has it open is gone.
    output.read_to_end(&mut Vec::new()).unwrap();
    first.wait().unwrap();
}

/// Creates a segment under a limit of the shell that started it, and prints the result.
fn limited() {
    match Segment::for_places(8, IMAGE) {
        Ok(segment) => println!("\nanswer: arenas of {}", segment.geometry().arena_bytes),
        Err(error) => println!("\nanswer: {error}"),
    }
}

fn answer_under(limit: &str, role: &str) -> String {
    let program = program(role);
    let script = format!("{limit} && exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(&program.file).args(&program.arguments).envs(program.environment);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answer = text.lines().find_map(|line| line.strip_prefix("answer: "));
    answer.unwrap_or_else(|| panic!("no answer: {:?} {text}", output.status)).to_owned()
}

#[test]
fn limits_of_the_system_are_named_with_what_was_needed() {
    assert_eq!(answer_under("true", "limited"), format!("arenas of {}", 8_u64 << 30));
    let smallest = Geometry { arena_bytes: 32 << 20, ..Geometry::for_places(8) };
    let bytes = crate::layout::Layout::of(smallest).total_bytes;
    // A shell may count blocks of 512 bytes, or of 1024.
    let limits = [512_000, 1_024_000].map(|limit| {
        format!(
            "a segment of {bytes} bytes of address space; the file size limit (ulimit -f) is {limit} bytes: raise \
             it, or start fewer places"
        )
    });
    let file = answer_under("ulimit -f 1000", "limited");
    assert!(limits.contains(&file), "{file}");
    let space = answer_under("ulimit -v 250000", "limited");
    let start = format!("no {bytes} bytes of address space for a shared segment: ");
    let end = "; the limit (ulimit -v) is 256000000 bytes: raise it, or start fewer places";
    assert!(space.starts_with(&start) && space.ends_with(end), "{space}");
    let descriptors = answer_under("ulimit -n 50", "crowded");
    assert!(descriptors.starts_with("no descriptor for a shared segment: "), "{descriptors}");
}

/// The arenas take at most half of the limit, for any number of places.
#[test]
fn arenas_shrink_until_the_segment_fits_a_limit() {
    for (limit, arena_bytes) in [(400_000_000, 8_u64 << 30), (4_000_000, 64 << 20), (1_000_000, 32 << 20)] {
        let answer = answer_under(&format!("ulimit -v {limit}"), "limited");
        assert_eq!(answer, format!("arenas of {arena_bytes}"), "ulimit -v {limit}");
    }
    // Files of at most 2 or 4 GB, in blocks of 512 or 1024 bytes.
    let answer = answer_under("ulimit -f 4000000", "limited");
    assert!([128, 64].map(|mib| format!("arenas of {}", mib << 20)).contains(&answer), "{answer}");
}

#[test]
fn a_join_variable_set_by_hand_is_refused_with_its_value() {
    for value in
        ["", "3", "3:4", "0:1:2", "3:3:0", "900:901:1", "a:b:c", "3:4:5:6", "-3:4:5", "4294967299:4:1"]
    {
        let error = super::join::join_by(value.as_ref(), IMAGE).unwrap_err();
        assert!(
            matches!(&error, JoinError::BadVariable { value: seen } if seen == value),
            "{value}: {error}"
        );
    }
}

/// The number of deaths is that of `ISLES_TEST_KILLS`, as in `./test --long`, or small; a seed chooses their moments.
#[test]
fn deaths_at_any_moment_are_told_and_leave_nothing() {
    let wanted = std::env::var("ISLES_TEST_KILLS").ok().and_then(|count| count.parse().ok());
    let deaths: u32 = wanted.unwrap_or(6);
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    for number in 0..deaths {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let (segment, children) = launch(4, "flood");
        if seed & 1 == 0 {
            children.wait_until_joined(LIMIT).unwrap();
        }
        let endpoint = segment.endpoint(PlaceId(0)).unwrap();
        let victim = PlaceId(1 + (seed >> 8) as u32 % 3);
        // Number of messages before the kill; 0 for half of the seeds.
        let mut left = if seed & 1 == 0 { (seed >> 16) % 2000 } else { 0 };
        while left > 0 {
            next(&endpoint, |_| {
                left = left.saturating_sub(1);
                Some(())
            });
        }
        children.kill(victim);
        next(&endpoint, |arrival| match arrival {
            Arrival::Died { place, .. } => {
                assert_eq!(place, victim, "death {number} of {deaths}");
                Some(())
            }
            Arrival::Message(_) => None,
        });
        endpoint.leave();
        let memory = rustix::fs::fstat(segment.file()).unwrap().st_ino;
        assert!(holders(memory).contains(&std::process::id()), "this process is not seen to hold the memory");
        drop(children);
        drop(endpoint);
        drop(segment);
        // A process that another test is starting is a copy of this one until it executes its own program.
        let left = (0..SETTLES_MAX).map(|_| holders(memory)).find(Vec::is_empty);
        assert!(left.is_some(), "death {number} of {deaths}: {:?} still hold the memory", holders(memory));
    }
}

/// Maximum number of checks until all processes have released the memory of a run.
const SETTLES_MAX: u32 = 1_000;

/// Returns the processes that have mapped or opened the memory file with this inode number.
fn holders(memory: u64) -> Vec<u32> {
    let numbers = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let holds = |process: &u32| {
        // A process that is gone, or belongs to another user, is not of this run.
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        let mut columns = maps.lines().map(|line| line.split_ascii_whitespace().skip(4));
        let mapped = columns.any(|mut columns| {
            columns.next().is_some_and(|number| number.parse() == Ok(memory))
                && columns.next().is_some_and(|name| name.starts_with("/memfd:isles"))
        });
        let opened = std::fs::read_dir(format!("/proc/{process}/fd")).is_ok_and(|mut files| {
            files.any(|file| {
                let path = file.map(|file| file.path()).unwrap_or_default();
                let is_segment = std::fs::read_link(&path)
                    .is_ok_and(|target| target.to_string_lossy().starts_with("/memfd:isles"));
                is_segment && std::fs::metadata(&path).is_ok_and(|file| file.ino() == memory)
            })
        });
        mapped || opened
    };
    numbers.filter(holds).collect()
}

#[test]
fn a_child_whose_parent_has_ended_before_it_could_follow_ends_without_a_word() {
    let mut command = Command::new("true");
    command.stderr(Stdio::piped());
    // The first process of the system is not the parent of this child.
    // NEED: what is tried runs between fork and exec.
    // SOUND: the closure only makes system calls, and allocates nothing.
    unsafe { command.pre_exec(|| follow(Pid::INIT)) };
    let ended = command.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!((ended.status.signal(), ended.stderr.as_slice()), (Some(9), &b""[..]));
}
