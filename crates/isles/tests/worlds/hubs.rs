//! Random programs over hubs on simulated places, with seeded maps, orders and losses.
//!
//! A program is a line of tasks with a FIFO or a port between neighbours, a lock that all of them take, and requests
//! that fail or time out. Its tasks return the same values under each map; each world runs twice with the same digest.
//! `ISLES_TEST_SEEDS` sets the number of seeds; `ISLES_SEED` selects one.

use crate::seeds::seeds;
use isles::hub::{
    HubDescription, HubKind, HubMap, HubOperation, HubRule, HubSystem, HubTask, KernelCosts, Readiness,
    ServiceRequest, Status, Wait,
};
use isles::prelude::*;
use isles::{Error, Plan, PlannedDeath, Result};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Seeds in the ordinary tests.
const SEEDS: u64 = 50;

/// Packets that go down the line.
const PACKETS: u64 = 6;

type Values = Vec<(String, u64)>;

fn scramble(seed: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

fn tasks_of(seed: u64) -> u64 {
    2 + scramble(seed) % 4
}

fn describe(seed: u64) -> HubDescription {
    let description = HubDescription::new()
        .hub("lock", HubKind::Resource { ceiling: 0 })
        .hub("never", HubKind::Semaphore { count: 0 })
        .packet_bytes(8);
    (0..tasks_of(seed)).fold(description, |description, number| {
        let word = scramble(seed ^ number << 8);
        let kind = match word % 3 {
            0 => HubKind::Port,
            room => HubKind::Fifo { capacity: room as u32 },
        };
        description.task(format!("task {number}"), (word >> 8) as u8).hub(format!("link {number}"), kind)
    })
}

/// All entities at random places.
fn map_of(seed: u64, places: u64) -> HubMap {
    let place = |number: u64| (scramble(seed ^ places << 16 ^ number << 32) % places) as u32;
    let tasks = tasks_of(seed);
    let ends = [("lock".to_owned(), place(1)), ("never".to_owned(), place(2))];
    let line = (0..tasks).flat_map(|number| {
        [(format!("task {number}"), place(3 + number)), (format!("link {number}"), place(13 + number))]
    });
    HubMap::of(ends.into_iter().chain(line))
}

/// Checks that a request was refused as expected; the death of its hub's place is an error of the task.
fn refused(result: std::result::Result<Vec<u8>, Status>, allowed: &[Status]) -> Result<()> {
    match result {
        Err(status) if allowed.contains(&status) => Ok(()),
        Err(status @ Status::DeadPlace(_)) => Err(status.into()),
        other => panic!("it came back with {other:?}, not {allowed:?}"),
    }
}

/// Each packet is taken from the link before, changed under the lock, and put into the next link.
async fn body(task: HubTask, seed: u64) -> Result<u64> {
    let number: u64 = task.name()[5..].parse().expect("a number");
    let (lock, never) = (task.resource("lock")?, task.semaphore("never")?);
    let from = if number > 0 { Some(task.hub(&format!("link {}", number - 1))?) } else { None };
    let to = if number + 1 < tasks_of(seed) { Some(task.hub(&format!("link {number}"))?) } else { None };
    let mut value = seed;
    for packet in 0..PACKETS {
        let mut word = packet;
        if let Some(from) = from {
            let bytes = task.get(from, Wait::Forever).await?;
            word = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        }
        refused(task.signal(lock, Wait::Forever).await, &[Status::NotOwner])?;
        task.test(lock, Wait::Forever).await?;
        refused(task.test(lock, Wait::No).await, &[Status::AlreadyOwned])?;
        value = scramble(value ^ word);
        task.signal(lock, Wait::Forever).await?;
        let missed = match value % 3 {
            0 => task.test(never, Wait::No).await,
            1 => task.test(never, Wait::For(Duration::from_nanos(value % 1_000))).await,
            _ => Err(Status::Failed),
        };
        refused(missed, &[Status::Failed, Status::TimedOut])?;
        if let Some(to) = to {
            task.put(to, &value.to_le_bytes(), Wait::Forever).await?;
        }
    }
    Ok(value)
}

async fn program(seed: u64, map: HubMap) -> Result<Values> {
    let system = HubSystem::open(seed, describe, map, KernelCosts::default()).await?;
    let (mut values, _) = system.run(seed, body).await?;
    values.sort();
    Ok(values)
}

fn run(seed: u64, places: u64, plan: Plan) -> (Result<Values>, u64) {
    let map = map_of(seed, places);
    let values = Rc::new(RefCell::default());
    let noted = Rc::clone(&values);
    let main = async move {
        *noted.borrow_mut() = program(seed, map).await?;
        Ok::<(), Error>(())
    };
    let (result, _, digest) = isles::simulate(places as u32, plan, move || main);
    (result.map(|()| values.take()), digest)
}

#[test]
fn tasks_have_the_same_values_under_each_map() {
    for seed in seeds(SEEDS) {
        let alone =
            run(seed, 1, Plan::calm(seed)).0.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
        assert_eq!(alone.len() as u64, tasks_of(seed), "ISLES_SEED={seed}");
        for places in 2..=4 {
            let (mapped, digest) = run(seed, places, Plan::adversarial(seed));
            let mapped = mapped.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
            assert_eq!(mapped, alone, "ISLES_SEED={seed} at {places} places");
            let again = run(seed, places, Plan::adversarial(seed)).1;
            assert_eq!(digest, again, "ISLES_SEED={seed} gave two different runs");
        }
    }
}

#[test]
fn a_place_that_dies_is_an_error_or_goes_unnoticed_but_never_a_hang() {
    let mut noticed = 0;
    for seed in seeds(SEEDS) {
        let mut plan = Plan::adversarial(seed);
        let lost = isles_transport::PlaceId(1 + (seed % 2) as u32);
        plan.losses = vec![PlannedDeath { place: lost, step: scramble(seed ^ 7) % 300 }];
        let says_so = |error: &Error| error.to_string().contains(&lost.to_string());
        match run(seed, 3, plan).0 {
            Ok(_) => {}
            Err(error) if says_so(&error) => noticed += 1,
            Err(error) => panic!("ISLES_SEED={seed}: {error}"),
        }
    }
    assert!(noticed > 0, "no loss came while it mattered");
}

/// Opens when three have come.
#[derive(Debug, Default)]
struct Gate(u32);

impl HubRule for Gate {
    fn predicate(&self, request: &ServiceRequest, _: Option<&ServiceRequest>) -> Readiness {
        match request.operation {
            HubOperation::Get if self.0 < 3 => Readiness::Wait,
            _ => Readiness::Now,
        }
    }

    fn action(&mut self, request: &mut ServiceRequest, _: Option<&mut ServiceRequest>) {
        self.0 += u32::from(request.operation == HubOperation::Put);
    }
}

fn describe_all((): ()) -> HubDescription {
    HubDescription::new()
        .task("first", 30)
        .task("second", 20)
        .own_hub("gate", || Box::new(Gate::default()))
        .hub("event", HubKind::Event)
        .hub("data", HubKind::DataEvent)
        .hub("board", HubKind::BlackBoard)
        .hub("pool", HubKind::MemoryPool { blocks: 1, block_bytes: 16 })
        .hub("packets", HubKind::PacketPool { packets: 1 })
        .hub("port", HubKind::Port)
        .packet_bytes(16)
}

async fn body_of_all(task: HubTask, (): ()) -> Result<u64> {
    let gate = task.hub("gate")?;
    let (event, data, board) = (task.event("event")?, task.data_event("data")?, task.black_board("board")?);
    if task.name() == "second" {
        task.test(gate, Wait::Forever).await?;
        task.test(event, Wait::Forever).await?;
        let value = task.get(data, Wait::Forever).await?;
        let text = task.get(board, Wait::Forever).await?;
        assert_eq!((&value[..], &text[..]), (&b"new"[..], &[2, 0, 0, 0, 0, 0, 0, 0, b'h', b'i'][..]));
        let pool = task.memory_pool("pool")?;
        assert_eq!(task.allocate(pool, 8, Wait::Forever).await.err(), Some(Status::NotLocal));
        task.put(task.port("port")?, b"end", Wait::Forever).await?;
        return Ok(2);
    }
    // Made before it is awaited.
    let end = task.get(task.port("port")?, Wait::Forever).begin();
    for _ in 0..3 {
        task.signal(gate, Wait::Forever).await?;
    }
    for text in ["old", "new"] {
        task.put(data, text.as_bytes(), Wait::Forever).await?;
        task.put(board, if text == "new" { b"hi" } else { b"ho" }, Wait::Forever).await?;
    }
    task.signal(event, Wait::Forever).await?;
    let pool = task.memory_pool("pool")?;
    let mut block = task.allocate(pool, 8, Wait::No).await?;
    block[7] = 1;
    assert_eq!(task.allocate(pool, 8, Wait::No).await.err(), Some(Status::Failed));
    assert_eq!(task.allocate(pool, 17, Wait::No).await.err(), Some(Status::TooLong));
    drop(block);
    assert_eq!(task.allocate(pool, 8, Wait::No).await?[..], [0; 8]);
    let packets = task.packet_pool("packets")?;
    let packet = task.get(packets, Wait::No).await?;
    assert_eq!(task.get(packets, Wait::For(Duration::from_nanos(5))).await, Err(Status::TimedOut));
    task.put(packets, &packet, Wait::No).await?;
    assert_eq!(task.put(board, &[0; 17], Wait::No).await, Err(Status::TooLong));
    assert!(task.semaphore("board").is_err() && task.hub("nowhere").is_err());
    assert_eq!(end.await?, b"end");
    Ok(1)
}

#[test]
fn every_kind_of_hub_does_what_it_says_and_so_does_one_of_the_program() {
    for seed in seeds(SEEDS) {
        let main = || async {
            let map = HubMap::of([("second", 1), ("gate", 1), ("board", 1)]);
            let system = HubSystem::open((), describe_all, map, KernelCosts::default()).await?;
            let (values, counts) = system.run((), body_of_all).await?;
            assert!(counts.requests > 20, "{counts:?}");
            let again = system.run((), body_of_all).await.expect_err("tasks run once");
            assert!(again.to_string().contains("run once"), "{again}");
            assert_eq!(values, [("first".to_owned(), 1), ("second".to_owned(), 2)]);
            Ok::<(), Error>(())
        };
        let (result, ..) = isles::simulate(2, Plan::adversarial(seed), main);
        result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
    }
}

fn describe_some((): ()) -> HubDescription {
    ["first", "second", "third"]
        .into_iter()
        .fold(HubDescription::new(), |description, name| description.task(name, 10))
        .hub("port", HubKind::Port)
        .hub("lock", HubKind::Resource { ceiling: 0 })
        .hub("taken", HubKind::Semaphore { count: 0 })
        .hub("never", HubKind::Event)
}

/// One task gets a packet in a task of the runtime, which the kernel does not know.
async fn body_that_spawns(task: HubTask, (): ()) -> Result<u64> {
    let port = task.port("port")?;
    match task.name() {
        "first" => {
            let got = Rc::new(RefCell::default());
            let noted = Rc::clone(&got);
            finish(async move {
                spawn(async move {
                    *noted.borrow_mut() = task.get(port, Wait::Forever).await?;
                    Ok::<(), Error>(())
                });
            })
            .await?;
            Ok(u64::from(got.borrow()[0]))
        }
        "second" => {
            for _ in 0..20 {
                task.yield_now().await;
            }
            task.put(port, &[7], Wait::Forever).await?;
            Ok(0)
        }
        _ => Ok(0),
    }
}

#[test]
fn a_request_wakes_whoever_awaits_it() {
    for seed in seeds(SEEDS) {
        let main = move || async move {
            let map = HubMap::of([("second", (seed % 2) as u32), ("port", (seed / 2 % 2) as u32)]);
            let system = HubSystem::open((), describe_some, map, KernelCosts::default()).await?;
            let (values, _) = system.run((), body_that_spawns).await?;
            assert_eq!(values[0], ("first".to_owned(), 7));
            Ok::<(), Error>(())
        };
        let (result, ..) = isles::simulate(2, Plan::adversarial(seed), main);
        result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
    }
}

/// The first task has a lock that the third waits for, when the second ends the tasks of their place by its error.
async fn body_that_fails(task: HubTask, (): ()) -> Result<u64> {
    let (lock, taken) = (task.resource("lock")?, task.semaphore("taken")?);
    match task.name() {
        "first" => {
            task.test(lock, Wait::Forever).await?;
            task.signal(taken, Wait::Forever).await?;
            task.signal(taken, Wait::Forever).await?;
            task.test(task.event("never")?, Wait::Forever).await?;
            Ok(0)
        }
        "second" => {
            task.test(taken, Wait::Forever).await?;
            Err(Status::Failed.into())
        }
        _ => {
            task.test(taken, Wait::Forever).await?;
            task.test(lock, Wait::Forever).await?;
            Ok(3)
        }
    }
}

#[test]
fn a_lock_of_a_task_that_ends_with_its_place_s_others_goes_back() {
    for seed in seeds(SEEDS) {
        let main = move || async move {
            let map = HubMap::of([("third", 1), ("lock", (seed % 2) as u32)]);
            let system = HubSystem::open((), describe_some, map, KernelCosts::default()).await?;
            let values = Rc::new(RefCell::new(Vec::new()));
            let at_each = everywhere!({
                let values = system.run_here(|task| body_that_fails(task, ())).await;
                values.map_err(|error| error.to_string())
            });
            values.replace(at_each.await?);
            let values = values.take();
            assert!(values[0].as_ref().is_err_and(|text| text.contains("at once")), "{values:?}");
            assert_eq!(values[1], Ok(vec![("third".to_owned(), 3)]));
            Ok::<(), Error>(())
        };
        let (result, ..) = isles::simulate(2, Plan::adversarial(seed), main);
        result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
    }
}

/// Over a line of three places; the one in the middle dies.
#[test]
fn a_request_over_a_place_that_dies_returns() {
    let mut noticed = 0;
    for seed in seeds(SEEDS) {
        let main = move || async move {
            let map = HubMap {
                links: vec![(0, 1), (1, 2)],
                ..HubMap::of([("lock", 2), ("never", 2), ("third", 2)])
            };
            let system = HubSystem::open((), describe_some, map, KernelCosts::default()).await?;
            let (values, _) = system.run((), body_that_waits).await?;
            drop(values);
            Ok::<(), Error>(())
        };
        let mut plan = Plan::adversarial(seed);
        plan.losses =
            vec![PlannedDeath { place: isles_transport::PlaceId(1), step: scramble(seed ^ 7) % 300 }];
        let (result, ..) = isles::simulate(3, plan, main);
        let error = result.expect_err("a task waits for ever, or for the dead place");
        assert!(error.to_string().contains("place 1"), "ISLES_SEED={seed}: {error}");
        noticed += u32::from(error.to_string().contains("on the way"));
    }
    assert!(noticed > 0, "no loss came while a request was under way");
}

async fn body_that_waits(task: HubTask, (): ()) -> Result<u64> {
    let (lock, never) = (task.resource("lock")?, task.event("never")?);
    task.test(lock, Wait::Forever).await?;
    task.signal(lock, Wait::Forever).await?;
    if task.name() != "third" {
        task.test(never, Wait::Forever).await?;
    }
    Ok(0)
}
