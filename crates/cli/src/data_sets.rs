//! `isles data`: the graphs that Isles knows by name.

use clap::Subcommand;
use isles_apps::graph::dataset::{self, Dataset, Presence};
use isles_apps::registry::Failure;

/// What to do with the data sets.
#[derive(Subcommand)]
pub enum Verb {
    /// Lists the graphs, with where each is
    List,
    /// Reads a graph out of its Debian package into the cache
    Fetch {
        /// The name of the graph
        name: String,
    },
}

/// Carries it out.
pub fn carry_out(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::List => {
            println!("{:<18} {:>9} {:>9}  {:<10} {:<9} about", "name", "vertices", "edges", "kind", "where");
            dataset::list().iter().for_each(|dataset| println!("{}", line(dataset)));
            Ok(())
        }
        Verb::Fetch { name } => {
            let bytes = dataset::fetch(name).map_err(|error| Failure::Usage(error.to_string()))?;
            println!("{name}: {} bytes, as recorded", bytes.len());
            Ok(())
        }
    }
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
