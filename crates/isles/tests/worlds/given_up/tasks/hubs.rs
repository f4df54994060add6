//! Hubs whose requests and tasks are cancelled, before and after they got a block or a lock: all are returned.

use super::super::{attempt, interrupt, run_worlds};
use isles::hub::{
    HubDescription, HubKind, HubMap, HubOperation, HubSystem, HubTask, KernelCosts, Status, Wait,
};
use isles::prelude::*;
use isles::{Random, Result};
use std::time::Duration;

/// Blocks of a pool, fewer than the tasks of its place; a task finally takes all of them.
const BLOCKS: u32 = 2;

/// Tasks of each place.
const TASKS: u32 = 4;

/// Bytes of a block.
const BYTES: u32 = 8;

fn pool_of(place: u32) -> String {
    format!("pool {place}")
}

fn task_of(place: u32, number: u32) -> String {
    format!("task {place} {number}")
}

fn lock_of(place: u32) -> String {
    format!("lock {place}")
}

fn queue_of(place: u32) -> String {
    format!("queue {place}")
}

/// Describes a pool, a lock, a FIFO and some tasks at each place. Tasks use the pool of their place, and the lock and
/// the FIFO of the next.
fn describe(places: u32) -> HubDescription {
    (0..places).fold(HubDescription::new(), |description, place| {
        let kind = HubKind::MemoryPool { blocks: BLOCKS, block_bytes: BYTES };
        let description = description
            .hub(pool_of(place), kind)
            .hub(lock_of(place), HubKind::Resource { ceiling: 0 })
            .hub(queue_of(place), HubKind::Fifo { capacity: 2 });
        (0..TASKS).fold(description, |description, number| {
            // Of one priority, so that they take turns.
            description.task(task_of(place, number), 10)
        })
    })
}

async fn open() -> Result<HubSystem> {
    let places = place_count() as u32;
    let tasks = (0..places).flat_map(|place| (0..TASKS).map(move |number| (task_of(place, number), place)));
    let hubs = (0..places)
        .flat_map(|place| [(pool_of(place), place), (lock_of(place), place), (queue_of(place), place)]);
    let map = HubMap::of(hubs.chain(tasks));
    HubSystem::open(places, describe, map, KernelCosts::default()).await
}

/// Takes and releases the lock of the next place.
async fn use_lock(task: &HubTask, random: &mut Random) -> Result<()> {
    let lock = task.resource(&lock_of(here().next().index() as u32))?;
    for is_last in [false, false, true] {
        let taken = match is_last {
            true => Some(task.test(lock, Wait::Forever).await),
            false => interrupt("services/hubs/task test", random, task.test(lock, Wait::Forever)).await,
        };
        match taken {
            // The release after a cancelled request is still in flight.
            None | Some(Err(Status::AlreadyOwned)) => task.yield_now().await,
            Some(taken) => {
                taken?;
                let unlock = task.signal(lock, Wait::Forever);
                if interrupt("services/hubs/task signal", random, unlock).await.is_none() {
                    let again = task.signal(lock, Wait::Forever).await;
                    assert!(matches!(again, Ok(_) | Err(Status::NotOwner)), "{again:?}");
                }
            }
        }
    }
    Ok(())
}

/// Puts packets into the FIFO of the next place, and gets some.
async fn use_queue(task: &HubTask, random: &mut Random) -> Result<()> {
    let queue = task.fifo(&queue_of(here().next().index() as u32))?;
    let wait = Wait::For(Duration::from_nanos(random.below(1_000)));
    let _ = interrupt("services/hubs/task put", random, task.put(queue, &[1], wait)).await;
    let _ = interrupt("services/hubs/task get", random, task.get(queue, wait)).await;
    let again = task.request(queue, HubOperation::Get, Vec::new(), wait);
    let _ = interrupt("services/hubs/task request", random, again).await;
    let _ = interrupt("services/hubs/request begin", random, task.get(queue, wait).begin()).await;
    Ok(())
}

/// Takes blocks for some time, and finally all blocks of the pool; returns the number of blocks taken.
async fn use_blocks(task: HubTask, seed: u64) -> Result<u32> {
    let here = here().index() as u32;
    let pool = task.memory_pool(&pool_of(here))?;
    let mut random =
        Random::stream(seed, task.name().bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte)));
    let mut had = 0;
    for _ in 0..4 {
        let block = task.allocate(pool, BYTES, Wait::Forever);
        let Some(block) = interrupt("services/hubs/task allocate", &mut random, block).await else {
            continue;
        };
        let mut block = block?;
        assert_eq!(block[..], [0; BYTES as usize]);
        block[0] = 1;
        had += 1;
        let _ = interrupt("services/hubs/task yield_now", &mut random, task.yield_now()).await;
    }
    use_lock(&task, &mut random).await?;
    use_queue(&task, &mut random).await?;
    // It gets all blocks at once only if none is lost.
    loop {
        let first = task.allocate(pool, BYTES, Wait::Forever).await?;
        match task.allocate(pool, BYTES, Wait::No).await {
            Ok(_second) => return Ok(had),
            Err(Status::Failed) => {}
            Err(status) => return Err(status.into()),
        }
        drop(first);
        task.yield_now().await;
    }
}

async fn program(seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 0);
    let system = open().await?;
    attempt("services/hubs/worker run", &mut random, system.run(seed, use_blocks)).await?;
    let (values, _) = open().await?.run(seed, use_blocks).await?;
    assert_eq!(values.len(), place_count() * TASKS as usize);
    let system = open().await?;
    let at_each = everywhere!({
        let mut random = Random::stream(seed, 50 + here().index() as u64);
        let ran = system.run_here(|task| use_blocks(task, seed));
        attempt("services/hubs/worker run_here", &mut random, ran).await?.map(|values| values.len())
    });
    assert!(at_each.await?.into_iter().flatten().all(|tasks| tasks == TASKS as usize));
    Ok(())
}

#[test]
fn blocks_of_tasks_that_give_up_come_back() {
    run_worlds("hubs", program);
}
