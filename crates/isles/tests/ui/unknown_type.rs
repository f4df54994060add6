//! The type of a value that comes back is known in the body.
use isles::prelude::*;

async fn bodies(place: Place, words: &[String]) -> isles::Result<u64> {
    at!(place, words[0].parse().unwrap()).await
}

fn main() {}
