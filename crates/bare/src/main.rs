//! The program of `isles bare`: builds images for bare cores, and runs them, a virtual machine of QEMU for each core.
//!
//! It depends on none of the runtime, so it builds in seconds. Every error is one line that names the source, the
//! value and the allowed values; the exit code is 2 for an invalid request, 1 for a failed core.

#![forbid(unsafe_code)]

mod arguments;
mod bell;
mod build;
mod chip;
mod console;
mod image;
mod run;

use std::process::ExitCode;

/// Failure that ends the command early.
#[derive(Debug)]
pub enum Failure {
    /// The command cannot be carried out as given; exit code 2.
    Usage(String),
    /// A core failed, and the reason has been reported; exit code 1.
    Run,
}

const HELP: &str =
    "Builds and runs programs for bare cores: no operating system, a virtual machine for each core

Usage: isles bare build PROGRAM.c... [-o IMAGE] [-D.. -I.. -O..]
       isles bare build CRATE [--bin NAME] [-o IMAGE]
       isles bare run --cores LIST [OPTION]... -- IMAGE [ARGUMENT]...
       isles bare run --table FILE [OPTION]...

Build:
  -o IMAGE        Image file [default: out/NAME.img]
  --bin NAME      Program of the crate [default: the one named like the crate]

Run:
  --cores LIST    Cores of the chip, as in 0,1,5,24,47 or 0-7, rank 0 first; allowed: 0 to 47
  --table FILE    Several programs, one per line: LIST IMAGE [ARGUMENT]...; # begins a comment
  --tile MHZ      Clock of the tiles, readable by programs [default: 533]
  --mesh MHZ      Clock of the mesh, readable by programs [default: 800]
  --limit SECONDS End the run after that time
  --times         Print how long each core took to reach main
";

fn main() -> ExitCode {
    let words: Vec<String> = match std::env::args_os().skip(1).map(|word| word.into_string()).collect() {
        Ok(words) => words,
        Err(word) => return refuse(&format!("the argument {word:?} is not text; allowed: UTF-8")),
    };
    // `isles bare ..` passes on its own verb.
    let words = words.strip_prefix(&[String::from("bare")]).unwrap_or(&words);
    let done = match words.split_first() {
        Some((verb, rest)) if verb == "build" && !asks_for_help(rest) => build::execute(rest),
        Some((verb, rest)) if verb == "run" && !asks_for_help(rest) => run::execute(rest),
        Some((verb, _)) if ["build", "run", "help", "--help", "-h"].contains(&verb.as_str()) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some((verb, _)) if verb == "--version" => {
            println!("isles-bare {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some((verb, _)) => Err(Failure::Usage(format!("unknown command {verb}; allowed: build, run"))),
        None => Err(Failure::Usage(String::from(
            "a command is missing; allowed: build, run; see isles bare --help",
        ))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(line)) => refuse(&line),
        Err(Failure::Run) => ExitCode::from(1),
    }
}

/// Returns `true` if the words before `--` ask for help.
fn asks_for_help(words: &[String]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h")
}

fn refuse(line: &str) -> ExitCode {
    eprintln!("error: {line}");
    ExitCode::from(2)
}
