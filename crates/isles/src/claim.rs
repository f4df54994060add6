//! Files that a result must stay apart from: those that the computation reads, and those of its other results.
//!
//! One rule for both, so that no command has one of its own: what is read would be lost, what is written twice torn.
//! Checks nothing by itself: [`Destination::check`] asks. Invariant: files are compared, not their names.

use crate::destination::{Destination, is_one_file};
use std::path::PathBuf;

/// A file that something else in the same run needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is read.
    Read {
        /// Where it is.
        path: PathBuf,
        /// What it is: `the graph`.
        what: &'static str,
    },
    /// Another result goes there.
    Written {
        /// Where that is.
        destination: Destination,
        /// The flag or variable that said so.
        source: String,
    },
}

impl Claim {
    /// That a file is read; `what` is for example `the graph`.
    pub fn read(path: impl Into<PathBuf>, what: &'static str) -> Claim {
        Claim::Read { path: path.into(), what }
    }

    /// That a result goes to `destination`, because `source` said so.
    pub fn written(destination: &Destination, source: &str) -> Claim {
        Claim::Written { destination: destination.clone(), source: source.to_owned() }
    }

    /// What is allowed instead, if a result at `wanted` would be in the way.
    pub(crate) fn refusal(&self, wanted: &Destination) -> Option<String> {
        match (self, wanted) {
            (Claim::Read { path, what }, Destination::File { path: wanted, .. }) => (path.exists()
                && is_one_file(path, wanted))
            .then(|| format!("another file than {what}, which is read")),
            (Claim::Read { .. }, Destination::Standard) => None,
            (Claim::Written { destination, source }, wanted) => {
                destination.is_same_as(wanted).then(|| format!("another file than that of {source}"))
            }
        }
    }
}
