//! The application `rdf`: arguments, output, and the check of answers against another evaluator.
//!
//! Errors in arguments and queries are found before anything runs; errors in data are found while places read it, and
//! then no query is answered. Invariant: answers do not depend on the number of places and the machine.

use crate::answer::Answer;
use crate::load::Partition;
use crate::load::source::{self, DataSource, OpenSource};
use crate::queries::{self, NamedQuery};
use crate::results::{self, ResultForm};
use crate::session::{QueryFound, Session, SessionFound, SharingMode};
use crate::verify;
use clap::builder::ArgPredicate;
use clap::{Args, value_parser};
use isles::Claim;
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone, count,
};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Number of rows of an answer that are printed.
const SHOWN_ROWS: usize = 20;

/// The arguments of `isles run rdf`.
#[derive(Args, Clone, Debug)]
pub struct Rdf {
    /// The triples: files (.ttl, .nt, .rdf, .owl, .xml, .nq, .trig, .n3, .jsonld), a
    /// snapshot (.snap), or lubm:N for N universities; lubm-plain:N leaves out what the ontology implies; debian is
    /// what apt-cache lists on this host
    #[arg(long, value_name = "FILE|NAME", num_args = 1.., default_value = "lubm:1")]
    #[arg(default_value_if("named_graph", ArgPredicate::IsPresent, None))]
    data: Vec<String>,

    /// Files that become a named graph each, named by the IRI of the file
    #[arg(long, value_name = "FILE", num_args = 1..)]
    named_graph: Vec<String>,

    /// Write a snapshot of the loaded data, which --data FILE.snap maps on the same number of places
    #[arg(long, value_name = "FILE")]
    save: Option<String>,

    /// Query in a file, or lubm:1 to lubm:14; may be repeated
    #[arg(long, value_name = "FILE|NAME")]
    query: Vec<String>,

    /// A query
    #[arg(short = 'e', long = "expression", value_name = "TEXT")]
    text: Vec<String>,

    /// All queries of a folder (.rq, .sparql), or lubm, or lubm-large [default without a query: lubm]
    #[arg(long, value_name = "DIR|NAME")]
    queries: Option<String>,

    /// Division of the work among the places
    #[arg(long, value_name = "HOW", default_value = "data")]
    mode: SharingMode,

    /// Partition of the triples over places, in the mode data
    #[arg(long, value_name = "HOW", default_value = "auto")]
    partition: Partition,

    /// Answer requests from standard input, a socket, until it closes; used by isles serve-sparql
    #[arg(long, conflicts_with_all = ["query", "text", "queries", "mode"])]
    serve: bool,

    /// Number of times that all queries are answered
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u64).range(1..=1_000_000))]
    repeat: u64,

    /// Write the answers in this format, to standard output unless --results names a file
    #[arg(long, value_name = "FORM")]
    format: Option<ResultForm>,

    /// File for the answers; - is standard output [default format: csv]
    #[arg(long, value_name = "FILE")]
    results: Option<String>,

    /// Explain each query: rows expected and found, bytes moved
    #[arg(long)]
    explain: bool,

    /// Memory limit for a table of a query, in MiB over all places
    #[arg(long, value_name = "MIB", value_parser = value_parser!(u64).range(1..=1 << 40))]
    memory: Option<u64>,

    /// Time limit for a query, in seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    timeout: Option<f64>,
}

/// Parses a time limit.
fn seconds(text: &str) -> Result<f64, &'static str> {
    let number = text.parse::<f64>().ok().filter(|number| (1e-6..=1e9).contains(number));
    number.ok_or("seconds from 0.000001 to 1000000000")
}

/// Queries and data of a run.
#[derive(Debug, Serialize)]
pub struct RdfInput {
    data: Vec<String>,
    mode: SharingMode,
    partition: Partition,
    repeat: u64,
    #[serde(skip)]
    session: Session,
    #[serde(skip)]
    contents: Vec<OpenSource>,
}

/// Result of a run.
#[derive(Debug, Serialize)]
pub struct RdfFound {
    triples: u64,
    graphs: u64,
    terms: u64,
    /// Triples whose subject and object have different owners.
    cut: u64,
    /// Bytes of triples and terms, over all places.
    store_bytes: u64,
    /// Bytes of the sorted triples alone, over all places.
    index_bytes: u64,
    /// Partition of the triples.
    partition: Partition,
    load_seconds: f64,
    /// Millions of triples loaded per second.
    load_rate: f64,
    query_seconds: f64,
    /// Geometric mean of the best times of the queries, in milliseconds.
    mean_ms: f64,
    /// Sum of the best times of the queries, in milliseconds.
    sum_ms: f64,
    /// Rows of all answers.
    rows: u64,
    queries: Vec<QueryFound>,
    #[serde(skip)]
    answers: Vec<Option<Answer>>,
    #[serde(skip)]
    refused: Option<String>,
    #[serde(skip)]
    snapshot: Vec<u8>,
    #[serde(skip)]
    texts: Vec<NamedQuery>,
}

impl Rdf {
    fn named_queries(&self) -> Result<Vec<NamedQuery>, Failure> {
        let mut all = Vec::new();
        for file in &self.query {
            all.push(queries::of_file(file)?);
        }
        for (position, text) in self.text.iter().enumerate() {
            let name = if position == 0 { "query".to_owned() } else { format!("query{}", position + 1) };
            all.push(NamedQuery::new(name, text.clone(), "-e")?);
        }
        if let Some(folder) = &self.queries {
            all.extend(queries::of_folder(folder)?);
        } else if all.is_empty() && !self.serve {
            all = queries::lubm()?;
        }
        Ok(all)
    }

    fn open_sources(&self) -> Result<Vec<OpenSource>, Failure> {
        let data = self.data.iter().map(|name| source::open(name));
        data.chain(self.named_graph.iter().map(|name| source::open_graph(name))).collect()
    }

    /// Checks that a snapshot is the only source and matches the number of places.
    fn check_snapshot(&self, contents: &[OpenSource], places: u32) -> Result<(), Failure> {
        let snapshot = contents.iter().find_map(|open| match &open.source {
            DataSource::Snapshot { name, head, .. } => Some((name, head)),
            _ => None,
        });
        let Some((name, head)) = snapshot else { return Ok(()) };
        let refused = |text: String| Err(Failure::Usage(format!("--data: {name}: {text}")));
        if contents.len() > 1 {
            return refused("a snapshot beside other data; allowed: a snapshot alone".to_owned());
        }
        if self.mode == SharingMode::Data && head.places() != places as usize {
            let of = count(head.places() as u64, "place", "places");
            return refused(format!(
                "a snapshot of {of}, not of {places}; allowed: --places {}",
                head.places()
            ));
        }
        Ok(())
    }

    fn form(&self) -> ResultForm {
        self.format.unwrap_or(ResultForm::Csv)
    }
}

impl Application for Rdf {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "Answers are the same at any number of places and on any machine. --verify evaluates each query once more, at one \
         place by spareval. CONSTRUCT and DESCRIBE write N-Triples in each form.",
        ..ApplicationInfo::new("rdf", env!("CARGO_PKG_DESCRIPTION"), "queries")
    };
    type Input = RdfInput;
    type Found = RdfFound;

    fn run_name(&self) -> String {
        let first =
            self.data.first().map(|name| Path::new(name).file_stem().unwrap_or_default().to_string_lossy());
        format!("rdf-{}", first.unwrap_or_default())
    }

    fn reads(&self) -> Vec<Claim> {
        let data = self.data.iter().chain(&self.named_graph).map(|file| (file, "the data"));
        let files = data.chain(self.query.iter().map(|file| (file, "a query")));
        files
            .filter(|(file, _)| Path::new(file).is_file())
            .map(|(file, role)| Claim::read(file, role))
            .collect()
    }

    fn open(&self, places: u32) -> Result<RdfInput, Failure> {
        let queries = self.named_queries()?;
        let contents = self.open_sources()?;
        self.check_snapshot(&contents, places)?;
        let session = Session {
            sources: contents.iter().map(|open| open.source.clone()).collect(),
            queries,
            mode: self.mode,
            partition: self.partition,
            is_server: self.serve,
            saves: self.save.is_some(),
            repeat: self.repeat,
            memory: self.memory.map(|mib| mib.saturating_mul(1 << 20)),
            timeout: self.timeout.map(Duration::from_secs_f64),
        };
        let data = session.sources.iter().map(source::DataSource::name).collect();
        Ok(RdfInput {
            data,
            mode: self.mode,
            partition: self.partition,
            repeat: self.repeat,
            session,
            contents,
        })
    }

    fn heading(&self, input: &RdfInput) -> String {
        let queries = match input.session.is_server {
            true => "requests".to_owned(),
            false => count(input.session.queries.len() as u64, "query", "queries"),
        };
        let mode = if input.mode == SharingMode::Data { "data" } else { "task" };
        format!("{}, {queries}, mode {mode}", input.data.join(", "))
    }

    async fn compute(input: RdfInput, distributor: WorkDistributor) -> isles::Result<(RdfFound, WorkDone)> {
        let RdfInput { session, contents, .. } = input;
        let known = session.queries.len() as u64 * session.repeat;
        let meter = distributor.meter((!session.is_server).then_some(known)).await?;
        let started = isles::now();
        let found = session.run(&contents, &meter).await?;
        let mut done = meter.done(started).await?;
        let SessionFound { loaded, load_seconds, query_seconds, queries, answers, refused, snapshot } = found;
        done.seconds = query_seconds;
        let milliseconds = || queries.iter().map(|query| query.seconds * 1e3);
        let logarithms: f64 = milliseconds().map(|time| time.max(1e-9).ln()).sum();
        let found = RdfFound {
            load_rate: loaded.triples as f64 / load_seconds.max(1e-9) / 1e6,
            mean_ms: (logarithms / queries.len().max(1) as f64).exp(),
            sum_ms: milliseconds().sum(),
            rows: queries.iter().map(|query| query.rows).sum(),
            triples: loaded.triples,
            graphs: loaded.graphs,
            terms: loaded.terms,
            cut: loaded.cut,
            store_bytes: loaded.memory,
            index_bytes: loaded.index,
            partition: loaded.partition,
            load_seconds,
            query_seconds,
            queries,
            answers,
            refused,
            snapshot,
            texts: session.queries,
        };
        Ok((found, done))
    }
}

impl RunResult for Rdf {
    fn text(&self, found: &RdfFound) -> String {
        let RdfFound {
            triples,
            graphs,
            terms,
            store_bytes,
            index_bytes,
            load_seconds,
            load_rate,
            queries,
            ..
        } = found;
        let mut text = format!("triples  {triples}\n");
        if *graphs > 0 {
            let _ = writeln!(text, "named    {}", count(*graphs, "graph", "graphs"));
        }
        let _ = write!(
            text,
            "terms    {terms}\nstore    {:.1} MB, {:.1} bytes a triple besides terms\nloaded   in {load_seconds:.3} s, {load_rate:.2} million triples/s",
            *store_bytes as f64 / 1e6,
            *index_bytes as f64 / (*triples).max(1) as f64
        );
        if let ([query], [Some(answer)]) = (queries.as_slice(), found.answers.as_slice()) {
            let _ = write!(text, "\nrows     {}\ndigest   {}", query.rows, query.digest);
            if !self.writes_to_standard_output() {
                let _ = write!(text, "\n\n{}", results::table(answer, SHOWN_ROWS));
            }
        } else {
            let width = queries.iter().map(|query| query.name.len()).max().unwrap_or(0).max(5);
            let _ = write!(text, "\n\n{:<width$}       rows  milliseconds  digest", "query");
            for QueryFound { name, rows, seconds, digest, fault, .. } in queries {
                let outcome = fault.as_deref().unwrap_or(digest);
                let _ = write!(text, "\n{name:<width$}  {rows:>9}  {:>12.3}  {outcome}", seconds * 1e3);
            }
        }
        if self.explain {
            queries.iter().for_each(|query| text.push_str(&explained(query)));
        }
        text
    }

    fn speed(&self, found: &RdfFound, seconds: f64) -> String {
        format!("{:.1} queries a second", (found.queries.len() as u64 * self.repeat) as f64 / seconds)
    }

    fn verify(&self, found: &RdfFound, is_thorough: bool) -> Result<Option<Verification>, Failure> {
        if let Some(refused) = &found.refused {
            return Err(Failure::Usage(refused.clone()));
        }
        let faults: Vec<String> = found
            .queries
            .iter()
            .filter_map(|query| Some(format!("{}: {}", query.name, query.fault.as_ref()?)))
            .collect();
        if let Some(first) = faults.first() {
            if found.queries.len() == 1 {
                return Err(Failure::Ended(format!("query {first}")));
            }
            let text = format!(
                "{} of {} without an answer; {first}",
                count(faults.len() as u64, "query", "queries"),
                found.queries.len()
            );
            return Ok(Some(Verification { holds: false, text }));
        }
        if !is_thorough {
            return Ok(None);
        }
        let sources = self.open_sources()?;
        verify::against_spareval(&sources, &found.texts, &found.answers).map(Some)
    }

    fn write_csv(&self, found: &RdfFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "query,rows,seconds,digest")?;
        let mut queries = found.queries.iter();
        queries.try_for_each(|QueryFound { name, rows, seconds, digest, .. }| {
            writeln!(out, "{name},{rows},{seconds},{digest}")
        })
    }

    fn pictures(&self) -> Vec<(&'static str, &str)> {
        let is_asked = self.format.is_some() || self.results.is_some();
        let to = self.results.as_deref().unwrap_or("-");
        let results = is_asked.then_some(("--results", to)).into_iter();
        results.chain(self.save.as_deref().map(|file| ("--save", file))).collect()
    }

    fn write_picture(&self, flag: &str, found: &RdfFound, out: &mut dyn Write) -> io::Result<()> {
        if flag == "--save" {
            return out.write_all(&found.snapshot);
        }
        found.answers.iter().flatten().try_for_each(|answer| results::write(answer, self.form(), out))
    }
}

impl Rdf {
    fn writes_to_standard_output(&self) -> bool {
        self.pictures().iter().any(|(flag, to)| *flag == "--results" && *to == "-")
    }
}

/// Returns a readable account of the operators of a query.
fn explained(query: &QueryFound) -> String {
    let mut text = format!("\n\n{}\n  expected       rows      bytes  milliseconds  operator", query.name);
    for operator in &query.operators {
        let expected = operator.estimate.map_or_else(|| "-".to_owned(), |rows| format!("{rows:.0}"));
        let indent = "  ".repeat(operator.depth.saturating_sub(1));
        let _ = write!(
            text,
            "\n{expected:>10} {:>10} {:>10}  {:>12.3}  {indent}{}",
            operator.rows,
            operator.bytes,
            operator.seconds * 1e3,
            operator.operator
        );
    }
    text
}
