//! What travels with a body, and what stays.
use isles::prelude::*;

/// A graph in rows: the neighbours of `vertex` are `targets[offsets[vertex]..offsets[vertex + 1]]`.
struct Graph {
    offsets: Vec<usize>,
    targets: Vec<u32>,
}

impl Graph {
    /// The degree of `vertex`, computed at `place`: `self.offsets` and `vertex` travel, `self.targets` does not.
    async fn degree_at(&self, place: Place, vertex: usize) -> isles::Result<usize> {
        at!(place, self.offsets[vertex + 1] - self.offsets[vertex]).await
    }

    /// The same with an explicit list: two numbers travel.
    async fn degree_of_two_numbers(&self, place: Place, vertex: usize) -> isles::Result<usize> {
        at!(place, [first = self.offsets[vertex], last = self.offsets[vertex + 1]] last - first).await
    }
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let path = Graph { offsets: vec![0, 1, 3, 4], targets: vec![1, 0, 2, 1] };
    let place = here().next();
    println!("the middle of a path of {} edges has degree:", path.targets.len() / 2);
    println!("{}", path.degree_at(place, 1).await?);
    assert_eq!(path.degree_at(place, 1).await?, path.degree_of_two_numbers(place, 1).await?);

    let word = String::from("isles");
    let length = at!(place, {
        println!("`{word}` has arrived at {}", here());
        word.len()
    })
    .await?;
    assert_eq!(length, word.len());
    Ok(())
}
