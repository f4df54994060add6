//! Random messages between the members of a team over simulated places, in seeded orders, with loss of places.
//!
//! Each seed determines the messages of every pair of members: lengths below and above the eager limit, several tags,
//! receives by rank and from any member, and cancelled receives. Each runs twice with the same digest.
//! `ISLES_TEST_SEEDS` sets the number of seeds; `ISLES_SEED` selects one.

use crate::seeds::seeds;
use isles::prelude::*;
use isles::{ErrorKind, Plan, PlannedDeath, Random, Result, timeout};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

/// Seeds in the ordinary tests.
const SEEDS: u64 = 60;

const TAGS: u64 = 2;

thread_local! {
    /// Last received message number by sender, receiver and tag; and the number of received messages.
    static LAST: RefCell<BTreeMap<(usize, usize, u64), u64>> = RefCell::default();
    static RECEIVED: Cell<u64> = const { Cell::new(0) };
    /// The place that the world kills, if any.
    static LOST: Cell<Option<usize>> = const { Cell::new(None) };
}

/// A message: its sender, its number, and elements that make it short or long.
type Text = (usize, u64, Vec<u64>);

/// Returns the number of elements of each message from one member to another with one tag.
fn plan(seed: u64, from: usize, to: usize, tag: u64) -> Vec<usize> {
    let mut random = Random::stream(seed, ((from * 64 + to) as u64) << 8 | tag);
    (0..random.below(12)).map(|_| [0, 3, 400, 900, 5_000][random.below(5) as usize]).collect()
}

async fn send_all(seed: u64, team: &Team, to: usize, tag: u64) -> Result<()> {
    let from = team.rank();
    for (number, len) in plan(seed, from, to, tag).into_iter().enumerate() {
        let number = number as u64;
        let text: Text = (from, number, vec![u64::MAX - number; len]);
        let sent = team.tagged(tag as u32).send(to, &text).await;
        if !survives(sent)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns `true` if `result` is a success, and `false` if its error is the death of the killed place; returns other
/// errors.
fn survives<T>(result: Result<T>) -> Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) => match error.kind() {
            ErrorKind::DeadPlace(place) if Some(place.index()) == LOST.get() => Ok(false),
            _ => Err(error),
        },
    }
}

/// Records a message; checks that messages of one sender with one tag arrive complete, once and in order.
fn note(to: usize, tag: u64, (from, number, elements): &Text) {
    assert!(elements.iter().all(|element| *element == u64::MAX - number), "two messages in one");
    let next = LAST.with_borrow_mut(|last| {
        let next = last.entry((*from, to, tag)).or_default();
        *next += 1;
        *next
    });
    assert_eq!(next, number + 1, "lost, doubled or out of order: {from} to {to}, tag {tag}");
    RECEIVED.set(RECEIVED.get() + 1);
}

async fn receive_all(seed: u64, team: &Team, tag: u64) -> Result<()> {
    let to = team.rank();
    let mut random = Random::stream(seed, 1 << 40 | (to as u64) << 8 | tag);
    let tagged = team.tagged(tag as u32);
    let mut left: Vec<(usize, usize)> =
        (0..team.size()).map(|from| (from, plan(seed, from, to, tag).len())).collect();
    // From any member while each sender has messages left, then by rank.
    let any = if LOST.get().is_some() { 0 } else { random.below(8) };
    for _ in 0..any {
        left.retain(|(_, count)| *count > 0);
        if left.is_empty() {
            break;
        }
        let (rank, text): (usize, Text) = tagged.recv_any().await?;
        assert_eq!(rank, text.0);
        note(to, tag, &text);
        left.iter_mut().filter(|(from, _)| *from == rank).for_each(|(_, count)| *count -= 1);
    }
    left.retain(|(_, count)| *count > 0);
    while !left.is_empty() {
        let which = random.below(left.len() as u64) as usize;
        let (from, count) = &mut left[which];
        let limit = Duration::from_nanos(random.below(3_000));
        let received = match random.below(2) {
            0 => match timeout(limit, tagged.recv::<Text>(*from)).await {
                Ok(received) => received,
                Err(_) => continue,
            },
            _ => tagged.recv::<Text>(*from).await,
        };
        match received {
            Ok(text) => {
                note(to, tag, &text);
                *count -= 1;
            }
            Err(error) => {
                survives::<()>(Err(error))?;
                *count = 0;
            }
        }
        left.retain(|(_, count)| *count > 0);
    }
    Ok(())
}

async fn program(seed: u64) -> Result<()> {
    let team = Team::world();
    let all = finish(async {
        for place in places() {
            for tag in 0..TAGS {
                spawn_at!(place, receive_all(seed, &team, tag).await?);
                for to in 0..place_count() {
                    spawn_at!(place, send_all(seed, &team, to, tag).await?);
                }
            }
        }
    })
    .await;
    // The death of the killed place is an error of the finish, however the tasks handle it.
    match all {
        Err(error) if LOST.get().is_some() && error.to_string().contains("DeadPlace") => Ok(()),
        result => result,
    }
}

fn run(seed: u64, plan: Plan) -> (Result<()>, u64) {
    LAST.with_borrow_mut(BTreeMap::clear);
    RECEIVED.set(0);
    LOST.set(plan.losses.first().map(|loss| loss.place.index()));
    let (result, _, digest) = isles::simulate(places_of(seed), plan, move || program(seed));
    (result, digest)
}

fn places_of(seed: u64) -> u32 {
    1 + (seed % 5) as u32
}

/// Seeds of worlds with cancelled sends of slices, in the ordinary tests.
const SLICE_SEEDS: u64 = 200;

/// Slices that a member sends to the next one; all sends but the last may be cancelled.
const SLICES: u64 = 12;

/// A length above the eager limit.
const SLICE_WORDS: usize = 1_024;

/// Sends slices, cancels most sends, and then changes the memory.
async fn give_up_slices(seed: u64, team: &Team) -> Result<()> {
    let (to, mut slice) = ((team.rank() + 1) % team.size(), vec![0; SLICE_WORDS]);
    let mut random = Random::stream(seed, 1 << 41 | team.rank() as u64);
    for number in 0..SLICES {
        slice.fill(number);
        let limit = Duration::from_nanos(random.below(2_000));
        // The error of a cancelled send is the time-out.
        let _ = timeout(limit, team.send_slice(to, &slice)).await;
        slice.fill(u64::MAX);
    }
    slice.fill(SLICES);
    team.send_slice(to, &slice).await
}

/// Receives slices, and cancels some receives; ends with the slice whose send was not cancelled.
async fn receive_slices(seed: u64, team: &Team) -> Result<()> {
    let (from, mut slice, mut last) =
        ((team.rank() + team.size() - 1) % team.size(), vec![0; SLICE_WORDS], None);
    let mut random = Random::stream(seed, 1 << 42 | team.rank() as u64);
    while last != Some(SLICES) {
        let receive = team.recv_slice(from, &mut slice);
        let limit = Duration::from_nanos(random.below(4_000));
        match random.below(3) {
            0 => match timeout(limit, receive).await {
                Ok(received) => received?,
                Err(_) => continue,
            },
            _ => receive.await?,
        }
        let number = slice[0];
        assert!(slice.iter().all(|word| *word == number), "two slices in one");
        assert!(number <= SLICES && last.is_none_or(|last| last < number), "{last:?}, then {number}");
        last = Some(number);
        RECEIVED.set(RECEIVED.get() + 1);
    }
    Ok(())
}

async fn slices(seed: u64) -> Result<()> {
    let team = Team::world();
    finish(async {
        for place in places() {
            spawn_at!(place, receive_slices(seed, &team).await?);
            spawn_at!(place, give_up_slices(seed, &team).await?);
        }
    })
    .await
}

#[test]
fn a_slice_whose_send_is_given_up_is_received_whole_or_not_at_all() {
    let (mut received, mut kept) = (0, 0);
    for seed in seeds(SLICE_SEEDS) {
        for make in [Plan::calm, Plan::adversarial] {
            let run = || {
                RECEIVED.set(0);
                isles::simulate(places_of(seed), make(seed), move || slices(seed))
            };
            let (result, _, digest) = run();
            result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
            received += RECEIVED.get();
            kept += u64::from(places_of(seed));
            assert_eq!(digest, run().2, "ISLES_SEED={seed} gave two different runs");
        }
    }
    assert!(received > kept, "none of the sends that could be given up has sent anything");
}

#[test]
fn each_message_is_received_once_and_in_order() {
    let mut messages = 0;
    for seed in seeds(SEEDS) {
        for make in [Plan::calm, Plan::adversarial] {
            let (result, digest) = run(seed, make(seed));
            result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
            let size = places_of(seed) as usize;
            let pairs = (0..size).flat_map(|from| (0..size).map(move |to| (from, to)));
            let sent = pairs.flat_map(|(from, to)| (0..TAGS).map(move |tag| plan(seed, from, to, tag).len()));
            let sent = sent.sum::<usize>() as u64;
            assert_eq!(RECEIVED.get(), sent, "ISLES_SEED={seed}");
            messages += sent;
            assert_eq!(digest, run(seed, make(seed)).1, "ISLES_SEED={seed} gave two different runs");
        }
    }
    assert!(messages > 0);
}

#[test]
fn with_a_dead_place_nothing_hangs_and_nothing_comes_twice() {
    let mut received = 0;
    for seed in seeds(SEEDS).filter(|seed| places_of(*seed) > 1) {
        let world = || {
            let mut random = Random::stream(seed, 2);
            let place = isles_transport::PlaceId(1 + random.below(u64::from(places_of(seed)) - 1) as u32);
            let step = random.below(3_000);
            Plan { losses: vec![PlannedDeath { place, step }], ..Plan::adversarial(seed) }
        };
        let (result, digest) = run(seed, world());
        result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
        received += RECEIVED.get();
        assert_eq!(digest, run(seed, world()).1, "ISLES_SEED={seed} gave two different runs");
    }
    assert!(received > 0);
}
