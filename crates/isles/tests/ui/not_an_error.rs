//! Values that `?` in a body cannot take.
use isles::prelude::*;

struct Plain;

async fn bodies(place: Place) -> isles::Result<u8> {
    at!(place, Err::<u8, Plain>(Plain)?).await?;
    at!(place, Some(1_u8)?).await
}

fn main() {}
