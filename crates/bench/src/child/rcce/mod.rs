//! RCCE programs in C, run by `isles-rcce`: a ping-pong of processes, and calls on the modelled chip.
//!
//! The C program times itself, as user programs do. It is compiled for each run; its library is built once, in the
//! cache. Invariant: a program that does not verify has no figures.

pub mod bare_cores;

use crate::child::timing::{Effort, print_figure};
use crate::program::available::built;
use crate::work_folder::WorkFolder;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

const PING_PONG: &str = include_str!("../../../../../examples/c/pingpong.c");

/// Puts and flag reads, each a call of the library.
const CALLS: &str = r"
#define GORY
#include <RCCE.h>
int RCCE_APP(int argc, char **argv) {
    static char line[32] __attribute__((aligned(32)));
    RCCE_FLAG flag;
    RCCE_FLAG_STATUS value;
    RCCE_init(&argc, &argv);
    t_vcharp buffer = RCCE_malloc(32);
    RCCE_flag_alloc(&flag);
    for (int call = 0; call < 500000; call++) {
        RCCE_put(buffer, (t_vcharp)line, 32, RCCE_ue());
        RCCE_flag_read(flag, &value, RCCE_ue());
    }
    RCCE_finalize();
    return 0;
}
";

/// Number of calls by the program above, over two ranks.
const CALLS_MADE: f64 = 2.0 * 1_000_000.0;

/// Rounds per batch, about 20 ms on a host.
const ROUNDS: &str = "40000";

fn command() -> Command {
    Command::new(built("isles-rcce").unwrap_or_else(|missing| panic!("{}: {}", missing.why, missing.remedy)))
}

fn succeeded(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("cannot start isles-rcce: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn compiled(name: &str, text: &str, options: &[&str]) -> PathBuf {
    let folder = WorkFolder::open()
        .unwrap_or_else(|why| panic!("{why}"))
        .folder(&format!("rcce-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let source = folder.join(name).with_extension("c");
    std::fs::write(&source, text).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    succeeded(command().arg("cc").args(options).arg(&source).arg("-o").arg(folder.join(name)));
    folder.join(name)
}

fn remove(program: &Path) {
    let _ = program.parent().map(std::fs::remove_dir_all);
}

/// Prints `half_round_trip_us` of 32 bytes.
fn ping_pong(options: &[&str], effort: Effort) {
    let program = compiled("pingpong", PING_PONG, options);
    let mut run = command();
    run.args(["rccerun", "-n", "2", "--"]).arg(&program).args([
        "32",
        ROUNDS,
        &effort.repetitions.to_string(),
    ]);
    let text = String::from_utf8_lossy(&succeeded(&mut run).stdout).into_owned();
    assert!(text.contains("Verification SUCCESSFUL"), "{text}");
    let time = text.split_whitespace().nth(2).and_then(|word| word.parse().ok());
    print_figure("half_round_trip_us", time.unwrap_or_else(|| panic!("{text:?} has no time")));
    remove(&program);
}

/// Measures RCCE.
pub fn rcce(effort: Effort) {
    ping_pong(&[], effort);
}

/// Measures RCCE with bit flags.
pub fn rcce_bits(effort: Effort) {
    ping_pong(&["--bit-flags"], effort);
}

/// Measures requests of iRCCE.
pub fn ircce(effort: Effort) {
    ping_pong(&["-DIRCCE"], effort);
}

/// Prints the minimum time of half a round trip between processes, by length, as `bare_cores` does for bare cores.
fn by_length(options: &[&str]) {
    let program = compiled("pingpong", PING_PONG, options);
    for (bytes, rounds, batches) in [("32", "400", "21"), ("1024", "200", "21"), ("65536", "20", "11")] {
        let run = |_| {
            let mut run = command();
            run.args(["rccerun", "-n", "2", "--"]).arg(&program).args([bytes, rounds, batches]);
            let text = String::from_utf8_lossy(&succeeded(&mut run).stdout).into_owned();
            let time = text.split_whitespace().nth(2).and_then(|word| word.parse::<f64>().ok());
            time.unwrap_or_else(|| panic!("{text:?} has no time"))
        };
        print_figure(&format!("ping_pong_us_{bytes}"), (0..3).map(run).fold(f64::INFINITY, f64::min));
    }
    remove(&program);
}

/// Measures RCCE with the program that also runs on bare cores.
pub fn rcce_lengths(_: Effort) {
    by_length(&[]);
}

/// Measures iRCCE with the program that also runs on bare cores.
pub fn ircce_lengths(_: Effort) {
    by_length(&["-DIRCCE"]);
}

fn on_chip(program: &Path, words: &[&str]) -> f64 {
    let mut run = command();
    run.args(["rccerun", "-n", "2", "--machine", "chip:scc", "--"]).arg(program).args(words);
    let begin = Instant::now();
    succeeded(&mut run);
    begin.elapsed().as_secs_f64()
}

/// Prints `calls_million` and `messages_million` per second of this host, for two ranks on the modelled chip.
pub fn chip(_: Effort) {
    let program = compiled("calls", CALLS, &[]);
    print_figure("calls_million", CALLS_MADE / on_chip(&program, &[]) / 1e6);
    let program = compiled("pingpong", PING_PONG, &[]);
    // Each round has two sends and two receives.
    print_figure("messages_million", 4.0 * 40_000.0 / on_chip(&program, &["32", ROUNDS]) / 1e6);
    remove(&program);
}
