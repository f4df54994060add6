//! A structure that travels by serde, with lists that go as one block.
use isles::prelude::*;
use serde::{Deserialize, Serialize};

/// A graph in rows, with the length of each edge if they differ.
#[derive(Serialize, Deserialize)]
struct Graph {
    name: String,
    #[serde(with = "isles::plain")]
    offsets: Vec<u32>,
    #[serde(with = "isles::plain")]
    targets: Vec<u32>,
    #[serde(with = "isles::plain::optional")]
    lengths: Option<Vec<f64>>,
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let path = Graph {
        name: String::from("path"),
        offsets: vec![0, 1, 3, 4],
        targets: vec![1, 0, 2, 1],
        lengths: Some(vec![0.5, 0.5, 2.0, 2.0]),
    };
    let whole = at!(here().next(), {
        let length: f64 = path.lengths.iter().flatten().sum::<f64>() / 2.0;
        let vertices = path.offsets.len() - 1;
        println!("{}: {vertices} vertices, {} arcs", path.name, path.targets.len());
        length
    })
    .await?;
    assert_eq!(whole, 2.5);

    // The whole structure: serde writes the name, the lists go as they lie in memory.
    let renamed = at!(here().next(), [graph = path] {
        let name = graph.name.to_uppercase();
        Graph { name, ..graph }
    })
    .await?;
    assert_eq!((renamed.name.as_str(), renamed.targets), ("PATH", vec![1, 0, 2, 1]));
    Ok(())
}
