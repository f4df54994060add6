//! `exchange [ROUNDS]`: rounds of random programs over channels, on the machine that `ISLES_MACHINE` names.

mod round;

use isles::prelude::*;
use round::{Accounts, round};

#[isles::main]
async fn main() -> isles::Result<()> {
    let rounds = std::env::args().nth(1).map_or(Ok(100), |rounds| rounds.parse::<u64>());
    let rounds = rounds.map_err(|error| isles::Error::message(format!("ROUNDS is no number: {error}")))?;
    let accounts = PlaceLocal::new(Accounts::default).await?;
    for seed in 0..rounds {
        round(seed, &accounts).await?;
    }
    let all = round(rounds, &accounts).await?;
    println!("{rounds} rounds: {} values sent, each received once and in its order", all.received.count);
    Ok(())
}
