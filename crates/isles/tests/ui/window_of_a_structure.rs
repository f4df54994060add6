//! Elements of windows and arrays that are no plain data.
use isles::array::{DistArray, Distribution};
use isles::prelude::*;

#[derive(Clone, Copy)]
struct Point {
    _x: f64,
    _y: f64,
}

async fn own(team: Team) -> isles::Result<()> {
    let window = Window::<Point>::new_on(&team, 4).await?;
    drop(window);
    let array = DistArray::<Point, 1>::new(&team, [4], [Distribution::Block]).await?;
    drop(array);
    Ok(())
}

fn main() {}
