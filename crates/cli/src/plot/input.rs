//! Files of results: read, and recognised by their contents, not by their names.
//!
//! Knows only the fields that figures need, so a file may have more. The file of each shape knows what the fields mean
//! for a picture. Invariant: a file that was read has at least one row, and only finite numbers.

use super::InputOrigin;
use super::bench::BenchResults;
use super::repro::ReproResults;
use super::run::{ChipSummary, RunResults};
use super::sweep::SweepResults;
use super::table::CsvTable;
use isles_app::runs::refusal;
use isles_app::{Failure, input};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;

/// File with its contents.
pub struct InputFile {
    /// Path as the user gave it.
    pub path: String,
    pub content: Content,
}

/// Contents of a file, by its shape.
pub enum Content {
    /// JSON of `isles run`.
    Run(RunResults),
    /// JSON of `--summary`.
    Summary(ChipSummary),
    /// CSV of `isles sweep`.
    Sweep(SweepResults),
    /// JSON or CSV of `isles repro`.
    Repro(ReproResults),
    /// JSON of `isles bench`.
    Bench(BenchResults),
    /// Any other CSV.
    Table(CsvTable),
}

impl Content {
    /// Returns the shape in words.
    pub fn shape(&self) -> &'static str {
        match self {
            Content::Run(_) => "the JSON of a run",
            Content::Summary(_) => "the summary of a run on a modelled chip",
            Content::Sweep(_) => "the CSV of a sweep",
            Content::Repro(_) => "the rows of repro",
            Content::Bench(_) => "the JSON of bench",
            Content::Table(_) => "a CSV with a line of names",
        }
    }

    pub fn origin(&self) -> InputOrigin {
        match self {
            Content::Run(run) => run.origin(),
            Content::Summary(summary) => summary.origin(),
            Content::Repro(repro) => repro.origin(),
            Content::Bench(bench) => bench.origin(),
            Content::Sweep(sweep) => sweep.origin(),
            Content::Table(_) => InputOrigin::default(),
        }
    }
}

/// Returns the files for which `of` returns a content, with that content.
pub fn holding<'a, T>(
    files: &'a [InputFile],
    of: impl Fn(&'a Content) -> Option<&'a T>,
) -> Vec<(&'a InputFile, &'a T)> {
    files.iter().filter_map(|file| Some((file, of(&file.content)?))).collect()
}

/// Largest length of a file; no picture needs more points.
const BYTES_MAX: u64 = 256 << 20;

/// Allowed contents of a file.
const ALLOWED: &str = "the JSON of isles run, repro, bench or --summary, the CSV of isles sweep or repro, or a CSV \
                       with a line of names and lines of numbers";

impl InputFile {
    /// Reads a file and recognises its shape.
    ///
    /// # Errors
    /// It cannot be read, or has none of the shapes; one line that names it.
    pub fn read(path: &str) -> Result<InputFile, Failure> {
        let unreadable = |cause: &dyn std::fmt::Display| {
            refusal("a file of results", path, &format!("a file that can be read ({cause})"))
        };
        let bytes = match path {
            "-" => input::bytes_of(std::io::stdin().lock(), BYTES_MAX),
            path => input::bytes(path, BYTES_MAX),
        };
        let bytes = bytes.map_err(|cause| unreadable(&cause))?;
        let text = String::from_utf8(bytes).map_err(|_| unreadable(&"it is not UTF-8 text"))?;
        InputFile::parse(path, &text)
    }

    /// Recognises the shape of the text of the file `path`.
    ///
    /// # Errors
    /// It has none of the shapes.
    pub fn parse(path: &str, text: &str) -> Result<InputFile, Failure> {
        let text = text.trim_start_matches('\u{feff}');
        let content = match text.trim_start().chars().next() {
            None => Err("is empty".to_owned()),
            Some('{' | '[') => from_json(text),
            Some(_) => from_csv(text),
        };
        let content =
            content.map_err(|fault| Failure::Usage(format!("{path:?} {fault}; allowed: {ALLOWED}")))?;
        Ok(InputFile { path: path.to_owned(), content })
    }

    /// Returns a failure that names this file.
    pub fn refusal(&self, fault: &str) -> Failure {
        Failure::Usage(format!("{:?} is {fault}", self.path))
    }

    /// Returns its name without folder and extension, for legends.
    pub fn label(&self) -> String {
        let stem = Path::new(&self.path).file_stem();
        stem.map_or_else(|| self.path.clone(), |stem| stem.to_string_lossy().into_owned())
    }
}

/// Returns the contents of a JSON document, or the fault in words.
fn from_json(text: &str) -> Result<Content, String> {
    let value: Value = serde_json::from_str(text).map_err(|fault| format!("is not JSON ({fault})"))?;
    let schema = value["schema"].as_str().unwrap_or_default();
    if schema.starts_with("isles.chip-summary.") {
        return fields(value).map(Content::Summary);
    }
    if schema.starts_with("isles.repro.") {
        return ReproResults::of_json(fields(value)?).map(Content::Repro);
    }
    if value["run"].is_object() {
        return fields(value).map(Content::Run);
    }
    if value["format"].is_u64() && value["groups"].is_array() {
        return BenchResults::of_json(value).map(Content::Bench);
    }
    Err(match &value {
        Value::Object(fields) if fields.is_empty() => "holds JSON without fields".to_owned(),
        Value::Object(fields) => {
            let names: Vec<String> =
                fields.keys().take(5).map(|name| name.escape_debug().to_string()).collect();
            format!("holds JSON with the fields {}", names.join(", "))
        }
        _ => "holds JSON that is not an object".to_owned(),
    })
}

/// Reads the fields that a figure needs, or returns the fault in words.
pub fn fields<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|fault| format!("does not match its schema ({fault})"))
}

/// Returns the contents of a CSV, or the fault in words.
fn from_csv(text: &str) -> Result<Content, String> {
    let table = CsvTable::parse(text)?;
    if ["experiment", "figure", "published", "ours", "band", "basis"].iter().all(|name| table.has(name)) {
        return ReproResults::of_csv(&table).map(Content::Repro);
    }
    if ["places", "governor", "time_s", "energy_j"].iter().all(|name| table.has(name)) {
        return SweepResults::of_csv(&table).map(Content::Sweep);
    }
    Ok(Content::Table(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_shapes_are_named_with_what_they_hold() {
        let fault = |text: &str| InputFile::parse("a.json", text).err().unwrap().to_string();
        for (text, says) in [
            ("", r#""a.json" is empty; allowed: the JSON of isles run"#),
            (" \n", "is empty"),
            ("{\"a\": ", "is not JSON (EOF"),
            ("{\"a\": NaN}", "is not JSON (expected"),
            ("{}", "holds JSON without fields"),
            ("{\"a\": 1, \"b\": 2}", "holds JSON with the fields a, b"),
            ("[1, 2]", "holds JSON that is not an object"),
            ("{\"schema\": \"isles.repro.1\"}", "does not match its schema (missing field `chip`"),
            ("just some words", "has one column"),
        ] {
            let fault = fault(text);
            assert!(fault.contains(says), "{says}: {fault}");
        }
    }
}
