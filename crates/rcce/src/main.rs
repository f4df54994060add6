//! The program `isles-rcce`, which `isles cc` and `isles rccerun` become: C programs of RCCE on hosts and chips.
//!
//! The library itself is in C, in `c/`; this program builds it, starts ranks, and on a modelled chip answers the
//! library's requests. See `toolchain` (building), `host` (ranks as processes) and `chip` (ranks as coroutines on bare
//! cores). It is a separate crate because loading programs and switching stacks need unsafe code that no other crate
//! has.

mod arguments;
mod chip;
mod host;
mod image;
mod interface;
mod segment;
mod toolchain;

use arguments::{Command, RankMachine};
use isles_app::Failure;
use isles_app::usage::outcome;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    // Arguments of the C compiler or of a rank's program are not parsed by clap.
    match words.get(1).and_then(|word| word.to_str()) {
        Some("cc") => return outcome(toolchain::compile(&words[2..])),
        Some("rank") => return outcome(host::run_as_rank(&words[2..])),
        _ => {}
    }
    match arguments::read(words) {
        Ok(Command::Rccerun(arguments)) => outcome(run(&arguments)),
        Err(code) => code,
    }
}

fn run(arguments: &arguments::RunArguments) -> Result<(), Failure> {
    let (ranks, program, words) = (arguments.ranks as usize, &arguments.program, &arguments.words[..]);
    match &arguments.machine {
        RankMachine::Processes => {
            arguments.check_process_arguments()?;
            host::run(ranks, program, words)
        }
        RankMachine::Chip(name) => chip::run(name, arguments),
    }
}
