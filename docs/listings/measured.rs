//! Steps whose time is reported apart from the start and the end of the run.
use isles::measured;
use isles::prelude::*;

const STEPS: usize = 10;

#[isles::main]
async fn main() -> isles::Result<()> {
    let sums = everywhere!({
        let team = Team::world();
        work(Cycles(1_000_000)); // reads its input
        team.barrier().await?;
        measured("steps", async {
            let mut sum = 0;
            for _ in 0..STEPS {
                work(Cycles(100_000));
                sum += team.all_reduce(1, |one, other| one + other).await?;
            }
            Ok::<_, isles::Error>(sum)
        })
        .await?
    })
    .await?;
    assert_eq!(sums, vec![STEPS * place_count(); place_count()]);
    println!("{STEPS} steps of {} places", place_count());
    Ok(())
}
