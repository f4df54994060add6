//! Runs of an application in separate processes, some in parallel, and their summaries.
//!
//! Sweeps, comparisons of seeds and experiments use them. Invariant: a run writes only its summary, and ends with the
//! process that started it.

use crate::Failure;
use crate::companion::{Companion, spawn_failure};
use crate::console::Progress;
use crate::frame::NO_FILES;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command as Arguments};
use isles::{Claim, FLAGS_VARIABLE, Flag, FlagGroup, SETTINGS, SWEEP_VARIABLE, setting};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Returns the results of `one` for all numbers below `number`, some in parallel, in their order. `unit` is their name
/// for the progress line.
///
/// # Errors
/// The first failure; no more are started after it.
pub fn all<T: Send>(
    number: usize,
    unit: &'static str,
    one: impl Fn(usize) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    // The first runs alone, so that an error in the application's arguments is reported once.
    let mut results: Vec<Mutex<Option<Result<T, Failure>>>> = Vec::new();
    results.resize_with(number, Mutex::default);
    let next = AtomicUsize::new(1);
    let progress = Mutex::new((Progress::new(number as u64, unit), 0));
    let report = |more: u64| {
        let (progress, done) = &mut *progress.lock().unwrap_or_else(|poison| poison.into_inner());
        *done += more;
        if more == 0 || progress.is_due() {
            progress.report(*done);
        }
    };
    report(0); // the first run may be long
    let one = |this: usize| -> bool {
        let result = one(this);
        let good = result.is_ok();
        *results[this].lock().unwrap_or_else(|poison| poison.into_inner()) = Some(result);
        report(1);
        good
    };
    if number > 0 && one(0) {
        let workers = thread::available_parallelism().map_or(1, usize::from).min(number);
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        // Relaxed: each number is taken once, and orders no other memory.
                        let this = next.fetch_add(1, Ordering::Relaxed);
                        if this >= number || !one(this) {
                            // The other threads find no more numbers.
                            next.fetch_max(number, Ordering::Relaxed);
                            return;
                        }
                    }
                });
            }
        });
    }
    let results = results.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_default());
    results.collect()
}

/// Runs `app` with its own arguments and the flags of places and chip; returns the summary.
///
/// # Errors
/// The run failed.
pub fn summary<'a>(
    app: &str,
    own: &'a [String],
    flags: impl IntoIterator<Item = &'a str>,
) -> Result<Value, Failure> {
    result(app, own.iter().map(String::as_str).chain(["--summary", "-"]).chain(flags))
}

/// Returns the program of the application `app`; builds it if missing.
///
/// # Errors
/// There is no such application, or it cannot be built.
pub fn program(app: &str) -> Result<PathBuf, Failure> {
    Ok(Companion::application(app).command()?.get_program().into())
}

/// Runs `app` with these words; returns its standard output, which is JSON.
///
/// # Errors
/// The run failed.
pub fn result<'a>(app: &str, words: impl IntoIterator<Item = &'a str>) -> Result<Value, Failure> {
    let mut command = Companion::application(app).command()?;
    as_child_run(&mut command).args(words);
    let cause = |cause| Failure::Ended(format!("cannot start a run: {cause}"));
    let ended = refused(command.output().map_err(cause)?)?;
    parsed(&ended.stdout)
}

/// Runs a user's program with its own arguments and `flags` for places and chip, passed as environment variables;
/// returns the summary. The program writes it to `file`, which is removed.
///
/// # Errors
/// The run failed, or the program is none of Isles.
pub fn program_summary(
    program: &str,
    own: &[String],
    flags: &[Flag<'_>],
    file: &Path,
) -> Result<Value, Failure> {
    let mut command = Command::new(program);
    as_child_run(&mut command).args(own).env(setting("summary").variable, file);
    let names: Vec<String> = flags.iter().map(|flag| format!("{}={}", flag.variable, flag.name)).collect();
    command.env(FLAGS_VARIABLE, names.join(","));
    command.envs(flags.iter().map(|flag| (flag.variable, flag.value)));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let ended = command.output().map_err(|cause| spawn_failure(&command, &cause));
    let summary = fs::read(file);
    let _ = fs::remove_file(file); // of a run that failed there is none
    refused(ended?)?;
    let none = |_| {
        let allowed =
            "a program that is built with Isles and starts a run; this one ended without starting one";
        refusal("the program", program, allowed)
    };
    parsed(&summary.map_err(none)?)
}

/// Configures `command` for a run that writes only the requested output, and ends with this process.
fn as_child_run(command: &mut Command) -> &mut Command {
    // All runs would write to the same files, and their output is parsed here.
    let groups = [FlagGroup::Files, FlagGroup::Command];
    for row in SETTINGS.iter().filter(|row| row.flag.is_some_and(|flag| groups.contains(&flag.group))) {
        command.env_remove(row.variable);
    }
    command
        .env(SWEEP_VARIABLE, std::process::id().to_string())
        .env_remove(setting("report").variable)
        .stdin(Stdio::null())
}

fn parsed(json: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(json)
        .map_err(|fault| Failure::Ended(format!("the result of a run cannot be read: {fault}")))
}

/// Returns the output of a program, or the error that it refused or failed with.
fn refused(ended: Output) -> Result<Output, Failure> {
    if ended.status.success() {
        return Ok(ended);
    }
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let line = stderr.lines().rev().find_map(|line| line.strip_prefix("error: "));
    let silent = || match ended.status.code() {
        Some(code) => format!("a run ended with exit code {code}, without a line that begins with `error: `"),
        None => "a run was ended by a signal".to_owned(),
    };
    let line = line.map_or_else(silent, str::to_owned);
    let usage = ended.status.code() == Some(2);
    Err(if usage { Failure::Usage(line) } else { Failure::Ended(line) })
}

/// Returns the files that the application `app` will read with these valid arguments.
///
/// # Errors
/// They are invalid, or there is no such application.
pub fn reads(app: &str, words: &[String]) -> Result<Vec<Claim>, Failure> {
    let mut command = Companion::application(app).command()?;
    let ended = command.arg("--check").args(words).stdin(Stdio::null()).output();
    let ended = ended.map_err(|cause| Failure::Ended(format!("cannot start {app}: {cause}")))?;
    let paths = String::from_utf8_lossy(&refused(ended)?.stdout).into_owned();
    let claims = paths.lines().filter_map(|line| line.split_once('\t'));
    // A sweep has only a few.
    Ok(claims.map(|(role, path)| Claim::read(path, String::leak(role.to_owned()))).collect())
}

/// Returns the arguments of an application for another process, which writes nothing; `arguments` are those of it
/// alone.
pub(crate) fn own_arguments(arguments: &Arguments, matches: &ArgMatches) -> Vec<String> {
    let mut own = Vec::new();
    for argument in arguments.get_arguments() {
        let name = argument.get_id().as_str();
        let Some(flag) = argument.get_long() else { continue };
        if matches.value_source(name) != Some(ValueSource::CommandLine) {
            continue;
        }
        let values = matches.get_raw(name).into_iter().flatten();
        let takes_values = argument.get_action().takes_values();
        own.push(format!("--{flag}"));
        own.extend(values.filter(|_| takes_values).map(|value| value.to_string_lossy().into_owned()));
    }
    own.extend(NO_FILES.map(str::to_owned));
    own
}

/// Returns the refusal of an invalid value.
pub fn refusal(source: &str, value: &str, allowed: &str) -> Failure {
    Failure::Usage(format!("{source} is {value:?}; allowed: {allowed}"))
}

/// Parses a comma-separated list of distinct whole numbers, the value of `flag`, in the given order.
///
/// # Errors
/// A word is not an allowed number; the text has what is `allowed`.
pub fn numbers(
    flag: &str,
    list: &str,
    allowed: &str,
    is_good: impl Fn(&u32) -> bool,
) -> Result<Vec<u32>, Failure> {
    let mut numbers: Vec<u32> = Vec::new();
    for word in list.split(',') {
        let number = word.trim().parse().ok().filter(&is_good);
        let number = number.ok_or_else(|| refusal(flag, list, allowed))?;
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    Ok(numbers)
}
