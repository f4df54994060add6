//! Graph files as other programs write them, and damaged ones: each yields the right graph, or a one-line error.
//!
//! Each round draws a file of each format from a seed. `ISLES_TEST_SEEDS` is the number of rounds.

#[path = "../../cli/tests/command/scene/damage.rs"]
mod damage;

use damage::{Dice, damaged, of_another_system, rounds};
use isles_graph::{Graph, ReadOptions, Weights};
use std::path::PathBuf;

const WEIGHTED: ReadOptions = ReadOptions { weights: Weights::Lengths, directed: false };

/// One graph in each text format: a path of four vertices with a chord.
const FORMS: [(&str, &str); 6] = [
    ("a.txt", "0 1 2.5\n1 2 1\n2 3 4\n0 2 3\n"),
    ("b.txt", "0 1 {'weight': 2.5}\n1 2 {'weight': 1}\n2 3 {'weight': 4}\n0 2 {'weight': 3}\n"),
    ("c.csv", "source,target,weight\n0,1,2.5\n1,2,1\n2,3,4\n0,2,3\n"),
    ("d.csv", "\"weight\",\"to\",\"from\"\n2.5,\"1\",\"0\"\n1,2,1\n4,3,2\n3,2,0\n"),
    ("e.mtx", "%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n2 1 2.5\n3 2 1\n4 3 4\n3 1 3\n"),
    ("f.graph", "4 4 1\n2 2.5 3 3\n1 2.5 3 1\n2 1 4 4 1 3\n3 4\n"),
];

/// A folder of this test, with the file to read.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("isles-graph-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn read(&self, name: &str, bytes: &[u8]) -> Result<Graph, String> {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        Graph::read_with(path, &WEIGHTED).map_err(|error| error.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // the system clears its temporary files
    }
}

#[test]
fn files_of_other_systems_give_the_same_graph() {
    let folder = Folder::new("same");
    let lengths = [2.5, 3.0, 1.0, 4.0];
    let expected = Graph::from_edges(4, false, &[(0, 1), (0, 2), (1, 2), (2, 3)], Some(&lengths)).unwrap();
    for seed in 0..rounds(20) {
        for (name, text) in FORMS {
            let bytes = of_another_system(text, &mut Dice::new(seed));
            assert_eq!(folder.read(name, &bytes).as_ref(), Ok(&expected), "seed {seed} of {name}");
        }
    }
}

#[test]
fn damaged_files_are_refused_in_one_line_or_are_a_graph() {
    let folder = Folder::new("damaged");
    for seed in 0..rounds(200) {
        for (name, text) in FORMS {
            let bytes = damaged(text.as_bytes(), &mut Dice::new(seed));
            let found = folder.read(name, &bytes);
            isles_graph::fuzz::any(&bytes); // panics if a promise of graphs is broken
            isles_graph::fuzz::metis(&bytes);
            if let Err(line) = found {
                let is_one = !line.contains('\n') && line.len() < 600 && line.contains(name);
                assert!(is_one, "seed {seed} of {name}: {line}");
            }
        }
    }
}
