//! `isles report --html`: a run and the page in one file, to be opened without a network.
//!
//! The file has the answers of the server as data; its policy allows only its own script and style, by their hashes.
//! Invariants: no text of a run can close the element that contains it; the file makes no requests.

use crate::assets::{SCRIPT, STYLE};
use crate::guard::Role;
use crate::routes::RunAnswer;
use crate::server::cut_of;
use crate::stream::ReaderSnapshot;
use isles_telemetry::LogError;
use isles_view::{History, LINES_MAX, OutputView, ReplayedRun, RunView, Series, Snapshot, Summary};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum number of snapshots in a report; curves have more values.
const SNAPSHOTS_MAX: u64 = 120;

/// Maximum number of values of all snapshots in a report, so that one of a thousand places stays a few megabytes.
const VALUES_MAX: u64 = 60_000;

/// Curves of a report.
const CURVES: [&str; 6] = ["busy", "queue", "tasks", "bytes_sent", "memory_bytes", "watt"];

/// Maximum number of places whose curves are in a report.
const CURVE_PLACES_MAX: u32 = 64;

/// Data in the file; `web/src/model/report.ts` reads it.
#[derive(Serialize)]
struct ReportData<'a> {
    run: RunAnswer<'a>,
    snapshots: Vec<ReaderSnapshot>,
    summary: Summary,
    histories: BTreeMap<&'static str, History>,
    /// Output of places, by place; `None` if it is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<BTreeMap<u32, OutputView>>,
}

/// Returns the report of the run in `directory` as HTML, and the end of a truncated log.
///
/// # Errors
/// Its log cannot be replayed at all.
pub fn report(directory: &Path) -> Result<(String, Option<String>), LogError> {
    ReplayedRun::open(directory).map(|mut run| (html(&mut run), cut_of(&run)))
}

/// Returns the HTML of the report.
fn html(run: &mut ReplayedRun) -> String {
    let places = u64::from(run.description().places.max(1));
    let count = (VALUES_MAX / places).clamp(2, SNAPSHOTS_MAX);
    let length = run.length().map_or(0, |(length, _)| length);
    let mut snapshots: Vec<Snapshot> =
        (0..count).filter_map(|index| run.at(length * index / (count - 1))).collect();
    let summary = run.summary();
    snapshots.extend(run.at(summary.working_ms));
    snapshots.sort_by_key(|snapshot| snapshot.seq);
    snapshots.dedup_by_key(|snapshot| snapshot.seq);
    let shown: Vec<u32> = (0..run.description().places.min(CURVE_PLACES_MAX)).collect();
    let curve = |name: &'static str| Some((name, run.history(&shown, Series::of_name(name)?, 0, u64::MAX)));
    let histories = CURVES.into_iter().filter_map(curve).collect();
    let outputs = outputs(run);
    let snapshots = snapshots.into_iter().map(ReaderSnapshot::from).collect();
    let data = ReportData { run: RunAnswer::of(run, Role::View), snapshots, summary, histories, outputs };
    let data = serde_json::to_string(&data).unwrap_or_default().replace('<', "\\u003c");
    let script = SCRIPT.replace("</script", "<\\/script");
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types lit-html",
        hash(&script),
        hash(STYLE)
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>Isles</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<script type=\"application/json\" id=\"isles-report\">{data}</script>\n\
         <script type=\"module\">{script}</script>\n</body>\n</html>\n"
    )
}

/// Returns the last lines of the places that have printed any; fewer of each in a run of many places.
fn outputs(run: &ReplayedRun) -> Option<BTreeMap<u32, OutputView>> {
    let places = run.description().places;
    let most = (LINES_MAX / places.max(1) as usize).max(10);
    let mut outputs = BTreeMap::new();
    for place in 0..places {
        let mut output = run.output(place, 0);
        if !output.recorded {
            return None;
        }
        let over = output.lines.len().saturating_sub(most);
        output.lines.drain(..over);
        output.dropped += over as u64;
        if !output.lines.is_empty() {
            outputs.insert(place, output);
        }
    }
    Some(outputs)
}

/// Returns the source expression of the policy that allows this text.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", base64(&Sha256::digest(text.as_bytes())))
}

/// Encodes bytes in base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let value = (word >> (18 - 6 * digit)) as usize & 63;
            text.push(if digit <= group.len() { char::from(ALPHABET[value]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text, "RFC 4648, section 10");
        }
    }

    #[test]
    fn a_hash_is_that_of_the_standard() {
        // FIPS 180-2, appendix B.1, in base64.
        assert_eq!(hash("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
    }
}
