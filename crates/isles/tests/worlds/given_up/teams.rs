//! Collectives that members cancel: all others get an error, and none waits forever.

use super::{explained, interrupt, run_worlds};
use isles::prelude::*;
use isles::{Random, Result};

/// The collectives of this world, by number.
const COLLECTIVES: u64 = 29;

/// One collective of all members; `which` of [`COLLECTIVES`].
async fn collective(which: u64, team: &Team, random: &mut Random) -> Option<Result<()>> {
    let (rank, size) = (team.rank() as u64, team.size());
    let is_root = rank == 0;
    let (row, rows) = ([rank; 3], vec![vec![rank; 2]; size]);
    let all = vec![rank; 3 * size];
    let (mut three, mut many) = ([rank; 3], vec![0; 3 * size]);
    let sum = |one: u64, other: u64| one + other;
    /// Cancels the collective of this name, or drops its result.
    macro_rules! interrupted {
        ($name:literal, $collective:expr) => {{
            let collective = $collective;
            interrupt($name, random, collective).await.map(|result| result.map(drop))
        }};
    }
    match which {
        0 | 1 => interrupted!("services/team/barrier barrier", team.barrier()),
        2 => interrupted!("services/team/values broadcast", team.broadcast(0, is_root.then_some(7_u64))),
        3 => interrupted!("services/team/values reduce", team.reduce(0, rank, sum)),
        4 => interrupted!("services/team/values all_reduce", team.all_reduce(rank, sum)),
        5 => interrupted!("services/team/values scan", team.scan(rank, sum)),
        6 => interrupted!("services/team/values exclusive_scan", team.exclusive_scan(rank, sum)),
        7 => interrupted!("services/team/values gather", team.gather(0, rank)),
        8 => interrupted!("services/team/values all_gather", team.all_gather(rank)),
        9 => {
            interrupted!("services/team/values scatter", team.scatter(0, is_root.then(|| vec![7_u64; size])))
        }
        10 => interrupted!("services/team/values all_to_all", team.all_to_all(vec![rank; size])),
        11 => interrupted!("services/team/slices broadcast_slice", team.broadcast_slice(0, &mut three)),
        12 => interrupted!("services/team/slices reduce_slice", team.reduce_slice(0, &mut three, sum)),
        13 => interrupted!("services/team/slices all_reduce_slice", team.all_reduce_slice(&mut three, sum)),
        14 => interrupted!("services/team/slices scan_slice", team.scan_slice(&mut three, sum)),
        15 => interrupted!(
            "services/team/slices exclusive_scan_slice",
            team.exclusive_scan_slice(&mut three, sum)
        ),
        16 => interrupted!("services/team/rows gather_slice", team.gather_slice(0, &row)),
        17 => interrupted!(
            "services/team/rows gather_slice_into",
            team.gather_slice_into(0, &row, is_root.then_some(&mut many[..]))
        ),
        18 => interrupted!("services/team/rows gatherv", team.gatherv(0, &row[..rank as usize % 3])),
        19 => interrupted!(
            "services/team/rows scatter_slice",
            team.scatter_slice(0, is_root.then_some(&all[..]))
        ),
        20 => interrupted!(
            "services/team/rows scatter_slice_into",
            team.scatter_slice_into(0, is_root.then_some(&all[..]), &mut three)
        ),
        21 => interrupted!("services/team/rows scatterv", team.scatterv(0, is_root.then_some(&rows[..]))),
        22 => interrupted!("services/team/rows all_gather_slice", team.all_gather_slice(&row)),
        23 => interrupted!(
            "services/team/rows all_gather_slice_into",
            team.all_gather_slice_into(&row, &mut many)
        ),
        24 => interrupted!("services/team/rows all_gatherv", team.all_gatherv(&row[..rank as usize % 3])),
        25 => interrupted!("services/team/rows all_to_all_slice", team.all_to_all_slice(&all)),
        26 => interrupted!(
            "services/team/rows all_to_all_slice_into",
            team.all_to_all_slice_into(&all, &mut many)
        ),
        27 => interrupted!("services/team/rows all_to_allv", team.all_to_allv(&rows)),
        _ => interrupted!("services/team/rows all_to_allv_with", team.all_to_allv_with(&rows, |_, _| ())),
    }
}

/// Runs collectives of one team. After the cancellation of one by any member, all later ones end with that error, too.
async fn collectives(seed: u64, team: &Team) -> Result<()> {
    let (mut drawn, mut own) = (Random::stream(seed, 1), Random::stream(seed, 10 + team.rank() as u64));
    let mut is_broken = false;
    for _ in 0..8 {
        let which = drawn.below(COLLECTIVES);
        // One that was given up before it had begun is the next one.
        let ended = loop {
            if let Some(ended) = collective(which, team, &mut own).await {
                break explained(ended)?;
            }
        };
        assert!(!is_broken || ended.is_none(), "a collective of a team that was given up ended well");
        is_broken |= ended.is_none();
    }
    Ok(())
}

/// Splits the team and continues with all parts.
async fn split(seed: u64, team: &Team) -> Result<()> {
    let mut random = Random::stream(seed, 40 + here().index() as u64);
    let split = loop {
        let split = team.split(here().index() % 2, 0);
        if let Some(split) = interrupt("services/team/mod split", &mut random, split).await {
            break explained(split)?;
        }
    };
    assert!(split.is_none_or(|half| half.size() < team.size()));
    collectives(seed, team).await
}

async fn program(seed: u64) -> Result<()> {
    // Each round has a separate team, which its collectives break.
    for round in 0..3 {
        let team = Team::from_places(&places().collect::<Vec<_>>())?;
        let seed = seed << 8 | round;
        everywhere!(split(seed, &team).await?).await?;
    }
    Ok(())
}

#[test]
fn a_collective_that_is_given_up_ends_for_all() {
    run_worlds("teams", program);
}
