//! The rules about the pages of `docs/`: where links lead, how long sentences and all pages are, what tables of
//! messages hold, where output and figures come from.

mod book;
mod figure;
mod message;
mod output;
mod sentence;
mod words;

use crate::finding::Finding;
use crate::tree::Tree;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let checks: [fn(&Tree) -> Vec<Finding>; 6] =
        [book::check, figure::check, message::check, output::check, sentence::check, words::check];
    checks.iter().flat_map(|check| check(tree)).collect()
}
