//! A generator of random numbers does not travel: two copies would give the same numbers.

use isles::Random;

async fn draw(place: isles::Place) -> isles::Result<u64> {
    let mut random = Random::new(1);
    random.bits();
    isles::at!(place, random.clone().bits()).await
}

fn main() {}
