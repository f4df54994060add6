//! Reasons why a known graph is unavailable.
//!
//! Each is a one-line message with a remedy. Invariant: no variant leaves a partial file behind.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Reason why a known graph is unavailable.
#[derive(Debug)]
pub enum DatasetError {
    /// No known graph has that name.
    UnknownName {
        /// The requested name.
        name: String,
    },
    /// No environment variable gives the location of the cache.
    NoCache,
    /// The cache cannot be written.
    UnwritableCache {
        /// The folder.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// A program that downloads or unpacks is not installed.
    MissingTool {
        /// Its name.
        tool: &'static str,
        /// The package it would have been used on.
        package: String,
        /// Error of the system.
        error: io::Error,
    },
    /// The package lists of this machine do not know the package.
    UnknownPackage {
        /// The package.
        package: String,
    },
    /// The package could not be downloaded.
    DownloadFailed {
        /// The package.
        package: String,
        /// The last line of the tool.
        reason: String,
    },
    /// The package could not be unpacked.
    UnpackFailed {
        /// The package.
        package: String,
        /// The last line of the tool.
        reason: String,
    },
    /// The package contains a file that differs from the recorded one.
    WrongDigest {
        /// The graph.
        name: String,
        /// The package.
        package: String,
    },
}

impl fmt::Display for DatasetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatasetError::UnknownName { name } => {
                let known: Vec<_> = super::list().iter().map(|known| known.name.as_str()).collect();
                write!(f, "unknown data set `{name}`; allowed: {}", known.join(", "))
            }
            DatasetError::NoCache => {
                write!(f, "no place for the cache: set ISLES_CACHE, XDG_CACHE_HOME or HOME")
            }
            DatasetError::UnwritableCache { path, error } => {
                write!(
                    f,
                    "cannot write the cache {}: {error}; set ISLES_CACHE to another folder",
                    path.display()
                )
            }
            DatasetError::MissingTool { tool, package, error } => {
                write!(
                    f,
                    "cannot run {tool} ({error}); the graph is in the Debian package {package}, which needs it"
                )
            }
            DatasetError::UnknownPackage { package } => {
                write!(
                    f,
                    "apt-get does not know the package {package}; run `sudo apt-get update` and try again"
                )
            }
            DatasetError::DownloadFailed { package, reason } => {
                write!(f, "cannot download {package}: {reason}")
            }
            DatasetError::UnpackFailed { package, reason } => write!(f, "cannot unpack {package}: {reason}"),
            DatasetError::WrongDigest { name, package } => {
                write!(
                    f,
                    "the package {package} holds no `{name}` with the SHA-256 recorded in datasets.toml"
                )
            }
        }
    }
}

impl std::error::Error for DatasetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DatasetError::UnwritableCache { error, .. } | DatasetError::MissingTool { error, .. } => {
                Some(error)
            }
            _ => None,
        }
    }
}
