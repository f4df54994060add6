//! Names of all places in one list, and a table of squares that grows: objects that tasks of all places share.
use isles::prelude::*;
use isles::{Mapping, acquire_all};

/// Writes the square of this place's number, where there is room for it.
async fn add(names: &Shared<Vec<String>>, squares: &Shared<Mapping<u64>>) -> isles::Result<()> {
    let own = here().index();
    // Both or none: all tasks take them in the same order, so no two wait for each other.
    let (mut names, mut squares) = acquire_all((names.write(), squares.write())).await?;
    names.push(here().to_string());
    squares.grow(own + 1); // nothing is moved, and nothing happens if it is as long
    squares.set(own, (own * own) as u64);
    Ok(())
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let names = Shared::new(Vec::new()).await?;
    let squares = Shared::new(Mapping::new(0)).await?;
    everywhere!(add(&names, &squares).await?).await?;

    let (names, squares) = acquire_all((names.read(), squares.read())).await?;
    let sum: u64 = (0..squares.len()).map(|index| squares.get(index)).sum();
    assert_eq!((names.len(), squares.len()), (place_count(), place_count()));
    println!("{} places, and the sum of the squares of their numbers is {sum}", names.len());
    Ok(())
}
