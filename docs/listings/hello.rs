//! Hello from every place.
use isles::prelude::*;

#[isles::main]
async fn main() -> isles::Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, println!("hello from {}", here()));
        }
    })
    .await
}
