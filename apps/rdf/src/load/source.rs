//! Sources of triples: files in the formats of RDF, and generated data; and reading a part of a file.
//!
//! Invariant: an error in a file is reported with name, line and column, and a faulty file contributes no triples.

use super::snapshot::{self, SnapshotHead};
use super::triples::{BlankNames, LocalTriples};
use super::{debian, lines, lubm};
use isles_app::{Failure, input};
use oxrdfio::{RdfFormat, RdfParser};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;

/// Largest number of generated universities.
const UNIVERSITIES_MAX: u64 = 10_000;

/// Largest accepted file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 30;

/// Source of triples, without the contents of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DataSource {
    /// A number of universities of LUBM.
    Lubm {
        /// Number of universities.
        universities: u64,
        /// `true` if the triples that the ontology implies are stated.
        is_closed: bool,
    },
    /// A file.
    File {
        /// Name of the file, as the user wrote it.
        name: String,
        /// The extension, which determines the format.
        extension: String,
        /// The IRI against which relative IRIs are resolved.
        base: String,
        /// Size of the file, in bytes.
        len: u64,
        /// The name of the graph for its triples; `None` for the default graph.
        graph: Option<String>,
    },
    /// A snapshot, which is the only source.
    Snapshot {
        /// Name of the file, as the user wrote it.
        name: String,
        /// Absolute path of the file.
        path: String,
        /// The head of the file.
        head: SnapshotHead,
    },
}

/// A source, with the contents if it is a file.
#[derive(Debug)]
pub struct OpenSource {
    /// Source of the triples.
    pub source: DataSource,
    /// The contents of a file.
    pub bytes: Vec<u8>,
}

/// Name of the source with the packages of Debian.
const DEBIAN: &str = "debian";

/// The readable formats, by their usual file extensions.
const EXTENSIONS: &str = "ttl, nt, rdf, owl, xml, nq, trig, n3, jsonld, snap";

fn format(extension: &str) -> Option<RdfFormat> {
    match extension {
        "owl" => Some(RdfFormat::RdfXml),
        other => RdfFormat::from_extension(other),
    }
}

/// Opens a source by name: `lubm:N`, `lubm-plain:N`, `debian`, or a file.
///
/// # Errors
/// [`Failure::Usage`]: there is no such source, or the file cannot be read or has no known extension.
pub fn open(name: &str) -> Result<OpenSource, Failure> {
    for (prefix, is_closed) in [("lubm:", true), ("lubm-plain:", false)] {
        if let Some(number) = name.strip_prefix(prefix) {
            let universities = number.parse().ok().filter(|count| (1..=UNIVERSITIES_MAX).contains(count));
            let universities = universities.ok_or_else(|| {
                let text = format!("--data is {name:?}; allowed: {prefix}N, N from 1 to {UNIVERSITIES_MAX}");
                Failure::Usage(text)
            })?;
            return Ok(OpenSource {
                source: DataSource::Lubm { universities, is_closed },
                bytes: Vec::new(),
            });
        }
    }
    let path = Path::new(name);
    if name == DEBIAN && !path.exists() {
        let bytes = debian::triples()?;
        let source = DataSource::File {
            name: name.to_owned(),
            extension: "nt".to_owned(),
            base: "urn:debian:".to_owned(),
            len: bytes.len() as u64,
            graph: None,
        };
        return Ok(OpenSource { source, bytes });
    }
    let extension = path.extension().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
    if !path.exists() {
        return Err(Failure::Usage(format!(
            "--data: `{name}`: no such file; allowed: a file, lubm:N, lubm-plain:N, {DEBIAN}"
        )));
    }
    if extension == snapshot::EXTENSION {
        let refused = |wrong| Failure::Usage(format!("--data: {name}: {wrong}"));
        let head = SnapshotHead::of(path).map_err(refused)?;
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let path = absolute.to_string_lossy().into_owned();
        return Ok(OpenSource {
            source: DataSource::Snapshot { name: name.to_owned(), path, head },
            bytes: Vec::new(),
        });
    }
    if format(&extension).is_none() {
        return Err(Failure::Usage(format!("--data: {name}: unknown extension; allowed: {EXTENSIONS}")));
    }
    let bytes = input::bytes(path, FILE_BYTES_MAX)
        .map_err(|fault| Failure::Usage(format!("--data: {name}: {fault}")))?;
    let base = file_iri(path);
    let len = bytes.len() as u64;
    let source = DataSource::File { name: name.to_owned(), extension, base, len, graph: None };
    Ok(OpenSource { source, bytes })
}

/// Opens a file whose triples are the named graph with the IRI of the file.
///
/// # Errors
/// [`Failure::Usage`]: it cannot be read or has no known extension.
pub fn open_graph(name: &str) -> Result<OpenSource, Failure> {
    if !Path::new(name).is_file() {
        return Err(Failure::Usage(format!("--named-graph: `{name}`: no such file; allowed: a file")));
    }
    let mut open = open(name).map_err(|failure| match failure {
        Failure::Usage(text) => Failure::Usage(text.replacen("--data", "--named-graph", 1)),
        other => other,
    })?;
    match &mut open.source {
        DataSource::File { base, graph, .. } => *graph = Some(base.clone()),
        _ => return Err(Failure::Usage(format!("--named-graph: {name}: allowed: a file of triples"))),
    }
    Ok(open)
}

/// Returns the IRI of a file.
pub fn file_iri(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    format!("file://{}", percent_encoded(&absolute.to_string_lossy()))
}

/// Returns a path, percent-encoded for an IRI.
fn percent_encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    path.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

impl DataSource {
    /// Returns the name of the source.
    pub fn name(&self) -> String {
        match self {
            DataSource::Lubm { universities, is_closed: true } => format!("lubm:{universities}"),
            DataSource::Lubm { universities, is_closed: false } => format!("lubm-plain:{universities}"),
            DataSource::File { name, .. } | DataSource::Snapshot { name, .. } => name.clone(),
        }
    }

    /// Returns `true` if the source can be read in lines at several places.
    pub fn is_by_lines(&self) -> bool {
        matches!(self, DataSource::File { extension, .. } if extension == "nt" || extension == "nq")
    }

    /// Returns the amount of work: bytes, or departments.
    pub fn work(&self) -> u64 {
        match self {
            DataSource::Lubm { universities, .. } => lubm::all_departments(*universities).count() as u64,
            DataSource::File { len, .. } => *len,
            DataSource::Snapshot { .. } => 0,
        }
    }
}

/// Returns part `part` of `parts` of `bytes`: whole lines, with about equal numbers of bytes.
pub fn whole_lines(bytes: &[u8], part: usize, parts: usize) -> Range<usize> {
    let cut = |part: usize| {
        let near = (bytes.len() as u128 * part as u128 / parts as u128) as usize;
        let feed = bytes[near..].iter().position(|byte| *byte == b'\n');
        if part == 0 { 0 } else { feed.map_or(bytes.len(), |feed| near + feed + 1) }
    };
    cut(part)..if part + 1 == parts { bytes.len() } else { cut(part + 1) }
}

/// A part of a file that one place reads.
#[derive(Clone, Copy, Debug)]
pub struct FilePart<'a> {
    /// The number of the file among the sources.
    pub file: usize,
    /// Its name.
    pub name: &'a str,
    /// The extension, which determines its format.
    pub extension: &'a str,
    /// The IRI against which relative IRIs are resolved.
    pub base: &'a str,
    /// The name of the graph for its triples; `None` for the default graph.
    pub graph: Option<&'a str>,
    /// The bytes.
    pub bytes: &'a [u8],
    /// Number of lines of the file before this part.
    pub lines_before: u64,
}

/// Number of triples between two calls of `read`.
const REPORT_EVERY: u64 = 4096;

impl FilePart<'_> {
    /// Adds its triples; calls `read` with the number of newly read ones.
    ///
    /// # Errors
    /// One line that describes the error, with file, line and column.
    pub fn read(&self, out: &mut LocalTriples, read: impl FnMut(u64)) -> Result<(), String> {
        let Some(graph) = self.graph else { return self.read_quads(out, read) };
        let (triples, quads) = (out.triples.len(), out.quads.len());
        self.read_quads(out, read)?;
        if out.quads.len() > quads {
            return Err(format!(
                "{}: it has named graphs itself; allowed for --named-graph: triples",
                self.name
            ));
        }
        out.name_triples(triples, graph);
        Ok(())
    }

    fn read_quads(&self, out: &mut LocalTriples, mut read: impl FnMut(u64)) -> Result<(), String> {
        let format = format(self.extension).ok_or_else(|| format!("{}: unknown format", self.name))?;
        if format != RdfFormat::NTriples || std::str::from_utf8(self.bytes).is_err() {
            return self.parse(format, out, &mut read);
        }
        let mut triples = out.triples.len();
        // The lines since the last plain one; the parser gets them together.
        let (mut odd, mut odd_lines, mut line_number) = (0..0, 0, 0);
        let mut start = 0;
        while start < self.bytes.len() {
            let rest = &self.bytes[start..];
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let end = (start + length + 1).min(self.bytes.len());
            let is_plain = lines::add_plain(&rest[..length], self.file, out);
            if is_plain && !odd.is_empty() {
                self.of_lines(odd, odd_lines).parse(format, out, &mut |_| ())?;
                odd = end..end;
            } else if !is_plain {
                if odd.is_empty() {
                    (odd, odd_lines) = (start..start, line_number);
                }
                odd.end = end;
            }
            if out.triples.len() as u64 >= triples as u64 + REPORT_EVERY {
                read((out.triples.len() - triples) as u64);
                triples = out.triples.len();
            }
            (start, line_number) = (end, line_number + 1);
        }
        if !odd.is_empty() {
            self.of_lines(odd, odd_lines).parse(format, out, &mut |_| ())?;
        }
        read((out.triples.len() - triples) as u64);
        Ok(())
    }

    /// Returns the part with these bytes, after `lines` lines of this part.
    fn of_lines(&self, range: Range<usize>, lines: u64) -> Self {
        FilePart { bytes: &self.bytes[range], lines_before: self.lines_before + lines, ..*self }
    }

    /// Adds the triples found by the general parser.
    fn parse(
        &self,
        format: RdfFormat,
        out: &mut LocalTriples,
        read: &mut impl FnMut(u64),
    ) -> Result<(), String> {
        let mut names = match format {
            RdfFormat::NTriples | RdfFormat::NQuads => BlankNames::ByLabel { file: self.file },
            _ => BlankNames::InOrder { file: self.file, known: FxHashMap::default() },
        };
        let parser = RdfParser::from_format(format).with_base_iri(self.base);
        let parser = parser.map_err(|error| format!("{}: {error}", self.name))?;
        let mut count = 0;
        for quad in parser.for_slice(self.bytes) {
            let quad = quad.map_err(|error| self.located(&error))?;
            out.add(&quad, &mut names);
            count += 1;
            if count % REPORT_EVERY == 0 {
                read(REPORT_EVERY);
            }
        }
        read(count % REPORT_EVERY);
        Ok(())
    }

    fn located(&self, error: &oxrdfio::RdfSyntaxError) -> String {
        let message = error.to_string();
        let text = match error.location() {
            Some(place) => {
                let (line, column) = (self.lines_before + place.start.line + 1, place.start.column + 1);
                // The message begins with the position within the part.
                let detail = message.split_once(": ").map_or(message.as_str(), |(_, detail)| detail);
                format!("{}, line {line}, column {column}: {detail}", self.name)
            }
            None => format!("{}: {message}", self.name),
        };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::term;

    #[test]
    fn parts_of_a_text_are_whole_lines_and_together_the_text() {
        for text in ["", "one", "a\nbb\nccc\n\ndddd\n", "a\nbb\nno feed at the end"] {
            for parts in 1..9 {
                let all: Vec<Range<usize>> =
                    (0..parts).map(|part| whole_lines(text.as_bytes(), part, parts)).collect();
                let joined: String = all.iter().map(|range| &text[range.clone()]).collect();
                assert_eq!(joined, text);
                assert!(all.iter().all(|range| range.is_empty()
                    || range.start == 0
                    || text.as_bytes()[range.start - 1] == b'\n'));
            }
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_column() {
        let read = |extension: &str, text: &str, lines_before| {
            let part = FilePart {
                file: 0,
                name: "x",
                extension,
                base: "http://a.example/",
                graph: None,
                bytes: text.as_bytes(),
                lines_before,
            };
            let mut out = LocalTriples::default();
            part.read(&mut out, |_| ()).map(|()| out.triples.len())
        };
        assert_eq!(read("ttl", "<a> <b> 1, 2 .\n<a> <b> [ <c> [] ] .", 0), Ok(4));
        let wrong = read("ttl", "<a> <b> 1 .\n<a> p:b 1 .", 0).unwrap_err();
        assert!(wrong.starts_with("x, line 2, column 5: ") && wrong.contains("p:"), "{wrong}");
        let wrong = read("nt", "<http://a.example/> <http://b.example/> .\n", 41).unwrap_err();
        assert!(wrong.starts_with("x, line 42, column "), "{wrong}");
        let cut = read("ttl", "<a> <b> 1 .\n<a> <b> \"half", 0).unwrap_err();
        assert!(cut.starts_with("x, line 2, column "), "{cut}");
    }

    #[test]
    fn quads_keep_their_graphs_and_a_named_graph_takes_all_triples_of_its_file() {
        let read = |extension: &str, text: &str, graph| {
            let part = FilePart {
                file: 0,
                name: "x",
                extension,
                base: "http://a.example/",
                graph,
                bytes: text.as_bytes(),
                lines_before: 0,
            };
            let mut out = LocalTriples::default();
            part.read(&mut out, |_| ())?;
            let graph = |quad: &[u32; 4]| term::decode(out.dictionary.bytes(quad[0] as usize)).to_string();
            Ok::<_, String>((
                out.triples.len(),
                out.quads.iter().map(graph).collect::<Vec<_>>(),
                out.graphs.len(),
            ))
        };
        let text = "<x:s> <x:p> <x:o> .\n<x:s> <x:p> <x:o> <x:g> .\n<x:s> <x:p> <x:q> _:g .\n";
        let blank = "_:f0.g".to_owned();
        assert_eq!(read("nq", text, None), Ok((1, vec!["<x:g>".to_owned(), blank], 0)));
        let trig = read("trig", "<s> <p> 1 . <g> { <s> <p> 1, 2 }", None);
        assert_eq!(trig, Ok((1, vec!["<http://a.example/g>".to_owned(); 2], 0)));
        let named = read("nt", "<x:s> <x:p> <x:o> .\n<x:s> <x:p> \"\" .\n", Some("x:n"));
        assert_eq!(named, Ok((0, vec!["<x:n>".to_owned(); 2], 1)));
        assert_eq!(read("ttl", "", Some("x:n")), Ok((0, vec![], 1)));
        let twice = read("nq", text, Some("x:n")).unwrap_err();
        assert_eq!(twice, "x: it has named graphs itself; allowed for --named-graph: triples");
    }
}
