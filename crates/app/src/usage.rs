//! Parsing of arguments, with errors in one line.
//!
//! clap's own messages have several lines and advice. Invariant: a refusal names the source, the value and what is
//! allowed.

use crate::companion::check_version;
use crate::{CommandArguments, Failure, console};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, FromArgMatches};
use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

/// Exit code for invalid arguments.
const EXIT_USAGE: u8 = 2;

/// Reads `words`, of which the first is the program, by `whole`, and the settings that every command has.
///
/// # Errors
/// The process must end with this code; the reason has been printed.
pub fn matches(whole: &Command, words: impl IntoIterator<Item = OsString>) -> Result<ArgMatches, ExitCode> {
    check_version(whole.get_name()).map_err(|refused| outcome(Err(refused)))?;
    let matches = match whole.clone().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            console::notice(error.to_string().trim_end());
            return Err(ExitCode::from(EXIT_USAGE));
        }
        Err(error) if !error.use_stderr() => return Err(outcome(print_help(&error))),
        Err(error) => {
            console::notice(one_line(whole, &error));
            return Err(ExitCode::from(EXIT_USAGE));
        }
    };
    let read =
        CommandArguments::from_arg_matches(&matches).map_err(|error| Failure::Usage(error.to_string()));
    let read = read.and_then(|own| isles::read_command_settings(&own.flags()).map_err(Failure::from));
    if let Err(refused) = read {
        return Err(outcome(Err(refused)));
    }
    Ok(matches)
}

/// The exit code, and the line that goes with it.
pub fn outcome(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_quiet() {
                console::notice(format_args!("error: {failure}"));
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Prints the requested help or version.
fn print_help(error: &clap::Error) -> Result<(), Failure> {
    console::write_to_stdout(|_| error.print()).map_err(Failure::stdout)
}

/// Returns the error in the arguments, without general advice.
fn one_line(whole: &Command, error: &clap::Error) -> String {
    let message = invalid_utf8(error).or_else(|| bad_value(error));
    message.or_else(|| unknown_command(whole, error)).unwrap_or_else(|| first_sentence(error))
}

/// The first argument that is not UTF-8, if the error is about one. Launched programs can read such arguments.
fn invalid_utf8(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg, ContextKind::InvalidValue];
    let shown = kinds.into_iter().filter_map(|kind| context(error, kind)).collect::<String>();
    if error.kind() != ErrorKind::InvalidUtf8 && !shown.contains(char::REPLACEMENT_CHARACTER) {
        return None;
    }
    let argument = std::env::args_os().find(|argument| argument.to_str().is_none())?;
    Some(format!("error: the argument {argument:?} is not text; allowed: UTF-8"))
}

/// Returns the text that clap keeps with an error under `kind`.
fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => Some(texts.join(", ")),
        _ => None,
    }
}

/// Returns the innermost command named before the word `end`, and its full name.
fn named<'a>(whole: &'a Command, end: &str) -> (&'a Command, String) {
    let (mut innermost, mut name) = (whole, String::from("isles"));
    for word in std::env::args_os().skip(1).take_while(|word| word != end) {
        if let Some(next) = innermost.find_subcommand(&word) {
            innermost = next;
            name = format!("{name} {}", word.display());
        }
    }
    (innermost, name)
}

/// Returns the error for an unknown or missing command, with the existing ones.
fn unknown_command(whole: &Command, error: &clap::Error) -> Option<String> {
    let asked = context(error, ContextKind::InvalidSubcommand);
    let asked = asked.or_else(|| context(error, ContextKind::InvalidArg))?;
    let (above, name) = named(whole, &asked);
    let known: Vec<&str> = above.get_subcommands().map(Command::get_name).collect();
    let fault = match error.kind() {
        ErrorKind::InvalidSubcommand => format!("has no command {asked:?}"),
        ErrorKind::UnknownArgument if known.is_empty() => return None,
        ErrorKind::UnknownArgument => format!("needs a command before {asked:?}"),
        ErrorKind::MissingSubcommand => "needs a command".to_owned(),
        _ => return None,
    };
    let meant = context(error, ContextKind::SuggestedSubcommand);
    let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"));
    Some(format!("error: {name} {fault}{meant}; allowed: {}", known.join(", ")))
}

/// Returns the error for an invalid value, in the form that the façade uses for places and machines, or for a missing
/// one.
fn bad_value(error: &clap::Error) -> Option<String> {
    let allowed = match error.kind() {
        ErrorKind::InvalidValue => context(error, ContextKind::ValidValue)?,
        ErrorKind::ValueValidation => error.source()?.to_string(),
        _ => return None,
    };
    let (argument, value) =
        (context(error, ContextKind::InvalidArg)?, context(error, ContextKind::InvalidValue)?);
    if allowed.is_empty() {
        return Some(format!("error: a value is missing: {argument}"));
    }
    let flag = argument.split(' ').next()?;
    Some(format!("error: {flag} is {value:?}; allowed: {allowed}"))
}

/// Returns clap's message, with the usage of the command if words are missing or too many.
fn first_sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let advice = ["Usage:", "For more information"];
    let notes =
        text.lines().map(str::trim).take_while(|line| !advice.iter().any(|start| line.starts_with(start)));
    // An unknown flag is hardly ever meant as a value.
    let is_of_use = |line: &&str| !line.is_empty() && !line.starts_with("tip: to pass ");
    let notes: Vec<&str> = notes.filter(is_of_use).collect();
    let is_word = |argument: String| !argument.starts_with('-');
    let is_about_words = match error.kind() {
        ErrorKind::MissingRequiredArgument => true,
        ErrorKind::UnknownArgument => context(error, ContextKind::InvalidArg).is_some_and(is_word),
        _ => false,
    };
    let usage = text.lines().find_map(|line| line.strip_prefix("Usage: ")).filter(|_| is_about_words);
    let usage = usage.map(|usage| format!("; usage: {usage}")).unwrap_or_default();
    notes.join(" ").replace(" tip: ", "; tip: ") + &usage
}
