//! Failures of a command, and their exit codes.

use crate::console;
use isles::{EXIT_CLOSED_PIPE, LaunchError, RunReport, WriteError};
use std::fmt;

/// Reason why an application ended without a result.
#[derive(Debug)]
pub enum Failure {
    /// The request cannot be carried out: exit code 2, and nothing was started.
    Usage(String),
    /// The run failed: exit code 1.
    Run(isles::Error),
    /// The result is wrong: exit code 1. The text names the reference.
    WrongResult(String),
    /// A run in another process failed: exit code 1.
    Ended(String),
    /// A result could not be written: exit code 1, or 141 if the only fault is a closed standard output.
    Output(WriteError),
}

impl Failure {
    /// Standard output could not be written.
    pub fn stdout(cause: std::io::Error) -> Failure {
        Failure::Output(WriteError::standard(cause))
    }

    /// Returns the first failure of `results`, and prints the others. All are evaluated, so one failed write does not
    /// prevent the others.
    ///
    /// # Errors
    /// That failure.
    pub fn first_of(results: impl IntoIterator<Item = Result<(), Failure>>) -> Result<(), Failure> {
        let failures: Vec<Failure> = results.into_iter().filter_map(Result::err).collect();
        let (closed, others): (Vec<_>, Vec<_>) = failures.into_iter().partition(Failure::is_quiet);
        let mut others = others.into_iter();
        let first = others.next();
        others.for_each(|failure| console::notice(format_args!("error: {failure}")));
        first.or(closed.into_iter().next()).map_or(Ok(()), Err)
    }

    /// Returns `true` if the only fault is a closed standard output, which is not reported.
    pub fn is_quiet(&self) -> bool {
        matches!(self, Failure::Output(unwritten) if unwritten.is_closed_output())
    }

    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Output(_) if self.is_quiet() => EXIT_CLOSED_PIPE,
            Failure::Run(_) | Failure::WrongResult(_) | Failure::Ended(_) | Failure::Output(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) | Failure::Ended(text) => f.write_str(text),
            Failure::WrongResult(text) => write!(f, "the result is not confirmed: {text}"),
            Failure::Run(error) => error.fmt(f),
            Failure::Output(unwritten) => unwritten.fmt(f),
        }
    }
}

/// Result and report of a run, and the failures of files that could not be written.
pub type EndedRun = ((isles::Result<()>, RunReport), Vec<Failure>);

/// Returns the ended run, even if a file could not be written.
///
/// # Errors
/// The run could not be started, or diverged from its tape.
pub fn ended(run: Result<(isles::Result<()>, RunReport), LaunchError>) -> Result<EndedRun, Failure> {
    match run {
        Ok(ended) => Ok((ended, Vec::new())),
        Err(LaunchError::Output { unwritten, ended }) => {
            Ok((*ended, unwritten.into_iter().map(Failure::Output).collect()))
        }
        Err(error @ LaunchError::Diverged { .. }) => Err(Failure::Ended(error.to_string())),
        Err(error) => Err(Failure::Usage(error.to_string())),
    }
}

impl From<WriteError> for Failure {
    fn from(unwritten: WriteError) -> Self {
        Failure::Output(unwritten)
    }
}

impl From<isles::ConfigError> for Failure {
    fn from(error: isles::ConfigError) -> Self {
        Failure::Usage(error.to_string())
    }
}
