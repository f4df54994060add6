//! Broadcasts of the lengths and with the trees that somebody asks for, beside the published ones.
//!
//! Knows how they are said; what they take, `collective` finds. Invariant: they are rows without a published figure.

use super::collective::{self, BROADCAST};
use super::row::Row;
use crate::runs::{numbers, refusal};
use clap::Args;
use isles_apps::registry::Failure;
use isles_chip::Chip;

/// Lines of a message at most: half of a second cache.
const LINES_MAX: u32 = 4096;

/// The arguments of `isles repro` that ask for more broadcasts.
#[derive(Args)]
pub struct RequestArguments {
    /// For `broadcast`: further lengths, in lines of 32 bytes with commas, such as 4,16; of every form
    #[arg(long, value_name = "N,N", allow_hyphen_values = true)]
    lines: Option<String>,
    /// For --lines: how many children a place of a tree has, with commas, such as 2,7 [default: 47]
    #[arg(long, value_name = "K,K", allow_hyphen_values = true)]
    children: Option<String>,
}

/// What is asked for, at least one of each.
pub struct Request {
    lines: Vec<u32>,
    children: Vec<u32>,
}

impl RequestArguments {
    /// What they ask for, of the experiments of these names; nothing if they say nothing.
    ///
    /// # Errors
    /// What cannot be, or has no meaning.
    pub fn read(&self, names: &[String]) -> Result<Option<Request>, Failure> {
        let most = collective::CORES - 1;
        let children = self.children.as_deref();
        let Some(lines) = self.lines.as_deref() else {
            let alone = |children| refusal("--children", children, "nothing without --lines");
            return children.map_or(Ok(None), |children| Err(alone(children)));
        };
        if !names.iter().any(|name| name == BROADCAST.name) {
            let allowed = format!("nothing without the experiment {}", BROADCAST.name);
            return Err(refusal("--lines", lines, &allowed));
        }
        let list = |flag, list, most| {
            let allowed = format!("whole numbers from 1 to {most}, with commas");
            numbers(flag, list, &allowed, |number| (1..=most).contains(number))
        };
        let lines = list("--lines", lines, LINES_MAX)?;
        let children = children.map(|children| list("--children", children, most)).transpose()?;
        Ok(Some(Request { lines, children: children.unwrap_or_else(|| vec![most]) }))
    }
}

impl Request {
    /// The rows, length by length.
    pub fn rows(&self, chip: &Chip) -> Vec<Row> {
        self.lines.iter().flat_map(|lines| collective::asked(chip, *lines, &self.children)).collect()
    }
}
