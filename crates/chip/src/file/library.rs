//! The built-in chips, and chip files by path; the only file of this crate that reads files.

use super::{Fault, TEXT_BYTES_MAX};
use crate::chip::Chip;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// The built-in chips: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("scc", include_str!("../../../../chips/scc.toml")),
    ("bluegene-p", include_str!("../../../../chips/bluegene-p.toml")),
    ("c6678", include_str!("../../../../chips/c6678.toml")),
    ("mesh", include_str!("../../../../chips/mesh.toml")),
    ("opteron-cluster", include_str!("../../../../chips/opteron-cluster.toml")),
    ("xeon-cluster", include_str!("../../../../chips/xeon-cluster.toml")),
];

/// Error of the search for a chip.
#[derive(Debug)]
pub enum FindError {
    /// No chip has this name; a path has a `/` or ends in `.toml`.
    NoSuchChip(String),
    /// The file cannot be read.
    Unreadable(String, io::Error),
    /// The file has faults, at least one.
    Faulty(Vec<Fault>),
}

impl fmt::Display for FindError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchChip(name) => {
                let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
                write!(out, "chip is {name:?}; allowed: {}, or a path that ends in .toml", names.join(", "))
            }
            Self::Unreadable(path, cause) => write!(out, "cannot read the chip file {path}: {cause}"),
            Self::Faulty(faults) => {
                let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
                write!(out, "{}", lines.join("\n"))
            }
        }
    }
}

impl std::error::Error for FindError {}

impl Chip {
    /// Finds a chip by name, or reads the file at a path. A path has a `/` or ends in `.toml`.
    ///
    /// # Errors
    /// [`FindError`]: there is no such chip, or its file is unreadable or has faults.
    pub fn find(name: &str) -> Result<Self, FindError> {
        if is_path(name) {
            let text = read(name).map_err(|cause| FindError::Unreadable(name.to_owned(), cause))?;
            return Self::parse(name, &text).map_err(FindError::Faulty);
        }
        let found = BUILT_IN.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| FindError::NoSuchChip(name.to_owned()))?;
        Self::parse(&format!("chips/{name}.toml"), text).map_err(FindError::Faulty)
    }
}

/// Returns `true` if `name` is the path of a chip file rather than the name of a chip.
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// Reads the text of a file, up to a byte more than is allowed.
fn read(path: &str) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(TEXT_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}
