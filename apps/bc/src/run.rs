//! Betweenness over all places: the graph is replicated, sources are distributed, scores are reduced.

use super::cached_efforts::{self, CachedEfforts};
use super::{Scores, verify};
use clap::{Args, ValueEnum};
use isles::prelude::*;
use isles::{Claim, Machine};
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, Balance, RunResult, UnitKernel, UnitQueue, Verification, WorkDistributor,
    WorkDone, count,
};
use isles_graph as graph;
use isles_graph::rmat::Rmat;
use isles_graph::{Graph, ReadOptions, Weights};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Lengths of the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Lengths {
    /// All one, by breadth-first search.
    Ignore,
    /// The weights of the file, by Dijkstra's algorithm.
    File,
    /// All one, by Dijkstra's algorithm: the same scores as `ignore`, for comparison.
    Unit,
}

/// The arguments of `isles run bc`.
#[derive(Args, Debug)]
pub struct Betweenness {
    /// File (edge list, CSV, Matrix Market, METIS .graph, .gt; also gzipped), name (`isles data list`), or
    /// rmat:n,a,b,c,d[,seed]
    #[arg(long, value_name = "FILE|NAME", default_value = "power")]
    graph: String,

    /// A generated graph instead: small, medium, large, low or high (published workloads), or n,a,b,c,d[,seed]
    #[arg(long, value_name = "WORKLOAD", conflicts_with = "graph")]
    rmat: Option<String>,

    /// Lengths of the edges
    #[arg(long, value_enum, default_value = "ignore")]
    weights: Lengths,

    /// Read an edge list as directed
    #[arg(long)]
    directed: bool,

    /// Assignment of the sources to the places
    #[arg(long, value_enum, default_value = "dynamic")]
    balance: Balance,

    /// Number of the most central vertices to print
    #[arg(long, value_name = "N", default_value = "10", allow_hyphen_values = true, value_parser = top)]
    top: usize,

    /// File with the work of each source on a modelled core, read instead of computed; written first if it does not
    /// exist; the scores are nearly those of a plain run
    #[arg(long, value_name = "FILE", hide = true)]
    known_efforts: Option<PathBuf>,
}

/// Parses a number of vertices.
fn top(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(|_| "a whole number from 0 up")
}

impl Betweenness {
    /// Opens the graph with a name of `--graph`.
    fn graph_name(&self) -> Result<String, Failure> {
        let Some(rmat) = &self.rmat else { return Ok(self.graph.clone()) };
        if rmat == FORMER_MEDIUM {
            return Err(Failure::Usage(format!("--rmat is {rmat:?}; allowed: medium, its current name")));
        }
        let named = |name: &str| matches!(Rmat::parse(name), Some(Ok(_)));
        let (workload, drawn) = (format!("rmat-{rmat}"), format!("rmat:{rmat}"));
        match [workload, drawn].into_iter().find(|graph| named(graph)) {
            Some(graph) => Ok(graph),
            None => Err(Failure::Usage(format!(
                "--rmat is {rmat:?}; allowed: small, medium, large, low, high, or n,a,b,c,d or n,a,b,c,d,seed, n from 1 \
                 to 24, a, b, c and d at least 0 with sum 1"
            ))),
        }
    }

    /// Reads the graph of this name, with the lengths that the file has or with none.
    fn read(&self, name: &str) -> Result<Graph, Failure> {
        let weights = if self.weights == Lengths::File { Weights::Lengths } else { Weights::Ignored };
        let options = ReadOptions { weights, directed: self.directed };
        let graph = graph::open(name, &options).map_err(|error| Failure::Usage(error.to_string()))?;
        if self.weights == Lengths::File && !graph.is_weighted() {
            return Err(Failure::Usage(format!(
                "--weights is \"file\", but {name} has no weights; allowed: ignore, unit"
            )));
        }
        if self.directed && !graph.is_directed() {
            return Err(Failure::Usage(format!(
                "--directed is given, but {name} declares an undirected graph; allowed: an edge list, or \
                 a format that marks edges as directed (Matrix Market general, .gt)"
            )));
        }
        Ok(graph)
    }

    /// Returns the same graph with the requested lengths.
    fn with_lengths(&self, graph: Graph) -> Result<Graph, Failure> {
        match self.weights {
            Lengths::Unit => {
                graph.with_weights(|_, _| 1.0).map_err(|error| Failure::Usage(error.to_string()))
            }
            Lengths::File | Lengths::Ignore => Ok(graph),
        }
    }
}

/// Former name in `--rmat` of the medium workload.
const FORMER_MEDIUM: &str = "steep";

/// The graph, and the assignment of its sources.
#[derive(Serialize)]
pub struct BcInput {
    #[serde(skip)]
    graph: Graph,
    #[serde(skip)]
    known: Option<CachedEfforts>,
    #[serde(rename = "graph")]
    name: String,
    vertices: u64,
    edges: u64,
    directed: bool,
    weights: Lengths,
    balance: Balance,
}

/// The scores of all vertices.
#[derive(Serialize)]
pub struct BcFound {
    sources: u64,
    edges_traversed: u64,
    betweenness: Vec<f64>,
    #[serde(skip)]
    pub(super) scores: Scores,
}

impl BcFound {
    pub(super) fn of(scores: Scores) -> BcFound {
        let (sources, edges_traversed) = (scores.sources(), scores.edges_traversed());
        BcFound { sources, edges_traversed, betweenness: scores.values().collect(), scores }
    }
}

impl Application for Betweenness {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "bc uses no collectives of teams: --broadcast and --reduce change nothing.",
        ..ApplicationInfo::new("bc", env!("CARGO_PKG_DESCRIPTION"), "sources")
    };
    type Input = BcInput;
    type Found = BcFound;

    fn run_name(&self) -> String {
        let graph = self.graph_name().unwrap_or_else(|_| self.graph.clone());
        let file = Path::new(&graph).file_name().map(|name| name.to_string_lossy().into_owned());
        format!("bc-{}", file.unwrap_or(graph))
    }

    fn reads(&self) -> Vec<Claim> {
        let file = Some(&self.graph).filter(|graph| self.rmat.is_none() && graph::is_file(graph));
        let graph = file.map(|file| Claim::read(file, "the graph"));
        let efforts = self.known_efforts.as_ref().map(|file| Claim::read(file, "the known efforts"));
        graph.into_iter().chain(efforts).collect()
    }

    fn check_machine(&self, machine: Machine) -> Result<(), Failure> {
        match (&self.known_efforts, machine) {
            (None, _) | (_, Machine::Chip(_)) => Ok(()),
            _ => Err(Failure::Usage(format!(
                "{} is given, but the machine is {}; allowed: a modelled chip, because the file holds \
                 modelled times",
                cached_efforts::FLAG,
                machine.name()
            ))),
        }
    }

    fn open(&self, _: u32) -> Result<BcInput, Failure> {
        let name = self.graph_name()?;
        let plain = self.read(&name)?;
        // Efforts without lengths equal those with lengths of one, except for the order of vertices in a queue.
        let known = self.known_efforts.as_ref().map(|file| CachedEfforts::open(file, &plain)).transpose()?;
        let graph = self.with_lengths(plain)?;
        let (vertices, edges, directed) = (graph.vertices(), graph.edges(), graph.is_directed());
        let Betweenness { weights, balance, .. } = *self;
        Ok(BcInput { graph, known, name, vertices, edges, directed, weights, balance })
    }

    fn remarks(&self, input: &BcInput) -> Vec<String> {
        let has_unused = input.graph.left_out().weights && self.weights == Lengths::Ignore;
        let has_remark = has_unused && graph::is_file(&input.name);
        has_remark.then(|| graph::weights_remark(&input.name)).into_iter().collect()
    }

    fn heading(&self, input: &BcInput) -> String {
        let BcInput { name, vertices, edges, directed, .. } = input;
        let kind = if *directed { "directed" } else { "undirected" };
        let [vertices, edges] = [count(*vertices, "vertex", "vertices"), count(*edges, "edge", "edges")];
        format!("{name}: {vertices}, {edges}, {kind}")
    }

    async fn compute(input: BcInput, distributor: WorkDistributor) -> isles::Result<(BcFound, WorkDone)> {
        input.known.into_iter().for_each(CachedEfforts::use_in_this_process);
        let sources = distributor.units(input.vertices, input.balance).await?;
        let graph = Replicated::new(input.graph).await?;
        let own = PlaceLocal::new(Scores::zero).await?;
        let started = now();
        let mut balance = None;
        if sources.are_stolen() {
            balance = Some(sources.balance(SourceKernel { graph, own: own.clone() }).await?);
        } else {
            finish(async {
                for place in places() {
                    spawn_at!(place, add_sources(sources.here(), &graph, &own).await?);
                }
            })
            .await?;
        }
        let scores = own.reduce(Scores::merge).await?;
        let done = WorkDone { balance, ..sources.done(started).await? };
        Ok((BcFound::of(scores), done))
    }
}

impl RunResult for Betweenness {
    fn text(&self, found: &BcFound) -> String {
        match self.top {
            0 => String::new(),
            top => format!("{}\nA vertex is its number in the graph, from 0.", found.scores.top(top)),
        }
    }

    fn speed(&self, found: &BcFound, seconds: f64) -> String {
        let speed = found.edges_traversed as f64 / seconds / 1e6;
        format!("{speed:.1} million edges traversed a second")
    }

    fn verify(&self, found: &BcFound, is_thorough: bool) -> Result<Option<Verification>, Failure> {
        let again = is_thorough.then(|| self.with_lengths(self.read(&self.graph_name()?)?)).transpose()?;
        Ok(again.and_then(|graph| verify::by_definition(&graph, &found.scores)))
    }

    fn write_csv(&self, found: &BcFound, out: &mut dyn Write) -> io::Result<()> {
        found.scores.write_csv(out)
    }
}

/// Kernel that adds a source to the scores of the place that has stolen it.
#[derive(Clone, Serialize, Deserialize)]
struct SourceKernel {
    graph: Replicated<Graph>,
    own: PlaceLocal<Scores>,
}

impl UnitKernel for SourceKernel {
    fn compute(&self, source: u64, _: bool) -> bool {
        cached_efforts::add_source(&mut self.own.lock(), &self.graph, source);
        true
    }
}

/// Adds the sources taken by this place to its scores.
async fn add_sources(
    mut sources: UnitQueue<'_>,
    graph: &Graph,
    own: &PlaceLocal<Scores>,
) -> isles::Result<()> {
    while let Some(source) = sources.take().await? {
        cached_efforts::add_source(&mut own.lock(), graph, source);
    }
    Ok(())
}
