//! `isles data`: the graphs and other files of data that Isles knows by name.

use clap::Subcommand;
use isles_app::Failure;
use isles_app::console;
use isles_graph::dataset::{self, Dataset, DatasetError, Presence};
use isles_graph::rmat;

/// Commands for data sets.
#[derive(Subcommand)]
pub enum Verb {
    /// Lists the graphs and other files, and where each one is
    List,
    /// Extracts a graph or another file from its Debian package into the cache: ISLES_CACHE, or ~/.cache/isles
    Fetch {
        /// The name of the graph or file
        name: String,
    },
}

/// Executes the command.
pub fn execute(verb: &Verb) -> Result<(), Failure> {
    let printed = match verb {
        Verb::List => console::print_report(true, &list(console::columns(std::io::stdout()))),
        Verb::Fetch { name } => {
            console::print(fetch(name).map_err(|error| Failure::Usage(error.to_string()))?)
        }
    };
    printed.map_err(Failure::stdout)
}

/// The data sets of triples that `isles run rdf` knows by name.
const TRIPLES: &str = "lubm:N (N universities of LUBM, about 180,000 triples each, generated), lubm-plain:N (without what \
                       the ontology implies), debian (packages of this host's lists, about 790,000 triples)";

/// Returns the table, in lines of at most `width` columns if that is set; a file or a pipe gets one line for each
/// graph.
fn list(width: Option<usize>) -> String {
    let heading = format!("{:<18} {:>9} {:>9}  {:<10} {:<9}", "name", "vertices", "edges", "kind", "where");
    let generated: Vec<&str> = rmat::WORKLOADS.iter().map(|(name, _)| *name).collect();
    let generated = format!("{}, or {}", generated.join(", "), rmat::ALLOWED);
    let mut text = wrapped(&heading, "about", width);
    text.extend(dataset::list().iter().map(|known| wrapped(&facts(known), &known.about, width)));
    text += "\n";
    text.extend(dataset::files().iter().map(|known| wrapped(&file_facts(known), &known.about, width)));
    text += "\n";
    text += &wrapped("Generated on demand:", &generated, width);
    text + &wrapped("Triples, for isles run rdf --data:", TRIPLES, width)
}

/// Returns `start` and `rest` on one line, or if that is too long `rest` on lines of its own.
fn wrapped(start: &str, rest: &str, width: Option<usize>) -> String {
    const INDENT: &str = "    ";
    let length = |text: &str| text.chars().count();
    let whole = format!("{start} {rest}\n");
    let Some(width) = width.filter(|width| length(&whole) > *width) else { return whole };
    let mut lines = vec![start.to_owned(), INDENT.to_owned()];
    for word in rest.split(' ') {
        let last = lines.len() - 1;
        let blank = if lines[last] == INDENT { "" } else { " " };
        if length(&lines[last]) + length(blank) + length(word) < width || blank.is_empty() {
            lines[last] += &format!("{blank}{word}");
        } else {
            lines.push(format!("{INDENT}{word}"));
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Fetches a graph or another file; returns its path.
fn fetch(name: &str) -> Result<String, DatasetError> {
    let bytes = dataset::fetch(name)?.len();
    if let Some(path) = dataset::find_file(name).and_then(Dataset::path_here) {
        return Ok(format!(
            "{name}: {bytes} bytes in {}, the SHA-256 is that of the catalogue\n",
            path.display()
        ));
    }
    let known = dataset::find(name).map(Dataset::presence);
    let place = match known {
        Some(Presence::BuiltIn) => "in the program itself".to_owned(),
        _ => format!("in the cache {} or an installed package", dataset::cache()?.display()),
    };
    Ok(format!("{name}: {bytes} bytes {place}, SHA-256 as in the catalogue\n"))
}

fn place_of(dataset: &Dataset) -> &'static str {
    match dataset.presence() {
        Presence::BuiltIn => "built in",
        Presence::Local => "cache",
        Presence::Remote => "package",
    }
}

/// Returns the facts about a file that is not a graph.
fn file_facts(dataset: &Dataset) -> String {
    let ending = dataset.path.rsplit('.').next().unwrap_or_default();
    format!("{:<18} {:>9} {:>9}  {ending:<10} {:<9}", dataset.name, "", "", place_of(dataset))
}

fn facts(dataset: &Dataset) -> String {
    let Dataset { name, vertices, edges, .. } = dataset;
    let kind = if dataset.directed { "directed" } else { "undirected" };
    let place = place_of(dataset);
    format!("{name:<18} {vertices:>9} {edges:>9}  {kind:<10} {place:<9}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_the_width_there_is_and_says_the_same_at_each() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let whole = list(None);
        assert_eq!(whole.lines().count(), dataset::list().len() + dataset::files().len() + 5);
        for width in [64, 80, 120, 200] {
            let list = list(Some(width));
            assert!(list.lines().all(|line| line.chars().count() < width), "{width}: {list}");
            assert_eq!(words(&list), words(&whole));
        }
    }
}
