//! Random programs of channels over simulated places, in seeded orders, with loss of places and sends that wait.
//!
//! Each seed determines channels with several homes and capacities, and tasks at all places that send and receive by
//! all operations; it runs twice with the same digest. `ISLES_TEST_SEEDS` sets the number of seeds; `ISLES_SEED`
//! selects one.

use crate::seeds::seeds;
use isles::counters::CounterId;
use isles::prelude::*;
use isles::{ErrorKind, Plan, PlannedDeath, Random, Result, SendErrorKind};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::time::Duration;

/// Seeds in the ordinary tests.
const SEEDS: u64 = 200;

thread_local! {
    /// Values whose send succeeded, and received values. All simulated places share this thread.
    static SENT: RefCell<HashSet<u64>> = RefCell::default();
    static RECEIVED: RefCell<Vec<u64>> = RefCell::default();
    /// The place that the world kills, if any.
    static LOST: Cell<Option<usize>> = const { Cell::new(None) };
}

type Ends = Vec<(Sender<u64>, Receiver<u64>)>;

/// One task that sends `count` values from `first` on.
async fn produce(seed: u64, first: u64, count: u64, channels: Vec<Sender<u64>>) -> Result<()> {
    let mut random = Random::stream(seed, first);
    for value in first..first + count {
        let one = &channels[random.below(channels.len() as u64) as usize];
        let other = &channels[random.below(channels.len() as u64) as usize];
        let sent = match random.below(6) {
            0 => select! {
                sent = one.send(value) => sent,
                sent = other.send(value) => sent,
            },
            1 => select! {
                sent = one.send(value) => sent,
                default => one.send(value).await,
            },
            2 => one.send_timeout(value, Duration::from_nanos(random.below(2_000))).await,
            3 => one.try_send(value).await,
            _ => one.send(value).await,
        };
        match sent {
            Ok(()) => assert!(SENT.with_borrow_mut(|sent| sent.insert(value))),
            Err(error) => {
                assert_eq!(error.value, value, "another value came back");
                note_death(error.into())?;
            }
        }
    }
    Ok(())
}

/// Ignores the death of the place that the world kills; returns other errors.
fn note_death(error: isles::Error) -> Result<()> {
    match error.kind() {
        ErrorKind::DeadPlace(place) if Some(place.index()) == LOST.get() => Ok(()),
        ErrorKind::DeadlinePassed | ErrorKind::Closed | ErrorKind::Failed => Ok(()),
        _ => Err(error),
    }
}

/// Receives from one channel, and polls another one between two values, until the first is closed.
async fn consume(seed: u64, one: Receiver<u64>, other: Receiver<u64>) -> Result<()> {
    let mut random = Random::stream(seed, 1 << 40);
    loop {
        let received = match random.below(5) {
            0 => select! {
                value = one.recv() => value,
                value = other.recv() => match value {
                    Err(_) => one.recv().await,
                    value => value,
                },
            },
            1 => one.recv_timeout(Duration::from_nanos(random.below(2_000))).await,
            2 => one.try_recv().await,
            _ => one.recv().await,
        };
        match received {
            Ok(value) => RECEIVED.with_borrow_mut(|received| received.push(value)),
            Err(isles::RecvError::Closed) => return Ok(()),
            Err(isles::RecvError::Empty | isles::RecvError::DeadlinePassed) => isles::yield_now().await,
            Err(error) => return note_death(error.into()),
        }
    }
}

/// The program of a seed.
async fn program(seed: u64) -> Result<()> {
    // The death of the killed place is an error of the finish, however the tasks handle it.
    match finish(channels_and_tasks(seed)).await {
        Err(error) if LOST.get().is_some() && error.to_string().contains("DeadPlace") => Ok(()),
        result => result,
    }
}

async fn channels_and_tasks(seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 0);
    let place = |random: &mut Random| Place::new(random.below(place_count() as u64) as usize).unwrap();
    let mut ends: Ends = Vec::new();
    for _ in 0..1 + random.below(3) {
        let capacity = [0, 0, 1, 2, 8, 64][random.below(6) as usize];
        ends.push(channel_at(place(&mut random), capacity).await?);
    }
    for number in 0..2 + random.below(4) {
        let senders: Vec<Sender<u64>> = ends.iter().map(|(sender, _)| sender.clone()).collect();
        let (first, count) = (number * 1_000, 1 + random.below(30));
        spawn_at!(place(&mut random), produce(seed, first, count, senders).await?);
    }
    // At least one receiver for each channel.
    for number in 0..ends.len() as u64 + random.below(3) {
        let one = ends[number as usize % ends.len()].1.clone();
        // An occasional receiver keeps a channel open without emptying it: if the channel's other receiver dies,
        // senders would wait forever. So worlds with a death have none.
        let other = if LOST.get().is_some() { number } else { random.below(ends.len() as u64) };
        let other = ends[other as usize % ends.len()].1.clone();
        spawn_at!(place(&mut random), consume(seed ^ number, one, other).await?);
    }
    Ok(())
}

fn run(seed: u64, plan: Plan) -> (Result<()>, u64) {
    SENT.with_borrow_mut(HashSet::clear);
    RECEIVED.with_borrow_mut(Vec::clear);
    LOST.set(plan.losses.first().map(|loss| loss.place.index()));
    let (result, _, digest) = isles::simulate(2 + (seed % 5) as u32, plan, move || program(seed));
    (result, digest)
}

/// Checks that no value arrived twice or without a send; returns the number of sent values that did not arrive.
fn missing(seed: u64) -> usize {
    let received = RECEIVED.take();
    let once: HashSet<u64> = received.iter().copied().collect();
    assert_eq!(once.len(), received.len(), "ISLES_SEED={seed}: a value came twice");
    SENT.with_borrow(|sent| sent.difference(&once).count())
}

#[test]
fn each_value_that_was_sent_is_received_once() {
    let mut values = 0;
    for seed in seeds(SEEDS) {
        for plan in [Plan::calm, Plan::adversarial] {
            let (result, digest) = run(seed, plan(seed));
            result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
            values += SENT.with_borrow(HashSet::len);
            let received = RECEIVED.with_borrow(Vec::len);
            assert_eq!((missing(seed), received), (0, SENT.with_borrow(HashSet::len)), "ISLES_SEED={seed}");
            assert_eq!(digest, run(seed, plan(seed)).1, "ISLES_SEED={seed} gave two different runs");
        }
    }
    assert!(values > 0);
}
#[test]
fn with_a_dead_place_nothing_hangs_and_no_value_comes_twice() {
    let (mut lost, mut values) = (0, 0);
    for seed in seeds(SEEDS) {
        let plan = || {
            let mut plan = Plan::adversarial(seed);
            let mut random = Random::stream(seed, 2);
            let place = isles_transport::PlaceId(1 + random.below(1 + seed % 5) as u32);
            plan.losses = vec![PlannedDeath { place, step: random.below(2_000) }];
            plan
        };
        let (result, digest) = run(seed, plan());
        result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
        values += SENT.with_borrow(HashSet::len);
        lost += missing(seed);
        assert_eq!(digest, run(seed, plan()).1, "ISLES_SEED={seed} gave two different runs");
    }
    assert!(lost < values, "all {values} values are lost");
}

/// A value of a stream: the number of its task, and its number in the stream. The first type is sent as words, the
/// second in its encoding; the third owns memory, so it is sent in messages only.
trait Streamed: isles::CanSend {
    fn of(task: u32, index: u32) -> Self;
    fn parts(&self) -> (u32, u32);
}

impl Streamed for u64 {
    fn of(task: u32, index: u32) -> u64 {
        u64::from(task) << 32 | u64::from(index)
    }
    fn parts(&self) -> (u32, u32) {
        ((*self >> 32) as u32, *self as u32)
    }
}

impl Streamed for (u32, bool, u32) {
    fn of(task: u32, index: u32) -> Self {
        (task, index.is_multiple_of(3), index)
    }
    fn parts(&self) -> (u32, u32) {
        assert_eq!(self.1, self.2.is_multiple_of(3));
        (self.0, self.2)
    }
}

impl Streamed for Vec<u32> {
    fn of(task: u32, index: u32) -> Self {
        vec![task, index]
    }
    fn parts(&self) -> (u32, u32) {
        (self[0], self[1])
    }
}

/// Sends many values, some by operations that are cancelled, until all are sent.
async fn stream_out<T: Streamed>(seed: u64, task: u32, count: u32, way: Sender<T>) -> Result<()> {
    let mut random = Random::stream(seed, u64::from(task));
    for index in 0..count {
        loop {
            let value = T::of(task, index);
            let sent = match random.below(40) {
                0 => way.send_timeout(value, Duration::from_nanos(random.below(2_000))).await,
                1 => way.try_send(value).await,
                2 => {
                    isles::yield_now().await;
                    way.send(value).await
                }
                _ => way.send(value).await,
            };
            match sent {
                Ok(()) => break,
                Err(error) if matches!(error.kind, SendErrorKind::Full | SendErrorKind::DeadlinePassed) => {
                    isles::yield_now().await;
                }
                Err(error) => return note_death(error.into()),
            }
        }
        SENT.with_borrow_mut(|sent| sent.insert(u64::of(task, index)));
    }
    Ok(())
}

/// Receives until the channel is closed; checks that the values of each task are complete and in order.
async fn stream_in<T: Streamed>(seed: u64, way: Receiver<T>) -> Result<()> {
    let mut random = Random::stream(seed, 1 << 40);
    let mut next = [0; 4];
    loop {
        let received = match random.below(30) {
            0 => way.recv_timeout(Duration::from_nanos(random.below(2_000))).await,
            1 => way.try_recv().await,
            _ => way.recv().await,
        };
        match received {
            Ok(value) => {
                let (task, index) = value.parts();
                assert_eq!(index, next[task as usize], "ISLES_SEED={seed}: a value of task {task}");
                next[task as usize] += 1;
                RECEIVED.with_borrow_mut(|received| received.push(u64::of(task, index)));
            }
            Err(isles::RecvError::Closed) => return Ok(()),
            Err(isles::RecvError::Empty | isles::RecvError::DeadlinePassed) => isles::yield_now().await,
            Err(error) => return note_death(error.into()),
        }
    }
}

async fn streams<T: Streamed>(seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 0);
    let place = |random: &mut Random| Place::new(random.below(place_count() as u64) as usize).unwrap();
    let capacity = [2, 5, 64, 100, 1_000][random.below(5) as usize];
    let (sender, receiver) = channel_at::<T>(place(&mut random), capacity).await?;
    for task in 0..1 + random.below(3) as u32 {
        let (count, way) = (1 + random.below(80) as u32, sender.clone());
        spawn_at!(place(&mut random), stream_out(seed, task, count, way).await?);
    }
    drop(sender);
    spawn_at!(place(&mut random), stream_in(seed, receiver).await?);
    Ok(())
}

#[test]
fn the_values_of_a_stream_come_in_order_also_from_a_place_that_dies() {
    let mut values = 0;
    for seed in seeds(SEEDS) {
        let plan = |dies: bool| {
            let mut plan = if seed % 4 == 0 { Plan::calm(seed) } else { Plan::adversarial(seed) };
            let mut random = Random::stream(seed, 2);
            let place = isles_transport::PlaceId(1 + random.below(1 + seed % 5) as u32);
            plan.losses.extend(dies.then(|| PlannedDeath { place, step: random.below(2_000) }));
            plan
        };
        let run = |plan: Plan| {
            SENT.with_borrow_mut(HashSet::clear);
            RECEIVED.with_borrow_mut(Vec::clear);
            LOST.set(plan.losses.first().map(|loss| loss.place.index()));
            let (result, _, digest) = isles::simulate(2 + (seed % 5) as u32, plan, move || async move {
                let ended = match seed % 3 {
                    0 => finish(streams::<(u32, bool, u32)>(seed)).await,
                    1 if seed % 2 == 0 => finish(streams::<Vec<u32>>(seed)).await,
                    _ => finish(streams::<u64>(seed)).await,
                };
                match ended {
                    Err(error) if LOST.get().is_some() && error.to_string().contains("DeadPlace") => Ok(()),
                    result => result,
                }
            });
            result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
            digest
        };
        for dies in [false, true] {
            let digest = run(plan(dies));
            values += RECEIVED.with_borrow(Vec::len);
            let missing = missing(seed);
            assert!(dies || missing == 0, "ISLES_SEED={seed}: {missing} values are lost");
            assert_eq!(digest, run(plan(dies)), "ISLES_SEED={seed} gave two different runs");
        }
    }
    assert!(values > 0);
}

/// Returns the number of messages of all places when one streams `count` values to another one.
fn messages_of<T: Streamed>(count: u32, plan: Plan) -> u64 {
    let (result, report, _) = isles::simulate(2, plan, move || async move {
        let (sender, receiver) = channel::<T>(256);
        finish(async {
            spawn_at!(Place::new(1).expect("there are two"), stream_out(0, 0, count, sender).await?);
            drop(sender);
            stream_in(0, receiver).await
        })
        .await
    });
    result.unwrap();
    report.places.iter().flatten().map(|place| place.count(CounterId::MessagesSent)).sum()
}

#[test]
fn values_of_a_stream_that_own_nothing_need_no_message_each() {
    let (few, many) =
        (messages_of::<u64>(5_000, Plan::calm(1)), messages_of::<Vec<u32>>(5_000, Plan::calm(1)));
    assert!(few < 1_500 && many > 5_000, "{few} and {many} messages");
    let few = messages_of::<(u32, bool, u32)>(5_000, Plan::calm(1));
    assert!(few < 1_500, "{few} messages");
    let between_hosts = messages_of::<u64>(5_000, Plan { places_per_host: 1, ..Plan::calm(1) });
    assert!(between_hosts > 5_000, "{between_hosts} messages");
}

#[test]
fn the_death_of_the_last_sender_s_place_closes_the_channel() {
    for seed in 0..20 {
        let plan = Plan {
            losses: vec![PlannedDeath { place: isles_transport::PlaceId(1), step: 400 }],
            ..Plan::calm(seed)
        };
        let main = || async {
            let dead = Place::new(1).expect("there are two");
            let (sender, receiver) = channel::<u64>(0);
            let ended = finish(async {
                spawn_at!(dead, {
                    sender.send(1).await?;
                    loop {
                        isles::yield_now().await;
                    }
                });
                drop(sender);
                assert_eq!(receiver.recv().await, Ok(1));
                assert_eq!(receiver.recv().await, Err(isles::RecvError::Closed));
                Ok::<_, isles::Error>(())
            });
            assert!(ended.await.is_err(), "a place has died");
            Ok::<_, isles::Error>(())
        };
        let result: Result<()> = isles::simulate(2, plan, main).0;
        result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
