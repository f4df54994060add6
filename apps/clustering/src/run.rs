//! The application `modularity`: the graph, the steps over all places, and their check against one processor.
//!
//! In each step every place searches the best move of its vertices, divided as evenly as possible; the first place
//! applies the best of all. Invariant: the moves depend on the graph and the number of steps only.

use crate::bounds::Bounds;
use crate::graph::{self, STAND_INS, WeightedGraph};
use crate::levels;
use crate::multilevel;
use crate::objects::{ControllerChoice, MemoryChoice, ObjectChoices, Reading, SharedClusters};
use crate::picture;
use crate::search::{SearchEffort, Searcher, sequential};
use crate::state::{Change, Clustering, Move, modularity};
use clap::{Args, ValueEnum, value_parser};
use isles::Claim;
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunMeter, RunResult, Verification, WorkDistributor, WorkDone, bar, count,
};
use isles_app::input;
use isles_graph::{self as graphs, LeftOut, ReadOptions, Weights};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Largest accepted list of named vertices, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Number of lines in the table of clusters.
const LISTED: usize = 10;

/// Cycles of a core of a modelled chip per neighbour, cluster and vertex, excluding shared memory: a sum in a private
/// table, a comparison with a division (39 cycles on a P54C), and the loop around them.
const NEIGHBOUR_CYCLES: u64 = 12;
const CLUSTER_CYCLES: u64 = 60;
const VERTEX_CYCLES: u64 = 40;

/// Number of neighbours after which a search yields: few on a modelled chip, so that places interleave at a shared
/// memory as on the chip; elsewhere only messages wait.
const TURN_ON_CHIP: u64 = 8;
const TURN_ON_HOST: u64 = 4096;

/// Number of measured steps of a memory comparison, after a first one that fills caches.
const MEASURED_STEPS: u64 = 4;

/// Number of neighbours whose time on a host equals the fixed cost of a vertex, measured on cond-mat-2005.
const VERTEX_NEIGHBOURS: usize = 6;

/// Treatment of the weights of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum WeightChoice {
    /// Every edge weighs one; duplicates count once.
    #[default]
    Ignore,
    /// Edges have the weights of the file; weights of one pair add up.
    File,
}

/// Method of finding the best move of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum SearchChoice {
    /// Vertices whose bound is not below the best move.
    #[default]
    Bounds,
    /// All vertices, as the paper's program.
    All,
}

/// Method of clustering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Method {
    /// The best move of all vertices, again and again, as the paper's program.
    #[default]
    Greedy,
    /// Good moves of all vertices, then of clusters as vertices of a coarser graph, and back with refinement; soon done
    /// and better.
    Multilevel,
}

/// The arguments of `isles run modularity`.
#[derive(Args, Clone, Debug)]
pub struct Modularity {
    /// The graph: a name of `isles data list`, a file, `trade-66`, or `citations-240547`
    #[arg(long, value_name = "GRAPH", default_value = "karate")]
    graph: String,

    /// Weights of the edges of a file; lists of named vertices and stand-ins always have theirs
    #[arg(long, value_name = "HOW", default_value = "ignore")]
    weights: WeightChoice,

    /// Method of clustering
    #[arg(long, value_name = "HOW", default_value = "greedy")]
    method: Method,

    /// Most steps of the greedy method [default: until no move is good]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    steps: Option<u64>,

    /// Vertices that a step of the greedy method looks at; the moves are the same [default: bounds]
    #[arg(long, value_name = "WHICH")]
    search: Option<SearchChoice>,

    /// Notification method for stale caches
    #[arg(long, value_name = "HOW", default_value = "broadcast")]
    controller: ControllerChoice,

    /// Memory that holds the objects, on modelled chips
    #[arg(long, value_name = "KIND", default_value = "mixed")]
    memory: MemoryChoice,
}

/// Settings of a run, with the graph.
#[derive(Clone, Serialize)]
pub struct ModularityInput {
    graph: String,
    vertices: usize,
    edges: u64,
    weights: WeightChoice,
    method: Method,
    /// Search of the greedy method; `None` with the multilevel method.
    search: Option<SearchChoice>,
    controller: ControllerChoice,
    memory: MemoryChoice,
    #[serde(skip)]
    steps_max: u64,
    #[serde(skip)]
    weighted: WeightedGraph,
    /// Contents of the file that the graph does not have.
    #[serde(skip)]
    left_out: LeftOut,
}

/// Result of a run.
#[derive(Serialize)]
pub struct ModularityFound {
    /// The modularity of the clusters, and their number.
    modularity: f64,
    clusters: usize,
    /// Number of searches, for the best move or for moves of a batch, and number of moves made.
    steps: u64,
    moves: u64,
    /// A hash of all moves in order.
    hash: String,
    /// The memory of the objects.
    memory: MemoryChoice,
    /// The sizes of the clusters, the largest first.
    sizes: Vec<u32>,
    #[serde(skip)]
    pub(crate) graph: WeightedGraph,
    #[serde(skip)]
    pub(crate) state: Clustering,
    #[serde(skip)]
    made: Vec<Move>,
    #[serde(skip)]
    method: Method,
    #[serde(skip)]
    steps_max: u64,
}

/// Hashes moves in order (FNV-1a over vertex, cluster and the bits of the gain).
fn hash_of(moves: &[Move]) -> u64 {
    let words =
        moves.iter().flat_map(|made| [u64::from(made.vertex), u64::from(made.to), made.gain.to_bits()]);
    let bytes = words.flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the first vertex of each place, and the number of vertices. On a modelled chip all places have equal
/// numbers, like the paper's workers; elsewhere equal sums of vertices and neighbours, because a search takes time for
/// both.
fn cuts(graph: &WeightedGraph, places: usize, is_by_neighbours: bool) -> Vec<u32> {
    let vertices = graph.vertices();
    let by_neighbours = |vertex: usize| graph.offsets[vertex] as usize + VERTEX_NEIGHBOURS * vertex;
    let cost = |vertex: usize| if is_by_neighbours { by_neighbours(vertex) } else { vertex };
    let vertices_below = |limit: usize| {
        let (mut low, mut high) = (0, vertices);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if cost(middle) <= limit { low = middle } else { high = middle - 1 }
        }
        low as u32
    };
    (0..=places).map(|place| vertices_below(place * cost(vertices) / places)).collect()
}

impl Modularity {
    fn read(&self) -> Result<(WeightedGraph, LeftOut), Failure> {
        if let Some(graph) = graph::stand_in(&self.graph) {
            return Ok((graph, LeftOut::default()));
        }
        if graphs::is_file(&self.graph) {
            let file = &self.graph;
            let bytes = input::bytes(file, FILE_BYTES_MAX);
            let text = bytes.map(|bytes| input::text(&bytes)).unwrap_or_default();
            if graph::is_named_list(&text) {
                let read = graph::read_named_list(&text).map_err(|bad| {
                    let (line, found) = (bad.line, bad.found);
                    let text = format!(
                        "{file}, line {line}: {found:?}; allowed: `from to weight`, two names and a weight above zero"
                    );
                    Failure::Usage(text)
                });
                return read.map(|graph| (graph, LeftOut::default()));
            }
        }
        let weights = match self.weights {
            WeightChoice::Ignore => Weights::Ignored,
            WeightChoice::File => Weights::Strengths,
        };
        let options = ReadOptions { weights, directed: false };
        let read = graphs::open(&self.graph, &options);
        let stand_ins = STAND_INS.map(|(name, _)| name).join(", ");
        let read = read.map_err(|error| match error {
            graphs::OpenError::NoSuchGraph { .. } => Failure::Usage(format!("{error}, {stand_ins}")),
            error => Failure::Usage(error.to_string()),
        })?;
        if self.weights == WeightChoice::File && !read.is_weighted() {
            return Err(Failure::Usage(format!(
                "--weights is \"file\", but {} has no weights; allowed: ignore",
                self.graph
            )));
        }
        Ok((WeightedGraph::of(&read), read.left_out()))
    }
}

/// Returns the best move of these vertices.
async fn search(searcher: &mut Searcher, reading: &Reading<'_>, vertices: Range<u32>, turn: u64) -> Move {
    let (mut best, mut effort) = (Move::NONE, SearchEffort::default());
    for vertex in vertices {
        best = best.better(searcher.best_of(reading, vertex, &mut effort));
        work(Cycles(VERTEX_CYCLES));
        if effort.neighbours >= turn {
            effort.take().charge(0);
            yield_now().await;
        }
    }
    effort.charge(0);
    best
}

impl SearchEffort {
    /// Charges a core of a modelled chip for the search of `vertices` vertices, excluding its accesses to shared
    /// memory.
    pub(crate) fn charge(self, vertices: usize) {
        let loops = vertices as u64 * VERTEX_CYCLES;
        work(Cycles(loops + self.neighbours * NEIGHBOUR_CYCLES + self.clusters * CLUSTER_CYCLES));
    }

    fn take(&mut self) -> SearchEffort {
        std::mem::take(self)
    }
}

/// The settings of a run, sent to each place.
#[derive(Clone, Serialize, Deserialize)]
struct RunPlan {
    objects: SharedClusters,
    cuts: Vec<u32>,
    vertices: usize,
    total: f64,
    /// Search of the greedy method; `None` with the multilevel method.
    search: Option<SearchChoice>,
    choices: ObjectChoices,
    steps_max: u64,
}

impl RunPlan {
    /// Shares the graph, with each vertex in its own cluster.
    async fn new(
        graph: &WeightedGraph,
        choices: ObjectChoices,
        search: Option<SearchChoice>,
        steps_max: u64,
    ) -> isles::Result<RunPlan> {
        let objects = SharedClusters::new(graph, &Clustering::singletons(graph), choices).await?;
        let cuts = cuts(graph, place_count(), !objects.are_incoherent());
        let (vertices, total) = (graph.vertices(), graph.total);
        Ok(RunPlan { objects, cuts, vertices, total, search, choices, steps_max })
    }

    /// Clusters the graph over all places; returns the clusters, the moves and the number of steps.
    async fn run(
        &self,
        graph: &WeightedGraph,
        meter: &RunMeter,
    ) -> isles::Result<(Clustering, Vec<Move>, u64)> {
        let mut own = None;
        finish(async {
            for place in places().skip(1) {
                let plan = self;
                spawn_at!(place, plan.follow(meter).await?);
            }
            own = Some(self.lead(graph, meter).await?);
            Ok::<_, isles::Error>(())
        })
        .await?;
        Ok(own.expect("the first place has run"))
    }

    /// Runs the first place's share; returns the clusters, the moves and the number of steps.
    async fn lead(
        &self,
        graph: &WeightedGraph,
        meter: &RunMeter,
    ) -> isles::Result<(Clustering, Vec<Move>, u64)> {
        match self.search {
            Some(search) => run_place(graph, self, search, meter).await,
            None => levels::lead(graph, self.objects.clone(), self.choices, meter).await,
        }
    }

    /// Runs the share of any other place.
    async fn follow(&self, meter: &RunMeter) -> isles::Result<()> {
        match self.search {
            Some(search) => run_place(&WeightedGraph::default(), self, search, meter).await.map(drop),
            None => levels::Follower::new(self.vertices, self.total).run(meter).await,
        }
    }
}

/// Finds the best move of this place's vertices, with the chosen method.
enum StepSearch {
    All { own: Range<u32>, turn: u64 },
    Bounds { bounds: Option<Box<Bounds>>, own: Range<u32>, moved: Option<Change> },
}

impl StepSearch {
    fn new(plan: &RunPlan, search: SearchChoice, own: Range<u32>) -> StepSearch {
        match search {
            SearchChoice::All => {
                let turn = if plan.objects.are_incoherent() { TURN_ON_CHIP } else { TURN_ON_HOST };
                StepSearch::All { own, turn }
            }
            SearchChoice::Bounds => StepSearch::Bounds { bounds: None, own, moved: None },
        }
    }

    async fn best(&mut self, searcher: &mut Searcher, reading: &Reading<'_>) -> Move {
        match self {
            StepSearch::All { own, turn } => search(searcher, reading, own.clone(), *turn).await,
            StepSearch::Bounds { bounds, own, moved } => {
                let mut effort = SearchEffort::default();
                let all = searcher.vertices();
                let bounds = bounds.get_or_insert_with(|| Box::new(Bounds::new(reading, all, own.clone())));
                if let Some(change) = moved.take() {
                    bounds.moved(reading, change, searcher, &mut effort);
                }
                let best = bounds.best(reading, searcher, &mut effort);
                effort.charge(0);
                best
            }
        }
    }

    /// Sends the change of this step, if any, to all places; returns `true` if there is one.
    async fn broadcast_change(&mut self, team: &Team, change: Option<Change>) -> isles::Result<bool> {
        let is_first = team.rank() == 0;
        match self {
            StepSearch::All { .. } => team.broadcast(0, is_first.then_some(change.is_some())).await,
            StepSearch::Bounds { moved, .. } => {
                *moved = team.broadcast(0, is_first.then_some(change)).await?;
                Ok(moved.is_some())
            }
        }
    }
}

/// Runs one place's share. Only the first place knows the graph; it returns the clusters and the moves.
async fn run_place(
    graph: &WeightedGraph,
    plan: &RunPlan,
    search: SearchChoice,
    meter: &RunMeter,
) -> isles::Result<(Clustering, Vec<Move>, u64)> {
    let (team, objects) = (Team::world(), &plan.objects);
    let mut search = StepSearch::new(plan, search, plan.cuts[team.rank()]..plan.cuts[team.rank() + 1]);
    let mut searcher = Searcher::new(plan.vertices, plan.total);
    let mut state = Clustering::singletons(graph);
    let (mut moves, mut steps) = (Vec::new(), 0);
    while steps < plan.steps_max {
        let started = Instant::now();
        steps += 1;
        let reading = objects.read().await?;
        let own = search.best(&mut searcher, &reading).await;
        drop(reading);
        meter.add_done(started);
        let best = team.reduce(0, own, Move::better).await?;
        let mut change = None;
        if let Some(best) = best.filter(|best| best.gain > 0.0) {
            let made = state.apply(graph, best);
            objects.apply(&[made]).await?;
            moves.push(best);
            change = Some(made);
        }
        if !search.broadcast_change(&team, change).await? {
            break;
        }
    }
    Ok((state, moves, steps))
}

/// Returns the memory with the fastest steps, excluding the first step; the moves are discarded.
async fn measured(
    graph: &WeightedGraph,
    choices: ObjectChoices,
    meter: &RunMeter,
) -> isles::Result<MemoryChoice> {
    let mut fastest = None;
    for memory in [MemoryChoice::Mixed, MemoryChoice::Through, MemoryChoice::Cached, MemoryChoice::Uncached] {
        let choices = ObjectChoices { memory, ..choices };
        let mut times = [Duration::ZERO; 2];
        for (time, steps) in times.iter_mut().zip([1, 1 + MEASURED_STEPS]) {
            let plan = RunPlan::new(graph, choices, Some(SearchChoice::All), steps).await?;
            if !plan.objects.are_incoherent() {
                return Ok(MemoryChoice::default());
            }
            let started = now();
            plan.run(graph, meter).await?;
            *time = now() - started;
        }
        let time = times[1].saturating_sub(times[0]);
        if fastest.is_none_or(|(least, _)| time < least) {
            fastest = Some((time, memory));
        }
    }
    Ok(fastest.map_or(MemoryChoice::default(), |(_, memory)| memory))
}

/// Returns the name of a choice on the command line.
fn named(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl Application for Modularity {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "The moves are the same at any number of places, on any machine, with any controller and memory. --svg draws \
         the clusters.",
        draws_result: true,
        ..ApplicationInfo::new("modularity", env!("CARGO_PKG_DESCRIPTION"), "searches")
    };
    type Input = ModularityInput;
    type Found = ModularityFound;

    fn run_name(&self) -> String {
        let name = if graphs::is_file(&self.graph) { "file" } else { self.graph.as_str() };
        let method = if self.method == Method::Greedy { "" } else { "-multilevel" };
        format!("modularity-{}{method}", name.replace([':', ',', '.'], "-"))
    }

    fn reads(&self) -> Vec<Claim> {
        let is_file = graphs::is_file(&self.graph);
        is_file.then(|| Claim::read(&self.graph, "the graph")).into_iter().collect()
    }

    fn open(&self, _places: u32) -> Result<ModularityInput, Failure> {
        if self.method == Method::Multilevel {
            let unused = [("--steps", self.steps.is_some()), ("--search", self.search.is_some())];
            if let Some((flag, _)) = unused.iter().find(|(_, is_given)| *is_given) {
                return Err(Failure::Usage(format!("{flag} is only for `--method greedy`; leave it out")));
            }
        }
        let (weighted, left_out) = self.read()?;
        if weighted.total <= 0.0 {
            return Err(Failure::Usage(format!(
                "{}: no edges; allowed: a graph with at least one",
                self.graph
            )));
        }
        Ok(ModularityInput {
            graph: self.graph.clone(),
            vertices: weighted.vertices(),
            edges: weighted.lines,
            weights: self.weights,
            method: self.method,
            search: (self.method == Method::Greedy).then(|| self.search.unwrap_or_default()),
            controller: self.controller,
            memory: self.memory,
            steps_max: self.steps.unwrap_or(u64::MAX),
            weighted,
            left_out,
        })
    }

    fn remarks(&self, input: &ModularityInput) -> Vec<String> {
        let (LeftOut { weights, parallel_edges }, file) = (input.left_out, &self.graph);
        if self.weights == WeightChoice::File || !graphs::is_file(file) {
            return Vec::new();
        }
        let weights = weights.then(|| graphs::weights_remark(file));
        let parallel = (parallel_edges > 0).then(|| {
            let edges = count(parallel_edges, "line repeats an edge", "lines repeat an edge");
            format!("of {file} {edges}, which counts once")
        });
        weights.into_iter().chain(parallel).collect()
    }

    fn heading(&self, input: &ModularityInput) -> String {
        let vertices = count(input.vertices as u64, "vertex", "vertices");
        let edges = count(input.edges, "edge", "edges");
        let (controller, memory) = (named(&input.controller), named(&input.memory));
        let method = named(&input.method);
        format!("{}, {vertices}, {edges}, {method}, {controller}, {memory}", input.graph)
    }

    async fn compute(
        input: ModularityInput,
        distributor: WorkDistributor,
    ) -> isles::Result<(ModularityFound, WorkDone)> {
        let ModularityInput { weighted: graph, steps_max, memory, controller, method, search, .. } = input;
        let meter = distributor.meter(None).await?;
        let mut choices = ObjectChoices { memory, controller };
        if memory == MemoryChoice::Measured {
            distributor.begin_phase("choice of memory");
            choices.memory = measured(&graph, choices, &meter).await?;
            distributor.begin_phase("search");
        }
        let plan = RunPlan::new(&graph, choices, search, steps_max).await?;
        let started = now();
        let (state, made, steps) = plan.run(&graph, &meter).await?;
        let done = meter.done(started).await?;
        let sizes = state.sizes();
        let found = ModularityFound {
            modularity: modularity(&graph, &state.clusters),
            clusters: sizes.len(),
            steps,
            moves: made.len() as u64,
            hash: format!("{:016x}", hash_of(&made)),
            memory: choices.memory,
            sizes,
            graph,
            state,
            made,
            method,
            steps_max,
        };
        Ok((found, done))
    }
}

impl RunResult for Modularity {
    fn text(&self, found: &ModularityFound) -> String {
        let ModularityFound { modularity, clusters, steps, moves, hash, sizes, memory, .. } = found;
        let mut text = format!(
            "modularity  {modularity:.12}\nclusters    {clusters}\nmoves       {moves} in {}\nhash        {hash}\n\n\
             cluster  vertices",
            count(*steps, "step", "steps"),
        );
        if self.memory == MemoryChoice::Measured {
            let line = format!("\nmemory      {}, the fastest in {MEASURED_STEPS} steps", named(memory));
            text.insert_str(text.find("\n\n").unwrap_or(text.len()), &line);
        }
        let most = f64::from(sizes.first().copied().unwrap_or(1));
        for (number, size) in sizes.iter().take(LISTED).enumerate() {
            let _ = write!(text, "\n{number:>7}  {size:>8}  {}", bar(f64::from(*size), most));
        }
        if let Some(rest) = sizes.get(LISTED..).filter(|rest| !rest.is_empty()) {
            let vertices: u64 = rest.iter().map(|size| u64::from(*size)).sum();
            let _ = write!(text, "\n{} others  {vertices}", rest.len());
        }
        text
    }

    fn speed(&self, found: &ModularityFound, seconds: f64) -> String {
        format!("{:.0} steps a second", found.steps as f64 / seconds)
    }

    fn verify(&self, found: &ModularityFound, is_thorough: bool) -> Result<Option<Verification>, Failure> {
        if !is_thorough {
            return Ok(None);
        }
        let moves = match found.method {
            Method::Greedy => sequential(&found.graph, found.steps_max).1,
            Method::Multilevel => multilevel::sequential(&found.graph).1,
        };
        let text = format!("all {} are those of one processor", count(found.moves, "move", "moves"));
        Ok(Some(Verification { holds: moves == found.made, text }))
    }

    fn write_csv(&self, found: &ModularityFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "vertex,cluster")?;
        let mut rows = found.state.clusters.iter().enumerate();
        rows.try_for_each(|(vertex, cluster)| writeln!(out, "{},{cluster}", found.graph.name(vertex)))
    }

    fn write_picture(&self, _flag: &str, found: &ModularityFound, out: &mut dyn Write) -> io::Result<()> {
        let vertices = count(found.graph.vertices() as u64, "vertex", "vertices");
        let clusters = count(found.clusters as u64, "cluster", "clusters");
        let caption = format!(
            "{}: {vertices} in {clusters}, modularity {:.6} ({})",
            self.graph.rsplit('/').next().unwrap_or_default(),
            found.modularity,
            named(&self.method)
        );
        picture::write_svg(&found.graph, &found.state.clusters, &caption, out)
    }
}
