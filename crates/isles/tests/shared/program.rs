//! `shared [ROUNDS]`: random programs over shared objects, on the machine that `ISLES_MACHINE` names.

mod round;

use round::round;

#[isles::main]
async fn main() -> isles::Result<()> {
    let rounds = std::env::args().nth(1).map_or(Ok(100), |rounds| rounds.parse::<u64>());
    let rounds = rounds.map_err(|error| isles::Error::message(format!("ROUNDS is no number: {error}")))?;
    for seed in 0..rounds {
        round(seed).await?;
    }
    println!("{rounds} programs over shared objects: each guard as in the sequential model");
    Ok(())
}
