//! Reads a graph from a file or by a name that the user gave.
//!
//! It detects the format by the first bytes, METIS by the file extension, and decompresses; the decoders interpret the
//! formats. Invariant: no bytes cause a panic, and no file, such as a device or a pipe, is read without limit.

mod foreign;

use super::dataset::{self, DatasetError};
use super::error::excerpt;
use super::rmat::Rmat;
use super::{Graph, GraphError, Position, edge_list, gt, matrix_market, metis};
use flate2::read::MultiGzDecoder;
use isles_app::input;
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Most bytes of a file, before and after decompression: 4 GiB, far more than any graph that [`super::ARCS_MAX`]
/// admits in a binary format.
const BYTES_MAX: u64 = 1 << 32;

/// Byte order marks, of UTF-8 and of UTF-16 in both orders.
const MARKS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];

/// Number of bytes per read; between two reads it is checked whether to continue.
const PORTION_BYTES: u64 = 1 << 20;

/// Longest accepted line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Options for reading a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Use of the weights of a file.
    pub weights: Weights,
    /// `true` if the edges of an edge list are directed; the other formats define it themselves.
    pub directed: bool,
}

/// Use of the weights of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Every edge has length one. The default: published weights are more often strengths than lengths.
    #[default]
    Ignored,
    /// Weights are lengths: of parallel edges the shortest remains. A file without weights yields an unweighted graph.
    Lengths,
    /// Weights are strengths: those of parallel edges add up. A file without weights yields an unweighted graph.
    Strengths,
}

impl Weights {
    /// Returns `true` if the weights of a file are used.
    pub fn are_read(self) -> bool {
        self != Weights::Ignored
    }
}

impl Graph {
    /// Reads a graph file with the default options: unweighted, and undirected unless the format defines otherwise.
    ///
    /// # Errors
    /// [`OpenError::Graph`] with the file's name.
    pub fn read(path: impl AsRef<Path>) -> Result<Graph, OpenError> {
        Graph::read_with(path, &ReadOptions::default())
    }

    /// Reads a graph file.
    ///
    /// # Errors
    /// [`OpenError::Graph`] with the file's name.
    pub fn read_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Graph, OpenError> {
        let path = path.as_ref();
        let opened = File::open(path).map_err(GraphError::Unreadable);
        let decoded = |bytes: Vec<u8>| match metis::is_name_of(path) {
            true => metis::decode(&without_bom(inflated(&bytes)?), options),
            false => Graph::decode(&bytes, options),
        };
        let graph = opened.and_then(contents).and_then(decoded);
        graph.map_err(|error| OpenError::Graph { origin: path.display().to_string(), error })
    }

    /// Decodes the contents of a graph file of any known format, compressed or not.
    ///
    /// # Errors
    /// Any of [`GraphError`].
    pub fn decode(bytes: &[u8], options: &ReadOptions) -> Result<Graph, GraphError> {
        let bytes = without_bom(inflated(bytes)?);
        match Format::of(&bytes)? {
            Format::GraphTool => gt::decode(&bytes, options),
            Format::MatrixMarket => matrix_market::decode(&bytes, options),
            Format::EdgeList => edge_list::decode(&bytes, options),
            Format::Gzip | Format::Marked => Err(GraphError::UnknownFormat), // compressed, or marked, twice
        }
    }
}

/// Format of a file, determined by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Gzip,
    /// Text with a byte order mark.
    Marked,
    GraphTool,
    MatrixMarket,
    EdgeList,
}

impl Format {
    fn of(bytes: &[u8]) -> Result<Format, GraphError> {
        if bytes.starts_with(&[0x1f, 0x8b]) {
            Ok(Format::Gzip)
        } else if MARKS.iter().any(|mark| bytes.starts_with(mark)) {
            Ok(Format::Marked)
        } else if bytes.starts_with(gt::MAGIC) {
            Ok(Format::GraphTool)
        } else if has_prefix_ignoring_case(bytes, matrix_market::MAGIC) {
            Ok(Format::MatrixMarket)
        } else if looks_like_text(bytes) {
            foreign::check(bytes)?;
            Ok(Format::EdgeList)
        } else {
            Err(GraphError::UnknownFormat)
        }
    }

    fn is_text(self) -> bool {
        matches!(self, Format::MatrixMarket | Format::EdgeList)
    }
}

/// Reads to the end, or until the bytes cannot be a graph.
fn contents(mut source: impl Read) -> Result<Vec<u8>, GraphError> {
    let mut bytes = Vec::new();
    let (mut line, mut line_start) = (1, 0);
    loop {
        let old = bytes.len();
        let read = source.by_ref().take(PORTION_BYTES).read_to_end(&mut bytes);
        if read.map_err(GraphError::Unreadable)? == 0 {
            return Ok(bytes);
        }
        let found = bytes.len() as u64;
        if found > BYTES_MAX {
            return Err(GraphError::TooLarge { items: "bytes", found, limit: BYTES_MAX });
        }
        if !Format::of(&bytes)?.is_text() {
            continue;
        }
        let ends = bytes[old..].iter().zip(old..).filter(|&(&byte, _)| byte == b'\n');
        (line, line_start) = ends.fold((line, line_start), |(line, _), (_, end)| (line + 1, end + 1));
        if bytes.len() - line_start > LINE_BYTES_MAX {
            let (position, found) = (Position::Line(line), excerpt(&bytes[line_start..]));
            return Err(GraphError::Malformed {
                position,
                found,
                allowed: "the end of the line within 1 MiB",
            });
        }
    }
}

fn inflated(bytes: &[u8]) -> Result<Cow<'_, [u8]>, GraphError> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut plain = Vec::new();
    let mut stream = MultiGzDecoder::new(bytes).take(BYTES_MAX + 1);
    stream.read_to_end(&mut plain).map_err(GraphError::BadCompression)?;
    let found = plain.len() as u64;
    if found > BYTES_MAX {
        return Err(GraphError::TooLarge { items: "decompressed bytes", found, limit: BYTES_MAX });
    }
    Ok(Cow::Owned(plain))
}

/// Returns the text without a byte order mark, and with line feeds if its lines end in lone carriage returns.
fn without_bom(bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let is_marked = MARKS.iter().any(|mark| bytes.starts_with(mark));
    let is_old = || looks_like_text(&bytes) && bytes.contains(&b'\r') && !bytes.contains(&b'\n');
    if is_marked || is_old() { Cow::Owned(input::text(&bytes).into_bytes()) } else { bytes }
}

fn has_prefix_ignoring_case(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Returns `true` if the first kilobyte has no control characters except white space.
fn looks_like_text(bytes: &[u8]) -> bool {
    bytes.iter().take(1024).all(|&byte| !byte.is_ascii_control() || byte.is_ascii_whitespace())
}

/// Opens the graph named by a user: a generated graph (`rmat-small`, `rmat:12,0.5,0.2,0.2,0.1`), a data set (`power`,
/// fetched if it is not in the cache), or a file. A file with the name of a data set can be opened as `./power`.
///
/// # Errors
/// Any of [`OpenError`].
pub fn open(name: &str, options: &ReadOptions) -> Result<Graph, OpenError> {
    let located = |error| OpenError::Graph { origin: name.to_string(), error };
    if let Some(parameters) = Rmat::parse(name) {
        return parameters.and_then(|rmat| rmat.generate()).map_err(OpenError::Parameters);
    }
    if dataset::find(name).is_some() {
        let bytes = dataset::fetch(name).map_err(OpenError::Dataset)?;
        return Graph::decode(&bytes, options).map_err(located);
    }
    if !Path::new(name).exists() {
        return Err(OpenError::NoSuchGraph { name: name.to_string() });
    }
    Graph::read_with(name, options)
}

/// Returns `true` if [`open`] would read `name` as a file.
pub fn is_file(name: &str) -> bool {
    Rmat::parse(name).is_none() && dataset::find(name).is_none() && Path::new(name).exists()
}

/// Returns the message that the weights of a file are not used.
pub fn weights_remark(file: &str) -> String {
    format!("the weights of {file} are not used; --weights file uses them")
}

/// Reason why a graph could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// There is neither a file nor a graph with that name.
    NoSuchGraph {
        /// The requested name.
        name: String,
    },
    /// The file exists but does not contain a valid graph.
    Graph {
        /// The file, or the name of the graph.
        origin: String,
        /// Error in the file.
        error: GraphError,
    },
    /// The name describes a graph to generate, with invalid parameters.
    Parameters(GraphError),
    /// The data set could not be fetched.
    Dataset(DatasetError),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::NoSuchGraph { name } => {
                let known: Vec<_> = dataset::list().iter().map(|known| known.name.as_str()).collect();
                let generated: Vec<_> = super::rmat::WORKLOADS.iter().map(|(known, _)| *known).collect();
                let (known, generated) = (known.join(", "), generated.join(", "));
                write!(f, "`{name}`: no such file, and no graph of that name; names are {known}, {generated}")
            }
            OpenError::Graph { origin, error } => write!(f, "{origin}: {error}"),
            OpenError::Parameters(error) => error.fmt(f),
            OpenError::Dataset(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::NoSuchGraph { .. } => None,
            OpenError::Graph { error, .. } | OpenError::Parameters(error) => Some(error),
            OpenError::Dataset(error) => Some(error),
        }
    }
}
