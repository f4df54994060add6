//! Every place takes part in the same collectives.
use isles::prelude::*;

/// The length of a row of numbers that lie spread over the members: `mine` are those of this place.
async fn length(team: &Team, mine: &[f64]) -> isles::Result<f64> {
    let squares: f64 = mine.iter().map(|x| x * x).sum();
    Ok(team.all_reduce(squares, |a, b| a + b).await?.sqrt())
}

async fn member(team: &Team) -> isles::Result<()> {
    let rank = team.rank() as f64;
    let length = length(team, &[rank, rank + 1.0]).await?;
    team.barrier().await?;
    let all = team.all_gather(length).await?;
    assert!(all.iter().all(|other| other.to_bits() == length.to_bits()));
    if team.rank() == 0 {
        println!("all {} members have {length}", team.size());
    }
    Ok(())
}

#[isles::main]
async fn main() -> isles::Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, member(&Team::world()).await?);
        }
    })
    .await
}
