//! A variable that the body uses without being seen to use it.
use isles::prelude::*;

macro_rules! table {
    ($($key:expr => $value:expr),*) => { [$(($key, $value)),*] };
}

macro_rules! hidden {
    ($x:expr) => { $x + 1 };
}

async fn bodies(place: Place, x: u64, word: String) -> isles::Result<()> {
    let double = |n: u64| n * 2 + x;
    at!(place, double(3)).await?;
    at!(place, table!(x => 1).len()).await?;
    at!(place, [x] x + word.len() as u64).await?;
    at!(place, hidden!(x)).await?;
    Ok(())
}

fn main() {}
