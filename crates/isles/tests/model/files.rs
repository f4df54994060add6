//! Files that places read and write: their bytes on any machine, and what that takes on a modelled chip.

use isles::prelude::*;
use isles::{ChipReport, Launch, Machine, ModelledChip};
use std::time::Duration;

const BYTES: usize = 1 << 20;

/// All places read the same file, one after the other or all at once; then the first one writes another.
async fn program(path: String) -> isles::Result<Vec<Duration>> {
    let read = |place: Place, path: String| async move {
        at!(place, {
            let started = now();
            assert_eq!(isles::io::read(&path).map_err(isles::Error::message)?.len(), BYTES);
            Ok::<_, isles::Error>(now() - started)
        })
        .await
    };
    let mut times = Vec::new();
    for place in places() {
        times.push(read(place, path.clone()).await?);
    }
    let started = now();
    finish(async {
        for place in places() {
            let path = path.clone();
            spawn_at!(place, {
                isles::io::read_to_string(&path).map_err(isles::Error::message)?;
                Ok::<_, isles::Error>(())
            });
        }
    })
    .await?;
    times.push(now() - started);
    isles::io::write(format!("{path}.out"), vec![b'x'; BYTES]).map_err(isles::Error::message)?;
    Ok(times)
}

fn on(chip: &str) -> (Vec<Duration>, ChipReport) {
    let folder = std::env::temp_dir().join(format!("isles-files-{}-{chip}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("in").display().to_string();
    std::fs::write(&path, vec![b'x'; BYTES]).unwrap();
    let launch = Launch::from_environment().unwrap().places(4);
    let times = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let (kept, of_program) = (std::rc::Rc::clone(&times), path.clone());
    let main = move || async move {
        *kept.borrow_mut() = program(of_program).await?;
        Ok::<_, isles::Error>(())
    };
    let (result, _, report) = launch.run_on_chip(ModelledChip::new(chip).unwrap(), main).unwrap();
    result.unwrap();
    assert_eq!(std::fs::read(format!("{path}.out")).unwrap().len(), BYTES);
    std::fs::remove_dir_all(folder).unwrap();
    (times.take(), report)
}

/// But for what a place owes others before it waits: a credit.
#[track_caller]
fn assert_near(times: &[Duration], expected: [Duration; 4]) {
    let near = |(time, expected): (&Duration, Duration)| time.abs_diff(expected) < Duration::from_micros(1);
    assert!(times.iter().zip(expected).all(near), "{times:?}, {expected:?}");
}

#[test]
fn a_file_is_cold_once_then_warm_and_the_server_sends_to_one_at_a_time() {
    let (times, report) = on("scc");
    // 10 ms and 25 us for each of 1,024 KiB from the disk; 1 ms and 20 us out of the server's memory.
    let [cold, warm] = [35_600, 21_480].map(Duration::from_micros);
    assert_near(&times[..4], [cold, warm, warm, warm]);
    // Four at once: one latency, and the bytes of all.
    let all = Duration::from_micros(1_000 + 4 * 20_480);
    assert!(times[4] >= all && times[4] < all + Duration::from_millis(1), "{times:?}");
    let files = report.files;
    assert_eq!((files.reads, files.cold, files.writes, files.bytes), (8, 1, 1, 9 << 20));
    assert!(
        report.to_string().contains("\nfiles           8 read, 1 of them cold, 1 written; 9437184 bytes; ")
    );
}

#[test]
fn a_chip_that_says_nothing_of_a_server_has_files_that_take_no_time() {
    let (times, report) = on("mesh");
    assert_near(&times[..4], [Duration::ZERO; 4]);
    assert_eq!((report.files.reads, report.files.waited.0), (8, 0));
}

#[test]
fn on_other_machines_files_are_those_of_the_host() {
    let path = std::env::temp_dir().join(format!("isles-files-{}", std::process::id()));
    std::fs::write(&path, vec![b'x'; BYTES]).unwrap();
    let of_program = path.display().to_string();
    let launch = Launch::from_environment().unwrap().machine(Machine::Loopback).places(2);
    let (result, _) = launch.run(move || async move { program(of_program).await.map(drop) }).unwrap();
    result.unwrap();
    assert_eq!(std::fs::read(format!("{}.out", path.display())).unwrap().len(), BYTES);
    std::fs::remove_file(format!("{}.out", path.display())).unwrap();
    std::fs::remove_file(path).unwrap();
}
