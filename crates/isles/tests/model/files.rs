//! Files that places read and write: their bytes on any machine, and the time on a modelled chip.

use isles::prelude::*;
use isles::{ChipReport, Launch, Machine, ModelledChip};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const BYTES: usize = 1 << 20;

/// Lets all places read the same file, one after the other and all at once; then the first one writes another.
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

/// The SCC with cores that are faster than the server of files.
const FAST_CORES: fn() -> ModelledChip = || {
    let text = include_str!("../../../../chips/scc.toml");
    let changed = text.replace("\"298 us\"", "\"1 us\"").replace("\"9.6 us\"", "\"20 us\"");
    assert_ne!(changed, text);
    ModelledChip::parse("fast cores", &changed).unwrap()
};

/// Runs a program of file accesses; returns the times of its calls, the report, and the summary.
fn on(chip: &dyn Fn() -> ModelledChip) -> (Vec<Duration>, ChipReport, String) {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("isles-files-{}-{run}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("in").display().to_string();
    std::fs::write(&path, vec![b'x'; BYTES]).unwrap();
    let summary = std::sync::Arc::new(std::sync::OnceLock::new());
    let launch = Launch::from_environment().unwrap().places(4).keeping_summary(&summary);
    let times = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let (kept, of_program) = (std::rc::Rc::clone(&times), path.clone());
    let main = move || async move {
        *kept.borrow_mut() = program(of_program).await?;
        Ok::<_, isles::Error>(())
    };
    let (result, _, report) = launch.run_on_chip(chip(), main).unwrap();
    result.unwrap();
    assert_eq!(std::fs::read(format!("{path}.out")).unwrap().len(), BYTES);
    let summary = summary.get().cloned().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    (times.take(), report, summary)
}

/// Asserts that the summary has these lines.
#[track_caller]
fn says<const LINES: usize>(summary: &str, lines: [&str; LINES]) {
    for line in lines {
        assert!(summary.lines().any(|other| other.trim() == line), "{line} in {summary}");
    }
}

/// Asserts that a time is as expected, except for the credit that a place may return before it waits.
#[track_caller]
fn assert_near(times: &[Duration], expected: [Duration; 4]) {
    let near = |(time, expected): (&Duration, Duration)| time.abs_diff(expected) < Duration::from_micros(1);
    assert!(times.iter().zip(expected).all(near), "{times:?}, {expected:?}");
}

#[test]
fn a_file_is_cold_once_then_warm_and_a_core_is_slower_than_the_server() {
    let (times, report, summary) = on(&|| ModelledChip::new("scc").unwrap());
    // 10 ms from the disk, 1 ms from the server's memory; 298 us for each KiB, and the server needs less than that.
    let [cold, warm] = [10_000 + 305_152, 1_000 + 305_152].map(Duration::from_micros);
    assert_near(&times[..4], [cold, warm, warm, warm]);
    // Four at once do not wait for each other.
    assert!(times[4] >= warm && times[4] < warm + Duration::from_millis(1), "{times:?}");
    let files = report.files;
    assert_eq!((files.reads, files.cold, files.writes, files.bytes), (8, 1, 1, 9 << 20));
    let waited = 315_152 + 8 * 306_152;
    assert!(files.waited.0.abs_diff(waited * 1_000_000) < 1_000_000_000, "{files:?}");
    let (milliseconds, rate) = (files.waited.0 as f64 / 1e9, (9 << 20) as f64 * 1e12 / files.waited.0 as f64);
    let line = "files           8 read, 1 of them cold, 1 written; 9437184 bytes; places waited";
    let line = format!("\n{line} {milliseconds:.3} ms, at {:.1} MB/s\n", rate / 1e6);
    assert!(report.to_string().contains(&line), "{line} {report}");
    let waited = format!(r#""waited_ps": {},"#, files.waited.0);
    let rate = format!(r#""bytes_per_second": {rate}"#);
    let said = [r#""reads": 8,"#, r#""cold": 1,"#, r#""writes": 1,"#, r#""bytes": 9437184,"#, &waited, &rate];
    says(&summary, said);
}

#[test]
fn the_server_sends_to_one_at_a_time() {
    let (times, ..) = on(&FAST_CORES);
    let [cold, warm] = [10_000 + 25_600, 1_000 + 20_480].map(Duration::from_micros);
    assert_near(&times[..4], [cold, warm, warm, warm]);
    // Four at once: one latency, and the bytes of all.
    let all = Duration::from_micros(1_000 + 4 * 20_480);
    assert!(times[4] >= all && times[4] < all + Duration::from_millis(1), "{times:?}");
}

#[test]
fn a_chip_that_says_nothing_of_a_server_has_files_that_take_no_time() {
    let (times, report, summary) = on(&|| ModelledChip::new("mesh").unwrap());
    says(&summary, [r#""reads": 8,"#, r#""waited_ps": 0,"#, r#""bytes_per_second": null"#]);
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
