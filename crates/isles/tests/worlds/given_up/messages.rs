//! Messages between members of a team whose sends and receives are cancelled.

use super::{interrupt, run_worlds};
use isles::prelude::*;
use isles::{Random, Result, timeout};
use std::time::Duration;

/// Lengths of messages in elements: short, and so long that they wait for the receiver.
const LENS: [usize; 3] = [3, 400, 5_000];

/// Sends values and slices to all others, then a last one of each kind, which is not cancelled.
async fn send_all(seed: u64, team: &Team) -> Result<()> {
    let (mut random, from) = (Random::stream(seed, 10 + team.rank() as u64), team.rank());
    for to in (0..team.size()).filter(|to| *to != from) {
        for number in 1..1 + random.below(5) {
            let len = LENS[random.below(3) as usize];
            let sent = match random.below(2) {
                0 => {
                    let text = (number, vec![number; len]);
                    let sent = team.tagged(0).send(to, &text);
                    interrupt("services/team/point_to_point/mod send", &mut random, sent).await
                }
                _ => {
                    let slice = vec![number; 400];
                    let sent = team.tagged(1).send_slice(to, &slice);
                    interrupt("services/team/point_to_point/mod send_slice", &mut random, sent).await
                }
            };
            sent.transpose()?;
        }
        team.tagged(0).send(to, &(0_u64, Vec::<u64>::new())).await?;
        team.tagged(1).send_slice(to, &[0_u64; 400]).await?;
    }
    Ok(())
}

/// Receives from all others until the last message of each has arrived.
async fn receive_all(seed: u64, team: &Team) -> Result<()> {
    let mut random = Random::stream(seed, 30 + team.rank() as u64);
    let others = team.size() - 1;
    let mut last = vec![0; team.size()];
    let mut open = others;
    while open > 0 {
        let from = random.below(team.size() as u64) as usize;
        if from == team.rank() || last[from] == u64::MAX {
            continue;
        }
        let received = match random.below(2) {
            0 => {
                let received = team.tagged(0).recv_any::<(u64, Vec<u64>)>();
                interrupt("services/team/point_to_point/mod recv_any", &mut random, received).await
            }
            _ => {
                let received = team.tagged(0).recv::<(u64, Vec<u64>)>(from);
                let received =
                    interrupt("services/team/point_to_point/mod recv", &mut random, received).await;
                received.map(|received| received.map(|text| (from, text)))
            }
        };
        let Some((from, (number, elements))) = received.transpose()? else { continue };
        assert!(elements.iter().all(|element| *element == number), "two messages in one");
        assert!(number == 0 || number > last[from], "{number} after {} of {from}", last[from]);
        last[from] = if number == 0 { u64::MAX } else { number };
        open -= usize::from(number == 0);
    }
    let (mut last, mut open) = (vec![0; team.size()], others);
    while open > 0 {
        let from = random.below(team.size() as u64) as usize;
        if from == team.rank() || last[from] == u64::MAX {
            continue;
        }
        let mut slice = [9; 400];
        let received = match random.below(2) {
            0 => {
                let received = team.tagged(1).recv_slice_any(&mut slice);
                interrupt("services/team/point_to_point/mod recv_slice_any", &mut random, received).await
            }
            _ => {
                let received = team.tagged(1).recv_slice(from, &mut slice);
                let received =
                    interrupt("services/team/point_to_point/mod recv_slice", &mut random, received).await;
                received.map(|received| received.map(|()| from))
            }
        };
        let Some(from) = received.transpose()? else { continue };
        let number = slice[0];
        assert!(slice.iter().all(|element| *element == number), "two slices in one");
        assert!(number == 0 || number > last[from], "{number} after {} of {from}", last[from]);
        last[from] = if number == 0 { u64::MAX } else { number };
        open -= usize::from(number == 0);
    }
    Ok(())
}

/// Exchanges that are cancelled, with a separate tag; their remaining messages are never received.
async fn exchanges(seed: u64, team: &Team) -> Result<()> {
    let mut random = Random::stream(seed, 50 + team.rank() as u64);
    let (size, rank) = (team.size(), team.rank());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    // An exchange that one side cancels leaves the other waiting, like a receive without a send.
    let patience = Duration::from_micros(200);
    let to_right = timeout(patience, team.tagged(2).send_recv::<u64, u64>(right, &1, left));
    let exchanged = interrupt("services/team/point_to_point/mod send_recv", &mut random, to_right).await;
    drop(exchanged);
    let neighbors = if left == right { vec![left] } else { vec![left, right] };
    let values = vec![rank as u64; neighbors.len()];
    let exchanged = timeout(patience, team.neighbor_exchange(&neighbors, &values));
    let name = "services/team/point_to_point/mod neighbor_exchange";
    interrupt(name, &mut random, exchanged).await;
    let (mut row, mut other) = ([0_u64; 4], [0_u64; 4]);
    let own = [rank as u64; 4];
    let sent = vec![&own[..]; neighbors.len()];
    let mut received = if left == right { vec![&mut row[..]] } else { vec![&mut row[..], &mut other[..]] };
    let exchanged = team.neighbor_exchange_slices(&neighbors, &sent, &mut received);
    let exchanged = timeout(patience, exchanged);
    let name = "services/team/point_to_point/mod neighbor_exchange_slices";
    interrupt(name, &mut random, exchanged).await;
    let exchanged = team.exchange_slices([(right, &own[..])], [(left, &mut row[..])]);
    let exchanged = timeout(patience, exchanged);
    let name = "services/team/point_to_point/mod exchange_slices";
    interrupt(name, &mut random, exchanged).await;
    Ok(())
}

async fn program(seed: u64) -> Result<()> {
    let team = Team::from_places(&places().collect::<Vec<_>>())?;
    finish(async {
        for place in places() {
            spawn_at!(place, send_all(seed, &team).await?);
            spawn_at!(place, receive_all(seed, &team).await?);
        }
    })
    .await?;
    let team = Team::from_places(&places().collect::<Vec<_>>())?;
    everywhere!(exchanges(seed, &team).await?).await.map(drop)
}

#[test]
fn messages_come_whole_once_and_in_their_order() {
    run_worlds("messages", program);
}
