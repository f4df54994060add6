//! Why a command ends without a result, and with which exit code.

use std::fmt;

/// Why an application ended without a result.
#[derive(Debug)]
pub enum Failure {
    /// What was asked for cannot be done: exit code 2, and nothing was started.
    Usage(String),
    /// The run failed: exit code 1.
    Run(isles::Error),
    /// The result is not what it must be: exit code 1. What it was checked against.
    Refuted(String),
    /// A run in another process failed: exit code 1.
    Ended(String),
    /// A result could not be written: exit code 1.
    Output {
        /// Where it was to go.
        path: String,
        /// What the system says.
        cause: std::io::Error,
    },
}

impl Failure {
    /// Standard output could not be written.
    pub fn stdout(cause: std::io::Error) -> Failure {
        Failure::Output { path: "standard output".to_owned(), cause }
    }

    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Run(_) | Failure::Refuted(_) | Failure::Ended(_) | Failure::Output { .. } => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) | Failure::Ended(text) => f.write_str(text),
            Failure::Refuted(text) => write!(f, "the result is not confirmed: {text}"),
            Failure::Run(error) => error.fmt(f),
            Failure::Output { path, cause } => write!(f, "cannot write {path}: {cause}"),
        }
    }
}

impl From<isles::LaunchError> for Failure {
    fn from(error: isles::LaunchError) -> Self {
        match error {
            isles::LaunchError::Output { path, cause } => Failure::Output { path, cause },
            error @ isles::LaunchError::Diverged { .. } => Failure::Ended(error.to_string()),
            error => Failure::Usage(error.to_string()),
        }
    }
}

impl From<isles::ConfigError> for Failure {
    fn from(error: isles::ConfigError) -> Self {
        Failure::Usage(error.to_string())
    }
}
