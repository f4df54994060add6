//! Set-up that every process needs, and an answer from every place.
use isles::prelude::*;
use std::sync::OnceLock;
use std::time::Instant;

static STARTED: OnceLock<Instant> = OnceLock::new();

/// Runs once in each process, before any code of the program.
fn set_up() {
    STARTED.set(Instant::now()).expect("it runs once");
}

#[isles::main(init = set_up)]
async fn main() -> isles::Result<()> {
    let ages = everywhere!(STARTED.get().map(|started| started.elapsed().as_secs())).await?;
    assert!(ages.iter().all(Option::is_some), "a place was not set up");
    println!("{} places are set up", ages.len());
    Ok(())
}
