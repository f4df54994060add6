//! Output by the macros of Isles reaches its stream, and the run directory if there is one.

use crate::{MACHINES, command};
use isles::prelude::*;
use isles::{eprint, eprintln, print, println};
use isles_telemetry::{LogReader, OutputLine, OutputStream, RecordedRun, RunDirectory};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of the flood: more than any ring holds.
const FLOOD: u64 = 20_000;

/// Each place prints by each macro, and one line that is not kept.
pub async fn prints() -> isles::Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, {
                print!("pieces ");
                print!("of a {}", "line");
                println!();
                println!("{} says \u{1b}[31mred\u{1b}[0m {:>4}", here(), 1.5);
                eprintln!("a fault of {}", here());
                eprint!("two\nlines\n");
                std::println!("not kept");
            });
        }
    })
    .await
}

/// The last place prints many lines, and then its process is ended, if it has one.
pub async fn floods() -> isles::Result<()> {
    let last = places().next_back().unwrap_or_else(here);
    at!(last, {
        for number in 1..=FLOOD {
            println!("line {number}");
        }
        end_process();
    })
    .await
}

/// Ends the process as a fault would, where the place has one of its own.
fn end_process() {
    if std::env::var("ISLES_MACHINE").is_ok_and(|machine| machine == "processes") {
        let own = std::process::id().to_string();
        assert!(Command::new("kill").args(["-9", &own]).status().is_ok());
    }
}

/// A run directory that is removed at the end.
struct Recorded(PathBuf);

impl Recorded {
    fn new(machine: &str, case: &str) -> Recorded {
        let name = format!("isles-prints-{}-{case}-{}", machine.replace(':', "-"), std::process::id());
        Recorded(std::env::temp_dir().join(name))
    }

    fn run(&self) -> RecordedRun {
        LogReader::open(&RunDirectory::log_path(&self.0)).unwrap()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The lines of standard output and of standard error, sorted, but for what the machine itself says.
fn said(case: &str, machine: &str, record: Option<&Path>) -> [Vec<String>; 2] {
    let mut command = command(case, machine);
    record.iter().for_each(|path| _ = command.env("ISLES_RECORD", path));
    let output = command.output().unwrap();
    // If a place is dead, the run fails.
    let is_dead = case == "floods" && machine == "processes";
    let shown_text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(i32::from(is_dead)), "{case} on {machine}: {shown_text}");
    [output.stdout, output.stderr].map(|bytes| {
        let text = String::from_utf8(bytes).unwrap();
        let mut lines: Vec<String> =
            text.lines().filter(|line| !line.starts_with("chip:scc: ")).map(str::to_owned).collect();
        lines.sort();
        lines
    })
}

/// Checks it on one machine.
pub fn check(machine: &str) {
    assert!(MACHINES.contains(&machine));
    let recorded = Recorded::new(machine, "prints");
    let plain = said("prints", machine, None);
    // Places print at the same time, so their pieces of a line may lie among each other: the letters are the same.
    let letters = |lines: &[String]| {
        let mut letters: Vec<char> = lines.concat().chars().collect();
        letters.sort();
        letters
    };
    let printed = |place: u32| {
        let red = format!("place {place} says \u{1b}[31mred\u{1b}[0m  1.5");
        [format!("pieces of a line{red}not kept"), format!("a fault of place {place}twolines")]
    };
    let expected =
        [0, 1].map(|stream| (0..3).map(|place| printed(place)[stream].clone()).collect::<Vec<_>>());
    let expected = expected.each_ref().map(|lines| letters(lines));
    assert_eq!(plain.each_ref().map(|lines| letters(lines)), expected, "{plain:?}");
    if machine == "loopback" {
        return; // its runs are not observed
    }
    let streams = said("prints", machine, Some(&recorded.0));
    assert_eq!(streams.each_ref().map(|lines| letters(lines)), expected, "{streams:?}");
    let run = recorded.run();
    for place in 0..3 {
        let lines = run.output(place);
        let of = |wanted: OutputStream| {
            let lines = lines.iter().filter(|line| line.stream == wanted);
            lines.map(|line| line.text.clone()).collect::<Vec<_>>()
        };
        let red = format!("place {place} says \u{1b}[31mred\u{1b}[0m  1.5");
        assert_eq!(of(OutputStream::Standard), ["pieces of a line", &red], "place {place}, {machine}");
        assert_eq!(of(OutputStream::Error), [&format!("a fault of place {place}"), "two", "lines"]);
        assert!(lines.iter().map(|line| line.seq).eq(1..=5), "{lines:?}");
        assert!(lines.iter().all(|line| line.time_ms <= run.length_ms() + 1000), "{lines:?}");
    }
    check_flood(machine);
}

/// All of a flood is printed, its end is kept, and numbers tell of the rest.
fn check_flood(machine: &str) {
    let recorded = Recorded::new(machine, "floods");
    let [out, _] = said("floods", machine, Some(&recorded.0));
    assert_eq!(out.len() as u64, FLOOD, "{machine}");
    let run = recorded.run();
    let lines: &[OutputLine] = run.output(2);
    assert!(lines.iter().all(|line| line.text == format!("line {}", line.seq)), "{machine}");
    let last = lines.last().unwrap();
    assert_eq!(last.seq, FLOOD, "the last line of {machine} is kept, whatever became of its place");
}
