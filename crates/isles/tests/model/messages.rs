//! Messages between two members of a team, by rank and tag, on every machine.

use isles::counters::CounterId;
use isles::prelude::*;
use isles::{ErrorKind, timeout};
use std::task::Poll;
use std::time::Duration;

/// Runs `body` at all places, as the members of `team`.
macro_rules! at_all {
    ($team:ident, $body:expr) => {
        finish(async {
            for place in $team.places() {
                spawn_at!(place, {
                    let outcome: isles::Result<()> = $body.await;
                    outcome?;
                });
            }
        })
    };
}

#[isles::test]
async fn values_go_round_a_ring_in_order() -> isles::Result<()> {
    let team = Team::world();
    at_all!(team, ring(&team)).await
}

async fn ring(team: &Team) -> isles::Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    for number in 0..100_u64 {
        team.send(right, &(rank, number)).await?;
    }
    for number in 0..100_u64 {
        assert_eq!(team.recv::<(usize, u64)>(left).await?, (left, number));
    }
    Ok(())
}

/// Lengths in bytes: below, at and above the limit of eager messages, of one part, and of several parts.
const LENGTHS: [usize; 8] = [0, 1, 4_095, 4_096, 4_097, 100_000, 131_072 + 1, 3 << 20];

#[isles::test]
async fn slices_of_any_length_come_into_memory_that_one_has() -> isles::Result<()> {
    let team = Team::world();
    at_all!(team, slices(&team)).await
}

async fn slices(team: &Team) -> isles::Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    for len in LENGTHS {
        let sent: Vec<u8> = (0..len).map(|index| (index * 7 + rank) as u8).collect();
        let mut received = vec![0_u8; len];
        // Even ranks send first, so that long messages find their receivers; a single member receives its own messages.
        let is_first = rank % 2 == 0 && (size % 2 == 0 || rank + 1 < size);
        if is_first || size == 1 {
            team.send_slice(right, &sent).await?;
            team.recv_slice(left, &mut received).await?;
        } else {
            team.recv_slice(left, &mut received).await?;
            team.send_slice(right, &sent).await?;
        }
        let expected: Vec<u8> = (0..len).map(|index| (index * 7 + left) as u8).collect();
        assert!(received == expected, "{len} bytes from {left}");
    }
    Ok(())
}

#[isles::test]
async fn long_values_and_short_ones_keep_their_order() -> isles::Result<()> {
    let team = Team::world();
    at_all!(team, mixed(&team)).await
}

async fn mixed(team: &Team) -> isles::Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let lengths = [3, 10_000, 0, 600, 300_000, 7];
    let send = async {
        for to in (0..size).filter(|to| *to != rank) {
            for len in lengths {
                team.send(to, &vec![rank as u32; len]).await?;
            }
        }
        Ok(())
    };
    let receive = async {
        for from in (0..size).filter(|from| *from != rank) {
            for len in lengths {
                assert_eq!(team.recv::<Vec<u32>>(from).await?, vec![from as u32; len]);
            }
        }
        Ok(())
    };
    both(send, receive).await
}

/// Waits for both futures concurrently.
async fn both(
    one: impl Future<Output = isles::Result<()>>,
    other: impl Future<Output = isles::Result<()>>,
) -> isles::Result<()> {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    let mut is_over = [false; 2];
    std::future::poll_fn(|context| {
        if !is_over[0]
            && let Poll::Ready(result) = one.as_mut().poll(context)
        {
            result?;
            is_over[0] = true;
        }
        if !is_over[1]
            && let Poll::Ready(result) = other.as_mut().poll(context)
        {
            result?;
            is_over[1] = true;
        }
        if is_over == [true; 2] { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

#[isles::test]
async fn tags_are_told_apart_and_any_takes_the_oldest() -> isles::Result<()> {
    let team = Team::world();
    at_all!(team, tags(&team)).await
}

async fn tags(team: &Team) -> isles::Result<()> {
    let (work, results) = (team.tagged(1), team.tagged(u32::MAX));
    if team.rank() > 0 {
        results.send(0, &(team.rank() as u64)).await?;
        work.send(0, &"work").await?;
        assert_eq!(team.recv::<u8>(0).await?, 9);
        return Ok(());
    }
    let others = team.size() - 1;
    for _ in 0..others {
        assert_eq!(work.recv_any::<String>().await?.1, "work");
    }
    let mut seen = vec![false; team.size()];
    for _ in 0..others {
        let (rank, value) = results.recv_any::<u64>().await?;
        assert_eq!((rank as u64, false), (value, std::mem::replace(&mut seen[rank], true)));
    }
    for rank in 1..team.size() {
        team.send(rank, &9_u8).await?;
    }
    Ok(())
}

#[isles::test]
async fn an_exchange_of_long_values_in_a_circle_does_not_wait_for_itself() -> isles::Result<()> {
    let team = Team::world();
    at_all!(team, exchanges(&team)).await
}

async fn exchanges(team: &Team) -> isles::Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let got: Vec<u64> = team.send_recv(right, &vec![rank as u64; 50_000], left).await?;
    assert_eq!(got, vec![left as u64; 50_000]);
    let neighbors = if size > 2 { vec![left, right] } else { vec![right] };
    for len in [1, 40_000] {
        let values: Vec<Vec<u64>> = neighbors.iter().map(|to| vec![(rank * 100 + to) as u64; len]).collect();
        let expected: Vec<Vec<u64>> =
            neighbors.iter().map(|from| vec![(from * 100 + rank) as u64; len]).collect();
        assert_eq!(team.neighbor_exchange(&neighbors, &values).await?, expected);
        let sent: Vec<&[u64]> = values.iter().map(Vec::as_slice).collect();
        let mut memory = vec![vec![0; len]; neighbors.len()];
        let mut received: Vec<&mut [u64]> = memory.iter_mut().map(Vec::as_mut_slice).collect();
        team.neighbor_exchange_slices(&neighbors, &sent, &mut received).await?;
        assert_eq!(memory, expected);
    }
    Ok(())
}

#[isles::test]
async fn what_cannot_be_is_an_error_and_the_message_stays() -> isles::Result<()> {
    let team = Team::world();
    at_all!(team, misuses(&team)).await
}

async fn misuses(team: &Team) -> isles::Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let error = team.send(size, &1_u8).await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Misused);
    assert!(error.to_string().contains(&format!("rank {size} of a team of {size}")), "{error}");
    assert_eq!(team.recv::<u8>(size).await.unwrap_err().kind(), &ErrorKind::Misused);

    let others = Team::from_places(&[team.place_of(right)])?;
    if size > 1 {
        let error = others.send(0, &1_u8).await.unwrap_err();
        assert!(error.to_string().contains("not a member"), "{error}");
    }

    team.send(right, &7_u32).await?;
    let error = team.recv::<f64>(left).await.unwrap_err();
    assert!(error.to_string().contains("of `u32`, not of `f64`"), "{error}");
    assert_eq!(team.recv::<u32>(left).await?, 7);

    for len in [5, 5_000] {
        let sent = vec![rank as u16; len];
        let mut short = vec![0_u16; len - 1];
        let send = team.send_slice(right, &sent);
        let receive = async {
            let error = team.recv_slice(left, &mut short).await.unwrap_err();
            let text = format!("is a slice of {} bytes, not of {}", 2 * len, 2 * len - 2);
            assert!(error.to_string().contains(&text), "{error}");
            let mut whole = vec![0_u16; len];
            team.recv_slice(left, &mut whole).await?;
            assert_eq!(whole, vec![left as u16; len]);
            Ok(())
        };
        both(send, receive).await?;
    }
    Ok(())
}

#[isles::test]
async fn a_receive_that_is_given_up_receives_nothing() -> isles::Result<()> {
    let team = Team::world();
    at_all!(team, given_up(&team)).await
}

async fn given_up(team: &Team) -> isles::Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let none = timeout(Duration::from_micros(50), team.recv::<Vec<u64>>(left)).await;
    assert!(none.is_err());
    team.barrier().await?;
    let send = async {
        for number in 0..20_u64 {
            team.send(right, &vec![number; if number % 2 == 0 { 5 } else { 20_000 }]).await?;
        }
        Ok(())
    };
    let receive = async {
        for next in 0..20_u64 {
            // Some of these end in the middle of a transfer.
            let limit = Duration::from_nanos(next * 700);
            let value = match timeout(limit, team.recv::<Vec<u64>>(left)).await {
                Ok(value) => value?,
                Err(_) => team.recv(left).await?,
            };
            assert_eq!(value[0], next, "lost or doubled");
        }
        Ok(())
    };
    both(send, receive).await
}

#[isles::test]
async fn a_send_that_is_given_up_leaves_nothing_half_received() -> isles::Result<()> {
    let team = Team::world();
    at_all!(team, withdrawn(&team)).await
}

async fn withdrawn(team: &Team) -> isles::Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    if size == 1 {
        return Ok(());
    }
    let send = async {
        for number in 0..10_u64 {
            let value = vec![2 * number; 30_000];
            let _ = timeout(Duration::from_nanos(number * 900), team.send(right, &value)).await;
            team.send(right, &vec![2 * number + 1; 3]).await?;
        }
        Ok(())
    };
    let receive = async {
        let mut last = None;
        for number in 0..10 {
            loop {
                let value: Vec<u64> = team.recv(left).await?;
                assert!(Some(value[0]) > last, "doubled or out of order");
                assert!(value.iter().all(|element| *element == value[0]), "two messages in one");
                last = Some(value[0]);
                if value[0] == 2 * number + 1 {
                    break;
                }
            }
        }
        Ok(())
    };
    both(send, receive).await
}

#[isles::test]
async fn memory_that_changes_after_a_send_is_given_up_is_never_received() -> isles::Result<()> {
    let team = Team::world();
    at_all!(team, changing(&team)).await
}

/// Words of a slice that takes some 100 us to copy.
const CHANGING_WORDS: usize = 1 << 16;

async fn changing(team: &Team) -> isles::Result<()> {
    const ROUNDS: u64 = 200;
    match team.rank() {
        0 => {
            let mut slice = vec![0; CHANGING_WORDS];
            let mut sent = 0;
            for round in 0..ROUNDS {
                slice.fill(round);
                // In each round the send is given up a little later, from before its message is read until after.
                let limit = Duration::from_micros(round);
                sent += u64::from(timeout(limit, team.send_slice(1, &slice)).await.is_ok());
                slice.fill(u64::MAX);
            }
            slice.fill(ROUNDS);
            team.send_slice(1, &slice).await?;
            team.send(1, &sent).await
        }
        1 => {
            let (mut slice, mut received, mut last) = (vec![0; CHANGING_WORDS], 0, None);
            while last != Some(ROUNDS) {
                team.recv_slice(0, &mut slice).await?;
                let round = slice[0];
                assert!(slice.iter().all(|word| *word == round), "a slice of two rounds");
                assert!(round <= ROUNDS && last.is_none_or(|last| last < round), "{last:?}, then {round}");
                (last, received) = (Some(round), received + 1);
            }
            let sent: u64 = team.recv(0).await?;
            // An abandoned send may have sent its message.
            assert!(received > sent, "{sent} sends were not given up, and {received} slices came");
            Ok(())
        }
        _ => Ok(()),
    }
}

#[isles::test]
async fn more_than_the_credit_waits_until_some_are_received() -> isles::Result<()> {
    let team = Team::world();
    at_all!(team, credits(&team)).await
}

async fn credits(team: &Team) -> isles::Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    // A hundred and twenty-eight messages can be sent before any is received.
    for number in 0..128_u32 {
        team.send(right, &number).await?;
    }
    let rest = async {
        for number in 128..2_000_u32 {
            team.send(right, &number).await?;
        }
        Ok(())
    };
    let receive = async {
        for number in 0..2_000_u32 {
            assert_eq!(team.recv::<u32>(left).await?, number);
        }
        Ok(())
    };
    both(rest, receive).await
}

#[isles::test]
async fn memory_of_another_length_is_refused_at_every_member() -> isles::Result<()> {
    let team = Team::from_places(&places().collect::<Vec<_>>())?;
    at_all!(team, odd_memory(&team)).await
}

async fn odd_memory(team: &Team) -> isles::Result<()> {
    let error = team.all_gather_slice_into(&[1_u64; 3], &mut [0]).await.unwrap_err();
    assert!(error.to_string().contains("memory of 1 elements for"), "{error}");
    Ok(())
}

#[test]
fn messages_that_nobody_wanted_yet_are_counted() {
    let program = || async {
        let team = Team::world();
        at_all!(team, async {
            match team.rank() {
                0 => {
                    for number in 0..5 {
                        team.send(1, &number).await?;
                    }
                    team.barrier().await
                }
                1 => {
                    team.barrier().await?;
                    for number in 0..5 {
                        assert_eq!(team.recv::<i32>(0).await?, number);
                    }
                    Ok(())
                }
                _ => team.barrier().await,
            }
        })
        .await
    };
    for seed in 0..20 {
        let (result, report, _) = isles::simulate(3, isles::Plan::adversarial(seed), program);
        result.unwrap_or_else(|error| panic!("{error}"));
        let unexpected: Vec<u64> =
            report.places.iter().flatten().map(|place| place.count(CounterId::MemberUnexpected)).collect();
        assert_eq!(unexpected, [0, 5, 0], "ISLES_SEED={seed}");
    }
}

#[isles::test]
async fn handles_travel_in_messages() -> isles::Result<()> {
    let team = Team::world();
    at_all!(team, handles(&team)).await
}

async fn handles(team: &Team) -> isles::Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let (sender, receiver) = channel::<usize>(size);
    // Includes sends to itself.
    for to in 0..size {
        team.send(to, &(sender.clone(), "x".repeat(100))).await?;
        team.tagged(1).send(to, &sender).await?;
    }
    drop(sender);
    for from in 0..size {
        let (sender, _) = team.recv::<(Sender<usize>, String)>(from).await?;
        sender.send(rank).await?;
        drop(team.tagged(1).recv::<Sender<usize>>(from).await?);
    }
    let mut ranks = Vec::new();
    // Closed when the last handle is gone, at any place.
    while let Ok(rank) = receiver.recv().await {
        ranks.push(rank);
    }
    ranks.sort_unstable();
    assert_eq!(ranks, (0..size).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn the_report_says_what_tasks_said_to_each_other() {
    let program = || async {
        let (sender, receiver) = channel::<u8>(2);
        let there = Place::new(1).expect("there are two");
        // Counted at the place that creates it.
        drop(isles::channel_at::<u8>(there, 1).await?);
        finish(async {
            spawn_at!(there, {
                Team::world().send(0, &1_u8).await?;
                for value in 0..5 {
                    sender.send(value).await?;
                }
            });
            for value in 0..4 {
                assert_eq!(receiver.recv().await?, value);
            }
            assert_eq!(Team::world().recv::<u8>(1).await?, 1);
            receiver.close();
            assert!(sender.send(9).await.is_err());
            Ok::<_, isles::Error>(())
        })
        .await
    };
    let (result, report, _) = isles::simulate(2, isles::Plan::calm(7), program);
    result.unwrap_or_else(|error| panic!("{error}"));
    let text = report.task_messages();
    let counted = |what: &str| {
        let line =
            text.lines().find(|line| line.ends_with(what)).unwrap_or_else(|| panic!("{what} in {text}"));
        line.trim().split(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("a count")
    };
    assert_eq!(counted("channels made"), 2);
    let made = report.places.iter().flatten().map(|place| place.count(CounterId::ChannelsMade));
    assert_eq!(made.collect::<Vec<_>>(), [1, 1]);
    assert_eq!((counted("values sent over channels"), counted("values received from channels")), (5, 4));
    assert!(counted("sends and receives of channels that had to wait") > 0, "{text}");
    assert_eq!(counted("values of channels that came back unsent"), 1);
    assert_eq!(counted("messages to members of teams"), 1);
}

/// Sends a long message with a handle, whose receive or send is given up at any moment; then a short one.
async fn handle_in_a_long_message(seed: u64, gives_up_send: bool) -> isles::Result<()> {
    type Text = (Option<Sender<u8>>, Vec<u8>);
    let team = Team::world();
    finish(async {
        spawn_at!(team.place_of(1), {
            let mut step = 0;
            loop {
                // Some of these end in the middle of a transfer.
                let limit = Duration::from_nanos(step * (1 + seed % 13));
                step += 1;
                match timeout(limit, team.recv::<Text>(0)).await {
                    Ok(text) if text.clone()?.0.is_none() => break,
                    Ok(text) => assert_eq!(text?.1.len(), 100_000),
                    Err(_) => {}
                }
            }
        });
        let (sender, receiver) = channel::<u8>(1);
        let long: Text = (Some(sender), vec![0; 100_000]);
        let send = team.send(1, &long);
        if gives_up_send {
            let _ = timeout(Duration::from_nanos(seed * 37 % 2_000), send).await;
        } else {
            send.await?;
        }
        drop(long);
        team.send(1, &(None::<Sender<u8>>, Vec::<u8>::new())).await?;
        // Ends when no sender is left anywhere.
        assert_eq!(receiver.recv().await, Err(isles::RecvError::Closed));
        Ok::<_, isles::Error>(())
    })
    .await
}

#[test]
fn a_handle_in_a_long_message_is_not_lost_whoever_gives_up() {
    for seed in 0..200 {
        for gives_up_send in [false, true] {
            let program = move || handle_in_a_long_message(seed, gives_up_send);
            let (result, ..) = isles::simulate(2, isles::Plan::adversarial(seed), program);
            result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}, {gives_up_send}: {error}"));
        }
    }
}

#[isles::test]
async fn two_edges_of_one_neighbor_are_never_mistaken_for_each_other() -> isles::Result<()> {
    let pair: Vec<Place> = places().take(2).collect();
    let team = Team::from_places(&pair)?;
    at_all!(team, exchange_twice(&team, team.size() - 1 - team.rank())).await
}

/// Exchanges two values, and two slices, with a neighbour. In some rounds a place yields at some point of an exchange.
async fn exchange_twice(team: &Team, next: usize) -> isles::Result<()> {
    for round in 0..2_000_u64 {
        let values = [round << 1, round << 1 | 1];
        assert_eq!(team.neighbor_exchange(&[next, next], &values).await?, values);
        let (mut left, mut right) = ([0; 3], [0; 3]);
        let sent: [&[u64]; 2] = [&[values[0]; 3], &[values[1]; 3]];
        team.neighbor_exchange_slices(&[next, next], &sent, &mut [&mut left, &mut right]).await?;
        assert_eq!([left, right], values.map(|value| [value; 3]));
    }
    Ok(())
}
