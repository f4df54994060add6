//! The application `uts`: the choice of the tree, the run over all places, and the check against the published sizes.
//!
//! Invariant: a published tree is checked in each run, another one with `--verify`.

use super::bag::TreeBag;
use super::tree::{SAMPLES, SearchTree, TreeKind, TreeRules, TreeSize};
use clap::{Args, value_parser};
use isles::glb::{self, Balanced, Parameters};
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, BalanceArguments, RunResult, Verification, WorkDistributor, WorkDone,
};
use serde::Serialize;
use std::io::{self, Write};

/// Largest accepted depth: a tree of depth 16 has about 7 billion nodes.
const DEPTH_MAX: u32 = 1000;

/// The arguments of `isles run uts`.
#[derive(Args, Clone, Debug)]
pub struct TreeSearch {
    /// Published tree: T1, T2, T3, T4, T5 (4 million nodes), T1L, T3L (100 million)
    #[arg(long, value_name = "NAME", default_value = "T1")]
    tree: String,

    /// Another depth of the tree, 1 to 1000, unless it is binomial [default: as published]
    #[arg(long, value_name = "D", value_parser = value_parser!(u32).range(1..=i64::from(DEPTH_MAX)))]
    depth: Option<u32>,

    /// Another root of the tree [default: as published]
    #[arg(long, value_name = "R")]
    root_seed: Option<u32>,

    #[command(flatten)]
    balance: BalanceArguments,
}

/// The tree to search, and the balancing.
#[derive(Serialize)]
pub struct SearchInput {
    tree: String,
    rules: TreeRules,
    balance: Parameters,
}

/// Result of a search.
#[derive(Serialize)]
pub struct SearchFound {
    #[serde(flatten)]
    size: TreeSize,
    #[serde(skip)]
    rules: TreeRules,
}

impl TreeSearch {
    /// Returns the rules of the tree.
    fn rules(&self) -> Result<TreeRules, Failure> {
        let sample = SAMPLES.iter().find(|sample| sample.name.eq_ignore_ascii_case(&self.tree));
        let names = || SAMPLES.map(|sample| sample.name).join(", ");
        let refused = || Failure::Usage(format!("--tree is {:?}; allowed: {}", self.tree, names()));
        let mut rules = sample.ok_or_else(refused)?.rules;
        rules.root_seed = self.root_seed.unwrap_or(rules.root_seed);
        if let Some(wanted) = self.depth {
            match &mut rules.kind {
                TreeKind::Geometric { depth, .. } | TreeKind::Hybrid { depth, .. } => *depth = wanted,
                TreeKind::Binomial { .. } => {
                    let text =
                        format!("--depth is {wanted}; allowed: none for the binomial tree {}", self.tree);
                    return Err(Failure::Usage(text));
                }
            }
        }
        Ok(rules)
    }
}

impl Application for TreeSearch {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "The published trees are checked against their published sizes.",
        ..ApplicationInfo::new("uts", env!("CARGO_PKG_DESCRIPTION"), "nodes")
    };
    type Input = SearchInput;
    type Found = SearchFound;

    fn run_name(&self) -> String {
        format!("uts-{}", self.tree)
    }

    fn open(&self, places: u32) -> Result<SearchInput, Failure> {
        let (rules, balance) = (self.rules()?, self.balance.parameters(places)?);
        Ok(SearchInput { tree: self.tree.to_uppercase(), rules, balance })
    }

    fn heading(&self, input: &SearchInput) -> String {
        let kind = match input.rules.kind {
            TreeKind::Binomial { .. } => "binomial".to_owned(),
            TreeKind::Geometric { depth, .. } => format!("geometric, depth {depth}"),
            TreeKind::Hybrid { depth, .. } => format!("geometric, then binomial, depth {depth}"),
        };
        format!("tree {} ({kind}, root {})", input.tree, input.rules.root_seed)
    }

    async fn compute(
        input: SearchInput,
        distributor: WorkDistributor,
    ) -> isles::Result<(SearchFound, WorkDone)> {
        let SearchInput { rules, balance, .. } = input;
        let _steps = distributor.open_steps();
        let Balanced { result: size, balance } = glb::run_with(balance, TreeBag::new(rules)).await?;
        Ok((SearchFound { size, rules }, distributor.done_of(balance)))
    }
}

impl RunResult for TreeSearch {
    fn text(&self, SearchFound { size, .. }: &SearchFound) -> String {
        let TreeSize { nodes, leaves, depth } = size;
        format!("nodes  {nodes}\nleaves {leaves}\ndepth  {depth}")
    }

    fn speed(&self, found: &SearchFound, seconds: f64) -> String {
        format!("{:.2} million nodes a second", found.size.nodes as f64 / seconds / 1e6)
    }

    fn verify(&self, found: &SearchFound, is_thorough: bool) -> Result<Option<Verification>, Failure> {
        let published = SAMPLES.iter().find(|sample| sample.rules == found.rules);
        let mut holds = published.is_none_or(|sample| sample.size == found.size);
        let mut texts = Vec::new();
        if let Some(sample) = published {
            texts.push(format!("{} has {} nodes as published", sample.name, sample.size.nodes));
        }
        if is_thorough {
            holds &= SearchTree::new(found.rules).size() == found.size;
            texts.push("compared with a walk of one processor".to_owned());
        }
        Ok((!texts.is_empty()).then(|| Verification { holds, text: texts.join("; ") }))
    }

    fn write_csv(&self, found: &SearchFound, out: &mut dyn Write) -> io::Result<()> {
        let TreeSize { nodes, leaves, depth } = found.size;
        writeln!(out, "tree,nodes,leaves,depth\n{},{nodes},{leaves},{depth}", self.tree)
    }
}
