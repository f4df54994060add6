//! A finish that nobody awaits does nothing.

#![deny(unused_must_use)]

use isles::prelude::*;
use std::time::Duration;

#[isles::main]
async fn main() {
    finish(async { spawn_at!(here(), println!("never")) });
    finish(async {}).deadline(Duration::from_secs(1));
    at!(here(), println!("never"));
    Team::world().barrier();
}
