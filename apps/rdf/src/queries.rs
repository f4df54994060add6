//! The queries of a run: from files, from the command line, or those of LUBM.
//!
//! It evaluates nothing. Invariant: each query has been parsed before anything runs, and an error in one is reported
//! with its name and position.

use crate::load::source::file_iri;
use crate::query;
use isles_app::{Failure, input};
use oxrdf::NamedNode;
use serde::{Deserialize, Serialize};
use spargebra::Query;
use spargebra::algebra::QueryDataset;
use std::ffi::OsStr;
use std::path::Path;

/// Largest accepted query, in bytes.
const QUERY_BYTES_MAX: u64 = 16 << 20;

/// The queries of the Lehigh University Benchmark (Guo, Pan and Heflin 2005, appendix).
pub const LUBM: [(&str, &str); 14] = [
    ("q01", include_str!("../data/lubm/q01.rq")),
    ("q02", include_str!("../data/lubm/q02.rq")),
    ("q03", include_str!("../data/lubm/q03.rq")),
    ("q04", include_str!("../data/lubm/q04.rq")),
    ("q05", include_str!("../data/lubm/q05.rq")),
    ("q06", include_str!("../data/lubm/q06.rq")),
    ("q07", include_str!("../data/lubm/q07.rq")),
    ("q08", include_str!("../data/lubm/q08.rq")),
    ("q09", include_str!("../data/lubm/q09.rq")),
    ("q10", include_str!("../data/lubm/q10.rq")),
    ("q11", include_str!("../data/lubm/q11.rq")),
    ("q12", include_str!("../data/lubm/q12.rq")),
    ("q13", include_str!("../data/lubm/q13.rq")),
    ("q14", include_str!("../data/lubm/q14.rq")),
];

/// Queries over the data of LUBM with more than 100,000 intermediate rows for ten or more universities.
pub const LARGE: [(&str, &str); 3] = [
    ("alumni", include_str!("../data/large/alumni.rq")),
    ("authors", include_str!("../data/large/authors.rq")),
    ("classmates", include_str!("../data/large/classmates.rq")),
];

/// Query sets that `--queries` accepts in addition to folders.
const BUILT_IN: [(&str, &[(&str, &str)]); 2] = [("lubm", &LUBM), ("lubm-large", &LARGE)];

/// The dataset that a client specifies for a query (SPARQL 1.1 Protocol, section 2.1.4). If it names no graph, the
/// dataset of the query itself applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedDataset {
    /// IRIs of the graphs whose merge is the default graph.
    #[serde(default)]
    pub default_graphs: Vec<String>,
    /// IRIs of the named graphs.
    #[serde(default)]
    pub named_graphs: Vec<String>,
}

impl NamedDataset {
    /// Returns the dataset, or `None` if it names no graph.
    fn parsed(&self) -> Result<Option<QueryDataset>, String> {
        if self.default_graphs.is_empty() && self.named_graphs.is_empty() {
            return Ok(None);
        }
        let graphs = |parameter: &str, iris: &[String]| -> Result<Vec<NamedNode>, String> {
            let refused = |iri: &String, error: &dyn std::fmt::Display| {
                format!("{parameter} is {iri:?}: {error}; allowed: an absolute IRI")
            };
            let parsed = iris.iter().map(|iri| NamedNode::new(iri).map_err(|error| refused(iri, &error)));
            parsed.collect()
        };
        let default = graphs("default-graph-uri", &self.default_graphs)?;
        Ok(Some(QueryDataset { default, named: Some(graphs("named-graph-uri", &self.named_graphs)?) }))
    }
}

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedQuery {
    /// Name of the query: its file without folder and extension.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The IRI of its file, against which relative IRIs are resolved.
    pub base: Option<String>,
    /// A dataset that replaces the query's own.
    pub dataset: NamedDataset,
}

impl NamedQuery {
    /// Creates a query with this name.
    ///
    /// # Errors
    /// [`Failure::Usage`]: the query is invalid; `source` says where it comes from.
    pub fn new(name: String, text: String, source: &str) -> Result<NamedQuery, Failure> {
        let base = Path::new(source).is_file().then(|| file_iri(Path::new(source)));
        let named = NamedQuery { name, text, base, dataset: NamedDataset::default() };
        match named.parsed() {
            Ok(_) => Ok(named),
            Err(wrong) => Err(Failure::Usage(format!("{source}: {wrong}"))),
        }
    }

    /// Returns the query with its dataset.
    ///
    /// # Errors
    /// One line that describes and locates the error, or names an unsupported feature.
    pub fn parsed(&self) -> Result<Query, String> {
        let mut query = query::parse(&self.text, self.base.as_deref())?;
        if let Some(named) = self.dataset.parsed()? {
            let (Query::Select { dataset, .. }
            | Query::Ask { dataset, .. }
            | Query::Construct { dataset, .. }
            | Query::Describe { dataset, .. }) = &mut query;
            *dataset = Some(named);
        }
        Ok(query)
    }
}

/// Returns the queries of LUBM.
///
/// # Errors
/// None; they are tested.
pub fn lubm() -> Result<Vec<NamedQuery>, Failure> {
    of_folder(BUILT_IN[0].0)
}

/// Returns the query in a file, or the LUBM query named `lubm:N`.
///
/// # Errors
/// [`Failure::Usage`]: the file cannot be read, or the query is invalid.
pub fn of_file(file: &str) -> Result<NamedQuery, Failure> {
    if let Some(number) = file.strip_prefix("lubm:") {
        let found = number.parse::<usize>().ok().and_then(|number| LUBM.get(number.checked_sub(1)?));
        let refused = || Failure::Usage(format!("--query is {file:?}; allowed: a file, lubm:1 to lubm:14"));
        let (name, text) = found.ok_or_else(refused)?;
        return NamedQuery::new((*name).to_owned(), (*text).to_owned(), file);
    }
    let bytes = input::bytes(file, QUERY_BYTES_MAX);
    let bytes = bytes.map_err(|fault| Failure::Usage(format!("--query: {file}: {fault}")))?;
    let name =
        Path::new(file).file_stem().map_or(file.to_owned(), |stem| stem.to_string_lossy().into_owned());
    NamedQuery::new(name, input::text(&bytes), file)
}

/// Returns the queries in the files of a folder that end in `.rq` or `.sparql`, by name; or a built-in set.
///
/// # Errors
/// [`Failure::Usage`]: there are none, one cannot be read, or one is invalid.
pub fn of_folder(folder: &str) -> Result<Vec<NamedQuery>, Failure> {
    let built_in = BUILT_IN.iter().find(|(name, _)| *name == folder && !Path::new(folder).exists());
    if let Some((_, queries)) = built_in {
        let named =
            |(name, text): &(&str, &str)| NamedQuery::new((*name).to_owned(), (*text).to_owned(), name);
        return queries.iter().map(named).collect();
    }
    let refused = |cause: &dyn std::fmt::Display| {
        let names = BUILT_IN.map(|(name, _)| name).join(", ");
        Failure::Usage(format!("--queries: {folder}: {cause}; allowed: a folder, {names}"))
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| refused(&error))? {
        let path = entry.map_err(|error| refused(&error))?.path();
        if path.extension().is_some_and(|ending| ending == "rq" || ending == "sparql") {
            files.push(path);
        }
    }
    files.sort_by_key(|path| path.file_stem().map(OsStr::to_owned));
    if files.is_empty() {
        return Err(refused(&"no file that ends in .rq or .sparql"));
    }
    files.iter().map(|path| of_file(&path.to_string_lossy())).collect()
}
