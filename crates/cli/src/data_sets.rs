//! `isles data`: the graphs that Isles knows by name.

use clap::Subcommand;
use isles_apps::console;
use isles_apps::graph::dataset::{self, Dataset, DatasetError, Presence};
use isles_apps::graph::rmat;
use isles_apps::registry::Failure;

/// What to do with the data sets.
#[derive(Subcommand)]
pub enum Verb {
    /// Lists the graphs, with where each is
    List,
    /// Reads a graph out of its Debian package into the cache: ISLES_CACHE, or ~/.cache/isles
    Fetch {
        /// The name of the graph
        name: String,
    },
}

/// Carries it out.
pub fn carry_out(verb: &Verb) -> Result<(), Failure> {
    let text = match verb {
        Verb::List => list(),
        Verb::Fetch { name } => fetch(name).map_err(|error| Failure::Usage(error.to_string()))?,
    };
    console::print(text).map_err(Failure::stdout)
}

fn list() -> String {
    let heading =
        format!("{:<18} {:>9} {:>9}  {:<10} {:<9} about", "name", "vertices", "edges", "kind", "where");
    let generated: Vec<&str> = rmat::WORKLOADS.iter().map(|(name, _)| *name).collect();
    let generated = format!("\nGenerated when asked for: {}, or {}", generated.join(", "), rmat::ALLOWED);
    let lines = dataset::list().iter().map(line);
    [heading].into_iter().chain(lines).chain([generated]).map(|line| line + "\n").collect()
}

/// Fetches a graph; where it is.
fn fetch(name: &str) -> Result<String, DatasetError> {
    let bytes = dataset::fetch(name)?.len();
    let known = dataset::find(name).map(Dataset::presence);
    let place = match known {
        Some(Presence::BuiltIn) => "in the program itself".to_owned(),
        _ => format!("in the cache {} or an installed package", dataset::cache()?.display()),
    };
    Ok(format!("{name}: {bytes} bytes {place}, the SHA-256 is that of the catalogue\n"))
}

fn line(dataset: &Dataset) -> String {
    let Dataset { name, vertices, edges, about, .. } = dataset;
    let kind = if dataset.directed { "directed" } else { "undirected" };
    let place = match dataset.presence() {
        Presence::BuiltIn => "built in",
        Presence::Here => "cache",
        Presence::Away => "package",
    };
    format!("{name:<18} {vertices:>9} {edges:>9}  {kind:<10} {place:<9} {about}")
}
