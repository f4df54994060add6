//! The application `imsuite`: arguments, the run over all places, and its output.
//!
//! The input is read or generated, and checked, before any place starts. Every answer is verified. Invariant: the
//! result has the answers and the messages between nodes; the number of messages between places is not part of the
//! answer.

use super::input::generate::{self, Recipe};
use super::input::{Input, InputFault, InputSource, REACHABLE_NODES_MAX, read};
use super::kernel::KernelName;
use super::kernels;
use super::place_task::KernelOutcome;
use super::ship::Ship;
use clap::{ArgGroup, Args, value_parser};
use isles::Claim;
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone, count,
};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// The arguments of `isles run imsuite`.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("network").required(true).args(["input", "generate"])))]
pub struct ImSuite {
    /// The kernel
    #[arg(long, value_enum, ignore_case = true)]
    kernel: KernelName,

    /// A network in the form of the suite
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// A network of N nodes, 1 to 8192, of a family: sparse-max, sparse-min, ring, chain or star
    #[arg(long, value_name = "N[,FAMILY]")]
    generate: Option<String>,

    /// Maximum size of a committee of a generated network, for KC [default: 3, or all nodes if there are fewer]
    #[arg(long, value_name = "K", value_parser = value_parser!(u32), conflicts_with = "input")]
    committee: Option<u32>,

    /// Seed of a generated network and of the random choices of nodes
    #[arg(long, value_name = "N", default_value = "1")]
    random_seed: u64,

    /// Data sent with a call: what it uses, or everything reachable from the kernel, as in X10
    #[arg(long, value_enum, default_value = "minimal")]
    ship: Ship,
}

impl ImSuite {
    /// Returns the arguments of a run of a kernel on a generated network, such as `128,sparse-min`.
    #[cfg(test)]
    pub(super) fn generated(kernel: KernelName, network: &str, random_seed: u64, ship: Ship) -> ImSuite {
        let generate = Some(network.to_owned());
        ImSuite { kernel, input: None, generate, committee: None, random_seed, ship }
    }

    /// Returns the network that the arguments select.
    fn network(&self) -> Result<Input, InputFault> {
        let seed = self.random_seed;
        if let Some(path) = &self.input {
            return read::file(self.kernel, path, seed);
        }
        let value = self.generate.as_deref().unwrap_or_default();
        let recipe = Recipe::parse(value)?;
        let committee = self.committee.unwrap_or_else(|| COMMITTEE.min(recipe.size as u32));
        generate::input(self.kernel, recipe, committee, seed, &InputSource::Generator(value.to_owned()))
    }
}

/// Default maximum size of a committee: as in the suite's files of 128 nodes.
const COMMITTEE: u32 = 3;

/// A network with the task for it.
#[derive(Serialize)]
pub struct ImSuiteInput {
    kernel: KernelName,
    nodes: usize,
    edges: usize,
    random_seed: u64,
    ship: Ship,
    #[serde(skip)]
    network: Input,
}

/// Result of a kernel.
#[derive(Serialize)]
pub struct ImSuiteFound {
    /// Rounds of all nodes.
    rounds: u64,
    /// Messages and questions from node to node.
    node_messages: u64,
    /// Messages and questions between different places.
    calls: u64,
    /// Answer of each node: a number, or one for each node.
    answers: Vec<Vec<i64>>,
    #[serde(skip)]
    network: Input,
}

impl ImSuiteFound {
    /// Returns the number of messages and questions between different places.
    #[cfg(test)]
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the number of rounds.
    #[cfg(test)]
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Returns the answer of each node.
    #[cfg(test)]
    pub(super) fn answers(&self) -> &[Vec<i64>] {
        &self.answers
    }
}

impl Application for ImSuite {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "Every answer is verified. It is the same at any number of places.",
        ..ApplicationInfo::new("imsuite", env!("CARGO_PKG_DESCRIPTION"), "rounds")
    };
    type Input = ImSuiteInput;
    type Found = ImSuiteFound;

    fn run_name(&self) -> String {
        format!("imsuite-{}", self.kernel)
    }

    fn reads(&self) -> Vec<Claim> {
        self.input.iter().map(|path| Claim::read(path.display().to_string(), "the network")).collect()
    }

    fn open(&self, _: u32) -> Result<ImSuiteInput, Failure> {
        let network = self.network().map_err(|fault| Failure::Usage(fault.to_string()))?;
        let (nodes, edges) = (network.size(), network.edges());
        let ImSuite { kernel, random_seed, ship, .. } = *self;
        if ship == Ship::Reachable && nodes > REACHABLE_NODES_MAX {
            return Err(Failure::Usage(format!(
                "--ship is \"reachable\"; allowed: minimal, because there are {nodes} nodes and reachable takes at most \
                 {REACHABLE_NODES_MAX}"
            )));
        }
        Ok(ImSuiteInput { kernel, nodes, edges, random_seed, ship, network })
    }

    fn heading(&self, input: &ImSuiteInput) -> String {
        let [nodes, edges] = [(input.nodes, "node"), (input.edges, "edge")]
            .map(|(number, noun)| count(number as u64, noun, &format!("{noun}s")));
        let ship = match input.ship {
            Ship::Minimal => "",
            Ship::Reachable => ", shipping all that is reachable",
        };
        format!("{} on {nodes} with {edges}{ship}", input.kernel)
    }

    async fn compute(
        input: ImSuiteInput,
        distributor: WorkDistributor,
    ) -> isles::Result<(ImSuiteFound, WorkDone)> {
        let ImSuiteInput { ship, network, .. } = input;
        let meter = distributor.meter(None).await?;
        let _steps = distributor.open_steps();
        let KernelOutcome { answers, counts, done } = kernels::run(&network, ship, &meter).await?;
        let (rounds, node_messages, calls) = (counts.rounds, counts.messages, counts.calls);
        Ok((ImSuiteFound { rounds, node_messages, calls, answers, network }, done))
    }
}

impl RunResult for ImSuite {
    fn text(&self, found: &ImSuiteFound) -> String {
        let ImSuiteFound { rounds, node_messages, calls, .. } = found;
        format!("rounds    {rounds}\nmessages  {node_messages} between nodes, {calls} of them between places")
    }

    fn speed(&self, found: &ImSuiteFound, seconds: f64) -> String {
        format!("{:.0} messages between nodes a second", found.node_messages as f64 / seconds)
    }

    fn verify(&self, found: &ImSuiteFound, _: bool) -> Result<Option<Verification>, Failure> {
        let (holds, text) = match kernels::verify(&found.network, &found.answers) {
            Ok(text) => (true, text),
            Err(text) => (false, text),
        };
        Ok(Some(Verification { holds, text }))
    }

    fn write_csv(&self, found: &ImSuiteFound, out: &mut dyn Write) -> io::Result<()> {
        // A node has found one number, or, for routing tables, one per node.
        match self.kernel {
            KernelName::DR => writeln!(out, "node,target,next")?,
            _ => writeln!(out, "node,answer")?,
        }
        for (node, answer) in found.answers.iter().enumerate() {
            for (target, number) in answer.iter().enumerate() {
                match self.kernel {
                    KernelName::DR => writeln!(out, "{node},{target},{number}")?,
                    _ => writeln!(out, "{node},{number}")?,
                }
            }
        }
        Ok(())
    }
}
