//! The check of answers: each query is evaluated again at one place, over the same data, by `spareval`.
//!
//! The data is read again, and `spareval` evaluates the whole query, so this program's joins and exchanges are not
//! involved. Invariant: an answer is confirmed only if it has the same rows as that of `spareval`, with the same
//! multiplicities.

use crate::answer::Answer;
use crate::load::source::{DataSource, OpenSource};
use crate::load::{LoadFault, load_alone};
use crate::queries::NamedQuery;
use crate::query::rest;
use isles_app::Failure;
use isles_app::frame::{Verification, count};

/// Checks the answers of `queries` over `sources`.
///
/// # Errors
/// The data can no longer be read.
pub fn against_spareval(
    sources: &[OpenSource],
    queries: &[NamedQuery],
    answers: &[Option<Answer>],
) -> Result<Verification, Failure> {
    let heads: Vec<DataSource> = sources.iter().map(|open| open.source.clone()).collect();
    let files = sources.iter().filter(|open| matches!(open.source, DataSource::File { .. }));
    let contents: Vec<Vec<u8>> = files.map(|open| open.bytes.clone()).collect();
    let loaded = load_alone(&heads, &contents).map_err(|fault| match fault {
        LoadFault::Source(text) => Failure::Usage(text),
        LoadFault::Run(error) => Failure::Run(error),
    })?;
    let mut others = Vec::new();
    for (query, answer) in queries.iter().zip(answers) {
        let parsed = query.parsed().map_err(Failure::Usage)?;
        let expected = rest::reference(&parsed, &loaded.graphs, &loaded.peers.dictionary());
        let expected = expected.map_err(|fault| Failure::Ended(format!("{}: {fault}", query.name)))?;
        let is_same = match (answer, expected) {
            // Without an order, the solutions left by a limit are unspecified; their number is not.
            (Some(own), rest::Reference::Rows(rows)) => own.rows() == rows,
            (Some(own), rest::Reference::Answer(mut expected)) => {
                expected.sort();
                own.digest() == expected.digest()
            }
            (None, _) => false,
        };
        if !is_same {
            others.push(query.name.clone());
        }
    }
    let all = count(queries.len() as u64, "answer is that", "answers are those");
    let text = match others.first() {
        None => format!("{all} of spareval"),
        Some(first) => format!("{} of {} differ from spareval, {first} first", others.len(), queries.len()),
    };
    Ok(Verification { holds: others.is_empty(), text })
}
