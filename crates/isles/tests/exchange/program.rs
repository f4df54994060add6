//! `exchange [ROUNDS]`: rounds of random programs over channels, on the machine that `ISLES_MACHINE` names.

mod round;
#[path = "../rounds/mod.rs"]
mod rounds;

use isles::prelude::*;
use round::{Accounts, round};

#[isles::main]
async fn main() -> isles::Result<()> {
    let accounts = PlaceLocal::new(Accounts::default).await?;
    let rounds = rounds::run(async |seed| round(seed, &accounts).await.map(drop)).await?;
    let all = round(rounds, &accounts).await?;
    println!("{rounds} rounds: {} values sent, each received once and in its order", all.received.count);
    Ok(())
}
