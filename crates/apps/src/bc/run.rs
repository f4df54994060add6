//! Betweenness over all places: the graph once at each, the sources assigned, the scores folded together.

use super::place_work::PlaceWork;
use super::{Scores, cached_run, output, place_work};
use crate::console::Progress;
use crate::frame::{OutputArguments, Outputs, RunFacts, SILENT, count, duration};
use crate::graph;
use crate::graph::rmat::Rmat;
use crate::graph::{Graph, ReadOptions, Weights};
use crate::registry::{App, Failure};
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use isles::prelude::*;
use isles::{Claim, Launch, Machine, RunReport};
use serde::Serialize;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The application `bc`.
pub struct Betweenness;

/// How the sources are assigned to the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Balance {
    /// Of n places, place p takes the sources p, p + n, p + 2 n and so on.
    Static,
    /// Every place takes the next source from a counter that all share.
    Dynamic,
}

/// Which lengths the edges have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Lengths {
    /// All one, by breadth-first search.
    Ignore,
    /// The weights of the file, by Dijkstra's algorithm.
    File,
    /// All one, by Dijkstra's algorithm: the same scores as `ignore`, for comparison.
    Unit,
}

/// The arguments of `isles run bc`.
#[derive(Args, Debug)]
struct Arguments {
    /// A file (edge list, Matrix Market, .gt; also gzipped), a name (`isles data list`), or rmat:n,a,b,c,d[,seed]
    #[arg(long, value_name = "FILE|NAME", default_value = "power")]
    graph: String,

    /// A generated graph instead: small, medium, large or steep (published workloads), or n,a,b,c,d[,seed]
    #[arg(long, value_name = "WORKLOAD", conflicts_with = "graph")]
    rmat: Option<String>,

    /// Which lengths the edges have
    #[arg(long, value_enum, default_value = "ignore")]
    weights: Lengths,

    /// Read an edge list as directed
    #[arg(long)]
    directed: bool,

    /// How the sources are assigned
    #[arg(long, value_enum, default_value = "dynamic")]
    balance: Balance,

    /// How many of the most central vertices to print
    #[arg(long, value_name = "N", default_value = "10", allow_hyphen_values = true, value_parser = top)]
    top: usize,

    #[command(flatten)]
    outputs: OutputArguments,
}

/// Reads a number of vertices.
fn top(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(|_| "a whole number from 0 up")
}

impl Arguments {
    /// The graph, by a name that `--graph` takes.
    fn graph(&self) -> Result<String, Failure> {
        let Some(rmat) = &self.rmat else { return Ok(self.graph.clone()) };
        let workload = WORKLOADS.iter().find(|(name, _)| name == rmat);
        let graph = workload.map_or_else(|| format!("rmat:{rmat}"), |(_, graph)| (*graph).to_owned());
        match Rmat::parse(&graph) {
            Some(Ok(_)) => Ok(graph),
            _ => Err(Failure::Usage(format!(
                "--rmat is {rmat:?}; allowed: small, medium, large, steep, or n,a,b,c,d or n,a,b,c,d,seed, n from 1 to \
                 24, a, b, c and d at least 0 with sum 1"
            ))),
        }
    }
}

/// What `--rmat` calls the graphs on which X10 was measured on the SCC.
const WORKLOADS: [(&str, &str); 4] =
    [("small", "rmat-11"), ("medium", "rmat-14"), ("large", "rmat-15"), ("steep", "rmat-14-steep")];

impl App for Betweenness {
    fn name(&self) -> &'static str {
        "bc"
    }

    fn about(&self) -> &'static str {
        "Betweenness centrality of a graph (Brandes' algorithm)"
    }

    fn arguments(&self, command: Command) -> Command {
        let note = "bc uses no collectives of teams: --broadcast and --reduce change nothing.";
        Arguments::augment_args(command).after_help(note)
    }

    fn silent(&self) -> &'static [(&'static str, &'static str)] {
        const { &[SILENT[0], SILENT[1], ("top", "0")] }
    }

    fn reads(&self, arguments: &ArgMatches) -> Vec<Claim> {
        let said = |name| arguments.get_one::<String>(name);
        let file = said("graph").filter(|graph| said("rmat").is_none() && graph::is_file(graph));
        file.map(|file| Claim::read(file, "the graph")).into_iter().collect()
    }

    fn run(&self, arguments: &ArgMatches, launch: Launch) -> Result<(), Failure> {
        let mut arguments =
            Arguments::from_arg_matches(arguments).map_err(|error| Failure::Usage(error.to_string()))?;
        arguments.graph = arguments.graph()?;
        let name = Path::new(&arguments.graph).file_name();
        let name = name.map_or(arguments.graph.as_str().into(), |name| name.to_string_lossy());
        let outputs = Outputs::check(&format!("bc-{name}"), &arguments.outputs, &launch)?;
        let graph = open(&arguments)?;
        let facts = RunSummary::of(&arguments, &graph, &launch);
        outputs.tell(&facts.heading())?;
        let balance = arguments.balance;
        // On a chip asking for them would be part of the prediction; its report says more.
        let shares = !matches!(launch.chosen_machine(), Machine::Chip(_));
        let found = Rc::new(RefCell::new(None));
        let place = Rc::clone(&found);
        let (result, report) = launch.run(move || async move {
            *place.borrow_mut() = Some(compute(graph, balance, shares).await?);
            Ok::<_, isles::Error>(())
        })?;
        result.map_err(Failure::Run)?;
        let BcResult { scores, seconds, shares } = found.take().unwrap_or_default();
        let facts = facts.complete(&scores, (seconds, shares), &report);
        outputs.write(
            &format!("{}{}", ranking(&scores, arguments.top), facts.figures()),
            |out| output::write_json(out, &scores, &facts),
            |out| output::write_csv(out, &scores),
            None,
        )
    }
}

fn open(arguments: &Arguments) -> Result<Graph, Failure> {
    let weights = if arguments.weights == Lengths::File { Weights::Read } else { Weights::Ignored };
    let options = ReadOptions { weights, directed: arguments.directed };
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let graph = graph::open(&arguments.graph, &options).map_err(|error| usage(&error))?;
    match arguments.weights {
        Lengths::File if !graph.is_weighted() => {
            let graph = &arguments.graph;
            Err(Failure::Usage(format!(
                "--weights is \"file\", but {graph} has no weights; allowed: ignore, unit"
            )))
        }
        Lengths::Unit => graph.with_weights(|_, _| 1.0).map_err(|error| usage(&error)),
        Lengths::File | Lengths::Ignore => Ok(graph),
    }
}

/// What a run comes to.
#[derive(Default)]
pub(super) struct BcResult {
    pub(super) scores: Scores,
    /// Seconds that all sources took.
    seconds: f64,
    /// What each place did, if that was asked for.
    shares: Vec<PlaceWork>,
}

/// What a place has of it; the share does not travel with the scores.
#[derive(Clone, Default, Serialize, serde::Deserialize)]
struct PlaceScores {
    scores: Scores,
    #[serde(skip)]
    share: PlaceWork,
}

impl PlaceScores {
    fn merge(self, other: PlaceScores) -> PlaceScores {
        PlaceScores { scores: self.scores.merge(other.scores), ..self }
    }
}

/// The scores of all vertices, and if it `asks_shares` what each place did.
pub(super) async fn compute(graph: Graph, balance: Balance, asks_shares: bool) -> isles::Result<BcResult> {
    let graph = Replicated::new(graph).await?;
    let own = PlaceLocal::new(PlaceScores::default).await?;
    let next = Counter::new();
    let started = now();
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let deal = SourceQueue::new(balance, next, graph.vertices());
                add_sources(deal, &graph, &own).await?;
            });
        }
    })
    .await?;
    let seconds = (now() - started).as_secs_f64();
    let mut shares = Vec::new();
    for place in places().filter(|_| asks_shares) {
        shares.push(at!(place, own.lock().share).await?);
    }
    let scores = own.reduce(PlaceScores::merge).await?.scores;
    Ok(BcResult { scores, seconds, shares })
}

/// The sources of one place, one after the other.
struct SourceQueue {
    balance: Balance,
    next: Counter,
    own: u64,
    vertices: u64,
}

impl SourceQueue {
    fn new(balance: Balance, next: Counter, vertices: u64) -> Self {
        SourceQueue { balance, next, own: here().index() as u64, vertices }
    }

    async fn take(&mut self) -> isles::Result<Option<u64>> {
        if self.balance == Balance::Dynamic {
            return self.next.take_below(self.vertices).await;
        }
        let source = self.own;
        self.own += isles::place_count() as u64;
        Ok((source < self.vertices).then_some(source))
    }
}

/// Adds the sources that `deal` gives to the scores of this place; the first place tells how far all are.
async fn add_sources(
    mut deal: SourceQueue,
    graph: &Graph,
    own: &PlaceLocal<PlaceScores>,
) -> isles::Result<()> {
    let mut progress = (here().index() == 0).then(|| Progress::new(graph.vertices(), "sources"));
    while let Some(source) = deal.take().await? {
        // What a dead place had added is lost, and its loss is the error of the whole: the others need not go on.
        if places().any(Place::is_dead) {
            break;
        }
        let started = Instant::now();
        cached_run::add_source(&mut own.lock().scores, graph, source);
        own.lock().share.add(started);
        isles::yield_now().await; // a source is long: messages, and the news of a death, have waited
        if let Some(progress) = progress.as_mut().filter(|progress| progress.is_due()) {
            progress.tell(source + 1); // sources are assigned in order, so about as many are done
        }
    }
    Ok(())
}

/// What is known of a run; the head of the JSON document.
#[derive(Clone, Debug, Serialize)]
struct RunSummary {
    #[serde(flatten)]
    facts: RunFacts,
    graph: String,
    vertices: u64,
    edges: u64,
    directed: bool,
    weights: Lengths,
    balance: Balance,
    edges_traversed_per_second: f64,
    /// What each place did, in order of the places; empty on a modelled chip.
    shares: Vec<PlaceWork>,
}

impl RunSummary {
    fn of(arguments: &Arguments, graph: &Graph, launch: &Launch) -> Self {
        RunSummary {
            facts: RunFacts::of(launch),
            graph: arguments.graph.clone(),
            vertices: graph.vertices(),
            edges: graph.edges(),
            directed: graph.is_directed(),
            weights: arguments.weights,
            balance: arguments.balance,
            edges_traversed_per_second: 0.0,
            shares: Vec::new(),
        }
    }

    fn heading(&self) -> String {
        let RunSummary { graph, vertices, edges, facts, .. } = self;
        let kind = if self.directed { "directed" } else { "undirected" };
        let [vertices, edges] = [count(*vertices, "vertex", "vertices"), count(*edges, "edge", "edges")];
        format!("{graph}: {vertices}, {edges}, {kind}; {}", facts.where_it_runs())
    }

    fn figures(&self) -> String {
        let RunSummary { facts, edges_traversed_per_second, shares, .. } = self;
        let speed = edges_traversed_per_second / 1e6;
        let shares = match shares.as_slice() {
            [] => String::new(),
            shares => place_work::table(shares, Duration::from_secs_f64(facts.seconds)) + "\n",
        };
        format!(
            "{shares}time   {} for all sources\n\
             speed  {speed:.1} million edges traversed a second\n\
             moved  {}",
            duration(facts.seconds),
            facts.moved()
        )
    }

    fn complete(
        mut self,
        scores: &Scores,
        (seconds, shares): (f64, Vec<PlaceWork>),
        report: &RunReport,
    ) -> Self {
        self.facts.complete(seconds, report);
        self.shares = shares;
        self.edges_traversed_per_second = scores.edges_traversed() as f64 / seconds;
        self
    }
}

/// The most central vertices as lines, and what they are called; none when none are wanted.
fn ranking(scores: &Scores, top: usize) -> String {
    match top {
        0 => String::new(),
        top => format!("{}\nA vertex is its number in the graph, from 0.\n\n", scores.top(top)),
    }
}
